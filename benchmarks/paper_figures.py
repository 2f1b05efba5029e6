"""A row for each figure and table of the five papers: the paper's number, ours out of the manual's tables, their ratio.

``python -m benchmarks.paper_figures --docs docs/paper_figures.md`` writes the page's tables. Nothing is measured here: each
number is read from the table that its own command wrote. Where there is no table, words say what there is.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table_markers import stamp, table, write_table

__all__ = ["FIGURES", "Cell", "Figure", "cell", "rows"]

DOCS = Path(__file__).parents[1] / "docs"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Cell:
    """A cell of the manual: the first table with such a row and column, between the markers of a name or else below a heading.

    row: its first cells, joined by ``/``. column: its header.
    """

    page: str
    place: str
    row: str
    column: str


@dataclass(frozen=True)
class Figure:
    """A number of a figure. paper: as printed there. here: where ours stands, or in words what there is instead."""

    number: str
    what: str
    paper: str
    here: Cell | str
    sentence: str


def papers(place: str, row: str, column: str) -> Cell:
    return Cell("papers.md", place, row, column)


def sage(place: str, row: str, column: str) -> Cell:
    return Cell("sage.md", place, row, column)


def analysis(row: str, column: str) -> Cell:
    return Cell("analysis.md", "Designs that are shipped", row, column)


SWIFTILES, EXTENSOR, MEAN = "swiftiles --nonzeros 8192", "extensor --fill 4", "**mean**"
LARGE = "over sized, 22 of more than 4 buffers"

FIGURES: dict[str, tuple[Figure, ...]] = {
    "Tailors": (
        Figure(
            "1",
            "largest tile of 51.4 million points, nonzeros over points",
            "1,627",
            papers("swiftiles --figure1", "mdual", "points over the largest"),
            "The paper's operand is another one; the same three orders of magnitude.",
        ),
        Figure("5", "the buffer's walkthrough", "11 steps", "11 steps, a test", "Golden model and hardware follow it."),
        Figure(
            "7",
            "OB over N, cycles",
            "52.7",
            papers(EXTENSOR, "**mean of 18**", "OB / N, cycles"),
            "N skips empty tiles here; without that it is 18 (`--all-tiles`).",
        ),
        Figure(
            "7",
            "OB over P, cycles",
            "2.3",
            papers(EXTENSOR, "**mean of 18**", "OB / P, cycles"),
            "Z is most of the traffic and is the same in both; reads alone gain more.",
        ),
        Figure(
            "8",
            "OB over P, energy",
            "2.5",
            papers(EXTENSOR, "**mean of 18**", "OB / P, energy"),
            "Falls short as the cycles do.",
        ),
        Figure(
            "9a",
            "streaming over reads of A and B",
            "26%",
            papers("extensor --fill 4, reuse", "**mean of 18**", "streaming"),
            "PEs hold more than the global buffer, so that overbooked tiles are passed over seldom.",
        ),
        Figure(
            "9b",
            "reuse falls with what is bumped",
            "correlated",
            papers("extensor --fill 4, reuse", "**correlation over 18, elements**", "streaming"),
            "The same dependence.",
        ),
        Figure(
            "10",
            "OB over P at y = 22 %, cycles",
            "the most",
            papers("extensor --fill 4, by y", "OB / P, cycles", "22%"),
            "Larger y wins on here, with small PE buffers as well.",
        ),
        Figure(
            "11",
            "overbooking rate before scaling, buffer of 8,192",
            "19.9%",
            papers(SWIFTILES, "**mean of 8**", "initial estimate"),
            "Squares, other operands.",
        ),
        Figure(
            "11",
            "overbooking rate after scaling",
            "10.6%",
            papers(SWIFTILES, "**mean of 8**", "after scaling"),
            "The target is met.",
        ),
        Figure(
            "12",
            "mean error at k = 10, points",
            "5.8",
            papers(SWIFTILES, "mean absolute error, points", "10"),
            "Other operands.",
        ),
        Figure(
            "13",
            "tiles that fit at the predicted target",
            "90%",
            papers("swiftiles --figure13", "target, predicted", "100%"),
            "The same curve on another graph.",
        ),
    ),
    "HYTE": (
        Figure(
            "1a",
            "whole tiles over the smallest",
            "differs by operand",
            papers("HYTE, sizes", MEAN, "whole"),
            "Whole is best for all four operands.",
        ),
        Figure(
            "1b",
            "long T_j over squares",
            "differs by operand",
            papers("HYTE, shapes", MEAN, "4"),
            "Shapes matter by a third.",
        ),
        Figure(
            "1c",
            "jki over ijk",
            "differs by operand",
            papers("HYTE, orders", MEAN, "jki"),
            "C moves alike in all orders.",
        ),
        Figure(
            "3", "nonzeros by tile", "distributions", "not made", "Figure 1 of Tailors and figure 13 show the same."
        ),
        Figure(
            "6",
            "over Tailors as its simulator builds it",
            "7.4",
            papers("HYTE, policies", MEAN, "over even_columns"),
            "Operands are at most five times the buffer.",
        ),
        Figure(
            "6",
            "over DRT as its simulator builds it",
            "3.9",
            papers("HYTE, policies", MEAN, "over even_squares"),
            "Agrees.",
        ),
        Figure(
            "6",
            "over HARP as its simulator builds it",
            "5.2",
            papers("HYTE, policies", MEAN, "over even_rows"),
            "B is used less: denser operands with the simulator's memory give up to 5.6.",
        ),
        Figure(
            "7",
            "bytes of Tailors as its simulator builds it, over hyte's",
            "more",
            papers("HYTE, policies", "even_columns", "all"),
            "C is most of what it moves here, A in the paper.",
        ),
        Figure(
            "8",
            "what dynamic tuning adds",
            "1.15",
            papers("HYTE, policies", MEAN, "over static"),
            "It wins on mdual and nothing on the others.",
        ),
        Figure(
            "9",
            "energy over DRT's",
            "0.19",
            papers("HYTE, energy", MEAN, "over even_squares"),
            "Memory is a smaller share here.",
        ),
        Figure(
            "10",
            "over Tailors with 8 PEs",
            "27.4",
            papers("HYTE, chips", "**hyte over even_columns**", "8"),
            "Falls with the chip, as in the paper.",
        ),
        Figure(
            "11",
            "over Tailors with a quarter of the buffer",
            "24.9",
            papers("HYTE, buffers", "**hyte over even_columns**", "0.25"),
            "Falls with the buffer, as in the paper.",
        ),
        Figure(
            "12",
            "F^T x F, Tailors over HYTE",
            "3.23",
            papers("kernels", "**F^T x F, geometric mean**", "swiftiles"),
            "Other matrices.",
        ),
        Figure(
            "8",
            "what order and shares, tile size and shape add to DRT",
            "3.36",
            papers("HYTE, steps", MEAN, "+ shape"),
            "Size is all that counts where whole tiles are best.",
        ),
        Figure(
            "13",
            "inner products, over the best baseline",
            "2.7",
            papers("HYTE, inner", MEAN, "over drt"),
            "One band.",
        ),
        Figure(
            "13",
            "outer products, over the best baseline",
            "1.7",
            papers("HYTE, outer", MEAN, "over drt"),
            "The same band.",
        ),
        Figure(
            "14",
            "offline share of the time",
            "16.2%",
            papers("HYTE, policies", MEAN, "offline share"),
            "Runs take milliseconds; a smaller sample saves little.",
        ),
        Figure(
            "table 3", "area by part", "shares", "benchmarks, area", "`make bench-area` sets both beside each other."
        ),
    ),
    "D2T2": (
        Figure(
            "5a",
            "matrices predicted within 15 % at RF 1",
            "most",
            Cell("tilings.md", "D2T2, errors", "A x A^T", "RF 1: within 15 %"),
            "Outliers are underestimated, as in the paper.",
        ),
        Figure("5b-d", "single outliers", "curves", "not made", "Their matrices are not at hand."),
        Figure(
            "6a",
            "speedup follows traffic",
            "correlated",
            "1.000",
            "No operand is bound by multipliers, so that time is traffic.",
        ),
        Figure(
            "6b",
            "prescient over d2t2, ijk",
            "4.85",
            papers("D2T2, 6b", "**over d2t2**", "prescient"),
            "C weighs more as it is counted here; each tile of C counted once gives 2.96.",
        ),
        Figure(
            "6b",
            "Tailors over d2t2, ijk",
            "2.54",
            papers("D2T2, 6b", "**over d2t2**", "tailors"),
            "A bound: nothing streams twice.",
        ),
        Figure(
            "6c",
            "conservative over d2t2, ikj",
            "4.17",
            papers("D2T2, 6c", LARGE, "conservative"),
            "Operands that fit nearly whole left out.",
        ),
        Figure(
            "6c",
            "prescient over d2t2, ikj",
            "1.83",
            papers("D2T2, 6c", LARGE, "prescient"),
            "The same.",
        ),
        Figure(
            "6c",
            "DRT over d2t2, ikj",
            "1.13",
            papers("D2T2, 6c", LARGE, "drt"),
            "The same.",
        ),
        Figure(
            "9",
            "traffic without Corrs over with them",
            "0.69 to 1.10",
            papers("D2T2, 8", "least, most", "without Corrs"),
            "Corrs cost where a shape is chosen before it grows.",
        ),
        Figure(
            "table 4",
            "TTM over conservative",
            "4.82",
            papers("D2T2: TTM and MTTKRP", "**geometric mean**", "d2t2"),
            "Other tensors of the same shapes.",
        ),
        Figure(
            "table 5",
            "prescient over d2t2, Opal",
            "1.85",
            papers("D2T2, table 5", "**mean**, 6 of the paper", "over sized"),
            "Traffic stands for time.",
        ),
    ),
    "MINT": (
        Figure(
            "4", "bits by density", "curves", "curves", "`make bench-formats`; the four best formats are the paper's."
        ),
        Figure("5, 11", "GPU", "measured", "not made", "They measure a GPU."),
        Figure("6", "cycles to send A", "8, 3, 4", "8, 3, 4", "A test of the hardware."),
        Figure("7b", "area of the extended PE", "10%", "55%", "At eight MACs of 32 bits; see the block's page."),
        Figure("8", "four conversions", "walkthroughs", "the same", "Tests with the intermediate values."),
        Figure(
            "10c",
            "energy of a CPU's conversions over MINT's",
            "1000",
            sage("sage figure10c", "**geometric mean** (paper: about 1000)", "cpu over MINT"),
            "Three orders of magnitude.",
        ),
        *(
            Figure(
                "13",
                f"EDP of {kind} over flexible",
                paper,
                sage("Figure 13", "**more than flexible, geometric mean**", kind),
                "The order of the classes is the paper's.",
            )
            for kind, paper in (
                ("tpu", "369 %"),
                ("eie", "63 %"),
                ("sigma", "20 %"),
                ("extensor", "15 %"),
                ("nvdla", "143 %"),
            )
        ),
        Figure(
            "14",
            "EDP of the classes over flexible, pruned layers",
            "70 %",
            sage("Figure 14", "the same, outputs as sparse", "sigma"),
            "Of one class, with outputs as sparse as activations.",
        ),
        Figure(
            "table III",
            "same choice or within 2 %, of 20 and of 6",
            "20 and 6",
            sage("Table III", "as assumed", "of 20"),
            "Three choices of a dense or a compressed A differ; the page takes their cause away.",
        ),
    ),
    "Sparseloop": (
        Figure("1", "gating and skipping by density", "curves", "a trend", "`sparse_product` in place of two designs."),
        Figure("6, 10, table 2", "examples", "examples", "tests", "Counted one by one."),
        Figure("11", "SCNN", "within 1%", "not made", "The inputs are not published."),
        Figure(
            "12",
            "cycles over the true ones, layer 7, uniform",
            "0.935",
            analysis("layer 7, channels alike", "uniform"),
            "Depends on how busy channels meet.",
        ),
        Figure(
            "13",
            "DSTC's latency at 0.5 x 0.4",
            "0.29",
            analysis("0.5/0.4", "here"),
            "All eight bars agree to two decimals.",
        ),
        Figure(
            "15",
            "STC, 2:4, cycles",
            "0.500",
            analysis("STC/0.50", "here"),
            "One product in place of four layers.",
        ),
        Figure("16", "bandwidth for all lanes", "2, 3, 4 times", "2, 3, 4 times", "Agrees."),
        Figure(
            "17",
            "dataflows and SAFs",
            "curves",
            "a trend",
            "Both together are not best in between here; the cause is told.",
        ),
        Figure(
            "table 5",
            "computes a host cycle, SCNN, ResNet50",
            "1,100",
            Cell("analysis.md", "Speed", "scnn/resnet50", "batch 1, among many"),
            "Among many mappings; a single call is slower.",
        ),
        Figure(
            "table 7",
            "compression of DRAM traffic, conv3",
            "1.700",
            analysis("conv3", "here"),
            "With the artifact's inputs 1.699.",
        ),
        Figure("6.3.4", "energy that gating saves", "43 %", "42.3 %", "With the artifact's inputs."),
    ),
}


def _lines(text: str, place: str) -> list[str]:
    """Between the markers of that name, else below the first heading that begins so up to the next one as high; all without a
    place."""
    if not place:
        return text.splitlines()
    if f"<!-- {place}: " in text:
        return table(text, place)
    lines = text.splitlines()
    levels = [len(line) - len(line.lstrip("#")) if re.match(r"#+ ", line) else 0 for line in lines]
    for begin, (line, level) in enumerate(zip(lines, levels, strict=True)):
        if level and line.lstrip("# ").startswith(place):
            end = next((n for n in range(begin + 1, len(lines)) if 0 < levels[n] <= level), len(lines))
            return lines[begin:end]
    raise ValueError(f"there are no markers and no heading {place}")


def cell(where: Cell, docs: Path = DOCS) -> str:
    """What stands there. Raises ValueError that names what is missing."""
    header: list[str] = []
    for line in _lines((docs / where.page).read_text(encoding="utf-8"), where.place):
        row = [part.strip() for part in line.strip().strip("|").split("|")] if line.startswith("|") else []
        header = header if row and header else row
        if where.row in (row[:1] + ["/".join(row[:2])]) and where.column in header:
            return row[header.index(where.column)]
    raise ValueError(f"docs/{where.page}, {where.place}: there is no row {where.row} with {where.column}")


def _ratio(paper: str, here: str) -> str:
    if not re.fullmatch(rf"{NUMBER.pattern} ?%?", paper) or not re.fullmatch(rf"\**{NUMBER.pattern} ?%?\**", here):
        return ""
    ours, theirs = (float(NUMBER.findall(text)[0].replace(",", "")) for text in (here, paper))
    return f"{ours / theirs:.2f}"


def rows(name: str, docs: Path = DOCS) -> list[str]:
    """The table of a paper."""
    lines = ["| figure | what | paper | here | ratio | |", "| --- | --- | ---: | ---: | ---: | --- |"]
    for figure in FIGURES[name]:
        here = figure.here if isinstance(figure.here, str) else cell(figure.here, docs)
        number = figure.number if figure.number.startswith("table") else f"figure {figure.number}"
        number = f"section {figure.number}" if figure.number.count(".") == 2 else number
        lines.append(
            f"| {number} | {figure.what} | {figure.paper} | {here} | {_ratio(figure.paper, here)} | {figure.sentence} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--docs", type=Path, metavar="PAGE", help="the page whose tables are written; printed without it"
    )
    options = parser.parse_args()
    for name in FIGURES:
        lines = rows(name)
        if options.docs is None:
            print(f"\n{name}\n", *lines, sep="\n")
        else:
            write_table(
                options.docs, f"figures of {name}", ["", *lines, "", stamp("python -m benchmarks.paper_figures")]
            )


if __name__ == "__main__":
    main()
