"""Formula text to column names: bare names on the left, read and never evaluated."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

__all__ = ["Formula", "parse"]


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula.

    Parameters
    ----------
    left : tuple of str
        Column names on the left side, in order.
    right : tuple of str
        Terms on the right side, without the intercept.
    intercept : bool
        Whether the right side keeps the intercept ``1``.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    intercept: bool


def parse(formula: object) -> Formula:
    """Read a formula such as ``"item1 + item2 + outcome ~ 1"``.

    Parameters
    ----------
    formula : str
        Column names joined by ``+`` on the left of ``~``; names that are not Python names are
        quoted as ``Q("St. Gallen")``.

    Returns
    -------
    Formula

    Raises
    ------
    TypeError, ValueError
        If it is not text, cannot be read, or its left side is more than a list of columns.
    """
    from patsy import EvalFactor, ModelDesc, PatsyError

    if not isinstance(formula, str):
        raise TypeError(f"formula must be text such as 'a + b ~ 1', got {type(formula).__name__}.")
    left_text, tilde, _ = formula.partition("~")
    if not tilde or not left_text.strip():
        raise ValueError(
            f"formula must name columns on the left of '~', as in 'item1 + item2 + outcome ~ 1', "
            f"got {formula!r}."
        )
    bare = re.sub(r"Q\((['\"]).*?\1\)", "", left_text)
    if any(mark in bare for mark in "-:*|/"):
        raise ValueError(
            f"formula must join the columns on its left by '+' only, got {formula!r}: put names "
            f"with other characters as Q('...')."
        )
    if "|" in formula:
        raise ValueError(f"formula must not use '|', got {formula!r}: write groups as '~ group'.")
    try:
        description = ModelDesc.from_formula(formula)
    except PatsyError:
        raise ValueError(f"formula cannot be read: {formula!r}.") from None
    terms = len(re.sub(r"Q\((['\"]).*?\1\)", "Q", left_text).split("+"))
    if terms != len(description.lhs_termlist):
        raise ValueError(
            f"formula must list each column on its left once, and nothing else, got {formula!r}."
        )
    left = []
    for term in description.lhs_termlist:
        if len(term.factors) != 1 or not isinstance(term.factors[0], EvalFactor):
            raise ValueError(f"formula must list plain columns on its left, got {formula!r}.")
        left.append(_column(term.factors[0].code, formula))
    right = tuple(term.name() for term in description.rhs_termlist if term.factors)
    intercept = any(not term.factors for term in description.rhs_termlist)
    return Formula(tuple(left), right, intercept)


def _column(code: str, formula: str) -> str:
    """Return the column a factor names: a bare name, or the text inside Q(...)."""
    tree = ast.parse(code, mode="eval").body
    if isinstance(tree, ast.Name):
        return tree.id
    if (
        isinstance(tree, ast.Call)
        and isinstance(tree.func, ast.Name)
        and tree.func.id == "Q"
        and len(tree.args) == 1
        and isinstance(tree.args[0], ast.Constant)
        and isinstance(tree.args[0].value, str)
    ):
        return tree.args[0].value
    raise ValueError(
        f"formula must list plain columns on its left, got {formula!r}: transform columns in the "
        f"frame beforehand."
    )
