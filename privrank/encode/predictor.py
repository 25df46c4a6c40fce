"""Covariates read from a frame: which declared level, or which value, each unit has.

The linear predictor is declared beforehand (:mod:`privrank.bradley_terry.modelmatrix`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.modelmatrix import Predictor, Schema
from privrank.encode import counting
from privrank.encode.encoded import sum_by
from privrank.encode.encoding import Units, declared_codes
from privrank.release.survey import Covariates, DesignKind, scaled_position
from privrank.util.formula import factors_of

__all__ = ["read_patterns", "schema_of", "units_by_pattern"]

IntArray = NDArray[np.int64]


def schema_of(frame: object, right: str, *, public: bool) -> Schema:
    """Return what a frame declares of the columns on the right side of a formula.

    Where it is `public` who has which level, the columns may say which there are.
    """
    view = counting.open_frame(frame, "data")
    names = set(counting.column_names(view))
    used = [factor.column for factor in factors_of(right) if factor.column in names]
    own = {name: counting.declared_values(frame, name, public=public) for name in used}
    levels = {name: values for name, values in own.items() if values is not None}
    numbers = counting.numeric_columns(view, [name for name in used if name not in levels])
    return Schema(names, levels, numbers)


def read_patterns(
    predictor: Predictor,
    keys: Mapping[str, counting.Key],
    first_named: IntArray,
    person: IntArray | None,
    kind: DesignKind,
) -> tuple[IntArray, Covariates]:
    """Return the pattern of each group of rows, and the covariates with their patterns.

    Given the groups' keys by column, 1 or -1 by which item was named first, and the respondents.
    Under a public design the patterns are those that occur; under a private one all cells. Entries
    that are missing, undeclared or out of bounds are refused, and so are covariates that change
    within a respondent.
    """
    facts = predictor.covariates
    if kind == "private" and (facts.bounds or facts.ordered):
        what = "numeric covariates need" if facts.bounds else "an order effect needs"
        raise ValueError(
            f"{what} design='public', because the fit has to know who has which value: use it if "
            f"that is public, or cut numbers into declared levels."
        )
    cell = np.zeros(len(first_named), dtype=np.int64)
    for name, levels in predictor.levels.items():
        remedy = "levels=: declare all that the questionnaire offers, with one for people who did "
        place = declared_codes(keys[name], levels, name, "levels", remedy + "not say")
        cell = cell * len(levels) + place
    position = np.zeros((len(cell), len(facts.bounds)), dtype=np.int64)
    for column, (name, low, high) in enumerate(facts.bounds):
        position[:, column] = _position(keys[name], name, low, high)
    values = np.column_stack((cell, position))
    if person is not None:
        _check_constant(person, values, predictor.columns)
    if kind == "private":
        cells = np.arange(facts.cells)
        none = np.zeros((facts.cells, 0), dtype=np.int64)
        return cell, replace(facts, cell=cells, position=none, first=np.zeros_like(cells))
    order = first_named if facts.ordered else np.zeros_like(first_named)
    distinct, pattern = np.unique(np.column_stack((values, order)), axis=0, return_inverse=True)
    met = replace(facts, cell=distinct[:, 0], position=distinct[:, 1:-1], first=distinct[:, -1])
    return pattern.ravel(), met


def _position(key: counting.Key, column: str, low: float, high: float) -> IntArray:
    """Return numbers within their bounds, scaled, in lattice steps."""
    values = np.append(key.values.astype(np.float64), np.nan)[key.codes]
    if not ((values >= low) & (values <= high)).all():
        raise ValueError(
            f"column {column!r} must lie within its bounds, {low:g} to {high:g}, and none may be "
            f"missing: state the bounds of the questionnaire, or clip the column to them."
        )
    return scaled_position(values, low, high)


def _check_constant(person: IntArray, values: IntArray, columns: Sequence[str]) -> None:
    """Refuse covariates that change within a respondent; `values` has one row per group of rows."""
    order = np.argsort(person, kind="stable")
    same = person[order][1:] == person[order][:-1]
    if (values[order][1:] != values[order][:-1])[same].any():
        raise ValueError(
            f"a respondent must have one value of each covariate ({', '.join(columns)}), and at "
            f"least one has two: covariates describe respondents."
        )


def units_by_pattern(
    pattern: IntArray, size: IntArray, units: Units, covariates: Covariates
) -> IntArray:
    """Return, by pattern, the units with its covariates, in whichever order items were named."""
    by_pattern = covariates.kinds
    kind, kinds = by_pattern[pattern], int(by_pattern.max()) + 1
    if units.person is None:
        return sum_by(kind, size, kinds)[by_pattern]
    each = np.unique(units.person * kinds + kind) % kinds
    return np.bincount(each, minlength=kinds).astype(np.int64)[by_pattern]
