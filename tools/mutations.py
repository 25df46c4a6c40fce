"""All changes of one place in a module that a test should detect, as text.

Comparisons are reversed and widened, arithmetic operators are exchanged, numbers are increased and
decreased by one, conditions are negated, statements and raised errors are omitted, and minimum and
maximum are exchanged. Annotations, texts, messages, assertions and typing code are not changed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED = {
    ast.Lt: ("<", ["<=", ">="]),
    ast.LtE: ("<=", ["<", ">"]),
    ast.Gt: (">", [">=", "<="]),
    ast.GtE: (">=", [">", "<"]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: ("is not", ["is"]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: ("not in", ["in"]),
}
COMPUTED = {
    ast.Add: ("+", ["-"]),
    ast.Sub: ("-", ["+"]),
    ast.Mult: ("*", ["/"]),
    ast.Div: ("/", ["*"]),
    ast.FloorDiv: ("//", ["*"]),
    ast.Mod: ("%", ["//"]),
    ast.Pow: ("**", ["*"]),
    ast.LShift: ("<<", [">>"]),
    ast.RShift: (">>", ["<<"]),
    ast.BitAnd: ("&", ["|"]),
    ast.BitOr: ("|", ["&"]),
    ast.BitXor: ("^", ["&"]),
}
CALLED = {
    "min": "max",
    "minimum": "maximum",
    "ceil": "floor",
    "any": "all",
    "cumsum": "sort",
    "argmin": "argmax",
}
CALLED |= {new: old for old, new in CALLED.items() if new != "sort"}
LEFT_OUT = (ast.Assert, ast.Import, ast.ImportFrom, ast.Global)


@dataclass(frozen=True)
class Mutant:
    """One change: the text from `start` to `end` becomes `new`.

    `lines` are the lines of the statement. `function` is the name and line of the outermost
    function that contains it; None if it runs at import.
    """

    path: Path
    area: str
    line: int
    start: int
    end: int
    new: str
    old: str
    code: str
    lines: tuple[int, int]
    function: str | None

    @property
    def change(self) -> str:
        """One-line description of the change."""
        old, new = (" ".join(text.split()) or "nothing" for text in (self.old, self.new))
        return f"{old} -> {new}"

    @property
    def key(self) -> str:
        """Identifier of the mutant, which does not depend on the text above it in the file."""
        return f"{self.path.parent.name}/{self.path.name} | {self.code} | {self.change}"

    def text(self) -> str:
        """Return the text of the module with the change, with the same number of lines."""
        source = self.path.read_bytes()
        missing = "\n" * (self.old.count("\n") - self.new.count("\n"))
        changed = (self.new + missing).encode()
        return (source[: self.start] + changed + source[self.end :]).decode()


class _Finder:
    """Visitor that collects the changes of a module."""

    def __init__(self, path: Path, area: str) -> None:
        self.path, self.area, self.source = path, area, path.read_bytes()
        self.texts = self.source.decode().split("\n")
        self.starts = [0]
        for text in self.texts:
            self.starts.append(self.starts[-1] + len(text.encode()) + 1)
        self.function: str | None = None
        self.lines = (0, 0)
        self.found: list[Mutant] = []

    def place(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self.place(node.lineno, node.col_offset),
            self.place(node.end_lineno, node.end_col_offset),
        )

    def note(self, start: int, end: int, new: str) -> None:
        line = self.source[:start].count(b"\n") + 1
        old, code = self.source[start:end].decode(), self.texts[line - 1].strip()
        self.found.append(
            Mutant(
                self.path, self.area, line, start, end, new, old, code, self.lines, self.function
            )
        )

    def between(self, left: ast.expr, right: ast.expr, old: str, new: list[str]) -> None:
        """Exchange the operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        pattern = r"\s+".join(re.escape(part) for part in old.split())
        text = re.sub(rb"#[^\n]*", lambda found: b" " * len(found[0]), self.source[start:end])
        seen = re.search(pattern.encode(), text)
        assert seen is not None, (self.path, left.lineno, old)
        for other in new:
            self.note(start + seen.start(), start + seen.end(), other)

    def negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare):  # whose operator is changed
            start, end = self.span(test)
            self.note(start, end, f"(not ({self.source[start:end].decode()}))")

    def statement(self, node: ast.stmt) -> None:
        """Collect the changes of a statement and of its parts."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        outer, self.lines = self.lines, (first, max(first, last))
        if isinstance(node, ast.Raise):
            self.note(*self.span(node), "pass")
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            for part in (*node.decorator_list, *_defaults(node)):
                self.expression(part)
            before = self.function
            if isinstance(node, ast.FunctionDef) and before is None:
                self.function = node.name
            self.block(node.body)
            self.function = before
        elif not isinstance(node, LEFT_OUT) and not _typing(node):
            kinds = ast.Expr | ast.AugAssign | ast.Continue | ast.Break | ast.Delete
            if isinstance(node, kinds) and not _text(node):
                self.note(*self.span(node), "pass")
            if isinstance(node, ast.If | ast.While):
                self.negate(node.test)
            if isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
                old, new = COMPUTED[type(node.op)]
                self.between(node.target, node.value, old, new)
            for name, value in ast.iter_fields(node):
                if name == "annotation":
                    continue
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, ast.expr):
                        self.expression(part)
                    elif isinstance(part, ast.withitem):
                        self.expression(part.context_expr)
                    elif isinstance(part, ast.ExceptHandler):
                        self.block(part.body)
                    elif isinstance(part, ast.stmt):
                        self.statement(part)
        self.lines = outer

    def block(self, body: list[ast.stmt]) -> None:
        for part in body:
            self.statement(part)

    def expression(self, node: ast.AST) -> None:
        """Collect the changes of an expression."""
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
                self.between(left, right, *COMPARED[type(op)])
        elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _text(node.left):
            self.between(node.left, node.right, *COMPUTED[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            self.between(node.values[0], node.values[1], old, [new])
        elif isinstance(node, ast.UnaryOp):
            start, end = self.span(node)[0], self.span(node.operand)[0]
            if isinstance(node.op, ast.USub | ast.Not | ast.Invert):
                self.note(start, end, "" if self.source[end - 1 : end] != b"(" else "(")
        elif isinstance(node, ast.IfExp):
            self.negate(node.test)
        elif isinstance(node, ast.Constant):
            self.constant(node)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in CALLED:
                end = self.span(node.func)[1]
                self.note(end - len(name), end, CALLED[name])
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.comprehension):
                for test in part.ifs:
                    self.negate(test)
            if not isinstance(part, ast.expr_context | ast.operator):
                self.expression(part)

    def constant(self, node: ast.Constant) -> None:
        span, value = self.span(node), node.value
        if isinstance(value, bool):
            self.note(*span, str(not value))
        elif isinstance(value, int):
            self.note(*span, str(value + 1))
            self.note(*span, str(value - 1) if value else "(-1)")
        elif isinstance(value, float) and value == value:
            self.note(*span, repr(2.0 * value) if value else "1.0")
            self.note(*span, repr(0.5 * value) if value else "(-1.0)")


def _defaults(node: ast.FunctionDef | ast.ClassDef) -> Iterator[ast.expr]:
    if isinstance(node, ast.FunctionDef):
        yield from node.args.defaults
        yield from (default for default in node.args.kw_defaults if default is not None)


def _text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _text(node.left)
    value = node.value if isinstance(node, ast.Expr) else node
    return isinstance(value, ast.JoinedStr) or (
        isinstance(value, ast.Constant) and not isinstance(value.value, int | float)
    )


def _typing(node: ast.stmt) -> bool:
    """Whether a statement only defines a type or the exports of a module."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return False
    return isinstance(node.value, ast.Subscript | ast.BinOp) and node.targets[0].id.istitle()


def mutants_of(path: Path, area: str) -> list[Mutant]:
    """Return all changes of a module, in the order of the text."""
    finder = _Finder(path, area)
    finder.block(ast.parse(finder.source).body)
    unique = {(one.start, one.end, one.new): one for one in finder.found}
    return sorted(unique.values(), key=lambda one: (one.start, one.end, one.new))
