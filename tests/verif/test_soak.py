"""The soak's own tests: the same case from the same name, what is drawn, and failures that do not go unseen."""

import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sw.engine_result import EngineResult
from sw.formats.storage import storage_format
from sw.golden.spgemm import multiply
from sw.model.machine import run_model
from sw.runtime.conversion import expected_conversion, golden_image
from sw.runtime.converter import SOURCES
from sw.runtime.simulation.loader import BusTiming
from sw.scheme.terms import TENSORS
from tests.verif.fault_bench import machine as tiny_machine
from verif.soak import batch, cases, conversions, run
from verif.soak.__main__ import NOTHING_RUN, main
from verif.soak.batch import Built, Result
from verif.soak.cases import CASES_PER_DESIGN, DISTURBANCES, PLACEMENTS, PLANS, Case, Disturbance, Step, make_case
from verif.soak.compare import Expected, differences
from verif.soak.conversions import Kept, convert
from verif.soak.designs import LARGE_EVERY, design_of, is_large
from verif.soak.machine import Machine, Placed, placed_of
from verif.soak.run import run_case
from verif.soak.schemes import KINDS
from verif.soak.tally import DIMENSIONS, Tally, tags_of
from verif.soak.wrong import corrupt
from verif.stored import tells_rows, wrong_product

DRAWN = 400
DESIGNS = 30


@cache
def drawn() -> tuple[Case, ...]:
    """Cases of several designs, as a soak that gets through eight of each would have."""
    return tuple(make_case(77, n // 8 * CASES_PER_DESIGN + n % 8) for n in range(DRAWN))


def test_a_case_is_a_function_of_its_name() -> None:
    for number in (0, 3, CASES_PER_DESIGN + 1):
        one, again = make_case(5, number), make_case(5, number)
        assert (one.text, one.design, one.timing, one.steps) == (again.text, again.design, again.timing, again.steps)
        for first, second in zip(one.products, again.products, strict=True):
            assert first.scheme == second.scheme
            for left, right in ((first.a, second.a), (first.b, second.b)):
                assert np.array_equal(left.coordinates, right.coordinates) and np.array_equal(left.bits, right.bits)
    assert make_case(5, 0).text != make_case(6, 0).text != make_case(6, 1).text


def test_cases_are_legal() -> None:
    for case in drawn()[:80]:
        assert case.steps[-1].disturbance is None, (
            "the last run tells whether those before it have left anything behind"
        )
        for product in case.products:
            product.scheme.validate(case.design, product.a.rows, product.b.columns, product.a.columns)
            lines = case.design.line_bytes
            bases = product.bases(lines)
            ends = {tensor: bases[tensor] + product.scheme.buffer_bytes[tensor] // lines for tensor in TENSORS}
            order = sorted(TENSORS, key=lambda tensor: (bases[tensor], ends[tensor]))
            assert all(ends[one] <= bases[next_one] for one, next_one in zip(order, order[1:], strict=False))
            assert ends[order[-1]] <= case.design.sram_lines
            for matrix in (product.a, product.b):
                rises = np.diff(matrix.coordinates.astype(np.int64)) > 0
                inside = np.ones(max(0, matrix.nnz - 1), np.bool_)
                starts = matrix.pointers[1:-1]
                inside[starts[(starts > 0) & (starts < matrix.nnz)] - 1] = False
                assert rises[inside].all() and (matrix.nnz == 0 or matrix.coordinates.max() < matrix.columns)


# Least share of the products or cases, in percent, that have this.
SHARES = {
    "scheme": dict.fromkeys(KINDS, 4),  # a fifth of the designs has no lists and no tuning
    "order": dict.fromkeys(("ijk", "ikj", "jik", "jki", "kij", "kji"), 5),
    "plan": dict.fromkeys(PLANS, 15),
    "operands": {"small": 8, "medium": 8, "large": 3, "hubs": 3, "long": 3, "wide": 3},
    "values": dict.fromkeys(("NaN", "infinite", "subnormal", "far apart", "extreme"), 2),
    "addresses": dict.fromkeys(PLACEMENTS, 12),
    "read latency": {"700": 5, "2000": 5, "5000": 5},
    "acknowledgements": {"late and reordered": 15, "late": 8, "prompt": 20},
    "A's region": {"4 lines": 30, "more": 15},
    "partitions": dict.fromkeys(("ABC", "ACB", "BAC", "BCA", "CAB", "CBA"), 5),
    "scratch fibers": {"on chip": 15, "in memory": 15},
    "faults": dict.fromkeys(DISTURBANCES, 5),
    "longest row": {"1000-9999": 4},
    "longest side": {"1000-9999": 15},
    "MACs": {"100-999": 10, "1000-9999": 15},
}


def test_every_region_is_drawn_often_enough() -> None:
    tally = Tally()
    for case in drawn():
        tally.add(tags_of(case))
    for dimension, wanted in SHARES.items():
        counts = tally.counts[dimension]
        for value, percent in wanted.items():
            share = 100 * counts[value] / sum(counts.values())
            assert share >= percent, f"{dimension} {value}: {share:.1f} % of {dict(counts)}"
    products = [product for case in drawn() for product in case.products]
    assert np.median([product.macs for product in products]) > 500
    tiles = [np.prod(p.scheme.tiles_per_rank(p.a.rows, p.b.columns, p.a.columns)) for p in products]
    assert sum(count >= 100 for count in tiles) > 0.05 * len(tiles) and max(tiles) >= 1000
    assert max(max(p.a.nnz, p.b.nnz) for p in products) > 1 << 16
    assert max(p.b.columns for p in products) > 1 << 17
    assert sum(bool(step.freezes) for case in drawn() for step in case.steps) > 10
    assert max(freeze.cycles for case in drawn() for step in case.steps for freeze in step.freezes) > 1 << 16


def test_designs_span_what_hardware_is_for() -> None:
    """Two large ones and eight small ones of each seed."""
    found = [design_of(seed, number) for seed in range(DESIGNS) for number in range(2 * LARGE_EVERY)]
    counts = Tally()
    for design in found:
        counts.add({"pes": [str(design.pe.count)], "radix": [str(design.pe.merge_radix)]})
        counts.add({"bits": [str(design.axi.data_bits)], "beats": [str(design.axi.burst_beats)]})
        counts.add({"bytes": [str(design.buffer.bytes)], "banks": [str(design.buffer.banks)]})
        counts.add({"arithmetic": [design.pe.arithmetic], "address": [str(design.axi.address_bits)]})
    wanted = {
        "pes": range(1, 9),
        "radix": (2, 4, 8, 16, 32, 64),
        "bits": (128, 256, 512, 1024),
        "beats": (1, 4, 8, 16, 32, 64, 128, 256),
        "bytes": (2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144),
        "banks": (1, 2, 4, 8, 16, 32, 64),
        "address": (32, 33, 40, 48, 64),
    }
    for name, values in wanted.items():
        assert set(map(int, counts.counts[name])) >= set(values), name
    assert len(counts.counts["arithmetic"]) == 10
    large = {
        design_of(seed, number).model_dump_json() for seed in range(DESIGNS) for number in range(40) if is_large(number)
    }
    assert len(large) == 8, "large designs are the same for every seed, so that they are compiled once"
    assert len({design.model_dump_json() for design in found}) > 6 * DESIGNS


def untuned(seed: int) -> Case:
    """A case with a result, whose golden walk is that of the scheme."""
    for number in range(100):
        case = make_case(seed, number)
        product = case.products[0]
        if not product.scheme.tuning and product.macs > 20:
            return case
    raise AssertionError("no such case")


def by_golden(case: Case, broken: bool) -> EngineResult:
    """Stands for the hardware: what golden and model say, with the lowest bit of one value flipped if ``broken``."""
    design, product = case.design, case.products[0]
    golden = multiply(product.a, product.b, design.pe.merge_radix, design.pe.arithmetic, product.scheme)
    kind = dict(product.formats).get("c", "csr")
    c = golden.structural if storage_format(kind).keeps_zeros else golden.canonical
    bits = c.bits.copy()
    bits[-1] ^= broken
    return replace(run_model(design, product.planned(design)), c=replace(c, bits=bits))


def test_one_wrong_bit_is_seen() -> None:
    case = untuned(3)
    expected = Expected(case.design, case.products[0], run_model)
    assert differences(expected, by_golden(case, broken=False)) == []
    (problem, *_) = differences(expected, by_golden(case, broken=True))
    assert problem.startswith("golden: ")


def test_one_byte_of_traffic_is_seen() -> None:
    case = untuned(3)
    result = by_golden(case, broken=False)
    assert result.dram_bytes is not None
    result = replace(result, dram_bytes=result.dram_bytes | {"B": result.dram_bytes["B"] | {"read": 1}})
    (problem,) = differences(Expected(case.design, case.products[0], run_model), result)
    assert problem.startswith("traffic: ")


@pytest.fixture
def on_tiny(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Case]:
    """Small cases of the smallest design, which other tests have compiled."""
    design, _ = tiny_machine()
    monkeypatch.setattr(cases, "design_of", lambda seed, turn: design)
    monkeypatch.setattr(cases, "MOST_CYCLES", 20_000)

    def make(wanted: Callable[[Case], bool] = lambda case: True) -> Case:
        return next(case for case in (make_case(21, n) for n in range(300)) if wanted(case))

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_the_product_of_memory_is_that_of_the_operands(on_tiny: Callable[..., Case], kind: str) -> None:
    """In every kind of scheme; with another column, it is another one. What is corrupted can be restored."""
    case = on_tiny(lambda case: case.products[0].kind == kind and case.products[0].macs > 50)
    (one, *_) = placed_of(case)
    c = Expected(case.design, case.products[0], run_model).golden.structural
    assert tells_rows(one.image, case.design)
    assert wrong_product(one.image, c, case.design) is None
    other = c.coordinates.copy()
    other[-1] ^= 1
    assert wrong_product(one.image, replace(c, coordinates=other), case.design) is not None
    rng = random.Random(kind)
    found = Counter()
    for _ in range(30):
        corruption = corrupt(one, rng)
        assert corruption is not None
        found[corruption.judged, bool(one.changed())] += 1
        one.restore()
        assert not one.changed()
    assert found[True, True] > 10, found


def test_a_wrong_column_is_no_product(on_tiny: Callable[..., Case]) -> None:
    """Of A or of B outside the shape: whatever C is, the run should have ended with an error."""
    case = on_tiny(lambda case: case.products[0].kind == "B kept" and case.products[0].macs > 50)
    product = case.products[0]
    c = Expected(case.design, product, run_model).golden.structural
    (one, *_) = placed_of(case)
    used = int(np.flatnonzero(np.diff(product.b.pointers)[product.a.coordinates])[0])
    row = int(product.a.coordinates[used])
    for name, element, column in (
        ("a_elements", used, product.a.columns),
        ("b_elements", int(product.b.pointers[row]), product.b.columns),
    ):
        one.image.regions[name].data.view("<u4").reshape(-1, 2)[element, 0] = column
        problem = wrong_product(one.image, c, case.design)
        assert problem is not None and "lie outside" in problem
        one.restore()


def plain(case: Case) -> bool:
    product = case.products[0]
    return case.plan == "one run" and product.macs > 100 and case.timing.read_latency < 100


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_a_case_is_the_same_again(on_tiny: Callable[..., Case], monkeypatch: pytest.MonkeyPatch, plan: str) -> None:
    """Cycles, tiles and how each spoiled run ended, though some of the time goes into looking whether anything moves."""
    _, library = tiny_machine()
    monkeypatch.setattr(run, "LOOK_CYCLES", 700)
    monkeypatch.setattr(batch, "library_for", lambda case: library)
    case = on_tiny(lambda case: case.plan == plan and case.timing.seed > 0)
    seed, number = map(int, case.name.split(":"))
    one, again = batch.run_one(seed, number), batch.run_one(seed, number)
    assert one.problems == []
    assert one.cycles > 0 and replace(one, seconds=0) == replace(again, seconds=0)
    assert set(one.tags) == set(DIMENSIONS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["read error", "write error", "pin reset", "soft reset"])
def test_what_is_disturbed_is_judged(on_tiny: Callable[..., Case], kind: str) -> None:
    _, library = tiny_machine()
    case = on_tiny(plain)
    steps = (Step(0), *(Step(0, Disturbance(kind, share, 5)) for share in (0.0, 0.5, 0.99)), Step(0))
    verdict = run_case(replace(case, steps=steps), library)
    assert verdict.problems == []
    ends = {"read error": {"axi_read"}, "write error": {"axi_write"}}.get(kind, {"in the run", "after the end"})
    assert {outcome for what, outcome in verdict.outcomes if what == kind} <= ends
    assert [outcome for what, outcome in verdict.outcomes if what == "none"] == ["good", "good"]


def test_every_format_of_every_tensor_is_drawn() -> None:
    """On packed designs only."""
    found = Counter((kept.tensor, kept.formats[0]) for case in drawn() for kept in case.conversions)
    assert set(found) == {(tensor, kind) for tensor in TENSORS for kind in SOURCES if kind != "csr"}
    assert all(case.design.memory.records == "packed" for case in drawn() if case.conversions)
    assert {kept.run_bits for case in drawn() for kept in case.conversions} == {1, 3, 5, 8}


@pytest.mark.slow
@pytest.mark.parametrize("tensor", TENSORS)
def test_what_is_wrong_in_a_conversion_is_seen(
    on_tiny: Callable[..., Case], monkeypatch: pytest.MonkeyPatch, tensor: str
) -> None:
    """One bit of what it writes, one byte of what it moves. Without either, nothing is."""
    case = on_tiny(plain)
    design, matrix = case.design, case.products[0].a
    kept = Kept(product=0, tensor=tensor, formats=("rlc", "coo"), run_bits=3, timing=BusTiming())
    assert convert(design, kept, matrix) == ("rlc", [])

    def flipped(*given: Any) -> Any:
        image, wanted = golden_image(*given)
        name = next(iter(wanted))
        return image, wanted | {name: wanted[name] ^ np.uint8(1)}

    def moved(*given: Any) -> Any:
        found = expected_conversion(*given)
        return replace(found, written_bytes=found.written_bytes + 1)

    with monkeypatch.context() as changed:
        changed.setattr(conversions, "golden_image", flipped)
        (problem,) = convert(design, kept, matrix)[1]
        assert problem.startswith("bytes of ")
    monkeypatch.setattr(conversions, "expected_conversion", moved)
    (problem,) = convert(design, kept, matrix)[1]
    assert problem.startswith("written_bytes: hardware ")


def test_a_tensor_that_is_too_large_takes_the_next_format() -> None:
    matrix = untuned(3).products[0].a
    wide = replace(matrix, columns=1 << 30)
    kept = Kept(product=0, tensor="A", formats=("dense", "coo"), run_bits=3, timing=BusTiming())
    found = kept.form(wide)
    assert found is not None and found[0] == "coo"
    assert replace(kept, formats=("dense",)).form(wide) is None


class Spoiled(Machine):
    """A machine that does something wrong in its second run, or would if it could."""

    def __init__(self, case: Case, library: Path, wrong: Callable[["Spoiled"], None]) -> None:
        super().__init__(case, library)
        self.wrong = wrong
        self.started = 0

    def start(self, placed: Placed) -> Any:
        self.started += 1
        if self.started == 2:
            self.wrong(self)
        return super().start(placed)


def spoil(name: str) -> Callable[[Spoiled], None]:
    def wrong(machine: Spoiled) -> None:
        first, second = machine.placed
        if name == "value":
            first.image.regions["a_elements"].data[4] ^= 1
        elif name == "another product":
            second.image.regions["b_elements"].data[0] ^= 1
        elif name == "between":
            at = first.image.regions["c_pointers"]
            first.arena[at.base - first.registers["WRITE_BEGIN"] + at.data.nbytes + 8] ^= 1
        elif name == "error":
            machine.simulation.inject_beat(5, write=False)
        else:
            first.image.regions["c_elements"].data[-1] ^= 1

    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    {
        "value": "golden: ",
        "another product": "b_elements of another product changed",
        "between": "bytes between the regions changed",
        "behind": "bytes behind the result changed in c_elements",
        "error": "hardware: axi_read",
    }.items(),
)
def test_what_is_planted_in_a_second_run_is_found(on_tiny: Callable[..., Case], name: str, said: str) -> None:
    _, library = tiny_machine()
    case = on_tiny(plain)
    product = case.products[0]
    case = replace(case, products=(product, product), steps=(Step(0), Step(0), Step(0)))
    assert run_case(case, library).problems == []
    verdict = run_case(case, library, lambda case, library: Spoiled(case, library, spoil(name)))
    assert len(verdict.outcomes) == 2, "a case ends with the first run that is not right"
    assert any(problem.startswith("run 1") and said in problem for problem in verdict.problems), verdict.problems


def planted(results: list[Result | Built]) -> Callable[..., Generator[Result | Built, None, None]]:
    def stream(
        seed: int, design: int, seconds: float, until: float, schemes: Sequence[str]
    ) -> Generator[Result | Built, None, None]:
        for result in results:
            name = f"{seed}:{design * CASES_PER_DESIGN + int(result.case)}" if isinstance(result, Result) else ""
            yield replace(result, case=name) if isinstance(result, Result) else result
        time.sleep(0.7)

    return stream


def test_a_failure_is_printed_with_its_command_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tags = {"scheme": ["list", "B kept"], "faults": ["read error: axi_read"]}
    results = [Result("0", "fine", [], 0.1, 10, tags), Result("1", "wrong", ["macs: hardware 1, model 2"], 0.1)]
    monkeypatch.setattr(batch, "stream_batch", planted([Built(0, 1.0, {}), *results]))
    assert main(["--minutes", "0.01", "--seed", "9", "--jobs", "1", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert f"builds are kept in {tmp_path / 'cache'}" in said
    assert "FAILED 9:1: wrong" in said and "python -m verif.soak --case 9:1" in said
    assert "faults            read error: axi_read: 1\n" in said and "B kept: 1   list: 1\n" in said
    assert said.splitlines()[-1].startswith("seed 9: 2 cases on 1 designs, 1 failed")
    assert json.loads((tmp_path / "failures.jsonl").read_text().splitlines()[0])["case"] == "9:1"
    lines = [json.loads(line) for line in (tmp_path / "cases-9.jsonl").read_text().splitlines()]
    assert lines[0]["run"]["seed"] == 9 and [line["case"] for line in lines if "case" in line] == ["9:0", "9:1"]
    assert lines[-1]["counts"]["scheme"] == {"B kept": 1, "list": 1}


def test_kinds_of_schemes_may_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cases have no others; the processes that run them are told, and so is who repeats a failure."""
    chosen = ("planned", "strips")
    kinds = {product.kind for n in range(6) for product in make_case(5, n, chosen).products}
    assert kinds == set(chosen)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    started, commands = batch.subprocess.Popen, []

    def popen(command: list[str], **options: Any) -> Any:
        commands.append(command)
        line = json.dumps({"case": "9:0", "text": "wrong", "problems": ["macs: hardware 1, model 2"], "seconds": 0.1})
        said = f"import time; print({line!r}, flush=True); time.sleep(2)"
        return started([command[0], "-c", said], **options)

    monkeypatch.setattr(batch.subprocess, "Popen", popen)
    words = [word for kind in chosen for word in ("--scheme", kind)]
    assert main(["--minutes", "0.02", "--seed", "9", "--jobs", "1", "--out", str(tmp_path), *words]) == 1
    assert commands and all(command[-len(words) :] == words for command in commands)
    again = f"again: python -m verif.soak --case 9:0 {' '.join(words)}"
    assert again in capsys.readouterr().out


@pytest.mark.parametrize("built", [[], [Built(0, 1.0, {})]], ids=["no build", "a build"])
def test_a_soak_without_a_case_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], built: list[Result | Built]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(batch, "stream_batch", planted(built))
    assert main(["--minutes", "0.01", "--seed", "9", "--jobs", "1", "--out", str(tmp_path)]) == NOTHING_RUN
    said = capsys.readouterr()
    assert "agreed" not in said.out + said.err
    assert "no case was run: " in said.err.splitlines()[-1] and "--minutes" in said.err


@pytest.mark.parametrize(
    "options",
    [["--minutes", "0"], ["--minutes", "-1"], ["--minutes", "nan"], ["--jobs", "0"], ["--case", "5"]],
    ids=" ".join,
)
def test_options_that_cannot_be_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2 and options[1] in capsys.readouterr().err.splitlines()[-1]


def instead(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """Another program in the place of a batch."""
    started = batch.subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        return started([command[0], "-c", said], **options)

    monkeypatch.setattr(batch.subprocess, "Popen", popen)


def test_a_process_that_dies_is_a_failure_of_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, 'import sys; print(\'{"begun": "1:7"}\', flush=True); sys.exit(3)')
    (result,) = batch.stream_batch(1, 0, 60, time.time() + 60)
    assert isinstance(result, Result) and result.case == "1:7" and "exit code 3" in result.problems[0]


def test_what_is_under_way_at_the_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, 'import time; print(\'{"begun": "1:7"}\', flush=True); time.sleep(60)')
    monkeypatch.setattr(batch, "GRACE_SECONDS", 0.3)
    assert list(batch.stream_batch(1, 0, 60, time.time())) == []


def test_a_case_that_takes_too_much_time_of_a_processor_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    instead(
        monkeypatch,
        'print(\'{"begun": "1:7"}\', flush=True); from verif.soak.batch import _allow; _allow(0.1)\nwhile 1: 0',
    )
    (result,) = batch.stream_batch(1, 0, 60, time.time() + 60)
    assert isinstance(result, Result) and result.case == "1:7"
    assert result.problems == [f"not done after {batch.HANG_SECONDS} s of a processor"]


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
