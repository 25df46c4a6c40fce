"""Plans of tests of one sample: of uniformity and of identity, of rankings and of choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nullmodel import NullModel, uniform
from privrank.hypotheses.nulls import Null, usual_draws
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.identity import IdentityMethod
from privrank.identity import ask as ask_identity
from privrank.local.protocols import Protocol
from privrank.local.protocols_orders import PairBits
from privrank.local.uniformpower import Collection
from privrank.local.uniformtest import check_reported
from privrank.mechanisms.categories import Alternative
from privrank.planning.effects import alternative, curve_of, family
from privrank.planning.simulation import chance_of_level
from privrank.plans.nullmodel import read_null
from privrank.power.base import Dependent, Point, Range
from privrank.power.stated import Effects, TestPower, check_work, names_of
from privrank.power.surveys import Mode, least_and_most
from privrank.privacy.budget import pure_epsilon
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import Sample, SampleKind
from privrank.uniformity import UniformityMethod
from privrank.uniformity import ask as ask_uniformity
from privrank.util.checks import check_choice
from privrank.util.workers import Workers

__all__ = ["IdentityPower", "UniformityPower"]

Ask = Callable[[Sample, float, float], Statistic | RandomBit]

_LOOK, _DRAWS = 256, 1_999
"""Draws of the null distribution at a first look, and of rankings in all."""

_WORK, _CHOICES = 2**31, 10**8
"""Largest n m (m + 200) of rankings, and n of choices, among which a number is looked for."""


@dataclass(frozen=True, slots=True)
class _Test:
    """What the plan of a test of one sample knows of it.

    Parameters
    ----------
    sample : Sample
        Public facts but for the number of units.
    null : NullModel
        What is tested.
    ask : callable
        Maps public facts, a pure budget and a level to what the test releases.
    side : {"two-sided", "larger", "smaller"}
        What the first of two categories is under H1.
    protocol : Protocol or None
        Of the reports that the test is from, at any epsilon.
    """

    sample: Sample
    null: NullModel
    ask: Ask
    side: Alternative = "two-sided"
    protocol: Protocol | None = None

    @property
    def effects(self) -> Effects:
        """How effects are stated."""
        _, _, most = family(replace(self.sample, nobs=2), self.null, self.side)
        return Effects(self.sample.kind, len(self.sample.items), self.null, most)

    def measure(
        self, at: Point, replicates: int, workers: Workers, *, look: bool
    ) -> tuple[float, float]:
        """Return the power and its error; a first `look` takes few draws of the null, too."""
        sample = replace(self.sample, nobs=at.nobs)
        xi = pure_epsilon(at.epsilon, at.delta)
        asked, null, noise = self.ask(sample, xi, at.alpha), None, DiscreteLaplace(0.0)
        if isinstance(asked, Statistic):
            draws = usual_draws(sample.kind, at.nobs, len(sample.items))
            draws = draws if sample.kind == "choices" else min(draws, _DRAWS)
            if look:
                draws = min(draws, _LOOK)
                asked = asked if asked.coarse is None else asked.coarse(draws)
            noise = DiscreteLaplace.calibrate(asked.sensitivity, xi)
            null = asked.null(draws)
        reject = chance_of_level(asked, noise, null, at.alpha)
        curve, _, _ = curve_of(asked, reject, sample, self.null, self.side)
        power, error = curve.at(at.effect, replicates, workers)
        return power, math.hypot(error, _error_of_threshold(null, noise, at.alpha, power))

    @property
    def most(self) -> float:
        """Up to which number of units one is looked for, as simulations take long beyond."""
        if self.protocol is not None:
            return Collection(self.protocol, 2).most
        if self.sample.kind == "choices":
            return float(_CHOICES)
        m = len(self.sample.items)
        return float(max(_WORK // (m * (m + 200)), 1000))

    def range(self, name: Dependent, at: Point) -> Range:
        """Return where a number is looked for."""
        if name == "epsilon":
            return least_and_most(name, self.protocol is not None)
        if name == "nobs":
            if at.effect == 0:
                raise ValueError(
                    f"{self.effects.words} {self.effects.shown(0.0):g} is H0 itself: state an "
                    f"effect that there is to find."
                )
            return Range(min(max(self._first_size(at), 4.0), self.most), 2.0, self.most)
        sample = replace(self.sample, nobs=at.nobs)
        _, start, most = family(sample, self.null, self.side)
        return Range(start, 2.0**-20 * start, most)

    def _first_size(self, at: Point) -> float:
        """Return a number of units to start from.

        By the normal approximation, for half the power or so: `signal` is the expected statistic
        of one unit in its standard deviations, which n units have n^(1/2) times, and `moved` how
        much of it one unit can move.
        """
        if self.protocol is not None:
            protocol = replace(self.protocol, epsilon=at.epsilon)
            return Collection(protocol, 2).first_size(at.effect)
        kind, m = self.sample.kind, len(self.sample.items)
        if kind == "choices":
            signal, moved, cells = 2.0 * at.effect, 2.0, m - 1
        elif self.null.center:
            model, null = alternative(m, at.effect, self.null)[0], self.null.model
            spread = math.sqrt(null.var_distance)
            signal = abs(model.mean_distance - null.mean_distance) / spread
            moved, cells = min(0.5 * m * (m - 1) / spread, 6.0), 1
        else:
            model = alternative(m, at.effect, self.null)[0]
            before = [float(model.pair_probability(0, gap)) for gap in range(1, m)]
            won = np.append(0.0, np.cumsum(before))  # by how many an item is expected to be led
            away = won - won[::-1] + np.arange(m - 1, -1, -1) - 0.5 * (m - 1)
            signal = math.sqrt(12.0 * float(away @ away) / (m * (m + 1)))
            moved, cells = 2.0 * math.sqrt(m - 1), m - 1
        signal = max(signal, 1e-12)
        return (6.0 + 2.0 * math.sqrt(cells)) / signal**2 + 1.5 * moved / (at.epsilon * signal)


def _ask_reports(protocol: Protocol, sample: Sample, xi: float, alpha: float) -> Statistic:
    return Collection(replace(protocol, epsilon=xi), sample.nobs).statistic


def _error_of_threshold(
    null: Null | None, noise: DiscreteLaplace, alpha: float, power: float
) -> float:
    """Return the standard error in the power that draws of the null distribution leave.

    That of the level at the threshold, times the slope of the power in the level where statistics
    are normal: the ratio of the densities at the quantiles of the power and of the level.
    """
    if null is None or null.draws is None:
        return 0.0
    threshold = null.threshold(alpha, noise)
    if threshold is None:
        return 0.0
    tails = noise.tail(threshold - null.values)
    level = float(null.weights @ tails)
    variance = max(float(null.weights @ tails**2) - level**2, 0.0) / null.draws
    at, of = (float(ndtri(min(max(p, 1e-9), 1 - 1e-9))) for p in (power, alpha))
    return math.sqrt(variance) * math.exp(0.5 * (of * of - at * at))


@dataclass(frozen=True)
class UniformityPower(TestPower):
    """Power of :class:`privrank.UniformityTest`, before there are data.

    Parameters
    ----------
    items : int or sequence of str
        The items of rankings, or the categories of choices, or how many there are.
    kind : {"rankings", "choices"}
        What a respondent gives.
    method : str, default "auto"
        As for `fit`.
    mode : {"central", "local"}
        ``"local"``: rankings are not collected, but reports of :class:`privrank.local.PairBits`,
        one of each respondent, as for :meth:`privrank.UniformityTest.from_reports`.
    protocol : Protocol, optional
        Another protocol whose reports the test takes; its epsilon is that which is asked about.
    replicates : int, default 400
        Simulated samples behind an answer.
    n_jobs : int, default 1
        Processes that simulate where it takes long; -1 for as many as there are cores. The answer
        is the same for any number.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if an argument breaks a rule.

    Notes
    -----
    **Statistic.** The power of the test as `fit` makes it: a simulated sample's probability of
    rejection over the privacy noise, averaged over samples. Its threshold is that of a fit of the
    same size, from the same public table of the null distribution. Of two categories it is summed
    over all counts, which is exact. The alternatives are those of ``detectable_effect()``: a
    Mallows model, or choices of which half of the categories are more likely.

    **Local model.** Its centre may be any order, all as likely, since a protocol asks without
    knowing it. Of reports about one pair each only their numbers are simulated, so that any number
    of respondents takes as long; of other protocols' the reports of up to 2,000 respondents, whose
    net wins are scaled to the size of the survey.

    Examples
    --------
    >>> import privrank as pr
    >>> design = pr.power.UniformityPower(items=["yes", "no"], kind="choices")
    >>> design.solve_power(total_variation=0.1, epsilon=1.0, power=0.8)
    202 respondents (no Monte Carlo error)
    >>> round(design.power(total_variation=0.1, nobs=400, epsilon=1.0), 3)
    0.979

    Without a curator who sees the rankings it takes more of them:

    >>> local = pr.power.UniformityPower(items=6, mode="local")
    >>> 1100 < local.solve_power(phi=0.8, epsilon=1.0, power=0.8) < 1600
    True
    """

    items: int | Sequence[str]
    _: KW_ONLY
    kind: SampleKind = "rankings"
    method: UniformityMethod = "auto"
    mode: Mode = "central"
    protocol: Protocol | None = None
    replicates: int = 400
    n_jobs: int = 1

    def __post_init__(self) -> None:
        """Check what is fixed."""
        check_choice("kind", self.kind, SampleKind)
        check_choice("method", self.method, UniformityMethod)
        check_choice("mode", self.mode, Mode)
        check_work(self.replicates, self.n_jobs)
        names = names_of(self.items)
        if self._local and (self.kind, self.method) != ("rankings", "auto"):
            raise ValueError(
                "kind and method must be left out in the local model: its test of uniformity is "
                "one of rankings, and the protocol decides on the statistic."
            )
        if self.protocol is not None:
            check_reported(self.protocol)
            if len(self.protocol.items) != len(names):
                raise ValueError(
                    f"protocol must be of the {len(names)} items of the plan, got "
                    f"{len(self.protocol.items)}."
                )

    @property
    def _local(self) -> bool:
        return self.mode == "local" or self.protocol is not None

    def _checked(self, at: Mapping[str, Any]) -> Point:
        point = super()._checked(at)
        if self._local and point.delta > 0:
            raise ValueError(
                "delta must be 0 in the local model, whose reports are pure: leave it out."
            )
        return point

    @property
    def _test(self) -> _Test:
        names = names_of(self.items)
        if self._local:
            protocol = self.protocol or PairBits(names, 1.0)
            sample = Sample("rankings", protocol.items, 2, "respondent", 1)
            ask = partial(_ask_reports, protocol)
            return _Test(sample, NullModel(), ask, protocol=protocol)
        null = NullModel(uniform(len(names)) if self.kind == "choices" else ())
        return _Test(Sample(self.kind, names, 2, "row", 1), null, self._ask)

    def _ask(self, sample: Sample, xi: float, alpha: float) -> Statistic | RandomBit:
        return ask_uniformity(self.method, sample, xi=xi, alpha=alpha, tolerance=None)[0]

    @property
    def _caption(self) -> str:
        return "Test of uniformity"


@dataclass(frozen=True)
class IdentityPower(TestPower):
    """Power of :class:`privrank.IdentityTest`, before there are data.

    Parameters
    ----------
    null : Mallows, mapping or sequence
        The distribution under H0: a :class:`privrank.Mallows` model, or the probabilities of
        choices by category. For uniformity see :class:`UniformityPower`.
    method : str, default "auto"
        As for `fit`, but for ``"goldreich"`` and ``"sigmoid"``, which are not planned.
    alternative : {"two-sided", "larger", "smaller"}
        As for `fit`: of two categories, what the probability of the first is under H1.
    replicates : int, default 400
        Simulated samples behind an answer.
    n_jobs : int, default 1
        Processes that simulate where it takes long; -1 for as many as there are cores.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if an argument breaks a rule.

    Notes
    -----
    **Statistic.** As :class:`UniformityPower`. The alternatives to a Mallows model have its centre
    and another phi; those to probabilities have more of some categories, which make up half of the
    mass: which ones is drawn for each sample, so that the order of the categories does not matter.

    Examples
    --------
    >>> import privrank as pr
    >>> census = pr.power.IdentityPower({"town": 0.7, "country": 0.3})
    >>> census.solve_power(nobs=500, total_variation=0.06, power=0.8)
    epsilon = 0.4365 (no Monte Carlo error)
    """

    null: Mallows | Mapping[str, float] | Sequence[float]
    _: KW_ONLY
    method: IdentityMethod = "auto"
    alternative: Alternative = "two-sided"
    replicates: int = 400
    n_jobs: int = 1

    def __post_init__(self) -> None:
        """Check what is fixed."""
        check_choice("method", self.method, IdentityMethod)
        check_choice("alternative", self.alternative, Alternative)
        check_work(self.replicates, self.n_jobs)
        if self.method in ("goldreich", "sigmoid"):
            raise ValueError(
                f"method={self.method!r} is not planned, as it is never the most powerful: use "
                f"method='auto'."
            )
        test = self._test
        self._ask(replace(test.sample, nobs=10), 1.0, 0.05)

    @property
    def _test(self) -> _Test:
        null = self.null
        if isinstance(null, Mallows):
            sample = Sample("rankings", names_of(len(null.items)), 2, "row", 1)
            null = Mallows.from_theta(len(null.items), null.theta, null.center)
            return _Test(sample, read_null(null, sample), self._ask)
        listed = isinstance(null, Iterable) and getattr(null, "ndim", 1) == 1
        if isinstance(null, str | bytes) or not listed:
            raise TypeError(
                f"null must be a Mallows model or probabilities by category, got "
                f"{type(null).__name__}."
            )
        names = list(null) if isinstance(null, Mapping) else len(list(null))
        sample = Sample("choices", names_of(names), 2, "row", 1)
        return _Test(sample, read_null(null, sample), self._ask, self.alternative)

    def _ask(self, sample: Sample, xi: float, alpha: float) -> Statistic | RandomBit:
        null, sided = self._test.null, self.alternative
        return ask_identity(null, sample, self.method, xi=xi, alternative=sided)

    @property
    def _caption(self) -> str:
        return "Test of identity"
