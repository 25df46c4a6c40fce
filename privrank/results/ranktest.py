"""The result of a test on rankings or choices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from privrank.hypotheses.effects import DetectableEffect, check_power, detectable_from
from privrank.hypotheses.interval import corrected_distance, interval_from, zero_rule
from privrank.hypotheses.nulls import Null, NullModel, RandomBit, Statistic
from privrank.release.names import BOUNDARY, DECISION, EFFECT, STATISTIC
from privrank.release.release import Release, ReleasedPart
from privrank.release.survey import Design, Sample
from privrank.results import guarantee, plots, tables
from privrank.results.base import Result, cached_result
from privrank.results.claims import assumed, percent, said
from privrank.results.testnotes import (
    DECISIONS,
    NO_EFFECT_OF_SETS,
    impossible,
    interval_text,
    noise_of,
    power_notes,
    verdict,
)
from privrank.util.arrays import immutable
from privrank.util.checks import check_count, is_number

_COLUMNS = {
    "statistic": tables.Column("statistic", "{:z.4f}".format),
    "threshold": tables.Column("threshold", "{:z.4f}".format),
    "pvalue": tables.Column("p-value", tables.pvalue_cell),
    "reject": DECISIONS,
}


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class RankTestResult(Result):
    """Results of a private test of uniformity or identity.

    Parameters
    ----------
    release : Release
        The output of the private mechanism.
    test : str
        Name of the test, for example ``"UniformityTest"``.
    method : str
        Requested method of the test.
    alpha : float
        Significance level.
    hypotheses : tuple of two str
        H0 and H1 in words.
    pvalue : float or None
        The p-value; None when one random bit was released.
    threshold : float or None
        Smallest statistic that is rejected at `alpha`, in the unit of the statistic; None when one
        random bit was released, or when no value is rejected.
    draws : int or None
        Monte Carlo draws behind the p-value; None when the null distribution is exact.
    notes : tuple of str
        Additional notes on the method.
    asked : Statistic or RandomBit
        Definition of the released statistic or bit by public numbers.
    null_model : NullModel
        Model under H0.
    settings : mapping
        Other arguments of the fit, for the archive.

    See Also
    --------
    privrank.UniformityTest : Test that all answers are equally likely.
    privrank.IdentityTest : Test that answers have given probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> test = pr.UniformityTest.from_counts({"yes": 70, "no": 34, "unsure": 34},
    ...                                      categories=["yes", "no", "unsure"])
    >>> result = test.fit(epsilon=1.0, method="tv", draws=999, rng=np.random.default_rng(1))
    >>> round(result.pvalue, 3), result.reject
    (0.005, True)
    """

    family: ClassVar[str] = "Tests"

    test: str
    method: str
    hypotheses: tuple[str, str]
    pvalue: float | None
    threshold: float | None
    draws: int | None
    notes: tuple[str, ...] = field(repr=False)
    asked: Statistic | RandomBit = field(repr=False)
    null_model: NullModel
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Name of the test.

        Examples
        --------
        >>> result.model
        'UniformityTest'
        """
        return self.test

    def _shape(self) -> tuple[str, ...]:
        shown = () if self.pvalue is None else (tables.format_pvalue(self.pvalue),)
        return *super(RankTestResult, self)._shape(), *shown

    @property
    def _part(self) -> ReleasedPart | None:
        return self.release.parts.get(STATISTIC)

    @property
    def statistic(self) -> float | None:
        """Noisy statistic in its own unit; None when one random bit was released.

        Examples
        --------
        >>> round(result.statistic, 3)
        0.135
        """
        return None if self._part is None else float(self._part.values[0] * self._part.step)

    @property
    def reject(self) -> bool:
        """Whether H0 is rejected at level alpha.

        Examples
        --------
        >>> result.reject
        True
        """
        if self.pvalue is None:
            return bool(self.release.parts[DECISION].values[0])
        return self.pvalue <= self.alpha

    @property
    def pvalue_error(self) -> float | None:
        """Monte Carlo standard error of the p-value; 0 for an exact null.

        Examples
        --------
        >>> round(result.pvalue_error, 4)
        0.0022
        """
        if self.pvalue is None or self.draws is None:
            return None if self.pvalue is None else 0.0
        return math.sqrt(self.pvalue * (1.0 - self.pvalue) / self.draws)

    def null(self) -> Null:
        """Return the null distribution before noise, in lattice steps.

        Raises
        ------
        ValueError
            If the method released one random bit, which has no null distribution.

        Examples
        --------
        >>> null = result.null()
        >>> null.draws
        999
        """
        if not isinstance(self.asked, Statistic):
            raise ValueError(
                f"method={self.method!r} releases one random bit, which has no null "
                f"distribution: use method='auto'."
            )
        return self.asked.null(self.draws or 1)

    @property
    def boundary(self) -> float | None:
        """Public random number in [-1/2, 1/2) for the boundary; None without one.

        With U this number and R the released statistic, the p-value is P(> R) + (1/2 - U) P(= R)
        under H0, noise included. For a p-value without randomisation, use U = -1/2.

        Examples
        --------
        It is None for a simulated null; a test of two categories has such a number:

        >>> print(result.boundary)
        None
        >>> test = pr.IdentityTest.from_counts({"yes": 61, "no": 37}, {"yes": 0.5, "no": 0.5})
        >>> round(test.fit(epsilon=1.0, rng=np.random.default_rng(1)).boundary, 3)
        0.449
        """
        part = self.release.parts.get(BOUNDARY)
        return None if part is None else float(part.values[0] * part.step)

    @property
    def _distance(self) -> ReleasedPart | None:
        """The released total variation distance of the shares from H0, if any."""
        measured = isinstance(self.asked, Statistic) and self.asked.distance
        return self._part if measured else self.release.parts.get(EFFECT)

    @property
    def effect(self) -> float | None:
        """Total variation distance from H0, corrected for sampling error.

        It is None unless the statistic estimates this distance, or an effect was released as well.

        Examples
        --------
        >>> round(result.effect, 3)
        0.126
        """
        part = self._distance
        if part is None:
            return None
        return corrected_distance(
            float(part.values[0] * part.step), self.nobs, self.null_model.probabilities
        )

    def conf_int(self, alpha: float | None = None) -> tuple[float, float]:
        """Return a confidence interval for the total variation distance from H0.

        The interval contains 0 if and only if the test does not reject at this level. With a
        one-sided alternative this need not be so, because a distance has no direction.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the test.

        Returns
        -------
        low, high : float
            Limits of the interval. If the lower end is 0 but excluded, `low` is the smallest
            positive number.

        Raises
        ------
        ValueError
            If no distance was released: it needs ``method="tv"`` or an `effect_epsilon`.

        Examples
        --------
        >>> low, high = result.conf_int()
        >>> round(low, 3), round(high, 3)
        (0.0, 0.259)
        """
        level = self._level(alpha)
        part = self._distance
        if part is None or self.pvalue is None:
            raise ValueError(
                f"no distance was released by method={self.method!r}: fit a sample of choices with "
                f"effect_epsilon=... or method='tv' for a confidence interval."
            )
        interval = interval_from(
            int(part.values[0]),
            self.nobs,
            self.null_model.probabilities,
            part.laplace,
            level,
            step=part.step,
            sensitivity=part.sensitivity,
        )
        if "alternative" in self.release.plan.settings:
            return interval
        # the interval contains 0 if and only if the test at this level does not reject
        return zero_rule(interval, rejected=self.pvalue <= level, step=part.step)

    @cached_result
    def _interval(self) -> tuple[float, float] | None:
        return None if self._distance is None or self.pvalue is None else self.conf_int()

    def _distance_notes(self) -> list[str]:
        """Return a note with the distance from H0 and its interval."""
        interval = self._interval()
        if interval is None:
            return []
        part = self.release.parts.get(EFFECT)
        own = part is not None and self.release.source != "none"
        return said(
            "distance, released" if own else "distance",
            effect=self.effect,
            epsilon=part.epsilon if part is not None else 0.0,
            level=percent(1.0 - self.alpha),
            interval=interval_text(*interval),
        )

    def detectable_effect(self, power: float = 0.9, *, replicates: int = 400) -> DetectableEffect:
        """Return the smallest effect that this design detects, by simulation.

        The simulation uses public numbers only.

        Parameters
        ----------
        power : float, default 0.9
            Required power at level `alpha`; above `alpha`.
        replicates : int, default 400
            Simulated data sets per effect.

        Returns
        -------
        DetectableEffect
            For rankings, the Mallows model with the largest detectable phi; for choices, a
            distribution in which half of the categories are more likely than the others.

        See Also
        --------
        privrank.power.UniformityPower : Power of a planned test.

        Examples
        --------
        >>> effect = result.detectable_effect(power=0.8, replicates=40)
        >>> bool(0.1 < effect.total_variation < 0.25)
        True
        """
        if isinstance(self.release.survey, Design):
            raise ValueError(NO_EFFECT_OF_SETS)
        power = check_power(power, self.alpha)
        check_count("replicates", replicates, low=20)
        threshold = (
            None
            if self.threshold is None or self._part is None
            else round(self.threshold / self._part.step)
        )
        return detectable_from(
            self.release, self.asked, threshold, self.null_model, self.alpha, power, replicates
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row: statistic, threshold, p-value, decision and effect.

        Examples
        --------
        >>> result.to_frame()[["statistic", "pvalue", "reject", "effect"]].round(3)
                            statistic  pvalue  reject  effect
        test
        UniformityTest, tv      0.135   0.005    True   0.126
        """
        low, high = self._interval() or (None, None)
        return self._row(
            f"{self.test}, {self.method}",
            ("statistic", "threshold", "pvalue", "pvalue_error", "reject", "effect"),
            lower=low,
            upper=high,
        )

    def _table(self, details: bool) -> tables.Table:
        release = self.release
        null, alternative = self.hypotheses
        known = "null worths" if self.null_model.worths else "null"
        drawn = "exact" if self.draws is None else f"Monte Carlo ({self.draws:,} draws)"
        unstated = isinstance(self.asked, RandomBit) and self.asked.level is None
        if isinstance(self.asked, RandomBit):
            drawn = "none" if unstated else "none (calibrated level)"
        return tables.laid_out(
            # a test that releases only its decision has neither statistic nor p-value to show
            self.to_frame()
            .dropna(axis="columns")
            .set_axis([tables.statistic_words(release.mechanism)]),
            _COLUMNS,
            title=guarantee.title(f"Test of {self.test.removesuffix('Test')}", release),
            header=guarantee.header(
                release,
                *([("Method:", self.method)] if details else []),
                ("Null distribution:", drawn),
                ("Significance level:", "none stated" if unstated else f"{self.alpha:g}"),
                *guarantee.offered_lines(release),
                noise=noise_of(release, details),
                details=details,
            ),
            notes=tables.Notes(
                estimates=self._distance_notes(),
                tests=[
                    *said("hypotheses", null=null, alternative=alternative),
                    *verdict(self),
                    *self.notes,
                    *said("completed", getattr(release.survey, "completed", False)),
                    *said("threshold", details and self.threshold is not None),
                ],
                assumptions=assumed(
                    guarantee.assumptions(
                        release, *([known] if self.test == "IdentityTest" else [])
                    )
                ),
                privacy=guarantee.sample_privacy(release),
            ),
            cautions=self._cautions(),
        )

    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the null distribution with the threshold and released statistic.

        Raises
        ------
        ValueError
            If the method released one random bit.

        Examples
        --------
        >>> result.plot().axes[0].get_xlabel()
        'test statistic (including privacy noise)'
        """
        null = self.null()
        assert self._part is not None and self.statistic is not None
        edges, mass = null.bins(self._part.laplace)
        return plots.null_distribution(
            np.asarray(edges * self._part.step, dtype=np.float64),
            mass,
            statistic=self.statistic,
            threshold=self.threshold,
            alpha=self.alpha,
            caption=f"Test of {self.test.removesuffix('Test')}: "
            f"{tables.format_pvalue(self.pvalue or 0.0)} ({guarantee.caption(self.release)})",
            seeded=self.release.source == "seeded",
            ax=ax,
        )

    def _settings(self) -> dict[str, Any]:
        # a simulated null is not drawn again when the archive is read
        return {
            **self.settings,
            "found": {"pvalue": self.pvalue, "threshold": self.threshold, "draws": self.draws},
        }

    def _estimates(self) -> dict[str, Any]:
        return {"statistic": self.statistic, "reject": self.reject, "effect": self.effect}

    def _lines(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "threshold": self.threshold,
            "p-value": self.pvalue,
            f"rejected at {self.alpha:g}": "yes" if self.reject else "no",
            "effect": self.effect,
        }


def tested_survey(release: Release) -> Sample | Design:
    """Return the public facts of the release of a test; refuse paired comparisons."""
    return release.survey if getattr(release.survey, "offered", None) else release.sample


def read_test(
    distribution: Null | None,
    *,
    release: Release,
    query: Statistic | RandomBit,
    alpha: float,
    draws: int,
    simulation: Mapping[str, Any] | None,
    notes: tuple[str, ...] = (),
    **public: Any,
) -> RankTestResult:
    """Return the result of a test from its release, by post-processing.

    The null distribution is not computed again if the caller passes it. A simulated null is not
    drawn again if the caller passes the `simulation` of an archive. An observation that is
    impossible under H0 has the smallest possible p-value: 0 under an exact null and 1 / (draws + 1)
    under a simulated null, the same as a statistic beyond all draws. Such an observation has
    probability 0 under H0, so the size of the test does not change. `notes` are appended to the
    notes of the statistic on its power.
    """
    pvalue = threshold = used = None
    if isinstance(query, Statistic):
        part = release.parts[STATISTIC]
        if (part.sensitivity, part.step) != (query.sensitivity, query.step):
            raise ValueError("release must have the sensitivity of its statistic.")
        null = distribution or query.null(draws if simulation is None else 0)
        if null.draws == 0 and simulation is not None:
            pvalue, threshold, used = _simulated(release, alpha, **simulation)
        else:
            # without a public random number the p-value is P(>= statistic), as for U = -1/2
            drawn = release.parts.get(BOUNDARY)
            lot = -0.5 if drawn is None else float(drawn.values[0] * drawn.step)
            least = null.threshold(alpha, part.laplace, lot)
            used = null.draws
            threshold = None if least is None else least * part.step
            pvalue = null.pvalue(int(part.values[0]), part.laplace, lot)
            if impossible(release):
                pvalue = 0.0 if used is None else 1.0 / (used + 1)
    return RankTestResult(
        release=release,
        asked=query,
        alpha=alpha,
        pvalue=pvalue,
        threshold=threshold,
        draws=used,
        notes=(*power_notes(query, release.survey, threshold is not None), *notes),
        **public,
    )


def _simulated(
    release: Release, alpha: float, *, pvalue: Any, threshold: Any, draws: Any
) -> tuple[float, float | None, int]:
    """Return archived numbers of a simulated null; raise if they are impossible.

    No p-value is below 1 / (draws + 1), so there is a threshold if and only if 1 / (draws + 1) is
    at most alpha. The statistic reaches the threshold if and only if the p-value is at most alpha.
    """
    part = release.parts[STATISTIC]
    # tolerance for rounding of numbers that were written as text
    least = 1.0 / (check_count("draws", draws, low=19) + 1)
    lowest = least * (1.0 - 1e-9)
    room = least * 1e-9
    fine = is_number(pvalue) and lowest <= pvalue <= (least + room if impossible(release) else 1.0)
    if threshold is None:
        fine = fine and least > alpha - room
    else:
        steps = round(threshold / part.step)  # texts, infinity and NaN fail here
        fine = fine and least < alpha + room and math.isclose(threshold, steps * part.step)
        beyond = bool(part.values[0] >= steps) or bool(impossible(release))
        fine = fine and abs(steps) < 2**53 and beyond == (pvalue <= alpha)
    if not fine:
        raise ValueError("found must be of the statistic, its null draws and alpha.")
    return pvalue, threshold, draws
