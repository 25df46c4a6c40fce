"""The noise of a test statistic, or of one random bit, of a sample: from public numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.privacy.budget import pure_epsilon, split
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import BOUNDARY, DECISION, EFFECT, IMPOSSIBLE, STATISTIC
from privrank.release.plan import QUIET, PartPlan, Plan, Setting
from privrank.release.survey import Sample

__all__ = ["Effect", "effect_beside", "plan_sample", "share_of_test", "shares_of"]

Effect = tuple[Statistic, float]

_FINE = 2.0**-53
"""Lattice step of the random number that decides at the boundary of a rejection region."""


def effect_beside(
    asked: Statistic | RandomBit,
    sample: Sample,
    distance: Callable[[], Statistic],
    epsilon: float,
    effect_epsilon: float | None,
) -> Effect | None:
    """Return the distance to be released beside a test, and what it may spend; None for none.

    `distance` makes the statistic that is the distance from the null hypothesis. Without noise an
    effect is free. Refuses, in one sentence, an effect that cannot be had or is released already.
    """
    able = sample.kind == "choices" and isinstance(asked, Statistic)
    known = isinstance(asked, Statistic) and asked.distance
    if effect_epsilon is None:
        free = math.isinf(epsilon) and able and not known
        return (distance(), epsilon) if free else None
    if known:
        raise ValueError(
            "effect_epsilon= is not needed here: the statistic is the distance itself, and its "
            "interval comes with the test; leave it out."
        )
    if not able:
        what = "rankings" if sample.kind == "rankings" else "one random bit"
        raise ValueError(
            f"effect_epsilon= is for tests of choices that release a statistic, and this one is of "
            f"{what}: leave it out."
        )
    return distance(), effect_epsilon


def shares_of(epsilon: float, delta: float, effect_epsilon: float | None) -> dict[str, float]:
    """Return the pure budgets of the test and of the effect beside it, if there is one."""
    if effect_epsilon is None:
        return {STATISTIC: pure_epsilon(epsilon, delta)}
    total = epsilon + effect_epsilon
    part = 0.5 if math.isinf(total) else effect_epsilon / total
    return split(pure_epsilon(total, delta), {EFFECT: part}, STATISTIC)


def share_of_test(plan: Plan) -> float:
    """Return the pure budget behind the noise of the statistic, or of the bit."""
    return plan.parts[STATISTIC if STATISTIC in plan.parts else DECISION].epsilon


def plan_sample(
    sample: Sample,
    asked: Statistic | RandomBit,
    epsilon: float,
    delta: float,
    effect: Effect | None,
    by: str,
    method: str,
    settings: Mapping[str, Setting],
) -> Plan:
    """Calibrate the noise of a statistic, from public numbers.

    Parameters
    ----------
    sample : Sample
        Public facts of the rows.
    asked : Statistic or RandomBit
        What to release.
    epsilon, delta : float
        The guarantee of the test.
    effect : tuple of Statistic and float, or None
        A distance to be released as well, and what it may spend on top of `epsilon`.
    by : str
        Who spends, for the ledger.
    method : str
        The method that asks for this statistic.
    settings : mapping of str to float, str or bool
        Public constants that rebuild it.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows. Of a
    respondent's rows one is drawn by an independent secret coin. Couple the coins of neighbours
    unit by unit: units are numbered by their first rows, and a replaced respondent can move the
    numbers of all others, but not the distribution of their coins. For every outcome the two
    samples of one row per unit then differ in the replaced unit's row only, and in the order of the
    units, on which nothing depends: statistics do not, and a bit that would gets the rows in an
    order that is drawn uniformly and kept secret. So a guarantee for one row, mixed over the coins,
    holds for the respondent. The order of the items is drawn without looking at the data. A
    statistic is a whole number that one replaced row moves by at most its `sensitivity`, and
    discrete Laplace noise of scale sensitivity / xi, xi = epsilon - log(1 - delta), makes it
    (epsilon, delta)-private (:meth:`privrank.privacy.noise.DiscreteLaplace.calibrate`,
    :func:`privrank.privacy.budget.pure_epsilon`). A random bit carries its own proof. Observations
    that the null rules out are counted apart where nothing is protected, at infinite epsilon, and
    only there. An effect is a second such statistic of the same rows with noise of its own, and the
    two compose: their scales are those of shares of xi that add up to epsilon + effect_epsilon -
    log(1 - delta) at most. The random number at the boundary of a rejection region is drawn without
    looking at the data.
    """
    shares = shares_of(epsilon, delta, None if effect is None else effect[1])
    total, xi = epsilon + (0.0 if effect is None else effect[1]), shares[STATISTIC]
    name, parts = asked.name, {DECISION: PartPlan(QUIET, 1, xi)}
    if isinstance(asked, Statistic):
        noise = DiscreteLaplace.calibrate(asked.sensitivity, xi)
        parts = {STATISTIC: PartPlan(noise, asked.sensitivity, xi, asked.step)}
        if asked.impossible is not None and math.isinf(xi):
            parts[IMPOSSIBLE] = PartPlan(QUIET, 1, xi)
        if asked.randomised and not math.isinf(xi):
            parts[BOUNDARY] = PartPlan(None, 0, 0.0, _FINE)
    if effect is not None:
        asked, share = effect[0], shares[EFFECT]
        noise = DiscreteLaplace.calibrate(asked.sensitivity, share)
        parts[EFFECT] = PartPlan(noise, asked.sensitivity, share, asked.step)
    return Plan(by, name, method, total, delta, parts, settings)
