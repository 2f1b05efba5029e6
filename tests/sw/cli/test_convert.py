"""`fiberloom convert` as its users meet it: every pair of formats, files, record, mistakes, damaged folders."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sw.cli.app import main
from sw.formats.storage import storage_format, storage_names

GOLDEN = ("--engine", "golden")
ARRAYS = {
    "dense": "values",
    "coo": "row_ids col_ids values",
    "csr": "row_ptrs col_ids values",
    "csc": "col_ptrs row_ids values",
    "rlc": "runs levels",
    "zvc": "mask values",
    "bsr": "row_ptrs col_ids blocks",
    "dia": "offsets diagonals",
    "ell": "col_ids values",
    "csf": "ptrs_1 ptrs_2 ids_0 ids_1 ids_2 values",
    "hicoo": "block_ptrs block_ids offsets values",
}
MATRICES = [name for name in storage_names() if 2 in storage_format(name).orders]
TENSORS = [name for name in storage_names() if 3 in storage_format(name).orders]
FIELDS = (
    "correct engine design value from to parameters shape nnz bits cycles roofline_cycles roofline_fraction dram_bytes "
    "seconds"
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with a matrix and a tensor."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(5)
    array = rng.integers(-9, 10, (11, 7)) * (rng.random((11, 7)) < 0.4)
    scipy.io.mmwrite("m.mtx", sp.coo_array(array))
    cube = rng.integers(1, 10, (5, 4, 6)) * (rng.random((5, 4, 6)) < 0.3)
    places = np.argwhere(cube)
    lines = [" ".join(str(c + 1) for c in place) + f" {cube[tuple(place)]}" for place in places]
    Path("t.tns").write_text("\n".join([*lines, "5 4 6 3"]) if not cube[4, 3, 5] else "\n".join(lines))


@pytest.fixture
def convert(capsys):
    """Runs a command that must succeed; gives the record."""

    def call(*words):
        assert main(["convert", *words, *GOLDEN, "--json"]) == 0, capsys.readouterr().err
        out, err = capsys.readouterr()
        assert err == ""
        return json.loads(out)

    return call


@pytest.fixture
def refused(capsys, tmp_path):
    """Runs a command that must fail with one line and leave nothing; gives the line."""

    def call(*words):
        before = sorted(tmp_path.rglob("*"))
        assert main(["convert", *words]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and err.startswith("fiberloom: ")
        assert sorted(tmp_path.rglob("*")) == before
        return err.removeprefix("fiberloom: ").strip()

    return call


def arrays_of(folder):
    with np.load(Path(folder) / "tensor.npz") as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize(("spec", "names"), [("m.mtx", MATRICES), ("t.tns", TENSORS)])
def test_every_format_to_every_other_and_back(convert, spec, names):
    convert(spec, "--from", "coo", "--to", "coo", "--out", "truth")
    truth = arrays_of("truth")
    for source in names:
        first = convert(spec, "--from", "coo", "--to", source, "--out", source)
        assert set(arrays_of(source)) == {*_names(source, spec), "shape"}
        for target in names:
            record = convert(source, "--from", source, "--to", target, "--out", "next")
            assert " ".join(record) == FIELDS and record["correct"] is True
            assert (record["from"], record["to"], record["cycles"]) == (source, target, None)
            assert record["bits"]["from"] == first["bits"]["to"]
            assert record == json.loads(Path("next/result.json").read_text())
            convert("next", "--from", target, "--to", "coo", "--out", "back")
            back = arrays_of("back")
            assert set(back) == set(truth)
            assert all(np.array_equal(back[name], truth[name]) for name in truth), (source, target)


def _names(kind, spec):
    return ARRAYS[kind].split() if kind != "coo" or spec == "m.mtx" else ["ids_0", "ids_1", "ids_2", "values"]


@pytest.mark.parametrize("name", ["coo", "csr", "csc", "bsr", "dia"])
def test_scipy_reads_what_is_written(convert, name):
    convert("m.mtx", "--from", "dense", "--to", name, "--out", "o", "--block", "3x2") if name == "bsr" else convert(
        "m.mtx", "--from", "dense", "--to", name, "--out", "o"
    )
    found = arrays_of("o")
    shape = tuple(found["shape"])
    if name == "coo":
        made = sp.coo_array((found["values"], (found["row_ids"], found["col_ids"])), shape=shape)
    elif name == "csr":
        made = sp.csr_array((found["values"], found["col_ids"], found["row_ptrs"]), shape=shape)
    elif name == "csc":
        made = sp.csc_array((found["values"], found["row_ids"], found["col_ptrs"]), shape=shape)
    elif name == "bsr":
        made = sp.bsr_array((found["blocks"], found["col_ids"], found["row_ptrs"]), shape=(12, 8))
    else:
        made = sp.dia_array((found["diagonals"], found["offsets"]), shape=shape)
    assert np.array_equal(made.toarray()[:11, :7], scipy.io.mmread("m.mtx").toarray())


def test_the_record_counts_bits_and_whole_beats(convert):
    record = convert("m.mtx", "--from", "csr", "--to", "zvc", "--value", "int8")
    nnz = scipy.io.mmread("m.mtx").nnz
    assert record["nnz"] == nnz and record["shape"] == [11, 7] and record["value"] == "int8"
    assert record["bits"] == {"from": 12 * nnz.bit_length() + nnz * (3 + 8), "to": 77 + 8 * nnz}
    regions = {"read": (12 * nnz.bit_length(), 11 * nnz), "write": (77, 8 * nnz)}
    assert record["dram_bytes"] == {way: sum(16 * -(-bits // 128) for bits in r) for way, r in regions.items()}
    assert record["roofline_fraction"] is None and record["roofline_cycles"] == sum(record["dram_bytes"].values()) // 16
    assert not Path("out").exists()


def test_parameters_are_kept_in_the_folder(convert):
    sp.save_npz("wide.npz", sp.csr_array(([1.0, 9.0], [0, 79], [0, 2]), shape=(1, 80)))
    assert convert("wide.npz", "--from", "coo", "--to", "rlc", "--out", "o")["parameters"] == {"rlc": {"run_bits": 5}}
    assert {name: a.tolist() for name, a in arrays_of("o").items()} == {
        "runs": [0, 31, 31, 14], "levels": [1, 0, 0, 9], "shape": [1, 80],
    }  # fmt: skip
    convert("wide.npz", "--from", "coo", "--to", "rlc", "--run-bits", "3", "--out", "o")
    # Without --run-bits the folder is read, and taken, as it was written.
    assert convert("o", "--from", "rlc", "--to", "coo")["parameters"] == {"rlc": {"run_bits": 3}}
    convert("t.tns", "--from", "coo", "--to", "hicoo", "--block", "2x4x8", "--out", "h")
    assert convert("h", "--from", "hicoo", "--to", "csf")["parameters"] == {"hicoo": {"block": [2, 4, 8]}}


def test_stored_zeros(convert):
    stored = sp.csr_array((np.array([0.0, 2.0]), np.array([1, 2]), np.array([0, 2, 2])), shape=(2, 4))
    sp.save_npz("z.npz", stored)
    for kind in MATRICES:
        convert("z.npz", "--from", "csr", "--to", kind, "--out", "k")
        kept = convert("k", "--from", kind, "--to", "coo")["nnz"]
        assert kept == (2 if kind in ("coo", "csr", "csc", "ell") else 1), kind


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1)])
@pytest.mark.parametrize("full", [False, True])
def test_smallest_matrices(convert, shape, full):
    sp.save_npz("s.npz", sp.csr_array(np.full(shape, float(full))))
    for kind in MATRICES:
        assert convert("s.npz", "--from", "csr", "--to", kind, "--out", "k")["correct"] is True
        assert convert("k", "--from", kind, "--to", "csr")["nnz"] == (40 if shape != (1, 1) else 1) * full


def test_largest_coordinates(convert, refused):
    size = 2**32
    np.savez("far.npz", coords=np.array([[0, size - 1]] * 3), values=np.ones(2), shape=np.array([size] * 3))
    for kind in ("coo", "csf", "hicoo"):
        convert("far.npz", "--from", "coo", "--to", kind, "--out", kind)
        convert(kind, "--from", kind, "--to", "coo", "--out", "back")
        assert arrays_of("back")["ids_2"].tolist() == [0, size - 1]
    for kind in ("rlc", "zvc"):
        assert "far.npz: " in refused("far.npz", "--from", "coo", "--to", kind, *GOLDEN)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("m.mtx", "--to", "csr"), "Missing option '--from'."),
        (
            ("m.mtx", "--from", "csr", "--to", "ell"),
            "--to ell: the hardware has dense, coo, csr, rlc, zvc, csc, bsr, csf: others need --engine golden",
        ),
        (
            ("m.mtx", "--from", "bsr", "--to", "csr"),
            "--from bsr: the hardware has dense, coo, csr, rlc, zvc, csc: others need --engine golden",
        ),
        (
            ("m.mtx", "--from", "csr", "--to", "bsr", "--block", "4097x4096"),
            "--block 4097x4096: must be of at most 16,777,216 values, or --engine golden",
        ),
        (
            ("t.tns", "--from", "coo", "--to", "rlc"),
            "--engine rtl: X is a tensor of order 3: must be a matrix, or --engine golden",
        ),
        (
            ("t.tns", "--from", "rlc", "--to", "csf"),
            "--from rlc: the hardware makes csf of dense, coo: others need --engine golden",
        ),
        (
            ("t.tns", "--from", "coo", "--to", "coo"),
            "--engine rtl: X is a tensor of order 3: must be a matrix, or --engine golden",
        ),
        (
            ("m.mtx", "--from", "dense", "--to", "csf"),
            "--to csf: X is a matrix: must be one of bsr, coo, csc, csr",
        ),
        (
            ("t.tns", "--from", "coo", "--to", "csf", "--set", "converter.conversions=dense-csf"),
            "converter.conversions = dense-csf: must have coo-csf",
        ),
        (("m.mtx", "--from", "coo", "--to", "csr", "--engine", "model"), "--engine model: must be rtl or golden"),
        (("m.mtx", "--from", "cscr", "--to", "csr", *GOLDEN), "--from cscr: must be one of bsr, coo, csc, "),
        (("m.mtx", "--from", "coo", "--to", "", *GOLDEN), "--to : must be one of bsr, coo, csc, "),
        (
            ("m.mtx", "--from", "coo", "--to", "csf", *GOLDEN),
            "--to csf: X is a matrix: must be one of bsr, coo, csc, csr",
        ),
        (
            ("t.tns", "--from", "csr", "--to", "coo", *GOLDEN),
            "--from csr: X is a tensor of order 3: must be one of coo, csf",
        ),
        (
            ("m.mtx", "--from", "coo", "--to", "rlc", "--run-bits", "33", *GOLDEN),
            "--run-bits 33: Bits of a run must be from",
        ),
        (
            ("m.mtx", "--from", "coo", "--to", "rlc", "--run-bits", "0", *GOLDEN),
            "--run-bits 0: Bits of a run must be from",
        ),
        (
            ("m.mtx", "--from", "coo", "--to", "csr", "--run-bits", "4", *GOLDEN),
            "--run-bits 4: is of rlc: must be left out",
        ),
        (
            ("m.mtx", "--from", "coo", "--to", "bsr", "--block", "2", *GOLDEN),
            "--block 2: must be sides from 1, as in 2x2",
        ),
        (
            ("m.mtx", "--from", "coo", "--to", "bsr", "--block", "2x0", *GOLDEN),
            "--block 2x0: Block must be two numbers from",
        ),
        (
            ("m.mtx", "--from", "coo", "--to", "bsr", "--block", "2x2x2", *GOLDEN),
            "--block 2x2x2: Block must be two numbers",
        ),
        (("m.mtx", "--from", "coo", "--to", "bsr", "--block", "999999x999999", *GOLDEN), "m.mtx: as bsr: arrays of "),
        (("m.mtx", "--from", "coo", "--to", "csr", "--value", "int4", *GOLDEN), "pe.value"),
        (("m.mtx", "--from", "coo", "--to", "csr", "--config", "none", *GOLDEN), "none"),
        (("missing.mtx", "--from", "coo", "--to", "csr", *GOLDEN), "missing.mtx: "),
        (
            ("empty", "--from", "coo", "--to", "csr", *GOLDEN),
            "empty: is a folder without result.json: must be the folder",
        ),
        (("hollow.npz", "--from", "coo", "--to", "csr", *GOLDEN), "hollow.npz: "),
        (("half.mtx", "--from", "coo", "--to", "csr", "--value", "int8", *GOLDEN), "half.mtx: "),
        (("other", "--from", "coo", "--to", "csr", *GOLDEN), "other: "),
        (
            ("m.mtx", "--from", "coo", "--to", "csr", "--out", "other", *GOLDEN),
            "--out other: holds the result.json of an",
        ),
        (("m.mtx", "--from", "coo", "--to", "csr", "--out", "m.mtx", *GOLDEN), "--out m.mtx: cannot be written"),
        (("wide.npz", "--from", "coo", "--to", "dense", "--out", "o", *GOLDEN), "wide.npz: as dense: arrays of "),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(refused, words, message):
    Path("empty").mkdir()
    Path("other").mkdir()
    Path("other/result.json").write_text("{}")
    sp.save_npz("hollow.npz", sp.csr_array((0, 5)))
    sp.save_npz("wide.npz", sp.csr_array(([1.0], ([0], [99_999])), shape=(100_000, 100_000)))
    Path("half.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 0.5\n")
    line = refused(*words)
    assert line.startswith(message) or message in ("pe.value", "none"), line
    assert message.split(":")[0].split(" ")[-1] in line


def damaged(arrays):
    """Name of what is wrong, and arrays with it."""
    for name, array in arrays.items():
        yield f"no {name}", {other: kept for other, kept in arrays.items() if other != name}
        changed = {
            "text": array.astype(str),
            "complex": array.astype(np.complex64),
            "short": array[:-1],
            "long": np.concatenate([array, array[-1:]]),
            "flat": array.reshape(-1, 1, 1, 1, 1),
            "backwards": array[::-1].copy(),
            "more": array + np.ones((), array.dtype),
            "less": array - np.ones((), array.dtype),
            "huge": np.full_like(array, np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.inf),
            "least": np.full_like(array, np.iinfo(array.dtype).min if array.dtype.kind in "iu" else 0),
            "none": array[:0],
            "objects": array.astype(object),
        }
        for what, new in changed.items():
            yield f"{what} {name}", arrays | {name: new}


@pytest.mark.parametrize("kind", storage_names())
def test_damaged_folders_are_refused_or_hold_another_tensor(convert, capsys, kind):
    """No damage ends in a traceback, in a partial folder, or in a result that is not what the folder says."""
    order = min(storage_format(kind).orders)
    convert("m.mtx" if order == 2 else "t.tns", "--from", "coo", "--to", kind, "--out", "d")
    codes = []
    for what, arrays in damaged(arrays_of("d")):
        np.savez("d/tensor.npz", **arrays)
        code = main(["convert", "d", "--from", kind, "--to", "coo", "--out", "o", *GOLDEN, "--json"])
        out, err = capsys.readouterr()
        codes.append(code)
        assert code in (0, 2), (what, err)
        if code == 2:
            assert out == "" and err.count("\n") == 1 and err.startswith("fiberloom: d: "), (what, err)
            assert not Path("o").exists(), what
        else:
            assert json.loads(out)["correct"] is True, what
            for file in Path("o").iterdir():
                file.unlink()
            Path("o").rmdir()
    assert codes.count(2) > len(codes) // 2


def test_files_that_are_no_archive(convert, refused):
    convert("m.mtx", "--from", "coo", "--to", "csr", "--out", "d")
    whole, record = Path("d/tensor.npz").read_bytes(), json.loads(Path("d/result.json").read_text())
    for content in (b"", b"x", whole[: len(whole) // 2], whole[:-1]):
        Path("d/tensor.npz").write_bytes(content)
        assert refused("d", "--from", "csr", "--to", "coo", *GOLDEN).startswith("d: cannot be read (")
    with zipfile.ZipFile("d/tensor.npz", "w") as archive:
        archive.writestr("values.npy", b"no array")
    assert refused("d", "--from", "csr", "--to", "coo", *GOLDEN).startswith("d: ")
    Path("d/tensor.npz").write_bytes(whole)
    for change in ({"to": "cscr"}, {"to": None}, {"value": "fp8"}, {"value": 3}, {"parameters": {"csr": {"x": 1}}}):
        Path("d/result.json").write_text(json.dumps(record | change))
        assert refused("d", "--from", "csr", "--to", "coo", *GOLDEN).startswith("d: ")
    for text in ("", "[]", "[" * 100_000, "\0"):
        Path("d/result.json").write_text(text)
        assert refused("d", "--from", "csr", "--to", "coo", *GOLDEN).startswith("d: ")


def test_a_failed_write_keeps_what_was_there(convert, monkeypatch, capsys):
    convert("m.mtx", "--from", "coo", "--to", "csr", "--out", "o")
    before = {path.name: path.read_bytes() for path in Path("o").iterdir()}

    def fails(*_, **__):
        raise OSError(28, "No space left on device", "tensor.npz")

    monkeypatch.setattr(np, "savez_compressed", fails)
    assert main(["convert", "m.mtx", "--from", "coo", "--to", "dense", "--out", "o", *GOLDEN]) == 2
    assert main(["convert", "m.mtx", "--from", "coo", "--to", "dense", "--out", "new", *GOLDEN]) == 2
    assert capsys.readouterr().err.count("\n") == 2
    assert {path.name: path.read_bytes() for path in Path("o").iterdir()} == before and not Path("new").exists()


def test_the_folder_may_be_its_own_result(convert):
    convert("m.mtx", "--from", "coo", "--to", "csr", "--out", "o")
    before = arrays_of("o")
    convert("o", "--from", "csr", "--to", "dia", "--out", "o")
    convert("o", "--from", "dia", "--to", "csr", "--out", "o")
    assert all(np.array_equal(array, before[name]) for name, array in arrays_of("o").items())


def test_the_summary(capsys):
    assert main(["convert", "m.mtx", "--from", "coo", "--to", "csr", *GOLDEN]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("X           m.mtx (11 x 7, ") and lines[3].startswith("verified (golden, ")
    assert sorted(path.name for path in Path("out/m-csr").iterdir()) == ["result.json", "tensor.npz"]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("csr", "rlc"),
        ("dense", "zvc"),
        ("zvc", "coo"),
        ("rlc", "csr"),
        ("coo", "dense"),
        ("csr", "csc"),
        ("csc", "rlc"),
        ("csr", "bsr"),
        ("csc", "bsr"),
        ("dense", "csf"),
        ("coo", "csf"),
    ],
)
def test_hardware_writes_what_golden_writes(source, target, capsys, convert):
    """The same arrays; cycles and bytes are those of the run."""
    run = ("--run-bits", "3") if "rlc" in (source, target) else ("--block", "3x2") if target == "bsr" else ()
    words = ("t.tns" if target == "csf" else "m.mtx", "--from", source, "--to", target, *run, "--config", "tiny")
    golden = convert(*words, "--out", "golden")
    assert main(["convert", *words, "--out", "rtl", "--json"]) == 0, capsys.readouterr().err
    record = json.loads(capsys.readouterr().out)
    assert list(record) == FIELDS.split() and record["correct"] and record["engine"] == "rtl"
    assert record["cycles"] > record["roofline_cycles"] > 0
    assert record["roofline_fraction"] == pytest.approx(record["roofline_cycles"] / record["cycles"])
    for name in ("shape", "nnz", "bits", "dram_bytes", "parameters"):
        assert record[name] == golden[name]
    with np.load("golden/tensor.npz") as wanted, np.load("rtl/tensor.npz") as found:
        assert set(found) == set(wanted)
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
