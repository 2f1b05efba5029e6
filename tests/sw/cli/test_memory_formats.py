"""``fiberloom run --mcf-a --mcf-b --mcf-c``: A, B and C in other formats than the accelerator's."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sw.cli.app import main
from sw.formats.storage import storage_format
from sw.runtime.converter import SOURCES
from sw.runtime.registers import CONVERTED
from sw.scheme.terms import LISTS, ONLY_B

TINY = ("--config", "tiny", "--json")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with two matrices, the first with stored zeros."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(6)
    for name, shape in (("a", (70, 60)), ("b", (60, 90))):
        array = sp.coo_array(rng.integers(1, 100, shape) * (rng.random(shape) < 0.2))
        if name == "a":
            array.data[::5] = 0
        scipy.io.mmwrite(f"{name}.mtx", array)


@pytest.fixture
def run(capsys):
    """Runs a command that must succeed; gives the record."""

    def call(*words):
        assert main(["run", "a.mtx", "b.mtx", *TINY, *words]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return call


def given(a, b, c):
    return tuple(word for option, kind in (("a", a), ("b", b), ("c", c)) for word in (f"--mcf-{option}", kind))


# Rows of A, which auto meets in another order where it may.
AS_THEY_ARE = ("--row-order", "natural")


@pytest.mark.parametrize("kind", SOURCES)
def test_every_format_in_the_model(run, kind):
    """A format without zeros has fewer nonzeros of A; conversions are part of cycles and bytes; golden has neither."""
    plain = run("--engine", "model", "--set", "memory.records=packed", *AS_THEY_ARE)
    record = run("--engine", "model", *given(kind, kind, kind), *AS_THEY_ARE)
    assert record["correct"] and record["design"]["memory"]["records"] == "packed"
    kept = record["memory_formats"]
    assert list(kept) == ["A", "B", "C"] and {found["format"] for found in kept.values()} == {kind}
    zeros = 0 if storage_format(kind).keeps_zeros else plain["operands"]["A"]["nnz"] - record["operands"]["A"]["nnz"]
    assert (zeros > 0) == (not storage_format(kind).keeps_zeros)
    for tensor, found in kept.items():
        least = plain["useful_bytes"][tensor] if kind == "csr" else -(-found["bits"] // 8)
        assert record["useful_bytes"][tensor] == least
        assert (found["cycles"] > 0) == (found["dram_bytes"]["read"] > 0) == (kind != "csr")
    if not zeros:
        moved = sum(sum(found["dram_bytes"].values()) for found in kept.values())
        assert record["dram_bytes"]["total"] == plain["dram_bytes"]["total"] + moved
        assert record["cycles"] == plain["cycles"] + sum(found["cycles"] for found in kept.values())
    golden = run("--engine", "golden", *given(kind, kind, kind))
    assert golden["cycles"] is None
    assert {t: (f["format"], f["bits"], f["cycles"]) for t, f in golden["memory_formats"].items()} == {
        t: (f["format"], f["bits"], 0) for t, f in kept.items()
    }


def test_without_formats_nothing_is_converted(run):
    assert run("--engine", "model")["memory_formats"] == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [(), ("--order", "kij", "--T_i", "30", "--T_j", "40", "--T_k", "20"), ("--tuning", "--T_j", "40", "--T_k", "30")],
)
@pytest.mark.parametrize(
    "kinds", [("zvc", "rlc", "coo"), ("csc", "dense", "csc"), ("rlc", "csc", "zvc"), ("coo", "coo", "dense")]
)
def test_on_the_hardware(run, kinds, words):
    """Every value is verified, every conversion bit for bit, and the model moves the same bytes."""
    record = run(*given(*kinds), *words)
    assert record["correct"] and record["model"]["traffic_equal"]
    assert [check["name"] for check in record["checks"]][-3:] == [
        f"A from {kinds[0]} to csr",
        f"B from {kinds[1]} to csr",
        f"C from csr to {kinds[2]}",
    ]
    assert abs(record["model"]["cycles"] - record["cycles"]) < 0.15 * record["cycles"]


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"T_i": 9}, {"T_i": 70, "strips": 5, "T_j": 30}], ids=["lists", "strips"])
def test_where_the_host_writes_a_anew(run, changes, capsys):
    """Tiles of lists of rows: the host reads A as csr or coo, other formats are refused. Nothing converts A; B and C are."""
    assert main(["schedule", "a.mtx", "b.mtx", *TINY, *AS_THEY_ARE]) == 0
    of_lists = {"load": "list", "mode": ONLY_B, "scratch_bytes": 0, "alternatives": [], "predicted": {}}
    scheme = json.loads(capsys.readouterr().out) | of_lists | changes
    Path("lists.json").write_text(json.dumps(scheme))
    record = run("--scheme", "lists.json", *given("coo", "csc", "zvc"))
    assert record["correct"] and record["model"]["traffic_equal"] and record["scheme"]["load"] == "list"
    kept = record["memory_formats"]
    assert kept["A"]["format"] == "coo" and not kept["A"]["cycles"]
    assert kept["B"]["cycles"] and kept["C"]["cycles"]
    assert main(["run", "a.mtx", "b.mtx", "--config", "tiny", "--scheme", "lists.json", "--mcf-a", "zvc"]) == 2
    assert capsys.readouterr().err == (
        "fiberloom: --mcf-a zvc: auto makes tiles of lists of rows, for which the host writes A anew: must be csr or coo\n"
    )


CONVERTS_A = ("--set", "memory.converts_a=true")


@pytest.mark.parametrize("kind", SOURCES)
def test_a_on_its_way_in(run, kind):
    """No pass where the design takes the format and the scheme reads A in its order; else the pass, as without."""
    whole, cut = ("--T_i", "20", "--T_j", "90"), ("--T_i", "20", "--T_j", "40", "--order", "ijk")
    outside = (*cut[:-1], "jik")
    for words, times in ((whole, 1), (outside, 3), (cut, 0)):
        words = ("--engine", "model", "--T_k", "60", *words, "--mcf-a", kind)
        before, record = run(*words), run(*words, *CONVERTS_A)
        kept, passed = record["memory_formats"]["A"], before["memory_formats"]["A"]
        assert passed["conversion"] == ("none" if kind == "csr" else "pass")
        if kind not in CONVERTED or not times:
            assert kept == passed and record["dram_bytes"] == before["dram_bytes"]
            continue
        assert kept == passed | {
            "conversion": "overlapped", "cycles": 0, "dram_bytes": {"read": 0, "write": 0}, "passes": 0
        }  # fmt: skip
        moved = record["dram_bytes"]["A"]
        assert moved["write"] == moved["metadata_write"] == 0
        assert 0 <= moved["read"] - times * kept["bits"] / 8 <= times * 2 * 16
        assert record["cycles"] < before["cycles"]


def test_predictions_of_a_on_its_way_in(capsys):
    """The cost model counts no pass, and the bytes of A's format."""
    words = ("schedule", "b.mtx", "--transpose-b", "--config", "tiny", "--json", "--tiling", "uniform", "--T_k", "90")
    found = []
    for more in (("--mcf-a", "csr"), ("--mcf-a", "dense"), ("--mcf-a", "dense", *CONVERTS_A)):
        assert main([*words, *more, "--order", "jik"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    alone, before, inside = found
    assert alone["cycles"] == inside["cycles"] < before["cycles"]
    assert inside["dram_bytes"] > alone["dram_bytes"]


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("coo", "rlc", "zvc"), ("dense", "csc", "coo")])
def test_a_on_its_way_in_on_the_hardware(run, kinds):
    """Stored zeros of COO stay; B and C have their passes."""
    record = run(*given(*kinds), *CONVERTS_A, "--order", "jik", "--T_i", "20", "--T_j", "40", "--T_k", "60")
    assert record["correct"] and record["model"]["traffic_equal"]
    assert record["memory_formats"]["A"]["conversion"] == "overlapped"
    assert [check["name"] for check in record["checks"]][-2:] == [
        f"B from {kinds[1]} to csr",
        f"C from csr to {kinds[2]}",
    ]
    assert record["counters"]["stall_conversion"] > 0
    assert abs(record["model"]["cycles"] - record["cycles"]) < 0.15 * record["cycles"]


CONVERTS_B = ("--set", "memory.converts_b=true")


@pytest.mark.parametrize("engine", ["model", "golden"])
@pytest.mark.parametrize("kind", SOURCES)
def test_b_on_its_way_in(run, kind, engine):
    """No pass where the design takes the format and tiles have whole rows of B; else the pass, as without."""
    once, again = ("--T_i", "20", "--T_j", "90", "--order", "kij"), ("--T_i", "20", "--T_j", "90", "--order", "ijk")
    cut = ("--T_i", "20", "--T_j", "40", "--order", "ijk")
    for words, times in ((once, 1), (again, 4), (cut, 0)):
        words = ("--engine", engine, "--T_k", "20", *words, "--mcf-b", kind)
        before, record = run(*words), run(*words, *CONVERTS_B)
        kept, passed = record["memory_formats"]["B"], before["memory_formats"]["B"]
        assert passed["conversion"] == ("none" if kind == "csr" or engine == "golden" else "pass")
        if kind not in CONVERTED or not times:
            assert kept == passed and record["dram_bytes"] == before["dram_bytes"]
            continue
        nothing = {"read": 0, "write": 0}
        assert kept == passed | {"conversion": "overlapped", "cycles": 0, "dram_bytes": nothing, "passes": 0}
        if engine == "golden":
            continue
        moved = record["dram_bytes"]["B"]
        assert moved["write"] == moved["metadata_write"] == 0 and moved["metadata_read"] <= 16
        assert 0 <= moved["read"] - times * kept["bits"] / 8 <= times * 2 * 16
        if times == 1:
            assert record["cycles"] < before["cycles"]


def test_b_that_finds_no_room_has_a_pass(run):
    """Where a tile overbooks the partition."""
    small = ("--set", "buffer.bytes=4096", "--set", "buffer.fifo_bytes=512")
    words = ("--engine", "model", "--T_i", "20", "--T_j", "90", "--mcf-b", "zvc", *CONVERTS_B)
    found = [run(*words, *more) for more in (("--T_k", "30", *small), ("--T_k", "10", *small), ("--T_k", "30"))]
    assert [record["memory_formats"]["B"]["conversion"] for record in found] == ["pass", "overlapped", "overlapped"]
    assert found[0]["tiles"]["overbooked"] and not found[1]["tiles"]["overbooked"]


def test_a_and_b_on_their_way_in(run):
    larger = ("--set", "buffer.bytes=16384")
    words = ("--engine", "model", *larger, "--T_k", "60", "--T_i", "20", "--T_j", "90", *given("zvc", "rlc", "coo"))
    record = run(*words, *CONVERTS_A, *CONVERTS_B)
    assert [of["conversion"] for of in record["memory_formats"].values()] == ["overlapped", "overlapped", "pass"]
    energies = [run(*words, *more)["energy_pJ"]["conversion"] for more in ((), (*CONVERTS_A, *CONVERTS_B))]
    assert energies[0] == energies[1] > 0


def test_predictions_of_b_on_its_way_in(capsys):
    """The cost model counts no pass, and the bytes of B's format."""
    words = ("schedule", "b.mtx", "--transpose-b", "--config", "tiny", "--json", "--tiling", "uniform", "--T_j", "60")
    found = []
    for more in (("--mcf-b", "csr"), ("--mcf-b", "dense"), ("--mcf-b", "dense", *CONVERTS_B)):
        assert main([*words, *more, "--order", "kij"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    alone, before, inside = found
    assert alone["cycles"] == inside["cycles"] < before["cycles"]
    assert inside["dram_bytes"] > alone["dram_bytes"]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["kij", "ijk"])
@pytest.mark.parametrize("kinds", [("coo", "rlc", "zvc"), ("dense", "zvc", "coo"), ("rlc", "coo", "csc")])
def test_b_on_its_way_in_on_the_hardware(run, kinds, order):
    """A and C have their passes."""
    record = run(*given(*kinds), *CONVERTS_B, "--order", order, "--T_i", "20", "--T_j", "90", "--T_k", "20")
    assert record["correct"] and record["model"]["traffic_equal"]
    assert record["memory_formats"]["B"]["conversion"] == "overlapped"
    assert [check["name"] for check in record["checks"]][-2:] == [
        f"A from {kinds[0]} to csr",
        f"C from csr to {kinds[2]}",
    ]
    assert record["counters"]["stall_conversion"] > 0
    assert abs(record["model"]["cycles"] - record["cycles"]) < 0.15 * record["cycles"]


def test_b_is_converted_by_rows_alone(capsys):
    words = ("a.mtx", "b.mtx", "--config", "flex_tiny", "--mcf-b", "zvc", *CONVERTS_B)
    assert main(["run", *words]) == 2
    assert capsys.readouterr().err == (
        "fiberloom: --set memory.converts_b=true: must be false where pe.dataflow is weight_stationary: it reads B by columns\n"
    )


CONVERTS_C = ("--set", "memory.converts_c=true")
NOTHING = {"read": 0, "write": 0}


@pytest.mark.parametrize("engine", ["model", "golden"])
@pytest.mark.parametrize("kind", SOURCES)
def test_c_on_its_way_out(run, kind, engine):
    """No pass where the design makes the format, whatever is cut; else the pass, as without."""
    cuts = (
        ("--T_i", "20", "--T_j", "90", "--T_k", "60"),
        ("--T_i", "20", "--T_j", "40", "--T_k", "20", "--order", "jki"),
        ("--T_i", "20", "--T_j", "90", "--T_k", "20", "--order", "kij", "--partial-rows", "joined"),
        ("--load", "list", *AS_THEY_ARE),
        ("--tuning", "--T_j", "40", "--T_k", "30"),
    )
    for number, words in enumerate(cuts):
        words = ("--engine", engine, *words, "--set", "memory.records=packed", "--mcf-c", kind)
        before, record = run(*words), run(*words, *CONVERTS_C)
        kept, passed = record["memory_formats"]["C"], before["memory_formats"]["C"]
        assert record["correct"] and record["nnz_c"] == before["nnz_c"]
        assert passed["conversion"] == ("none" if kind == "csr" or engine == "golden" else "pass")
        if kind not in CONVERTED:
            assert kept == passed and record["dram_bytes"] == before["dram_bytes"]
            continue
        assert kept == passed | {"conversion": "overlapped", "cycles": 0, "dram_bytes": NOTHING, "passes": 0}
        if engine == "golden":
            continue
        assert {t: record["dram_bytes"][t] for t in "AB"} == {t: before["dram_bytes"][t] for t in "AB"}
        moved, aside = record["dram_bytes"]["C"], record["scratch_traffic"]
        assert moved["write"] >= kept["bits"] / 8
        if number == 0:
            assert moved["read"] == aside["read"] and moved["metadata_read"] == moved["metadata_write"] == 0
            assert 0 <= moved["write"] - aside["write"] - kept["bits"] / 8 <= 2 * 16
        assert record["cycles"] < before["cycles"]


def test_c_in_strips_has_a_pass(run, capsys):
    """Its rows leave in pieces."""
    assert main(["schedule", "a.mtx", "b.mtx", *TINY, *AS_THEY_ARE]) == 0
    changes = {"load": "list", "mode": ONLY_B, "scratch_bytes": 0, "alternatives": [], "predicted": {}}
    scheme = json.loads(capsys.readouterr().out) | changes
    found = []
    for more in ({"T_i": 9}, {"T_i": 70, "strips": 5, "T_j": 30}):
        Path("strips.json").write_text(json.dumps(scheme | more))
        record = run("--engine", "model", "--scheme", "strips.json", "--mcf-c", "zvc", *CONVERTS_C)
        assert record["correct"] and record["scheme"]["strips"] == more.get("strips", 0)
        found.append(record["memory_formats"]["C"])
    assert [kept["conversion"] for kept in found] == ["overlapped", "pass"]
    assert not found[0]["cycles"] and found[1]["cycles"] and found[0]["bits"] == found[1]["bits"]


def test_a_b_and_c_on_their_way(run):
    words = ("--engine", "model", "--set", "buffer.bytes=16384", "--T_k", "60", "--T_i", "20", "--T_j", "90")
    words += given("zvc", "rlc", "coo")
    inside = (*CONVERTS_A, *CONVERTS_B, *CONVERTS_C)
    before, record = run(*words), run(*words, *inside)
    assert [of["conversion"] for of in record["memory_formats"].values()] == ["overlapped"] * 3
    assert record["energy_pJ"]["conversion"] == before["energy_pJ"]["conversion"] > 0
    assert record["cycles"] < before["cycles"] and record["dram_bytes"]["total"] < before["dram_bytes"]["total"]


@pytest.mark.parametrize("kind", CONVERTED)
def test_c_of_columns_of_pes_on_its_way_out(run, kind):
    """Weight-stationary PEs make pieces of its rows, which are joined as they leave."""
    words = ("--engine", "model", "--config", "flex_tiny", "--T_i", "30", "--T_k", "20", "--mcf-c", kind)
    before, record = run(*words), run(*words, *CONVERTS_C)
    kept = record["memory_formats"]["C"]
    assert record["correct"] and (before["memory_formats"]["C"]["conversion"], kept["conversion"]) == (
        "pass",
        "overlapped",
    )
    assert record["dram_bytes"]["C"]["write"] >= kept["bits"] / 8 and record["cycles"] < before["cycles"]


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize("value", ["int8", "bf16", "fp32"])
def test_values_of_c_on_its_way_out(run, value, kind):
    record = run("--engine", "model", "--value", value, "--mcf-c", kind, *CONVERTS_C, *AS_THEY_ARE)
    assert record["correct"] and record["memory_formats"]["C"]["conversion"] == "overlapped"


def test_predictions_of_c_on_its_way_out(capsys):
    """The cost model counts no pass, and nearly the bytes of C's format."""
    words = ("b.mtx", "--transpose-b", "--config", "tiny", "--json", "--tiling", "uniform", *AS_THEY_ARE)
    found = []
    for command, *more in (
        ("schedule", "--mcf-c", "csr"),
        ("schedule", "--mcf-c", "dense"),
        ("schedule", "--mcf-c", "dense", *CONVERTS_C),
        ("run", "--engine", "model", "--mcf-c", "csr"),
        ("run", "--engine", "model", "--mcf-c", "dense", *CONVERTS_C),
    ):
        assert main([command, *words, *more]) == 0
        found.append(json.loads(capsys.readouterr().out))
    alone, before, inside, as_csr, run = found
    assert alone["cycles"] == inside["cycles"] < before["cycles"]
    added = run["dram_bytes"]["total"] - as_csr["dram_bytes"]["total"]
    assert abs(inside["dram_bytes"] - alone["dram_bytes"] - added) < 0.1 * abs(added)
    assert run["scheme"]["predicted"] == inside["predicted"]


@pytest.mark.parametrize("kind", [*CONVERTED, "csc"])
def test_tilings_side_by_side_with_c_on_its_way_out(kind, capsys):
    """Each as `run` has it; tiles of harp differ in shape, so that rows of C leave in another order."""
    words = ("a.mtx", "b.mtx", *TINY, "--engine", "model", *CONVERTS_C, "--mcf-c", kind)
    tilings = ("hyte", "d2t2", "auto", "harp")
    assert main(["compare", *words, "--tiling", ",".join(tilings)]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["tiling"] for record in records if not record["hardware"]] == ["harp"]
    assert {record["tiling"] for record in records} == set(tilings)
    for record in records:
        kept = record["memory_formats"]["C"]
        overlapped = kind in CONVERTED and record["hardware"]
        assert record["correct"] and kept["conversion"] == ("overlapped" if overlapped else "pass")
        assert main(["run", *words, "--tiling", record["tiling"]]) == 0
        alone = json.loads(capsys.readouterr().out)
        for name in ("cycles", "dram_bytes", "memory_formats", "useful_bytes", "scheme"):
            assert record[name] == alone[name], name


@pytest.mark.slow
@pytest.mark.parametrize("order", ["kij", "jki"])
@pytest.mark.parametrize(
    "kinds", [("coo", "rlc", "zvc"), ("dense", "csc", "coo"), ("rlc", "coo", "dense"), ("zvc", "csr", "rlc")]
)
def test_c_on_its_way_out_on_the_hardware(run, kinds, order):
    """A and B have their passes."""
    record = run(*given(*kinds), *CONVERTS_C, "--order", order, "--T_i", "20", "--T_j", "40", "--T_k", "20")
    assert record["correct"] and record["model"]["traffic_equal"]
    assert record["memory_formats"]["C"]["conversion"] == "overlapped"
    names = [check["name"] for check in record["checks"]]
    assert not any(name.startswith("C from") for name in names)
    passes = [f"{t} from {kind} to csr" for t, kind in zip("AB", kinds, strict=False) if kind != "csr"]
    assert names[-len(passes) :] == passes
    assert abs(record["model"]["cycles"] - record["cycles"]) < 0.15 * record["cycles"]


def test_the_summary_says_which_way(capsys):
    words = ("a.mtx", "b.mtx", "--config", "tiny", "--engine", "model", "--no-result", "--out", "o", *AS_THEY_ARE)
    built = (*CONVERTS_A, *CONVERTS_C)
    assert main(["run", *words, *built, "--T_k", "60", "--T_i", "20", "--T_j", "90", *given("zvc", "csr", "rlc")]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if "kept as" in line}
    assert lines["A"].endswith("bits, converted on its way in") and lines["C"].endswith(
        "bits, converted on its way out"
    )
    assert "converted" not in lines["B"]


@pytest.mark.parametrize("tensor", ["a", "b", "c"])
@pytest.mark.parametrize("plain", [(), ("--set", "memory.records=plain")], ids=["left out", "given"])
def test_a_tensor_is_converted_where_records_are_packed_alone(tensor, plain, capsys):
    setting = f"memory.converts_{tensor}=true"
    assert main(["run", "a.mtx", "b.mtx", "--config", "tiny", *plain, "--set", setting]) == 2
    assert capsys.readouterr().err == f"fiberloom: --set {setting}: must be false where memory.records is plain\n"


def test_policies_leave_a_as_it_is_where_they_can(capsys):
    """No lists where A's format is one that the host does not write, and lists where they save a pass."""
    words = ("pyamg:airfoil", "--config", "edge", "--value", "fp32", "--engine", "model", "--json")
    for tiling in (("--tiling", "auto"), ("--tiling", "optimal")):
        loads = []
        for kind in ("csr", "coo", "zvc"):
            assert main(["run", *words, *tiling, "--mcf-a", kind]) == 0
            record = json.loads(capsys.readouterr().out)
            loads.append(record["scheme"]["load"])
            assert (record["memory_formats"]["A"]["cycles"] > 0) == (kind == "zvc")
        assert loads[1] in LISTS and loads[2] == "tile" and (tiling[1] == "optimal" or loads[0] == "tile")


@pytest.mark.parametrize("words", [("--tiling", "hyte"), ("--T_j", "40"), ("--tiling", "auto")])
def test_predictions_have_the_conversions(words, capsys):
    """Those of A and B as the run has them, that of C nearly."""
    common = ("b.mtx", "--transpose-b", "--config", "tiny", "--json", *words, *AS_THEY_ARE)
    found = []
    for command in ("schedule", "run"):
        for formats in (("--mcf-a", "csr"), given("zvc", "rlc", "coo")):
            assert main([command, *common, *formats, *(["--engine", "model"] if command == "run" else [])]) == 0
            found.append(json.loads(capsys.readouterr().out))
    alone, kept, _, run = found
    spent = {t: (of["cycles"], sum(of["dram_bytes"].values())) for t, of in run["memory_formats"].items()}
    for number, name in enumerate(("cycles", "dram_bytes")):
        exact, departure = spent["A"][number] + spent["B"][number], spent["C"][number]
        assert abs(kept[name] - alone[name] - exact - departure) <= 0.05 * departure, name
    if words[0] == "--tiling":
        assert run["scheme"]["predicted"] == kept["predicted"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--mcf-a", "bsr"), "--mcf-a bsr: must be one of dense, coo, csr, rlc, zvc, csc"),
        (
            ("--mcf-a", "zvc", "--mcf-c", "csc", "--set", "converter.conversions=zvc-any,any-coo"),
            "converter.conversions = zvc-any,any-coo: must have csr-csc",
        ),
        (("--mcf-c", "x"), "--mcf-c x: must be one of dense, coo, csr, rlc, zvc, csc"),
        (("--run-bits", "3"), "--run-bits 3: is of rlc: must be left out where no tensor is kept in it"),
        (("--mcf-b", "rlc", "--run-bits", "0"), "--run-bits 0: Bits of a run must be from 1 to 32, not 0"),
        (
            ("--mcf-b", "coo", "--set", "memory.records=plain"),
            "--mcf-b coo: --set memory.records=plain says otherwise: must be memory.records=packed",
        ),
    ],
)
def test_mistakes(words, text, capsys):
    assert main(["run", "a.mtx", "b.mtx", "--config", "tiny", *words]) == 2
    assert capsys.readouterr().err == f"fiberloom: {text}\n"


def test_tensors_that_the_simulation_does_not_take_are_refused_before_the_run(capsys, monkeypatch):
    """A has 2^24 + 1 places in a column, C as many in 4097 rows of 4096 and one more: 64 MiB and some bytes as dense values."""
    monkeypatch.setattr("sw.cli.pipeline.run_engine", lambda *arguments: pytest.fail("it ran"))
    rows = (1 << 24) + 1
    sp.save_npz("tall.npz", sp.csr_array(([1], ([5], [0])), shape=(rows, 1)))
    sp.save_npz("one.npz", sp.csr_array(([1], ([0], [0])), shape=(1, 1)))
    sp.save_npz("column.npz", sp.csr_array(([1], ([5], [0])), shape=(4097, 1)))
    sp.save_npz("row.npz", sp.csr_array(([1], ([0], [7])), shape=(1, 4097)))
    for a, b, tensor, places in (("tall", "one", "A", rows), ("column", "row", "C", 4097 * 4097)):
        words = (f"{a}.npz", f"{b}.npz", "--config", "tiny", f"--mcf-{tensor.lower()}", "dense")
        assert main(["run", *words]) == 2
        assert capsys.readouterr().err == (
            f"fiberloom: --mcf-{tensor.lower()} dense: {tensor} takes {4 * places:,} bytes: "
            "must take at most 67,108,864 with --engine rtl, or --engine model\n"
        )


def test_tilings_side_by_side(capsys):
    """Each tiling as `run` has it, conversions among its cycles; one that would write A anew is told and stops nothing."""
    words = ("a.mtx", "b.mtx", "--config", "tiny", *given("zvc", "rlc", "coo"), "--run-bits", "3")
    assert main(["compare", *words, "--tiling", "hyte,harp,d2t2", "--out", "o"]) == 0
    out, err = capsys.readouterr()
    assert err == (
        "fiberloom: note: harp: --mcf-a zvc: harp makes tiles of lists of rows, for which the host writes A anew: "
        "must be csr or coo\n"
    )
    records = json.loads(Path("o/results.json").read_text())
    assert [record["tiling"] for record in records] == ["hyte", "d2t2"]
    table = list(csv.DictReader(Path("o/table.csv").read_text().splitlines()))
    lines = out.splitlines()
    sizes = [f"{t} {of['format']} ({of['bits']:,} bits)" for t, of in records[0]["memory_formats"].items()]
    assert lines[2] == "kept as     " + ", ".join(sizes) and [size.split()[1] for size in sizes] == [
        "zvc",
        "rlc",
        "coo",
    ]
    assert lines[3].split()[7:10] == ["cycles", "convert", "ideal"]
    page = Path("o/comparison.html").read_text()
    assert "<td>zvc</td>" in page and "<td>rlc</td>" in page and "C leaves as coo." in page
    for record, row, line in zip(records, table, lines[4:], strict=False):
        assert main(["run", *words, "--engine", "model", "--tiling", record["tiling"], "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        for name in ("cycles", "dram_bytes", "memory_formats", "operands", "useful_bytes", "scheme"):
            assert record[name] == alone[name], name
        spent = sum(of["cycles"] for of in record["memory_formats"].values())
        assert 0 < spent < record["cycles"] and int(row["conversion_cycles"]) == spent
        moved = sum(sum(of["dram_bytes"].values()) for of in record["memory_formats"].values())
        assert int(row["conversion_bytes"]) == moved and f"  {spent:,}  " in line
        assert f'<td class="n">{spent:,}</td>' in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (("zvc", "rlc", "coo"), ("--order", "kij", "--T_i", "30", "--T_k", "20")),
        (("rlc", "csr", "csc"), (*CONVERTS_A, "--order", "jik", "--T_i", "20", "--T_k", "60")),
    ],
    ids=["passes", "on its way in"],
)
def test_weight_stationary_on_the_hardware(run, kinds, words):
    """Columns of B go to the PEs, so that B is converted to CSC."""
    record = run(*given(*kinds), *words, "--config", "flex_tiny")
    assert record["correct"] and record["model"]["traffic_equal"]
    overlapped = words[:2] == CONVERTS_A
    assert (record["memory_formats"]["A"]["conversion"] == "overlapped") == overlapped
    assert [check["name"] for check in record["checks"]][-3 + overlapped :] == [
        *([] if overlapped else [f"A from {kinds[0]} to csr"]),
        f"B from {kinds[1]} to csc",
        f"C from csr to {kinds[2]}",
    ]
    assert abs(record["model"]["cycles"] - record["cycles"]) < 0.08 * record["cycles"]


def test_weight_stationary_designs_read_csc(run):
    """B in CSC needs no conversion there, in CSR it does; the records are those that are useful."""
    words = ("--engine", "model", "--config", "flex_tiny")
    own, turned = (run(*words, "--mcf-b", kind) for kind in ("csc", "csr"))
    assert own["memory_formats"]["B"]["cycles"] == 0 < turned["memory_formats"]["B"]["cycles"]
    plain = run(*words, "--set", "memory.records=packed")
    assert own["useful_bytes"] == plain["useful_bytes"] and own["dram_bytes"] == plain["dram_bytes"]
    assert turned["useful_bytes"]["B"] == -(-turned["memory_formats"]["B"]["bits"] // 8)


@pytest.mark.slow
def test_tilings_side_by_side_on_the_hardware(capsys):
    words = ("a.mtx", "b.mtx", *TINY, *given("zvc", "rlc", "coo"), "--tiling", "hyte")
    assert main(["compare", *words, "--engine", "rtl"]) == 0
    (built,) = json.loads(capsys.readouterr().out)
    assert main(["compare", *words]) == 0
    (modelled,) = json.loads(capsys.readouterr().out)
    assert built["correct"] and built["dram_bytes"] == modelled["dram_bytes"] and built["seconds"]["simulate"] > 0
    assert [check["name"] for check in built["checks"]][-3:] == [
        "A from zvc to csr",
        "B from rlc to csr",
        "C from csr to coo",
    ]
    sizes = [{t: of["bits"] for t, of in record["memory_formats"].items()} for record in (built, modelled)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--mcf-a", "bsr"), "--mcf-a bsr: must be one of dense, coo, csr, rlc, zvc, csc"),
        (("--run-bits", "3"), "--run-bits 3: is of rlc: must be left out where no tensor is kept in it"),
        (
            ("--mcf-c", "csc", "--set", "converter.conversions=zvc-any,any-coo"),
            "converter.conversions = zvc-any,any-coo: must have csr-csc",
        ),
        (
            ("--mcf-a", "zvc", "--tiling", "harp"),
            "no tiling could be run: harp: --mcf-a zvc: harp makes tiles of lists of rows, for which the host writes A anew: "
            "must be csr or coo",
        ),
    ],
)
def test_mistakes_where_tilings_are_compared(words, text, capsys):
    assert main(["compare", "a.mtx", "b.mtx", "--config", "tiny", "--quiet", *words]) == 2
    assert capsys.readouterr().err == f"fiberloom: {text}\n"
