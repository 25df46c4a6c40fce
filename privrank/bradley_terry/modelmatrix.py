"""The model matrix of the right side of a formula, with declared levels and bounds.

Levels and bounds are declarations, and the model matrix is computed from them alone. This module
has no access to the data. The level of each unit, or its value within the bounds, is read from the
data frame later (:mod:`privrank.encode.comparisons`).
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from math import prod
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from privrank.release.survey import Covariates, powers_of, scaled_position
from privrank.util.arrays import FloatArray
from privrank.util.checks import as_list, as_numbers
from privrank.util.formula import Factor, columns_of, factors_of

_NAMED = (
    "the formula names columns of data, to which those that as_comparisons left out are merged "
    "back by respondent"
)

MAX_CELLS = 1024
MAX_NUMERIC = 6
"""Largest numbers of level combinations and of numeric covariates; a fit takes some seconds."""

FIRST = "first"
"""The contest covariate that is 1 where a row names the item first, and -1 for the other item."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The declarations of a data frame by the names and types of its columns, without any cell.

    Parameters
    ----------
    names : set of str
        Names of the columns.
    levels : mapping of str to sequence
        Columns of the formula whose types list their values.
    numeric : set of str
        Columns of the formula that contain numbers.
    """

    names: Set[str]
    levels: Mapping[str, Sequence[Any]]
    numeric: Set[str]


@dataclass(frozen=True, slots=True)
class Predictor:
    """The right side of a formula with its levels and bounds, and its model matrix.

    Parameters
    ----------
    covariates : Covariates
        The linear predictor, without patterns.
    levels : mapping of str to tuple
        The declared levels of each categorical covariate, in the form used in the data frame.
    """

    covariates: Covariates
    levels: Mapping[str, tuple[Any, ...]]

    @property
    def of_units(self) -> tuple[str, ...]:
        """The columns of the frame that the covariates of units are read from."""
        return (*self.levels, *(name for name, _, _ in self.covariates.bounds))

    @property
    def of_contests(self) -> tuple[str, ...]:
        """The columns of the frame that contest covariates are read from."""
        return tuple(name for name in self.covariates.contest if name != FIRST)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the frame that covariates are read from."""
        return self.of_units + self.of_contests


def declare(
    right: str,
    schema: Schema,
    labels: Sequence[Any],
    *,
    levels: object,
    bounds: object,
    item_formula: object,
    item_data: object,
    contest: object,
) -> Predictor:
    """Compute the model matrix of the right side of a formula.

    Parameters
    ----------
    right : str
        Text of the right side.
    schema : Schema
        The columns of the data.
    labels : sequence
        The items.
    levels : mapping of str to sequence, or None
        Levels of columns; columns that the formula does not use are allowed.
    bounds : mapping of str to (low, high), or None
        Bounds of the numeric columns.
    item_formula, item_data : str and data frame, or None
        Right side of a formula over item covariates, and their table, one row per item.
    contest : str or None
        Names of contest covariates, joined by plus signs.

    Raises
    ------
    ValueError, TypeError
        If the arguments do not declare a model.
    """
    factors = factors_of(right)
    shown = " ".join(right.split())  # on one line, for tables
    contests = _contests(contest, schema.names, labels)
    if FIRST not in schema.names and any(factor.column == FIRST for factor in factors):
        raise ValueError(
            "formula must not use 'first', which describes comparisons and not respondents. Use "
            "contest='first' instead."
        )
    choices, ranges = _declarations(factors, schema, levels, bounds)
    names, matrix = _item_matrix(item_formula, item_data, labels)
    columns, monomials, weights = _weights(right, choices, ranges)
    if not columns.names:
        raise ValueError(
            f"formula must keep an intercept or a covariate on its right, got '~ {shown}'."
        )
    # columns of unit length are collinear where the least eigenvalue of their products is 0
    size = np.sqrt(np.maximum((weights**2).sum(axis=0), 1e-300))
    if np.linalg.eigvalsh((weights / size).T @ (weights / size))[0] < 1e-12:
        raise ValueError(
            f"the coefficients of '~ {shown}' cannot be estimated separately. Leave out covariates "
            f"that repeat each other."
        )
    return Predictor(
        Covariates(
            formula=shown,
            factors=tuple(
                (name, tuple(str(level) for level in known)) for name, known in choices.items()
            ),
            bounds=tuple((name, low, high) for name, (low, high) in ranges.items()),
            monomials=monomials,
            columns=columns.names,
            terms=columns.terms,
            weights=weights,
            contest=contests,
            item_columns=names,
            item_matrix=matrix,
            cell=np.zeros(0, dtype=np.int64),
            position=np.zeros((0, len(ranges)), dtype=np.int64),
            contests=np.zeros((0, len(contests))),
            units=np.zeros(0),
        ),
        choices,
    )


def _contests(contest: object, known: Set[str], labels: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of contest covariates, the columns of data and the order of naming."""
    if contest is None:
        return ()
    names = tuple(name.strip() for name in contest.split("+")) if isinstance(contest, str) else ()
    clear = {*names} <= known ^ {FIRST}  # `first` is no column
    if not clear or not names or len({*names}) < len(names):
        raise ValueError(
            f"contest must be different numeric columns of data joined by plus signs, such as "
            f"'length + first', got {contest!r}. 'first' is the order of naming, so no column may "
            f"have this name. Compute products and powers as columns first."
        )
    if {*names} & {*map(str, labels)}:
        raise ValueError(f"items must not have names of contest covariates ({contest}).")
    return names


def _declarations(
    factors: Sequence[Factor], schema: Schema, levels: object, bounds: object
) -> tuple[dict[str, tuple[Any, ...]], dict[str, tuple[float, float]]]:
    """Return the declared levels of the categorical covariates and the bounds of the numeric."""
    # a column with levels, declared or by its type, is categorical; all others need bounds
    declared = _mapping("levels", levels)
    limits = _mapping("bounds", bounds)
    if unknown := declared.keys() - schema.names:
        raise ValueError(
            f"levels must name columns of data, not {sorted(map(str, unknown))}: {_NAMED}."
        )
    if unknown := limits.keys() - {factor.column for factor in factors}:
        raise ValueError(f"bounds must name columns of the formula, not {sorted(unknown)}.")
    choices: dict[str, tuple[Any, ...]] = {}
    ranges: dict[str, tuple[float, float]] = {}
    for factor in factors:
        if factor.column not in schema.names:
            raise ValueError(f"data has no column {factor.column!r}: {_NAMED}.")
        # the levels of the call come before those of the formula, and these before the type's
        stated = (
            declared.get(factor.column),
            factor.levels,
            schema.levels.get(factor.column),
        )
        known = [listed for listed in stated if listed is not None]
        if known:
            choices[factor.column] = _distinct(known[0], factor.column)
        elif factor.column in schema.numeric and not factor.categorical:
            ranges[factor.column] = _bounds(factor.column, limits.get(factor.column))
        else:
            raise ValueError(
                f"levels must be declared for {factor.column!r}, as "
                f"levels={{{factor.column!r}: [...]}}. List all levels that the questionnaire "
                f"offers. A list taken from the answers, which the categories of a pandas column "
                f"may be, would reveal them."
            )
    if unused := limits.keys() - ranges.keys():
        raise ValueError(f"bounds are for numeric columns, and {sorted(unused)} have levels.")
    cells = prod(len(known) for known in choices.values())
    if cells > MAX_CELLS or len(ranges) > MAX_NUMERIC:
        raise ValueError(
            f"formula must make at most {MAX_CELLS} groups and use at most {MAX_NUMERIC} numeric "
            f"covariates: it has {cells} combinations of levels and {len(ranges)} numbers."
        )
    return choices, ranges


def _mapping(name: str, given: object) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{name} must map names of columns to their {name}, got {type(given).__name__}."
        )
    return dict(given)


def _distinct(levels: object, column: str) -> tuple[Any, ...]:
    """Return declared levels of any kind, such as the intervals of ``pandas.cut``."""
    listed = tuple(as_list(levels) or ())
    if (
        len(listed) < 2
        or len({str(level) for level in listed}) < len(listed)
        or any(pd.isna(level) is True for level in listed)
    ):
        raise ValueError(
            f"the levels of {column!r} must be a sequence of at least two different values, in the "
            f"order of the questionnaire."
        )
    return listed


def _bounds(column: str, given: object) -> tuple[float, float]:
    ends = as_numbers(given)
    low, high = ends.tolist() if ends is not None and len(ends) == 2 else (np.nan, np.nan)
    if not (np.isfinite([low, high, 2.0 * (high - low)]).all() and low < high):
        raise ValueError(
            f"numeric column {column!r} needs bounds={{{column!r}: (low, high)}}, two finite "
            f"numbers from the questionnaire that limit the influence of a respondent. It also "
            f"needs design='public', because the fit uses the values of the respondents. Give "
            f"both, or cut the numbers into declared levels."
        )
    return float(low), float(high)


def _weights(
    right: str,
    choices: Mapping[str, tuple[Any, ...]],
    ranges: Mapping[str, tuple[float, float]],
) -> tuple[Any, tuple[tuple[int, ...], ...], FloatArray]:
    """Return the columns of the model matrix, the monomials, and rows to columns, shape (R, K).

    The model matrix is linear in each numeric covariate, because only untransformed columns are
    allowed. Its differences between the middle (u = 0) and the upper bound (u = 1) are therefore
    the coefficients of the monomials.
    """
    # one row for every combination of levels and of middles and upper bounds
    corners = list(product((0, 1), repeat=len(ranges)))
    cells = list(product(*(range(len(levels)) for levels in choices.values())))
    rows = [(cell, corner) for cell in cells for corner in corners]
    table: dict[str, Any] = {
        name: pd.Categorical.from_codes(
            [cell[place] for cell, _ in rows],
            dtype=pd.CategoricalDtype(
                # formulas can name numbers and text
                [level if isinstance(level, str | int | float) else str(level) for level in levels]
            ),
        )
        for place, (name, levels) in enumerate(choices.items())
    }
    for place, (name, (low, high)) in enumerate(ranges.items()):
        table[name] = [high if corner[place] else 0.5 * (low + high) for _, corner in rows]
    grid = pd.DataFrame(table, index=range(len(rows)))
    columns = columns_of(right, grid)
    weights = columns.matrix.reshape(len(cells), *(2,) * len(ranges), len(columns.names))
    # along each numeric covariate: the value in the middle, and the slope to the upper bound
    for axis in range(1, 1 + len(ranges)):
        weights = np.concatenate(
            (np.take(weights, [0], axis), np.diff(weights, axis=axis)), axis=axis
        )
    weights = weights.reshape(len(cells), len(corners), -1)
    size = np.abs(weights).max(axis=(0, 2), initial=0.0)
    used = [k for k in range(len(corners)) if k == 0 or size[k] > 1e-12 * size.max()]
    weights = weights[:, used].reshape(len(cells) * len(used), -1)
    return columns, tuple(corners[k] for k in used), weights


def _item_matrix(
    formula: object, data: object, labels: Sequence[Any]
) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names and the centred values of the item covariates, shape (m, q)."""
    if formula is None and data is None:
        return (), np.zeros((len(labels), 0))
    if not isinstance(formula, str) or "~" in formula or not isinstance(data, pd.DataFrame):
        raise TypeError(
            "item_formula must be text such as 'prestige + city' and item_data a pandas frame "
            "whose index names the items: give both."
        )
    place = data.index.get_indexer(pd.Index(labels)) if data.index.is_unique else np.array([-1])
    if (place < 0).any():
        raise ValueError("item_data must have one row per item, its index the items' names.")
    table = data.iloc[place]
    for factor in factors_of(formula):
        if factor.column not in table.columns:
            raise ValueError(
                f"item_data has no column {factor.column!r}, which item_formula names."
            )
        if table[factor.column].isna().any():
            raise ValueError(f"item_data must have {factor.column!r} for every item.")
    columns = columns_of(formula, table)
    # worths are centred, so an intercept and the means of covariates have no meaning
    used = [k for k, name in enumerate(columns.names) if name != "Intercept"]
    matrix = columns.matrix[:, used]
    if not np.isfinite(matrix).all():
        raise ValueError("item_data must hold finite numbers.")
    matrix = matrix - matrix.mean(axis=0)
    unit = matrix / np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    if not used or np.linalg.matrix_rank(unit, tol=1e-9) < len(used):
        raise ValueError(
            f"item_formula must have columns that differ between items and do not repeat each "
            f"other, got {formula!r}: leave some out."
        )
    return tuple(columns.names[k] for k in used), matrix


def rows_at(facts: Covariates, table: Mapping[str, Sequence[Any]], size: int) -> FloatArray:
    """Return model matrix rows at given levels and numbers, shape (size, K).

    Parameters
    ----------
    facts : Covariates
        The public facts about the covariates.
    table : mapping of str to sequence
        Values of the covariates; a numeric covariate that is left out has the middle of its bounds.
    size : int
        Length of the sequences.

    Raises
    ------
    ValueError
        If a level is not declared, or a number is out of its bounds.
    """
    # cells are the combinations of declared levels, with the last factor varying fastest; within a
    # cell a row of the matrix is a polynomial in the positions of numbers within their bounds
    cell = np.zeros(size, dtype=np.int64)
    for name, declared in facts.factors:
        number = {level: place for place, level in enumerate(declared)}
        place = np.array([number.get(str(v), -1) for v in table.get(name, [None] * size)])
        if size and (place < 0).any():
            raise ValueError(
                f"covariate {name!r} must be given as one of {', '.join(map(repr, declared))}."
            )
        cell = cell * len(declared) + place
    position = np.zeros((size, len(facts.bounds)), dtype=np.int64)
    for column, (name, low, high) in enumerate(facts.bounds):
        middle = [0.5 * (low + high)] * size
        numbers = np.array(
            [v if isinstance(v, Real) else np.nan for v in table.get(name, middle)], dtype=float
        )
        if not ((numbers >= low) & (numbers <= high)).all():
            raise ValueError(
                f"covariate {name!r} must be a number in its bounds, {low:g} to {high:g}."
            )
        position[:, column] = scaled_position(numbers, low, high)
    powers = facts.step * powers_of(position, facts.monomials)
    weights = facts.weights.reshape(facts.cells, len(facts.monomials), -1)
    return np.asarray(np.einsum("sp,spk->sk", powers, weights[cell]))
