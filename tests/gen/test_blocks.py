"""Every block of the registry can be built alone, as it is by default and as small as it may be."""

import re

import pytest

from gen.blocks import BLOCKS, block_kind, build_block, settings
from gen.design import DesignError, load_design
from gen.docstrings import block_text
from gen.lint import lint
from gen.verilog import converted, emit
from rtl.arith import VALUES

TINY = load_design("tiny")


def least(allowed: str) -> str | None:
    """The smallest value that a parameter may have, of those that are numbers."""
    found = re.search(r"between (\d+) and", allowed)
    return found[1] if found else None


#: A smaller value of these makes a larger block: more lanes share a beat. Converters with such lanes are simulated.
MORE_HARDWARE = ("lane_bits",)


@pytest.mark.parametrize("name", BLOCKS)
def test_smallest_values_build(name):
    kind = block_kind(name)
    smallest = [
        f"{parameter.name}={least(parameter.allowed)}"
        for parameter in kind.parameters
        if parameter.name not in MORE_HARDWARE
        # Widths that follow from the others have no least value of their own.
        if least(parameter.allowed) and (parameter.default is not None or parameter.name == "writer_depth")
    ]
    top, modules = converted(build_block(kind, settings(kind, smallest, TINY)))
    assert type(top.block) is kind.block and list(modules)[-1] == top.name
    flags = [f"{parameter.name}=true" for parameter in kind.parameters if parameter.kind == "flag"]
    assert settings(kind, flags, TINY).keys() >= {flag.partition("=")[0] for flag in flags}


def test_parameters_are_those_of_the_blocks():
    """Each parameter is explained by the block itself; payloads of any shape are plain bits here."""
    for kind in BLOCKS.values():
        text = block_text(kind.block)
        assert text.summary, kind.name
        # Names of parameters stand out, in lists, README and core: "memory of `entries` entries".
        assert kind.summary.count("`") == text.summary.partition(". ")[0].count("`") and "``" not in kind.summary
    tailors = block_text(block_kind("tailors_control").block)
    names = {parameter.name for parameter in block_kind("tailors_control").parameters}
    assert names == set(tailors.parameters) and all(tailors.parameters.values())


def test_defaults_follow_the_design():
    kind = block_kind("gustavson_pe")
    edge, tiny = (settings(kind, [], load_design(name)) for name in ("edge", "tiny"))
    assert (edge["radix"], edge["line_address_width"], edge["value"]) == (64, 14, "fp32")
    assert (tiny["radix"], tiny["line_address_width"], tiny["value"]) == (4, 9, "int32")
    assert settings(kind, ["radix=0x10", "value=fp32"], TINY)["radix"] == 16


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["radix=3"], "--param radix=3: must be a power of two between 2 and 256"),
        (["value=fp64"], f"--param value=fp64: must be one of {', '.join(map(repr, VALUES))}"),
        (["radix=true"], "--param radix=true: must be a power of two between 2 and 256"),
        (["jobs=64"], "--param jobs=64: must be a power of two between 2 and 16"),
        (["radix=4", "jobs=2", "radix=8"], "--param radix=8: radix may be given once: there is radix=4 before it"),
    ],
)
def test_bad_values_are_refused(given, message):
    with pytest.raises(DesignError) as refused:
        settings(block_kind("gustavson_pe"), given, TINY)
    assert str(refused.value) == message


@pytest.mark.filterwarnings("error")
def test_parameters_that_do_not_go_together_are_refused():
    kind = block_kind("banked_sram")
    with pytest.raises(DesignError, match=r"^--block banked_sram: SRAM lines must be a multiple of 4 banks"):
        settings(kind, ["lines=6"], TINY)


def test_register_files_with_other_constants_have_other_names():
    kind = block_kind("register_file")
    names = {
        build_block(kind, settings(kind, given, TINY)).module_name
        for given in ([], *([f"{parameter.name}=33"] for parameter in kind.parameters))
    }
    assert len(names) == 1 + len(kind.parameters)
    assert all(re.fullmatch(r"register_file_address_width\d+_constants_[0-9a-f]{8}", name) for name in names)


@pytest.mark.parametrize("given", [["readers=1"], ["writers=1"], ["readers=1", "writers=1"]], ids=" ".join)
def test_memory_engines_of_a_single_client_lint(tmp_path, given):
    kind = block_kind("memory_engine")
    verilog = emit(build_block(kind, settings(kind, given, TINY)), origin="a test")
    verilog.write(tmp_path)
    assert lint(tmp_path, verilog.top, verilog.sources) == []
