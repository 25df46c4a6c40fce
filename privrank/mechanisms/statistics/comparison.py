"""What each method of a test of closeness computes and releases, from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privrank.encode.groups import SECRET_LABELS
from privrank.mechanisms.statistics.gram import DIAMETER, RankKernel
from privrank.mechanisms.statistics.permutation import chi_square_reach, mean_reach
from privrank.release.survey import Sample

__all__ = ["ClosenessMethod", "Comparison", "compare", "effect_interval"]

ClosenessMethod = Literal["auto", "tv", "mmd", "kendall", "chi-square", "kim-schrab", "sigmoid"]
Form = Literal["pvalue", "decision", "bit"]

_NAMES = {
    "tv": "total variation distance",
    "chi-square": "chi-square",
    "mmd": "kernel distance (MMD)",
    "kendall": "Kendall kernel distance",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statistic of two or more samples, its reach, and what is released of it.

    Parameters
    ----------
    name : str
        As a summary prints it.
    statistic : str
        ``"tv"``, ``"chi-square"``, ``"mmd"`` or ``"kendall"``.
    kernel : str or None
        Kernel of rankings.
    reach : float
        Largest change when one unit is replaced, at every re-labelling.
    form : {"pvalue", "decision", "bit"}
        The smoothed p-value, the decision of Kim and Schrab, or a sigmoid bit.
    offset : float
        What a sigmoid bit compares the statistic with.
    """

    name: str
    statistic: str
    kernel: RankKernel | None
    reach: float
    form: Form
    offset: float = 0.0


def compare(method: str, sample: Sample, *, private_labels: bool = False) -> Comparison:
    """Return what `method` computes and releases of such samples.

    Parameters
    ----------
    method : str
        One of :data:`ClosenessMethod`.
    sample : Sample
        Public facts, with group sizes; declared lower bounds where labels are secret.
    private_labels : bool
        Whether neighbours may also change a unit's group.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        In one sentence, where the method does not apply.

    Notes
    -----
    **Privacy.** Public labels: see :mod:`privrank.mechanisms.statistics.permutation`. Secret
    labels, two samples and total variation: let a be the size of the sample that is left and b that
    of the other. Taking a unit out moves the one's frequencies by at most 1 / a (half the l1 norm
    of (p - e) / (a - 1) is at most (1 - 1 / a) / (a - 1)), putting it in the other's by at most 1 /
    (b + 1). The labels of neighbours are permuted alike but for one place, so a re-labelled
    statistic moves by that much for the label and by 1 / min more for the replaced value: at most 2
    / m + 1 / (M + 1) for m and M no larger than the sizes of the smaller and the larger sample.
    """
    choices = sample.kind == "choices"
    known = ("auto", "tv", "chi-square", "kim-schrab", "sigmoid") if choices else (
        "auto", "mmd", "kendall", "kim-schrab"
    )  # fmt: skip
    if method not in known:
        raise ValueError(
            f"method must be one of {', '.join(map(repr, known))} for {sample.kind}, "
            f"got {method!r}."
        )
    sizes = np.array([size for _, size in sample.groups])
    if private_labels:
        if not (choices and method in ("auto", "tv") and len(sizes) == 2):
            raise ValueError(SECRET_LABELS)
        smaller, larger = int(sizes.min()), int(sizes.max())
        reach = 2.0 / smaller + 1.0 / (larger + 1)
        return Comparison(_NAMES["tv"], "tv", None, reach, "pvalue")
    if method in ("chi-square", "sigmoid"):
        if sample.unit == "respondent" and sample.max_rows > 1:
            raise ValueError(
                f"method={method!r} takes one row per respondent: use method='tv' for several."
            )
        reach = chi_square_reach(sizes)
        if method == "chi-square":
            return Comparison(_NAMES["chi-square"], "chi-square", None, reach, "pvalue")
        if len(sizes) != 2 or sizes[0] != sizes[1]:
            raise ValueError(
                "method='sigmoid' compares two samples of the same size: use method='auto'."
            )
        # the mean of the statistic under equality is below the number of categories
        n, k = int(sizes[0]), len(sample.items)
        offset = min(k, 2 * n) + 2.0 * math.sqrt(2.0 * min(k, 2 * n))
        return Comparison("sigmoid bit of chi-square", "chi-square", None, reach, "bit", offset)
    form: Form = "decision" if method == "kim-schrab" else "pvalue"
    if choices:
        suffix = ", decision" if form == "decision" else ""
        return Comparison(_NAMES["tv"] + suffix, "tv", None, mean_reach(sizes, 1.0), form)
    statistic = "kendall" if method == "kendall" else "mmd"
    kernel: RankKernel = "kendall" if method == "kendall" else "mallows"
    name = _NAMES[statistic] + (", decision" if form == "decision" else "")
    return Comparison(name, statistic, kernel, mean_reach(sizes, DIAMETER[kernel]), form)


def effect_interval(
    effect: float, asked: Comparison, sample: Sample, scale: float, alpha: float
) -> tuple[float, float]:
    """Return a 1 - alpha confidence interval for the distance of two laws, from a noisy one.

    Parameters
    ----------
    effect : float
        The released distance.
    asked : Comparison
        Its statistic: total variation or a kernel distance.
    sample : Sample
        Public facts, with two groups.
    scale : float
        Laplace scale of its noise.
    alpha : float
        Probability that the interval may miss.

    Notes
    -----
    With b = alpha / 4 for each of two events on each side. The noise exceeds scale log(1 / 2b) with
    probability b. Replacing a unit of sample g moves the statistic T by at most diam / n_g, so by
    McDiarmid's inequality T differs from its mean by more than
    diam sqrt(log(1 / b) (1 / n_1 + 1 / n_2) / 2) with probability b, either way. The mean is at
    least the distance itself (a norm is convex), which gives the upper end. For the lower one, a
    kernel distance has E T^2 <= MMD^2 + 1 / n_1 + 1 / n_2 for a kernel that is 1 on its diagonal,
    and a total variation distance has E T <= TV + sqrt((k - 1) (1 / n_1 + 1 / n_2)) / 2.
    """
    spread = sum(1.0 / size for _, size in sample.groups)
    b = alpha / 4.0
    smallest = min(size for _, size in sample.groups)
    diameter = asked.reach * smallest
    margin = diameter * math.sqrt(math.log(1.0 / b) * spread / 2.0)
    margin += scale * math.log(1.0 / (2.0 * b))
    high = max(effect + margin, 0.0)
    low = max(effect - margin, 0.0)
    if asked.kernel is None:
        return max(low - 0.5 * math.sqrt((len(sample.items) - 1) * spread), 0.0), min(high, 1.0)
    return math.sqrt(max(low * low - spread, 0.0)), min(high, DIAMETER[asked.kernel])
