"""``import fiberloom``: functions give what their commands print, take arrays as they are, and fail with the command's line."""

import copy
import inspect
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import fiberloom
from sw.cli import evaluate, pipeline
from sw.cli.app import available, main
from sw.cli.from_python import _parameters
from sw.golden.compare import Check
from tests.test_documents import fences
from tests.tools import needs_tool

ROOT = Path(__file__).parents[1]
FUNCTIONS = ("run", "schedule", "compare", "convert", "formats", "generate", "analyze")
# What two runs of one command differ in.
SECONDS = {"seconds", "schedule_seconds", "run_seconds", "total_seconds", "total_regret"}
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the reader's matrices: A is 30 x 30, F is 12 x 30."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    scipy.io.mmwrite("A.mtx", matrix(30, 30, 1))
    sp.save_npz("F.npz", matrix(12, 30, 2))
    return tmp_path


def matrix(rows: int, columns: int, seed: int) -> sp.csr_array:
    """Whole numbers from 1, without any symmetry."""
    found = sp.random_array((rows, columns), density=0.2, rng=np.random.default_rng(seed), format="csr")
    found.data = np.rint(9 * found.data) + 1
    return found


def without_seconds(record: Any) -> Any:
    if isinstance(record, dict):
        return {name: without_seconds(value) for name, value in record.items() if name not in SECONDS}
    return [without_seconds(value) for value in record] if isinstance(record, list) else record


def printed(words: list[str], monkeypatch, capsys) -> Any:
    """The document of a command, called as in a shell."""
    monkeypatch.setattr(sys, "argv", ["fiberloom", *words])
    assert main(words) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


SMALL = {"config": "tiny"}
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "run by defaults but the engine": (lambda: fiberloom.run("A.mtx", engine="golden"), "run A.mtx --engine golden"),
    "run with options": (
        lambda: fiberloom.run(
            "A.mtx", Path("F.npz"), **SMALL, engine="model", set=["pe.merge_radix=4"], value="fp32", T_i=8, T_k=16,
            order="jki", tuning=False, transpose_b=True, seed=3,
        ),
        "run A.mtx F.npz --config tiny --set pe.merge_radix=4 --value fp32 --engine model --T_i 8 --T_k 16 --order jki "
        "--no-tuning --transpose-b --seed 3",
    ),
    "run with formats": (
        lambda: fiberloom.run("A.mtx", **SMALL, engine="model", mcf_a="rlc", mcf_c="zvc", run_bits=4),
        "run A.mtx --config tiny --engine model --mcf-a rlc --mcf-c zvc --run-bits 4",
    ),
    "schedule": (lambda: fiberloom.schedule("A.mtx"), "schedule A.mtx"),
    "schedule with options": (
        lambda: fiberloom.schedule("A.mtx", **SMALL, tiling="swiftiles", row_order="rcm", seed=5),
        "schedule A.mtx --config tiny --tiling swiftiles --row-order rcm --seed 5",
    ),
    "compare": (
        lambda: fiberloom.compare("A.mtx", **SMALL, tiling=["uniform", "hyte+tuning", "optimal"], budget=5),
        "compare A.mtx --config tiny --tiling uniform --tiling hyte+tuning --tiling optimal --budget 5",
    ),
    "convert": (
        lambda: fiberloom.convert("A.mtx", "csr", "bsr", block="2x3", engine="golden"),
        "convert A.mtx --from csr --to bsr --block 2x3 --engine golden",
    ),
    "formats": (lambda: fiberloom.formats("F.npz", "A.mtx"), "formats F.npz A.mtx"),
    "formats of a shape": (
        lambda: fiberloom.formats(
            shape="30x40x50x6", density_a=0.01, kernel="mttkrp", machine="sw", config="tiny", set={"dram.bandwidth_gbps": 1},
            value="int8", mcf_a="csf", acf_b="dense", run_bits=3, array={"pe_bytes": 64, "row_search": True},
            constant=["dram_bit=4", "divide=1.5"],
        ),
        "formats --shape 30x40x50x6 --density-a 0.01 --kernel mttkrp --machine sw --config tiny --set dram.bandwidth_gbps=1 "
        "--value int8 --mcf-a csf --acf-b dense --run-bits 3 --array pe_bytes=64 --array row_search=true --constant dram_bit=4 "
        "--constant divide=1.5",
    ),
    "generate": (
        lambda: fiberloom.generate(block="stream_skid", param={"width": 9}),
        "generate --block stream_skid --param width=9",
    ),
    "blocks": (lambda: fiberloom.generate("tiny", list_blocks=True), "generate --config tiny --list-blocks"),
    "analyze": (
        lambda: fiberloom.analyze("sparse_product", set={"problem.instance.K": 64}, explain="Buffer.A"),
        "analyze sparse_product --set problem.instance.K=64 --explain Buffer.A",
    ),
    "analyze a design": (
        lambda: fiberloom.analyze("banded:60:2:seed=1", design="tiny", density="banded"),
        "analyze banded:60:2:seed=1 --design tiny --density banded",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_its_command_prints(name, monkeypatch, capsys):
    """The command line in the record is that of the command, too."""
    call, line = CALLS[name]
    result = call()
    assert tuple(capsys.readouterr()) == ("", "")
    document = printed([*line.split(), "--json"], monkeypatch, capsys)
    for record in document if isinstance(document, list) else [document]:
        if "command" in record:
            assert record["command"] == f"fiberloom {line} --json"
            record["command"] = f"fiberloom {line}"
    assert without_seconds(result.record) == without_seconds(document)
    assert result.to_dict() == result.record and result.to_dict() is not result.record
    assert result.correct


@pytest.mark.parametrize("name", FUNCTIONS)
def test_keywords_and_defaults_are_those_of_the_options(name):
    options = {
        key: each.default
        for key, each in _parameters(name).items()
        if key not in ("json", "quiet", "q", "verbose", "v")
    }
    known = {
        key.rstrip("_"): None if each.default is inspect.Parameter.empty else each.default
        for key, each in inspect.signature(getattr(fiberloom, name)).parameters.items()
        if key not in ("A", "B", "X", "specs")
    }
    assert known == options
    assert list(options).index("set") >= 0


def test_every_command_of_these_is_a_function():
    assert set(FUNCTIONS) <= set(available()) & set(fiberloom.__all__)


def test_the_program_that_calls_is_left_as_it_is(monkeypatch):
    """What it does with its exceptions and arguments stays its own; a shell's completion is not meant for it."""
    before = sys.excepthook, list(sys.argv)
    monkeypatch.setenv("_FIBERLOOM_COMPLETE", "complete_bash")
    fiberloom.schedule("A.mtx", **SMALL, transpose_a=np.True_, T_i=np.int64(8), tuning=np.False_)
    assert (sys.excepthook, sys.argv) == before


def test_no_progress_is_shown_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fiberloom.run("A.mtx", **SMALL, engine="model")
    assert tuple(capsys.readouterr()) == ("", "")


def test_a_wrong_product_is_a_result(monkeypatch):
    wrong = Check(name="values", correct=False, detail="1 differs", compared=1)
    monkeypatch.setattr(pipeline, "verify", lambda *arguments, **options: [wrong])
    result = fiberloom.run("A.mtx", **SMALL, engine="golden")
    assert not result.correct and result.record["checks"][0]["detail"] == "1 differs"


def test_an_interrupt_stays_one(monkeypatch):
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fiberloom.compare("A.mtx", **SMALL)


def test_importing_it_loads_nothing():
    code = (
        "import fiberloom, sys; print(fiberloom.__version__, *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    version, *loaded = done.stdout.split()
    heavy = {"amaranth", "numba", "numpy", "pandas", "pydantic", "rich", "rtl", "scipy", "sw", "typer", "yaml"}
    assert version[0].isdigit() and not heavy & set(loaded)


def same_run(operand: Any, expected: Any) -> None:
    """The product of the operand with A.mtx, against SciPy's and against that of the file."""
    result = fiberloom.run(operand, "A.mtx", **SMALL, engine="model")
    assert without_seconds(result.record)["cycles"] == expected.cycles and result.dram_bytes == expected.dram_bytes
    product = matrix(12, 30, 2) @ matrix(30, 30, 1)
    assert isinstance(result.C, sp.csr_array) and result.C.dtype == np.int32
    assert (result.C != product).nnz == 0 and result.C.nnz == product.nnz
    assert result.record["operands"]["A"] == expected.record["operands"]["A"] | {"name": "A", "source": "array A"}


@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_format_of_scipy_is_taken_as_it_is(kind):
    expected = fiberloom.run("F.npz", "A.mtx", **SMALL, engine="model")
    for name in FORMATS:
        given = getattr(sp, f"{name}_{kind}")(matrix(12, 30, 2))
        before = copy.deepcopy(given)
        same_run(given, expected)
        assert type(given) is type(before) and given.dtype == before.dtype and given.shape == before.shape
        assert (given.toarray() == before.toarray()).all()
        for part in ("data", "indices", "indptr", "row", "col", "offsets"):
            if isinstance(getattr(before, part, None), np.ndarray):
                assert getattr(given, part).tolist() == getattr(before, part).tolist(), (name, part)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, np.float64, ">f4", ">i4"])
def test_numpy_arrays_are_taken_as_they_are(dtype):
    expected = fiberloom.run("F.npz", "A.mtx", **SMALL, engine="model")
    for order in "CF":
        given = matrix(12, 30, 2).toarray().astype(dtype, order=order)
        given.flags.writeable = False
        same_run(given, expected)


def test_unsorted_rows_and_duplicates_are_summed_in_a_copy():
    given = sp.csr_array((np.array([1, 2, 3, 4]), np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4])), shape=(3, 3))
    result = fiberloom.run(given, **SMALL, engine="golden")
    assert (result.C.toarray() == given.toarray() @ given.toarray()).all()
    assert given.indices.tolist() == [2, 0, 2, 1] and given.data.tolist() == [1, 2, 3, 4]
    loaded = fiberloom.load(given)
    assert loaded.indices.tolist() == [0, 2, 1] and loaded.data.tolist() == [2, 4, 4]


def test_a_loaded_operand_is_the_callers_own():
    given = matrix(5, 7, 3)
    loaded = fiberloom.load(given)
    loaded.data[:] = 0
    assert given.data.min() >= 1
    assert (fiberloom.load("F.npz") != matrix(12, 30, 2)).nnz == 0


@needs_tool("sparse")
@pytest.mark.parametrize("name", ["coo", "gcxs", "dok"])
def test_every_format_of_pydata_is_taken(name):
    import sparse

    given = sparse.COO.from_numpy(matrix(12, 30, 2).toarray()).asformat(name)
    same_run(given, fiberloom.run("F.npz", "A.mtx", **SMALL, engine="model"))
    other = sparse.COO.from_numpy(np.ones((3, 3)), fill_value=1)
    with pytest.raises(fiberloom.InputError, match=r"^array A: what is not stored is 1\.0: must be 0$"):
        fiberloom.run(other, **SMALL)


@needs_tool("sparse")
def test_tensors_of_pydata_are_those_of_numpy():
    import sparse

    given = np.random.default_rng(4).integers(0, 3, (4, 5, 6))
    records = [
        fiberloom.convert(one, "coo", "csf", engine="golden", value="int8")
        for one in (given, sparse.COO.from_numpy(given), sparse.GCXS.from_numpy(given))
    ]
    assert [one.record["shape"] for one in records] == [[4, 5, 6]] * 3
    assert len({json.dumps(without_seconds(one.record)) for one in records}) == 1


def test_the_arrays_of_a_format_are_given():
    given = np.array([[0, 5, 0], [7, 0, 9]])
    result = fiberloom.convert(given, "csr", "coo", engine="golden", value="int16")
    rows, columns, values = (next(a for n, a in result.arrays.items() if word in n) for word in ("row", "col", "val"))
    assert (sp.coo_array((values, (rows, columns)), shape=(2, 3)).toarray() == given).all()
    assert result.cycles is None and result.C is None and result.dram_bytes == sum(result.record["dram_bytes"].values())
    tensor = np.arange(24).reshape(2, 3, 4) % 5
    assert fiberloom.convert(tensor, "coo", "csf", engine="golden").record["nnz"] == np.count_nonzero(tensor)


def test_what_an_engine_has_not_is_none():
    golden = fiberloom.run("A.mtx", **SMALL, engine="golden")
    assert golden.cycles is None and golden.dram_bytes is golden.energy_pJ is None and golden.C is not None
    scheme = fiberloom.schedule("A.mtx", **SMALL)
    assert scheme.C is None and scheme.cycles > 0 and scheme.dram_bytes == scheme.record["dram_bytes"]
    compared = fiberloom.compare("A.mtx", **SMALL, engine="golden", tiling="uniform")
    assert compared.C is None and compared.cycles == compared.dram_bytes == compared.energy_pJ == {"uniform": None}


def test_a_comparison_has_a_result_for_each_tiling():
    compared = fiberloom.compare("A.mtx", **SMALL, tiling=("uniform", "hyte"))
    assert list(compared) == ["uniform", "hyte"] and len(compared) == 2 and not compared.failures
    alone = fiberloom.run("A.mtx", **SMALL, engine="model", tiling="hyte")
    assert compared["hyte"].cycles == compared.cycles["hyte"] == alone.cycles
    assert compared.dram_bytes["hyte"] == alone.dram_bytes
    assert compared.energy_pJ["hyte"] == alone.energy_pJ == alone.record["energy_pJ"] is not None


def test_a_tiling_that_fails_is_a_warning_and_stops_nothing(capsys):
    with pytest.warns(RuntimeWarning, match=r"^drt: cuts into 6 tiles: at most 4 are run"):
        compared = fiberloom.compare("A.mtx", **SMALL, tiling="uniform,drt", most_tiles=4)
    assert list(compared) == ["uniform"] and list(compared.failures) == ["drt"]
    assert tuple(capsys.readouterr()) == ("", "")


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no file": (lambda: fiberloom.run("no.mtx"), "run no.mtx"),
    "an option for an operand": (lambda: fiberloom.run("--help"), "run -- --help"),
    "shapes": (lambda: fiberloom.run("A.mtx", "F.npz"), "run A.mtx F.npz"),
    "engine": (lambda: fiberloom.run("A.mtx", engine="gpu"), "run A.mtx --engine gpu"),
    "text for a number": (lambda: fiberloom.schedule("A.mtx", T_i="four"), "schedule A.mtx --T_i four"),
    "a share of a tile": (lambda: fiberloom.schedule("A.mtx", T_i=4.5), "schedule A.mtx --T_i 4.5"),
    "truth for a number": (lambda: fiberloom.schedule("A.mtx", T_i=True), "schedule A.mtx --T_i true"),
    "seed": (lambda: fiberloom.schedule("A.mtx", seed=-1), "schedule A.mtx --seed -1"),
    "scheme": (lambda: fiberloom.run("A.mtx", scheme="A.mtx"), "run A.mtx --scheme A.mtx"),
    "field": (lambda: fiberloom.run("A.mtx", set={"pe.colour": 3}), "run A.mtx --set pe.colour=3"),
    "tiling": (lambda: fiberloom.compare("A.mtx", tiling=["no"]), "compare A.mtx --tiling no"),
    "all fail": (
        lambda: fiberloom.compare("A.mtx", tiling="uniform", config="tiny", most_tiles=0),
        "compare A.mtx --tiling uniform --config tiny --most-tiles 0",
    ),
    "format": (lambda: fiberloom.convert("A.mtx", "csr", "png"), "convert A.mtx --from csr --to png"),
    "no format": (lambda: fiberloom.convert("A.mtx", None, "csr"), "convert A.mtx --to csr"),  # type: ignore[arg-type]
    "formats": (lambda: fiberloom.formats("A.mtx", kernel="gemm"), "formats A.mtx --kernel gemm"),
    "no operand": (lambda: fiberloom.formats(), "formats"),
    "block": (lambda: fiberloom.generate(block="no"), "generate --block no"),
    "specification": (lambda: fiberloom.analyze("no.yaml"), "analyze no.yaml"),
    "no specification": (lambda: fiberloom.analyze(), "analyze"),
    "out": (lambda: fiberloom.schedule("A.mtx", out=""), "schedule A.mtx --out="),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_has_the_line_of_the_command(name, here, capsys):
    call, line = WRONG[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of the tiling that fails
        with pytest.raises(fiberloom.InputError) as caught:
            call()
    assert tuple(capsys.readouterr()) == ("", "")
    assert main(line.split()) == 2
    (*_, said) = capsys.readouterr().err.splitlines()
    assert said == f"fiberloom: {caught.value}"
    assert isinstance(caught.value, ValueError) and caught.value.__suppress_context__


ALLOWED = "must be a SciPy or pydata/sparse array, a NumPy array, a file or a name"
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "list": (lambda: fiberloom.run([[1]]), f"array A: is of type list: {ALLOWED}"),
    "number": (lambda: fiberloom.run("A.mtx", 3), f"array B: is of type int: {ALLOWED}"),
    "half": (
        lambda: fiberloom.run(np.array([[0.5]]), **SMALL),
        "array A: value 0.5 at row 1, column 1 is not an integer: int32 designs need integers (use --value fp32)",
    ),
    "complex": (
        lambda: fiberloom.run(np.array([[1j]]), **SMALL),
        "array A: values are complex (complex128): must be real, integer or pattern",
    ),
    "text": (
        lambda: fiberloom.run(np.array([["a"]])),
        "array A: values are <U1: must be real, integer or pattern",
    ),
    "objects": (
        lambda: fiberloom.run(np.array([[object()]])),
        "array A: values are object: must be real, integer or pattern",
    ),
    "masked": (
        lambda: fiberloom.run(np.ma.masked_array([[1]])),
        f"array A: is masked: {ALLOWED}, as A.filled(0) makes of it",
    ),
    "order 3": (
        lambda: fiberloom.run(np.ones((2, 2, 2))),
        "array A: 3 dimensions: an operand must be a matrix",
    ),
    "order 1": (lambda: fiberloom.load(np.ones(2)), "array A: 1 dimensions: an operand must be a matrix"),
    "order 1 of SciPy": (
        lambda: fiberloom.run(sp.coo_array(np.ones(3))),
        "array A: 1 dimensions: an operand must be a matrix",
    ),
    "empty": (lambda: fiberloom.run(np.ones((0, 3))), "array A: A is 0 x 3: both must be at least 1"),
    "shapes": (
        lambda: fiberloom.run(np.ones((2, 3))),
        "A is 2 x 3 and B is 2 x 3: columns of A must equal rows of B (for A x A^T give --transpose-b)",
    ),
    "engines": (lambda: fiberloom.run("A.mtx", engine=["rtl"]), "--engine ['rtl']: must be one value"),
    "flag": (
        lambda: fiberloom.run("A.mtx", transpose_a="yes"),
        "--transpose-a 'yes': must be True or False",
    ),
    "order 2": (
        lambda: fiberloom.formats(np.ones((2, 3)), kernel="spttm"),
        "array A: 2 ranks: spttm takes a tensor of order 3",
    ),
    "order 4": (
        lambda: fiberloom.convert(np.ones((2, 2, 2, 2)), "coo", "csf"),
        "array X: 4 ranks: must be 2 or 3",
    ),
    "specification": (lambda: fiberloom.analyze(3), "3: must be the file of a specification or a shipped name"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arrays_and_values_are_refused_in_a_line(name, capsys):
    call, line = REFUSED[name]
    with pytest.raises(fiberloom.InputError) as caught:
        call()
    assert str(caught.value) == line and tuple(capsys.readouterr()) == ("", "")


def test_files_are_written_where_they_are_asked_for_alone(here):
    before = {path.name for path in here.iterdir()}
    fiberloom.run("A.mtx", **SMALL, engine="golden")
    fiberloom.schedule("A.mtx", **SMALL)
    assert {path.name for path in here.iterdir()} - {"cache"} == before
    chosen = fiberloom.schedule("A.mtx", **SMALL, out=here / "mine")
    again = fiberloom.run("A.mtx", **SMALL, engine="model", scheme=here / "mine" / "scheme.json", out="run")
    same = ("policy", "order", "T_i", "T_j", "T_k", "load")
    assert {name: again.record["scheme"][name] for name in same} == {name: chosen.record[name] for name in same}
    assert (sp.load_npz("run/C.npz") != again.C).nnz == 0
    with pytest.raises(fiberloom.InputError):
        fiberloom.run("A.mtx", **SMALL, tiling="no", out="nothing")
    assert not Path("nothing").exists()


class Cells(HTMLParser):
    """Texts of a table's cells; tags must match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        assert not self.tags

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.tags.pop() == tag

    def handle_data(self, data):
        self.rows[-1].append(data)


def test_notebooks_show_a_table():
    result = fiberloom.run("A.mtx", **SMALL, engine="model")
    rows = dict(Cells(result._repr_html_()).rows)
    assert rows["cycles"] == f"{result.cycles:,}" and rows["dram_bytes"] == f"{result.dram_bytes:,}"
    assert rows["error"] == "-" and rows["correct"] == "True"
    assert Cells(fiberloom.Result({"name": "<b>&"})._repr_html_()).rows[1] == ["name", "<b>&"]
    compared = fiberloom.compare("A.mtx", **SMALL, tiling="uniform,hyte")
    head, *rest = Cells(compared._repr_html_()).rows
    assert [row[head.index("cycles")] for row in rest] == [f"{cycles:,}" for cycles in compared.cycles.values()]
    assert f"cycles={result.cycles:,}" in repr(result) and "uniform" in repr(compared)


@needs_tool("pandas")
def test_frames_have_the_record():
    result = fiberloom.run("A.mtx", **SMALL, engine="model")
    (row,) = result.to_frame().to_dict("records")
    assert row["cycles"] == result.cycles and row["dram_bytes.total"] == result.dram_bytes
    assert row["energy_pJ.total"] == result.energy_pJ["total"]
    compared = fiberloom.compare("A.mtx", **SMALL, tiling="uniform,hyte", out="o")
    frame = compared.to_frame()
    head = Path("o/table.csv").read_text().splitlines()[0].split(",")
    assert list(frame.columns) == head and frame["cycles"].tolist() == list(compared.cycles.values())


def test_tensors_have_formats():
    ranking = fiberloom.formats(np.ones((2, 3, 4)), np.ones((3, 5)), kernel="mttkrp")
    assert ranking[0]["mcf"] == {"A": "dense", "B": "dense", "O": "dense"}


def test_a_ranking_is_a_sequence_of_candidates():
    ranking = fiberloom.formats("A.mtx", mcf_o="dense")
    assert len(ranking) == len(ranking.record) == 6 * 6 * 3 * 2 and ranking[0] is ranking.record[0]
    assert list(ranking) == sorted(ranking, key=lambda each: each["edp"])
    head, *rows = Cells(ranking._repr_html_()).rows
    assert head[:2] == ["MCF A", "MCF B"] and len(rows) == len(ranking) and ranking[0]["mcf"]["A"] in repr(ranking)


@needs_tool("pandas")
def test_the_frame_of_a_ranking_has_a_row_for_each_candidate():
    ranking = fiberloom.formats("A.mtx", machine="eie")
    frame = ranking.to_frame()
    assert frame["edp"].tolist() == [each["edp"] for each in ranking] and set(frame["mcf.A"]) == {"csr", "dense"}


def test_frames_without_pandas_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for result in (fiberloom.Result({}), fiberloom.Comparison([], correct=True, failures={})):
        with pytest.raises(fiberloom.MissingToolError, match=r"^to_frame\(\) needs pandas: pip install pandas$"):
            result.to_frame()


def test_the_examples_of_the_manual_run(here):
    """One after the other, in one program."""
    Path("A.mtx").rename("my.mtx")
    examples = fences(ROOT / "docs" / "python.md", "python")
    assert len(examples) >= 5
    names: dict[str, Any] = {}
    for code in examples:
        exec(compile(code, "docs/python.md", "exec"), names)
    assert names["result"].correct
