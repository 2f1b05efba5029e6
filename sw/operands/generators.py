"""Matrices made from a name: ``KIND:PARAMETER...:OPTION=VALUE...``, the same name always giving the same matrix."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import scipy.sparse as sp

from gen.design import did_you_mean

from . import patterns
from .errors import OperandError
from .mycielskian import MYCIELSKIAN_LIMIT, mycielskian
from .operand import canonical_csr

__all__ = [
    "GENERATORS",
    "MOST_ROWS",
    "Generator",
    "Parameter",
    "generate",
    "is_open",
    "parse",
    "share",
    "whole",
    "with_size",
]

# Stands for a number: the size of the shared rank, taken from the other operand.
OPEN = "K"

MOST_ROWS = 1 << 31


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A number in a name: whole (``int``) or real (``float``), within ``low`` and ``high``."""

    name: str
    meaning: str
    kind: type
    low: float
    high: float

    def read(self, text: str, source: str) -> Any:
        form = r"[0-9]{1,18}" if self.kind is int else r"[0-9]*\.?[0-9]+(?:[eE]-?[0-9]{1,3})?"
        number = self.kind(text) if re.fullmatch(form, text) else None
        if number is None or not self.low <= number <= self.high:
            sort = "a whole number" if self.kind is int else "a number"
            raise OperandError(f"{source}: {self.name} {text!r}: must be {sort} from {self.low:g} to {self.high:g}")
        return number


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A kind of matrix.

    Parameters
    ----------
    summary: what it makes, in a line. example: a name that works.
    parameters: in the order of the name. options: by name, each with its default; besides these every kind that draws
        numbers takes ``seed`` and ``values``.
    build: a NumPy generator, parameters and options to a pattern; None for Mycielskians, which have nothing to draw.
    """

    name: str
    summary: str
    example: str
    parameters: tuple[Parameter, ...]
    options: dict[str, tuple[Parameter, float]] = field(default_factory=dict)
    build: Callable[..., Any] | None

    @property
    def usage(self) -> str:
        """The name with its parameters, options in brackets."""
        named = [f"{key}={default:g}" for key, (_, default) in self.options.items()]
        named += ["seed=0", "values=int"] if self.build is not None else []
        return ":".join([self.name, *(p.name for p in self.parameters)]) + "".join(f"[:{text}]" for text in named)


def whole(name: str, meaning: str, high: int, low: int = 1) -> Parameter:
    return Parameter(name=name, meaning=meaning, kind=int, low=low, high=high)


def share(name: str, meaning: str) -> Parameter:
    return Parameter(name=name, meaning=meaning, kind=float, low=0, high=1)


ROWS = whole("ROWS", "rows", MOST_ROWS)
COLUMNS = whole("COLUMNS", "columns", MOST_ROWS)
_SEED = whole("seed", "what is drawn", 2**32 - 1, 0)

GENERATORS = {
    kind.name: kind
    for kind in (
        Generator(
            name="mycielskian",
            summary="the Mycielskian graph of an order (SuiteSparse's mycielskianN)",
            example="mycielskian:9",
            parameters=(whole("ORDER", "order", MYCIELSKIAN_LIMIT, 2),),
            build=None,
        ),
        Generator(
            name="rmat",
            summary="a recursive-matrix graph of 2^SCALE nodes, EDGES drawn for each; edges drawn twice are one",
            example="rmat:10:8:seed=1",
            parameters=(whole("SCALE", "log2 of the nodes", 30), whole("EDGES", "edges for each node", 4096)),
            options={key: (share(key, "share of a quadrant"), part) for key, part in patterns.GRAPH500.items()},
            build=patterns.rmat,
        ),
        Generator(
            name="banded",
            summary="a square matrix of SIZE rows, elements at most WIDTH from the diagonal, which is full",
            example="banded:1000:4",
            parameters=(whole("SIZE", "rows and columns", MOST_ROWS), whole("WIDTH", "half bandwidth", MOST_ROWS, 0)),
            options={"density": (share("density", "share of the band that is there"), 1.0)},
            build=patterns.banded,
        ),
        Generator(
            name="uniform",
            summary="elements anywhere with the same chance, exactly DENSITY of all coordinates",
            example="uniform:1000:500:0.01",
            parameters=(ROWS, COLUMNS, share("DENSITY", "share of the coordinates")),
            build=patterns.uniform,
        ),
        Generator(
            name="dense",
            summary="every element there is, for products of a sparse and a dense matrix",
            example="dense:64:16",
            parameters=(ROWS, COLUMNS),
            build=patterns.dense,
        ),
        Generator(
            name="sources",
            summary="where SEARCHES searches of a graph begin: one element in each column, no two in one row",
            example="sources:1000:16",
            parameters=(whole("NODES", "rows", MOST_ROWS), whole("SEARCHES", "columns", MOST_ROWS)),
            build=patterns.sources,
        ),
        Generator(
            name="nm",
            summary="N:M structured sparsity, N elements in each M neighbours of a row",
            example="nm:64:64:2:4",
            parameters=(ROWS, COLUMNS, whole("N", "elements", 65536), whole("M", "neighbours", 65536)),
            build=patterns.n_of_m,
        ),
        Generator(
            name="block",
            summary="dense square blocks of SIDE rows, exactly DENSITY of all blocks",
            example="block:64:64:8:0.25",
            parameters=(
                ROWS,
                COLUMNS,
                whole("SIDE", "rows of a block", 65536),
                share("DENSITY", "share of the blocks"),
            ),
            build=patterns.block,
        ),
    )
}


def is_open(spec: object) -> bool:
    """Whether an operand is a name that leaves a size to the other one, as ``dense:K:32`` does."""
    if not isinstance(spec, str):
        return False
    kind, _, argument = spec.partition(":")
    return kind in GENERATORS and OPEN in argument.split(":")


def with_size(spec: str, size: int) -> str:
    """The name with ``size`` where it was left open."""
    return ":".join(str(size) if word == OPEN else word for word in spec.split(":"))


def generate(kind: str, argument: str, source: str) -> sp.csr_array:
    """The matrix called ``KIND:ARGUMENT``, canonical CSR. Raises OperandError.

    ``values=int`` draws whole numbers from 1 to 9, ``values=real`` normally distributed ones, ``values=one`` leaves ones.
    """
    generator = GENERATORS[kind]
    if generator.build is None:
        return mycielskian(argument, source)
    numbers, settings, seed, values = parse(generator, argument, source)
    return canonical_csr(patterns.with_values(generator.build, numbers, settings, seed, values, source), source)


def parse(generator: Generator, argument: str, source: str) -> tuple[list[Any], dict[str, Any], int, str]:
    """Parameters, options, seed and kind of values of a name. Raises OperandError."""
    words = argument.split(":") if argument else []
    plain = [word for word in words if "=" not in word]
    if len(plain) != len(generator.parameters) or words[: len(plain)] != plain:
        raise OperandError(f"{source}: must be {generator.usage}, as in {generator.example}")
    numbers = [p.read(word, source) for p, word in zip(generator.parameters, plain, strict=True)]
    settings = {key: default for key, (_, default) in generator.options.items()}
    seed, values = 0, "int"
    for word in words[len(plain) :]:
        key, _, text = word.partition("=")
        if key == "seed":
            seed = _SEED.read(text, source)
        elif key == "values" and text in patterns.VALUES:
            values = text
        elif key == "values":
            hint = did_you_mean(text, patterns.VALUES)
            raise OperandError(f"{source}: values {text!r}: must be one of {', '.join(patterns.VALUES)}{hint}")
        elif key in generator.options:
            settings[key] = generator.options[key][0].read(text, source)
        else:
            allowed = ", ".join([*generator.options, "seed", "values"])
            hint = did_you_mean(key, (*generator.options, "seed", "values"))
            raise OperandError(f"{source}: option {key!r}: must be one of {allowed}{hint}")
    return numbers, settings, seed, values
