"""Tables of the manual that a benchmark prints by `PrintedTable`: cheap rows of each are made anew and compared with the page.

A row is found by its first cell. Cells that are seconds, at the end of a row, are left out.
"""

import importlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks.table_markers import OPERANDS, PrintedTable, table
from tests.tools import long_run

DOCS = Path(__file__).parents[2] / "docs"
AIRFOIL, CUBE = "pyamg:airfoil", "pyamg:unit_cube"
BANDS = ("band of 3, 6,000 rows", "5,000 rows, 9,000 scattered nonzeros")
SCATTERED = ("1,500 rows, 4,300 scattered nonzeros", "6,300 rows, 7,100 scattered nonzeros")
NOISE, FULL = "uniform:100:100:0.1:seed=1", "dense:30:60"


@dataclass(frozen=True, kw_only=True)
class Made:
    """A block of a page, and what makes some rows of it: the words of its benchmark's command.

    rows: first cells of those that are compared; what was asked for without them. whole: all rows. seconds: columns at the end.
    """

    page: str
    block: str
    words: Sequence[str]
    rows: Sequence[str] = ()
    whole: bool = False
    seconds: int = 0

    def __str__(self) -> str:
        return re.sub(r"\W+", "-", self.block)


# Counts, cost models and the model tier.
QUICK = (
    Made(page="benchmarks.md", block="tilings", words=[AIRFOIL, CUBE]),
    Made(page="benchmarks.md", block="engines pairs", words=["pairs", AIRFOIL], rows=[f"{AIRFOIL} x {AIRFOIL}", ""]),
    Made(
        page="benchmarks.md",
        block="engines densities",
        words=["densities", "--percent", "0.0001", "0.01"],
        rows=["A and B of the density", "B dense, 64 columns"],
    ),
    Made(page="papers.md", block="estimates", words=[AIRFOIL, "mycielskian:11"], rows=["airfoil", "mycielskian11"]),
    Made(
        page="papers.md",
        block="tensors",
        words=["tensor:1547:78:33:649300:exponent=0.3:values=one"],
        rows=["like Chicago-crime3"],
    ),
    Made(page="formats.md", block="formats", words=[], whole=True),
    *(
        Made(page="sage.md", block=f"sage {part}", words=[part], whole=True)
        for part in ("table3", "figure10c", "figure12", "figure13", "figure14")
    ),
    *(
        Made(page="analysis.md", block=f"papers_sparseloop {part}", words=[part], whole=True)
        for part in ("figure1", "figure12", "figure13", "figure15", "figure16", "figure17")
    ),
)
# Several runs of the whole command for each row, or the hardware of small designs.
SMALL = (
    Made(page="benchmarks.md", block="row_order", words=[AIRFOIL, "mycielskian:9"], seconds=2),
    Made(
        page="tilings.md",
        block="bounds",
        words=["--order", "natural", AIRFOIL, "mycielskian:9"],
        rows=[f"{AIRFOIL}, natural", "mycielskian:9, natural"],
    ),
    Made(page="papers.md", block="partial_rows", words=[AIRFOIL, "--steps", "2", "8"], rows=[AIRFOIL]),
    Made(page="benchmarks.md", block="overlap", words=[NOISE, FULL], rows=["uniform-100-100-0.1-seed1", "dense-30-60"]),
    Made(
        page="benchmarks.md",
        block="overlap --tensor B --config edge --set memory.records=packed",
        words=["--tensor", "B", "--config", "edge", "--set", "memory.records=packed", FULL],
        rows=["dense-30-60"],
    ),
    Made(
        page="benchmarks.md",
        block="overlap --tensor C --config edge --set memory.records=packed",
        words=["--tensor", "C", "--config", "edge", "--set", "memory.records=packed", FULL],
        rows=["dense-30-60"],
    ),
    Made(page="benchmarks.md", block="model", words=[AIRFOIL, CUBE, "--designs", "tiny"], rows=["tiny"]),
    Made(
        page="benchmarks.md",
        block="shapes --design tiny",
        words=["--design", "tiny", "band of 3,", "5,000 rows"],
        rows=BANDS,
    ),
    Made(
        page="benchmarks.md",
        block="shapes --unseen --design tiny",
        words=["--unseen", "--design", "tiny", "1,500 rows", "6,300 rows"],
        rows=SCATTERED,
    ),
    Made(page="benchmarks.md", block="long_rows", words=["--rows", "0", "4"], rows=["4", "5"]),
)
# In that of `edge`, whose simulation takes a minute to build.
LARGE = (
    Made(page="benchmarks.md", block="matrices", words=[AIRFOIL, CUBE]),
    Made(page="benchmarks.md", block="packed", words=[AIRFOIL, CUBE]),
    Made(page="benchmarks.md", block="shapes", words=["band of 3,", "5,000 rows"], rows=BANDS),
    Made(page="benchmarks.md", block="shapes --unseen", words=["--unseen", "1,500 rows", "6,300 rows"], rows=SCATTERED),
    Made(page="benchmarks.md", block="memory_formats", words=["dense:60:90"], rows=["dense-60-90"]),
    Made(page="blocks/converter.md", block="conversions", words=[], whole=True),
)
PACKED_LINES = (
    "packed --value fp32 --value bf16 --set buffer.line_beats=2 --set pe.leaf_lines=2 --set pe.queue_lines=512"
)
BY_VALUE = "bytes_by_value --before f46f11b4 --set buffer.line_beats=2 --set pe.leaf_lines=2 --set pe.queue_lines=512"
#: Blocks without a test of rows, and why.
DEAR = {
    BY_VALUE: "runs an earlier commit",
    PACKED_LINES: "another design of `edge`, built for it alone",
    "bytes_moved --before f46f11b4": "runs an earlier commit",
    "bytes_moved --group cycles --before f46f11b4": "runs an earlier commit",
    "bytes_moved --before f46f11b4 --config server": "runs an earlier commit",
    "matrices --config server": "the simulation of `server` builds for minutes",
    "matrices --group strips": "each run takes 6 to 45 million cycles",
    "matrices --group unfitted": "of the same command as `matrices`, whose rows are compared",
    "conversions --group tensors": "of the same command as `conversions`, whose rows are compared",
    "tensors --errors": "of the same runs as `tensors`, whose rows are compared",
    "kernels": "eight tilings of each product, minutes for the smallest that is on the page",
    "sage digits": "made anew by tests/papers/test_sage.py, where numbers may differ as matrix products of machines do",
    "stationary_cycles --products 50 --seed 901": "its rows are means over 50 runs in the hardware, minutes together",
    "array_products": "the simulations of `flex` build for a minute",
    "sage without": "twelve assumptions, each a whole table III",
    "sage search": "milliseconds",
    "analysis": "microseconds",
    "scaling": "seconds and memory, 10^5 to 10^8 nonzeros",
    "simulation": "seconds and memory",
    "papers_sparseloop table7": "4,000 mappings of each layer",
    "papers_sparseloop saving": "4,000 mappings of each layer",
    "papers_sparseloop designs": "4,000 mappings of each layer and design",
    "timing --seeds 3 --all": "three placements of each block, an hour",
    "timing --group lookups --seeds 3 --all --only fiber lookup --only tiling controller --only segment scanner": (
        "three placements of each block, ten minutes"
    ),
    "timing --group cut --seeds 3 --all --only accessor A --only accessor B --only accessor C "
    "--only dispatcher --only segment loader": ("three placements of each block, minutes each"),
    "area": "Yosys takes minutes for `edge`",
    "cells": "a cell library that is not part of the project",
    "builds": "a cell library that is not part of the project, an hour",
    "stationary": "a cell library that is not part of the project",
    "stationary --value fp32": "a cell library that is not part of the project",
    "stationary --entries 128": "a cell library that is not part of the project",
}


#: Tables of numbers outside markers, by page and heading.
BY_HAND = {
    ("benchmarks.md", "Builds of the converter"): "what the blocks below it and the paper say, with reasons",
    ("sage.md", "A network that is trained"): "the network, not what is measured on it",
    ("benchmarks.md", "A, B and C on their way"): "Yosys takes minutes for each design",
    (
        "papers.md",
        "HYTE: against Tailors, DRT and HARP, at its true 4 MiB",
    ): "what the blocks below it and the paper say",
    (
        "papers.md",
        "D2T2: traffic against squares, Tailors, DRT and searching everything",
    ): "what the blocks below it and the paper say",
    ("formal.md", "Planted faults"): "by `python -m verif.formal --faults --markdown`, with marks of its own",
    ("command_line.md", "Exit codes"): "nothing measured",
    ("compare.md", "Comparing tilings"): "nothing measured",
    ("energy.md", "Figures"): "nothing measured",
    ("memory_image.md", "Windows"): "nothing measured",
    ("soak.md", "What comes out"): "nothing measured",
    ("tensor_kernels.md", "Tensor kernels"): "nothing measured",
    ("tilings.md", "Dynamic tuning"): "nothing measured",
}


def rows(lines: Sequence[str]) -> list[tuple[bool, tuple[str, ...]]]:
    """Cells of each row, and whether it is the head of a table."""
    pairs = zip(["", *lines], lines, strict=False)
    return [
        (not before.startswith("|"), tuple(cell.strip() for cell in line.strip("|").split("|")))
        for before, line in pairs
        if line.startswith("|")
    ]


def compared(made: Made, printed: str) -> None:
    """Fails with the rows and heads that were printed and are not in the page."""
    first = {*(made.rows or made.words)} if not made.whole else set()
    now = [cells for head, cells in rows(printed.splitlines()) if head or made.whole or cells[0] in first]
    assert len(now) > 1 and {cells[0] for cells in now} >= first
    known = [cells for _, cells in rows(table((DOCS / made.page).read_text(encoding="utf-8"), made.block))]
    other = []
    for cells in now:
        steady = cells[: len(cells) - made.seconds]
        if steady not in [row[: len(steady)] for row in known]:
            other.append(" | ".join(steady))
    assert not other, (
        f"docs/{made.page}, {made.block}: the command gives other rows today, so the table is to be made anew"
    )


def benchmark(block: str) -> ModuleType:
    """What writes the block."""
    name = block.split(" ")[0]
    return importlib.import_module(f"benchmarks.{name}" + ".__main__" * (name == "sage"))


def made_anew(made: Made, out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the benchmark prints; its records go to a folder of this test."""
    keeps = made.block.split(" ")[0] in ("matrices", "packed", "row_order", "bounds", "partial_rows")
    assert not benchmark(made.block).main([*made.words, *(["--out", str(out)] if keeps else [])])
    return capsys.readouterr().out


@pytest.mark.parametrize("made", QUICK, ids=str)
def test_rows_of_models(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(made, made_anew(made, tmp_path, capsys))


@pytest.mark.slow
@pytest.mark.parametrize("made", SMALL, ids=str)
def test_rows_of_many_runs_and_of_small_hardware(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compared(made, made_anew(made, tmp_path, capsys))


@long_run()
@pytest.mark.parametrize("made", LARGE, ids=str)
def test_rows_of_large_hardware(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(made, made_anew(made, tmp_path, capsys))


def blocks() -> list[tuple[str, str, str]]:
    """Page, name and command of all blocks that `PrintedTable` writes: the name begins with the benchmark's."""
    pattern = r"<!-- ((\w+)(?: .+?)?): (python -m benchmarks\.\2 --docs .*?) -->"
    texts = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    return [(page, name, command) for page, text in texts.items() for name, _, command in re.findall(pattern, text)]


def test_every_block_is_compared_or_says_why_not() -> None:
    tested = {(made.page, made.block) for made in (*QUICK, *SMALL, *LARGE)}
    found = {(page, name) for page, name, _ in blocks()}
    assert tested <= found and len(found) > 40
    assert {name for _, name in found - tested} == set(DEAR)


class Begun(Exception):
    """A command has come to its table."""


@pytest.mark.parametrize(("page", "name", "command"), blocks(), ids=[name for _, name, _ in blocks()])
def test_a_block_is_written_by_the_command_that_it_names(
    page: str, name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = PrintedTable.__init__

    def begun(printed: PrintedTable, *given: Any) -> None:
        begin(printed, *given)
        raise Begun((printed.name, printed.command, str(printed.page)))

    monkeypatch.setattr(PrintedTable, "__init__", begun)
    monkeypatch.chdir(DOCS.parent)
    file = tmp_path / "file"
    file.touch()
    words = [AIRFOIL if word == OPERANDS else word for word in shlex.split(command)[3:]]
    words += {"cells": ["--liberty", str(file)], "builds": ["--liberty", str(file)], "area": [str(file)]}.get(name, [])
    words += ["--liberty", str(file)] if name.startswith("stationary") and "cycles" not in name else []
    with pytest.raises(Begun) as found:
        benchmark(name).main(words)
    assert found.value.args == ((name, command, f"docs/{page}"),)


def by_hand(text: str) -> set[str]:
    """Headings above tables with two rows and more that have a number in a cell of its own, and no markers around."""
    found, heading, number = set(), "", 0
    text = re.sub(
        r"(?s)<!-- (?:(?P<name>[^\n]+?): [^\n]* -->.*?<!-- end of (?P=name)|(?P<what>\w+): begin -->.*?<!-- (?P=what): end) -->",
        "",
        text,
    )
    for line in text.splitlines():
        heading = line.lstrip("# ") if re.match("#+ ", line) else heading
        number = (
            number + bool(re.search(r"\| *[-+~]?\d[\d,.]* *(%|\||ns |s |MHz)", line)) if line.startswith("|") else 0
        )
        if number > 1:
            found.add(heading)
    return found


def test_every_table_of_numbers_stands_between_markers_or_says_why_not() -> None:
    """What was, in history.md, is of no command of today."""
    pages = [path for path in DOCS.glob("*.md") if path.name != "history.md"]
    found = {(path.name, heading) for path in pages for heading in by_hand(path.read_text(encoding="utf-8"))}
    assert found == set(BY_HAND)
