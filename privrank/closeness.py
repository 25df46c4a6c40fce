"""Private tests of closeness: whether two or more samples come from the same distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from privrank.encode.groups import (
    SECRET_LABELS,
    EncodedGroups,
    encode_count_tables,
    encode_samples,
    groups_of_formula,
)
from privrank.encode.ranks import Gaps, Ties
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.closeness import plan_comparison, release_comparison
from privrank.mechanisms.statistics.gram import DIAMETER
from privrank.mechanisms.statistics.permutation import (
    chi_square_sensitivity,
    mean_sensitivity,
    secret_label_sensitivity,
)
from privrank.published import asz18, ks23
from privrank.release.release import Release, check_release
from privrank.release.survey import Sample
from privrank.results.closeness import ClosenessResult
from privrank.results.ledger import Budget
from privrank.util.checks import (
    check_alpha,
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    check_rng,
    warn_few,
)

__all__ = ["ClosenessMethod", "ClosenessTest", "Labels", "compare", "infer"]

ClosenessMethod = Literal["auto", "tv", "mmd", "kendall", "chi-square", "kim-schrab", "sigmoid"]
Labels = Literal["public", "private"]

_CHOICES = ("auto", "tv", "chi-square", "kim-schrab", "sigmoid")
_RANKINGS = ("auto", "mmd", "kendall", "kim-schrab")


class ClosenessTest:
    """Test whether the rankings, or the choices, of two or more groups have the same distribution.

    Do women and men rank alike? Has last year's order changed?

    Parameters
    ----------
    sample1, sample2 : data frames, arrays of ranks, or categorical Series
        Two samples of rankings, as for :class:`privrank.UniformityTest`, or of choices. For more
        than two groups, or one frame with a column of groups, see `from_formula`.
    items : sequence of str, optional
        The item columns; of Series the categories.
    respondent : str, optional
        Column, or pandas index level, that names the respondent of each row. A respondent with
        several rows enters with the mean of what they say, and belongs to one group.
    max_rows : int, default 1
        Public bound on the rows of a respondent.
    ties, missing : str, default "refuse"
        As for :class:`privrank.UniformityTest`, but orders and places are drawn uniformly. This
        keeps the level where both rankings and what is left out of them come about alike in all
        groups, and only there.
    labels : {"public", "private"}, default "public"
        Whether who is in which group, and so the sizes of the groups, is public.
    min_group_sizes : tuple of two int, optional
        With ``labels="private"``, public lower bounds on the sizes of the groups. Of sizes that
        break them an error says no more than that.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if a sample or an argument breaks a rule.

    Notes
    -----
    **Privacy.** Neighbours replace one unit within its group (with ``labels="private"`` in any
    group). What is released is one number: the p-value of a permutation test, computed from a noisy
    statistic and smoothed over the noise. The statistic, its rank among the permuted ones and their
    quantiles stay secret. Proofs: :mod:`privrank.hypotheses.smoothing` and
    :mod:`privrank.mechanisms.statistics.permutation`.

    **Validity.** If the groups have the same distribution, the p-value is uniform but for its
    rounding up to the next multiple of 1e-4: exactly, for all sizes and numbers of permutations,
    with ties.

    References
    ----------
    Acharya, Sun and Zhang (2018), whose one-bit test is available as ``method="sigmoid"``; Kim and
    Schrab (2023); Gretton et al. (2012).

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> rng = np.random.default_rng(1)
    >>> women, men = pr.Mallows(5, 0.6).rvs(150, rng), pr.Mallows(5, 0.9).rvs(120, rng)
    >>> test = pr.ClosenessTest(women, men)
    >>> test.fit(epsilon=1.0, rng=np.random.default_rng(2)).reject
    True
    """

    __slots__ = ("_encoded", "_secret_labels")

    def __init__(
        self,
        sample1: object,
        sample2: object,
        *,
        items: object = None,
        respondent: str | None = None,
        max_rows: int = 1,
        ties: Ties = "refuse",
        missing: Gaps = "refuse",
        labels: Labels = "public",
        min_group_sizes: tuple[int, int] | None = None,
    ) -> None:
        bounds = _bounds(labels, min_group_sizes)
        encoded = encode_samples(
            (sample1, sample2),
            ("sample 1", "sample 2"),
            items=items,
            respondent=respondent,
            max_rows=max_rows,
            ties=ties,
            missing=missing,
            secret=bounds is not None,
        )
        self._set(encoded, bounds)

    def _set(self, encoded: EncodedGroups, bounds: tuple[int, ...] | None) -> None:
        self._secret_labels = bounds is not None
        if bounds is not None:
            encoded.sample = _declared(encoded.sample, bounds)
        self._encoded = encoded

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: object,
        *,
        labels: Labels = "public",
        min_group_sizes: tuple[int, int] | None = None,
        **arguments: Any,
    ) -> Self:
        """Build the test from a formula with the groups on its right.

        Parameters
        ----------
        formula : str
            ``"London + Paris + Milano ~ gender"`` for rankings, ``"choice ~ gender"`` for choices.
        data : data frame
            Frame with these columns.
        labels, min_group_sizes
            As for the class.
        **arguments
            `respondent`, `max_rows`; `levels`, the groups, where the column's type declares none;
            for choices `categories`, likewise; for rankings `ties` and `missing`.

        Returns
        -------
        ClosenessTest

        Examples
        --------
        >>> import numpy as np
        >>> import privrank as pr
        >>> cems = pr.datasets.load_university()
        >>> data = cems.rankings(np.random.default_rng(1)).join(cems.students)
        >>> test = pr.ClosenessTest.from_formula(
        ...     "London + Paris + Milano + StGallen + Barcelona + Stockholm ~ study",
        ...     data, respondent="respondent")
        >>> test
        <ClosenessTest of rankings: 6 items, groups commerce 111, other 192>
        """
        bounds = _bounds(labels, min_group_sizes)
        encoded = groups_of_formula(formula, data, arguments, secret=bounds is not None)
        test = cls.__new__(cls)
        test._set(encoded, bounds)
        return test

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, object] | pd.DataFrame, categories: object = None
    ) -> Self:
        """Build the test from counts by category for each group.

        Parameters
        ----------
        counts : mapping of mappings, or DataFrame with one column per group
            How often each category was chosen in each group.
        categories : sequence of str, optional
            The categories, where the inner mappings do not list them all.

        Returns
        -------
        ClosenessTest
        """
        test = cls.__new__(cls)
        test._set(encode_count_tables(counts, categories), None)
        return test

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self._encoded.sample
        least = "at least " if self._secret_labels else ""
        groups = ", ".join(f"{name} {least}{size}" for name, size in sample.groups)
        return f"<ClosenessTest of {sample.kind}: {len(sample.items)} items, groups {groups}>"

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        method: ClosenessMethod = "auto",
        permutations: int = 999,
        effect_epsilon: float | None = None,
        alpha: float = 0.05,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> ClosenessResult:
        """Spend `epsilon` once and return the test.

        Parameters
        ----------
        epsilon : float
            Privacy budget of the test; ``numpy.inf`` for the ordinary permutation test.
        delta : float, default 0
            Privacy delta.
        method : str, default "auto"
            Choices: ``"auto"`` or ``"tv"``, the total variation distance, or ``"chi-square"``.
            Rankings: ``"auto"`` or ``"mmd"``, a kernel distance that sees every difference, or
            ``"kendall"``, which sees differences of the pairwise fractions. ``"kim-schrab"``
            releases the decision at `alpha` alone; ``"sigmoid"`` one bit without a stated level.
        permutations : int, default 999
            Number of re-labellings; validity and privacy do not depend on it.
        effect_epsilon : float, optional
            Budget of an effect size, the noisy distance of the samples, on top of `epsilon`; both
            are reserved at once.
        alpha : float, default 0.05
            Significance level.
        budget : Budget, optional
            Ledger to reserve from.
        rng : numpy.random.Generator, optional
            Seeded noise and permutations for studies; None, the default, is secure.

        Returns
        -------
        ClosenessResult

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            In one sentence, before any budget is spent.
        """
        epsilon, delta, alpha = check_epsilon(epsilon), check_delta(delta), check_alpha(alpha)
        check_choice("method", method, ClosenessMethod)
        check_count("permutations", permutations, low=19, high=100_000)
        check_rng(rng)
        warn_few("permutations", permutations, alpha)
        asked = compare(method, self._encoded.sample, alpha, private_labels=self._secret_labels)
        _check_effect(effect_epsilon, epsilon, method)
        if asked.decision is not None and epsilon == np.inf:
            raise ValueError(
                f"method={method!r} releases a noisy decision, which needs a finite epsilon: use "
                f"method='auto' for the non-private test."
            )
        release = release_comparison(
            self._encoded,
            asked,
            plan_comparison(
                self._encoded.sample,
                asked,
                epsilon,
                delta,
                method=method,
                effect_epsilon=None if effect_epsilon is None else float(effect_epsilon),
                alpha=alpha,
                permutations=permutations,
            ),
            budget=budget,
            rng=rng,
        )
        return infer(release, alpha=alpha, secret_labels=self._secret_labels)

    @staticmethod
    def from_release(release: Release, *, alpha: float = 0.05) -> ClosenessResult:
        """Read a release that was paid for already; nothing more is spent.

        Parameters
        ----------
        release : Release
            From a fit of this test with public labels.
        alpha : float, default 0.05
            Significance level; a decision keeps the one it was made at.

        Returns
        -------
        ClosenessResult
        """
        check_release(release)
        return infer(release, alpha=check_alpha(alpha))


def compare(
    method: str, sample: Sample, alpha: float, *, private_labels: bool = False
) -> Comparison:
    """Return what `method` computes and releases of such samples.

    Given the public facts, with group sizes (declared lower bounds where labels are secret), the
    level of a decision, and whether neighbours may also change a unit's group. Refuses, in one
    sentence, methods that do not apply.
    """
    choices, known = sample.kind == "choices", _known(sample)
    if method not in known:
        raise ValueError(
            f"method must be one of {', '.join(map(repr, known))} for {sample.kind}, "
            f"got {method!r}."
        )
    sizes = np.array([size for _, size in sample.groups])
    if private_labels:
        if not (choices and method in ("auto", "tv") and len(sizes) == 2):
            raise ValueError(SECRET_LABELS)
        return Comparison("total variation distance", "tv", secret_label_sensitivity(sizes), 1.0)
    if method in ("chi-square", "sigmoid"):
        return _chi_square(method, sample, sizes)
    if choices:
        found = Comparison("total variation distance", "tv", mean_sensitivity(sizes, 1.0), 1.0)
    elif method == "kendall":
        diameter = DIAMETER["kendall"]
        sensitivity = mean_sensitivity(sizes, diameter)
        found = Comparison("Kendall kernel distance", "kendall", sensitivity, diameter)
    else:
        diameter = DIAMETER["mallows"]
        sensitivity = mean_sensitivity(sizes, diameter)
        found = Comparison("kernel distance (MMD)", "mallows", sensitivity, diameter)
    if method != "kim-schrab":
        return found
    decision = ks23.decision(found.sensitivity, alpha)
    return replace(found, name=f"{found.name}, decision", decision=decision)


def _chi_square(method: str, sample: Sample, sizes: np.ndarray[Any, Any]) -> Comparison:
    if sample.unit == "respondent" and sample.max_rows > 1:
        raise ValueError(
            f"method={method!r} takes one row per respondent: use method='tv' for several."
        )
    sensitivity = chi_square_sensitivity(sizes)
    if method == "chi-square":
        return Comparison("chi-square", "chi-square", sensitivity)
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        raise ValueError(
            "method='sigmoid' compares two samples of the same size: use method='auto'."
        )
    decision = asz18.closeness_bit(int(sizes[0]), len(sample.items), sensitivity)
    return Comparison("sigmoid bit of chi-square", "chi-square", sensitivity, decision=decision)


def infer(release: Release, *, alpha: float = 0.05, secret_labels: bool = False) -> ClosenessResult:
    """Read the test from a release, whose groups may have been protected, too: nothing is spent."""
    level = float(release.plan.settings.get("level", alpha))
    sample, method = release.sample, release.plan.method
    known = sample.groups and method in _known(sample)
    asked = compare(method, sample, level, private_labels=secret_labels) if known else None
    if asked is None or asked.name != release.mechanism:
        raise ValueError("release must be of a ClosenessTest, and this one is of another model.")
    return ClosenessResult(release=release, alpha=level, asked=asked, secret_labels=secret_labels)


def _known(sample: Sample) -> tuple[str, ...]:
    return _CHOICES if sample.kind == "choices" else _RANKINGS


def _bounds(labels: object, sizes: object) -> tuple[int, ...] | None:
    """Return the declared sizes of groups that are secret, None where they are public."""
    if check_choice("labels", labels, Labels) == "public":
        if sizes is not None:
            raise ValueError("min_group_sizes= is for labels='private': leave it out.")
        return None
    if not isinstance(sizes, tuple | list) or len(sizes) != 2:
        raise TypeError(
            "labels='private' needs min_group_sizes=, a public lower bound on the size of each of "
            "two groups, in the order of the groups."
        )
    return tuple(check_count("min_group_sizes", size, low=2) for size in sizes)


def _declared(sample: Sample, bounds: tuple[int, ...]) -> Sample:
    """Return the facts with declared sizes in place of the true ones.

    **Privacy.** Of the true sizes an error says no more than that the declaration does not hold.
    """
    if len(sample.groups) != len(bounds):
        raise ValueError(SECRET_LABELS)
    if any(size < bound for (_, size), bound in zip(sample.groups, bounds, strict=True)):
        raise ValueError(
            "min_group_sizes= must bound the size of every group from below, and at least one is "
            "smaller: declare what holds for certain."
        )
    names = [name for name, _ in sample.groups]
    return replace(sample, groups=tuple(zip(names, bounds, strict=True)))


def _check_effect(effect_epsilon: object, epsilon: float, method: str) -> None:
    if effect_epsilon is None:
        return
    if epsilon == np.inf:
        raise ValueError(
            "effect_epsilon= is what an effect costs: leave it out with epsilon=numpy.inf, where "
            "the effect is free."
        )
    if isinstance(effect_epsilon, bool) or not isinstance(effect_epsilon, Real):
        raise TypeError(
            f"effect_epsilon must be a positive number, got {type(effect_epsilon).__name__}."
        )
    if not 1e-9 <= float(effect_epsilon) <= 1e9:
        raise ValueError(
            f"effect_epsilon must be positive and finite, got {effect_epsilon}: it comes on top of "
            f"epsilon."
        )
    if method == "sigmoid":
        raise ValueError("method='sigmoid' has no effect size: use method='chi-square' or 'tv'.")
