"""The command line as its users meet it: exit codes, one line for a mistake, one document for --json."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main
from tests.sw.cli.terminal import shown_on

ROOT = Path(__file__).parents[3]


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    return os.environ | {"PYTHONPATH": path} | more


def fiberloom(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sw", *arguments],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Runs a command that must fail with one line on standard error and nothing on standard output."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, code: int = 2) -> str:
        assert main(arguments) == code
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and err.endswith("\n")
        assert err.startswith("fiberloom: ")
        return err.removeprefix("fiberloom: ").strip()

    return call


GOLDEN = ("--config", "tiny", "--engine", "golden", "--T_k", "70")
FP32 = (*GOLDEN, "--value", "fp32")
WHOLE = ("--config", "tiny", "--engine", "golden", "--value", "fp32")
UNEQUAL = "A is 2 x 3 and B is {}: columns of A must equal rows of B"


@pytest.fixture
def matrix(tmp_path):
    path = tmp_path / "small.npz"
    sp.save_npz(path, sp.random_array((40, 40), density=0.1, rng=np.random.default_rng(2), format="csr"))
    return path.name


def test_run_writes_everything(tmp_path):
    done = fiberloom(tmp_path, "run", "pyamg:airfoil", *FP32, "--out", "here")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1].startswith("verified (golden, ")
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        "C.npz",
        "report.html",
        "result.json",
        "scheme.json",
    ]
    record = json.loads((tmp_path / "here/result.json").read_text())
    assert record["correct"] is True
    assert record["operands"]["A"] == {
        "name": "airfoil",
        "rows": 260,
        "cols": 260,
        "nnz": 1682,
        "source": "pyamg:airfoil",
        "symmetric_expanded": False,
    }
    assert record["macs"] == 11300 and record["nnz_c"] == 4462
    assert record["scheme"]["T_k"] == 70 and record["scheme"]["policy"] == "forced"
    assert record["command"] == "fiberloom run pyamg:airfoil " + " ".join(GOLDEN) + " --value fp32 --out here"
    c = sp.load_npz(tmp_path / "here/C.npz")
    assert c.shape == (260, 260) and c.nnz == 4462 and c.dtype == np.float32
    assert c.has_canonical_format and np.all(c.data != 0)
    scheme = json.loads((tmp_path / "here/scheme.json").read_text())
    assert scheme["T_k"] == 70
    page = (tmp_path / "here/report.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page and "Verified" in page


def test_the_model_knows_cycles_and_traffic(tmp_path):
    done = fiberloom(
        tmp_path, "run", "pyamg:airfoil", "--config", "tiny", "--value", "fp32", "--engine", "model", "--json"
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["cycles"] >= record["roofline_cycles"] > 0
    assert record["dram_bytes"]["total"] >= record["useful_bytes"]["total"]
    assert record["scheme"]["policy"] == "auto" and record["scheme"]["predicted"]["cycles"] > 0


def test_results_go_to_a_folder_named_after_a(tmp_path, matrix):
    assert fiberloom(tmp_path, "run", matrix, *FP32).returncode == 0
    assert (tmp_path / "out/small-golden/result.json").exists()


def test_json_is_one_document_and_writes_nothing(tmp_path, matrix):
    done = fiberloom(tmp_path, "run", matrix, *FP32, "--json")
    assert done.returncode == 0 and done.stderr == ""
    assert json.loads(done.stdout)["correct"] is True
    assert not (tmp_path / "out").exists()


def test_json_equals_the_file(tmp_path, matrix):
    done = fiberloom(tmp_path, "run", matrix, *FP32, "--json", "--out", "x")
    assert json.loads(done.stdout) == json.loads((tmp_path / "x/result.json").read_text())


def test_quiet_says_nothing(tmp_path, matrix):
    done = fiberloom(tmp_path, "run", matrix, *FP32, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_verbose_says_what_is_done_on_standard_error_alone(tmp_path, matrix):
    """Before the command's name and behind it: what is read, each phase with its seconds, and what is written."""
    done = fiberloom(tmp_path, "-v", "run", matrix, *FP32, "--json", "--out", "x")
    assert done.returncode == 0 and json.loads(done.stdout)["correct"] is True
    behind = fiberloom(tmp_path, "run", matrix, *FP32, "--json", "--out", "x", "--verbose")

    def without_seconds(text: str) -> list[str]:
        lines = [re.sub(r"[\d.]+ s\b", "# s", line) for line in text.splitlines() if "loop" not in line]
        return [line for line in lines if "result.json" not in line and "report.html" not in line]

    assert without_seconds(done.stderr) == without_seconds(behind.stderr)
    lines = done.stderr.splitlines()
    assert all(line.startswith("fiberloom: ") for line in lines)
    assert f"fiberloom:   A: {matrix}, 40 x 40, 160 nonzeros" in lines, done.stderr
    assert any(re.fullmatch(r"fiberloom: Choosing tiles took \d+\.\d\d s.*", line) for line in lines)
    size = (tmp_path / "x/C.npz").stat().st_size
    assert f"fiberloom: written x/C.npz, {size:,} bytes" in lines


def test_verbose_and_quiet_exclude_each_other(refused, capsys):
    for words in (["run", "x.mtx", "-v", "-q"], ["-v", "run", "x.mtx", "--quiet"], ["doctor", "--quiet", "--verbose"]):
        assert refused(*words) == "--verbose: not with --quiet"
    # What one command line asked for is no matter of the next one in this process.
    assert main(["data", "list", "zzz", "--quiet"]) == main(["data", "list", "zzz", "-v"])


def test_verbose_tells_where_an_error_of_a_plugin_comes_from(tmp_path, matrix):
    (tmp_path / "mine.py").write_text("def bad(a, b, design, seed):\n    return 1 // 0\n\nPOLICIES = {'bad': bad}\n")
    words = ["schedule", matrix, "--config", "tiny", "--value", "fp32", "--plugin", "mine.py", "--tiling", "bad"]
    short, full = fiberloom(tmp_path, *words), fiberloom(tmp_path, *words, "-v")
    assert short.returncode == full.returncode == 2
    assert short.stderr.count("\n") == 1 and "ZeroDivisionError" in short.stderr
    assert "Traceback (most recent call last)" in full.stderr
    assert full.stderr.splitlines()[-1] == short.stderr.strip()


def test_progress_only_on_a_terminal(tmp_path, matrix):
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "sw", "run", matrix, *FP32, "--json"],
        cwd=tmp_path,
        env=environment(TERM="xterm"),
        stdout=subprocess.PIPE,
        stderr=slave,
    )
    os.close(slave)
    shown = shown_on(master)
    text, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    assert json.loads(text)["correct"] is True
    assert b"Multiplying" in shown


def test_transpose_and_two_operands(tmp_path):
    rng = np.random.default_rng(1)
    dense = rng.integers(-9, 9, (6, 11))
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(dense))
    sp.save_npz(tmp_path / "b.npz", sp.csr_array(dense.T.copy()))
    common = ("--config", "tiny", "--engine", "golden", "--value", "int32", "--order", "jki")
    assert fiberloom(tmp_path, "run", "a.npz", *common, "--transpose-b", "--out", "t").returncode == 0
    assert fiberloom(tmp_path, "run", "a.npz", "b.npz", *common, "--out", "two").returncode == 0
    for folder in ("t", "two"):
        c = sp.load_npz(tmp_path / folder / "C.npz")
        assert c.dtype == np.int32
        assert np.array_equal(c.toarray(), dense @ dense.T)


@pytest.mark.parametrize(
    ("value", "dtype"), [("int8", np.int8), ("int16", np.int16), ("bf16", np.float32), ("fp32", np.float32)]
)
def test_value_types(tmp_path, value, dtype):
    """Small integers, which every type holds exactly with all their sums."""
    dense = np.random.default_rng(1).integers(-3, 4, (11, 11))
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(dense))
    done = fiberloom(tmp_path, "run", "a.npz", *GOLDEN, "--value", value, "--order", "jki", "--out", "o")
    assert done.returncode == 0, done.stderr
    c = sp.load_npz(tmp_path / "o/C.npz")
    assert c.dtype == dtype and np.array_equal(c.toarray(), dense @ dense)


def test_saturation(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(np.array([[100, 0], [0, -100]])))
    common = ("run", "a.npz", *GOLDEN, "--value", "int8", "--order", "jki")
    assert fiberloom(tmp_path, *common, "--out", "wrapped").returncode == 0
    assert fiberloom(tmp_path, *common, "--set", "pe.overflow=saturate", "--out", "clamped").returncode == 0
    assert sp.load_npz(tmp_path / "wrapped/C.npz").toarray().diagonal().tolist() == [16, 16]
    assert sp.load_npz(tmp_path / "clamped/C.npz").toarray().diagonal().tolist() == [127, 127]
    assert ", saturating</td>" in (tmp_path / "clamped/report.html").read_text()


def test_as_stored(tmp_path):
    (tmp_path / "s.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 1 3\n")
    common = ("run", "s.mtx", "--config", "tiny", "--engine", "golden", "--value", "fp32", "--order", "jki", "--json")
    whole = json.loads(fiberloom(tmp_path, *common).stdout)["operands"]["A"]
    stored = json.loads(fiberloom(tmp_path, *common, "--as-stored").stdout)["operands"]["A"]
    assert (whole["nnz"], whole["symmetric_expanded"]) == (3, True)
    assert (stored["nnz"], stored["symmetric_expanded"]) == (2, False)


@pytest.mark.parametrize("shape", [(1, 30, 1), (30, 1, 30), (1, 1, 1)])
@pytest.mark.parametrize("density", [0.0, 1.0])
def test_thin_and_empty_operands(tmp_path, shape, density):
    rng = np.random.default_rng(0)
    for name, size in (("a", shape[:2]), ("b", shape[1:])):
        sp.save_npz(tmp_path / f"{name}.npz", sp.random_array(size, density=density, rng=rng, format="csr"))
    done = fiberloom(tmp_path, "run", "a.npz", "b.npz", *GOLDEN[:4], "--order", "kij", "--value", "fp32", "--out", "o")
    assert done.returncode == 0, done.stderr
    c = sp.load_npz(tmp_path / "o/C.npz")
    assert c.shape == (shape[0], shape[2])
    assert c.nnz == (shape[0] * shape[2] if density else 0)


def test_scheme_goes_round(tmp_path, matrix):
    common = (matrix, "--config", "tiny", "--T_i", "8", "--T_j", "9", "--T_k", "10", "--order", "kji")
    printed = fiberloom(tmp_path, "schedule", *common, "--json")
    assert printed.returncode == 0, printed.stderr
    document = json.loads(printed.stdout)
    assert [document[name] for name in ("T_i", "T_j", "T_k", "order", "policy")] == [8, 9, 10, "kji", "forced"]
    assert set(document["buffer_bytes"]) == {"A", "B", "C"} and document["seconds"] >= 0
    assert document["cycles"] > 0 and document["dram_bytes"] > 0
    assert list(tmp_path.iterdir()) == [tmp_path / matrix]
    written = fiberloom(tmp_path, "schedule", *common)
    assert written.stdout.splitlines()[-1] == "written     out/small-scheme/scheme.json"
    (tmp_path / "printed.json").write_text(printed.stdout)
    for name in ("out/small-scheme/scheme.json", "printed.json"):
        done = fiberloom(tmp_path, "run", matrix, *GOLDEN[:4], "--value", "fp32", "--scheme", name, "--json")
        assert done.returncode == 0, done.stderr
        scheme = json.loads(done.stdout)["scheme"]
        assert (scheme["T_i"], scheme["T_j"], scheme["T_k"], scheme["order"]) == (8, 9, 10, "kji")


@pytest.mark.parametrize("policy", ["uniform", "prescient", "swiftiles", "drt", "harp", "hyte", "d2t2", "auto"])
def test_every_policy_schedules_and_predicts(tmp_path, matrix, policy, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["schedule", matrix, "--config", "tiny", "--tiling", policy, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["policy"] == policy
    assert document["cycles"] > 0 and document["dram_bytes"] > 0


def test_a_policy_decides_what_is_not_forced(tmp_path, matrix, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def schedule(*options: str) -> dict:
        assert main(["schedule", matrix, "--config", "tiny", "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    chosen = schedule("--tiling", "uniform")
    forced = schedule("--tiling", "uniform", "--order", "kji", "--T_k", "5")
    assert (forced["policy"], forced["order"], forced["T_k"]) == ("forced", "kji", 5)
    assert (forced["T_i"], forced["T_j"]) == (chosen["T_i"], chosen["T_j"]) != (chosen["T_i"], 40)
    assert schedule("--T_k", "5")["T_j"] == 40


# Mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run",), "Missing argument 'A'."),
        (("fly",), "no such command 'fly': must be one of run, schedule"),
        (("run", "small.npz", "--engine", "fpga"), "--engine fpga: must be one of rtl, model, golden"),
        (("run", "small.npz", "--config", "extensor"), "--engine rtl: the design extensor is for "),
        (("run", "small.npz", "--config", "nothing"), "--config nothing: no such design: must be one of "),
        (("run", "small.npz", "--set", "buffer.banks=3"), "--set buffer.banks=3: must be a power of two"),
        (("run", "small.npz", "--out", ""), "--out '': must be the name of a folder (. is the current one)"),
        (("schedule", "small.npz", "--out", ""), "--out '': must be the name of a folder"),
        (("generate", "--out", ""), "--out '': must be the name of a folder"),
        (("synth", "--out", ""), "--out '': must be the name of a folder"),
        (("tensor", "ttm", "x", "--out", ""), "--out '': must be the name of a folder"),
        (("run", "small.npz", "--value", "int32", "--set", "pe.value=fp32"), "--value int32: --set pe.value=fp32 says otherwise"),
        (("run", "small.npz", "--value", "int4"), "--set pe.value=int4: must be one of "),
        (("run", "small.npz", "--tiling", "magic"), "--tiling magic: must be one of uniform, prescient, swiftiles, drt, harp, "),
        (("schedule", "small.npz", "--tiling", "best", "--T_k", "9"), "--tiling best: must be one of uniform, "),
        (("run", "small.npz", "--tiling", "hyte", "--scheme", "x"), "--tiling hyte: must be left out with --scheme"),
        (("generate", "--config", "extensor"), "design extensor: tiers = ['model', 'golden']: has no hardware"),
        (("synth", "--config", "tiny", "--target", "asic"), "--target asic: must be one of generic, ecp5, xilinx, ice40"),
        (("run", "small.npz", "--bogus"), "No such option: --bogus"),
        (("run", "small.npz", "--T_i", "0"), "--T_i 0: must be at least 1"),
        (("schedule", "small.npz", "--seed", "-1"), "--seed -1: must be at least 0"),
        (("run", "none.mtx"), "none.mtx: no such file"),
        (("schedule", "none.mtx"), "none.mtx: no such file"),
        (("schedule", "small.npz", "--order", "abc"), "--order abc: must be one of ijk, ikj, jik"),
        (("run", "small.npz", *FP32, "--scheme", "none.json"), "--scheme none.json: cannot be read (No such file"),
        (("run", "small.npz", *FP32, "--scheme", "small.npz"), "--scheme small.npz: cannot be read ("),
        (("run", "small.npz", *FP32, "--scheme", "pipe"), "--scheme pipe: must be a file, not a folder, a pipe or a device"),
        (("run", "small.npz", "--config", "./pipe"), "--config ./pipe: must be a file, not a folder, a pipe or a device"),
        (("run", "small.npz", *FP32, "--out", "small.npz"), "--out small.npz: cannot be written (File exists)"),
        (("run", "small.npz", *GOLDEN, "--value", "int32"), "small.npz: value "),
        (("run", "wide.npz", *GOLDEN), UNEQUAL.format("2 x 3") + " (for A x A^T give --transpose-b)"),
        (("run", "wide.npz", "small.npz", *GOLDEN), UNEQUAL.format("40 x 40")),
        (("run", "hollow.npz", *GOLDEN), "hollow.npz: A is 0 x 5: both must be at least 1"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(refused, tmp_path, matrix, arguments, message):
    sp.save_npz(tmp_path / "wide.npz", sp.csr_array(np.ones((2, 3))))
    sp.save_npz(tmp_path / "hollow.npz", sp.csr_array((0, 5)))
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    assert refused(*arguments).startswith(message)
    assert sorted(tmp_path.iterdir()) == before


def test_a_mistake_in_another_process(tmp_path):
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n")
    done = fiberloom(tmp_path, "run", "m.mtx", "--config", "tiny")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fiberloom: m.mtx:3: value 'x': must be a real number\n"


def test_a_scheme_file_is_checked(refused, tmp_path, matrix):
    good = json.loads(fiberloom(tmp_path, "schedule", matrix, "--config", "tiny", "--order", "jki", "--json").stdout)
    for change, message in (
        ({"T_i": 0}, "scheme: T_i = 0: must be an integer of at least 1"),
        ({"order": "xyz"}, "scheme: order = 'xyz': must be one of"),
        ({"speed": 3}, "scheme: speed = 3: must be absent: the fields are"),
    ):
        (tmp_path / "bad.json").write_text(json.dumps(good | change))
        assert refused("run", matrix, *WHOLE, "--scheme", "bad.json").startswith(f"bad.json: {message}")
    (tmp_path / "bad.json").write_text("{")
    assert refused("run", matrix, *WHOLE, "--scheme", "bad.json").startswith("--scheme bad.json: not JSON (")
    (tmp_path / "bad.json").write_text("[" * 100_000)
    message = "--scheme bad.json: not a scheme (nested too deeply)"
    assert refused("run", matrix, *WHOLE, "--scheme", "bad.json") == message


def test_a_missing_tool_is_three(refused, monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    message = refused("run", "suitesparse:No/such", *GOLDEN, code=3)
    assert message.startswith("suitesparse:No/such: cannot reach https://sparse.tamu.edu/")


@pytest.mark.parametrize(("sent", "after"), [(signal.SIGINT, 0.0), (signal.SIGINT, 1.5), (signal.SIGTERM, 1.5)])
def test_interrupt_is_130_and_leaves_nothing(tmp_path, sent, after):
    child = subprocess.Popen(
        [sys.executable, "-m", "sw", "run", "mycielskian:13", *FP32, "--out", "o"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore interrupts, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "o").exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(after)
        child.send_signal(sent)
        out, err = child.communicate(timeout=120)
    finally:
        child.kill()
        child.communicate()
    # An interrupt inside an exec() at import time makes CPython die by the signal itself: 130 for a shell as well.
    assert child.returncode in (130, -signal.SIGINT), err
    assert "Traceback" not in err and out == ""
    if child.returncode == 130:
        assert err == "fiberloom: interrupted: nothing is kept; the same command starts anew\n"
        assert list(tmp_path.iterdir()) == []


def test_closed_pipe_is_no_error(tmp_path):
    command = f"{shlex.quote(sys.executable)} -m sw run --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr


def test_help_starts_without_heavy_packages(tmp_path):
    code = (
        "import sys; from sw.cli.app import main; main(['--help']); main(['run', '--help']); "
        "heavy = {'numpy', 'scipy', 'numba', 'amaranth', 'cocotb', 'jinja2'} & set(sys.modules); sys.exit(len(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "run" in done.stdout and "--transpose-b" in done.stdout


def test_schedule_needs_no_hardware_packages(tmp_path, matrix):
    code = (
        "import sys; from sw.cli.app import main; "
        f"assert main(['schedule', {matrix!r}, '--config', 'tiny', '--order', 'jki', '--json']) == 0; "
        "sys.exit(len({'amaranth', 'cocotb', 'pyosys'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
