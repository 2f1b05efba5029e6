"""`fiberloom compare` as its users meet it: every tiling, results like those of `run`, failures that stop nothing."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli import evaluate as evaluating
from sw.cli.app import main
from sw.cli.evaluate import parse_tilings
from sw.policies.registry import POLICIES
from sw.runtime.comparison import compared
from sw.scheme.scheme import Scheme

ROOT = Path(__file__).parents[3]
TINY = ("--config", "tiny")


@pytest.fixture
def matrix(tmp_path, monkeypatch):
    """512 rows, so that `tiny` has to cut them."""
    monkeypatch.chdir(tmp_path)
    assert main(["data", "save", "rmat:9:6:seed=4", "m.npz", "--quiet"]) == 0
    return "m.npz"


def compare(capsys, *words: str) -> tuple[list[dict], str]:
    assert main(["compare", *words, "--json"]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


ASKED = "250 MHz, asked for and reached by no place and route"


def test_optimal_runs_when_it_is_named():
    usual = [tiling.name for tiling in parse_tilings(None)]
    assert usual == [name for name in POLICIES if name != "optimal"] and len(usual) == len(POLICIES) - 1
    for words in (["*"], ["opt*"], ["hyte,optimal"]):
        (optimal,) = (tiling for tiling in parse_tilings(words, budget=7) if tiling.name == "optimal")
        assert optimal.options == {"budget": 7}


def test_every_tiling_is_a_result_like_that_of_run(matrix, capsys):
    records, err = compare(capsys, matrix, *TINY, "--tiling", "*", "--budget", "3")
    assert err == "" and [record["tiling"] for record in records] == list(POLICIES)
    assert main(["run", matrix, *TINY, "--engine", "model", "--tiling", "hyte", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    (hyte,) = (record for record in records if record["tiling"] == "hyte")
    assert set(alone) <= set(hyte)
    same = (
        "correct",
        "cycles",
        "dram_bytes",
        "energy_pJ",
        "macs",
        "nnz_c",
        "scheme",
        "tiles",
        "buffer",
        "counters",
        "design",
        "operands",
    )
    assert {key: hyte[key] for key in same} == {key: alone[key] for key in same}
    assert not Path("out").exists()
    assert [record["tiling"] for record in records if not record["hardware"]] == ["drt", "harp"]
    for record in records:
        assert (
            record["correct"] and record["seconds"]["schedule"] > 0 and record["scheme"]["policy"] == record["tiling"]
        )
    best = min(record["cycles"] for record in records if record["hardware"])
    assert [record["regret"] for record in records] == pytest.approx([r["cycles"] / best - 1 for r in records])


def test_the_table_and_the_files(matrix, capsys):
    assert main(["compare", matrix, *TINY, "--tiling", "hyte,harp", "--out", "o"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert (
        lines[0].startswith("C = A x B   m (512 x 512, ")
        and lines[1] == f"design      tiny, engine model, seconds at {ASKED}"
    )
    assert lines[2].split()[:3] == ["tiling", "order", "T_i"]
    assert lines[2].split()[7:10] == ["cycles", "ideal", "roofline"]
    assert lines[3].startswith("hyte ") and lines[4].startswith("harp * ")
    assert lines[5] == "* tiles of different shapes: in the model only, no hardware runs them"
    names = ["comparison.html", "cycles.svg", "results.json", "scheme-harp.json", "scheme-hyte.json", "table.csv"]
    assert sorted(path.name for path in Path("o").iterdir()) == names
    records = json.loads(Path("o/results.json").read_text())
    rows = list(csv.DictReader(Path("o/table.csv").read_text().splitlines()))
    assert [(row["tiling"], int(row["cycles"])) for row in rows] == [(r["tiling"], r["cycles"]) for r in records]
    for row, record, line in zip(rows, records, lines[3:5], strict=True):
        shares = [record["roofline_fraction"], record["ideal_fraction"]]
        assert [float(row["roofline_fraction"]), float(row["ideal_fraction"])] == shares and shares[0] > shares[1] > 0
        assert "  ".join(f"{share:.1%}" for share in reversed(shares)) in re.sub(" {2,}", "  ", line)
        assert float(row["energy_pJ"]) == record["energy_pJ"]["total"] > 0
        assert f"  {record['energy_pJ']['total'] / 1e6:,.2f}  " in line
    for record in records:
        scheme = Scheme.from_json(Path(f"o/scheme-{record['tiling']}.json").read_text())
        assert bool(scheme.tiles) == (not record["hardware"]) and scheme.T_k == record["scheme"]["T_k"]
    page = Path("o/comparison.html").read_text()
    assert "<script" not in page and "http" not in page and f"{records[0]['cycles']:,}" in page
    assert f"Energy of each tiling by component: hyte {records[0]['energy_pJ']['total'] / 1e6:,.4g} uJ" in page
    plot = Path("o/cycles.svg").read_text()
    assert plot.startswith("<svg") and 'xmlns="http://www.w3.org/2000/svg"' in plot and "harp *" in plot


def test_both_engines(matrix, capsys):
    """The given design and its counterpart run what they run alone; what one of them cannot take is one line."""
    flex = ("--config", "flex_tiny")
    words = (matrix, *flex, "--engines")
    records, err = compare(capsys, *words, "--out", "o")
    assert err == "" and [r["tiling"] for r in records] == ["auto-weight_stationary", "auto-gustavson"]
    assert [r["design"]["pe"]["count"] for r in records] == [2, 4] and records[0]["macs"] == records[1]["macs"]
    assert main(["run", matrix, *flex, "--engine", "model", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert (alone["cycles"], alone["pe_utilization"]) == (records[0]["cycles"], records[0]["pe_utilization"])
    best = min(r["cycles"] for r in records)
    assert [r["regret"] for r in records] == [r["cycles"] / best - 1 for r in records]
    rows = list(csv.DictReader(Path("o/table.csv").read_text().splitlines()))
    assert [float(row["pe_utilization"]) for row in rows] == [r["pe_utilization"] for r in records]
    page = Path("o/comparison.html").read_text()
    assert "flex_tiny, flex_tiny_gustavson" in page and "PE use" in page
    assert Path("o/scheme-auto-gustavson.json").exists()

    records, err = compare(capsys, *words, "--tiling", "uniform,hyte")
    assert [r["tiling"] for r in records] == ["uniform-weight_stationary", "uniform-gustavson", "hyte-gustavson"]
    assert "hyte-weight_stationary: must be one of uniform, auto" in err.replace("--tiling hyte: ", "")
    packed, err = compare(capsys, matrix, *TINY, "--engines", "--set", "memory.records=packed", "--tiling", "auto")
    assert err == "" and [r["design"]["memory"]["records"] for r in packed] == ["packed"] * 2
    assert main(["compare", *words, "--quiet", "--out", "p"]) == 0
    assert main(["compare", *words, "--out", "p"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("design      flex_tiny, flex_tiny_gustavson, engine model")
    assert " PE use " in lines[2] and all(line.startswith("auto-") for line in lines[3:5])


def test_results_go_to_a_folder_named_after_a(matrix, capsys):
    assert main(["compare", matrix, *TINY, "--tiling", "swiftiles", "--quiet"]) == 0
    assert capsys.readouterr().out == "" and Path("out/m-tilings/results.json").exists()


def test_variants(matrix, capsys):
    records, _ = compare(capsys, matrix, *TINY, "--tiling", "hyte*", "--tiling", "hyte+tuning,auto+uneven")
    assert [record["tiling"] for record in records] == ["hyte", "hyte+tuning", "auto+uneven"]
    assert [record["scheme"]["tuning"] for record in records] == [False, True, False]


def test_two_operands_and_transposes(matrix, capsys, tmp_path):
    wide = sp.random_array((30, 90), density=0.1, rng=np.random.default_rng(1), format="csr")
    sp.save_npz(tmp_path / "w.npz", wide)
    sp.save_npz(tmp_path / "t.npz", sp.csr_array(wide.T))
    common = (*TINY, "--value", "fp32", "--tiling", "d2t2")
    (one,), _ = compare(capsys, "w.npz", *common, "--transpose-b")
    (two,), _ = compare(capsys, "w.npz", "t.npz", *common)
    assert one["cycles"] == two["cycles"] and one["nnz_c"] == two["nnz_c"]


def test_engines(matrix, capsys):
    records, _ = compare(capsys, "uniform:20:20:0.2", *TINY, "--engine", "golden", "--tiling", "hyte,harp")
    assert [record["cycles"] for record in records] == [None, None]
    assert [record["regret"] for record in records] == [None, None]
    assert main(["compare", "uniform:20:20:0.2", *TINY, "--engine", "golden", "--tiling", "hyte", "--out", "g"]) == 0
    assert "\nhyte " in capsys.readouterr().out


@pytest.mark.slow
def test_the_hardware(matrix, capsys):
    """What no hardware runs is refused, and the traffic of the others is the model's to the byte."""
    words = ("uniform:20:20:0.2", *TINY, "--tiling", "harp,hyte")
    (built,), err = compare(capsys, *words, "--engine", "rtl")
    assert err.startswith("fiberloom: note: harp: --engine rtl: the tiles of harp differ in shape")
    assert built["correct"] and built["checks"][0]["name"] == "engine against golden"
    modelled = next(record for record in compare(capsys, *words)[0] if record["tiling"] == "hyte")
    assert built["dram_bytes"] == modelled["dram_bytes"] and built["energy_pJ"] == modelled["energy_pJ"] is not None


def test_one_that_fails_stops_nothing(matrix, capsys, monkeypatch):
    choose = evaluating.choose_scheme

    def broken(choice, *rest):
        if choice.tiling in ("hyte", "harp"):
            raise ZeroDivisionError("a defect")
        return choose(choice, *rest)

    monkeypatch.setattr(evaluating, "choose_scheme", broken)
    records, err = compare(capsys, matrix, *TINY, "--tiling", "hyte,uniform,swiftiles", "--most-tiles", "20")
    assert [record["tiling"] for record in records] == ["swiftiles"]
    assert err.splitlines() == [
        "fiberloom: note: hyte: ZeroDivisionError: a defect",
        "fiberloom: note: uniform: cuts into 361 tiles: at most 20 are run (--most-tiles)",
    ]
    assert main(["compare", matrix, *TINY, "--tiling", "hyte,harp", "--quiet", "--out", "none"]) == 2
    assert capsys.readouterr().err == "fiberloom: no tiling could be run: hyte, harp: ZeroDivisionError: a defect\n"
    assert not Path("none").exists()


def test_a_wrong_result_is_one(matrix, capsys, monkeypatch):
    from dataclasses import replace

    verify = evaluating.verify
    monkeypatch.setattr(evaluating, "verify", lambda *words: [replace(c, correct=False) for c in verify(*words)])
    assert main(["compare", matrix, *TINY, "--tiling", "swiftiles"]) == 1
    assert "swiftiles NOT CORRECT" in capsys.readouterr().out


def test_regret_counts_what_hardware_can_run():
    def record(name: str, cycles: int, seconds: float, *, hardware: bool = True, correct: bool = True) -> dict:
        design = {"clock": {"mhz": 100.0}}
        return {
            "tiling": name, "cycles": cycles, "hardware": hardware, "correct": correct, "design": design,
            "seconds": {"schedule": seconds},
        }  # fmt: skip

    found = compared(
        [
            record("a", 2_000_000, 0.5),
            record("b", 4_000_000, 0.01),
            record("uneven", 1_000_000, 0.0, hardware=False),
            record("wrong", 1, 0.0, correct=False),
        ]
    )
    assert [r["regret"] for r in found][:3] == pytest.approx([0.0, 1.0, -0.5])
    assert [r["run_seconds"] for r in found][:2] == pytest.approx([0.02, 0.04])
    assert [r["total_regret"] for r in found][:2] == pytest.approx([0.52 / 0.05 - 1, 0.0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing argument 'A'."),
        (("m.npz", "--engine", "fpga"), "--engine fpga: must be one of rtl, model, golden"),
        (("m.npz", "--tiling", "magic"), "--tiling magic: must be one of uniform, prescient, "),
        (("m.npz", "--tiling", "hyte,"), "--tiling : must be one of uniform, prescient, "),
        (
            ("m.npz", "--tiling", "hyte+uneven"),
            "--tiling hyte+uneven: +uneven: must be +tuning or +natural or +rcm or +greedy or +communities or +best",
        ),
        (
            ("m.npz", "--tiling", "auto+fast"),
            "--tiling auto+fast: +fast: must be +tuning or +natural or +rcm or +greedy or +communities or +best or +high "
            "or +uneven",
        ),
        (("m.npz", "--config", "extensor", "--engine", "rtl"), "--engine rtl: the design extensor is for "),
        (("m.npz", "--config", "none"), "--config none: no such design: must be one of "),
        (("m.npz", "--tiling", "optimal", "--budget", "0"), "--budget 0: must be at least 1"),
        (("m.npz", "--budget", "5"), "--budget 5: is of optimal: name it with --tiling, or leave the budget out"),
        (("none.npz",), "none.npz: no such file"),
        (("m.npz", "uniform:4:4:0.5"), "A is 512 x 512 and B is 4 x 4: columns of A must equal rows of B"),
        (("m.npz", "--out", ""), "--out '': must be the name of a folder"),
        (("m.npz", "--out", "m.npz"), "--out m.npz: cannot be written (File exists)"),
    ],
)
def test_mistakes_are_one_line(matrix, capsys, words, message):
    assert main(["compare", *words, "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith(f"fiberloom: {message}")


def test_an_interrupt_keeps_what_was_finished(matrix, tmp_path):
    code = (
        "import sys, time; from sw.cli import evaluate; from sw.cli.app import main\n"
        "choose = evaluate.choose_scheme\n"
        "def slow(choice, *rest):\n"
        "    if choice.tiling == 'auto':\n"
        "        print('ready', flush=True); time.sleep(600)\n"
        "    return choose(choice, *rest)\n"
        "evaluate.choose_scheme = slow\n"
        "sys.exit(main(['compare', 'm.npz', '--config', 'tiny', '--tiling', 'swiftiles,auto', '--quiet', '--out', 'o']))\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
        child.communicate()
    kept = "1 of 2 tilings are kept in o; --tiling auto with another --out runs the others"
    assert (child.returncode, out) == (130, "")
    assert err == f"fiberloom: interrupted: {kept}, the same command runs all anew\n"
    assert [record["tiling"] for record in json.loads((tmp_path / "o/results.json").read_text())] == ["swiftiles"]
