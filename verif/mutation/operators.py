"""Every way in which the hardware of a source file can be broken by one small change of its text.

Only hardware is changed: functions that make, get or return parts of a module. Text, types, validation, shapes and the
parameters of instances stay.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutation", "mutations"]

OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "|"}
COMPARISONS = {ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
SYMBOLS |= {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}  # type: ignore[dict-item]
POINTERS = (
    "index",
    "pointer",
    "position",
    "address",
    "head",
    "tail",
    "offset",
    "slot",
    "entry",
    "addr",
    "cursor",
    "line",
)
# Calls whose arguments are sizes and names, not logic; so are those of every class but these two.
SIZES = ("range", "unsigned", "signed", "len", "enumerate", "zip", "int", "bit_length", "replicate", "getattr", "check")
LOGIC_CALLS = ("Mux", "Cat")
RETURNED = ("Value", "Signal", "Statement", "Assign")
DOMAINS = {"comb": "sync", "sync": "comb"}


@dataclass(frozen=True)
class Mutation:
    """One change of one file.

    Parameters
    ----------
    file: path from the root, with slashes.
    line, column: where it is, from 1 and 0.
    operator: kind of change.
    before, after: what is written there, and instead of it.
    edits: begin, end and new text of each replaced part, as offsets into the file's text; they do not overlap.
    """

    file: str
    line: int
    column: int
    operator: str
    before: str
    after: str
    edits: tuple[tuple[int, int, str], ...]

    @property
    def name(self) -> str:
        """Tells it from every other one of the same text."""
        return f"{self.file}:{self.line}:{self.column}:{self.operator}:{_squeezed(self.after)}"

    def apply(self, text: str) -> str:
        """The changed file."""
        for begin, end, new in sorted(self.edits, reverse=True):
            text = text[:begin] + new + text[end:]
        return text


def mutations(file: str, text: str) -> list[Mutation]:
    """All mutations of a file, in the order of its text."""
    finder = _Finder(file, text)
    for function in _hardware(ast.parse(text)):
        finder.function(function)
    unique = {mutation.name: mutation for mutation in finder.found}
    return sorted(unique.values(), key=lambda mutation: (mutation.line, mutation.column, mutation.name))


def _hardware(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The outermost functions that make hardware."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and _makes_hardware(node):
            yield node
        else:
            yield from _hardware(node)


def _makes_hardware(function: ast.FunctionDef) -> bool:
    if any(argument.arg == "m" for argument in function.args.args):
        return True
    if function.returns is not None and any(name in ast.unparse(function.returns) for name in RETURNED):
        return True
    return any(
        isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "m" and ast.unparse(node.value) == "Module()"
        for node in ast.walk(function)
    )


class _Finder:
    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.found: list[Mutation] = []
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def function(self, function: ast.FunctionDef) -> None:
        self._block(function.body)

    def _block(self, body: list[ast.stmt]) -> None:
        self._swapped_connections(body)
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.FunctionDef):
            self._block(statement.body)
        elif isinstance(statement, ast.With):
            for item in statement.items:
                self._condition(item.context_expr)
            self._block(statement.body)
        elif isinstance(statement, (ast.If, ast.For)):
            # Which hardware there is was decided by a parameter.
            self._block(statement.body)
            self._block(statement.orelse)
        elif isinstance(statement, ast.AugAssign) and _domain(statement.target) is not None:
            self._assignments(statement)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if isinstance(statement.value.func, ast.Name) and statement.value.func.id == "connect":
                self._note(statement, "drop", "pass", (self._edit(statement, "pass"),))
            else:
                self._expression(statement.value)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            self._expression(statement.value)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            self._expression(statement.value)

    def _condition(self, node: ast.expr) -> None:
        """Of ``m.If`` or ``m.Elif``; other contexts, such as ``m.Case``, are left alone."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("If", "Elif"):
            inner = node.args[0]
            source = self._source(inner)
            self._note(inner, "negate", f"~({source}).bool()", (self._edit(inner, f"~({source}).bool()"),))
            self._expression(inner)

    def _assignments(self, statement: ast.AugAssign) -> None:
        """``m.d.sync += ...``: each assignment may be missing or lie in the other domain; their sources may be swapped."""
        assert isinstance(statement.target, ast.Attribute)
        domain = statement.target.attr
        other = DOMAINS.get(domain)
        value = statement.value
        items = value.elts if isinstance(value, ast.List) else [value]
        for item in items:
            source = self._source(item)
            alone = not isinstance(value, ast.List)
            if isinstance(item, ast.Starred):
                continue
            self._note(item, "drop", "nothing", (self._edit(item, "[]" if alone else "*[]"),))
            if other is not None:
                if alone:
                    edits = (self._edit(statement.target, f"m.d.{other}"),)
                else:
                    indent = " " * statement.col_offset
                    end = self._end(statement)
                    edits = (self._edit(item, "*[]"), (end, end, f"\n{indent}m.d.{other} += {_squeezed(source)}"))  # type: ignore[assignment]
                self._note(item, f"to_{other}", f"m.d.{other} += {source}", edits)
            self._expression(item)
            self._pointer(item)
        for one, two in zip(items, items[1:], strict=False):
            if _is_assignment(one) and _is_assignment(two):
                self._swap("swap_sources", one, one.args[0], two.args[0])  # type: ignore[attr-defined]

    def _pointer(self, item: ast.expr) -> None:
        if _is_assignment(item):
            assert isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute)
            target = ast.unparse(item.func.value).rsplit(".", 1)[-1]
            if any(word in target for word in POINTERS):
                source = item.args[0]
                after = f"({self._source(source)}) + 1"
                self._note(source, "pointer", after, (self._edit(source, after),))

    def _swapped_connections(self, body: list[ast.stmt]) -> None:
        calls = [
            statement.value
            for statement in body
            if isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and ast.unparse(statement.value.func) == "connect"
            and len(statement.value.args) == 3
        ]
        for one, two in zip(calls, calls[1:], strict=False):
            self._swap("swap_ports", one, one.args[2], two.args[2])

    def _swap(self, operator: str, at: ast.expr, one: ast.expr, two: ast.expr) -> None:
        first, second = self._source(one), self._source(two)
        if first != second:
            edits = (self._edit(one, second), self._edit(two, first))
            self._note(at, operator, f"{second} <> {first}", edits, f"{first} <> {second}")

    def _expression(self, node: ast.AST) -> None:
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            self._infix("operator", node, node.left, node.right, node.op, OPERATORS[type(node.op)])
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            self._infix("compare", node, node.left, node.comparators[0], node.ops[0], COMPARISONS[type(node.ops[0])])
        elif isinstance(node, ast.Constant):
            if type(node.value) is int:
                for changed in {node.value + 1, max(node.value - 1, 0)} - {node.value}:
                    self._note(node, "constant", str(changed), (self._edit(node, str(changed)),))
            return
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            bare = f"({self._source(node.operand)})"
            self._note(node, "not", bare, (self._edit(node, bare),))
        elif isinstance(node, ast.Call):
            self._call(node)
            return
        elif isinstance(node, (ast.Lambda, ast.JoinedStr, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.IfExp)):
            self._expression(node.elt if isinstance(node, (ast.GeneratorExp, ast.ListComp)) else ast.Pass())
            return
        for child in ast.iter_child_nodes(node):
            self._expression(child)

    def _call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name == "Mux" and len(node.args) == 3:
            self._swap("mux", node, node.args[1], node.args[2])
        if isinstance(node.func, ast.Attribute):
            self._expression(node.func.value)
        if name not in LOGIC_CALLS and (name.startswith(SIZES) or name.lstrip("_")[:1].isupper()):
            for keyword in node.keywords:
                if name == "Signal" and keyword.arg == "init":
                    self._expression(keyword.value)
            return
        for argument in node.args:
            self._expression(argument)

    def _infix(self, operator: str, node: ast.expr, left: ast.expr, right: ast.expr, symbol: ast.AST, new: str) -> None:
        """Replaces the symbol between two operands, which may stand in parentheses or on another line."""
        begin, end = self._end(left), self._begin(right)
        between = self.text[begin:end]
        old = SYMBOLS[type(symbol)]  # type: ignore[index]
        at = between.find(old)
        if at < 0 or "#" in between:
            return
        edit = (begin + at, begin + at + len(old), new)
        whole = (self._begin(node), self._end(node))
        after = self.text[whole[0] : edit[0]] + new + self.text[edit[1] : whole[1]]
        self._note(node, operator, after, (edit,))

    def _note(
        self, node: ast.AST, operator: str, after: str, edits: tuple[tuple[int, int, str], ...], before: str = ""
    ) -> None:
        shown = before or self._source(node)
        self.found.append(
            Mutation(
                file=self.file,
                line=node.lineno,  # type: ignore[attr-defined]
                column=node.col_offset,  # type: ignore[attr-defined]
                operator=operator,
                before=_squeezed(shown),
                after=_squeezed(after),
                edits=edits,
            )
        )

    def _edit(self, node: ast.AST, new: str) -> tuple[int, int, str]:
        return self._begin(node), self._end(node), new

    def _source(self, node: ast.AST) -> str:
        return self.text[self._begin(node) : self._end(node)]

    def _begin(self, node: ast.AST) -> int:
        return self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _offset(self, line: int, column: int) -> int:
        """``ast`` counts columns in bytes."""
        start = self.starts[line - 1]
        row = self.text[start : self.starts[line]]
        return start + len(row.encode()[:column].decode())


def _domain(target: ast.expr) -> str | None:
    """``sync`` of ``m.d.sync``."""
    is_domain = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "m.d"
    return target.attr if is_domain and isinstance(target, ast.Attribute) else None


def _is_assignment(node: ast.expr) -> bool:
    """``x.eq(y)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "eq"


def _squeezed(text: str) -> str:
    """On one line."""
    return " ".join(text.split())
