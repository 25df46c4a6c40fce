"""What a bound on the rows of a respondent costs a fit of comparisons, from public numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from privrank.plans.choice import Choice, declared_pairs
from privrank.plans.comparisons import Request, plan_fit, predicted_error
from privrank.release.survey import Design, PairCounts
from privrank.util import checks
from privrank.util.arrays import FloatArray

BOUNDS = (1, 2, 5, 10, 20, 50)

MOST_ROWS, MOST_RESPONDENTS = 2**31, 1e15

Released = Literal["release", "proportional"]


def contribution_tradeoff(
    activity: Mapping[int, float],
    *,
    items: object,
    for_epsilon: float,
    distinct_pairs: bool = True,
    pair_counts: Released = "release",
    bounds: Sequence[int] = BOUNDS,
) -> pd.DataFrame:
    """Show what each bound ``max_rows=`` would cost a fit with ``excess="sample"``.

    A small bound leaves out rows of active respondents, a large one needs more noise. What is best
    depends on how many respondents have how many answers, which is declared here: nothing else is
    read, and nothing is spent.

    Parameters
    ----------
    activity : mapping of int to float
        Numbers of respondents by how many answers they give, such as ``{1: 4000, 2: 900, 30:
        100}``: a guess, or what is public. A count of the answers themselves is private: no bound
        may be chosen by it.
    items : sequence of str
        The items.
    for_epsilon : float
        The guarantee of the fit that is planned.
    distinct_pairs : bool, default True
        As for :class:`privrank.PrivateBTL`.
    pair_counts : {"release", "proportional"}, default "release"
        What the fit does about the comparisons per pair, as for :class:`privrank.PrivateBTL`.
    bounds : sequence of int, default (1, 2, 5, 10, 20, 50)
        Bounds to compare, ascending. Where pairs are distinct, those beyond the number of pairs,
        m (m - 1) / 2, are that number.

    Returns
    -------
    DataFrame
        By ``max_rows``: the number of respondents ``beyond`` it, the ``rows`` it keeps of all
        respondents, and of a difference of two worths the predicted ``std_err`` with its parts,
        ``sampling`` and ``privacy``, whose squares add up to its square. It is predicted for pairs
        met equally often and answers that are independent, those of one respondent too: where
        these depend on each other, many rows of one respondent add less.

    Raises
    ------
    ValueError, TypeError
        Also if a fit at one of the bounds would be refused.

    See Also
    --------
    privrank.power.BTLPower : The power of a survey with so many answers of each respondent.

    Examples
    --------
    >>> import privrank as pr
    >>> votes, items = {1: 2000, 4: 1500, 9: 100}, list("abcdefghijkl")
    >>> pr.contribution_tradeoff(votes, items=items, for_epsilon=4.0)["std_err"].round(2).to_list()
    [0.13, 0.11, 0.1, 0.12, 0.18, 0.27]
    """
    epsilon = checks.check_epsilon(for_epsilon, "for_epsilon")
    if math.isinf(epsilon):
        raise ValueError("for_epsilon must be finite: without privacy more rows never cost.")
    cuts, distinct = _check_bounds(bounds), checks.check_flag("distinct_pairs", distinct_pairs)
    labels = checks.check_items(items)
    choice = checks.check_choice("pair_counts", pair_counts, Released)
    most = math.comb(len(labels), 2) if distinct else math.inf
    answers, respondents = _declared(activity)
    answers = np.minimum(answers, most)
    nobs, rows = max(round(respondents.sum()), 1), []
    cuts = tuple(dict.fromkeys(int(min(cut, most)) for cut in cuts))
    for bound in cuts:
        design = Design(
            labels, nobs, "respondent", bound, distinct, False, "private", None, excess="sample"
        )
        number = float(np.minimum(answers, design.sensitivity.effective_rows) @ respondents)
        design = replace(design, pairs=declared_pairs(design, choice, labels))
        whole, alone = _difference_errors(design, number, epsilon)
        added = math.sqrt(max(whole**2 - alone**2, 0.0))
        rows.append((float(respondents[answers > bound].sum()), number, whole, alone, added))
    return pd.DataFrame(
        rows, pd.Index(cuts, name="max_rows"), ["beyond", "rows", "std_err", "sampling", "privacy"]
    )


def _difference_errors(design: Design, rows: float, epsilon: float) -> tuple[float, float]:
    """Predict the root mean squared error of a difference of two worths, and what samples add.

    Given the rows that a fit keeps (:func:`privrank.plans.comparisons.predicted_error`, here of a
    contrast of squared length 2); samples alone are those of a fit without privacy.
    """
    request, some = Request(design, epsilon), max(rows, 1.0)
    whole = predicted_error(request, plan_fit(request), some)
    known = replace(design, pairs=PairCounts.equal(len(design.items), 1.0))
    alone = predicted_error(Request(known, math.inf), Choice("net wins"), some)
    return math.sqrt(2.0 * whole), math.sqrt(2.0 * min(alone, whole))


def _check_bounds(bounds: object) -> tuple[int, ...]:
    several = checks.as_list(bounds)
    if not several:
        raise TypeError("bounds must be a sequence of values of max_rows, such as [1, 5, 20].")
    cuts = tuple(checks.check_count("bounds", bound, high=MOST_ROWS) for bound in several)
    if any(one >= two for one, two in zip(cuts, cuts[1:], strict=False)):
        raise ValueError("bounds must ascend, each larger than the one before it.")
    return cuts


def _declared(activity: object) -> tuple[FloatArray, FloatArray]:
    """Return numbers of answers, and how many respondents give so many."""
    table = dict(activity) if isinstance(activity, Mapping) else {}
    numbers = checks.as_numbers(list(table.values()))
    if numbers is None or (numbers < 0).any() or not 1 <= numbers.sum() <= MOST_RESPONDENTS:
        raise ValueError(
            "activity must be a mapping from numbers of answers, whole and not negative, to "
            "numbers of respondents, at least one in all, such as {1: 4000, 30: 100}."
        )
    answers = [checks.check_count("activity", number, low=0) for number in table]
    return np.array(answers, dtype=np.float64), numbers
