"""An Einsum text in the place of a problem's shape."""

import pytest

from sw.analytic.result import record
from sw.analytic.spec.einsum import EinsumError, shape_of
from sw.analytic.spec.load import SHIPPED
from tests.sw.analytic.test_spec import BUFFER, SPEC, analyzed


@pytest.mark.parametrize("einsum", ["Z[M,N] = A[M,K] * B[K,N]", "Z[m,n] = A[m,k] * B[k,n]"])
def test_an_einsum_stands_for_the_shape(tmp_path, einsum):
    """Its dimensions are those of the bounds, in capitals or not."""
    text = (SHIPPED / "sparse_product.yaml").read_text()
    shape = text[text.index("  shape:") : text.index("  instance:")]
    path = tmp_path / "spec.yaml"
    path.write_text(text.replace(shape, f'  einsum: "{einsum}"\n'))
    assert record(analyzed(path)) == record(analyzed(SPEC))


def test_windows_and_three_operands_of_an_einsum():
    assert shape_of("O[m,p] = W[m,r] * I[2*p+r]") == {
        "name": "O[m,p] = W[m,r] * I[2*p+r]",
        "dimensions": ["m", "p", "r"],
        "coefficients": [{"name": "times 2", "default": 2}],
        "data_spaces": [
            {"name": "W", "projection": [[["m"]], [["r"]]], "read_write": False},
            {"name": "I", "projection": [[["p", "times 2"], ["r"]]], "read_write": False},
            {"name": "O", "projection": [[["m"]], [["p"]]], "read_write": True},
        ],
    }
    names = [space["name"] for space in shape_of("X[i,j] = A[i,k,l] * B[k,j] * C[l,j]")["data_spaces"]]
    assert names == ["A", "B", "C", "X"]


def test_a_scalar_has_no_index(tmp_path):
    """A dot product: one word of Z."""
    assert shape_of("Z = A[k] * B[k]") == shape_of("Z[] = A[k] * B[k]") | {"name": "Z = A[k] * B[k]"}
    path = tmp_path / "spec.yaml"
    text = (SHIPPED / "sparse_product.yaml").read_text()
    problem = """problem:
  einsum: Z = A[k] * B[k]
  instance: {K: 64, densities: {A: {distribution: hypergeometric, density: 0.25}}}
"""
    mapping = """mapping:
  - {target: Buffer, type: temporal, factors: [K=8]}
  - {target: lanes, type: spatial, factors: [K=8]}
"""
    path.write_text(text[: text.index("problem:")] + problem + mapping)
    found = record(
        analyzed(path, changes=("architecture.nodes.DRAM.sparse_optimizations=", f"{BUFFER}.representation_format="))
    )
    assert found["computes"]["actual"] == 16 and found["computes"]["cycles"] == 2
    assert found["levels"][0]["tensors"]["Z"]["tile"] == 1


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("A[m,k] * B[k,n]", "must be an Einsum such as"),
        ("Z[m] = A[m] = B[m]", "must be an Einsum such as"),
        ("Z[m,n] = A[m,k] + B[k,n]", "must have tensors such as"),
        ("Z[m] = 3 * A[m]", "must have tensors such as"),
        ("Z[m] = A[m-1]", "must have indices such as"),
        ("Z[m] = A[0*m]", "must have indices such as"),
        ("Z[m] = A[m] * A[k]", "must name each tensor once"),
    ],
)
def test_what_is_no_einsum(text, allowed):
    with pytest.raises(EinsumError, match=allowed):
        shape_of(text)
