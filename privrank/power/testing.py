"""Power of tests of uniformity, identity and closeness.

The power is the probability of rejection of a simulated sample over the noise, averaged over
samples. It is computed from the null distribution of the noisy statistic.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from privrank.closeness import ClosenessMethod, compare, comparison_rejects
from privrank.distributions.mallows import Mallows
from privrank.hypotheses.effects import (
    MAX_THETA,
    Alternatives,
    curve_between,
    curve_of,
    least_errors,
    rejection_at_level,
)
from privrank.hypotheses.nulls import RandomBit, Statistic, usual_draws
from privrank.identity import IdentityMethod, identity_statistic
from privrank.local.kinds import PairBits
from privrank.local.uniform import planned_statistic
from privrank.mechanisms.categories import Alternative
from privrank.plans.declarations import read_null
from privrank.plans.samples import (
    FEWEST,
    LARGEST_GRAM,
    MAX_TABULATED,
    MOST,
    method_of,
    plan_comparison,
)
from privrank.power.base import DesignPoint, Mode, Power, item_names
from privrank.privacy.accounting import pure_epsilon
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import Sample, SampleKind
from privrank.uniformity import UniformityMethod, uniformity_statistic
from privrank.util.checks import as_numbers, check_count, is_number, quoted

_CHOICES = 10**8
"""Largest number of choices in a search."""


class TestPower(Power):
    """Plan of a test; effects are dispersions of rankings or distances of choices.

    For rankings the effect is the dispersion ``phi`` of the Mallows model of the sample, or of the
    smallest group: 1 if all orders are equally likely and 0 if all rankings are equal. Its centre
    is the centre of H0, if H0 has one. For choices the effect is the ``total_variation`` distance
    from H0, or of the smallest group from the others. When solving for phi, the result is the value
    closest to H0, towards 1, or towards 0 if H0 is uniform.

    The effect on rankings can also be given as a ``total_variation``: half the sum, over all
    rankings, of the absolute differences of probabilities. The alternative is then the Mallows
    model at this distance from H0 in the same direction. It is not the least favourable
    alternative: other distributions at this distance may be detected more or less often.
    """

    @abstractmethod
    def _against(self, nobs: int) -> Alternatives:
        """Return the alternatives for a sample of `nobs` units, or for its smallest group."""

    @property
    def _named(self) -> str:
        return "total_variation" if self._against(10).null.probabilities else "phi"

    @property
    def _readers(self) -> dict[str, Callable[[Any], float]]:
        return {self._named: self._read, "total_variation": self._read_distance}

    def _read(self, value: Any) -> float:
        against = self._against(10)
        if not against.null.probabilities:
            if not is_number(value) or not 0 <= value <= 1:
                raise ValueError(
                    f"phi must lie between 0 (all rankings equal) and 1 (uniform), got "
                    f"{quoted(value)}."
                )
            # effects increase from 0 at H0: they are theta if H0 is uniform, and 1 - theta /
            # theta_0 for a Mallows null with theta_0
            theta = min(-math.log(value) if value > 0 else math.inf, MAX_THETA)
            return 1.0 - theta / against.null.theta if against.null.center else theta
        return self._read_distance(value)

    def _read_distance(self, value: Any) -> float:
        against = self._against(10)
        most = against.distance(against.most)
        if not is_number(value) or not 0 <= value <= most * (1 + 1e-12):
            raise ValueError(
                f"total_variation must be between 0 and {most:.4g}, the largest distance of the "
                f"alternatives from H0, got {quoted(value)}."
            )
        return against.effect(min(float(value), most))

    def _shown(self, effect: float) -> float:
        """Return an effect on the scale of its argument: phi, or the distance of choices."""
        against = self._against(10)
        return effect if against.null.probabilities else against.model(effect).phi

    def _limit(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        """Return the largest power of a private test of this level, and 0."""
        odds = np.geomspace(at.alpha, 1.0 / at.alpha, 401)
        errors = least_errors(
            odds[:, None],
            at.nobs,
            self._against(at.nobs).distance(at.effect),
            at.epsilon,
            at.delta,
        )
        return min(float(np.min(odds * at.alpha + 1.0 - errors)), 1.0), 0.0

    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        against = self._against(at.nobs)
        return against.start, 2.0**-20 * against.start, against.most


class OneSamplePower(TestPower):
    """Plan of a test of one sample."""

    @abstractmethod
    def _ask(self, sample: Sample, xi: float, alpha: float) -> Statistic | RandomBit:
        """Return the statistic or bit of the test at a pure budget and a level."""

    def _measure(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        """Return the power and its standard error; a first look uses few draws of the null."""
        against = self._against(at.nobs)
        xi = pure_epsilon(at.epsilon, at.delta)
        sample = against.sample
        null = None
        noise = DiscreteLaplace(0.0)
        query = self._ask(sample, xi, at.alpha)
        # for rankings the null distribution has fewer draws than in a test; the resulting error is
        # part of the standard error
        if isinstance(query, Statistic):
            draws = usual_draws(sample.kind, at.nobs, len(sample.items))
            draws = draws if sample.kind == "choices" else min(draws, 1_999)
            if replicates < self.replicates:
                draws = min(draws, 256)
                query = query if query.coarse is None else query.coarse(draws)
            noise = DiscreteLaplace.calibrate(query.sensitivity, xi)
            null = query.null(draws)
        reject = rejection_at_level(query, noise, null, at.alpha)
        power, error = curve_of(query, reject, against, self.n_jobs).at(at.effect, replicates)
        if null is not None and null.draws is not None:
            # draws of the null distribution add at most the standard error of the level at the
            # threshold, which noise reduces, times the slope of the power as a function of the
            # level: for normal statistics the ratio of densities at the quantiles of both
            level = math.sqrt(at.alpha * (1.0 - at.alpha) / null.draws)
            q, z = (float(ndtri(min(max(p, 1e-9), 1 - 1e-9))) for p in (power, at.alpha))
            error = math.hypot(error, level * math.exp(0.5 * (z * z - q * q)))
        return power, error

    @property
    def _searched(self) -> tuple[float, float]:
        sample = self._against(10).sample
        m = len(sample.items)
        return 2.0, _CHOICES if sample.kind == "choices" else max(2**31 // (m * (m + 200)), 1000)


@dataclass(frozen=True, kw_only=True)
class UniformityPower(OneSamplePower):
    """Power and sample size for UniformityTest.

    Parameters
    ----------
    items : int or sequence of str
        The items of rankings or the categories of choices, or their number.
    kind : {"rankings", "choices"}
        The type of the answers.
    method : str, default "auto"
        See :meth:`privrank.UniformityTest.fit`.
    mode : {"central", "local"}
        ``"local"``: local reports of :class:`privrank.local.PairBits` instead of rankings, one per
        respondent; see :meth:`privrank.UniformityTest.from_reports`.
    replicates : int, default 400
        Number of simulated samples.
    n_jobs : int, default 1
        Number of processes for long simulations; -1 for the number of cores. It does not affect the
        result.

    Raises
    ------
    ValueError, TypeError
        If an argument violates a rule.

    See Also
    --------
    privrank.UniformityTest : The test.

    Notes
    -----
    **Statistic.** The power of the test in `fit`: the probability of rejection of a simulated
    sample over the privacy noise, averaged over samples. The threshold equals the threshold of a
    fit of the same size, from the same public table of the null distribution. For two categories
    the power is summed over all counts, which is exact. The alternatives are the same as for
    ``detectable_effect()``: a Mallows model, or choices of which half of the categories are more
    likely.

    **Local model.** The centre is any order, all equally likely, because a protocol does not use
    it. For reports about one pair each only their counts are simulated, so the run time does not
    depend on the number of respondents.

    Examples
    --------
    >>> import privrank as pr
    >>> design = pr.power.UniformityPower(items=["yes", "no"], kind="choices")
    >>> design.solve_power(total_variation=0.1, epsilon=1.0, power=0.8)
    202 respondents (no Monte Carlo error)
    >>> round(design.power(total_variation=0.1, nobs=400, epsilon=1.0), 3)
    0.979

    The effect on rankings is a phi, or the total variation distance of that Mallows model:

    >>> design = pr.power.UniformityPower(items=4, replicates=40)
    >>> phi = pr.tolerance_to_phi(4, 0.1)
    >>> bool(design.power(200, 1.0, total_variation=0.1) == design.power(200, 1.0, phi=phi))
    True

    The local model needs more rankings:

    >>> local = pr.power.UniformityPower(items=6, mode="local")
    >>> 1100 < local.solve_power(phi=0.8, epsilon=1.0, power=0.8) < 1600
    True
    """

    items: int | Sequence[str] = field(kw_only=False)
    kind: SampleKind = "rankings"
    method: UniformityMethod = "auto"
    mode: Mode = "central"
    replicates: int = 400

    caption = "Test of uniformity"

    def __post_init__(self) -> None:
        """Refuse an invalid plan."""
        super().__post_init__()
        item_names(self.items)
        if self._local and (self.kind, self.method) != ("rankings", "auto"):
            raise ValueError(
                "kind and method must be omitted in the local model: its test of uniformity is for "
                "rankings, and the protocol determines the statistic."
            )

    def _against(self, nobs: int) -> Alternatives:
        sample = Sample(
            self.kind, item_names(self.items), nobs, "respondent" if self._local else "row", 1
        )
        return Alternatives(sample, read_null("uniform", sample))

    def _ask(self, sample: Sample, xi: float, alpha: float) -> Statistic | RandomBit:
        if self._local:
            return planned_statistic(PairBits(sample.items, xi), sample.nobs)
        return uniformity_statistic(self.method, sample, xi=xi, alpha=alpha, tolerance=None)[0]

    @property
    def _searched(self) -> tuple[float, float]:
        return (2.0, _CHOICES) if self._local else super()._searched


@dataclass(frozen=True, kw_only=True)
class IdentityPower(OneSamplePower):
    """Power and sample size for IdentityTest.

    Parameters
    ----------
    null : Mallows, mapping or sequence
        The distribution under H0: a :class:`privrank.Mallows` model, or the probabilities of
        choices by category. For uniformity see :class:`UniformityPower`.
    method : str, default "auto"
        See :meth:`privrank.IdentityTest.fit`.
    alternative : {"two-sided", "larger", "smaller"}
        See :meth:`privrank.IdentityTest.fit`; for the first of two categories.
    tolerance : float, optional
        The total variation distance for which the bit of ``"sigmoid"`` is designed.
    replicates, n_jobs
        See :class:`UniformityPower`.

    Raises
    ------
    ValueError, TypeError
        If an argument violates a rule.

    See Also
    --------
    privrank.IdentityTest : The test.

    Notes
    -----
    **Statistic.** See :class:`UniformityPower`. The alternatives to a Mallows model have its centre
    and another phi. The alternatives to probabilities increase some of them, for categories that
    make up half of the mass. These categories are drawn for each sample, so the order of the
    categories does not matter. The bit of ``"sigmoid"`` has no level: it is designed for
    `tolerance`, whatever `alpha`, and its power at a distance of 0 is its error probability under
    H0.

    Examples
    --------
    >>> import privrank as pr
    >>> census = pr.power.IdentityPower({"town": 0.7, "country": 0.3})
    >>> census.solve_power(nobs=500, total_variation=0.06, power=0.8)
    epsilon = 0.4365 (no Monte Carlo error)

    The published bit at this epsilon, under H0 and at the same distance:

    >>> bit = pr.power.IdentityPower([0.7, 0.3], method="sigmoid", tolerance=0.06)
    >>> [round(bit.power(500, 0.4365, distance), 2) for distance in (0.0, 0.06)]
    [0.17, 0.91]
    """

    null: Mallows | Mapping[str, float] | Sequence[float] = field(kw_only=False)
    method: IdentityMethod = "auto"
    alternative: Alternative = "two-sided"
    tolerance: float | None = None
    replicates: int = 400

    caption = "Test of identity"

    def __post_init__(self) -> None:
        """Refuse an invalid plan."""
        super().__post_init__()
        self._ask(self._against(10).sample, 1.0, 0.05)

    def _against(self, nobs: int) -> Alternatives:
        null = self.null
        if isinstance(null, Mallows):
            sample = Sample("rankings", item_names(len(null.items)), nobs, "row", 1)
            unnamed = Mallows.from_theta(len(null.items), null.theta, null.center)
            return Alternatives(sample, read_null(unnamed, sample))
        listed = isinstance(null, Iterable) and getattr(null, "ndim", 1) == 1
        if isinstance(null, str | bytes) or not listed:
            raise TypeError(
                f"null must be a Mallows model or probabilities by category, got "
                f"{type(null).__name__}."
            )
        names = list(null) if isinstance(null, Mapping) else len(list(null))
        sample = Sample("choices", item_names(names), nobs, "row", 1)
        return Alternatives(sample, read_null(null, sample), self.alternative)

    def _ask(self, sample: Sample, xi: float, alpha: float) -> Statistic | RandomBit:
        return identity_statistic(
            self._against(sample.nobs).null,
            sample,
            self.method,
            xi=xi,
            alternative=self.alternative,
            tolerance=self.tolerance,
        )


@dataclass(frozen=True, kw_only=True)
class ClosenessPower(TestPower):
    """Power and sample size for ClosenessTest.

    Parameters
    ----------
    items : int or sequence of str
        The items of rankings or the categories of choices, or their number.
    kind : {"rankings", "choices"}
        The type of the answers.
    shares : sequence of float, default (1, 1)
        Relative sizes of at least two groups, such as ``(2, 1)`` or the numbers of respondents.
    method : str, default "auto"
        See :meth:`privrank.ClosenessTest.fit`.
    permutations : int, default 999
        Number of permutations, see :meth:`privrank.ClosenessTest.fit`.
    replicates : int, default 100
        Number of simulated data sets, each tested with all permutations.
    n_jobs : int, default 1
        See :class:`UniformityPower`.

    Raises
    ------
    ValueError, TypeError
        If an argument violates a rule.

    See Also
    --------
    privrank.ClosenessTest : The test.

    Notes
    -----
    **Statistic.** The power of the test in `fit`: the probability of rejection of a simulated data
    set over the privacy noise, given its permutations, averaged over data sets. The smallest group
    (the first of equal ones) differs from all others, in which all outcomes are equally likely, as
    for ``detectable_effect()``. Labels are public, and each respondent is in one group.

    Examples
    --------
    >>> import privrank as pr
    >>> design = pr.power.ClosenessPower(items=["a", "b", "c"], kind="choices", shares=(2, 1))
    >>> power = design.power(nobs=600, total_variation=0.15, epsilon=1.0)
    >>> 0.7 < power < 0.95, power.error < 0.03
    (True, True)
    """

    items: int | Sequence[str] = field(kw_only=False)
    kind: SampleKind = "rankings"
    shares: Sequence[float] = (1, 1)
    method: ClosenessMethod = "auto"
    permutations: int = 999
    replicates: int = 100

    caption = "Comparison of groups in shares {shares}"

    def __post_init__(self) -> None:
        """Refuse an invalid plan."""
        super().__post_init__()
        check_count("permutations", self.permutations, low=FEWEST, high=MOST)
        shares = as_numbers(self.shares)
        if shares is None or len(shares) < 2 or not np.isfinite(shares).all() or min(shares) <= 0:
            raise ValueError(
                "shares must be at least two positive numbers, one for each group, as (2, 1)."
            )
        compare(self.method, self._sample(math.ceil(self._searched[0])))

    def sizes(self, nobs: int) -> tuple[int, ...]:
        """Return the sizes of the groups for a number of respondents, at least 2 each.

        Parameters
        ----------
        nobs : int
            Number of respondents of all groups together.

        Returns
        -------
        tuple of int

        Examples
        --------
        >>> design.sizes(600)
        (400, 200)
        """
        check_count("nobs", nobs, low=2)
        shares = np.asarray(self.shares, dtype=np.float64)
        # the ends of the groups, rounded to whole numbers
        ends = np.rint(nobs * np.cumsum(shares) / shares.sum()).astype(np.int64)
        sizes = np.diff(ends, prepend=0)
        if sizes.min() < 2:
            raise ValueError(
                f"nobs must give at least 2 respondents per group, but {nobs} in shares "
                f"{tuple(self.shares)} do not."
            )
        return tuple(sizes.tolist())

    def _sample(self, nobs: int) -> Sample:
        return Sample(
            self.kind,
            item_names(self.items),
            nobs,
            "row",
            1,
            groups=tuple((f"group {k}", size) for k, size in enumerate(self.sizes(nobs), 1)),
        )

    def _against(self, nobs: int) -> Alternatives:
        small = max(int(nobs * np.min(self.shares) / np.sum(self.shares)), 2)
        sample = Sample(self.kind, item_names(self.items), small, "row", 1)
        return Alternatives(sample, read_null("uniform", sample))

    def _measure(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        """Return the power and its standard error; a first look uses few permutations."""
        # a first look with 99 permutations loses a little power: it only brackets the answer, and
        # the last measurement uses as many permutations as the test
        sample = self._sample(at.nobs)
        method = method_of(self.method, sample, at.epsilon)
        comparison = compare(method, sample)
        plan = plan_comparison(
            sample,
            comparison,
            at.epsilon,
            at.delta,
            method=method,
            alpha=at.alpha,
            permutations=(
                min(self.permutations, 99) if replicates < self.replicates else self.permutations
            ),
        )
        reject = comparison_rejects(comparison, plan, sample, at.alpha)
        return curve_between(reject, sample, self.n_jobs)[0].at(at.effect, replicates)

    def _limit(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        """Return the bound for the smallest group, whose units alone have another distribution."""
        # both ends of a group are rounded: it has at most one unit more than its share
        return super()._limit(
            replace(at, nobs=int(at.nobs * np.min(self.shares) / np.sum(self.shares)) + 1),
            replicates,
        )

    @property
    def _searched(self) -> tuple[float, float]:
        tabulated = self.kind == "choices" or len(item_names(self.items)) <= MAX_TABULATED
        least = math.ceil(3.0 * np.sum(self.shares) / np.min(self.shares))
        return float(least), float(10**6 if tabulated else LARGEST_GRAM)
