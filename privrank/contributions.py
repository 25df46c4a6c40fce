"""What a bound on the rows of a respondent costs, before a fit is paid for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from privrank.encode.comparisons import ComparisonColumns, encode_comparisons, open_comparisons
from privrank.encode.frames import declared_items
from privrank.mechanisms.tallies import release_activity
from privrank.plans.contributions import Activity, plan_activity, planned_fits
from privrank.release.names import ACTIVITY
from privrank.release.survey import Design
from privrank.results.contributions import ContributionTradeoff
from privrank.results.ledger import Budget
from privrank.util.checks import (
    UNSTATED,
    as_list,
    as_numbers,
    check_count,
    check_delta,
    check_epsilon,
    check_flag,
    check_items,
    check_rng,
)

__all__ = ["contribution_tradeoff"]

BOUNDS = (1, 2, 5, 10, 20, 50)

MOST_ROWS, MOST_RESPONDENTS = 2**31, 1e15


def contribution_tradeoff(
    comparisons: object = None,
    *,
    activity: Mapping[int, float] | None = None,
    for_epsilon: float,
    for_delta: float = 0.0,
    bounds: Sequence[int] = BOUNDS,
    item1: str = "item1",
    item2: str = "item2",
    outcome: str = "outcome",
    items: object = None,
    respondent: str | None = UNSTATED,
    counts: str | None = None,
    distinct_pairs: bool = True,
    ties: bool = False,
    epsilon: float | None = None,
    budget: Budget | None = None,
    rng: np.random.Generator | None = None,
) -> ContributionTradeoff:
    """Show what each bound ``max_rows=`` would cost a fit with ``excess="sample"``.

    A small bound leaves out rows of active respondents, a large one needs more noise. What is best
    depends on how many respondents have how many answers. That is private: either it is released,
    with noise, from comparisons, or it is declared.

    Parameters
    ----------
    comparisons : data frame, optional
        Long comparisons, as for :class:`privrank.PrivateBTL`; their activity is released.
    activity : mapping of int to number, optional
        Instead of comparisons, the number of respondents by the number of their answers, such as
        ``{1: 4000, 2: 900, 30: 100}``: a guess, or what is public. Nothing is spent.
    for_epsilon, for_delta : float
        The guarantee of the fit that is planned.
    bounds : sequence of int, default (1, 2, 5, 10, 20, 50)
        Bounds to compare, ascending; respondents are released in the classes between them. Where
        pairs are distinct, those beyond the number of pairs, m (m - 1) / 2, are that number.
    item1, item2, outcome, items, respondent, counts, distinct_pairs, ties
        As for :class:`privrank.PrivateBTL`.
    epsilon : float, optional
        Privacy budget of releasing the activity; to be left out where it is declared.
    budget : Budget, optional
        Ledger to reserve it from.
    rng : numpy.random.Generator, optional
        Seeded noise for studies.

    Returns
    -------
    ContributionTradeoff

    Raises
    ------
    ValueError, TypeError, BudgetExceeded
        In one sentence, before any budget is spent.

    Notes
    -----
    **Privacy.** Activity is released with the guarantee that is proved in
    :func:`privrank.plans.contributions.plan_activity`; all else is computed from it and public
    facts. A bound that was chosen by this table is public.

    Examples
    --------
    >>> import privrank as pr
    >>> votes, items = {1: 2000, 4: 1500, 9: 100}, list("abcdefghijkl")
    >>> found = pr.contribution_tradeoff(activity=votes, items=items, for_epsilon=4.0)
    >>> found.to_frame()["std_err"].round(2).to_list()[:4]
    [0.13, 0.11, 0.1, 0.12]
    """
    epsilon_of_fit, delta_of_fit = _guarantee(for_epsilon, for_delta)
    cuts = _check_bounds(bounds)
    check_rng(rng)
    distinct = check_flag("distinct_pairs", distinct_pairs)
    _check_source(comparisons, activity)
    if activity is not None:
        if epsilon is not None or budget is not None:
            raise ValueError("epsilon= and budget= must be left out where activity= is declared.")
        labels = check_items(items)
        most = _most_answers(labels, distinct)
        known, cuts = _declared(activity, most), _within(cuts, most)
        design = Design(
            items=labels, nobs=max(round(known.respondents.sum()), 1), unit="respondent",
            max_rows=cuts[-1], ties=check_flag("ties", ties), distinct_pairs=distinct,
            kind="private", pairs=None, excess="sample",
        )  # fmt: skip
        fits = planned_fits(design, cuts, epsilon_of_fit, delta_of_fit)
        return ContributionTradeoff(
            fits=tuple(fits), epsilon=epsilon_of_fit, delta=delta_of_fit, activity=known
        )
    if respondent is None:
        raise ValueError(
            "respondent must name the column that says whose rows they are: a bound is on the rows "
            "of a respondent."
        )
    columns = ComparisonColumns(item1, item2, outcome, respondent, counts)
    frame, _ = open_comparisons(comparisons, columns)
    if epsilon is None:
        raise TypeError(
            "epsilon= must be given, because it pays for releasing the activity of comparisons: or "
            "declare activity=, such as {1: 4000, 30: 100}, which spends nothing."
        )
    spent = check_epsilon(epsilon)
    labels = declared_items(frame, (item1, item2), items)
    most = _most_answers(labels, distinct)
    cuts = _within(cuts, most)
    encoded = encode_comparisons(
        frame,
        columns,
        items=labels,
        max_rows=cuts[-1],
        distinct_pairs=distinct,
        ties=ties,
        design="private",
        pair_counts=None,
        excess="sample",
    )
    fits = planned_fits(encoded.design, cuts, epsilon_of_fit, delta_of_fit)
    release = release_activity(encoded, cuts, plan_activity(cuts, spent), budget=budget, rng=rng)
    part = release.parts[ACTIVITY]
    nobs, variance = release.design.nobs, part.noise_variance
    return ContributionTradeoff(
        fits=tuple(fits),
        epsilon=epsilon_of_fit,
        delta=delta_of_fit,
        activity=Activity.released(cuts, most, part.values, nobs, variance),
        release=release,
    )


def _guarantee(for_epsilon: object, for_delta: object) -> tuple[float, float]:
    """Return the guarantee of the fit that is planned, or refuse."""
    epsilon, delta = check_epsilon(for_epsilon, "for_epsilon"), check_delta(for_delta, "for_delta")
    if math.isinf(epsilon):
        raise ValueError("for_epsilon must be finite: without privacy more rows never cost.")
    return epsilon, delta


def _check_source(comparisons: object, activity: object) -> None:
    if comparisons is None and activity is None:
        raise ValueError(
            "contribution_tradeoff must know how many answers respondents give: pass comparisons, "
            "whose activity is released for epsilon=, or declare it with activity=."
        )
    if comparisons is not None and activity is not None:
        raise ValueError(
            "activity= must be left out where comparisons are given, whose own activity is "
            "released: leave out one of the two."
        )


def _most_answers(items: Sequence[object], distinct: bool) -> float:
    """Return how many answers of a respondent can count."""
    return math.comb(len(items), 2) if distinct else math.inf


def _within(cuts: tuple[int, ...], most: float) -> tuple[int, ...]:
    """Return the bounds, those beyond `most` as that number, once."""
    return tuple(dict.fromkeys(int(min(cut, most)) for cut in cuts))


def _check_bounds(bounds: object) -> tuple[int, ...]:
    several = as_list(bounds)
    if not several:
        raise TypeError("bounds must be a sequence of values of max_rows, such as [1, 5, 20].")
    cuts = tuple(check_count("bounds", bound, high=MOST_ROWS) for bound in several)
    if any(one >= two for one, two in zip(cuts, cuts[1:], strict=False)):
        raise ValueError("bounds must ascend, each larger than the one before it.")
    return cuts


def _declared(activity: object, most: float) -> Activity:
    rule = (
        "activity must be a mapping from numbers of answers, whole and not negative, to numbers of "
        "respondents, at least one in all, such as {1: 4000, 30: 100}"
    )
    if not isinstance(activity, Mapping) or not activity:
        raise TypeError(f"{rule}.")
    answers = [check_count("activity", each, low=0) for each in activity]
    respondents = as_numbers(list(activity.values()))
    if respondents is None:
        raise TypeError(f"{rule}.")
    if not ((respondents >= 0).all() and 1 <= respondents.sum() <= MOST_RESPONDENTS):
        raise ValueError(f"{rule}.")
    return Activity(np.minimum(np.array(answers, dtype=np.float64), most), respondents, 0.0)
