"""A block's parameters and payload layouts, written by the runner, read by the bench.

A bench sees each member of the block's signature as one vector (``verif.packed``). The runner describes the signature once, in
JSON, so that benches name fields without importing the hardware.
"""

import json
import os
from enum import EnumMeta
from pathlib import Path
from typing import Any

from amaranth.lib import data

__all__ = ["BLOCK_FILE", "BlockDescription", "Layout", "describe", "described"]

BLOCK_FILE = "FIBERLOOM_BLOCK"


def _tree(shape: Any) -> Any:
    """A layout as nested lists and dictionaries; None for anything without parts."""
    if isinstance(shape, type) and issubclass(shape, data.Struct):
        shape = shape.as_shape()  # type: ignore[attr-defined]
    if isinstance(shape, data.StructLayout):
        return {
            "fields": {
                name: [shape[name].offset, shape[name].width, _tree(shape[name].shape)] for name in shape.members
            }
        }
    if isinstance(shape, data.ArrayLayout):
        width = shape.size // shape.length
        return {"items": [[n * width, width, _tree(shape.elem_shape)] for n in range(shape.length)]}
    return None


def _names(enum: Any) -> dict[str, int]:
    return {item.name: item.value for item in enum}


def describe(block: Any) -> dict[str, Any]:
    """Parameters and port layouts of an Amaranth component, ready for JSON."""

    def plain(value: Any) -> bool:
        if not isinstance(value, dict):
            return isinstance(value, bool | int | str)
        members: dict[Any, Any] = value
        return all(isinstance(key, str) and plain(member) for key, member in members.items())

    ports = list(block.signature.flatten(block))
    return {
        "module": block.module_name,
        "parameters": {name: value for name, value in vars(block).items() if name[0] != "_" and plain(value)}
        | {name: getattr(block, name) for name in ("latency", "read_spacing") if hasattr(type(block), name)},
        "ports": {"__".join(map(str, path)): _tree(member.shape) for path, member, _ in ports},
        "enums": {
            "__".join(map(str, path)): _names(member.shape)
            for path, member, _ in ports
            if isinstance(member.shape, EnumMeta)
        },
    }


class Layout:
    """Packs and unpacks one payload. Items are integers, dictionaries and lists as the layout nests."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def pack(self, item: Any) -> int:
        """Bits of an item; missing fields are 0. An integer stands for itself."""
        return self._pack(self.tree, item, "payload")

    def unpack(self, bits: int) -> Any:
        return self._unpack(self.tree, bits)

    def _pack(self, tree: Any, item: Any, where: str) -> int:
        if isinstance(item, int):
            return int(item)
        if tree is None:
            raise TypeError(f"{where} has no parts: {item!r} must be an integer")
        parts = dict(enumerate(tree["items"])) if "items" in tree else tree["fields"]
        values = dict(enumerate(item)) if "items" in tree else item
        bits = 0
        for name, value in values.items():
            if name not in parts:
                raise ValueError(f"{where} has no part {name!r}: it has {', '.join(map(str, parts))}")
            offset, width, inner = parts[name]
            packed = self._pack(inner, value, f"{where}.{name}")
            if not 0 <= packed < 1 << width:
                raise ValueError(f"{where}.{name} = {packed} does not fit {width} bits")
            bits |= packed << offset
        return bits

    def _unpack(self, tree: Any, bits: int) -> Any:
        if tree is None:
            return bits
        if "items" in tree:
            return [self._unpack(inner, bits >> at & ((1 << width) - 1)) for at, width, inner in tree["items"]]
        return {
            name: self._unpack(inner, bits >> at & ((1 << width) - 1))
            for name, (at, width, inner) in tree["fields"].items()
        }


class BlockDescription:
    """The description that :func:`describe` wrote.

    ``parameters`` holds the block's own, by name; ``enums`` the names of a port's values; ``layout`` gives a port's
    payload layout.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self.module: str = record["module"]
        self.parameters: dict[str, Any] = record["parameters"]
        self.ports: dict[str, Any] = record["ports"]
        self.enums: dict[str, dict[str, int]] = record["enums"]

    def layout(self, port: str) -> Layout:
        """Layout of a port, or of a stream port's payload by the stream's name."""
        name = port if port in self.ports else f"{port}__payload"
        if name not in self.ports:
            raise ValueError(f"{self.module} has no port {port!r}")
        return Layout(self.ports[name])

    def streams(self, role: str) -> list[str]:
        """Names of the stream ports that begin with ``role``: one, or those of an array."""
        names = [name.removesuffix("__payload") for name in self.ports if name.endswith("__payload")]
        return [name for name in names if name == role or name.rsplit("__", 1)[0] == role]


def described() -> BlockDescription:
    """The block under test, from the runner's file."""
    return BlockDescription(json.loads(Path(os.environ[BLOCK_FILE]).read_text()))
