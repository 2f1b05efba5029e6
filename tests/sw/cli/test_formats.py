"""``fiberloom formats`` as its users meet it: operands and shapes, the record, the table, mistakes."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main
from sw.sage.accelerators import ACCELERATORS
from sw.sage.choice import ranked
from sw.sage.workload import counted, uniform


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matrix = sp.random_array((40, 60), density=0.1, rng=np.random.default_rng(0), format="csr")
    sp.save_npz("F.npz", matrix)
    places = np.argwhere(np.random.default_rng(1).random((6, 7, 8)) < 0.2)
    lines = [" ".join(map(str, [*(place + 1), 2.5])) for place in [*places, np.array([5, 6, 7])]]
    (tmp_path / "T.tns").write_text("\n".join(lines) + "\n")
    return matrix


def records(capsys, *words: str):
    assert main(["formats", *words, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_the_list_has_the_fields_of_its_description(here, capsys):
    found = records(capsys, "F.npz", "--transpose-b")
    assert found == [one.as_dict() for one in ranked(counted("spgemm", here, here.T.tocsr()), ACCELERATORS["flexible"])]
    for one in found:
        assert list(one) == ["mcf", "acf", "cycles", "energy_pJ", "edp", "range_k"]
        assert list(one["mcf"]) == list(one["acf"]) == ["A", "B", "O"]
        assert list(one["cycles"]) == ["transfer", "conversion", "compute", "total"]
        assert list(one["energy_pJ"]) == ["dram", "conversion", "buffer", "compute", "total"]
        assert one["edp"] == one["energy_pJ"]["total"] * one["cycles"]["total"]
    assert [one["edp"] for one in found] == sorted(one["edp"] for one in found)


def test_shapes_take_the_place_of_operands(here, capsys):
    work = uniform("spgemm", (40, 60, 20), 0.1, 0.3, value="bf16", run_bits=7)
    words = ["--shape", "40x60x20", "--density-a", "0.1", "--density-b", "0.3", "--value", "bf16", "--run-bits", "7"]
    assert records(capsys, *words) == [one.as_dict() for one in ranked(work, ACCELERATORS["flexible"])]
    same = records(capsys, *["--shape", "40x60x20", "--density-a", "0.1", "--density-b", "0.1"])
    assert same == records(capsys, *["--shape", "40x60x20", "--density-a", "0.1"])
    dense = records(capsys, *["--shape", "40x60x20", "--density-a", "0.1", "--density-b", "1", "--kernel", "spmm"])
    assert dense == records(capsys, *["--shape", "40x60x20", "--density-a", "0.1", "--kernel", "spmm"]) != same


@pytest.mark.parametrize("name", ACCELERATORS)
@pytest.mark.parametrize("words", ["F.npz --kernel spmm", "T.tns --kernel spttm", "T.tns --kernel mttkrp"])
def test_every_kernel_runs_on_every_class(here, capsys, words, name):
    found = records(capsys, *words.split(), "--machine", name)
    assert found and all(one["edp"] > 0 for one in found)


def test_factors_that_are_left_out_are_dense_and_half_as_wide_as_a_is_high(here, capsys):
    assert records(capsys, "F.npz", "--kernel", "spmm") == records(capsys, "F.npz", "dense:K:20", "--kernel", "spmm")
    assert records(capsys, "T.tns", "--kernel", "spttm") == records(capsys, "T.tns", "dense:8:3", "--kernel", "spttm")


def test_given_formats_are_respected(here, capsys):
    words = ["--mcf-a", "rlc", "--mcf-o", "zvc", "--acf-a", "csr", "--acf-b", "csc"]
    found = records(capsys, "F.npz", "--transpose-b", *words)
    assert {one["mcf"]["A"] + one["mcf"]["O"] + one["acf"]["A"] + one["acf"]["B"] for one in found} == {"rlczvccsrcsc"}
    assert len(found) == 6


def test_designs_give_value_and_memory(here, capsys):
    shape = ["--shape", "40x60x20", "--density-a", "0.1", "--mcf-a", "csr", "--mcf-b", "csr", "--mcf-o", "dense"]
    wide = records(capsys, *shape, "--value", "int32")
    slow = records(capsys, *shape, *["--config", "tiny", "--value", "int32", "--set", "dram.bandwidth_gbps=0.1"])
    known = records(capsys, *shape, *["--config", "tiny", "--value", "int32"])
    assert slow[0]["cycles"]["transfer"] > known[0]["cycles"]["transfer"] > wide[0]["cycles"]["transfer"]
    bits = records(capsys, *shape, "--constant", "memory_bits=1", "--constant", "dram_bit=1")
    assert bits[0]["cycles"]["transfer"] == bits[0]["energy_pJ"]["dram"]


def test_the_array_can_be_another(here, capsys):
    shape = ["--shape", "400x600x20", "--density-a", "0.1", "--acf-a", "dense", "--acf-b", "dense"]
    base, narrow = (
        records(capsys, *shape, *words)[0]["cycles"]["compute"] for words in ((), ("--array", "bus_bits=64"))
    )
    assert narrow > 4 * base


def test_the_table_shows_the_best_first(here, capsys):
    assert main(["formats", "F.npz", "--transpose-b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = records(capsys, "F.npz", "--transpose-b")[0]
    assert lines[0].split() == ["A", "40", "x", "60,", f"{here.nnz}", "nonzeros"]
    assert lines[5].split()[:6] == ["1", *first["mcf"].values(), first["acf"]["A"], first["acf"]["B"]]
    assert lines[5].split()[-1] == "1.000" and len(lines) == 4 + 1 + 10 + 1
    assert main(["formats", "F.npz", "--transpose-b", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_the_quick_choice_is_among_the_best(here, capsys):
    quick, every = records(capsys, "F.npz", "--transpose-b", "--quick")[0], records(capsys, "F.npz", "--transpose-b")
    same = next(one for one in every if (one["mcf"], one["acf"]) == (quick["mcf"], quick["acf"]))
    assert same["edp"] <= 1.05 * every[0]["edp"]


def test_operands_without_nonzeros_have_formats(here, capsys):
    sp.save_npz("empty.npz", sp.csr_array((30, 30)))
    assert records(capsys, "empty.npz")[0]["mcf"]["A"] in ("coo", "rlc")


SHAPE = ("--shape", "4x5x6")
WRONG = [
    ((), "A: is missing: must be an operand, or --shape with --density-a"),
    (("F.npz",), "A is 40 x 60 and B is 40 x 60: columns of A must equal rows of B (for A x A^T give --transpose-b)"),
    (("F.npz", "--kernel", "gemm"), "--kernel gemm: must be one of spgemm, spmm, spttm, mttkrp (did you mean spgemm?)"),
    (
        ("F.npz", "--machine", "gpu"),
        "--machine gpu: must be one of flexible, tpu, eie, sigma, extensor, nvdla, sw",
    ),
    (("F.npz", "--value", "int4"), "--value int4: must be one of int8, int16, int32, bf16, fp32 (did you mean int8?)"),
    (("F.npz", "--mcf-a", "csf"), "--mcf-a csf: must be one of dense, rlc, zvc, coo, csr, csc"),
    (("T.tns", "--kernel", "spttm", "--mcf-a", "csr"), "--mcf-a csr: must be one of dense, rlc, zvc, coo, csf"),
    (("T.tns", "--kernel", "spttm", "--mcf-o", "csr"), "--mcf-o csr: must be one of dense, rlc, zvc, coo, csf"),
    (("T.tns", "--kernel", "mttkrp", "--mcf-o", "csf"), "--mcf-o csf: must be one of dense, rlc, zvc, coo, csr, csc"),
    (("F.npz", "--acf-a", "csc"), "--acf-a csc: must be one of dense, coo, csr"),
    (("F.npz", "--acf-b", "csr"), "--acf-b csr: must be one of dense, csc"),
    (("F.npz", "--run-bits", "33"), "--run-bits 33: must be from 1 to 32"),
    (("F.npz", "--density-a", "0.1"), "--density-a 0.1: is counted of operands: must stand with --shape"),
    (("F.npz", *SHAPE), "--shape 4x5x6: must be left out with the operand F.npz"),
    (SHAPE, "--shape 4x5x6: needs --density-a, above 0 and at most 1"),
    ((*SHAPE, "--density-a", "0"), "--density-a 0: must be above 0 and at most 1"),
    ((*SHAPE, "--density-a", "nan"), "--density-a nan: must be above 0 and at most 1"),
    ((*SHAPE, "--density-a", "1", "--density-b", "2"), "--density-b 2: must be above 0 and at most 1"),
    (
        (*SHAPE, "--density-a", "1", "--transpose-a"),
        "--transpose-a: must be left out with --shape, which has no operand to look at",
    ),
    (
        (*SHAPE, "--density-a", "1", "--quick"),
        "--quick: must be left out with --shape, which has no operand to look at",
    ),
    (("--shape", "4x5", "--density-a", "1"), "--shape 4x5: must be MxKxN, whole numbers, for spgemm"),
    (("--shape", "4x-5x6", "--density-a", "1"), "--shape 4x-5x6: must be MxKxN, whole numbers, for spgemm"),
    (
        ("--shape", "4x5x6", "--kernel", "mttkrp", "--density-a", "1"),
        "--shape 4x5x6: must be IxJxKxN, whole numbers, for mttkrp",
    ),
    (
        ("--shape", "0x5x6", "--density-a", "1"),
        "--shape 0x5x6: shape 0 x 5 x 6: each rank must be from 1 to 2^32",
    ),
    (("F.npz", "--set", "pe.count=4"), "--set pe.count=4: changes a design: needs --config"),
    (
        ("F.npz", "--array", "pes=4"),
        "--array pes=4: must be NAME=VALUE with a name of macs, vector, pe_bytes, bus_bits, comparators, row_search, gated",
    ),
    (("F.npz", "--array", "macs=x"), "--array macs=x: macs must be a whole number above 0"),
    (("F.npz", "--array", "macs=0"), "--array: macs must be at least 1, not 0"),
    (("F.npz", "--array", "gated=1"), "--array gated=1: gated must be true or false"),
    (("F.npz", "--constant", "divide=inf"), "--constant divide=inf: divide must be a number above 0"),
    (("F.npz", "--constant", "divide=-1"), "--constant: divide must be above 0, not -1.0"),
    (
        ("F.npz", "--transpose-b", "--machine", "tpu", "--mcf-a", "csr"),
        "--machine tpu: has no such formats (A=csr): must be those of its class",
    ),
    (("F.npz", "--kernel", "spttm"), None),
    (("T.tns", "--kernel", "spttm", "F.npz"), "F.npz: 40 rows: must be 8, those of rank 3 of T.tns"),
    (
        ("T.tns", "--kernel", "spttm", "--transpose-a"),
        "--kernel spttm: neither transposes, expands nor estimates: must stand without these options",
    ),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_bad_input_is_one_line(here, capsys, words, said):
    assert main(["formats", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and err.startswith("fiberloom: ")
    assert said is None or err == f"fiberloom: {said}\n"
