"""Parsing of formulas to columns and design matrices; the only module that uses patsy.

The left-hand side is parsed and never evaluated. The right-hand side is evaluated on tables of
declared levels and bounds alone, never on data, so no level, centre or knot depends on the answers.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NAME = r"Q\((['\"]).*?\1\)"
"""A quoted name in a formula, for names that are not Python names."""

_DOTTED = r"(['\"]).*?\1|([^\W\d]\w*(?:\.\w+)+)(?!\w*\s*\()"
"""A quoted text, or a name with dots."""

_CONTRASTS = {"Diff", "Helmert", "Poly", "Sum", "Treatment"}
"""Contrasts of patsy for the columns of a factor."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula: columns on the left, terms and text of the right-hand side."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    intercept: bool
    right_text: str


def parse(formula: object) -> Formula:
    """Parse a formula such as ``"item1 + item2 + outcome ~ 1"``.

    Column names are joined by ``+`` on the left of ``~``. Names that are not Python names are
    quoted as ``Q("St. Gallen")``; names with dots, common in R, need no quotes.
    """
    from patsy import EvalFactor

    if not isinstance(formula, str):
        raise TypeError(f"formula must be text such as 'a + b ~ 1', got {type(formula).__name__}.")
    # names with dots, such as tech.equip, are attributes in Python: quote them as Q("...")
    text = re.sub(_DOTTED, lambda match: f'Q("{match[2]}")' if match[2] else match[0], formula)
    plain = re.sub(_NAME, lambda match: "Q" * len(match[0]), text)  # names may have any character
    # search for operators outside quoted names
    left = plain.partition("~")[0]
    if left == plain or not left.strip():
        raise ValueError(
            f"formula must name columns on the left of '~', such as 'item1 + item2 + outcome ~ 1', "
            f"got {formula!r}."
        )
    if any(mark in left for mark in "-:*|/"):
        raise ValueError(
            f"formula must join the columns on its left by '+' only, got {formula!r}. Quote names "
            f"with other characters as Q('...')."
        )
    if "|" in plain:
        raise ValueError(f"formula must not use '|', got {formula!r}. Write groups as '~ group'.")
    description = _described(text, formula)
    if len(left.split("+")) != len(description.lhs_termlist):
        raise ValueError(
            f"formula must list each column on its left once, and nothing else, got {formula!r}."
        )
    names = []
    for term in description.lhs_termlist:
        if len(term.factors) != 1 or not isinstance(term.factors[0], EvalFactor):
            raise ValueError(f"formula must list plain columns on its left, got {formula!r}.")
        names.append(_column(term.factors[0].code, formula))
    terms = [term for term in description.rhs_termlist if term.factors]
    intercept = len(terms) < len(description.rhs_termlist)
    return Formula(tuple(names), tuple(map(_name, terms)), intercept, text[len(left) + 1 :].strip())


def _name(term: Any) -> str:
    """Return the column of a term that is a column, or the term as patsy writes it."""
    try:
        return _column(term.name(), "")
    except ValueError:
        return str(term.name())


def _column(code: str, formula: str) -> str:
    """Return the column that a factor names: a bare name, or the text inside Q(...)."""
    match _parsed(code):
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))]):
            return name
    raise ValueError(
        f"formula must list plain columns on its left, got {formula!r}. Transform columns in the "
        f"frame beforehand, and quote names that are not Python names as Q('...')."
    )


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor on the right of a formula: its column, or ``C(column, levels=[...])``."""

    column: str
    categorical: bool = False
    levels: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class ModelColumns:
    """The right-hand side of a formula evaluated on a table: a matrix with the rows of the table.

    `terms` contains the name of each term, its first column, and one past its last.
    """

    names: tuple[str, ...]
    terms: tuple[tuple[str, int, int], ...]
    matrix: NDArray[np.float64]


def terms_of(right: str) -> tuple[tuple[Factor, ...], ...]:
    """Return the factors of each term on the right side of a formula.

    `right` is the text of the right side; only plain columns and ``C(column, ...)`` are allowed.
    """
    return tuple(
        tuple(_factor(factor.code, right) for factor in term.factors)
        for term in _described(f"~ {right}").rhs_termlist
    )


def factors_of(right: str) -> tuple[Factor, ...]:
    """Return the factors on the right side of a formula, each column once."""
    factors: dict[str, Factor] = {}
    for read in (factor for term in terms_of(right) for factor in term):
        if not factors.setdefault(read.column, read).categorical:
            factors[read.column] = read
    return tuple(factors.values())


def columns_of(right: str, table: Any) -> ModelColumns:
    """Evaluate the right side of a formula on a table of public values.

    A categorical column declares its levels by its type.
    """
    from patsy import EvalEnvironment, ModelDesc, dmatrix

    terms = _described(f"~ {right}").rhs_termlist
    try:
        # an empty environment: names refer to the table and to patsy's own functions
        matrix = dmatrix(ModelDesc([], terms), table, EvalEnvironment([{}]))
    except Exception as error:
        # patsy raises errors of many types for invalid contrasts, so the cause is chained
        raise ValueError(
            f"formula cannot be evaluated on its declared levels and bounds: {f'~ {right}'!r}."
        ) from error
    info = matrix.design_info
    slices = tuple((name, part.start, part.stop) for name, part in info.term_name_slices.items())
    return ModelColumns(tuple(info.column_names), slices, np.asarray(matrix, dtype=np.float64))


def constraint(
    hypothesis: Any, names: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights, shape (rows, names), and right sides (rows, 1) of a linear hypothesis.

    The hypothesis is a set of equations such as ``"London = Paris"``, or an array of weights, one
    column per coefficient, with right sides if these are not 0.
    """
    from patsy import DesignInfo, PatsyError

    try:
        read = DesignInfo(names).linear_constraint(hypothesis)
        if read.coefs.any(axis=1).all() and np.isfinite(read.coefs).all():
            return read.coefs, read.constants
        reason = None
    except (PatsyError, ValueError, TypeError, IndexError, OverflowError) as error:
        reason = error  # one message for all of them
    example = f"{names[0]} = {names[1]}" if len(names) > 1 else f"{names[0]} = 0"
    raise ValueError(
        f"hypothesis must be equations of coefficients such as '{example}', or an array of weights "
        f"with {len(names)} columns, one for each coefficient: {', '.join(names)}."
    ) from reason


def _described(text: str, formula: str | None = None) -> Any:
    """Return what patsy reads in a text; `formula` is the formula in messages, if another."""
    from patsy import ModelDesc

    try:
        return ModelDesc.from_formula(text)
    except Exception as error:  # patsy raises errors of many types for invalid formulas
        raise ValueError(
            f"formula cannot be parsed: {formula or text!r}. Quote names that are not Python names "
            f"as Q('...')."
        ) from error


def _parsed(code: str) -> ast.expr | None:
    """Return the syntax tree of a factor, None if it is not Python."""
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _factor(code: str, right: str) -> Factor:
    """Return the column of a factor: a bare name, Q('name') or C(name, ...).

    A factor may call contrasts of patsy alone, because a formula must not execute code.
    """
    # the syntax tree is inspected, never evaluated: inside C(...) names of contrasts and plain
    # values are allowed, attributes and other calls are not
    match _parsed(code):
        case ast.Call(func=ast.Name(id="C"), args=[column, *others], keywords=words):
            nodes = [node for part in (*others, *words) for node in ast.walk(part)]
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            if not names <= _CONTRASTS or any(isinstance(node, ast.Attribute) for node in nodes):
                raise ValueError(
                    f"formula must use contrasts of patsy or plain values in C(...), got "
                    f"{f'~ {right}'!r}."
                )
            levels = [word.value for word in words if word.arg == "levels"]
            try:
                listed = tuple(ast.literal_eval(levels[0])) if levels else None
            except (ValueError, TypeError):
                raise ValueError(
                    f"formula must list levels in C(..., levels=[...]) as plain values, got "
                    f"{f'~ {right}'!r}."
                ) from None
            return Factor(_column(ast.unparse(column), right), True, listed)
    try:
        return Factor(_column(code, right))
    except ValueError:
        raise ValueError(
            f"formula must use plain columns or C(column, ...) on its right, got "
            f"{f'~ {right}'!r}. Quote a name that is not a Python name, such as Q('age group'). "
            f"Transform columns in the frame beforehand."
        ) from None
