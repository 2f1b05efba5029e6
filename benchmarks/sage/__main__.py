"""MINT's table III and figures 10c, 12, 13 and 14 by our cost model, beside what the paper says.

    python -m benchmarks.sage table3|without|figure10c|figure12|figure13|figure14|digits|search [--plot FILE.svg]
        [--docs PAGE] [OPERAND...]

``without``: how many rows of table III agree where one assumption is another. ``digits``: figure 14 with the layers of a network
that is trained and pruned here, which needs scikit-learn and safetensors. ``search``:
milliseconds of the search beside reading each OPERAND. ``--plot``: figures 13 and 14 as curves. The output leaves as it is
computed, dense, as in the paper's walkthrough.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sage import digits as network
from benchmarks.sage.workloads import ACTIVATIONS, LAYERS, MATRICES, PRUNINGS, Choice, Published, layer, published
from benchmarks.table_markers import PrintedTable, benchmark_parser
from sw.report.curves import Curve, Panel, curves
from sw.sage.accelerators import ACCELERATORS
from sw.sage.array import Array
from sw.sage.choice import Candidate, best, ranked
from sw.sage.constants import PROCESSORS, Constants
from sw.sage.conversion import hardware_conversion, software_conversion
from sw.sage.workload import Workload, counted, estimated, random_operand

OUTPUT = {"O": "dense"}
NEAR = 1.02
#: Figure 13: geometric means in percent over this work, and the largest.
PAPER = {
    "tpu": (369, 9860),
    "eie": (63, 99),
    "sigma": (20, 79),
    "extensor": (15, 44),
    "nvdla": (143, 7338),
}
SHOWN = (*PAPER, "flexible")
BROKEN_DOWN = ("journal", "speech2", "m3plates")
#: What is assumed, and what is put in its place.
OTHERS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, str]]] = {
    "as assumed": ({}, {}, OUTPUT),
    "ranges of k are found in compressed rows": ({"row_search": True}, {}, OUTPUT),
    "products with a 0 cost as much as others": ({"gated": False}, {}, OUTPUT),
    "a comparator for each pair of ids": ({"comparators": 1024}, {}, OUTPUT),
    "and comparisons without energy": ({"comparators": 1024}, {"compare_bit": 1e-9}, OUTPUT),
    "half of the comparators": ({"comparators": 4}, {}, OUTPUT),
    "PEs of 256 bytes": ({"pe_bytes": 256}, {}, OUTPUT),
    "PEs of 128 bytes, as in figure 7": ({"pe_bytes": 128}, {}, OUTPUT),
    "PEs of 1 KiB": ({"pe_bytes": 1024}, {}, OUTPUT),
    "memory of 256 bits a cycle": ({}, {"memory_bits": 256}, OUTPUT),
    "memory of 128 bits a cycle": ({}, {"memory_bits": 128}, OUTPUT),
    "memory of twice the energy": ({}, {"dram_bit": 40}, OUTPUT),
    "the output in any format": ({}, {}, {}),
}


def formats_of(candidate: Candidate) -> Choice:
    """As table III has them."""
    return (candidate.mcf["A"], candidate.mcf["B"], candidate.acf["A"], candidate.acf["B"])


def against(
    row: Published, kernel: str, array: Array, constants: Constants, given: Mapping[str, str]
) -> tuple[Candidate, Candidate]:
    """The best candidate, and the best of those with the paper's formats."""
    found = ranked(row.workload(kernel), ACCELERATORS["flexible"], array=array, constants=constants, mcf=given)
    return found[0], next(each for each in found if formats_of(each) == row.choices[kernel])


def table3() -> None:
    """Each row and kernel: our choice, the paper's, EDP of the paper's over ours, and both splits."""
    print("| tensor | kernel | ours: MCF | ACF | paper: MCF | ACF | EDP, paper's over ours | agree |")
    print("|---" * 5 + "|---|---:|---|")
    agree = {"spgemm": 0, "spmm": 0, "spttm": 0, "mttkrp": 0}
    parted = []
    for row, kernel in published():
        ours, theirs = against(row, kernel, Array(), Constants(), OUTPUT)
        ratio = theirs.edp / ours.edp
        near = formats_of(ours) == row.choices[kernel] or ratio <= NEAR
        agree[kernel] += near
        cells = [f"{a} {b}" for choice in (formats_of(ours), row.choices[kernel]) for a, b in (choice[:2], choice[2:])]
        print(f"| {row.name} | {kernel} | {' | '.join(cells)} | {ratio:.3f} | {'yes' if near else '**no**'} |")
        if not near:
            parted.append((row.name, kernel, ours, theirs))
    print(
        f"\nSame or within 2 %: {agree['spgemm'] + agree['spmm']} of {2 * len(MATRICES)} with matrices, "
        f"{agree['spttm'] + agree['mttkrp']} of 6 with tensors.\n"
    )
    print("| tensor | kernel | choice | transfer | conversion | compute | cycles | uJ |")
    print("|---|---|---" + "|---:" * 5 + "|")
    for name, kernel, *both in parted:
        for who, each in zip(("ours", "paper's"), both, strict=True):
            parts = " | ".join(f"{each.cycles[part]:,.0f}" for part in ("transfer", "conversion", "compute", "total"))
            print(f"| {name} | {kernel} | {who} | {parts} | {each.energy_pJ['total'] / 1e6:,.0f} |")


def without() -> None:
    """How many of the 20 and of the 6 agree, with one thing changed."""
    print("| changed | of 20 | of 6 | other choices than the paper's, by more than 2 % |")
    print("|---|---:|---:|---|")
    for what, (of_array, of_constants, given) in OTHERS.items():
        found = {2: 0, 3: 0}
        parted = []
        for row, kernel in published():
            ours, theirs = against(row, kernel, Array(**of_array), Constants(**of_constants), given)
            near = theirs.edp <= NEAR * ours.edp
            found[len(row.shape)] += near
            if not near:
                parted.append(f"{row.name} {kernel} ({theirs.edp / ours.edp:.2f})")
        print(f"| {what} | {found[2]} | {found[3]} | {', '.join(parted)} |")


def figure10c() -> None:
    """Energy of conversions by MINT's blocks and by processors."""
    print("| matrix | conversion | MINT, uJ | with memory, uJ | cpu, uJ | gpu, uJ | cpu over MINT | with memory |")
    print("|---|---" + "|---:" * 6 + "|")
    constants, ratios = Constants(), []
    for row in MATRICES:
        operand = row.workload("spmm").a
        for source, target in (("csr", "csc"), ("dense", "csr")):
            mint = hardware_conversion(
                operand, source, target, "fp32", constants, memory=source, dense_by_row=True
            ).energy
            moved = sum(operand.bits(each, "fp32") for each in (source, target)) * constants.dram_bit
            hosts = [software_conversion(operand, source, target, "fp32", each).energy for each in PROCESSORS]
            ratios.append((hosts[0] / mint, hosts[0] / (mint + moved)))
            cells = " | ".join(f"{each / 1e6:,.4g}" for each in (mint, mint + moved, *hosts))
            print(f"| {row.name} | {source} to {target} | {cells} | {ratios[-1][0]:,.0f} | {ratios[-1][1]:,.0f} |")
    means = " | ".join(f"{mean:,.0f}" for mean in np.exp(np.log(ratios).mean(axis=0)))
    print(f"| **geometric mean** (paper: about 1000) | | | | | | {means} |")


def chosen(name: str, work: Workload, given: Mapping[str, str] = OUTPUT) -> Candidate:
    """The best of a class, with formats in memory that are given."""
    found = best(work, ACCELERATORS[name], mcf=given)
    assert found is not None
    return found


def figure12() -> None:
    """Cycles and energy by their parts, each class on three matrices."""
    rows = {row.name: row for row in MATRICES}
    print(
        "| matrix | class | MCF | ACF | transfer | conversion | compute | cycles | dram, uJ | buffer | compute "
        "| EDP over flexible |"
    )
    print("|---|---|---|---" + "|---:" * 8 + "|")
    for name in BROKEN_DOWN:
        work = rows[name].workload("spgemm")
        base = chosen("flexible", work).edp
        for kind in SHOWN:
            each = chosen(kind, work)
            cells = [f"{each.cycles[part]:,.0f}" for part in ("transfer", "conversion", "compute", "total")]
            cells += [f"{each.energy_pJ[part] / 1e6:,.1f}" for part in ("dram", "buffer", "compute")]
            a, b, c, d = formats_of(each)
            print(f"| {name} | {kind} | {a} {b} | {c} {d} | {' | '.join(cells)} | {each.edp / base:,.2f} |")


def over_flexible(works: list[Workload], given: Mapping[str, str] = OUTPUT) -> dict[str, list[float]]:
    """EDP of each class over the flexible one's, by workload; ``given``: of the latter."""
    bases = [chosen("flexible", work, given).edp for work in works]
    return {kind: [chosen(kind, work).edp / base for work, base in zip(works, bases, strict=True)] for kind in PAPER}


def percent(ratios: list[float]) -> float:
    """The geometric mean over the flexible class, in percent above it."""
    return 100 * (float(np.exp(np.log(ratios).mean())) - 1)


def figure13() -> list[Panel]:
    """EDP of each class over the flexible one's."""
    rows = [(row, kernel) for row, kernel in published() if len(row.shape) == 2]
    found = over_flexible([row.workload(kernel) for row, kernel in rows])
    print(f"| matrix | kernel | {' | '.join(PAPER)} |\n|---|---{'|---:' * len(PAPER)}|")
    for n, (row, kernel) in enumerate(rows):
        print(f"| {row.name} | {kernel} | {' | '.join(f'{found[kind][n]:,.2f}' for kind in PAPER)} |")
    for what, cells in (
        ("**more than flexible, geometric mean**", [f"{percent(found[kind]):,.0f} %" for kind in PAPER]),
        ("the paper", [f"{mean} %" for mean, _ in PAPER.values()]),
        ("the most", [f"{100 * (max(found[kind]) - 1):,.0f} %" for kind in PAPER]),
        ("the paper", [f"{most} %" for _, most in PAPER.values()]),
    ):
        print(f"| {what} | | {' | '.join(cells)} |")
    energy = [chosen("flexible", row.workload(kernel)).energy_pJ for row, kernel in rows]
    share = sum(each["conversion"] for each in energy) / sum(each["total"] for each in energy)
    print(f"\nConversion is {100 * share:.4f} % of the energy of flexible (paper: 0.023 %).")
    panels = []
    for kernel in ("spgemm", "spmm"):
        lines = []
        for kind in PAPER:
            points = [
                (100 * row.nnz / (row.shape[0] * row.shape[1]), found[kind][n])
                for n, (row, each) in enumerate(rows)
                if each == kernel
            ]
            lines.append(Curve(name=kind, points=sorted(points)))
        panels.append(
            Panel(
                title=f"{kernel}, EDP over flexible",
                x_name="density, %",
                y_name="EDP",
                curves=lines,
                y_range=(0.9, 1e3),
            )
        )
    return panels


def figure14() -> list[Panel]:
    """The eight layers: EDP of flexible by pruning, and the other classes over it."""
    print(
        f"| layer | {' | '.join(f'{name}: ACF | J cycles' for name in PRUNINGS)} |\n|---{'|---|---:' * len(PRUNINGS)}|"
    )
    for number in range(len(LAYERS)):
        cells = []
        for name in PRUNINGS:
            each = chosen("flexible", layer(number, name))
            cells.append(f"{each.acf['A']} {each.acf['B']} | {each.edp / 1e12:,.4g}")
        print(f"| {number + 1} | {' | '.join(cells)} |")
    numbers = range(len(LAYERS))
    found = {kind: np.zeros(len(LAYERS)) for kind in PAPER}
    for name in PRUNINGS:
        for kind, ratios in over_flexible([layer(number, name) for number in numbers]).items():
            found[kind] += np.array(ratios) / len(PRUNINGS)
    print(f"\n| EDP over flexible, mean of the prunings, layer | {' | '.join(PAPER)} |\n|---{'|---:' * len(PAPER)}|")
    for number in numbers:
        print(f"| {number + 1} | {' | '.join(f'{found[kind][number]:.2f}' for kind in PAPER)} |")
    means = {kind: percent(list(ratios)) for kind, ratios in found.items()}
    print(f"| **more than flexible** | {' | '.join(f'{mean:.0f} %' for mean in means.values())} |")
    after = [layer(number, name, outputs=ACTIVATIONS) for number in numbers for name in PRUNINGS]
    compressed = {kind: percent(ratios) for kind, ratios in over_flexible(after, {}).items()}
    print(f"| the same, outputs as sparse | {' | '.join(f'{mean:.0f} %' for mean in compressed.values())} |")
    found_means = [f"{np.mean(list(each.values())):.0f} %" for each in (means, compressed)]
    print(f"\nMeans of the classes: {' and '.join(found_means)} (paper: about 70 %).")
    lines = [
        Curve(name=kind, points=[(float(number + 1), float(found[kind][number])) for number in numbers])
        for kind in PAPER
    ]
    return [Panel(title="EDP over flexible, by layer", x_name="layer", y_name="EDP", curves=lines, y_range=(0.9, 1e2))]


def digits() -> list[str]:
    """Figure 14 with a network that is trained here: sparsities as they are counted, choices, the other classes over flexible."""
    plain = network.trained()
    works, header = {}, []
    for name in network.PRUNED:
        fewer = network.pruned(plain, name)
        with tempfile.TemporaryDirectory() as folder:
            works[name] = [each.workload() for each in network.operands(fewer, Path(folder))]
        header.append(f"{name} ({network.accuracy(fewer):.1f} % right): zeros of A, B | ACF | mJ cycles")
    lines = [f"| layer | places of A, B | {' | '.join(header)} |", f"|---|---{'|---|---|---:' * len(works)}|"]
    for number, layer_of in enumerate(network.LAYERS):
        cells = []
        for own in works.values():
            work = own[number]
            each = chosen("flexible", dense_output(work))
            zeros = ", ".join(f"{100 - 100 * side.nnz / side.places:.1f} %" for side in (work.a, work.b))
            cells.append(f"{zeros} | {each.acf['A']} {each.acf['B']} | {each.edp / 1e9:,.4g}")
        places = f"{work.a.places:,}, {work.b.places:,}"
        lines.append(f"| {layer_of.name} | {places} | {' | '.join(cells)} |")
    dense = [over_flexible([dense_output(work) for work in own]) for own in works.values()]
    found = {kind: np.mean([each[kind] for each in dense], axis=0) for kind in PAPER}
    lines += ["", f"| EDP over flexible, mean of the prunings | {' | '.join(PAPER)} | all |"]
    lines.append(f"|---{'|---:' * (len(PAPER) + 1)}|")
    for number, layer_of in enumerate(network.LAYERS):
        lines.append(f"| {layer_of.name} | {' | '.join(f'{found[kind][number]:.2f}' for kind in PAPER)} | |")
    means = [percent(list(ratios)) for ratios in found.values()]
    sparse = over_flexible([work for own in works.values() for work in own], {})
    for what, row in (
        ("**more than flexible**", means),
        ("the same, outputs as sparse", [percent(ratios) for ratios in sparse.values()]),
    ):
        lines.append(f"| {what} | {' | '.join(f'{mean:.0f} %' for mean in (*row, float(np.mean(row))))} |")
    return lines


def dense_output(work: Workload) -> Workload:
    """The same with outputs of which none is 0."""
    return replace(work, o=random_operand(work.o.shape, 1.0, work.o.run_bits))


def search(operands: list[str]) -> None:
    """Milliseconds of reading, of the search by estimates, and of counting and ranking all."""
    from sw.formats.canonical import canonical
    from sw.operands import load

    flexible = ACCELERATORS["flexible"]
    print(
        "| operand | nonzeros | reading, ms | search, ms | counting and ranking, ms | EDP of its choice over the best |"
    )
    print("|---" + "|---:" * 5 + "|")
    for warm, name in [(False, operands[0]), *((True, name) for name in operands)]:
        marks = [time.perf_counter()]
        matrix = load(name).matrix
        marks.append(time.perf_counter())
        matrix = canonical(matrix)
        other = matrix if matrix.shape[0] == matrix.shape[1] else matrix.T.tocsr()
        marks.append(time.perf_counter())
        found = best(estimated("spgemm", matrix, other), flexible)
        marks.append(time.perf_counter())
        everything = ranked(counted("spgemm", matrix, other), flexible)
        marks.append(time.perf_counter())
        assert found is not None
        same = next(each for each in everything if (each.mcf, each.acf) == (found.mcf, found.acf))
        reading, _, searching, ranking = (1000 * each for each in np.diff(marks))
        if warm:  # the first one also compiles
            times = f"{reading:,.0f} | {searching:,.0f} | {ranking:,.0f}"
            print(f"| {Path(name).name} | {matrix.nnz:,} | {times} | {same.edp / everything[0].edp:.3f} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints one table."""
    parser = benchmark_parser(__file__, __doc__)
    parts: dict[str, Callable[[], Any]] = {
        "table3": table3,
        "without": without,
        "figure10c": figure10c,
        "figure12": figure12,
        "figure13": figure13,
        "figure14": figure14,
        "digits": lambda: print("\n".join(digits())),
    }
    parser.add_argument("part", choices=[*parts, "search"])
    parser.add_argument("--plot", type=Path, help="an SVG file to write, of figures 13 and 14")
    parser.add_argument("operands", nargs="*", metavar="OPERAND")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    with printed.printing():
        panels = search(options.operands) if options.part == "search" else parts[options.part]()
    printed.write()
    if options.plot is not None:
        if panels is None:
            print(f"--plot: {options.part} has no plot: must be of figure13 or figure14", file=sys.stderr)
            return 2
        options.plot.write_text(curves(panels), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
