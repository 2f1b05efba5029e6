"""Energy of a run, reckoned once more from the operands and from the figures as they are printed."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import Design, load_design
from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.formats.storage import storage_format
from sw.model.tier import simulate
from sw.operands import Operand, to_csr
from sw.plan.plan import plan
from sw.runtime.conversion import Sides, StoredTensor
from sw.runtime.converter import Conversion
from sw.runtime.energy import COMPONENTS, run_energy, sram_words
from sw.scheme.scheme import Scheme
from sw.scheme.terms import BUFFERING, STREAMING

# pJ of a multiplication and an addition, and bits of a value.
MAC = {"int8": (0.3, 8), "int16": (0.9, 16), "int32": (3.2, 32), "bf16": (2.0, 16), "fp32": (4.6, 32)}


def operand(pattern: np.ndarray, value: str = "int32") -> Csr:
    return to_csr(Operand(source="test", name="test", matrix=sp.csr_array(pattern.astype(float))), value)


def patterns(density: float = 0.35) -> tuple[np.ndarray, np.ndarray]:
    """Rows of A meet at most three rows of B in each half of k, so that a job of four leaves has each row."""
    rng = np.random.default_rng(4)
    a = np.zeros((9, 12), bool)
    for row in a:
        for half in (0, 6):
            row[half + rng.choice(6, 2, replace=False)] = True
    return a, rng.random((12, 10)) < density


def scheme(design: Design, tile: tuple[int, int, int], *, order: str = "jki", keeps: str = "B") -> Scheme:
    line = design.line_bytes
    return Scheme(
        policy="test", order=order, T_i=tile[0], T_j=tile[1], T_k=tile[2],
        buffer_bytes={"A": 32 * line, "B": 200 * line, "C": 64 * line},
        fifo_bytes={"A": 64, "B": 64},
        mode={tensor: BUFFERING if tensor in keeps else STREAMING for tensor in "ABC"},
    )  # fmt: skip


def run(design: Design, chosen: Scheme, a: Csr, b: Csr) -> EngineResult:
    chosen.validate(design, a.rows, b.columns, a.columns)
    return simulate(design, plan(chosen, a, b, design))


def nnz_c(a: np.ndarray, b: np.ndarray) -> int:
    return int(np.count_nonzero(a.astype(int) @ b.astype(int)))


def merged(a: np.ndarray, b: np.ndarray, step: int) -> tuple[int, int]:
    """Products, and what merges take in: in each k step but the first the rows of C so far, too."""
    products = int((a.astype(int) @ b.astype(int)).sum())
    again = 0
    for k in range(step, a.shape[1], step):
        again += nnz_c(a[:, :k], b[:k])
    return products, products + again


@pytest.mark.parametrize("value", MAC)
@pytest.mark.parametrize("step", [12, 6])
def test_every_component_by_hand(value: str, step: int) -> None:
    design = load_design("tiny", [f"pe.value={value}"])
    a, b = patterns()
    chosen = scheme(design, (9, 10, step))
    found = run(design, chosen, operand(a, value), operand(b, value))
    energy = run_energy(design, found, chosen, nnz_c(a, b))
    macs, taken = merged(a, b, step)
    assert (found.counters["macs"], found.counters["merged"]) == (macs, taken)
    assert found.dram_bytes is not None and energy is not None
    come = sum(kinds["read"] + kinds["metadata_read"] for kinds in found.dram_bytes.values())
    leave = sum(kinds["write"] + kinds["metadata_write"] for kinds in found.dram_bytes.values())
    metadata = sum(kinds["metadata_read"] for kinds in found.dram_bytes.values())
    streamed = found.dram_bytes["A"]["read"]
    # Given out by a merge: C, and before that its parts. Taken in: products' nonzeros of B, and those parts.
    written, read = come / 8 + nnz_c(a, b) + (taken - macs), (leave + metadata + streamed) / 8 + taken
    levels = {2: 1, 4: 2, 8: 3}[design.pe.merge_radix]
    mac, bits = MAC[value]
    bank = design.buffer.bytes / design.buffer.banks
    assert bank < 32 << 10
    assert energy["dram"] == pytest.approx(20 * 8 * (come + leave))
    assert energy["sram"] == pytest.approx((written + read) * 10 * (bank / 8192) ** 0.5, abs=1e-3)
    assert energy["merge"] == pytest.approx(taken * levels * (0.1 + 2 * (32 + bits) / 32), abs=1e-3)
    assert energy["mac"] == pytest.approx(macs * mac, abs=1e-3)
    assert energy["conversion"] == 0
    assert energy["total"] == pytest.approx(sum(energy[name] for name in COMPONENTS), abs=1e-3)
    assert list(energy) == [*COMPONENTS, "total"]


def test_what_is_kept_of_a_is_read_from_its_partition() -> None:
    design = load_design("tiny", ["pe.value=int32"])
    a, b = patterns()
    chosen = scheme(design, (9, 5, 12), order="ikj", keeps="AB")
    found = run(design, chosen, operand(a), operand(b))
    assert found.dram_bytes is not None and found.counters["hits_a"] == 2 * np.count_nonzero(a)
    streams, stays = (
        sram_words("gustavson", found.counters, found.dram_bytes, nnz_c(a, b), streams_a=streams_a)
        for streams_a in (True, False)
    )
    assert streams[0] - stays[0] == found.dram_bytes["A"]["read"] / 8 and streams[1] == stays[1]
    less = sram_words("gustavson", found.counters | {"hits_a": 0}, found.dram_bytes, nnz_c(a, b), streams_a=False)
    assert stays[0] - less[0] == 2 * np.count_nonzero(a)


@pytest.mark.parametrize("dataflow", ["gustavson", "outer", "inner"])
def test_an_operand_of_zeros_multiplies_and_merges_nothing(dataflow: str) -> None:
    design = load_design("tiny", ["pe.value=int32", f"pe.dataflow={dataflow}"])
    a, b = np.zeros((9, 12), bool), patterns()[1]
    chosen = scheme(design, (9, 10, 12))
    energy = run_energy(design, run(design, chosen, operand(a), operand(b)), chosen, 0)
    assert energy is not None
    assert [energy[name] for name in ("merge", "mac", "conversion")] == [0, 0, 0]
    assert energy["total"] == pytest.approx(energy["dram"] + energy["sram"]) and energy["dram"] > 0


def test_dataflows_without_hardware() -> None:
    """An outer product reads and writes C for each product; an inner product compares what passes by."""
    a, b = patterns()
    macs = merged(a, b, 12)[0]
    rows, walked_b = 9, np.count_nonzero(b)
    words = {}
    for dataflow in ("outer", "inner"):
        design = load_design("tiny", ["pe.value=int32", f"pe.dataflow={dataflow}"])
        chosen = scheme(design, (9, 10, 12), order="kij" if dataflow == "outer" else "ijk", keeps="ABC")
        found = run(design, chosen, operand(a), operand(b))
        assert found.dram_bytes is not None and found.counters["merged"] == 0
        energy = run_energy(design, found, chosen, nnz_c(a, b))
        assert energy is not None
        compared = rows * walked_b if dataflow == "inner" else 0
        assert energy["merge"] == pytest.approx(compared * 4.1)
        words[dataflow] = sram_words(dataflow, found.counters, found.dram_bytes, nnz_c(a, b), streams_a=False)
        metadata = sum(kinds["metadata_read"] for kinds in found.dram_bytes.values())
        leave = sum(kinds["write"] + kinds["metadata_write"] for kinds in found.dram_bytes.values())
        walked = np.count_nonzero(a) + (compared or walked_b)
        assert words[dataflow][0] == (metadata + leave) / 8 + walked + (macs if dataflow == "outer" else 0)


def test_golden_counts_nothing() -> None:
    design = load_design("tiny")
    chosen = scheme(design, (9, 10, 12))
    assert run_energy(design, EngineResult(c=None), chosen, 5) is None


def test_a_conversion_moves_bytes_that_are_none_of_the_runs_sram() -> None:
    design = load_design("tiny", ["pe.value=int32"])
    chosen = SimpleNamespace(buffers=lambda tensor: tensor == "B")
    counters = {"macs": 10, "merged": 10}
    kinds = {"read": 160, "write": 0, "metadata_read": 32, "metadata_write": 0}
    own = {"A": kinds, "B": kinds, "C": {**kinds, "read": 0, "write": 320}}
    moved = {**own, "A": {**kinds, "read": 160 + 640, "write": 96}}
    conversion = Conversion(error=None, cycles=1, entries=1, read_bytes=640, written_bytes=96, passes=0)
    kept = StoredTensor(tensor="A", format="dense", bits=5120, conversion=conversion, energy_pJ=12.5)
    bare = run_energy(design, EngineResult(c=None, counters=counters, dram_bytes=own), chosen, 4)
    found = run_energy(design, EngineResult(c=None, counters=counters, dram_bytes=moved), chosen, 4, [kept])
    assert bare is not None and found is not None
    assert found["sram"] == bare["sram"] and found["conversion"] == 12.5
    assert found["dram"] - bare["dram"] == pytest.approx(20 * 8 * (640 + 96))


def test_energy_of_conversions_by_hand() -> None:
    """MINT's blocks: an addition takes 0.1 pJ, a division or remainder 32 of them, 64 bits of the scratchpad 100 pJ."""
    a = patterns()[0]
    matrix, nnz = operand(a), int(np.count_nonzero(a))

    def energy(kind: str, *, leaves: bool = False) -> float:
        return Sides.of(matrix, kind, storage_format(kind), own="csr", leaves=leaves).energy_pJ

    assert energy("csr") == 0
    assert energy("dense") == pytest.approx(2 * a.size * 0.1 + 2 * nnz * 3.2 + nnz * 0.1)
    assert energy("zvc") == pytest.approx(a.size * 0.1 + 2 * nnz * 3.2 + nnz * 0.1)
    assert energy("rlc") == pytest.approx(nnz * 0.1 + 2 * nnz * 3.2 + nnz * 0.1)
    assert energy("coo") == pytest.approx(nnz * 0.1)
    assert energy("coo", leaves=True) == pytest.approx(nnz * 0.1)
    assert energy("csc") == pytest.approx(nnz * 0.1 + nnz * (2 * 64 * 100 / 64 + 2 * 0.1))


def test_parts_of_c_that_are_merged_are_written_and_read() -> None:
    nothing = {tensor: dict.fromkeys(("read", "write", "metadata_read", "metadata_write"), 0) for tensor in "ABC"}
    counters = {"macs": 5, "merged": 7, "walked": 3}
    assert sram_words("outer", counters, nothing, 4, streams_a=False) == (3 + 7 + 5, 4 + 7 + 5)
    assert sram_words("inner", counters, nothing, 4, streams_a=False) == (3 + 7, 4 + 7)
    assert sram_words("gustavson", {"macs": 5, "merged": 7}, nothing, 4, streams_a=True) == (5 + 2, 4 + 2)
