"""The release of a permutation test: a p-value or a decision, and an effect if asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.allorders import orders_of
from privrank.encode.encoded import EncodedGroups
from privrank.hypotheses.statistic import Comparison
from privrank.hypotheses.twosamples import THRESHOLD_LEVEL
from privrank.mechanisms.completion import completed_groups
from privrank.mechanisms.details import draw_details, plan_details
from privrank.mechanisms.samples import one_row_each, tabulated
from privrank.mechanisms.smoothing import (
    RELEASED_STEPS,
    noise_cell,
    null_threshold,
    round_up,
    smoothed_pvalue,
    smoothing_scale,
)
from privrank.mechanisms.spend import draw, spend
from privrank.mechanisms.statistics import departures, reference
from privrank.mechanisms.statistics.gram import (
    DIAMETER,
    MOST_TABULATED,
    RankKernel,
    check_gram,
    gram_blocks,
)
from privrank.mechanisms.statistics.permutation import (
    Gram,
    check_deal,
    chi_square,
    kernel_distance,
    permuted_statistics,
    total_variation,
)
from privrank.privacy.budget import Ledger, pure_epsilon, split
from privrank.privacy.noise import (
    DiscreteLaplace,
    draw_cells,
    draw_permutation,
    source_of,
)
from privrank.release.names import DECISION, DETAILS, PVALUE, STATISTIC
from privrank.release.plan import QUIET, PartPlan, Plan, Setting
from privrank.release.release import Release
from privrank.release.survey import Sample

__all__ = [
    "FEWEST",
    "MOST",
    "check_scale",
    "permuted",
    "plan_comparison",
    "public_quantiles",
    "release_comparison",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Tables = NDArray[np.int32]
Measure = Callable[[Tables], FloatArray]

EFFECT_GRID = 1024
"""Lattice steps of a released effect within its sensitivity; two more allow for rounding."""


FEWEST, MOST = 19, 100_000
"""Re-labellings that a test may have."""


@dataclass(frozen=True, slots=True)
class _Data:
    """The data as a permutation test sees them: counts by sample and kind; none is empty.

    Parameters
    ----------
    counts : ndarray of int64, shape (G, k)
        Units by sample and kind.
    gram : list or None
        The kernel matrix of kinds of rankings, by blocks.
    pairs : ndarray of int64, shape (2, n), or None
        The kinds of each respondent's answers in two samples of the same respondents.
    """

    counts: IntArray
    gram: Gram | None = None
    pairs: IntArray | None = None


def plan_comparison(
    sample: Sample,
    asked: Comparison,
    epsilon: float,
    delta: float,
    *,
    method: str,
    effect_epsilon: float | None,
    details_epsilon: float | None,
    details_items: Sequence[int],
    alpha: float,
    permutations: int,
) -> Plan:
    """Calibrate the noise of a comparison of samples, from public numbers.

    Parameters
    ----------
    sample : Sample
        Public facts of the samples.
    asked : Comparison
        Statistic and form of release.
    epsilon, delta : float
        The guarantee of the test.
    method : str
        The method that asks for this statistic.
    effect_epsilon : float or None
        What an effect size may spend on top.
    details_epsilon : float or None
        What totals by group may spend on top.
    details_items : sequence of int
        Places of the items whose totals are released; empty for none.
    alpha : float
        Level of a decision.
    permutations : int
        Number of re-labellings.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows, in
    their sample; who is in which sample is public, unless the sensitivity of `asked` is that of
    secret labels. Of a respondent's rows one is drawn by an independent secret coin, so that what
    is private for one row each is private for respondents
    (:func:`privrank.mechanisms.samples.plan_sample`). The statistic moves by at most its
    sensitivity at every re-labelling (:mod:`privrank.mechanisms.statistics.permutation`), the
    re-labellings are secret and drawn without looking at the data, and the smoothed p-value is
    private at its share (:mod:`privrank.mechanisms.smoothing`); a decision in its place has a proof
    of its own. The effect is the distance of two groups, and beside it, where a distance of 0 is
    the null hypothesis, one number that the same re-labellings decide
    (:func:`privrank.mechanisms.smoothing.null_threshold`). Each moves by at most the sensitivity at
    every set of re-labellings; on a grid of a 1024th of it, floor, it gets discrete Laplace noise
    for 1026 steps in each: two floors differ by at most 1025, and one step allows for
    floating-point arithmetic. Given the re-labellings p-value and effect compose, and so they do
    mixed over them. Totals by
    group (:func:`privrank.mechanisms.details.plan_details`) have noise of their own. Given the rows
    that were drawn all compose to xi = epsilon + effect_epsilon + details_epsilon - log(1 - delta).
    """
    total = epsilon + (effect_epsilon or 0.0) + (details_epsilon or 0.0)
    wanted = asked.effect is not None and (effect_epsilon is not None or math.isinf(epsilon))
    extra = {STATISTIC: effect_epsilon, DETAILS: details_epsilon}
    shares = {"test": math.inf, STATISTIC: math.inf, DETAILS: math.inf}
    if not math.isinf(total):
        parted = {name: each / total for name, each in extra.items() if each is not None}
        shares = split(pure_epsilon(total, delta), parted, "test")
    if asked.decision is None:
        parts = {PVALUE: PartPlan(QUIET, 1, shares["test"], 1.0 / RELEASED_STEPS)}
    else:
        parts = {DECISION: PartPlan(QUIET, 1, shares["test"])}
    scale = _scale(asked, shares["test"])
    settings: dict[str, Setting] = {"permutations": float(permutations), "scale": scale}
    if asked.decision is not None:
        settings["level"] = alpha
    if wanted:
        parts[STATISTIC] = _effect_plan(asked, shares[STATISTIC])
        if _second(asked) == "threshold":
            settings[THRESHOLD_LEVEL] = alpha
    if details_items:
        parts |= plan_details(sample, shares[DETAILS], details_items)
        settings[DETAILS] = " ".join(map(str, details_items))
    if sample.kind == "rankings" and len(sample.items) > MOST_TABULATED:
        check_gram((1 + sample.paired) * sample.nobs)
    check_deal(sample.nobs)
    return Plan("ClosenessTest", asked.name, method, total, delta, parts, settings)


def _scale(asked: Comparison, epsilon: float) -> float:
    """Return the scale of the noise that is smoothed over, or decides."""
    if asked.decision is None:
        return smoothing_scale(asked.sensitivity, epsilon)
    return asked.decision.scale(epsilon)


def check_scale(release: Release, asked: Comparison) -> None:
    """Refuse an archived release whose noise is not that of its statistic."""
    plan = release.plan
    epsilon = plan.parts[PVALUE if asked.decision is None else DECISION].epsilon
    if not (
        math.isclose(plan.number("scale"), _scale(asked, epsilon), rel_tol=1e-6)
        and FEWEST <= plan.number("permutations") <= MOST
        and plan.number("permutations").is_integer()
    ):
        raise ValueError("release must have the noise of its statistic.")
    effect = plan.parts.get(STATISTIC)
    if effect is not None and _effect_plan(asked, effect.epsilon).step != effect.step:
        raise ValueError("release must have the noise of its statistic.")


def _second(asked: Comparison) -> str | None:
    """Name the number that is released beside a distance: a mean, a threshold, or none."""
    if asked.distance is None or not asked.distance.exact:
        return None
    return "threshold" if asked.distance.categories is None else "mean"


def _effect_plan(asked: Comparison, epsilon: float) -> PartPlan:
    assert asked.effect is not None
    numbers = 1 if _second(asked) is None else 2
    sensitivity = numbers * (EFFECT_GRID + 2)
    noise = DiscreteLaplace.calibrate(sensitivity, epsilon)
    return PartPlan(noise, sensitivity, epsilon, asked.effect / EFFECT_GRID)


def release_comparison(
    encoded: EncodedGroups,
    asked: Comparison,
    plan: Plan,
    *,
    budget: Ledger | None,
    rng: np.random.Generator | None,
) -> Release:
    """Spend the budget and release what was planned.

    Parameters
    ----------
    encoded : EncodedGroups
        The sensitive samples.
    asked : Comparison
        Statistic and form of release.
    plan : Plan
        Its noise (:func:`plan_comparison`).
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before any answer is read.
    """
    sample = encoded.sample
    # public, and computed before anything is spent: that may be interrupted
    public = public_quantiles(asked, sample, plan.number("scale"))
    spend(budget, plan, sample, rng)
    parts = [one_row_each(part, rng) for part in encoded._parts]
    encoded = completed_groups(EncodedGroups(sample, parts, encoded._partners), rng)
    found = permuted(encoded, asked, plan, public, rng)
    name = PVALUE if asked.decision is None else DECISION
    values = {name: np.array([_drawn(asked, plan, found[:, 0], rng)])}
    if STATISTIC in plan.parts:
        values[STATISTIC] = _effect(asked, plan, found[:, -1], rng)
    values |= draw_details(encoded, plan, rng)
    return Release(
        plan=plan,
        survey=sample,
        source=source_of(rng, plan.epsilon),
        values=values,
        tie_break=draw_permutation(len(sample.items), rng),
    )


def permuted(
    encoded: EncodedGroups,
    asked: Comparison,
    plan: Plan,
    public: FloatArray,
    rng: np.random.Generator | None,
) -> FloatArray:
    """Return the statistics of the data and of all re-labellings, which are sensitive.

    In rows, the data's first; the distance of two groups is a second column where it is wanted
    beside another statistic. `public` is from :func:`public_quantiles`.
    """
    data = _data(encoded, asked)
    measures = [_measure(data, asked, encoded.sample, public)]
    if STATISTIC in plan.parts and asked.form != "pairs":
        measures.append(_pairs(data, asked))
    count = int(plan.number("permutations"))
    return permuted_statistics(data.counts, partial(_columns, measures), count, rng, data.pairs)


def _columns(measures: list[Measure], tables: Tables) -> FloatArray:
    return np.stack([measure(tables) for measure in measures], axis=1)


def _drawn(
    asked: Comparison, plan: Plan, statistics: FloatArray, rng: np.random.Generator | None
) -> int:
    """Return the smoothed p-value in its steps, or the decision; `statistics` are sensitive."""
    if asked.decision is not None:
        return asked.decision.decide(statistics, plan, rng)
    scale, noisy = plan.number("scale"), statistics[0]
    if scale > 0:
        noisy = noisy + draw_cells(scale, noise_cell(scale), 1, rng)[0]
    p = round_up(smoothed_pvalue(statistics, float(noisy), scale))
    return round(p * RELEASED_STEPS)


def _effect(
    asked: Comparison, plan: Plan, distances: FloatArray, rng: np.random.Generator | None
) -> IntArray:
    """Return the noisy distance, and what is released beside it; `distances` are sensitive."""
    part, second = plan.parts[STATISTIC], _second(asked)
    numbers = [float(distances[0])]
    if second == "mean":
        numbers.append(float(distances[1:].mean()))
    if second == "threshold":
        assert isinstance(part.noise, DiscreteLaplace)
        level = plan.number(THRESHOLD_LEVEL) / 2.0
        numbers.append(null_threshold(distances, level, part.noise.scale * part.step))
    return draw(part, np.array([math.floor(number / part.step) for number in numbers]), rng)


def public_quantiles(asked: Comparison, sample: Sample, scale: float) -> FloatArray:
    """Return the quantiles by which an omnibus compares its parts; none for other statistics."""
    if asked.form not in ("groups", "cells"):
        return np.empty(0)
    sizes, items = sample.sizes, len(sample.items)
    if asked.statistic in ("mallows", "kendall"):
        drawn = reference.ranking_parts(sizes, items, asked.statistic)
    else:
        drawn = reference.choice_parts(sizes, items, cells=asked.form == "cells")
    return departures.quantiles(drawn, len(sizes), scale)


def _measure(data: _Data, asked: Comparison, sample: Sample, public: FloatArray) -> Measure:
    """Return the statistic of the test, as a function of tables."""
    if asked.form == "pairs":
        return _pairs(data, asked)
    apart = _departures(data)
    if asked.form == "sum":
        return lambda tables: apart(tables).sum(axis=1)
    if asked.form == "cells":
        return lambda tables: departures.omnibus_values(departures.cell_parts(tables), public)
    ranked = asked.statistic in ("mallows", "kendall")
    diameter = DIAMETER[_kernel(asked)] if ranked else 1.0
    sizes = np.array(sample.sizes)
    parts = partial(departures.parts_of_departures, sizes=sizes, diameter=diameter)
    return lambda tables: departures.omnibus_values(parts(apart(tables)), public)


def _departures(data: _Data) -> Measure:
    if data.gram is not None:
        return partial(departures.kernel_departures, gram=data.gram)
    return departures.share_departures


def _pairs(data: _Data, asked: Comparison) -> Measure:
    """Return the largest distance of two groups, as a function of tables."""
    if data.gram is not None:
        return partial(kernel_distance, gram=data.gram)
    return chi_square if asked.statistic == "chi-square" else total_variation


def _data(encoded: EncodedGroups, asked: Comparison) -> _Data:
    """Return counts by sample and kind of units with one row each; sensitive.

    Groups without units, if any, are left out.
    """
    sample, parts = encoded.sample, [part for part in encoded._parts if part.sample.nobs]
    people = [part.sample.nobs for part in parts]
    if sample.kind == "choices":
        pairs = _pairs_of([part._rows for part in parts], encoded._partners)
        return _Data(np.array([tabulated(part) for part in parts]), pairs=pairs)
    ranks = np.concatenate([part._rows for part in parts])
    m = len(sample.items)
    if m <= MOST_TABULATED:
        from privrank.kernels.rankings import places_of

        orders = orders_of(m)
        blocks = np.split(places_of(ranks), np.cumsum(people)[:-1])
        counts = np.array([np.bincount(block, minlength=len(orders)) for block in blocks])
        pairs = _pairs_of(blocks, encoded._partners)
        return _Data(counts, gram=list(gram_blocks(orders, _kernel(asked))), pairs=pairs)
    gram = list(gram_blocks(ranks, _kernel(asked)))
    own = np.split(np.arange(sum(people)), np.cumsum(people)[:-1])
    pairs = _pairs_of(own, encoded._partners)
    return _Data(_one_kind_each(people), gram=gram, pairs=pairs)


def _kernel(asked: Comparison) -> RankKernel:
    return "kendall" if asked.statistic == "kendall" else "mallows"


def _pairs_of(kinds: list[IntArray], partners: IntArray | None) -> IntArray | None:
    """Return the kinds of each respondent's answers, where two samples are of the same."""
    return None if partners is None else np.stack([kinds[0], kinds[1][partners]])


def _one_kind_each(people: list[int]) -> IntArray:
    """Return a table in which each respondent is a kind of its own."""
    counts = np.zeros((len(people), sum(people)), dtype=np.int64)
    counts[np.repeat(np.arange(len(people)), people), np.arange(sum(people))] = 1
    return counts
