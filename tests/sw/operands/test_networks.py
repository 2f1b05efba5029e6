"""Weights of networks as operands: files that the libraries themselves write, each value against NumPy."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main
from sw.cli.points import find_operands
from sw.operands import MissingToolError, OperandError, load
from sw.operands.identity import fingerprint
from sw.operands.networks import split_weight
from tests.tools import needs_tool

RNG = np.random.default_rng(5)


def pruned(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Half of the weights are 0; the others are exact in 8 bits."""
    return (RNG.integers(1, 100, shape) * (RNG.random(shape) < 0.5)).astype(dtype)


WEIGHTS = {
    "fc.weight": pruned(6, 9),
    "fc.bias": np.arange(6, dtype="float32"),
    "features.0.weight": pruned(4, 3, 2, 5),
    "half.weight": pruned(3, 4, dtype="float16"),
    "quantised": pruned(3, 4, dtype="int8"),
    "mask": pruned(3, 4) > 0,
    "layers[0]/kernel:0": pruned(2, 3),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_safetensors(**more: np.ndarray) -> str:
    from safetensors.numpy import save_file

    save_file(WEIGHTS | more, "net.safetensors")
    return "net.safetensors"


def write_onnx(*nodes: object, sparse: tuple[object, ...] = (), **more: np.ndarray) -> str:
    import onnx
    from onnx import helper, numpy_helper

    tensors = [numpy_helper.from_array(array, name) for name, array in (WEIGHTS | more).items()]
    graph = helper.make_graph(list(nodes), "net", [], [], initializer=tensors, sparse_initializer=list(sparse))
    onnx.save(helper.make_model(graph), "net.onnx")
    return "net.onnx"


WRITERS = {"safetensors": write_safetensors, "onnx": write_onnx}


@pytest.mark.parametrize(
    ("spec", "path", "tensor"),
    [
        ("a/m.onnx:conv1", "a/m.onnx", "conv1"),
        ("m.safetensors:a.b:0", "m.safetensors", "a.b:0"),
        ("M.ONNX", "M.ONNX", ""),
        ("a.onnx.d/m.onnx:/x.onnx:y", "a.onnx.d/m.onnx", "/x.onnx:y"),
    ],
)
def test_a_name_is_cut_at_the_file(spec: str, path: str, tensor: str) -> None:
    assert split_weight(spec) == (Path(path), tensor)


@pytest.mark.parametrize("spec", ["m.mtx", "rmat:10:8", "pyamg:airfoil", "m.onnx.mtx", "-", ""])
def test_other_operands_are_none(spec: str) -> None:
    assert split_weight(spec) is None


@needs_tool("pruned")
@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("name", [name for name in WEIGHTS if name != "fc.bias"])
def test_every_value_is_the_arrays(form: str, name: str) -> None:
    operand = load(f"{WRITERS[form]()}:{name}")
    want = WEIGHTS[name].reshape(len(WEIGHTS[name]), -1)
    assert operand.shape == want.shape and operand.nnz == np.count_nonzero(want)
    assert (operand.matrix.toarray() == want).all()
    assert operand.matrix.dtype == (np.float64 if want.dtype.kind == "f" else np.int64)
    assert operand.source == f"net.{form}:{name}" and "/" not in operand.name and operand.name.startswith("net-")


@needs_tool("pruned")
@pytest.mark.parametrize("form", WRITERS)
def test_a_convolution_unfolds_as_its_kernel_lies(form: str) -> None:
    """Column ((c kh) + y) kw + x of row o is weight (o, c, y, x)."""
    weights = WEIGHTS["features.0.weight"]
    matrix = load(f"{WRITERS[form]()}:features.0").matrix.toarray()
    assert matrix.shape == (4, 30)
    for o, c, y, x in np.ndindex(*weights.shape):
        assert matrix[o, (c * 2 + y) * 5 + x] == weights[o, c, y, x]


@needs_tool("pruned")
@pytest.mark.parametrize("form", WRITERS)
def test_bfloat16_keeps_each_value(form: str) -> None:
    import ml_dtypes

    weights = RNG.normal(size=(5, 7)).astype(ml_dtypes.bfloat16)
    assert (load(f"{WRITERS[form](w=weights)}:w").matrix.toarray() == weights.astype(np.float64)).all()


@needs_tool("pruned")
def test_layers_of_a_graph_stand_for_their_weights() -> None:
    from onnx import helper, numpy_helper

    inside = pruned(4, 5)
    constant = helper.make_node("Constant", [], ["inside"], name="", value=numpy_helper.from_array(inside))
    layer = helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["y"], name="/head/Gemm")
    product = helper.make_node("MatMul", ["y", "inside"], ["z"], name="/last")
    file = write_onnx(constant, layer, product)
    assert (load(f"{file}:/head/Gemm").matrix.toarray() == WEIGHTS["fc.weight"]).all()
    for name in ("inside", "/last"):
        assert (load(f"{file}:{name}").matrix.toarray() == inside).all()


@needs_tool("pruned")
@pytest.mark.parametrize("by_rank", [False, True])
def test_sparse_tensors_of_a_graph(by_rank: bool) -> None:
    from onnx import helper, numpy_helper

    dense = pruned(4, 3, 2)
    at = np.flatnonzero(dense)
    places = np.argwhere(dense) if by_rank else at
    parts = numpy_helper.from_array(dense.ravel()[at], "s"), numpy_helper.from_array(places.astype(np.int64), "i")
    file = write_onnx(sparse=(helper.make_sparse_tensor(*parts, dense.shape),))
    operand = load(f"{file}:s")
    assert operand.shape == (4, 6) and (operand.matrix.toarray() == dense.reshape(4, 6)).all()


@needs_tool("pruned")
def test_data_beside_the_model() -> None:
    import onnx

    model = onnx.load(write_onnx())
    onnx.save(model, "big.onnx", save_as_external_data=True, location="big.bin", size_threshold=0)
    assert (load("big.onnx:fc").matrix.toarray() == WEIGHTS["fc.weight"]).all()
    Path("big.bin").unlink()
    with pytest.raises(OperandError, match=r"^big\.onnx:fc: cannot be read \(.*big\.bin"):
        load("big.onnx:fc")


@needs_tool("pruned")
@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(
    ("tensor", "complaint"),
    [
        ("", "names no tensor: must be FILE.safetensors:TENSOR or FILE.onnx:TENSOR, one of f"),
        ("fc.wieght", "has no tensor 'fc.wieght': nearest of 6 are fc.weight"),
        ("fc.bias", "1 dimension: must be two or more"),
        ("z", "has no tensor 'z': nearest of 6 are "),
    ],
)
def test_mistakes_are_one_line(form: str, tensor: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    spec = f"{WRITERS[form]()}:{tensor}".removesuffix(":")
    assert main(["data", "describe", spec]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and complaint in err and err.startswith(f"fiberloom: {spec}: ")


@needs_tool("pruned")
@pytest.mark.parametrize("form", WRITERS)
def test_types_that_no_design_has_are_refused_by_name(form: str) -> None:
    import ml_dtypes

    file = WRITERS[form](f8=np.ones((2, 2), ml_dtypes.float8_e4m3fn))
    with pytest.raises(OperandError, match=r"f8: values are F(8_E4M3|LOAT8E4M3FN): must be one of \w+, "):
        load(f"{file}:f8")


@needs_tool("pruned")
@pytest.mark.parametrize("form", WRITERS)
def test_damaged_files(form: str) -> None:
    file = Path(WRITERS[form]())
    content = file.read_bytes()
    for cut in (b"", b"\x00garbage" * 9, content[: len(content) // 2]):
        file.write_bytes(cut)
        with pytest.raises(OperandError, match=rf"^net\.{form}:fc: (not a complete|holds no tensor|cannot be read)"):
            load(f"{file}:fc")
    with pytest.raises(OperandError, match=r"^no\.onnx:fc: no such file"):
        load("no.onnx:fc")


@pytest.mark.parametrize(("form", "library"), [("safetensors", "safetensors"), ("onnx", "onnx")])
def test_without_the_library(form: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(f"net.{form}").write_bytes(b"any")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingToolError) as raised:
        load(f"net.{form}:fc")
    assert str(raised.value) == (
        f"net.{form}:fc: needs {library}, which is not installed: pip install 'fiberloom[pruned]'"
    )


@needs_tool("pruned")
@pytest.mark.parametrize("form", WRITERS)
def test_commands_run_on_them(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A pruned layer times activations; what comes out is NumPy's product."""
    file = WRITERS[form]()
    sp.save_npz("x.npz", sp.csr_array(pruned(9, 4)))
    x = sp.load_npz("x.npz").toarray()
    words = ["--config", "tiny", "--value", "int32", "--engine", "golden", "--json"]
    assert main(["run", f"{file}:fc", "x.npz", *words, "--out", "o"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["correct"] and record["operands"]["A"]["source"] == f"net.{form}:fc"
    assert (sp.load_npz("o/C.npz").toarray() == WEIGHTS["fc.weight"] @ x).all()
    assert main(["formats", f"{file}:features.0", "--json"]) == 2  # 4 x 30 times itself
    capsys.readouterr()
    assert main(["formats", f"{file}:features.0", "dense:K:3", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 1
    assert (
        main(
            [
                "convert",
                f"{file}:fc",
                "--from",
                "dense",
                "--to",
                "csr",
                "--engine",
                "golden",
                "--value",
                "int32",
                "--json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["nnz"] == np.count_nonzero(WEIGHTS["fc.weight"])


@needs_tool("pruned")
@pytest.mark.parametrize("form", WRITERS)
def test_sweeps_take_patterns_of_tensors(form: str) -> None:
    file = WRITERS[form]()
    found = find_operands([f"{file}:*.weight", f"{file}:layers[0]/kernel:0", f"{file}:fc"])
    named = {f"{file}:{name}" for name in ("fc.weight", "features.0.weight", "half.weight", "fc", "layers[0]/kernel:0")}
    assert {left for left, _ in found} == named and {right for _, right in found} == {None}


@needs_tool("pruned")
def test_a_fingerprint_is_of_one_tensor() -> None:
    before = [fingerprint(f"{write_safetensors()}:{name}") for name in ("fc", "fc.weight", "quantised")]
    assert before[0] == before[1] != before[2]
    assert fingerprint(f"{write_safetensors(other=np.ones((2, 2)))}:fc") == before[0]
    assert fingerprint(f"{write_onnx()}:fc") == before[0]
