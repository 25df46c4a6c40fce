"""The noise of a test statistic of a sample, or the condition for a private random bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from privrank.distributions import kendall
from privrank.distributions.mallows import tolerance_to_theta
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.privacy.accounting import pure_epsilon, split
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import BOUNDARY, DECISION, EFFECT, IMPOSSIBLE, STATISTIC
from privrank.release.survey import QUIET, PartPlan, Plan, Sample, Setting

Effect = tuple[Statistic, float]

TEST = "test"
"""Name of the budget of the test itself, among the budgets of its additional releases."""

_FINE = 2.0**-53
"""Lattice step of the random number that decides at the boundary of a rejection region."""


def effect_beside(
    query: Statistic | RandomBit,
    sample: Sample,
    distance: Callable[[], Statistic],
    epsilon: float,
    effect_epsilon: float | None,
) -> Effect | None:
    """Return the distance that a test releases in addition, and its epsilon; None for none.

    `distance` constructs the statistic that is the distance from the null hypothesis. Without noise
    an effect uses no budget. An effect that is not available, or that is released already, raises
    an error.
    """
    able = sample.kind == "choices" and isinstance(query, Statistic)
    known = isinstance(query, Statistic) and query.distance
    if effect_epsilon is None:
        return (distance(), epsilon) if math.isinf(epsilon) and able and not known else None
    if known:
        raise ValueError(
            "effect_epsilon= is not needed here: the statistic is the distance itself, and its "
            "interval comes with the test; leave it out."
        )
    if not able:
        what = "rankings" if sample.kind == "rankings" else "one random bit"
        raise ValueError(
            "effect_epsilon= is for tests of choices that release a statistic, but this one is "
            f"of {what}. Leave it out."
        )
    return distance(), effect_epsilon


def budget_shares(
    epsilon: float, delta: float, beside: Mapping[str, float | None]
) -> tuple[float, dict[str, float]]:
    """Return the total epsilon of a test and its additional releases, and the pure budgets.

    The arguments include the additional epsilon of each part other than the test, which is None if
    the part is not released.
    """
    extra = {name: amount for name, amount in beside.items() if amount is not None}
    total = sum(extra.values(), epsilon)
    parts = {name: 0.5 if math.isinf(total) else amount / total for name, amount in extra.items()}
    return total, split(pure_epsilon(total, delta), parts, TEST)


def share_of_test(plan: Plan) -> float:
    """Return the pure budget of the noise of the statistic, or of the bit; 0 without either."""
    part = plan.parts.get(STATISTIC) or plan.parts.get(DECISION)
    return 0.0 if part is None else part.epsilon


def plan_sample(
    query: Statistic | RandomBit,
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
    query : Statistic or RandomBit
        What to release.
    epsilon, delta : float
        The guarantee of the test.
    effect : tuple of Statistic and float, or None
        A distance that is released as well, and its epsilon in addition to `epsilon`.
    by : str
        Name of the method that spends the budget, for the ledger.
    method : str
        The method that uses this statistic.
    settings : mapping of str to float, str or bool
        Public constants from which the statistic can be rebuilt.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows. One
    row of each respondent is drawn by an independent secret coin. Couple the coins of neighbours
    unit by unit: units are numbered by their first rows, and a replaced respondent can move the
    numbers of all others, but not the distribution of their coins. For every outcome the two
    samples of one row per unit then differ in the replaced unit's row only, and in the order of the
    units. Statistics do not depend on this order. A bit that depends on it receives the rows in an
    order that is drawn uniformly and kept secret. So a guarantee for one row, mixed over the coins,
    holds for the respondent. The order of the items is drawn independently of the data. A statistic
    is a whole number that one replaced row moves by at most its `sensitivity`.
    Discrete Laplace noise of scale sensitivity / xi, xi = epsilon - log(1 - delta), makes it
    (epsilon, delta)-private (:meth:`privrank.privacy.noise.DiscreteLaplace.calibrate`,
    :func:`privrank.privacy.accounting.pure_epsilon`). A random bit carries its own proof.
    Observations that are impossible under the null are counted separately only at infinite epsilon,
    where nothing is protected. An effect is a second such statistic of the same rows with
    independent noise, and the two compose. Their scales correspond to shares of xi that add up to
    at most epsilon + effect_epsilon - log(1 - delta). The random number at the boundary of a
    rejection region is drawn independently of the data.
    """
    total, shares = budget_shares(epsilon, delta, {EFFECT: None if effect is None else effect[1]})
    xi = shares[TEST]
    parts = {DECISION: PartPlan(QUIET, 1, xi)}
    if isinstance(query, Statistic):
        parts = {STATISTIC: _noisy(query, xi)}
        if query.impossible is not None and math.isinf(xi):
            parts[IMPOSSIBLE] = PartPlan(QUIET, 1, xi)
        if query.randomised and not math.isinf(xi):
            parts[BOUNDARY] = PartPlan(None, 0, 0.0, _FINE)
    if effect is not None:
        parts[EFFECT] = _noisy(effect[0], shares[EFFECT])
    return Plan(by, query.name, method, total, delta, parts, settings)


def _noisy(statistic: Statistic, xi: float) -> PartPlan:
    """Return a statistic with its noise at a pure budget."""
    noise = DiscreteLaplace.calibrate(statistic.sensitivity, xi)
    return PartPlan(noise, statistic.sensitivity, xi, statistic.step)


def least_bias(
    n: int, m: int, epsilon: float, alpha: float, tolerance: float | None = None
) -> float:
    """Return the least bias at which a ramp is private and keeps its level.

    If `tolerance` is given, return the bias of this tolerance instead. The inequalities are stated
    in the test, :class:`privrank.published.bfz21.Ramp`.

    Parameters
    ----------
    n, m : int
        Numbers of rankings and items, both at least 2.
    epsilon : float
        Pure privacy budget.
    alpha : float
        Level, in (0, 1).
    tolerance : float, optional
        Total variation distance of a Mallows model from uniformity; the bias is then that
        model's, mu = tanh(m theta / 16), of two items m / 8 places apart.

    Raises
    ------
    ValueError
        If no bias below 1, or not the bias of `tolerance`, gives a private test of this level.

    Notes
    -----
    **Privacy.** With s = mu^2 (n - 1) / 16 the probability p of the ramp changes by at most 2
    (sqrt((1 + 2 s) / n) - 1 / n) / s between neighbours, which decreases in s. At the smallest s it
    is at most (e^epsilon - 1) alpha / (2 (1 - alpha)). Therefore the loss is at most epsilon there
    and at every larger bias.
    """
    d = m // 2
    s = max(
        (1 - alpha) / alpha * math.sqrt((1 - 1 / n) / (2 * d)),
        _least_slope(n, math.expm1(min(epsilon, 50.0)) * alpha / (2 * (1 - alpha))),
    )
    least = math.sqrt(16 * s * (1 + 1e-12) / (n - 1))
    if tolerance is None:
        mu = least
        reason = "and biases end below 1"
    else:
        mu = math.tanh(m * tolerance_to_theta(m, tolerance) / 16)
        reason = f"and tolerance {tolerance:g} gives {mu:.3g}"
    if not least <= mu < 1:
        raise ValueError(
            f"the truncated test is {epsilon:g}-private with level {alpha:g} only for a bias "
            f"of at least {least:.3g} with {n} rankings of {m} items, {reason}: use "
            "method='auto' or more rankings."
        )
    return mu


def _least_slope(n: int, room: float) -> float:
    """Return the least s at which p changes by at most `room` between neighbours.

    It is the larger root s of (room s / 2 + 1 / n)^2 = (1 + 2 s) / n. The bound on the change
    decreases in s, because sqrt((1 + 2 s) / n) - 1 / n is concave and positive at 0.
    """
    if room >= 1:
        return 0.0
    a = room**2 / 4
    b = (2 - room) / n
    c = (1 - 1 / n) / n
    return max((b + math.sqrt(b * b + 4 * a * c)) / (2 * a), (4 / n - 1) / 2)


def two_rankings_tolerance(m: int, alpha: float) -> float | None:
    """Return the least distance from uniformity at which two rankings are proved to be enough.

    Parameters
    ----------
    m : int
        Number of items, at least 2.
    alpha : float
        Level, and bound on the probability of a miss; in (0, 1).

    Returns
    -------
    float or None
        Total variation distance of the Mallows model with
        phi = 1 - 8 / (m + 7 - sqrt(12 m log(2 / alpha))). The distance is 1.0 if it differs from 1
        by less than double precision. None if no phi > 0 meets the condition, such as for m <= 46
        at level 0.05.

    Notes
    -----
    The condition of Busa-Fekete, Fotakis and Zampetakis (2021) is phi at most that number.
    """
    room = m + 7 - math.sqrt(12 * m * math.log(2 / alpha))
    return None if room <= 8 else kendall.total_variation(m, -math.log1p(-8 / room), 0.0)


def guaranteed(n: int, m: int, alpha: float, tolerance: float | None) -> dict[str, float]:
    """Return the least tolerance of n = 2 rankings by its name; an empty mapping if there is none.

    The test has its level without this guarantee. Other n, and a tolerance without a guarantee,
    raise an error.
    """
    if n != 2:
        raise ValueError(
            f"method='two-sample' compares exactly two rankings, and there are {n}: use "
            f"method='auto' or 'laplace'."
        )
    least = two_rankings_tolerance(m, alpha)
    if tolerance is not None and (least is None or tolerance < least):
        bound = "at no tolerance" if least is None else f"from tolerance {least:.4g} on"
        raise ValueError(
            f"method='two-sample' has its guarantee for {m} items at level {alpha:g} {bound}: "
            f"leave tolerance= out, or use more rankings and method='auto'."
        )
    return {} if least is None else {"tolerance": least}
