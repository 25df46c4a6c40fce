"""The result of a test of closeness of samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtri

from privrank.hypotheses.effects import (
    DetectableEffect,
    RejectionProbability,
    check_power,
    detectable_between,
)
from privrank.hypotheses.interval import (
    THRESHOLD_LEVEL,
    Contrast,
    contrasts,
    half_widths,
    zero_rule,
)
from privrank.hypotheses.noisytables import NoisyTable
from privrank.plans.samples import DISTANCES, RELEASED_STEPS, Comparison
from privrank.privacy.knorm import PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.compared import compared_groups, questionnaires_by_group
from privrank.release.names import DECISION, DETAILS, PVALUE, STATISTIC
from privrank.release.survey import Design, Plan, Sample
from privrank.results import guarantee, plots, tables
from privrank.results.base import Result, cached_result
from privrank.results.claims import STATEMENTS, assumed, percent, said
from privrank.results.testnotes import (
    DECISIONS,
    NO_EFFECT_OF_SETS,
    interval_text,
    is_beside_null,
    power_notes,
    verdict,
)
from privrank.util.arrays import immutable
from privrank.util.checks import check_count

Simulation = Callable[[Comparison, Plan, Sample, float], RejectionProbability]

_REST = "the others"

# Message about the size of differences in choices from offered sets.
_NO_SIZES = (
    "no effect and no totals are released for choices from offered sets. Use "
    "PrivateBTL.from_formula for differences of worths."
)

# Upper end of the interval of a distance that contains no positive distance.
_LEAST = 0.0005

# Maximum number of clear differences that a summary lists.
_MAX_WORDS = 4


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class ClosenessResult(Result):
    """Results of a private test of closeness.

    A permutation test releases its p-value. The statistic behind it is not released: both numbers
    together would use more than epsilon. A test by a table of counts releases the noisy table, from
    which the p-value, the shares and all differences follow.

    Parameters
    ----------
    release : Release
        The output of the private mechanism.
    alpha : float
        Significance level.
    asked : Comparison
        Definition of the released numbers by public numbers.
    simulation : callable
        Function of the comparison, its plan, the public facts and a level. It returns the function
        that maps simulated data to their probability of rejection, for :meth:`detectable_effect`.

    See Also
    --------
    privrank.ClosenessTest : The test.
    privrank.power.ClosenessPower : Power of a planned test.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import privrank as pr
    >>> answers = pd.DataFrame({"drink": 60 * ["tea", "tea", "milk"] + 40 * ["tea", "milk", "milk"],
    ...                         "town": 180 * ["north"] + 120 * ["south"]})
    >>> test = pr.ClosenessTest.from_formula("drink ~ town", answers, categories=["tea", "milk"],
    ...                                      levels=["north", "south"])
    >>> result = test.fit(epsilon=1.0, rng=np.random.default_rng(1))
    >>> round(result.pvalue, 4), result.reject
    (0.001, True)
    """

    family: ClassVar[str] = "Tests of closeness"

    asked: Comparison = field(repr=False)
    simulation: Simulation = field(repr=False)

    @property
    def _sample(self) -> Sample:
        """Public facts of the groups."""
        return compared_groups(self.release.survey)

    def _shape(self) -> tuple[str, ...]:
        shown = () if self.pvalue is None else (tables.format_pvalue(self.pvalue),)
        return (
            f"{len(self._sample.groups)} groups",
            *super(ClosenessResult, self)._shape(),
            *shown,
        )

    @property
    def groups(self) -> pd.Series[int]:
        """Sizes of the samples; missing if group membership is private.

        Examples
        --------
        >>> result.groups.to_dict()
        {'north': 180, 'south': 120}
        """
        sample = self._sample
        names, sizes = zip(*sample.groups, strict=True)
        return pd.Series(
            sizes,
            index=pd.Index(names, name="group"),
            name="nobs",
            dtype="Int64" if sample.private_labels else "int64",
        )

    @property
    def pvalue(self) -> float | None:
        """The p-value; None when one random bit was released.

        Examples
        --------
        >>> round(result.pvalue, 4)
        0.001
        """
        if self.asked.form == "table":
            return self._ranked()
        part = self.release.parts.get(PVALUE)
        return None if part is None else float(part.values[0] * part.step)

    @cached_result
    def _ranked(self) -> float:
        return self._noisy_table().pvalue(int(self.release.plan.number("permutations")))

    def _noisy_table(self) -> NoisyTable:
        """Return the released table of counts by group and category."""
        parts = [self.release.parts[f"{DETAILS} {g}"] for g in range(len(self.groups))]
        noise = parts[0].distribution
        assert isinstance(noise, ZeroSumLaplace)
        return NoisyTable(np.array([part.values for part in parts]), noise)

    @property
    def reject(self) -> bool:
        """Whether H0 is rejected at level alpha.

        Examples
        --------
        >>> result.reject
        True
        """
        if self.pvalue is not None:
            return self.pvalue <= self.alpha
        return bool(self.release.parts[DECISION].values[0])

    @property
    def _has_distance(self) -> bool:
        """Whether the release has a distance of two groups with an interval."""
        if self.asked.form == "table":
            return len(self.groups) == 2
        return STATISTIC in self.release.parts and self.asked.distance is not None

    @property
    def _numbers_released(self) -> tuple[float, float | None]:
        """The noisy distance and the number released with it, in their own unit."""
        part = self.release.parts.get(STATISTIC)
        if part is None:
            raise self._lacking(
                "no effect was released: fit two groups with method='table' or effect_epsilon=... "
                "for a distance and its interval."
            )
        first, *more = (part.values * part.step).tolist()
        return first, more[0] if more else None

    @property
    def effect(self) -> float | None:
        """Noisy distance of the samples, at least 0; None if it was not released.

        See Also
        --------
        privrank.ClosenessResult.corrected_effect : The distance corrected for sampling error.
        privrank.ClosenessResult.conf_int : A confidence interval for the distance.

        Examples
        --------
        >>> round(result.effect, 2)
        0.36
        """
        if self.asked.form == "table":
            return self._noisy_table().distance if self._has_distance else None
        return max(self._numbers_released[0], 0.0) if STATISTIC in self.release.parts else None

    @property
    def corrected_effect(self) -> float | None:
        """Noisy distance of the samples, corrected for sampling error.

        For total variation, the correction is the average contribution of sampling when all
        categories differ; if only one of many categories differs, it removes a part of the
        contribution. For a kernel distance, the correction is the largest possible contribution of
        sampling. None unless an effect was released and the null hypothesis is that the distance is
        0.

        Examples
        --------
        >>> tested = test.fit(epsilon=1.0, method="tv", effect_epsilon=1.0,
        ...                   rng=np.random.default_rng(1))
        >>> round(tested.corrected_effect, 2)
        0.33
        """
        if STATISTIC not in self.release.parts or self.asked.distance is None:
            return None
        noisy, second = self._numbers_released
        return None if second is None else self.asked.distance.corrected(noisy, second)

    def _lacking(self, message: str) -> ValueError:
        """Return the error for numbers that were not released; choices from sets have none."""
        return ValueError(_NO_SIZES if isinstance(self.release.survey, Design) else message)

    def conf_int(self, alpha: float | None = None) -> tuple[float, float]:
        """Return a confidence interval for the distance of the two distributions.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the test.

        Returns
        -------
        low, high : float
            Limits of the interval. For all statistics except Kendall's, the interval contains 0 if
            and only if the test at level `alpha` does not reject. If the lower end is 0 but
            excluded, `low` is the smallest positive number.

        Raises
        ------
        ValueError
            If no effect was released, or for a chi-square statistic, which estimates no distance.

        Examples
        --------
        >>> low, high = result.conf_int()
        >>> round(low, 2), round(high, 2)
        (0.23, 0.47)
        """
        level = self._level(alpha)
        if self.asked.form == "table" and self._has_distance:
            return zero_rule(
                self._distance_ends(level), rejected=self._ranked() <= level, step=_LEAST
            )
        noisy, second = self._numbers_released
        part = self.release.parts[STATISTIC]
        distance = self.asked.distance
        if distance is None:
            raise ValueError(
                "chi-square estimates no distance, so it has no interval: use method='tv'."
            )
        assert self.pvalue is not None  # no distance is released with a bit
        # the second number bounds the contribution of sampling, at a level of its own
        if level < float(self.release.plan.settings.get(THRESHOLD_LEVEL, 0.0)):
            second = None
        low, high = distance.ends(noisy, second, part.laplace.scale * part.step, level)
        # released numbers are rounded down to a lattice
        interval = max(low - part.step, 0.0), min(high + part.step, distance.diameter)
        if distance.exact:
            return zero_rule(interval, rejected=self.pvalue <= level, step=part.step)
        return interval[0], max(interval)

    @cached_result
    def _distance_ends(self, level: float) -> tuple[float, float]:
        return self._noisy_table().distance_ends(level)

    def detectable_effect(self, power: float = 0.9, *, replicates: int = 200) -> DetectableEffect:
        """Return the smallest difference that this design detects, by simulation.

        The simulation uses public numbers only.

        Parameters
        ----------
        power : float, default 0.9
            Required power at level `alpha`; above `alpha`.
        replicates : int, default 200
            Simulated data sets per effect, each of which is tested with all permutations.

        Returns
        -------
        DetectableEffect
            Distance of the smallest group from the others, in which all answers are equally likely.
            For rankings, the smallest group follows the Mallows model with the largest detectable
            phi. For choices, half of its categories are more likely than the others.

        Raises
        ------
        ValueError
            If the samples are paired, or group membership is private and the sizes of the groups
            are therefore unknown. Also for choices from offered sets.

        Examples
        --------
        >>> effect = result.detectable_effect(power=0.8, replicates=20)
        >>> bool(0.1 < effect.total_variation < 0.4)
        True
        """
        power = check_power(power, self.alpha)
        check_count("replicates", replicates, low=20)
        if isinstance(self.release.survey, Design):
            raise ValueError(NO_EFFECT_OF_SETS)
        sample = self._sample
        if sample.private_labels or sample.paired:
            raise ValueError(
                "a detectable effect needs groups whose sizes are public, and no pairs: simulate "
                "with sizes, or pairs, of your own."
            )
        return detectable_between(
            self.simulation(self.asked, self.release.plan, sample, self.alpha),
            sample,
            self.alpha,
            power,
            replicates,
        )

    def details(self, alpha: float | None = None) -> pd.DataFrame:
        """Return the differences by item or category, with simultaneous intervals.

        Parameters
        ----------
        alpha : float, optional
            One minus the simultaneous confidence level; by default the level of the test.

        Returns
        -------
        DataFrame
            One row for each item and comparison. Each two groups are compared and, if there are
            more than two, each group with all others together. The columns are ``item``, ``group``,
            ``other``, ``difference`` (share or mean rank of the group minus share or mean rank of
            the other), ``lower``, ``upper``, and ``clear``, whether the interval excludes 0. If a
            difference of mean ranks is negative, the group ranks the item higher.

        Raises
        ------
        ValueError
            If no totals by group were released.

        Notes
        -----
        **Statistic.** The probability that any interval fails to cover is at most alpha, whether or
        not the test rejects. Clear differences may therefore be reported with or without a
        rejection (:func:`privrank.hypotheses.interval.half_widths`). If test and differences are
        computed from one table of counts, a difference is called clear only if the test rejects.

        Examples
        --------
        >>> result.details()[["item", "group", "other", "difference", "clear"]].round(2)
           item  group  other  difference  clear
        0   tea  north  south        0.36   True
        1  milk  north  south       -0.36   True
        """
        if f"{DETAILS} 0" not in self.release.parts:
            raise self._lacking(
                "no totals by group were released: fit with details_epsilon=... for what differs."
            )
        level = self._level(alpha)
        frame = self._compared(contrasts(len(self.groups)), level)
        clear = (frame["lower"] > 0) | (frame["upper"] < 0)
        if self.asked.form == "table":
            clear &= self._ranked() <= level
        return frame.assign(clear=clear)

    def _compared(self, compared: Sequence[Contrast], level: float) -> pd.DataFrame:
        """Return contrasts of mean scores by item, with simultaneous intervals."""
        sample = self._sample
        items = list(sample.items)
        # scores lie between 0 and 1: mean ranks are 1 plus (m - 1) times mean scores
        largest = len(items) - 1.0 if sample.kind == "rankings" else 1.0
        parts = [self.release.parts[f"{DETAILS} {g}"] for g in range(len(sample.groups))]
        distribution = parts[0].distribution
        step = parts[0].step / largest
        assert isinstance(distribution, DiscreteLaplace | ZeroSumLaplace | PermutohedronNoise)
        totals = np.array([part.values for part in parts]) * step
        sizes = np.array(sample.sizes, dtype=np.float64)
        mean = np.array([contrast.weights(sizes) @ totals for contrast in compared])
        width = half_widths(totals, sizes, distribution, step, level, compared)
        # intervals of single means have Wilson's centres; differences have no such skewness
        added = float(ndtri(0.5 * level / mean.size)) ** 2
        number = np.array([[math.inf if c.second else sizes[c.first[0]]] for c in compared])
        centre = mean + added / (added + number) * (0.5 - mean)
        # mean scores are between 0 and 1, and their differences between -1 and 1
        least = [[-1.0 if contrast.second else 0.0] for contrast in compared]
        mean, low, high = largest * np.clip([mean, centre - width, centre + width], least, 1.0)
        names = [*self.groups.index, _REST]
        others = [c.second[0] if len(c.second) == 1 else -1 for c in compared]
        return pd.DataFrame(
            {
                "item": items * len(compared),
                "group": np.repeat([names[c.first[0]] for c in compared], len(items)),
                "other": np.repeat([names[other] for other in others], len(items)),
                "difference": mean.ravel(),
                "lower": low.ravel(),
                "upper": high.ravel(),
            }
        )

    def shares(self, alpha: float | None = None) -> pd.DataFrame:
        """Return the shares of the categories by group, with simultaneous intervals.

        Parameters
        ----------
        alpha : float, optional
            One minus the simultaneous confidence level; by default the level of the test.

        Returns
        -------
        DataFrame
            One row for each group and category. The columns are ``item``, ``group``, ``share``
            (noisy count divided by the size of the group, cut to 0 to 1), ``lower`` and ``upper``.

        Raises
        ------
        ValueError
            If no table of counts was released.

        Examples
        --------
        >>> result.shares().round(2)
           item  group  share  lower  upper
        0   tea  north   0.67   0.58   0.76
        1  milk  north   0.33   0.24   0.42
        2   tea  south   0.32   0.21   0.44
        3  milk  south   0.68   0.56   0.79
        """
        sample = self._sample
        if sample.kind == "rankings" or f"{DETAILS} 0" not in self.release.parts:
            raise self._lacking(
                "no shares were released: fit choices with method='table' or details_epsilon=..."
            )
        single = [Contrast((g,)) for g in range(len(sample.groups))]
        return (
            self._compared(single, self._level(alpha))
            .drop(columns="other")
            .rename(columns={"difference": "share"})
        )

    @cached_result
    def _details(self) -> pd.DataFrame | None:
        return self.details() if f"{DETAILS} 0" in self.release.parts else None

    def plot_details(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the intervals of :meth:`details`, if totals were released.

        Examples
        --------
        >>> result.plot_details().axes[0].get_title()
        'north vs. south (epsilon = 1 per row)'
        """
        return plots.differences(
            self.details(),
            self._sample.kind,
            self.alpha,
            guarantee.caption(self.release),
            seeded=self.release.source == "seeded",
            ax=ax,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row with the p-value, decision, effect and clear differences.

        Examples
        --------
        >>> result.to_frame()[["pvalue", "reject", "effect", "clear"]].round(3)
                                        pvalue  reject  effect  clear
        test
        ClosenessTest, table of counts   0.001    True   0.356      2
        """
        low, high = self.conf_int() if self._has_distance else (None, None)
        details = self._details()
        return self._row(
            f"ClosenessTest, {self.asked.name}",
            ("pvalue", "reject", "effect"),
            corrected=self.corrected_effect,
            lower=low,
            upper=high,
            clear=None if details is None else int(details["clear"].sum()),
        )

    def _table(self, details: bool) -> tables.Table:
        release = self.release
        sample = self._sample
        # the proof of a smoothed p-value has one step in real numbers, which a note states
        permutations = release.plan.number("permutations")
        # the smallest p-value of a clear difference, rounded up like all p-values
        least = max(1, math.ceil(RELEASED_STEPS / (permutations + 1.0)))
        reached = least <= self.alpha * RELEASED_STEPS * (1.0 + 1e-12)
        attainable = reached and self.alpha * (permutations + 1.0) > 1.0
        frame = (
            self.to_frame()
            .assign(pvalue=self.pvalue)
            .dropna(axis="columns")
            .set_axis([self.asked.name])
        )
        columns = {
            "pvalue": tables.Column("p-value", tables.pvalue_cell),
            "reject": DECISIONS,
            "effect": tables.Column("effect", "{:z.4f}".format),
            "corrected": tables.Column("corrected", "{:z.4f}".format),
            **tables.interval_columns(
                self.alpha, lambda value: ">0" if 0 < value < 5e-5 else f"{value:.4f}"
            ),
        }
        facts: list[tuple[str, str]] = []
        if self.asked.form == "table":
            attainable = self.alpha * (permutations + 1.0) >= 3.0
            facts = [
                ("P-value:", tables.pvalue_cell(self._ranked())),
                ("Decision:", DECISIONS.printed(self.reject)),
            ]
            if self._has_distance:
                facts += [("Distance:", f"{self.effect:.3f} {interval_text(*self.conf_int())}")]
            frame, columns = self._shares_by_group()
        return tables.laid_out(
            frame,
            columns,
            title=guarantee.title("Test of Closeness", release),
            header=guarantee.header(
                release,
                ("Groups:", str(len(sample.groups))),
                ("Null tables:" if facts else "Permutations:", f"{permutations:,.0f}"),
                (
                    "Significance level:",
                    "none stated" if self.pvalue is None else f"{self.alpha:g}",
                ),
                *facts,
                *guarantee.offered_lines(release),
                noise=self._noise(details),
                details=details,
            ),
            notes=tables.Notes(
                estimates=[
                    *self._effect_notes(),
                    *_detail_notes(self),
                ],
                tests=[
                    *_hypotheses_of(self),
                    *self._verdict(),
                    *power_notes(self.asked, sample, attainable),
                    *said("completed groups", sample.completed),
                    *said(
                        "null tables" if release.source == "none" else "null tables, released",
                        self.asked.form == "table",
                    ),
                ],
                assumptions=assumed(guarantee.assumptions(release)),
                privacy=[
                    *guarantee.sample_privacy(release),
                    *said("idealised step", PVALUE in release.parts and release.source != "none"),
                ],
            ),
            cautions=self._cautions(),
        )

    def _shares_by_group(self) -> tuple[pd.DataFrame, dict[str, tables.Column]]:
        """Return percentages by group, and the difference of two groups with its interval."""
        shares = self.shares().pivot(index="item", columns="group", values="share")
        frame = 100.0 * shares.loc[list(self._sample.items), list(self.groups.index)]
        columns = {str(name): tables.Column(f"{name} %", "{:z.1f}".format) for name in frame}
        if len(self.groups) == 2:
            more = self.details().set_index("item")[["difference", "lower", "upper"]]
            frame = frame.join(100.0 * more.rename(columns=" {}".format))
            columns[" difference"] = tables.Column("difference", "{:z.1f}".format)
            limits = tables.interval_columns(self.alpha, "{:z.1f}".format)
            columns |= {f" {name}": column for name, column in limits.items()}
        return frame, columns

    def _noise(self, details: bool) -> guarantee.NoiseWords:
        if self.asked.decision is not None:
            return guarantee.NoiseWords("random bit", "", "none (one bit)")
        if self.asked.form == "table":
            return guarantee.NoiseWords(
                "zero-sum Laplace noise",
                self.asked.name if details else "",
                f"{self._noisy_table().noise.scale:.4g} (sensitivity {self.asked.sensitivity:.4g})",
            )
        named = "p-value" if self.release.source == "none" else "smoothed p-value"
        return guarantee.NoiseWords(
            "Laplace noise",
            named if details else "",
            f"{self.release.plan.number('scale'):.4g} (sensitivity {self.asked.sensitivity:.4g})",
        )

    def _verdict(self) -> list[str]:
        if self.asked.decision is not None:
            return [
                *said("bit differs" if self.reject else "bit does not differ"),
                *said("decision alone"),
                *said("bit"),
            ]
        if self._sample.paired:
            return verdict(self, "no evidence, pairs")
        private = self._sample.private_labels
        return verdict(self, "no evidence, private labels" if private else "no evidence")

    def _effect_notes(self) -> list[str]:
        """Return notes on the released effect and its interval."""
        if self.asked.form == "table":
            return said("distance of shares", self._has_distance, level=percent(1.0 - self.alpha))
        part = self.release.parts.get(STATISTIC)
        if part is None:
            return []
        distance = self.asked.distance
        name = "chi-square statistic" if distance is None else DISTANCES[self.asked.statistic]
        notes = said(
            "effect" if self.release.source == "none" else "effect, released",
            distance=name,
            epsilon=part.epsilon,
        )
        if distance is None:
            return notes
        return [
            *notes,
            *said(
                "interval of the effect",
                level=percent(1.0 - self.alpha),
                interval=interval_text(
                    *self.conf_int(), least=part.step if distance.exact else 0.0
                ),
            ),
            *said("exact interval", distance.exact),
        ]

    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the effect with its interval.

        Raises
        ------
        ValueError
            If no effect was released.

        Examples
        --------
        >>> result.plot().axes[0].get_title()
        'Distance between groups (epsilon = 1 per row)'
        """
        low, high = self.conf_int()
        return plots.effect(
            pd.DataFrame({"effect": self.effect, "lower": low, "upper": high}, [""]),
            f"{self.asked.name} ({100 * (1 - self.alpha):g}% interval)",
            f"Distance between groups ({guarantee.caption(self.release)})",
            seeded=self.release.source == "seeded",
            ax=ax,
        )

    def _estimates(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "pvalue": self.pvalue,
            "reject": self.reject,
            "effect": self.effect,
        }
        if (details := self._details()) is not None:
            shown["details"] = details[details["clear"]].to_dict("records")
        return shown

    def _lines(self) -> dict[str, Any]:
        return {
            "p-value": self.pvalue,
            f"rejected at {self.alpha:g}": "yes" if self.reject else "no",
            "effect": self.effect,
        }


def null_in_words(result: ClosenessResult) -> str:
    """Return the null hypothesis of a comparison of samples."""
    sample = result._sample
    if isinstance(result.release.survey, Design):
        return "respondents with the same offered sets answer alike in all groups"
    if sample.paired:
        return f"the two {sample.kind} of a respondent are exchangeable"
    return f"the {sample.kind} of all groups have the same distribution"


def _hypotheses_of(result: ClosenessResult) -> list[str]:
    """Return notes on H0, H1 and the groups of a comparison of samples."""
    sample = result._sample
    survey = result.release.survey
    alike = questionnaires_by_group(survey)[2].sum() if isinstance(survey, Design) else 0
    listed = [name if size is None else f"{name} (n = {size:,})" for name, size in sample.groups]
    # a column named "group" says no more than the word
    column = "" if sample.group_column == "group" else sample.group_column
    (_, own), *_, (_, behind) = sample.groups
    return [
        *said("exchangeable" if sample.paired else "same distribution", null=null_in_words(result)),
        *said(
            "compared by column" if column else "compared", column=column, groups=", ".join(listed)
        ),
        *said("same questionnaire", alike, alike=alike, nobs=sample.nobs),
        *said(
            "answers behind the null",
            is_beside_null(sample),
            nobs=sample.nobs,
            unit=sample.unit,
            own=own,
            behind=behind,
        ),
    ]


def _detail_notes(result: ClosenessResult) -> list[str]:
    """Return notes with the clearest differences and the number of clear ones."""
    frame = result._details()
    if frame is None:
        return []
    clear = frame[frame["clear"]]
    stated = clear_words(result._sample, clear, _MAX_WORDS)
    left = len(clear) - len(stated)
    keys = ("differences", "differences, released")
    if result.asked.form == "table":
        keys = ("shares by group", "shares by group, released")
    return [
        *said(
            keys[0] if result.release.source == "none" else keys[1],
            measure="mean ranks" if result._sample.kind == "rankings" else "shares",
            epsilon=result.release.parts[f"{DETAILS} 0"].epsilon,
            count=len(frame),
            level=percent(1.0 - result.alpha),
        ),
        *said("no clear difference", clear.empty),
        *(f"{statement}." for statement in stated),
        *said("one more difference", left == 1),
        *said("more differences", left > 1, left=left),
    ]


def clear_words(sample: Sample, clear: pd.DataFrame, most: int) -> list[str]:
    """Return the clearest differences in words, at most `most` of them."""
    # the clearest first: the largest relative to the half width of its interval
    half = 0.5 * (clear["upper"] - clear["lower"])
    order = (clear["difference"].abs() / half).sort_values(ascending=False, kind="stable").index
    column = sample.group_column or "group"
    factor = 100.0 if sample.kind == "choices" else 1.0
    words = []

    def named(group: str) -> str:
        return group if group.startswith((f"{column} ", _REST)) else f"{column} {group}"

    rows: Any = clear.loc[order].head(most).itertuples()
    for row in rows:
        first = named(str(row.group))
        low, high = sorted((factor * abs(row.lower), factor * abs(row.upper)))
        # a lower mean rank is better
        words.append(
            STATEMENTS[sample.kind, bool(row.difference > 0)].format(
                group=first[:1].upper() + first[1:],
                item=row.item,
                other=named(str(row.other)),
                size=factor * abs(row.difference),
                low=low,
                high=high,
            )
        )
    return words
