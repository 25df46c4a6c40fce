"""Read design weights, which are public and fixed before any answer."""

from collections.abc import Mapping

import numpy as np

from privrank.encode import coding
from privrank.encode.encoded import sum_by
from privrank.release.weights import WEIGHT_STEPS, Weights
from privrank.util.arrays import IntArray
from privrank.util.checks import check_number


def check_weighted(column: str | None, max_weight: object, *, public: bool, plain: bool) -> None:
    """Refuse design weights of models that have no proof or no inference for them.

    A `plain` model has neither covariates nor a parameter for ties.
    """
    if column is None:
        if max_weight is not None:
            raise ValueError("max_weight= needs weights=, the column of the design weights.")
        return
    if not public:
        raise ValueError(
            "weights= needs design='public', because the noise is only as large as stated if "
            "weights, and who compared which pairs, were fixed before any answer. Weights raked on "
            "the respondents' own answers or traits that are protected are not covered."
        )
    if not plain:
        raise ValueError(
            "weights= is for models without covariates and without a parameter for ties. Leave it "
            "out, or use '~ 1' and ties=True."
        )
    if max_weight is not None:
        check_number("max_weight", max_weight, 0.0, np.inf, "()")


def read_weights(
    keys: Mapping[str, coding.Key],
    column: str | None,
    max_weight: float | None,
    size: IntArray,
    person: IntArray | None,
    answers: IntArray,
) -> tuple[IntArray, Weights | None]:
    """Return the design weight of each group of rows in whole steps, and the public facts.

    Without a column all weights are 1. Weights are trimmed at `max_weight`; the largest that
    remains is WEIGHT_STEPS. `size` is the number of rows of each group, and `answers` the number of
    these with an answer.
    """
    if column is None:
        return np.ones(1, dtype=np.int64), None
    key = keys[column]
    values = np.append(key.values.astype(np.float64), np.nan)[key.codes]
    if not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(
            f"column {column!r} must contain a positive weight in every row, because weights= "
            f"names it. Remove respondents with weight 0, whose answers do not count."
        )
    units = values
    number = size
    if person is not None:
        _, first, place = np.unique(person, return_index=True, return_inverse=True)
        units = values[first]
        number = np.ones_like(first)
        if (values != units[place]).any():
            raise ValueError(
                f"column {column!r} must contain one weight for each respondent, and at least one "
                f"respondent has two. Correct such weights."
            )
    # by distinct weights in ascending order: sums must not depend on the order of the rows
    distinct, place = np.unique(values, return_inverse=True)
    number = sum_by(np.searchsorted(distinct, units), number, len(distinct))
    largest = float(distinct[-1])
    shares = distinct / largest
    if max_weight is not None:
        max_weight = float(max_weight)
        largest = min(max_weight, largest)
    steps = np.maximum(np.rint(WEIGHT_STEPS * np.minimum(distinct / largest, 1.0)), 1.0)
    total = float(number @ steps)
    moved = np.abs(shares / (number @ shares) - steps / total)
    answered = sum_by(place, answers, len(distinct)) * steps
    squares = max(float(answered @ steps), 1.0)
    return steps[place].astype(np.int64), Weights(
        column,
        max_weight,
        largest / WEIGHT_STEPS,
        total**2 / float(number @ steps**2),
        total / WEIGHT_STEPS,
        0.5 * float(number @ moved),
        float(answered @ steps**2) * float(answered.sum()) / squares**2,
        int(answers.sum()),
        person is None,
    )
