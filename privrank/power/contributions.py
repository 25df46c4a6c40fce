"""Cost of a bound on the rows of a respondent in a fit of comparisons, from public numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from privrank import btl
from privrank.plans.choice import plan_comparisons, probably_unidentified
from privrank.plans.comparisons import Request, plan_fit
from privrank.plans.declarations import declared_pairs
from privrank.power.comparisons import simulated_counts, simulated_release, spread_worths
from privrank.release.survey import Design, PairCounts, Plan
from privrank.util import checks
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.workers import in_processes

Released = Literal["release", "proportional"]

COLUMNS = ("beyond", "rows", "identified", "std_err", "sampling", "privacy", "error")


def contribution_tradeoff(
    activity: Mapping[int, int],
    *,
    items: object,
    for_epsilon: float,
    worths: float | Sequence[float] = 1.0,
    distinct_pairs: bool = True,
    pair_counts: Released = "release",
    bounds: Sequence[int] = (1, 2, 5, 10, 20, 50),
    replicates: int = 20,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Compare values of max_rows by predicted standard error.

    The comparison is for fits with ``excess="sample"``. A small bound omits rows of active
    respondents, and a large bound needs more noise. The best bound depends on how many respondents
    have how many answers, which is declared here. The function reads no other data and uses no
    budget. Complete fits are simulated.

    Parameters
    ----------
    activity : mapping of int to int
        Numbers of respondents by number of answers, such as ``{1: 4000, 2: 900, 30: 100}``. Give a
        guess or public numbers. A count of the answers themselves is private, and no bound may be
        chosen from it.
    items : sequence of str
        The items.
    for_epsilon : float
        Epsilon of the planned fit.
    worths : float or sequence of float, default 1.0
        Assumed worths: one for each item, or one number, the width of a range of equally spaced
        worths. A wider range is estimated less precisely.
    distinct_pairs : bool, default True
        See :class:`privrank.PrivateBTL`.
    pair_counts : {"release", "proportional"}, default "release"
        How the fit treats the comparisons per pair, see :class:`privrank.PrivateBTL`.
    bounds : sequence of int, default (1, 2, 5, 10, 20, 50)
        Bounds to compare, in ascending order. With distinct pairs, larger bounds are replaced by
        the number of pairs, m (m - 1) / 2.
    replicates : int, default 20
        Number of simulated surveys; each bound uses the same surveys.
    n_jobs : int, default 1
        Number of processes; -1 for the number of cores.

    Returns
    -------
    DataFrame
        Indexed by ``max_rows``: the number of respondents ``beyond`` it, the ``rows`` that are kept
        in total, and the fraction of worths that are ``identified``. The other columns are about
        the difference of two identified worths. ``std_err`` is its root mean squared error;
        ``sampling`` and ``privacy`` are its two components, whose squares sum to its square.
        ``error`` is the Monte Carlo standard error of ``std_err``. These columns are missing if a
        fit would be refused.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, or if a plan at one of the bounds is impossible.

    See Also
    --------
    privrank.power.BTLPower : Power of a survey with a given number of answers per respondent.

    Notes
    -----
    Answers are simulated as for :class:`privrank.power.BTLPower`: pairs occur equally often up to
    chance, and the answers of a respondent agree with one order. ``sampling`` is the error of the
    same answers without noise.

    Examples
    --------
    >>> import privrank as pr
    >>> votes, items = {1: 2000, 4: 1500, 9: 100}, list("abcdefghijkl")
    >>> given = {"items": items, "for_epsilon": 4.0, "bounds": [2, 5, 20], "replicates": 5}
    >>> table = pr.contribution_tradeoff(votes, **given)
    >>> table["rows"].to_list(), int(table["std_err"].idxmin())
    ([5200.0, 8500.0, 8900.0], 5)
    """
    epsilon = checks.check_epsilon(for_epsilon, "for_epsilon")
    if math.isinf(epsilon):
        raise ValueError("for_epsilon must be finite: without privacy more rows have no cost.")
    cuts = _check_bounds(bounds)
    distinct = checks.check_flag("distinct_pairs", distinct_pairs)
    labels = checks.check_items(items)
    choice = checks.check_choice("pair_counts", pair_counts, Released)
    true = spread_worths(worths, len(labels))
    surveys = range(checks.check_count("replicates", replicates, low=2))
    if not checks.is_number(n_jobs) or n_jobs != -1:
        checks.check_count("n_jobs", n_jobs)
    most = math.comb(len(labels), 2) if distinct else math.inf
    cuts = tuple(dict.fromkeys(int(min(cut, most)) for cut in cuts))
    # a simulated survey has at most 2^24 numbers, one for each respondent and item, or row
    answers = np.minimum(_declared(activity, 2**24 // max(len(labels), cuts[-1])), most)
    rows = {}
    for bound in cuts:
        facts = Design(
            labels,
            len(answers),
            "respondent",
            bound,
            distinct,
            ties=False,
            kind="private",
            pairs=None,
            excess="sample",
        )
        design = replace(facts, pairs=declared_pairs(facts, choice, labels))
        plan = _plan(design, epsilon)
        number = np.minimum(answers, design.sensitivity.effective_rows).astype(np.int64)
        rows[bound] = [(answers > bound).sum(), number.sum(), *[math.nan] * 5]
        if probably_unidentified(design, plan) <= 0.5:
            exact = replace(
                design, pairs=replace(PairCounts.equal(len(labels), 1.0), origin="observed")
            )
            one = partial(_errors, ((design, plan), (exact, _plan(exact, math.inf))), true, number)
            rows[bound][2:] = _of_bound(in_processes(one, surveys, f"max_rows {bound}", n_jobs))
    return pd.DataFrame.from_dict(rows, "index", np.float64, COLUMNS).rename_axis("max_rows")


def _plan(design: Design, epsilon: float) -> Plan:
    return plan_comparisons(
        design, plan_fit(Request(design, epsilon)), epsilon, 0.0, by="contribution_tradeoff"
    )


def _errors(
    fits: tuple[tuple[Design, Plan], ...], true: FloatArray, answers: IntArray, number: int
) -> list[float]:
    """Return the fraction of worths that a fit identifies, and mean squared errors of differences.

    The errors are of differences of two worths that comparisons connect, for the fit and for one
    without privacy, whose design and plan are last.
    """
    encoded = simulated_counts(fits[-1][0], true, answers, number, None)
    if encoded is None:
        return [math.nan] * 3
    shares = []
    errors = []
    for design, plan in fits:
        result = btl.infer(simulated_release(replace(encoded, design=design), plan, number))
        apart = (result.params - true)[max(map(list, result.components), key=len)]
        shares.append(result.params.notna().mean())
        errors.append(2.0 * apart.var())
    return [shares[0], *errors]


def _of_bound(values: list[list[float]]) -> list[float]:
    """Return the row of a bound in the table, from its simulated fits."""
    table = pd.DataFrame(values)
    share, whole, alone = table.mean()
    # standard error of a root, by the delta method
    error = float(table[1].std()) / math.sqrt(4.0 * whole * len(values))
    sampling = min(alone, whole)
    return [share, *map(math.sqrt, (whole, sampling, whole - sampling)), error]


def _check_bounds(bounds: object) -> tuple[int, ...]:
    several = checks.as_list(bounds)
    if not several:
        raise TypeError("bounds must be a sequence of values of max_rows, such as [1, 5, 20].")
    cuts = tuple(checks.check_count("bounds", bound, high=2**31) for bound in several)
    if any(one >= two for one, two in zip(cuts, cuts[1:], strict=False)):
        raise ValueError("bounds must ascend, each larger than the one before it.")
    return cuts


def _declared(activity: object, most: int) -> FloatArray:
    """Return the number of answers of each respondent, for at most `most` respondents."""
    table = dict(activity) if isinstance(activity, Mapping) else {}
    numbers = checks.as_numbers(list(table.values()))
    if numbers is None or (numbers < 0).any() or not numbers.sum() >= 1:
        raise ValueError(
            "activity must be a mapping from numbers of answers, whole and not negative, to "
            "numbers of respondents, at least one in all, such as {1: 4000, 30: 100}."
        )
    if numbers.sum() > most:
        raise ValueError(
            f"activity must have at most {most} respondents with these items and bounds, because "
            f"complete fits are simulated."
        )
    answers = [checks.check_count("activity", number, low=0) for number in table]
    return np.repeat(np.array(answers, dtype=np.float64), numbers.round().astype(np.int64))
