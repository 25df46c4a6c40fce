"""What a bound on the rows of a respondent costs, before a fit is paid for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

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
    check_epsilon,
    check_flag,
    check_items,
    check_rng,
)

BOUNDS = (1, 2, 5, 10, 20, 50)

MOST_ROWS, MOST_RESPONDENTS = 2**31, 1e15


def contribution_tradeoff(
    comparisons: object,
    *,
    items: object = None,
    respondent: str | None = UNSTATED,
    distinct_pairs: bool = True,
    for_epsilon: float,
    bounds: Sequence[int] = BOUNDS,
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
    comparisons : data frame or mapping
        Long comparisons with the columns ``item1``, ``item2`` and ``outcome``, as
        :func:`privrank.as_comparisons` makes them; their activity is released. Or a mapping from
        numbers of answers to numbers of respondents, such as ``{1: 4000, 2: 900, 30: 100}``: a
        guess, or what is public. Then nothing is spent.
    items, respondent, distinct_pairs
        As for :class:`privrank.PrivateBTL`.
    for_epsilon : float
        The guarantee of the fit that is planned.
    bounds : sequence of int, default (1, 2, 5, 10, 20, 50)
        Bounds to compare, ascending; respondents are released in the classes between them. Where
        pairs are distinct, those beyond the number of pairs, m (m - 1) / 2, are that number.
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
    >>> found = pr.contribution_tradeoff(votes, items=items, for_epsilon=4.0)
    >>> found.to_frame()["std_err"].round(2).to_list()[:4]
    [0.13, 0.11, 0.1, 0.12]
    """
    planned = check_epsilon(for_epsilon, "for_epsilon")
    if math.isinf(planned):
        raise ValueError("for_epsilon must be finite: without privacy more rows never cost.")
    cuts, distinct = _check_bounds(bounds), check_flag("distinct_pairs", distinct_pairs)
    check_rng(rng)
    if isinstance(comparisons, Mapping):
        if epsilon is not None or budget is not None:
            raise ValueError(
                "epsilon= and budget= must be left out where the activity is declared."
            )
        labels = check_items(items)
        most, cuts = _within(cuts, labels, distinct)
        activity = _declared(comparisons, most)
        nobs = max(round(activity.respondents.sum()), 1)
        design = Design(
            labels, nobs, "respondent", cuts[-1], distinct, False, "private", None, excess="sample"
        )
        return ContributionTradeoff(planned_fits(design, cuts, planned), planned, activity)
    if respondent is None:
        raise ValueError(
            "respondent must name the column that says whose rows they are: a bound is on the rows "
            "of a respondent."
        )
    columns = ComparisonColumns("item1", "item2", "outcome", respondent)
    frame, _ = open_comparisons(comparisons, columns)
    if epsilon is None:
        raise TypeError(
            "epsilon= must be given, because it pays for releasing the activity of comparisons: or "
            "declare it with a mapping, such as {1: 4000, 30: 100}, which spends nothing."
        )
    plan_epsilon = check_epsilon(epsilon)
    labels = declared_items(frame, ("item1", "item2"), items)
    most, cuts = _within(cuts, labels, distinct)
    encoded = encode_comparisons(
        frame,
        columns,
        items=labels,
        max_rows=cuts[-1],
        distinct_pairs=distinct,
        ties=True,  # whatever the answers are, they are counted
        design="private",
        pair_counts=None,
        excess="sample",
    )
    fits = planned_fits(replace(encoded.design, ties=False), cuts, planned)
    plan = plan_activity(cuts, plan_epsilon)
    release = release_activity(encoded, cuts, plan, budget=budget, rng=rng)
    part = release.parts[ACTIVITY]
    activity = Activity.released(cuts, most, part.values, release.design.nobs, part.noise_variance)
    return ContributionTradeoff(fits, planned, activity, release)


def _within(
    cuts: tuple[int, ...], items: Sequence[object], distinct: bool
) -> tuple[float, tuple[int, ...]]:
    """Return how many answers of a respondent can count, and the bounds up to that, each once."""
    most = math.comb(len(items), 2) if distinct else math.inf
    return most, tuple(dict.fromkeys(int(min(cut, most)) for cut in cuts))


def _check_bounds(bounds: object) -> tuple[int, ...]:
    several = as_list(bounds)
    if not several:
        raise TypeError("bounds must be a sequence of values of max_rows, such as [1, 5, 20].")
    cuts = tuple(check_count("bounds", bound, high=MOST_ROWS) for bound in several)
    if any(one >= two for one, two in zip(cuts, cuts[1:], strict=False)):
        raise ValueError("bounds must ascend, each larger than the one before it.")
    return cuts


def _declared(activity: Mapping[int, float], most: float) -> Activity:
    """Return an activity that is declared: respondents by how many answers they give."""
    answers = [check_count("activity", number, low=0) for number in activity]
    respondents = as_numbers(list(activity.values()))
    usable = respondents is not None and (respondents >= 0).all()
    if respondents is None or not usable or not 1 <= respondents.sum() <= MOST_RESPONDENTS:
        raise ValueError(
            "activity must be a mapping from numbers of answers, whole and not negative, to "
            "numbers of respondents, at least one in all, such as {1: 4000, 30: 100}."
        )
    return Activity(np.minimum(np.array(answers, dtype=np.float64), most), respondents, 0.0)
