"""The result of a test that compares samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from privrank.hypotheses.interval import effect_interval
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.simulatedgroups import comparison_rejects
from privrank.planning.effects import DetectableEffect, check_power, detectable_between
from privrank.release.release import DECISION, PVALUE, STATISTIC, Part
from privrank.results import tables
from privrank.results.base import Result
from privrank.results.guarantee import (
    caption,
    format_pvalue,
    noise_source,
    promise,
    seed_notes,
    spent,
    title,
    units,
)
from privrank.util.checks import check_alpha, check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ClosenessResult"]


_COMPLETED = (
    "Ties and missing ranks were completed once by a secret uniform draw; the level holds if they "
    "come about alike in all groups.",
)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class ClosenessResult(Result):
    """A private comparison of samples: a p-value or a decision, and an effect if one was paid for.

    The statistic behind the p-value stays secret: beside the p-value it would tell more than
    epsilon allows.

    Parameters
    ----------
    release : Release
        What the mechanism let out.
    alpha : float
        Significance level.
    asked : Comparison
        What was computed and released, as public numbers define it.
    secret_labels : bool
        Whether who is in which sample is protected, too.
    """

    family: ClassVar[str] = "Tests of closeness"

    asked: Comparison = field(repr=False)
    secret_labels: bool = False

    def _shape(self) -> tuple[str, ...]:
        shown = () if self.pvalue is None else (format_pvalue(self.pvalue),)
        groups = f"{len(self.release.sample.groups)} groups"
        return groups, *super(ClosenessResult, self)._shape(), *shown

    @property
    def groups(self) -> pd.Series[int]:
        """Sizes of the samples; declared lower bounds where labels are secret."""
        names, sizes = zip(*self.release.sample.groups, strict=True)
        return pd.Series(sizes, index=pd.Index(names, name="group"), name="nobs")

    @property
    def pvalue(self) -> float | None:
        """The p-value; None when a decision alone was released."""
        part = self.release.parts.get(PVALUE)
        return None if part is None else float(part.values[0] * part.step)

    @property
    def reject(self) -> bool:
        """Whether H0 is rejected at level alpha."""
        if self.pvalue is None:
            return bool(self.release.parts[DECISION].values[0])
        return self.pvalue <= self.alpha

    @property
    def _effect(self) -> Part | None:
        return self.release.parts.get(STATISTIC)

    @property
    def effect(self) -> float | None:
        """The noisy distance of the samples, not below zero; None unless an effect was released."""
        part = self._effect
        return None if part is None else max(float(part.values[0] * part.step), 0.0)

    def conf_int(self, alpha: float | None = None) -> tuple[float, float]:
        """Return a confidence interval for the distance of the two distributions.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the test.

        Returns
        -------
        low, high : float

        Raises
        ------
        ValueError
            If no effect was released, for more than two groups, or for a chi-square statistic,
            which estimates no distance.
        """
        part = self._effect
        if part is None:
            raise ValueError(
                "no effect was released: fit with effect_epsilon=... for a distance and its "
                "interval."
            )
        sample = self.release.sample
        if len(sample.groups) != 2 or self.asked.diameter is None or self.secret_labels:
            raise ValueError(
                "an interval needs two groups of public sizes and a distance, total variation or a "
                "kernel's: compare two groups with method='auto'."
            )
        level = self.alpha if alpha is None else check_alpha(alpha)
        noisy = float(part.values[0] * part.step)
        sizes, scale = [size for _, size in sample.groups], part.laplace.scale * part.step
        return effect_interval(noisy, self.asked, sizes, len(self.items), scale, level)

    def detectable_effect(self, power: float = 0.9, *, replicates: int = 200) -> DetectableEffect:
        """Return the smallest difference that this design detects, by simulation of public numbers.

        Parameters
        ----------
        power : float, default 0.9
            Probability of rejection at level `alpha` that is wanted; above `alpha`.
        replicates : int, default 200
            Simulated data sets per effect, each of which is tested with all permutations.

        Returns
        -------
        DetectableEffect
            How far the smallest group is from the others, in which everything is equally likely: of
            rankings, the Mallows model with the largest phi; of choices, half of the categories
            more likely than the others. Units have one row each.

        Raises
        ------
        ValueError
            If who is in which group is private, so that the sizes of the groups are not known.
        """
        check_power(power, self.alpha)
        check_count("replicates", replicates, low=20)
        if self.secret_labels:
            raise ValueError(
                "a detectable effect depends on the sizes of the groups, which are private here: "
                "simulate with sizes of your own and labels='public'."
            )
        release = self.release
        reject = comparison_rejects(self.asked, release.plan, release.sample, self.alpha)
        return detectable_between(reject, release.sample, self.alpha, power, replicates)

    def _interval(self) -> tuple[float, float] | None:
        try:
            return self.conf_int()
        except ValueError:
            return None

    def to_frame(self) -> pd.DataFrame:
        """Return one row with the p-value, the decision and the effect."""
        low, high = self._interval() or (None, None)
        return pd.DataFrame(
            {
                "pvalue": [self.pvalue],
                "reject": [self.reject],
                "effect": [self.effect],
                "lower": [low],
                "upper": [high],
                "epsilon": [self.epsilon],
                "delta": [self.delta],
                "nobs": [self.nobs],
            },
            index=pd.Index([f"ClosenessTest, {self.asked.name}"], name="test"),
        )

    def summary(self, details: bool = False) -> tables.Table:
        """Return the table a paper can print: groups, noise, p-value, decision, effect.

        With `details` it has the scale of the noise.
        """
        sample = self.release.sample
        rankings = sample.kind == "rankings"
        decision = "reject H0" if self.reject else "do not reject"
        columns, row = ["", "p-value", "decision"], [self.asked.name, "", decision]
        if self.pvalue is not None:
            row[1] = "<=0.0001" if self.pvalue <= 1e-4 else f"{self.pvalue:.4f}"
        if self.effect is not None:
            columns.append("effect")
            row.append(f"{self.effect:.4f}")
        interval = self._interval()
        if interval is not None:
            columns += [f"[{self.alpha / 2:.3g}", f"{1 - self.alpha / 2:.4g}]"]
            row += [f"{interval[0]:.4f}", f"{interval[1]:.4f}"]
        at_least = "at least " if self.secret_labels else ""
        sizes = ", ".join(f"{name} {at_least}{size}" for name, size in sample.groups)
        return tables.Table(
            title=title("Test of Closeness", self.release),
            header=(
                ("Items:" if rankings else "Categories:", str(len(sample.items))),
                *units(self.release),
                ("Groups:", str(len(sample.groups))),
                ("Permutations:", f"{self.release.plan.number('permutations'):.0f}"),
                ("Level:", f"{self.alpha:g}"),
                ("Mechanism:", self._mechanism()),
                *([("Noise scale:", self._scale())] if details else []),
                ("Noise source:", noise_source(self.release)),
                *spent(self.release),
            ),
            columns=tuple(columns),
            rows=(tuple(row),),
            notes=(
                f"H0: the {sample.kind} of all groups have the same distribution. H1: they have "
                f"not. "
                f"Groups: {sizes}.",
                self._verdict(),
                *self._effect_words(interval),
                *(_COMPLETED if sample.completed else ()),
                promise(self.release, self._protected()),
                *(seed_notes([self.release]) if details else []),
            ),
        )

    def _mechanism(self) -> str:
        if self.release.source == "none":
            return "permutation test"
        return {None: "smoothed p-value", "decision": "noisy decision", "bit": "sigmoid bit"}[
            self._form
        ]

    @property
    def _form(self) -> str | None:
        return None if self.asked.decision is None else self.asked.decision.form

    def _scale(self) -> str:
        if self._form == "bit":
            return "none, one bit"
        if self._form == "bit":
            return "none, one bit"
        return f"{self.release.plan.number('scale'):.4g} (sensitivity {self.asked.sensitivity:.4g})"

    def _protected(self) -> str:
        what = "rankings" if self.release.sample.kind == "rankings" else "choices"
        if self.secret_labels:
            return f"the {what} and who is in which group"
        return f"the {what}; who is in which group is taken as public"

    def _verdict(self) -> str:
        verb = "is" if self.reject else "is not"
        if self.pvalue is not None:
            noisy = " The p-value accounts for the privacy noise."
            return (
                f"H0 {verb} rejected at level {self.alpha:g}: {format_pvalue(self.pvalue)}."
                f"{noisy if self.release.source != 'none' else ''}"
            )
        if self._form == "decision":
            return (
                f"H0 {verb} rejected at level {self.alpha:g}, fixed beforehand. This method "
                f"releases the decision alone, so there is no p-value."
            )
        return (
            f"The bit says that the distributions {'differ' if self.reject else 'do not differ'}. "
            f"It is no "
            f"test of a stated level: how often it errs depends on the numbers of units and "
            f"categories."
        )

    def _effect_words(self, interval: tuple[float, float] | None) -> tuple[str, ...]:
        part = self._effect
        if part is None:
            return ()
        words = f"The effect is the {self.asked.name} of the samples with noise of its own"
        if self.release.source != "none":
            words += f", for epsilon {part.epsilon:.4g} of the total"
        if interval is None:
            return (words + ".",)
        return (
            f"{words}; with {100 * (1 - self.alpha):g} % confidence the distance of the "
            f"distributions lies "
            f"between {interval[0]:.3f} and {interval[1]:.3f}.",
        )

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the effect with its interval.

        Raises
        ------
        ValueError
            If no effect was released: of a p-value there is nothing to draw.
        """
        from privrank.results import plots

        low, high = self.conf_int()
        return plots.effect(
            self.effect or 0.0,
            (low, high),
            label=self.asked.name,
            caption=f"Closeness, {caption(self.release)}",
            level=1 - self.alpha,
            ax=ax,
        )

    def _settings(self) -> dict[str, Any]:
        return {"secret_labels": self.secret_labels}

    def _estimates(self) -> dict[str, Any]:
        return {"pvalue": self.pvalue, "reject": self.reject, "effect": self.effect}

    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], tuple[tuple[str, str], ...]]:
        facts = (
            ("p-value", "" if self.pvalue is None else f"{self.pvalue:.4f}"),
            (f"rejected at {self.alpha:g}", "yes" if self.reject else "no"),
            ("effect", "" if self.effect is None else f"{self.effect:.4f}"),
        )
        nothing = pd.Series(np.empty(0))
        return nothing, nothing, facts
