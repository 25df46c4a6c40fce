"""Plans of tests that compare groups, of rankings and of choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from privrank.closeness import ClosenessMethod, compare
from privrank.hypotheses.nullmodel import NullModel, uniform
from privrank.planning.effects import curve_between, family
from privrank.plans.closeness import FEWEST, LARGEST_GRAM, MOST, MOST_TABULATED, plan_comparison
from privrank.power.base import LARGEST, SMALLEST, Dependent, Point, Range
from privrank.power.stated import Effects, TestPower, check_work, names_of
from privrank.release.survey import Sample, SampleKind
from privrank.results.rejections import comparison_rejects
from privrank.util.checks import as_numbers, check_choice, check_count
from privrank.util.workers import Workers

__all__ = ["ClosenessPower"]

_LOOK = 99
"""Re-labellings at a first look."""

_MOST = 1_000_000
"""Units among which a number is looked for."""


@dataclass(frozen=True)
class ClosenessPower(TestPower):
    """Power of :class:`privrank.ClosenessTest`, before there are data.

    Parameters
    ----------
    items : int or sequence of str
        The items of rankings, or the categories of choices, or how many there are.
    kind : {"rankings", "choices"}
        What a respondent gives.
    shares : sequence of float, default (1, 1)
        How the respondents are divided into two or more groups, such as ``(2, 1)`` or the sizes of
        the groups; a share is relative to the others.
    method : str, default "auto"
        As for `fit`.
    permutations : int, default 999
        Re-labellings, as for `fit`.
    replicates : int, default 100
        Simulated data sets behind an answer, each of which is tested with all re-labellings.
    n_jobs : int, default 1
        Processes that simulate where it takes long; -1 for as many as there are cores. The answer
        is the same for any number.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if an argument breaks a rule.

    Notes
    -----
    **Statistic.** The power of the test as `fit` makes it: a simulated data set's probability of
    rejection over the privacy noise, given its re-labellings, averaged over data sets. The smallest
    group, the first of equal ones, differs from all others, in which everything is equally likely,
    as for ``detectable_effect()``. Labels are public, and respondents are in one group each.

    Examples
    --------
    >>> import privrank as pr
    >>> design = pr.power.ClosenessPower(items=["a", "b", "c"], kind="choices", shares=(2, 1))
    >>> power = design.power(nobs=600, total_variation=0.15, epsilon=1.0)
    >>> 0.7 < power < 0.95, power.error < 0.03
    (True, True)
    """

    items: int | Sequence[str]
    _: KW_ONLY
    kind: SampleKind = "rankings"
    shares: Sequence[float] = (1, 1)
    method: ClosenessMethod = "auto"
    permutations: int = 999
    replicates: int = 100
    n_jobs: int = 1

    def __post_init__(self) -> None:
        """Check what is fixed."""
        check_choice("kind", self.kind, SampleKind)
        check_choice("method", self.method, ClosenessMethod)
        check_count("permutations", self.permutations, low=FEWEST, high=MOST)
        check_work(self.replicates, self.n_jobs)
        shares = as_numbers(self.shares)
        if shares is None or len(shares) < 2 or not np.isfinite(shares).all() or min(shares) <= 0:
            raise ValueError(
                "shares must be two or more positive numbers, one for each group, as (2, 1)."
            )
        compare(self.method, self._sample(10 * len(shares)), 0.05)

    def sizes(self, nobs: int) -> tuple[int, ...]:
        """Return the sizes of the groups of so many respondents, at least 2 each.

        Parameters
        ----------
        nobs : int
            Number of respondents of all groups together.

        Returns
        -------
        tuple of int
        """
        check_count("nobs", nobs, low=2)
        shares = np.asarray(self.shares, dtype=np.float64)
        # where the ends of the groups are, to the next whole number
        ends = np.rint(nobs * np.cumsum(shares) / shares.sum()).astype(np.int64)
        found = np.diff(ends, prepend=0)
        if found.min() < 2:
            raise ValueError(
                f"nobs must leave at least 2 respondents for each group, and {nobs} in shares "
                f"{tuple(self.shares)} do not."
            )
        return tuple(found.tolist())

    def _sample(self, nobs: int) -> Sample:
        named = tuple((f"group {k}", size) for k, size in enumerate(self.sizes(nobs), 1))
        return Sample(self.kind, names_of(self.items), nobs, "row", 1, groups=named)

    @property
    def _test(self) -> _Groups:
        return _Groups(self)

    @property
    def _caption(self) -> str:
        return f"Comparison of {len(self.shares)} groups"


@dataclass(frozen=True, slots=True)
class _Groups:
    """What the plan of a comparison knows of it."""

    design: ClosenessPower

    @property
    def effects(self) -> Effects:
        """How effects are stated: those of one group from the uniform distribution."""
        kind, names = self.design.kind, names_of(self.design.items)
        null = NullModel(uniform(len(names)) if kind == "choices" else ())
        _, _, most = family(Sample(kind, names, 2, "row", 1), null)
        return Effects(kind, len(names), null, most)

    def measure(
        self, at: Point, replicates: int, workers: Workers, *, look: bool
    ) -> tuple[float, float]:
        """Return the power and its error; a first `look` takes few re-labellings, too."""
        design = self.design
        sample = design._sample(at.nobs)
        asked = compare(design.method, sample, at.alpha)
        plan = plan_comparison(
            sample,
            asked,
            at.epsilon,
            at.delta,
            method=design.method,
            effect_epsilon=None,
            details_epsilon=None,
            details_items=(),
            alpha=at.alpha,
            permutations=min(design.permutations, _LOOK) if look else design.permutations,
        )
        curve, *_ = curve_between(comparison_rejects(asked, plan, sample, at.alpha), sample)
        return curve.at(at.effect, replicates, workers)

    def range(self, name: Dependent, at: Point) -> Range:
        """Return where a number is looked for."""
        if name == "epsilon":
            return Range(1.0, SMALLEST, LARGEST)
        design, effects = self.design, self.effects
        shares, m = np.asarray(design.shares, dtype=np.float64), effects.items
        small = float(shares.min() / shares.sum())
        if name == "effect":
            alone = replace(design._sample(at.nobs), nobs=min(design.sizes(at.nobs)), groups=())
            _, start, most = family(alone, effects.null)
            return Range(start, 2.0**-20 * start, most)
        if at.effect == 0:
            raise ValueError(
                f"{effects.words} {effects.shown(0.0):g} is H0 itself: state an effect that there "
                f"is to find."
            )
        tabulated = design.kind == "choices" or m <= MOST_TABULATED
        most = float(_MOST if tabulated else LARGEST_GRAM)
        size = 0.5 * m**0.5 if design.kind == "choices" else 2.0 / m**1.5
        least = math.ceil(3.0 / small)
        start = 4.0 * (size / at.effect) ** 2 / small + 4.0 / (at.epsilon * small)
        return Range(min(max(start, float(least)), most), float(least), most)
