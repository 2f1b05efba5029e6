"""Arithmetic in specifications, computed without running any code of theirs."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["ExpressionError", "evaluate"]

LONGEST = 1000
# 2 ** 1000 is a number; a tower of powers is an attack.
LARGEST_POWER = 1024

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": int,
    "log": math.log,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sqrt": math.sqrt,
}


class ExpressionError(ValueError):
    """Text that is no expression of numbers."""


def evaluate(text: str, names: Mapping[str, Any]) -> int | float:
    """Value of an expression of numbers, ``names``, ``+ - * / // % **``, brackets and a few functions. Raises ExpressionError."""
    if len(text) > LONGEST:
        raise ExpressionError(f"must be an expression of at most {LONGEST} letters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError("must be a number or an expression of numbers") from None
    try:
        value = _value(tree.body, names, frozenset())
    except (ArithmeticError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"must be an expression with a value ({error})") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError("must be an expression with a finite value")
    return value


def _value(node: ast.AST, names: Mapping[str, Any], open_names: frozenset[str]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Name):
        return _named(node.id, names, open_names)
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.operand, names, open_names))
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, names, open_names), _value(node.right, names, open_names)
        if isinstance(node.op, ast.Pow):
            if abs(right) > LARGEST_POWER or abs(left) > 1e9:
                raise ExpressionError("must not raise to so large a power")
            return left**right
        if type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise ExpressionError(f"{node.func.id}: must be one of {', '.join(FUNCTIONS)}")
        return FUNCTIONS[node.func.id](*(_value(each, names, open_names) for each in node.args))
    raise ExpressionError("must be a number or an expression of numbers")


def _named(name: str, names: Mapping[str, Any], open_names: frozenset[str]) -> Any:
    """A variable; its own value may be an expression of others."""
    if name not in names:
        known = f": must be one of {', '.join(sorted(names))}" if names else ": there are no variables"
        raise ExpressionError(f"no variable {name!r}{known}")
    value = names[name]
    if isinstance(value, str):
        if name in open_names:
            raise ExpressionError(f"variable {name!r} is defined by itself")
        try:
            tree = ast.parse(value.strip(), mode="eval")
        except (SyntaxError, ValueError):
            raise ExpressionError(f"variable {name!r} is {value!r}, no number") from None
        return _value(tree.body, names, open_names | {name})
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"variable {name!r} is {value!r}, no number")
    return value
