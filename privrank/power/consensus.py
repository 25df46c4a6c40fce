"""Planning a rank aggregation: what its order loses, and how wide its rank intervals are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from privrank.aggregation import PrivateRankAggregation
from privrank.consensus.orders import weight_against
from privrank.distributions.kendall import pair_probability
from privrank.distributions.mallows import Mallows
from privrank.encode.encoded import EncodedSample
from privrank.hypotheses.effects import least_errors
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.simulation import mean_of
from privrank.local.estimates import release_consensus
from privrank.local.protocols import Protocol
from privrank.local.protocols_orders import SubRanking
from privrank.mechanisms.aggregation import release_aggregation
from privrank.plans.aggregation import PUBLISHED, Releases, plan_aggregation
from privrank.power.base import DesignPoint, Mode, Power, item_names
from privrank.published import agkm22
from privrank.release.names import ORDER
from privrank.release.plan import Plan
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import is_number, quoted

Loss = Literal["excess", "width"]
Method = Literal[
    "auto", "kemeny", "borda", "pairs-laplace", "kwiksort", "kwiksort-hay", "exponential"
]

MAX_THETA = 6.0
"""Largest -log phi that is looked for: phi = .0025, nearly equal rankings."""

MAX_RANKS = 2**22
"""Ranks of a survey that is simulated, at most."""


@dataclass(frozen=True, kw_only=True)
class AggregationPower(Power):
    """Plan a consensus order: the disagreements it costs, and how wide intervals of ranks will be.

    Rankings are supposed to be of a Mallows model with dispersion phi.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    loss : {"excess", "width"}
        What `power` predicts. ``"excess"``: how much more often than with the best order a ranking
        disagrees with the order that is found, as a share of all pairs. ``"width"``: the mean width
        of the simultaneous rank intervals, highest rank less lowest: 0 where all ranks are certain.
    method : str, default "auto"
        ``"auto"``, ``"kemeny"``, ``"borda"``, ``"pairs-laplace"``, ``"kwiksort"``,
        ``"kwiksort-hay"`` or ``"exponential"``, as for
        :meth:`privrank.PrivateRankAggregation.fit`. The last three release an order alone, of which
        the excess is predicted, but no width.
    releases
        As for :meth:`privrank.PrivateRankAggregation.fit`.
    mode : {"central", "local"}
        ``"local"``: reports of :class:`privrank.local.SubRanking`, one of each respondent.
    replicates : int, default 200
        Surveys that are simulated.
    n_jobs : int, default 1
        Processes; -1 for as many as there are cores. The answer is the same for any number.

    See Also
    --------
    privrank.PrivateRankAggregation : The consensus that is planned.

    Notes
    -----
    An effect is the ``phi`` of the model; what is wanted is stated by the name of the loss, as
    ``excess=`` or ``width=``.

    Rankings are drawn from the model, released by the plan of a fit with its noise, and read by the
    code that reads releases. So what is predicted is what fits give, up to the Monte Carlo error.
    Reports of pairs that do not connect all items, which a fit refuses, count as an order at
    random, and as intervals of all ranks. An excess of which no draw has any is stated as that of
    half an exchange of neighbours in all draws.

    As a function of phi the excess is largest in between, as an order of rankings without a
    consensus has nothing to lose. So the phi of an excess is not looked for, that of a width is.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.AggregationPower(items=6, replicates=50)
    >>> plan.power(nobs=300, epsilon=0.5, phi=0.8) < 0.02
    True
    """

    items: int | Sequence[str] = field(kw_only=False)
    loss: Loss = "excess"
    method: Method = "auto"
    releases: Releases = "auto"
    mode: Mode = "central"

    _named = "phi"
    caption = "Consensus ranking"
    rising = False
    probability = False

    def __post_init__(self) -> None:
        """Refuse what is no survey, before anything is asked."""
        super().__post_init__()
        item_names(self.items)
        if self.loss == "width" and self.method in PUBLISHED:
            raise ValueError(
                f"private fits with method={self.method!r} have no intervals of ranks: use "
                f"loss='excess', or another method."
            )
        if self._local and (self.method, self.releases) != ("auto", "auto"):
            raise ValueError(
                "method and releases are those of the central model: leave them out in the local "
                "one, where the protocol says what is released."
            )

    @property
    def outcome(self) -> str:  # type: ignore[override]
        """What is predicted, as an argument is called.

        Examples
        --------
        >>> plan.outcome
        'excess'
        """
        return self.loss

    @property
    def _most(self) -> int:
        return MAX_RANKS // len(item_names(self.items))

    def _planned(self, at: DesignPoint) -> Plan | Protocol:
        """Return what a fit releases, or the protocol of the reports."""
        items = item_names(self.items)
        if self._local:
            return SubRanking(items, at.epsilon)
        return plan_aggregation(
            Sample("rankings", items, at.nobs, "row", 1),
            at.epsilon,
            at.delta,
            self.method,
            releases=self.releases,
        )

    def _measure(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        m = len(item_names(self.items))
        # what one replicate adds at least that is not like the others
        swap = (2.0 * pair_probability(1, at.effect) - 1.0) / math.comb(m, 2)
        step = 1.0 / m if self.loss == "width" else swap
        value, error = mean_of(
            partial(self._lost, at, self._planned(at)),
            replicates,
            self.n_jobs,
            f"{self.loss} of orders",
            step=step,
        )
        return max(value, 0.5 * step / replicates), error

    @property
    def _limit(self) -> Any:
        return self._least_excess if self.loss == "excess" else None

    def _least_excess(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        """Return an excess below which no private order is, and 0.

        Notes
        -----
        **Bound.** It is on the mean over all orders that may be the centre, as a method that knows
        the centre loses nothing. Exchange the items at two places of a centre. The probability of a
        ranking then falls by a factor of phi^(2 k + 1) if it has the item that was ahead in the
        centre ahead, and rises by its inverse otherwise, k the number of items from between the two
        places that it has between the two. So the total variation distance of the two models is
        t = 2 p - 1, p the probability under the first that the one item is ahead. That an order has
        the other one ahead is a test of the two models, and so the probabilities with which it has
        the two items wrong, under the one model and the other, add up to the errors of
        `privrank.hypotheses.effects.least_errors` at odds 1, or more. The exchange pairs all
        centres off: half of the sum holds for their mean, and for each pair of places. A pair that
        is wrong costs 2 p - 1.

        Theorems 13 and 14 of Alabi, Ghazi, Kumar and Manurangsi (2022) are about the worst case, up
        to constants that say nothing about surveys of a usual size.
        """
        m = len(item_names(self.items))
        far = [2.0 * pair_probability(gap, at.effect) - 1.0 for gap in range(1, m)]
        wrong = [0.5 * least_errors(1.0, at.nobs, t, at.epsilon, at.delta) for t in far]
        # m - gap pairs of places are so far apart
        return float(np.arange(m - 1, 0, -1) * far @ wrong) / math.comb(m, 2), 0.0

    def _lost(self, at: DesignPoint, plan: Plan | Protocol, number: int) -> float:
        """Return the excess, or the width of rank intervals, of one simulated survey."""
        rng = public_generator("consensus", number)
        m = len(item_names(self.items))
        # the centre of the model is the order of the items, so arange(m) is the best order
        model = Mallows.from_theta(m, at.effect)
        release = _released(model.rvs(at.nobs, rng), plan, item_names(self.items), rng)
        if self.loss == "width":
            if release is None:
                # reports that do not connect all items state nothing
                return m - 1.0
            limits = PrivateRankAggregation.from_release(release, alpha=at.alpha).rank_conf_int()
            return float((limits["upper"] - limits["lower"]).mean())
        # excess: expected share of pairs against the released order, less that of the best order;
        # it is exact given the order, as pair probabilities of a Mallows model have a closed form
        pairs = _ahead(model)
        at_random = 0.25 * m * (m - 1)
        lost = at_random if release is None else weight_against(release.parts[ORDER].values, pairs)
        return (lost - weight_against(np.arange(m), pairs)) / math.comb(m, 2)

    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        if self.loss == "excess":
            raise ValueError(
                "phi is not looked for by excess, which is small where rankings agree and where "
                "none is to be found: state phi, or find it by width=, of a plan with loss='width'."
            )
        return 0.2, 1e-3, MAX_THETA

    def _read(self, value: Any) -> float:
        if not is_number(value) or not 0 < value < 1:
            raise ValueError(
                "phi must lie between 0 and 1: close to 0 rankings are nearly equal, at 1 all are "
                "equally likely."
            )
        return -math.log(value)

    def _check_target(self, target: object, alpha: float) -> None:
        most = len(item_names(self.items)) - 1.0 if self.loss == "width" else 0.5
        if not is_number(target) or not 0 < target < most:
            raise ValueError(
                f"{self.loss} must lie between 0 and {most:g} to be reached, got {quoted(target)}."
            )

    def _shown(self, effect: float) -> float:
        return math.exp(-effect)


def _ahead(model: Mallows) -> FloatArray:
    """Return the probabilities that row is ranked before column, 1/2 on the diagonal."""
    m = len(model.items)
    by_gap = np.array([0.5, *(pair_probability(gap, model.theta) for gap in range(1, m))])
    gap = np.arange(m) - np.arange(m)[:, None]
    return np.asarray(np.where(gap >= 0, by_gap[np.abs(gap)], 1.0 - by_gap[np.abs(gap)]))


def _released(
    ranks: IntArray, plan: Plan | Protocol, items: tuple[str, ...], rng: np.random.Generator
) -> Release | None:
    """Release simulated rankings; None for reports that do not connect all items."""
    if isinstance(plan, Plan):
        encoded = EncodedSample(Sample("rankings", items, len(ranks), "row", 1), ranks)
        return release_aggregation(encoded, plan, budget=None, rng=rng, find=agkm22.finder(plan))
    tally = plan.tally(plan.simulate(ranks, rng))
    try:
        return release_consensus(tally)
    except ValueError:  # as a fit of such reports is refused
        return None
