"""Expected accuracy of rank aggregation: the loss of the order and the width of rank sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from privrank.aggregation import PrivateRankAggregation
from privrank.consensus.orders import weight_against
from privrank.distributions.kendall import pair_probability
from privrank.distributions.mallows import Mallows
from privrank.encode.encoded import EncodedSample
from privrank.hypotheses.effects import least_errors, mean_of
from privrank.hypotheses.nulls import public_generator
from privrank.local.estimates import release_consensus
from privrank.local.kinds import SubRanking
from privrank.local.protocols import Protocol
from privrank.mechanisms.samples import release_aggregation
from privrank.plans.aggregation import PUBLISHED, Releases, plan_aggregation
from privrank.power.base import DesignPoint, Mode, Power, item_names
from privrank.published import agkm22
from privrank.release.names import ORDER
from privrank.release.release import Release
from privrank.release.survey import Plan, Sample
from privrank.util.checks import is_number, quoted, refuse_if

Method = Literal[
    "auto", "kemeny", "borda", "pairs-laplace", "kwiksort", "kwiksort-hay", "exponential"
]

MAX_THETA = 6.0
"""Largest -log phi in a search: phi = 0.0025, nearly equal rankings."""


@dataclass(frozen=True, kw_only=True)
class AggregationPower(Power):
    """Expected accuracy of PrivateRankAggregation.

    Rankings are assumed to follow a Mallows model with dispersion phi.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    loss : {"excess", "width"}
        The predicted loss. ``"excess"``: the fraction of pairs on which a ranking disagrees with
        the computed order, minus this fraction for the best order. ``"width"``: the mean width of
        the simultaneous rank sets (highest minus lowest rank), 0 if all ranks are established.
    method : str, default "auto"
        ``"auto"``, ``"kemeny"``, ``"borda"``, ``"pairs-laplace"``, ``"kwiksort"``,
        ``"kwiksort-hay"`` or ``"exponential"``; see
        :meth:`privrank.PrivateRankAggregation.fit`. The last three release an order alone, for
        which only the excess can be predicted.
    releases
        See :meth:`privrank.PrivateRankAggregation.fit`.
    mode : {"central", "local"}
        ``"local"``: local reports of :class:`privrank.local.SubRanking`, one per respondent.
    replicates : int, default 200
        Number of simulated surveys.
    n_jobs : int, default 1
        Number of processes; -1 for the number of cores. It does not affect the result.

    See Also
    --------
    privrank.PrivateRankAggregation : The consensus ranking.

    Notes
    -----
    The effect is the ``phi`` of the model. The required loss is given by its name, ``excess=`` or
    ``width=``.

    Rankings are drawn from the model, released with the plan and noise of a fit, and analysed by
    the same code. The predictions therefore agree with fits up to the Monte Carlo error. Local
    reports whose pairs do not connect all items, which a fit refuses, count as a random order and
    as rank sets with all ranks. If the excess is 0 in all draws, the estimate assumes half an
    exchange of neighbours over all draws.

    As a function of phi the excess is largest at intermediate values, because without a consensus
    an order has nothing to lose. `solve_power` therefore solves for the phi of a width, but not for
    the phi of an excess.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.AggregationPower(items=6, replicates=50)
    >>> plan.power(nobs=300, epsilon=0.5, phi=0.8) < 0.02
    True
    """

    items: int | Sequence[str] = field(kw_only=False)
    loss: Literal["excess", "width"] = "excess"
    method: Method = "auto"
    releases: Releases = "auto"
    mode: Mode = "central"

    _named = "phi"
    caption = "Consensus ranking"
    rising = False
    probability = False

    def __post_init__(self) -> None:
        """Refuse an invalid plan."""
        super().__post_init__()
        item_names(self.items)
        refuse_if(
            (
                self.loss == "width" and self.method in PUBLISHED,
                f"method={self.method!r} has no rank sets in private fits. Use loss='excess', or "
                f"another method.",
            ),
            (
                self._local and (self.method, self.releases) != ("auto", "auto"),
                "method and releases are for the central model. Omit them in the local model, "
                "where the protocol determines the release.",
            ),
        )

    @property
    def outcome(self) -> str:  # type: ignore[override]
        """Name of the predicted loss as an argument.

        Examples
        --------
        >>> plan.outcome
        'excess'
        """
        return self.loss

    @property
    def _most(self) -> int:
        return 2**22 // len(item_names(self.items))

    def _planned(self, at: DesignPoint) -> Plan | Protocol:
        """Return the plan of a fit, or the protocol of the local reports."""
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
        # smallest contribution of a replicate that differs from the others
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
        """Return a lower bound on the mean excess of private orders, and 0.

        Notes
        -----
        **Bound.** The bound is on the mean over all orders that may be the centre, because a method
        that knows the centre has no loss. Exchange the items at two positions of a centre. Let a
        ranking have k of the items between the two positions between the two items. Its probability
        decreases by a factor of phi^(2 k + 1) if it has the item that was ahead in the centre
        ahead, and increases by the inverse if not. So the total variation distance of the two
        models is t = 2 p - 1, with p the probability under the first model that this item is ahead.
        The event that an order has the other item ahead is a test of the two models. The
        probabilities that the order has the two items wrong under each model therefore sum to at
        least the errors of :func:`privrank.hypotheses.effects.least_errors` at odds 1. The exchange
        forms pairs of all centres: half of the sum bounds their mean, for each pair of positions. A
        wrong pair costs 2 p - 1.

        Theorems 13 and 14 of Alabi, Ghazi, Kumar and Manurangsi (2022) concern the worst case, up
        to constants that are not informative for surveys of usual size.
        """
        m = len(item_names(self.items))
        far = [2.0 * pair_probability(gap, at.effect) - 1.0 for gap in range(1, m)]
        wrong = [0.5 * least_errors(1.0, at.nobs, t, at.epsilon, at.delta) for t in far]
        # m - gap pairs of positions have this distance
        return float(np.arange(m - 1, 0, -1) * far @ wrong) / math.comb(m, 2), 0.0

    def _lost(self, at: DesignPoint, plan: Plan | Protocol, number: int) -> float:
        """Return the excess, or the width of rank intervals, of one simulated survey."""
        rng = public_generator("consensus", number)
        m = len(item_names(self.items))
        # the centre of the model is the order of the items, so arange(m) is the best order
        model = Mallows.from_theta(m, at.effect)
        ranks = model.rvs(at.nobs, rng)
        release: Release | None = None
        if isinstance(plan, Plan):
            release = release_aggregation(
                EncodedSample(Sample("rankings", item_names(self.items), at.nobs, "row", 1), ranks),
                plan,
                budget=None,
                rng=rng,
                find=agkm22.finder(plan),
            )
        else:
            tally = plan.tally(plan.simulate(ranks, rng))
            # a fit of local reports that do not connect all items is refused
            with suppress(ValueError):
                release = release_consensus(tally)
        if self.loss == "width":
            if release is None:
                # local reports that do not connect all items give complete rank sets
                return m - 1.0
            limits = PrivateRankAggregation.from_release(release, alpha=at.alpha).rank_conf_int()
            return float((limits["upper"] - limits["lower"]).mean())
        # excess: expected fraction of pairs against the released order, minus the best order's;
        # exact given the order, as Mallows pair probabilities have a closed form
        by_gap = np.array([0.5, *(pair_probability(gap, model.theta) for gap in range(1, m))])
        gap = np.arange(m) - np.arange(m)[:, None]
        # probabilities that the row is ranked before the column, 1/2 on the diagonal
        pairs = np.where(gap >= 0, by_gap[np.abs(gap)], 1.0 - by_gap[np.abs(gap)])
        lost = 0.25 * m * (m - 1)  # at random
        if release is not None:
            lost = weight_against(release.parts[ORDER].values, pairs)
        return (lost - weight_against(np.arange(m), pairs)) / math.comb(m, 2)

    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        if self.loss == "excess":
            raise ValueError(
                "phi cannot be found from excess, which is small if rankings agree and if there is "
                "no consensus. Give phi, or find it from width= with loss='width'."
            )
        return 0.2, 1e-3, MAX_THETA

    def _read(self, value: Any) -> float:
        if not is_number(value) or not 0 < value < 1:
            raise ValueError(
                "phi must be between 0 and 1: close to 0 rankings are nearly equal, and at 1 all "
                "are equally likely."
            )
        return -math.log(value)

    def _check_target(self, target: object, alpha: float) -> None:
        most = len(item_names(self.items)) - 1.0 if self.loss == "width" else 0.5
        if not is_number(target) or not 0 < target < most:
            raise ValueError(f"{self.loss} must be between 0 and {most:g}, got {quoted(target)}.")

    def _shown(self, effect: float) -> float:
        return math.exp(-effect)
