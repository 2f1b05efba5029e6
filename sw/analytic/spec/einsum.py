"""An Einsum as text, ``Z[m,n] = A[m,k] * B[k,n]``, in place of a problem's shape."""

import re
from collections.abc import Container
from typing import Any

__all__ = ["EinsumError", "shape_of"]

TENSOR = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\[([^\[\]]*)\])?\s*")
TERM = re.compile(r"\s*(?:(\d+)\s*\*\s*)?([A-Za-z_]\w*)\s*")


class EinsumError(ValueError):
    """Text that is no Einsum; says what is allowed."""


def shape_of(text: str, known: Container[str] = ()) -> dict[str, Any]:
    """The section ``shape`` that the text stands for. An index is a sum of dimensions, each with a factor: ``I[2*p+r]``. A scalar
    has none: ``Z`` or ``Z[]``.

    Dimensions are numbered as they come, those of the result first. known: names that dimensions take where only their letters'
    case differs, ``m`` for ``M``. Raises EinsumError.
    """
    left, equals, right = text.partition("=")
    if not equals or "=" in right:
        raise EinsumError("must be an Einsum such as Z[m,n] = A[m,k] * B[k,n]")
    tensors = [_tensor(left), *(_tensor(part) for part in _factors(right))]
    names = [name for name, _ in tensors]
    if len(set(names)) != len(names):
        raise EinsumError("must name each tensor once")
    dimensions: list[str] = []
    coefficients: dict[str, int] = {}
    spaces = []
    for name, ranks in tensors:
        projection = []
        for rank in ranks:
            terms = []
            for factor, written in rank:
                dimension = next((name for name in (written, written.swapcase()) if name in known), written)
                dimensions += [dimension] if dimension not in dimensions else []
                terms.append([dimension] if factor == 1 else [dimension, f"times {factor}"])
                if factor != 1:
                    coefficients[f"times {factor}"] = factor
            projection.append(terms)
        spaces.append({"name": name, "projection": projection, "read_write": name == names[0]})
    return {
        "name": " ".join(text.split()),
        "dimensions": dimensions,
        "coefficients": [{"name": name, "default": value} for name, value in coefficients.items()],
        "data_spaces": [*spaces[1:], spaces[0]],
    }


def _factors(text: str) -> list[str]:
    """Tensors of a product; ``*`` inside brackets is that of an index."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "*" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _tensor(text: str) -> tuple[str, list[list[tuple[int, str]]]]:
    match = TENSOR.fullmatch(text)
    if match is None:
        raise EinsumError(f"must have tensors such as A[m,k], not {text.strip()!r}")
    ranks = (match[2] or "").split(",") if (match[2] or "").strip() else []
    return match[1], [[_term(term, text) for term in rank.split("+")] for rank in ranks]


def _term(text: str, tensor: str) -> tuple[int, str]:
    match = TERM.fullmatch(text)
    if match is None or match[1] == "0":
        raise EinsumError(f"must have indices such as m or 2*p+r, not {text.strip()!r} in {tensor.strip()}")
    return int(match[1] or 1), match[2]
