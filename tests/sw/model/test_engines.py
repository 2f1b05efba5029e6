"""The benchmark of both engines: its table, and its figure over density, on small operands."""

import pytest

from benchmarks.engines import SHAPES, both, densities, density_plot, density_table, main, pairs
from sw.cli.evaluate import Bench, Tiling, evaluate

DATAFLOWS = ["gustavson", "weight_stationary"]


def test_pairs():
    """Rows are what a comparison finds; MACs by cycle and LUT follow from them."""
    operands = ["nm:24:24:2:4,dense:24:9", "uniform:20:20:0.1"]
    lines = pairs(both("tiny"), operands, [1000, 500]).splitlines()
    assert len(lines) == 6
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert len({len(row) for row in cells}) == 1 and [row[2] for row in cells[2:]] == [
        f"`{name}`" for name in DATAFLOWS * 2
    ]
    bench = Bench("nm:24:24:2:4", "dense:24:9", transpose_a=False, transpose_b=False, as_stored=False)
    for design, luts, row in zip(both("tiny"), (1000, 500), cells[2:4], strict=True):
        tiling = Tiling(name="auto", policy="auto")
        record = evaluate(bench, design, tiling, "model", seed=0, command="").record
        assert row[3] == f"{record['cycles']:,}" and row[6] == f"{record['dram_bytes']['total']:,}"
        assert float(row[5]) == pytest.approx(24 * 12 * 9 / record["cycles"], abs=0.005)
        assert float(row[8]) == pytest.approx(1e6 * 24 * 12 * 9 / record["cycles"] / luts, abs=0.005)


def test_densities():
    """The array's cycles do not fall with empty rows, Gustavson's do; a dense A is where they meet."""
    rows = densities(both("edge"), 48, [0.01, 1.0, 100.0])
    assert [(row["shape"], row["nnz"]) for row in rows] == [(shape, nnz) for shape in SHAPES for nnz in (23, 2304)]
    over = [row["weight_stationary"] / row["gustavson"] for row in rows if row["shape"] == SHAPES[1]]
    assert over[0] > 3 > 1.5 > over[1]
    assert len(density_table(rows, DATAFLOWS).splitlines()) == 6
    plot = density_plot(rows, DATAFLOWS)
    assert plot.startswith("<svg") and all(name in plot for name in (*DATAFLOWS, *SHAPES))


def test_command(tmp_path, capsys):
    words = [
        "--config",
        "tiny",
        "densities",
        "--size",
        "12",
        "--percent",
        "20",
        "50",
        "--plot",
        str(tmp_path / "x.svg"),
    ]
    assert main(words) == 0
    assert capsys.readouterr().out.count("| 50 |") == 2 and (tmp_path / "x.svg").stat().st_size > 1000
