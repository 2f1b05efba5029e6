"""Pages of blocks: every port, the words of the docstring, links that lead somewhere."""

import re

import pytest

from gen.docstrings import block_text, member_meaning
from gen.pages import pages
from gen.verilog import emit
from rtl.accelerator import Accelerator
from rtl.accessor.segment_stream import SegmentStreamer
from rtl.buffer.tailors import TailorsBuffer
from rtl.memory.memory_engine import MemoryEngine
from rtl.pe.merge_tree import MergeTree
from tests.gen.blocks import Chain, Lookup

TOP = "tailors_buffer"


@pytest.fixture(scope="module")
def tailors():
    verilog = emit(TailorsBuffer(width=8, entries=16), origin="a test")
    return verilog, pages(verilog, origin="Of a test.")


def test_every_module_has_a_page_and_links_lead_to_it(tailors):
    verilog, texts = tailors
    assert set(texts) == {f"docs/blocks/{name.removesuffix('.sv')}.md" for name in [*verilog.sources, "index.sv"]}
    for text in texts.values():
        for target in re.findall(r"\]\((\S+?)\)", text):
            assert f"docs/blocks/{target}" in texts
    assert f"| [{TOP}]({TOP}.md) | 1 |" in texts["docs/blocks/index.md"]


def test_ports_are_those_of_the_verilog(tailors):
    verilog, texts = tailors
    for name in verilog.sources:
        declared = re.findall(r"(?m)^  (in|out)put +logic (?:\[(\d+):0\] )?(\w+)", verilog.files[name])
        listed = re.findall(r"(?m)^\| `(\w+)` \| (in|out) \| (\d+) \|", texts[f"docs/blocks/{name[:-3]}.md"])
        assert listed == [(port, direction, str(int(high or 0) + 1)) for direction, high, port in declared]


def test_a_page_says_what_the_block_says(tailors):
    _, texts = tailors
    page = texts[f"docs/blocks/{TOP}.md"]
    assert "| `entries` | `16` | Largest capacity, at least 2. |" in page
    assert "| `fill__payload` | in | 8 | Appends. Waits while there is no credit." in page
    assert "| `update__payload__index` | in | 5 |" in page and "### Fields" not in page
    assert "| `capacity` | in | 5 | Entries. Change only while `idle`. |" in page, (
        "what is said of several is shared out"
    )
    assert "| `release` | `False` |" in page
    assert re.search(r"\| `error` \| out \| 3 \| .* 0 `none`, 1 `fill_while_overbooked`, ", page)
    assert "`latency`: 5 cycles.\n\nOne Fill or OWFill and one Read a cycle" in page
    assert "- 1 x [tailors_control](tailors_control.md)" in page
    control = texts["docs/blocks/tailors_control.md"]
    assert "```text\n    base + rolling offset    head" in control and control.count("```") == 2
    assert f"Used 1 times, in [{TOP}]({TOP}.md)." in control
    for text in texts.values():
        assert not re.search(r":class:|``\w|-----", text.replace("```", ""))


def test_heads_of_entries_are_understood():
    cases = {
        SegmentStreamer: {"lanes": "", "rows": "Leaves and rows under way.", "pending": "Leaves and rows under way."},
        MemoryEngine: {"writers": "Clients, at least 1 each."},
    }
    for kind, expected in cases.items():
        found = block_text(kind).parameters
        assert {name: found[name] for name in expected} == expected
    assert member_meaning("read_request__2__valid", [block_text(MemoryEngine)])[1].startswith(
        "Byte address and beats in"
    )
    assert member_meaning("s_axil_wdata", [block_text(Accelerator)])[0] == "s_axil_*"
    assert (
        member_meaning("m_axi_wdata", [block_text(Accelerator)])[1]
        == "AXI4 manager, `64 * lanes // line_beats` bits of data."
    )
    assert block_text(MergeTree).timing.startswith("the first item of a job needs `latency` cycles")


def test_a_flag_that_adds_a_port_is_shown_as_set():
    texts = pages(emit(TailorsBuffer(width=8, entries=16, release=True), origin="a test"), origin="Of a test.")
    page = next(text for name, text in texts.items() if "tailors_buffer" in name)
    assert "| `release` | `True` |" in page


def test_blocks_of_other_people_have_pages_too():
    chain = pages(emit(Chain(length=3), origin="a test"), origin="Of a test.")
    assert "- 2 x [adder](adder.md)" in chain["docs/blocks/chain.md"]
    lookup = pages(emit(Lookup(), origin="a test"), origin="Of a test.")["docs/blocks/lookup.md"]
    assert "| `i__high` | in | 5 |" in lookup
