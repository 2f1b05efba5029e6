"""Default folders differ by command and engine, and none of them loses what another one wrote."""

import json
from pathlib import Path

import pytest

from sw.cli.app import main
from sw.cli.output import default_folder

TINY = ("mycielskian:4", "--config", "tiny", "--quiet")
GOLDEN = ("--engine", "golden")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_no_two_commands_or_engines_share_a_default_folder():
    engines = ("rtl", "model", "golden")
    folders = [default_folder("m", command, engine) for command in ("run", "compare") for engine in engines]
    folders += [default_folder("m", "schedule")]
    assert len(set(folders)) == 7
    assert default_folder("m", "run", "rtl") == Path("out/m")


def test_a_schedule_and_runs_lie_side_by_side():
    assert main(["schedule", *TINY, "--tiling", "swiftiles"]) == 0
    scheduled = Path("out/mycielskian4-scheme/scheme.json").read_text()
    assert main(["run", *TINY, *GOLDEN, "--order", "kji"]) == 0
    assert main(["run", *TINY, "--engine", "model", "--order", "jik"]) == 0
    assert main(["run", *TINY, *GOLDEN, "--scheme", "out/mycielskian4-scheme/scheme.json", "--out", "again"]) == 0
    assert Path("out/mycielskian4-scheme/scheme.json").read_text() == scheduled
    found = {name: json.loads(Path(name, "result.json").read_text()) for name in
             ("out/mycielskian4-golden", "out/mycielskian4-model", "again")}  # fmt: skip
    assert [(record["engine"], record["scheme"]["policy"], record["scheme"]["order"]) for record in found.values()] == [
        ("golden", "forced", "kji"),
        ("model", "forced", "jik"),
        ("golden", "swiftiles", json.loads(scheduled)["order"]),
    ]


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--tiling", "hyte"),
        ("--scheme", "o/scheme.json", "--T_k", "3"),
        ("--scheme", "o/scheme.json", "--order", "kji"),
        ("--scheme", "o/scheme.json", "--tuning"),
        ("--scheme", "other.json"),
    ],
    ids=" ".join,
)
def test_a_scheme_that_no_run_wrote_is_not_replaced(more, capsys):
    assert main(["schedule", *TINY, "--tiling", "swiftiles", "--out", "o"]) == 0
    scheduled = Path("o/scheme.json").read_text()
    Path("other.json").write_text(scheduled)
    assert main(["run", *TINY, *GOLDEN, "--out", "o", *more]) == 2
    assert capsys.readouterr().err == (
        "fiberloom: --out o: holds a scheme.json that no run wrote and that would be lost: give another folder, "
        "or run that scheme as it is with --scheme o/scheme.json\n"
    )
    assert [path.name for path in Path("o").iterdir()] == ["scheme.json"]
    assert Path("o/scheme.json").read_text() == scheduled


def test_a_scheme_run_as_it_is_may_have_its_run_beside_it():
    assert main(["schedule", *TINY, "--tiling", "swiftiles", "--out", "o"]) == 0
    scheduled = json.loads(Path("o/scheme.json").read_text())
    assert main(["run", *TINY, *GOLDEN, "--scheme", "o/scheme.json", "--out", "o"]) == 0
    assert json.loads(Path("o/scheme.json").read_text()) == scheduled
    # From here on it is the run's, and another run replaces all.
    assert main(["run", *TINY, *GOLDEN, "--order", "kji", "--out", "o"]) == 0
    assert json.loads(Path("o/scheme.json").read_text())["order"] == "kji"


def test_a_run_keeps_the_scheme_that_it_ran(capsys):
    assert main(["run", *TINY, *GOLDEN, "--out", "o"]) == 0
    before = {path.name: path.read_bytes() for path in Path("o").iterdir()}
    assert main(["schedule", *TINY, "--order", "kji", "--out", "o"]) == 2
    assert capsys.readouterr().err == (
        "fiberloom: --out o: holds the result.json of a run, whose scheme.json would be lost: give another folder\n"
    )
    assert {path.name: path.read_bytes() for path in Path("o").iterdir()} == before
