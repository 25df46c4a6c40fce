"""Tables of pairs of items: differences, predictions, quasi standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from privrank.bradley_terry.contrasts import Worths, quasi_variances, standard_errors
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.fit import answer_probabilities
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.linear import pair_predictors
from privrank.bradley_terry.scoretests import intervals
from privrank.release.release import Release
from privrank.release.survey import Design
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import check_flag


def probability_name(releases: Sequence[Release]) -> str:
    """Return the column name of preference probabilities, by the model of ties."""
    if all(release.design.davidson for release in releases):
        return "preferred_if_decided"
    tied = any(release.design.ties for release in releases)
    return "preferred_plus_half_ties" if tied else "probability"


def pair_table(worths: Worths, alpha: float, *, simultaneous: bool) -> pd.DataFrame:
    """Return differences of worths, probabilities and p-values of all pairs.

    If `simultaneous`, limits are simultaneous over all pairs and p-values adjusted (Bonferroni).
    """
    release = worths.inference.release
    names = np.array(release.design.items, dtype=object)
    link = release.link
    first, second = np.triu_indices(len(names), 1)
    together = worths.together
    difference = np.where(together, worths.values[first] - worths.values[second], np.nan)
    count = max(int(together.sum()), 1) if check_flag("simultaneous", simultaneous) else 1
    # limits of differences map to limits of probabilities: the link function is increasing
    lower, upper = worths.intervals(alpha / count)
    return pd.DataFrame(
        {
            "item1": names[first],
            "item2": names[second],
            "difference": difference,
            "std_err": np.where(together, worths.contrast_errors[first, second], np.nan),
            **answer_columns(difference, worths.inference),
            probability_name([release]): link.probability(difference),
            "lower": link.probability(lower),
            "upper": link.probability(upper),
            "pvalue": np.minimum(count * worths.pvalues, 1.0),
        }
    )


def answer_columns(difference: FloatArray, inference: Inference) -> dict[str, FloatArray]:
    """Return the probability of each answer if ties have a parameter."""
    if not inference.equations.tied:
        return {}
    answers = answer_probabilities(difference, float(inference.fitted.coefficients[-1]))
    return dict(zip(("win", "tie", "loss"), answers, strict=True))


def probability_table(
    worths: FloatArray, release: Release, equations: ScoreEquations
) -> pd.DataFrame:
    """Return the matrix of probabilities that the row is preferred to the column.

    Entries that are not identified are missing.
    """
    names = list(release.design.items)
    difference = worths[:, None] - worths
    if equations.components.projection is not None:
        known = equations.components.together | np.eye(len(names), dtype=bool)
        difference = np.where(known, difference, np.nan)
    return pd.DataFrame(release.link.probability(difference), names, names)


def tie_series(inference: Inference, alpha: float) -> pd.Series[float]:
    """Return the tie parameter (last coefficient) with its errors and interval.

    Raises
    ------
    ValueError
        If the fit has no tie parameter.
    """
    if not inference.equations.tied:
        raise ValueError("tie_parameter is of fits with ties='davidson', and this is another.")
    errors = inference.errors
    b = inference.fitted.coefficients
    row = np.eye(1, len(b), len(b) - 1)
    parts = {"std_err": errors.total, "sampling": errors.sampling, "privacy": errors.privacy}
    values = {name: float(standard_errors(row, part)[0]) for name, part in parts.items()}
    lower, upper = intervals(inference, row, alpha)
    return pd.Series(
        {
            "estimate": float(b[-1]),
            **values,
            "lower": float(lower[0]),
            "upper": float(upper[0]),
        },
        name="tie parameter",
    )


def shares_of(worths: FloatArray, parts: Sequence[IntArray]) -> FloatArray:
    """Return multiplicative worths, which add up to 1 in each component."""
    shares = np.full(len(worths), np.nan)
    for part in parts:
        # subtract the largest worth to prevent overflow of exponentials
        weight = np.exp(worths[part] - worths[part].max())
        shares[part] = weight / weight.sum()
    return shares


def worth_columns(inference: Inference, table: FloatArray, alpha: float) -> dict[str, FloatArray]:
    """Return worths with errors and limits, given the map from coefficients."""
    inside = inference.equations.components.within(table)
    lower, upper = intervals(inference, inside, alpha)
    # a worth that no released comparison identifies has a row of zeros
    known = np.where(inside.any(axis=1), 1.0, np.nan)
    worth = known * (inside @ inference.fitted.coefficients)
    errors = known * standard_errors(inside, inference.errors.total)
    return {"worth": worth, "std_err": errors, "lower": lower, "upper": upper}


def _positions(frame: Any, items: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    """Return the positions of the items in a frame's columns item1 and item2.

    Raises
    ------
    TypeError, ValueError
        If `frame` is not a frame with these columns, or an entry is not an item, or both items are
        equal.
    """
    if not isinstance(frame, pd.DataFrame) or not {"item1", "item2"} <= set(frame.columns):
        raise TypeError("frame must be a pandas frame with columns item1 and item2.")
    index = pd.Index(items)
    first, second = (
        np.asarray(index.get_indexer(pd.Index(frame[name].astype(str))), dtype=np.int64)
        for name in ("item1", "item2")
    )
    if (first < 0).any() or (second < 0).any() or (first == second).any():
        raise ValueError("item1 and item2 must name two different items of the model in each row.")
    return first, second


def predictors_of(frame: Any, design: Design) -> FloatArray:
    """Return the map from coefficients to differences of worths by row.

    Raises
    ------
    TypeError, ValueError
        If a column is missing, or an entry is not an item or not a declared level.
    """
    first, second = _positions(frame, design.items)
    known = () if design.covariates is None else sorted(design.covariates.names)
    if not set(known) <= set(frame.columns):
        raise TypeError(f"frame must have the covariates as columns: {', '.join(known)}.")
    return pair_predictors(design, first, second, {name: list(frame[name]) for name in known})


def quasi_table(worths: Worths) -> pd.DataFrame:
    """Return worths with standard and quasi standard errors by item."""
    items = worths.inference.release.design.items
    if len(items) < 3:
        raise ValueError("quasi standard errors need at least three items.")
    table = np.full((len(items), 4), np.nan)
    for part in worths.inference.equations.components.groups:
        inside = worths.covariance[np.ix_(part, part)]
        if len(part) > 1:
            table[part, 0] = worths.values[part]
            table[part, 1] = np.sqrt(np.maximum(np.diag(inside), 0.0))
        if len(part) > 2:
            # q_i + q_j approximates the variance of every difference; a negative q has no root
            q, off = quasi_variances(inside)
            table[part, 2] = np.sqrt(np.where(q > 0, q, np.nan))
            table[part, 3] = np.abs(off).max(axis=1)
    return pd.DataFrame(
        table, pd.Index(items, name="item"), ["worth", "std_err", "quasi_se", "largest_error"]
    )
