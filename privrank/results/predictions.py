"""Predictions of a fitted model: names of probabilities, answers to pairs and to offered sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from privrank.bradley_terry.fit import answer_probabilities
from privrank.bradley_terry.inference import Inference
from privrank.release.release import Release
from privrank.util.arrays import FloatArray


def simulated_comparisons(
    release: Release, worths: FloatArray, tie: float, size: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return `size` comparisons of every pair, in the order of the items."""
    names = np.array(release.survey.items, dtype=object)
    first, second = (np.repeat(side, size) for side in np.triu_indices(len(names), 1))
    difference = worths[first] - worths[second]
    if release.design.davidson:
        won, tied, _ = answer_probabilities(difference, tie)
    else:
        won = release.link.probability(difference)
        tied = np.zeros(len(difference))
    uniform = rng.random(len(difference))
    return pd.DataFrame(
        {
            "item1": names[first],
            "item2": names[second],
            "outcome": np.where(uniform < won, 1, np.where(uniform < won + tied, 0, -1)),
        }
    )


def preference_columns(
    releases: Sequence[Release], difference: FloatArray, lower: FloatArray, upper: FloatArray
) -> dict[str, FloatArray]:
    """Return preference probabilities and their limits, with a name by the model of ties."""
    name = "probability"
    if all(release.design.davidson for release in releases):
        name = "preferred_if_decided"
    elif any(release.design.ties for release in releases):
        name = "preferred_plus_half_ties"
    # limits of differences map to limits of probabilities: the link function is increasing
    sides = {name: difference, "lower": lower, "upper": upper}
    return {name: releases[0].link.probability(side) for name, side in sides.items()}


def answer_columns(difference: FloatArray, inference: Inference) -> dict[str, FloatArray]:
    """Return the probability of each answer if ties have a parameter."""
    if not inference.equations.tied:
        return {}
    answers = answer_probabilities(difference, float(inference.fitted.coefficients[-1]))
    return dict(zip(("win", "tie", "loss"), answers, strict=True))


def check_comparable(release: Release) -> None:
    """Refuse odds, ratings and probabilities of pairs from worths with the scale of their sets."""
    if release.design.scaled_by_sets:
        raise ValueError(
            "best-worst worths have the scale of their offered sets, so they give no odds, ratings "
            "or probabilities of pairs. Use the differences of pairwise(), or predict() for sets "
            "of the offered sizes."
        )


def set_probabilities(release: Release, worths: FloatArray, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the probabilities that each offered item is the best or the worst of its set.

    `frame` has the columns ``offered 1``, ``offered 2``, ... The result has one row for each row of
    `frame` and item of its set.
    """
    offered = release.design.offered
    columns = [name for name in frame.columns if str(name).startswith("offered ")]
    cells = pd.Index(frame[columns].astype("str").to_numpy().ravel())
    codes = pd.Index(release.survey.items).get_indexer_for(cells)
    given = frame[columns].notna().to_numpy()
    shown = codes.reshape(given.shape)
    sizes = set() if offered is None else {len(items) for items in offered.sets}
    lengths = set(given.sum(axis=1).tolist())
    known = lengths <= sizes or (
        lengths and min(lengths) >= 2 and not release.design.scaled_by_sets
    )
    sets = [some[here] for some, here in zip(shown, given, strict=True)]
    repeated = any(len(np.unique(items)) < len(items) for items in sets)
    if offered is None or not known or repeated or (shown[given] < 0).any():
        raise ValueError(
            "frame must offer different items of a model of choices from sets, in columns "
            "'offered 1', 'offered 2', ... For best and worst answers sets must have the sizes "
            "that were offered in the survey."
        )
    rows = []
    for row, items in zip(frame.index, sets, strict=True):
        odds = np.exp(worths[items][:, None] - worths[items])
        if offered.answer == "best-worst":
            np.fill_diagonal(odds, 0.0)
            odds /= odds.sum()
            named = {"best": odds.sum(axis=1), "worst": odds.sum(axis=0)}
        elif offered.answer == "worst":
            named = {"worst": 1.0 / odds.sum(axis=1)}
        else:
            named = {"best": 1.0 / odds.sum(axis=0)}
        rows.append(
            pd.DataFrame({"row": row, "item": [release.survey.items[k] for k in items], **named})
        )
    return pd.concat(rows, ignore_index=True)
