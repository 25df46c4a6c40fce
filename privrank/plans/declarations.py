"""The declarations of a call, checked before any row is read.

About rankings and choices these are the null hypothesis, as public numbers validated against the
facts of the sample, and the meaning of shared ranks, missing items and pairs of samples. About
paired comparisons they are ties, rows beyond the bounds, and comparisons per pair that are not
released.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nulls import NullModel, uniform
from privrank.release import survey
from privrank.release.survey import (
    MIN_UNITS,
    Covariates,
    Design,
    DesignKind,
    Excess,
    PairCounts,
    Sample,
    nominal_pairs,
)
from privrank.util import checks

MAX_TABULATED = 6
"""Most items whose m! orders can be given probabilities one by one."""

MAX_SPREAD = 20
"""Largest difference of worths under a null hypothesis; the odds are then 5e8."""

Missing = Literal["bottom", "half"]
"""How an item that a ranking leaves out is read: below all listed ones, or as half votes."""

Ties = Literal["refuse", "complete"]
Gaps = Literal["refuse", "bottom", "complete"]
"""What a test does with shared ranks, and with items that have none."""

Purpose = Literal["test", "closeness", "consensus"]
"""A test against a null, a comparison of groups, or a consensus."""

RANK_MESSAGES: dict[Purpose, dict[str, str]] = {
    "test": {
        "ties": "every row of rankings must contain each of the ranks 1 to {} at most once, and "
        "at least one has a tie. With ties='complete', tied items are ordered by a draw "
        "from H0.",
        "gaps": "every row of rankings must contain the ranks 1 to {}, and at least one is "
        "incomplete. State how missing items are read: missing='bottom' places them "
        "below the listed items, missing='complete' draws their unknown places from H0.",
        "unknown": "complete",
    },
    "closeness": {
        "ties": "every row of rankings must contain each of the ranks 1 to {} at most once, and "
        "at least one has a tie. If, and only if, ties arise in the same way in all "
        "groups, break them at random with ties='complete'.",
        "gaps": "every row of rankings must contain the ranks 1 to {}, and at least one is "
        "incomplete. If, and only if, gaps arise in the same way in all groups, complete "
        "such rankings at random: below the listed items with missing='bottom', anywhere "
        "with missing='complete'.",
        "unknown": "complete",
    },
    "consensus": {
        "ties": "every row of rankings must contain each of the ranks 1 to {} at most once, and "
        "at least one has a tie. Declare ties with PrivateRankAggregation(..., "
        "ties=True), which counts half a vote for each order of two tied items.",
        "gaps": "every row of rankings must contain the ranks 1 to {}, and at least one is "
        "incomplete. State how missing items are read: PrivateRankAggregation(..., "
        "missing='bottom') places them below the listed items, missing='half' counts "
        "half a vote for each order of a pair with an unknown place.",
        "unknown": "half",
    },
}
"""Advice that keeps what is promised, and the word for places that are not known.

Promised is the level of a test, or the votes of a consensus.

Uniformly random orders are exact under a uniform null and under no other (the notes of
:func:`privrank.as_rankings`). Rankings of any null may be completed by draws from it, given what
was reported. Groups stay exchangeable whatever the completion, if both the rankings and what is
left out of them have the same distribution in all groups.
"""

_ONE_COLUMN: dict[Purpose, str] = {
    "test": "use from_formula('choice ~ 1', data)",
    "closeness": "stack the samples in one frame with a column of groups and use "
    "from_formula('choice ~ group', data)",
    "consensus": "use UniformityTest.from_formula('choice ~ 1', data)",
}

_EARLIER = "answers of an earlier survey are compared by ClosenessTest(now, last)"


def check_several(items: Sequence[str], purpose: Purpose) -> None:
    """Refuse rankings of fewer than two items, such as a column of choices read as rankings."""
    if len(items) < 2:
        raise ValueError(
            f"rankings must have a column for each of at least two items, got {len(items)}: for "
            f"one column of choices {_ONE_COLUMN[purpose]}, for orders as text "
            f"privrank.as_rankings(frame, form=...), split to a column for each place."
        )


def read_null(null: object, sample: Sample | Design, *, anywhere: bool = False) -> NullModel:
    """Return a null hypothesis about such a sample; worths for choices from offered sets.

    A Mallows model of more than six items cannot be simulated for items that may be `anywhere`
    among the others.

    Raises
    ------
    ValueError, TypeError
        If it is not a null hypothesis, or not about such a sample.
    """
    if isinstance(sample, Design):
        return NullModel(worths=_worths(null, sample.items))
    if isinstance(null, str):
        if null != "uniform":
            raise ValueError(
                f"null must be 'uniform', a Mallows model or probabilities, got {null!r}."
            )
        return NullModel(uniform(len(sample.items)) if sample.kind == "choices" else ())
    if isinstance(null, Mallows):
        model = _mallows(null, sample)
        if anywhere and model.center and len(sample.items) > MAX_TABULATED:
            raise ValueError(
                f"missing='complete' draws places from a Mallows null of at most "
                f"{MAX_TABULATED} items, got {len(sample.items)}: use missing='bottom' if items "
                f"without a rank are below the others."
            )
        return model
    return NullModel((_table if sample.kind == "rankings" else _shares)(null, sample))


def null_categories(null: object) -> list[Any] | None:
    """Return the categories that a null hypothesis declares by its keys, None if it has none."""
    if isinstance(null, pd.Series) and checks.as_numbers(null) is None:
        raise TypeError(f"null must give a probability for each category: {_EARLIER}.")
    return list(null.keys()) if isinstance(null, Mapping | pd.Series) else None


def _worths(null: object, items: tuple[str, ...]) -> tuple[float, ...]:
    """Return the worth of each item under a null hypothesis about choices from offered sets."""
    if isinstance(null, str) and null == "uniform":
        null = (0.0,) * len(items)
    if isinstance(null, Mapping | pd.Series):
        given = {str(label): worth for label, worth in null.items()}
        null = [given[item] for item in items] if given.keys() == {*items} else None
    worths = checks.as_numbers(null)
    if worths is None or len(worths) != len(items) or not np.ptp(worths) <= MAX_SPREAD:
        raise ValueError(
            "null must be 'uniform' or give the worth of each item of the choices, such as "
            "{'tea': 0.5, 'milk': -0.5}. Worths must be numbers and differ by at most "
            f"{MAX_SPREAD}."
        )
    return tuple(float(worth) for worth in worths)


def _mallows(null: Mallows, sample: Sample) -> NullModel:
    if sample.kind != "rankings":
        raise ValueError(
            "null must give probabilities of the categories: a Mallows model is about rankings."
        )
    named = isinstance(null.items, tuple)
    names = tuple(str(item) for item in null.items)
    if len(names) != len(sample.items) or (named and set(names) != set(sample.items)):
        raise ValueError(
            "null must be a Mallows model of the same items as the rankings: build it with "
            "Mallows(items, phi, center)."
        )
    if null.theta == 0:
        return NullModel()
    if math.isinf(null.theta):
        raise ValueError(
            "null must give every ranking a positive probability: use a Mallows model with phi "
            "above 0."
        )
    place = {name: int(rank) for name, rank in zip(names, null.center, strict=True)}
    center = [place[item] for item in sample.items] if named else null.center.tolist()
    return NullModel(theta=float(null.theta), center=tuple(center))


def _shares(null: object, sample: Sample) -> tuple[float, ...]:
    """Return the probabilities of the categories, in their order."""
    if isinstance(null, Mapping | pd.Series):
        given = {str(label): value for label, value in null.items()}
        if given.keys() - set(sample.items):
            raise ValueError(
                "null must give probabilities of the declared categories, but one of its labels "
                f"is not declared. Leave it out, or declare it; {_EARLIER}."
            )
        return _probabilities([given.get(item, 0.0) for item in sample.items])
    values = checks.as_list(null)
    if values is None:
        raise TypeError(
            f"null must be 'uniform', probabilities by category or, for rankings, a Mallows model, "
            f"got {type(null).__name__}: {_EARLIER}."
        )
    if len(values) != len(sample.items):
        raise ValueError(
            f"null must give one probability per category: {len(values)} for "
            f"{len(sample.items)} categories."
        )
    return _probabilities(values)


def _table(null: object, sample: Sample) -> tuple[float, ...]:
    """Return the probabilities of all rankings, in lexicographic order of their ranks."""
    m = len(sample.items)
    if not isinstance(null, pd.DataFrame) or "probability" not in null.columns:
        raise TypeError(
            f"null must be 'uniform', a Mallows model, or a DataFrame with the item columns and a "
            f"column 'probability', got {type(null).__name__}: {_EARLIER}."
        )
    if m > MAX_TABULATED:
        raise ValueError(
            f"null can list the rankings of at most {MAX_TABULATED} items, got {m}: use a Mallows "
            f"model."
        )
    if not set(sample.items) <= set(null.columns):
        raise ValueError("null must have a column for each item of the rankings: one is missing.")
    ranks = null[list(sample.items)].to_numpy()
    values = checks.as_numbers(null["probability"])
    whole = np.tile(np.arange(1, m + 1), (len(ranks), 1))
    if ranks.dtype.kind not in "iuf" or not np.array_equal(np.sort(ranks, axis=1), whole):
        raise ValueError(f"every row of null must contain the ranks 1 to {m} and a probability.")
    if values is None:
        raise TypeError("null must contain numbers, but at least one probability is not a number.")
    from privrank.kernels.rankings import places_of

    table = np.zeros(math.factorial(m))
    np.add.at(table, places_of(ranks.astype(np.int64)), values)
    return _probabilities(table.tolist())


def _probabilities(values: list[Any]) -> tuple[float, ...]:
    p = checks.as_numbers(values)
    if p is None:
        raise TypeError("null must contain numbers, but at least one probability is not a number.")
    if not np.isfinite(p).all() or (p < 0).any():
        raise ValueError(
            "null must contain probabilities, but at least one is negative or missing."
        )
    total = float(p.sum())
    if total > 1.0 and (p % 1 == 0).all():
        raise ValueError(
            "the probabilities of null must sum to 1, and these whole numbers sum to "
            f"{total:.0f}: divide them by their sum, and if they count earlier answers, which are "
            "not an exact null, give null_nobs= their total."
        )
    if abs(total - 1.0) > 1e-9:  # smaller differences are removed by division
        raise ValueError(
            f"the probabilities of null must sum to 1, and these sum to {total:.6g}: divide them "
            f"by their sum."
        )
    return tuple(float(value) for value in p / p.sum())


def answers_behind(
    null: NullModel, sample: Sample, null_nobs: object, null_noise: object
) -> NDArray[np.int64]:
    """Return counts of the answers from which a null hypothesis was estimated.

    The arguments are the sample of the null hypothesis, the number of answers, and the standard
    deviation of the noise in each count, if there was any.

    Notes
    -----
    **Statistic.** Counts are the shares times the number of answers, rounded to whole numbers that
    add up to it. They are the original counts if the shares have enough digits.

    **Noise of the null.** Shares of n answers plus noise of standard deviation s in each count are
    at least as informative as shares of n' = n / (1 + s^2 / (n p)) answers, where p is the least
    share. For any function f of the categories with mean mu, the noise adds
    (s / n)^2 sum_k (f_k - mu)^2 to the variance of its mean. This is at most s^2 / (n^2 p) times
    the variance of f. The counts are therefore treated as n' answers.
    """
    p = np.array(null.probabilities)
    number = checks.check_count("null_nobs", null_nobs, low=MIN_UNITS)
    if sample.completed:
        raise ValueError(
            "null_nobs= compares complete rankings with complete ones: leave ties= and missing= "
            "out, or null_nobs= where the null is known exactly."
        )
    if not len(p):
        raise ValueError(
            "null_nobs= is for probabilities that were estimated from so many answers: leave it "
            "out for a Mallows model and for uniform rankings."
        )
    if null_noise is not None:
        if not checks.is_number(null_noise) or not 0 <= null_noise < np.inf:
            raise ValueError(
                f"null_noise must be a standard deviation, a number of at least 0, got "
                f"{checks.quoted(null_noise)}."
            )
        if not p.min() > 0:
            raise ValueError(
                "null must give each category a share above 0 with null_noise=: put rare "
                "categories together."
            )
        # a share has the variance (n p + s^2) / n^2 with noise, as for n / (1 + s^2 / (n p))
        # answers, taken at the rarest category, where noise matters most
        number = int(number / (1.0 + null_noise**2 / (number * p.min())))
        if number < MIN_UNITS:
            raise ValueError(
                f"null_noise must leave as much as {MIN_UNITS} answers tell, and leaves "
                f"{number}: put rare categories together, or take a null with less noise."
            )
    counts = np.floor(p * number + 1e-6).astype(np.int64)
    # largest remainders: counts add up to the number, and none is off by one or more
    counts[np.argsort(counts - p * number, kind="stable")[: number - int(counts.sum())]] += 1
    return counts


def as_declared(ties: object, missing: object) -> tuple[bool, Missing | None]:
    """Return the declarations about shared ranks and missing items in the form encoding needs."""
    checks.check_choice("ties", ties, Ties)
    checks.check_choice("missing", missing, Gaps)
    kinds: dict[object, Missing | None] = {"refuse": None, "bottom": "bottom", "complete": "half"}
    return ties == "complete", kinds[missing]


def refuse_categories(categories: object) -> None:
    """Refuse categories of rankings, which have items."""
    if categories is not None:
        raise ValueError(
            "categories= is for choices: give rankings their items=, or choices as a Series or by "
            "from_formula."
        )


def refuse_partial(ties: bool, missing: Missing | None) -> None:
    """Refuse declarations of shared ranks and missing items for choices."""
    if ties or missing is not None:
        raise ValueError("ties= and missing= are for rankings: leave them out for choices.")


def formula_options(
    left: Sequence[str], arguments: Mapping[str, Any], more: set[str], purpose: Purpose
) -> dict[str, Any]:
    """Return the arguments other than formula and data in the form that encoding needs.

    Permitted are `more`, the arguments for the unit, and the arguments for rankings or for choices,
    depending on the `left` side. All others raise an error.
    """
    given = {"ties": "refuse", "missing": "refuse", **arguments}
    ties = given.pop("ties")
    missing = given.pop("missing")
    if purpose != "consensus":
        ties, missing = as_declared(ties, missing)
    known = {"respondent", "max_rows", *more} | ({"categories"} if len(left) == 1 else set())
    if not given.keys() <= known:
        raise TypeError(
            f"from_formula takes the arguments {', '.join(sorted(known))} in addition to formula "
            "and data."
        )
    if len(left) > 1:
        return {**given, "ties": ties, "missing": missing, "purpose": purpose}
    refuse_partial(ties, missing)
    return given


def check_paired(
    paired: object, secret: bool, respondent: object, groups: int, max_rows: object
) -> None:
    """Refuse arguments that cannot be combined with pairs of samples."""
    refusals = (
        (
            secret,
            "tells for everybody that they are in both samples: leave labels='private' out.",
        ),
        (
            respondent is None,
            "matches the rows of two samples by respondent: name the column, or the index level, "
            "that identifies them with respondent=.",
        ),
        (groups != 2, f"compares two samples, got {groups}: compare two at a time."),
        (max_rows != 1, "takes one row per respondent in each sample: leave max_rows= out."),
    )
    for refused, words in refusals if checks.check_flag("paired", paired) else ():
        if refused:
            raise ValueError(f"paired=True {words}")


PairCountChoice = Literal["release", "equal", "proportional"]


MAX_ITEMS_COMPLETE = 3000
"""Beyond this a table of all pairs is too large to assume or to release."""


MIN_ITEMS_MATCHED = 4
"""With fewer items there are about as many items as pairs."""


def check_excess(excess: object, respondent: str | None, kind: DesignKind) -> Excess:
    """Return the treatment of rows beyond the bounds; refuse a draw that cannot stay secret."""
    chosen: Excess = checks.check_choice("excess", excess, Excess)
    if chosen == "sample" and respondent is None:
        raise ValueError(
            "excess='sample' draws among the rows of a respondent. Name the column of "
            "respondents with respondent=, or leave excess= out."
        )
    if chosen == "sample" and kind == "public":
        raise ValueError(
            "excess='sample' needs design='private', because the choice of rows must stay "
            "secret. Use design='private', or select each respondent's rows by a rule that was "
            "fixed before the answers were known."
        )
    return chosen


def check_ties(ties: object, *, decided: bool, facts: Covariates | None) -> survey.Ties:
    """Return the declaration of ties; refuse a tie parameter that does not apply.

    The arguments say whether all comparisons are decided, and give the covariates of the model. A
    tie parameter cannot be combined with covariates of items or contests.
    """
    if not isinstance(ties, str):
        return checks.check_flag("ties", ties)
    if ties != "davidson":
        raise ValueError(
            f"ties must be True or False, or 'davidson' for a tie parameter, got {ties!r}."
        )
    if decided:
        raise ValueError(
            "ties='davidson' needs outcomes, but the formula winner + loser has none. Use item1 "
            "+ item2 + outcome on the left side, or leave ties= out."
        )
    if facts is not None and (facts.contest or facts.item_columns):
        raise ValueError(
            "ties='davidson' allows only covariates of respondents. Leave contest= and "
            "item_formula= out, or use ties=True."
        )
    return "davidson"


def declared_pairs(
    facts: Design, pair_counts: object, labels: tuple[Any, ...]
) -> PairCounts | None:
    """Return the comparisons per pair that are declared under a private design.

    None if they must be released.
    """
    m = len(labels)
    if pair_counts is None or isinstance(pair_counts, str):
        choice = checks.check_choice(
            "pair_counts", "release" if pair_counts is None else pair_counts, PairCountChoice
        )
        if m > MAX_ITEMS_COMPLETE:
            raise ValueError(
                f"pair_counts must be declared as a table for more than {MAX_ITEMS_COMPLETE} "
                f"items under a private design: a complete table of pairs would be too large."
            )
        if choice == "release":
            return None
        if choice == "proportional" and m < MIN_ITEMS_MATCHED:
            raise ValueError(
                f"pair_counts='proportional' needs at least {MIN_ITEMS_MATCHED} items, because "
                "fewer items have about as many pairs as items. Leave pair_counts= out."
            )
        return nominal_pairs(facts, "proportional" if choice == "proportional" else "equal")
    return _read_pairs(pair_counts, labels)


def _read_pairs(table: Any, labels: tuple[Any, ...]) -> PairCounts:
    """Read a declared table of comparisons per pair: a mapping or a frame item1, item2, count."""
    rule = (
        "pair_counts must be 'release', 'equal', 'proportional', a mapping {(item, item): count} "
        "or a data frame with columns item1, item2, count over the declared items, each pair once, "
        "counts positive"
    )
    if isinstance(table, Mapping):
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in table):
            raise ValueError(f"{rule}.")
        table = pd.DataFrame(
            [(*pair, count) for pair, count in table.items()], columns=["item1", "item2", "count"]
        )
    names = list(table.columns) if isinstance(table, pd.DataFrame) else []
    once = all(names.count(name) == 1 for name in ("item1", "item2", "count"))
    if not once or (count := checks.as_numbers(table["count"])) is None:
        raise ValueError(f"{rule}.")
    first, second = (
        pd.Index(labels).get_indexer(pd.Index(table[name])) for name in ("item1", "item2")
    )
    # an undeclared item has the position -1; both orders of a pair have one cell, so duplicates are
    # equal cells
    low = np.minimum(first, second)
    high = np.maximum(first, second)
    cells = low * len(labels) + high
    # counts may be expected ones
    valid = (low >= 0) & (low < high) & (count >= 1e-6) & (count <= 1e15)
    if not (len(count) and valid.all() and len(np.unique(cells)) == len(cells)):
        raise ValueError(f"{rule}.")
    order = np.argsort(cells)
    return PairCounts(low[order], high[order], count[order], "declared")
