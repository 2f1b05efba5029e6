"""What holds for every block: it refuses impossible parameters and says its latency and throughput."""

import importlib
import inspect
import re
import traceback
from pathlib import Path

import pytest

from rtl.lib.block import Block, constructor_defaults

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "rtl").rglob("*.py"))


def blocks() -> list[type[Block]]:
    """Every class of rtl that is a block, by name."""
    found: dict[str, type[Block]] = {}
    for path in FILES:
        module = importlib.import_module(
            ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        )
        for value in vars(module).values():
            if inspect.isclass(value) and issubclass(value, Block) and value.__module__ == module.__name__:
                found[f"{value.__module__}.{value.__name__}"] = value
    return [found[name] for name in sorted(found)]


def impossible(block: type[Block]) -> dict[str, object]:
    """Values of a block's parameters, each a wrong one but for flags, of which none is, and shapes, which Amaranth judges."""
    if not block.__init__.__module__.startswith("rtl."):
        return {}
    harmless: dict[str, object] = {"bool": False, "ShapeLike": 8}
    taken = inspect.signature(block.__init__).parameters.values()
    kinds = {one.name: getattr(one.annotation, "__name__", str(one.annotation)) for one in taken if one.name != "self"}
    if set(kinds.values()) <= set(harmless):
        return {}
    return {name: harmless.get(kind, -1) for name, kind in kinds.items()}


BLOCKS = blocks()


@pytest.mark.parametrize("block", [block for block in BLOCKS if impossible(block)], ids=lambda block: block.__name__)
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_a_block_refuses_impossible_parameters(block: type[Block]) -> None:
    """Its own code does, before Amaranth meets a width below zero."""
    with pytest.raises((TypeError, ValueError)) as refused:
        block(**impossible(block))
    (*_, last) = traceback.extract_tb(refused.value.__traceback__)
    assert Path(last.filename).is_relative_to(ROOT / "rtl"), f"{last.filename}: {refused.value}"


def test_a_block_says_its_latency_and_throughput() -> None:
    said = re.compile(r"^Timing(\n-+$|: )", re.MULTILINE)
    assert [b.__name__ for b in BLOCKS if b is not Block and not said.search(inspect.getdoc(b) or "")] == []


def test_a_block_keeps_its_parameters_under_their_own_names() -> None:
    """They are in its module name then, and no two builds share one. Bases of other blocks leave it to these."""
    forgotten = {}
    for block in BLOCKS:
        own = block.parameters is not Block.parameters or block.module_name is not Block.module_name
        if own or any(other is not block and issubclass(other, block) for other in BLOCKS):
            continue
        sources = [inspect.getsource(base) for base in block.__mro__ if base.__module__.startswith("rtl.")]
        kept = set(re.findall(r"self\.(\w+)(?=(?:, self\.\w+)* = )", "\n".join(sources)))
        kept -= set(re.findall(r'"(\w+)": (?:In|Out)\(', "\n".join(sources)))
        if missing := {*constructor_defaults(block)} - kept:
            forgotten[block.__name__] = missing
    assert forgotten == {}
