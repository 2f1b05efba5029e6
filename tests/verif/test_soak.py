"""The soak's own tests: the same case from the same name, and a failure that does not go unseen."""

import json
import signal
import subprocess
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sw.golden.spgemm import multiply
from sw.model.machine import run_model
from sw.runtime.result import EngineResult
from sw.tiling.strips import strips_of
from verif.soak import batch
from verif.soak.__main__ import main
from verif.soak.batch import Result
from verif.soak.cases import CASES_PER_DESIGN, Case, make_case
from verif.soak.compare import disagreements


def test_a_case_is_a_function_of_its_name() -> None:
    for number in (0, 3, CASES_PER_DESIGN + 1):
        one, again = make_case(5, number), make_case(5, number)
        assert (one.text, one.design, one.scheme, one.timing) == (again.text, again.design, again.scheme, again.timing)
        for first, second in ((one.a, again.a), (one.b, again.b)):
            assert np.array_equal(first.coordinates, second.coordinates) and np.array_equal(first.bits, second.bits)
    assert make_case(5, 0).text != make_case(6, 0).text != make_case(6, 1).text


def test_cases_are_legal_and_differ() -> None:
    cases = [make_case(8, number * 67) for number in range(40)]
    for case in cases:
        case.scheme.validate(case.design, case.a.rows, case.b.columns, case.a.columns)
    assert len({case.design.pe.arithmetic for case in cases}) > 3
    assert len({case.scheme.order for case in cases}) == 6
    assert {case.scheme.tuning for case in cases} == {True, False}
    assert {bool(case.scheme.windows) for case in cases} == {True, False}
    assert {case.scheme.listed for case in cases} == {True, False}
    assert {strips_of(case.scheme, case.b.columns) for case in cases if case.scheme.listed} == {True, False}
    assert len({case.design.model_dump_json() for case in cases}) > 5


def untuned(seed: int) -> Case:
    """A case with a result, whose golden walk is that of the scheme."""
    for number in range(100):
        case = make_case(seed, number)
        if not case.scheme.tuning and case.a.nnz > 20 and case.b.nnz > 20:
            return case
    raise AssertionError("no such case")


def by_golden(broken: bool) -> Any:
    """Stands for the hardware: what golden and model say, with the lowest bit of one value flipped if ``broken``."""

    def run(design: Any, scheme: Any, a: Any, b: Any, **options: Any) -> EngineResult:
        c = multiply(a, b, design.pe.merge_radix, design.pe.arithmetic, scheme).structural
        bits = c.bits.copy()
        bits[-1] ^= broken
        return replace(run_model(design, scheme, a, b), c=replace(c, bits=bits))

    return run


def test_one_wrong_bit_is_seen() -> None:
    case = untuned(3)
    assert disagreements(case, by_golden(broken=False)) == []
    (problem, *_) = disagreements(case, by_golden(broken=True))
    assert problem.startswith("golden: ")


def test_one_byte_of_traffic_is_seen() -> None:
    def hardware(*arguments: Any, **options: Any) -> EngineResult:
        result = by_golden(broken=False)(*arguments)
        return replace(result, dram_bytes=result.dram_bytes | {"B": result.dram_bytes["B"] | {"read": 1}})

    (problem,) = disagreements(untuned(3), hardware)
    assert problem.startswith("traffic: ")


def test_a_failure_is_printed_with_its_command_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planted(seed: int, design: int, until: float, cache: Path) -> Generator[Result, None, None]:
        yield Result(f"{seed}:{design * CASES_PER_DESIGN}", "fine", [], 0.1)
        yield Result(f"{seed}:{design * CASES_PER_DESIGN + 1}", "wrong", ["macs: hardware 1, model 2"], 0.1)

    monkeypatch.setattr(batch, "stream_batch", planted)
    assert main(["--minutes", "0.002", "--seed", "9", "--jobs", "1", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "FAILED 9:1: wrong" in said and "python -m verif.soak --case 9:1" in said
    assert said.splitlines()[-1].startswith("seed 9: ")
    assert json.loads((tmp_path / "failures.jsonl").read_text().splitlines()[0])["case"] == "9:1"


def test_a_process_that_dies_is_a_failure_of_its_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'import sys; print(\'{"begun": "1:7"}\', flush=True); sys.exit(3)'
    started = batch.subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        return started([command[0], "-c", said], **options)

    monkeypatch.setattr(batch.subprocess, "Popen", popen)
    (result,) = batch.stream_batch(1, 0, time.time() + 60, tmp_path)
    assert result.case == "1:7" and "exit code 3" in result.problems[0]


def test_what_is_under_way_at_the_end_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'import time; print(\'{"begun": "1:7"}\', flush=True); time.sleep(60)'
    started = batch.subprocess.Popen
    monkeypatch.setattr(batch, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(batch.subprocess, "Popen", lambda command, **given: started([command[0], "-c", said], **given))
    assert list(batch.stream_batch(1, 0, time.time(), tmp_path)) == []
    monkeypatch.setattr(batch, "HANG_SECONDS", 0.0)
    (result,) = batch.stream_batch(1, 0, time.time(), tmp_path)
    assert result.problems[0].startswith("not done after")


def test_an_interrupt_ends_in_order(tmp_path: Path) -> None:
    """Though a design is being compiled at that moment."""
    command = [batch.sys.executable, "-u", "-m", "verif.soak", "--minutes", "5", "--seed", "1", "--jobs", "1"]

    def heed() -> None:
        """Also where the tests themselves run in the background, which leaves interrupts ignored."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen([*command, "--out", str(tmp_path)], stdout=subprocess.PIPE, text=True, preexec_fn=heed)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("seed 1: ")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130 and said.startswith("interrupted; seed 1: 0 cases on 0 designs")
