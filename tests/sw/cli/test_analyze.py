"""``fiberloom analyze``: what it prints, in which form, with which exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sw.cli.app import main

ROOT = Path(__file__).parents[3]


def test_json_is_one_document(capsys):
    assert main(["analyze", "sparse_product", "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == ""
    assert set(document) == {
        "valid", "cycles", "utilization", "area_um2", "energy_pJ", "computes", "levels", "notes",
    }  # fmt: skip
    assert document["valid"] and document["cycles"] == 3280
    tensor = document["levels"][0]["tensors"]["A"]
    assert set(tensor) == {"tile", "tile_shape", "occupancy", "instances", "reads", "fills", "updates", "format"}
    assert set(tensor["reads"]) == {"dense", "actual", "gated", "skipped"}
    assert set(tensor["format"][0]) == {"format", "shape", "bits", "reads", "fills", "updates"}


def test_both_spellings_say_the_same(capsys):
    printed = []
    for name in ("analyze", "analyse"):
        assert main([name, "sparse_product"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and printed[0].startswith(
        "cycles 3,280 (compute units alone 3,280), utilization 1.0000\n"
    )


def test_a_mapping_that_does_not_fit(capsys):
    words = ["analyze", "sparse_product", "--set", "architecture.nodes.Buffer.attributes.depth=1000", "--json"]
    assert main(words) == 2
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["valid"] is False and document["reason"].endswith("1,434 words: must be at most 1,000")
    assert printed.err == f"fiberloom: {document['reason']}\n"


def test_a_bad_specification_prints_nothing_but_a_line(capsys):
    assert main(["analyze", "sparse_product", "--set", "problem.instance.Q=4", "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "fiberloom: --set problem.instance.Q=4: no such key: must be one of M, N, K, densities, commonDensity\n"
    )


def test_numbers_are_explained(capsys):
    assert main(["analyze", "sparse_product", "--explain", "Buffer.B"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Buffer.B"
    assert "  fills: 512 words x 8 times = 4,096" in lines
    assert "  skipping at Buffer: a word of A is empty with probability 0.899902: 0.899902 of all accesses" in lines
    assert "  reads: 262,144 = 26,240 actual + 235,904 skipped" in lines
    assert main(["analyze", "sparse_product", "--explain", "Buffer.B", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["explanations"] == {"Buffer.B": lines[1:]}
    assert main(["analyze", "sparse_product", "--explain", "Buffer.C"]) == 2
    assert capsys.readouterr().err == (
        "fiberloom: --explain Buffer.C: must be one of Buffer.A, Buffer.B, Buffer.Z, DRAM.A, DRAM.B, DRAM.Z "
        "(did you mean Buffer.Z?)\n"
    )


def test_what_has_no_effect_is_said(capsys):
    change = "architecture.nodes.Buffer.attributes.colour=1"
    assert main(["analyze", "sparse_product", "--set", change]) == 0
    note = "architecture.nodes[1].attributes.colour: is not an attribute that the analysis reads"
    assert capsys.readouterr().err == f"fiberloom: note: {note}\n"
    assert main(["analyze", "sparse_product", "--set", change, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "" and json.loads(printed.out)["notes"] == [note]


SMALL = ["--set", "problem.instance.M=4", "--set", "problem.instance.N=8", "--set", "problem.instance.K=4"]


def test_the_best_mapping_is_printed_and_written(capsys, tmp_path):
    best = tmp_path / "best.yaml"
    words = ["analyze", "sparse_product", *SMALL]
    search = [*words, "--map", "--objective", "delay,energy", "--evaluations", "300", "--seed", "3"]
    assert main([*search, "--out", str(best)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("best delay ") and lines[0].endswith("ended by evaluations")
    assert lines[1].startswith("  DRAM: ") and lines[1].endswith("; keeps A, B, Z")
    assert main([*words, "--mapping", str(best)]) == 0
    assert capsys.readouterr().out.splitlines() == lines[lines.index("") + 1 :]
    assert main([*search, "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == "" and document["search"]["objectives"]["delay"] == document["cycles"]
    assert document["search"]["evaluations"] == 300 and document["search"]["ended_by"] == "evaluations"


def test_progress_has_the_best_so_far(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(["analyze", "sparse_product", *SMALL, "--map", "--evaluations", "1500", "--objective", "energy"]) == 0
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown[0] == "" == shown[-1] and len(shown) > 2
    assert " mappings, " in shown[1] and "; best energy " in shown[-2] and shown[-2].endswith(" pJ")


def test_processes_end_in_silence():
    words = [
        "analyze",
        "sparse_product",
        "--map",
        "--jobs",
        "2",
        "--evaluations",
        "11000",
        "--victory",
        "500",
        "--json",
    ]
    run = subprocess.run(
        [sys.executable, "-m", "sw", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert run.returncode == 0 and run.stderr == ""
    assert json.loads(run.stdout)["search"]["ended_by"] == "victory condition"


def test_an_interrupted_search_keeps_the_best(capsys, monkeypatch, tmp_path):
    import sw.analytic.search as module

    evaluate, calls = module.evaluate, []

    def interrupted(spec, mappings):
        calls.append(spec)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(spec, mappings)

    monkeypatch.setattr(module, "evaluate", interrupted)
    best = tmp_path / "best.yaml"
    words = ["analyze", "sparse_product", "--map", "--jobs", "1", "--out", str(best)]
    assert main(words) == 130
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].endswith("ended by interrupt") and best.is_file()
    assert "fiberloom: interrupted: the best of " in printed.err and printed.err.endswith(" mappings is kept\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--seed", "4"], "--seed: needs --map"),
        (["--map", "--mapping", "x.yaml"], "--mapping x.yaml: must not stand with --map, which finds a mapping"),
        (["--map", "--objective", "speed"], "--objective speed: 'speed': must be of delay, energy, edp"),
        (["--mapping", "none.yaml"], "none.yaml: no such file"),
        (["--map", "--out", "/dev/null/best.yaml"], "--out /dev/null: cannot be written (File exists)"),
        (
            ["--map", "--set", "architecture.nodes.Buffer.constraints={dataspace: {keep: [C]}}"],
            "--set architecture.nodes.Buffer.constraints={dataspace: {keep: [C]}}: "
            "architecture.nodes[1].constraints.dataspace.keep = 'C': must be of A, B, Z",
        ),
    ],
)
def test_mistakes_of_a_search(capsys, words, line):
    assert main(["analyze", "sparse_product", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err == f"fiberloom: {line}\n"


def test_nothing_valid(capsys, tmp_path):
    change = "architecture.nodes.Buffer.attributes={depth: 0, width: 16, datawidth: 16}"
    keep = "architecture.nodes.Buffer.constraints={dataspace: {keep: [A, B, Z]}}"
    words = [
        "analyze",
        "sparse_product",
        *SMALL,
        "--map",
        "--set",
        change,
        "--set",
        keep,
        "--evaluations",
        "50",
        "--json",
    ]
    assert main([*words, "--out", str(tmp_path / "best.yaml")]) == 2
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert (
        document["valid"] is False and "no valid mapping: the first 50 were tried (evaluations); " in document["reason"]
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["sparse_product"], ["sparse_product", "--json"]])
def test_one_analysis_loads_nothing_that_it_does_not_need(words):
    """Not what takes as long to load as the analysis itself, or longer."""
    code = (
        "import sys; from sw.cli.app import main; code = main(sys.argv[1:]); "
        "sys.exit(code or sum(name in sys.modules for name in ('scipy', 'numba', 'rich', 'gen.design', 'sw.analytic.mapspace')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, "analyze", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr


NETWORK = """
network:
  - {name: first, times: 3, set: {problem.instance.densities.A.density: 0.2}}
  - {name: second, set: {problem.instance.N: 32, mapping.DRAM.factors: [N=4]}}
"""
SHIPPED = str(ROOT / "configs" / "analysis" / "sparse_product.yaml")


def document_of(capsys, *words: str):
    assert main(["analyze", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_layers_of_a_network_add_up(capsys, tmp_path):
    path = tmp_path / "network.yaml"
    path.write_text(NETWORK)
    found = document_of(capsys, SHIPPED, str(path))
    first = document_of(capsys, SHIPPED, "--set", "problem.instance.densities.A.density=0.2")
    second = document_of(capsys, SHIPPED, "--set", "problem.instance.N=32", "--set", 'mapping.DRAM.factors=["N=4"]')
    assert [layer["cycles"] for layer in found["layers"]] == [first["cycles"], second["cycles"]]
    assert found["cycles"] == 3 * first["cycles"] + second["cycles"]
    assert found["computes"]["actual"] == 3 * first["computes"]["actual"] + second["computes"]["actual"]
    assert found["energy_pJ"]["total"] == pytest.approx(3 * first["energy_pJ"]["total"] + second["energy_pJ"]["total"])
    assert found["layers"][1]["levels"] == second["levels"]
    # The command line stands above the layers.
    wide = document_of(capsys, SHIPPED, str(path), "--set", "problem.instance.densities.A.density=0.1")
    assert wide["cycles"] == 3 * 3280 + 1640


def test_a_sweep_has_a_record_for_each_point(capsys):
    words = ["--sweep", "problem.instance.densities.A.density=0.05..0.1:0.05,0.4", "--sweep", "problem.instance.K=64"]
    points = document_of(capsys, "sparse_product", *words)["points"]
    assert [point["set"]["problem.instance.densities.A.density"] for point in points] == ["0.05", "0.1", "0.4"]
    assert [point["valid"] for point in points] == [True, True, False] and "words: must be" in points[2]["reason"]
    one = document_of(capsys, "sparse_product", "--set", "problem.instance.densities.A.density=0.05")
    assert {key: value for key, value in points[0].items() if key != "set"} == one


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--sweep", "problem.instance.K"], "--sweep problem.instance.K: must be path.to.key=value,value or a range"),
        (["--sweep", "problem.instance.K=8..4"], "must be a range that grows, such as 0.1..0.9:0.2 or 8..64*2"),
        (["--sweep", "problem.instance.K=1..9999999"], "must have at most 10,000 values"),
        (["--sweep", "problem.instance.Q=1,2"], "no such key: must be one of M, N, K, densities, commonDensity"),
        (["--sweep", "problem.instance.K=64", "--explain", "Buffer.A"], "must not stand with --explain"),
        (["--sweep", "architecture.nodes.Buffer.attributes.depth=1,2"], "1,434 words: must be at most 1"),
        (["--set", "network=3"], "network: must be one of architecture, problem, mapping, ERT"),
        (["NET", "--explain", "Buffer.A"], "--explain: must not stand with a network: it has layers"),
        (["NET", "--set", "network.first.times=0"], "must be at least 1"),
        (["NET", "--set", "network.second.set={problem.Q: 4}"], "network: set problem.Q: no such key"),
        (["NET", "--set", "architecture.nodes.Buffer.attributes.depth=4"], "layer first: "),
    ],
)
def test_mistakes_of_sweeps_and_networks(capsys, words, line, tmp_path):
    path = tmp_path / "network.yaml"
    path.write_text(NETWORK)
    assert main(["analyze", SHIPPED, *(str(path) if word == "NET" else word for word in words)]) == 2
    printed = capsys.readouterr()
    assert line in printed.err and printed.err.count("\n") == 1


@pytest.fixture
def band(tmp_path):
    """A file of a matrix of 60 rows with ones along the diagonal and at two more places of each row."""
    import scipy.io
    import scipy.sparse as sp

    path = tmp_path / "band.mtx"
    scipy.io.mmwrite(path, sp.csr_array(sp.diags_array([[1.0] * 60, [2.0] * 57, [3.0] * 40], offsets=[0, 3, -20])))
    return str(path)


@pytest.mark.parametrize("density", ["uniform", "banded", "actual"])
def test_a_design_stands_beside_its_model(capsys, band, density):
    words = ["analyze", band, "--design", "tiny", "--density", density, "--against", "model", "--json"]
    assert main(words) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    rows = {(row["level"], row["tensor"], row["quantity"]): row for row in document["comparison"]}
    assert document["valid"] and {("DRAM", t, q) for t, q in (("A", "bytes moved"), ("C", "bytes written"))} <= set(
        rows
    )
    macs = rows["MAC", "", "computes"]
    assert macs["analysis"] / macs["counted"] - 1 == pytest.approx(macs["error"])
    if density == "actual":
        assert abs(macs["analysis"] - macs["counted"]) <= 1


def test_a_design_is_written_and_read_back(capsys, band, tmp_path):
    spec = tmp_path / "spec.yaml"
    words = ["analyze", band, "--design", "tiny", "--set", "pe.count=4", "--density", "actual"]
    assert main([*words, "--out", str(spec)]) == 0
    first = capsys.readouterr().out
    assert main(["analyze", str(spec)]) == 0
    assert capsys.readouterr().out == first
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "band.mtx", "spec-A.npz", "spec-B.npz", "spec-C.npz", "spec.yaml",
    ]  # fmt: skip
    assert "meshX: 4" in spec.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--density", "dense"], "--density dense: must be one of uniform, banded, actual"),
        (["--against", "golden"], "--against golden: must be one of model, rtl"),
        (["--tiling", "auto", "--set", "pe.dataflow=outer"], "must be gustavson, to be analysed"),
        (["--map"], "--map: must not stand with --design"),
        (["--sweep", "a=1,2"], "--sweep: must not stand with --design"),
    ],
)
def test_a_bad_option_beside_a_design(capsys, band, words, message):
    assert main(["analyze", band, "--design", "tiny", *words]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1 and not printed.out


@pytest.mark.parametrize("words", [["--density", "uniform"], ["--against", "model"], ["--tiling", "hyte"]])
def test_options_of_a_design_need_one(capsys, words):
    assert main(["analyze", "sparse_product", *words]) == 2
    assert capsys.readouterr().err == f"fiberloom: {words[0]}: needs --design\n"


def test_a_design_takes_two_operands(capsys, band):
    assert main(["analyze", band, band, "more.mtx", "--design", "tiny"]) == 2
    assert "more.mtx: must be left out: --design takes operands A and B" in capsys.readouterr().err


def test_a_specification_and_a_page_are_written(capsys, tmp_path):
    spec, page = tmp_path / "new" / "spec.yaml", tmp_path / "page.html"
    change = ["--set", "problem.instance.densities.A.density=0.2"]
    assert main(["analyze", "sparse_product", *change, "--out", str(spec), "--report", str(page), "--json"]) == 0
    first = capsys.readouterr().out
    assert main(["analyze", str(spec), "--json"]) == 0
    assert capsys.readouterr().out == first
    assert f"{json.loads(first)['cycles']:,}" in page.read_text()


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_files_are_of_one_analysis(capsys, tmp_path, option):
    path = tmp_path / "file"
    assert main(["analyze", "sparse_product", "--sweep", "problem.instance.M=32,64", option, str(path)]) == 2
    assert capsys.readouterr().err.endswith(f"must not stand with {option}\n")
    assert main(["analyze", "scnn", "alexnet", option, str(path)]) == 2
    assert "must not stand with a network" in capsys.readouterr().err
    assert not path.exists()


def test_a_page_that_cannot_be_written(capsys, tmp_path):
    """Its option is named, before and after the analysis."""
    for path in ("/dev/null/page.html", str(tmp_path)):
        assert main(["analyze", "sparse_product", "--report", path]) == 2
        printed = capsys.readouterr()
        assert printed.err.startswith("fiberloom: --report ") and printed.err.count("\n") == 1 and not printed.out
