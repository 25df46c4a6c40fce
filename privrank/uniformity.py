"""Private tests of uniformity, of rankings and of choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from privrank.encode.samples import (
    EncodedSample,
    encode_counts,
    encode_data,
    sample_of_formula,
)
from privrank.hypotheses.nulls import Null
from privrank.hypotheses.nulltables import FULL
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.mechanisms.samples import plan_sample, release_sample
from privrank.privacy.budget import pure_epsilon
from privrank.published.uniformity import UniformityMethod, ask, asked_of, remarks
from privrank.release.release import Release, check_release
from privrank.release.survey import Sample
from privrank.results.finding import find
from privrank.results.ledger import Budget
from privrank.results.ranktest import RankTestResult
from privrank.util.checks import (
    check_alpha,
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    check_rng,
    check_tolerance,
)

__all__ = ["UniformityTest", "infer"]


class UniformityTest:
    """Test whether all rankings, or all categories, are equally likely.

    Is there any consensus among respondents, or might each have ranked by drawing lots?

    Parameters
    ----------
    rankings : data frame, ndarray of shape (n, m), or categorical Series
        A rankings frame: one row per ranking, one column per item, cells the ranks 1 (best) to m.
        A categorical Series is a sample of choices; see also `from_formula` and `from_counts`.
    items : sequence of str, optional
        The item columns; by default every column but the respondent's.
    respondent : str, optional
        Column, or pandas index level, that names the respondent of each row. The unit of privacy
        is then a respondent with all their rows, one of which, drawn by a secret lot, is used.
    max_rows : int, default 1
        Public bound on the rows of a respondent.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if the frame or an argument breaks a rule.

    Notes
    -----
    **Privacy.** Neighbours replace one unit; the number of units is public. Each method's statistic
    is a whole number with a proved bound on what one row can change, and discrete Laplace noise in
    proportion; see :mod:`privrank.mechanisms.statistics` and :mod:`privrank.mechanisms.samples`.

    **Validity.** The law of the noisy statistic under H0 is a function of public numbers, so the
    p-value is post-processing, and it accounts for the noise. Monte Carlo tables come from one
    public sequence per statistic and size, and are kept on disk.

    References
    ----------
    Busa-Fekete, Fotakis and Zampetakis (2021), corrected where their private tests are not
    private; Acharya, Sun and Zhang (2018) for categories.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> rankings = pr.Mallows(["tea", "coffee", "milk"], phi=0.8).rvs(400, np.random.default_rng(1))
    >>> test = pr.UniformityTest(rankings, items=["tea", "coffee", "milk"])
    >>> result = test.fit(epsilon=1.0, rng=np.random.default_rng(2))
    >>> result.reject
    True
    """

    __slots__ = ("_encoded",)

    def __init__(
        self,
        rankings: object,
        *,
        items: object = None,
        respondent: str | None = None,
        max_rows: int = 1,
    ) -> None:
        self._encoded = encode_data(rankings, items=items, respondent=respondent, max_rows=max_rows)

    @classmethod
    def _of(cls, encoded: EncodedSample) -> Self:
        test = cls.__new__(cls)
        test._encoded = encoded
        return test

    @classmethod
    def from_formula(cls, formula: str, data: object, **arguments: Any) -> Self:
        """Build the test from a formula.

        Parameters
        ----------
        formula : str
            Rankings: the item columns, ``"London + Paris + Milano ~ 1"``. Choices: one column of
            categories, ``"choice ~ 1"``.
        data : data frame
            Frame with these columns.
        **arguments
            `respondent`, `max_rows`, and for choices `categories`, which is needed where the
            column's type declares none.

        Returns
        -------
        UniformityTest

        Examples
        --------
        >>> import numpy as np
        >>> import privrank as pr
        >>> immigration = pr.datasets.load_immigration()
        >>> test = pr.UniformityTest.from_formula("sex ~ 1", immigration.students)
        >>> round(test.fit(epsilon=np.inf, method="tv").pvalue, 3)
        0.266
        """
        return cls._of(sample_of_formula(formula, data, arguments))

    @classmethod
    def from_counts(cls, counts: Mapping[str, int] | object, categories: object = None) -> Self:
        """Build the test from counts by category; one counted choice is the unit of privacy.

        Parameters
        ----------
        counts : mapping, Series or sequence of int
            How often each category was chosen.
        categories : sequence of str, optional
            The categories; by default the keys of a mapping or the index of a Series. Those
            nobody chose must be listed as well.

        Returns
        -------
        UniformityTest
        """
        return cls._of(encode_counts(counts, categories))

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self._encoded.sample
        return (
            f"<UniformityTest of {sample.kind}: {len(sample.items)} items, {sample.nobs} "
            f"{sample.unit}s>"
        )

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        method: UniformityMethod = "auto",
        alpha: float = 0.05,
        tolerance: float | None = None,
        draws: int = FULL,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> RankTestResult:
        """Spend `epsilon` once and return the test.

        Parameters
        ----------
        epsilon : float
            Privacy budget to spend; ``numpy.inf`` for the non-private test.
        delta : float, default 0
            Privacy delta.
        method : str, default "auto"
            For rankings: ``"auto"``, the norm of the summed rank vectors, capped where n and m
            say that this lowers the noise (without noise, Friedman's test); ``"pairs"``, wins in
            disjoint random pairs of items; ``"laplace"``, their sum of squares; ``"mallows"``,
            distances to the order of the columns; ``"two-sample"``, the distance of two rankings;
            ``"omnibus"``, for at most 6 items, sees every alternative; ``"truncated"`` and
            ``"bucket"`` release the decision alone. For choices: ``"auto"`` or ``"omnibus"``,
            ``"tv"``, the total variation distance, with a confidence interval, and
            ``"max-count"``.
        alpha : float, default 0.05
            Significance level.
        tolerance : float, optional
            Total variation distance at which ``"truncated"`` and ``"two-sample"`` shall have their
            published guarantee; by default the smallest at which they have it.
        draws : int, default 9999
            Monte Carlo draws of the null law where it is not known exactly. They are kept on disk;
            fewer draws give a coarser p-value, whose own error the summary states.
        budget : Budget, optional
            Ledger to reserve from.
        rng : numpy.random.Generator, optional
            Seeded noise for studies; None, the default, is secure noise.

        Returns
        -------
        RankTestResult

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            In one sentence, before any budget is spent.
        """
        epsilon, delta, alpha = check_epsilon(epsilon), check_delta(delta), check_alpha(alpha)
        check_choice("method", method, UniformityMethod)
        check_count("draws", draws, low=19)
        check_rng(rng)
        check_tolerance(tolerance)
        xi = pure_epsilon(epsilon, delta)
        asked, constants = ask(
            method, self._encoded.sample, xi=xi, alpha=alpha, tolerance=tolerance
        )
        # public, and computed before anything is spent: that may be interrupted
        law = asked.null(draws) if isinstance(asked, Statistic) else None
        release = release_sample(
            self._encoded,
            asked,
            plan_sample(
                self._encoded.sample,
                asked,
                epsilon,
                delta,
                by="UniformityTest",
                method=method,
                settings=constants,
            ),
            budget=budget,
            rng=rng,
        )
        return infer(release, alpha=alpha, draws=draws, law=law)

    @staticmethod
    def from_release(release: Release, *, alpha: float = 0.05, draws: int = FULL) -> RankTestResult:
        """Test from a release that was paid for already; nothing more is spent.

        Parameters
        ----------
        release : Release
            From a fit of this test.
        alpha : float, default 0.05
            Significance level; a random bit keeps the one it was drawn at.
        draws : int, default 9999
            Monte Carlo draws of the null law.

        Returns
        -------
        RankTestResult
        """
        check_release(release)
        check_count("draws", draws, low=19)
        return infer(release, alpha=check_alpha(alpha), draws=draws)


def infer(
    release: Release,
    *,
    alpha: float = 0.05,
    draws: int = FULL,
    found: Mapping[str, Any] | None = None,
    law: Null | None = None,
) -> RankTestResult:
    """Compute the test from a release: post-processing, nothing is spent.

    Parameters
    ----------
    release : Release
        Of a test of uniformity.
    alpha : float
        Significance level.
    draws : int
        Monte Carlo draws of the null law, where it is not exact.
    found : mapping, optional
        What was found from this release before and archived with it, taken instead of computed:
        p-value, threshold and draws.
    law : Null, optional
        The null law of the statistic, if it is at hand.

    Returns
    -------
    RankTestResult

    Raises
    ------
    ValueError
        If the release is of another model.
    """
    sample = release.sample
    asked, method = asked_of(release.mechanism, sample, release.plan.settings)
    if found is None:
        found = find(release, asked, alpha, draws, law)
    return RankTestResult(
        release=release,
        test="UniformityTest",
        method=method,
        alpha=release.plan.number("level") if isinstance(asked, RandomBit) else alpha,
        hypotheses=_hypotheses(sample),
        pvalue=found["pvalue"],
        threshold=found["threshold"],
        draws=found["draws"],
        notes=remarks(asked, sample),
        asked=asked,
    )


def _hypotheses(sample: Sample) -> tuple[str, str]:
    m = len(sample.items)
    if sample.kind == "choices":
        return f"all {m} categories are equally likely.", "some are more likely than others."
    return f"all orders of the {m} items are equally likely.", "some are more likely than others."
