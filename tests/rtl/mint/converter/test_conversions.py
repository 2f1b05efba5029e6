# amaranth: UnusedElaboratable=no
"""A converter has what its conversions need, and nothing else."""

import pytest
from amaranth.sim import Simulator

from rtl.converter import Converter
from rtl.lib.block import Block
from rtl.mint.converter.cell_finder import CellFinder
from rtl.mint.converter.conversions import ALL, FIGURE_8, Conversions, conversions_named
from rtl.mint.converter.decoder import Decoder
from rtl.mint.converter.position_maker import PositionMaker
from rtl.regs.converter_map import FORMATS, SOURCES, TENSOR_SOURCES

SIZES = {"data_width": 128, "address_width": 40, "outstanding": 16, "burst_beats": 16, "value": "int32"}


def test_names_of_conversions():
    assert conversions_named("all") == ALL
    assert len(ALL.pairs) == len(SOURCES) * (len(FORMATS) - 1) + len(TENSOR_SOURCES)
    assert set(conversions_named("figure_8").pairs) == {*FIGURE_8}
    assert conversions_named("any-csf").pairs == (("dense", "csf"), ("coo", "csf"))
    assert conversions_named("rlc-coo,csr-csc").pairs == (("csr", "csc"), ("rlc", "coo"))
    assert conversions_named("any-coo,coo-coo").pairs == tuple((source, "coo") for source in SOURCES)
    assert [one.pairs for one in conversions_named("csr-csc,csr-rlc").separate()] == [
        (("csr", "rlc"),),
        (("csr", "csc"),),
    ]


@pytest.mark.parametrize(
    "text", ["", "csr", "csr-csc-coo", "csr-abc", "csr-csc,", "figure_9", "csr-csf", "any-csf,zvc-csf", "csf-coo"]
)
def test_other_names_are_refused(text):
    with pytest.raises(
        ValueError, match=r"^must be one of 'all', 'figure_8' or pairs such as 'csr-csc,any-coo' of dense, "
    ):
        conversions_named(text)
    with pytest.raises(ValueError, match=r"^Conversions must be pairs of dense, "):
        Decoder(
            beat_bits=128,
            lanes=4,
            value_bits=8,
            floating=False,
            form="host",
            address_width=40,
            conversions=Conversions(()),
        )


@pytest.mark.parametrize(
    ("text", "multiplies", "divides", "transposes"),
    [
        ("all", True, True, True),
        ("csr-csc", False, False, True),
        ("rlc-coo", False, True, False),
        ("csr-dense", True, False, False),
        ("csc-rlc", True, False, True),
        ("zvc-dense", False, False, False),
        ("csr-bsr", False, False, True),
        ("dense-bsr", False, True, True),
        ("dense-csf", False, True, False),
        ("coo-csf", False, False, False),
        ("any-csf,csr-csc", False, True, True),
    ],
)
def test_what_conversions_need(text, multiplies, divides, transposes):
    found = conversions_named(text)
    assert (found.multiplies, found.divides, found.transposes) == (multiplies, divides, transposes)


#: Blocks of which each needs a format or an order that a build may lack.
PARTS = {
    "RowExpander",
    "PositionMaker",
    "RunDecoder",
    "PlaceScanner",
    "ValueMatcher",
    "RunEncoder",
    "RowPointers",
    "BeatBuilder",
    "Transposer",
    "RecordMemory",
    "BlockFinder",
    "BlockFiller",
    "ReciprocalDivmod",
    "HostedDivmod",
    "TreeBuilder",
    "TreeNodes",
}
BLOCKS = {"BlockFinder", "BlockFiller", "ReciprocalDivmod", "RowPointers", "BeatBuilder", "Transposer", "RecordMemory"}


PARTS_OF_MR = {"PlaceScanner", "BlockFinder", "ReciprocalDivmod", "HostedDivmod", "TreeBuilder", "TreeNodes"}


def built(block):
    """Names of the classes of all blocks below this one, as often as they are there."""
    parts = [part for part, _ in block.build(None)._named_submodules.values() if isinstance(part, Block)]
    return [name for part in parts for name in (type(part).__name__, *built(part))]


def test_only_tensors_have_wide_records_and_more_clients():
    """96 bits and three writing clients without them, 128 and five with them; and two without blocks."""
    for text, bits, writers in (("all", 128, 5), ("dense-csf", 96, 5), ("csr-bsr", 96, 3), ("csr-coo", 96, 2)):
        core = Converter(conversions=text, **SIZES).core
        assert core.memory.writers == writers
        decoder = Decoder(
            beat_bits=128,
            lanes=4,
            value_bits=32,
            floating=False,
            form="work_efficient",
            address_width=40,
            conversions=core.conversions,
        )
        assert len(decoder.records.payload.records[0]) == bits


@pytest.mark.parametrize(
    ("style", "conversions", "wanted"),
    [
        ("m", "csr-csc", {"RowExpander", "PositionMaker", "RowPointers", "Transposer", "RecordMemory"}),
        ("m", "rlc-coo", {"RunDecoder", "ReciprocalDivmod"}),
        ("mr", "rlc-coo", {"RunDecoder", "HostedDivmod"}),
        ("m", "zvc-dense", {"PlaceScanner", "ValueMatcher", "BeatBuilder"}),
        ("b", "dense-rlc,coo-csr", {"PlaceScanner", "RunEncoder", "PositionMaker", "RowPointers"}),
        ("m", "csr-bsr", BLOCKS | {"RowExpander", "PositionMaker"}),
        ("mr", "dense-bsr", BLOCKS | {"PlaceScanner", "PositionMaker", "HostedDivmod"}),
        ("m", "coo-csf", {"PositionMaker", "TreeBuilder", "TreeNodes"}),
        ("m", "dense-csf", {"PlaceScanner", "BlockFinder", "ReciprocalDivmod", "TreeBuilder", "TreeNodes"}),
        ("mr", "dense-csf", PARTS_OF_MR),
        (
            "b",
            "coo-csf,zvc-coo",
            {"PositionMaker", "PlaceScanner", "ValueMatcher", "ReciprocalDivmod", "TreeBuilder", "TreeNodes"},
        ),
        ("m", "all", PARTS - {"HostedDivmod"}),
    ],
)
def test_nothing_else_is_built(style, conversions, wanted):
    found = built(Converter(style=style, conversions=conversions, **SIZES).core)
    assert PARTS & {*found} == wanted
    assert found.count("MemoryEngine") == 1
    assert found.count("ConverterCore") == (len(conversions.split(",")) if style == "b" else 1)


def test_keyed_positions_pass_the_divider():
    """Rows and columns of 32 bits come out as they went in, at once; those that are divided come later."""
    maker, finder = PositionMaker(lanes=2, value_bits=8), CellFinder(lanes=2, value_bits=8)
    found = {}

    async def make(ctx):
        ctx.set(maker.rows, 1 << 32)
        ctx.set(maker.columns, 1 << 32)
        ctx.set(maker.keyed, 1)
        ctx.set(maker.i.payload, {"present": 3, "rows": [5, (1 << 32) - 1], "columns": [(1 << 32) - 1, 7]})
        ctx.set(maker.i.valid, 1)
        for _ in range(maker.latency):
            await ctx.tick()
        assert ctx.get(maker.o.valid)
        found["positions"] = list(ctx.get(maker.o.payload.positions))

    async def find(ctx):
        ctx.set(finder.passes, 1)
        ctx.set(finder.groups.payload, {"positions": found["positions"], "count": 2})
        ctx.set(finder.groups.valid, 1)
        assert ctx.get(finder.cells.valid)
        assert list(ctx.get(finder.cells.payload.rows)) == [5, (1 << 32) - 1]
        assert list(ctx.get(finder.cells.payload.columns)) == [(1 << 32) - 1, 7]
        ctx.set(finder.passes, 0)
        assert not ctx.get(finder.cells.valid)
        assert not ctx.get(finder.groups.ready)
        await ctx.tick()

    for dut, bench in ((maker, make), (finder, find)):
        simulator = Simulator(dut)
        simulator.add_clock(1e-8)
        simulator.add_testbench(bench)
        simulator.run()
