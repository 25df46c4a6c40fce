"""Private tests of identity (goodness of fit), of rankings and of choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from privrank.encode.nulls import purpose_of, read_null
from privrank.encode.samples import (
    EncodedSample,
    encode_counts,
    encode_data,
    sample_of_formula,
)
from privrank.hypotheses.nullmodel import NullModel
from privrank.hypotheses.nulls import Null
from privrank.hypotheses.nulltables import FULL
from privrank.hypotheses.statistic import Statistic
from privrank.mechanisms.samples import plan_sample, release_sample
from privrank.mechanisms.statistics.binary import Alternative
from privrank.privacy.budget import pure_epsilon
from privrank.published.identity import IdentityMethod, ask, reduction
from privrank.release.release import Release, check_release
from privrank.results.finding import find, impossible
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

__all__ = ["IdentityTest", "infer"]


class IdentityTest:
    """Test whether rankings, or choices, follow a law that is known beforehand.

    Is the order the one of last year? Are the shares those of the census?

    Parameters
    ----------
    data : data frame, array of ranks, or categorical Series
        Rankings, as for :class:`privrank.UniformityTest`, or choices.
    null : "uniform", Mallows, mapping, Series, DataFrame or sequence
        The law under H0. Choices: probabilities by category. Rankings: a
        :class:`privrank.Mallows` model of the same items, or for at most 6 items a DataFrame with
        the item columns and a column ``probability``. It must not be learned from these data.
    categories : sequence of str, optional
        The categories of choices; by default those the type declares.
    items : sequence of str, optional
        The item columns of rankings; by default every column but the respondent's.
    respondent : str, optional
        Column, or pandas index level, that names the respondent of each row, of which one, drawn
        by a secret lot, is used.
    max_rows : int, default 1
        Public bound on the rows of a respondent.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if the data, the null or an argument breaks a rule.

    Notes
    -----
    **Privacy.** As :class:`privrank.UniformityTest`: a whole-number statistic of proved
    sensitivity and discrete Laplace noise. The null and all that follows from it is public.

    **Validity.** The law of the noisy statistic under H0 is known, so the p-value accounts for the
    noise at any epsilon and any sample size. Observations to which H0 gives probability 0 are seen:
    :mod:`privrank.mechanisms.statistics.impossible`. With one row per respondent the rows used are
    independent if respondents are; how many rows one has must not depend on what they say.

    References
    ----------
    Acharya, Sun and Zhang (2018); Awan and Slavkovic (2018) for two categories.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> last_year = pr.Mallows(["tea", "coffee", "milk"], phi=0.5)
    >>> rankings = pr.Mallows(["tea", "coffee", "milk"], phi=0.8).rvs(300, np.random.default_rng(1))
    >>> test = pr.IdentityTest(rankings, last_year, items=["tea", "coffee", "milk"])
    >>> test.fit(epsilon=1.0, rng=np.random.default_rng(2)).reject
    True
    """

    __slots__ = ("_encoded", "_null")

    def __init__(
        self,
        data: object,
        null: object,
        *,
        categories: object = None,
        items: object = None,
        respondent: str | None = None,
        max_rows: int = 1,
    ) -> None:
        encoded = encode_data(
            data,
            items=items,
            categories=categories,
            respondent=respondent,
            max_rows=max_rows,
            purpose=purpose_of(null),
        )
        self._set(encoded, null)

    def _set(self, encoded: EncodedSample, null: object) -> None:
        self._null = read_null(null, encoded.sample)
        self._encoded = encoded

    @classmethod
    def from_formula(cls, formula: str, data: object, null: object, **arguments: Any) -> Self:
        """Build the test from a formula.

        Parameters
        ----------
        formula : str
            Rankings: ``"London + Paris + Milano ~ 1"``. Choices: ``"choice ~ 1"``.
        data : data frame
            Frame with these columns.
        null
            As for the class.
        **arguments
            `respondent`, `max_rows`, and for choices `categories`.

        Returns
        -------
        IdentityTest

        Examples
        --------
        >>> import numpy as np
        >>> import privrank as pr
        >>> students = pr.datasets.load_immigration().students
        >>> test = pr.IdentityTest.from_formula("sex ~ 1", students, {"male": 0.5, "female": 0.5})
        >>> round(test.fit(epsilon=np.inf, method="binary").pvalue, 3)
        0.266
        """
        test = cls.__new__(cls)
        test._set(sample_of_formula(formula, data, arguments, purpose=purpose_of(null)), null)
        return test

    @classmethod
    def from_counts(cls, counts: object, null: object, categories: object = None) -> Self:
        """Build the test from counts by category; one counted choice is the unit of privacy.

        Parameters
        ----------
        counts : mapping, Series or sequence of int
            How often each category was chosen.
        null
            As for the class.
        categories : sequence of str, optional
            The categories; by default the keys of a mapping or the index of a Series.

        Returns
        -------
        IdentityTest
        """
        test = cls.__new__(cls)
        test._set(encode_counts(counts, categories), null)
        return test

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self._encoded.sample
        return (
            f"<IdentityTest of {sample.kind}: {len(sample.items)} items, {sample.nobs} "
            f"{sample.unit}s>"
        )

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        method: IdentityMethod = "auto",
        alpha: float = 0.05,
        alternative: Alternative = "two-sided",
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
            Choices: ``"auto"`` or ``"tv"``, the total variation distance, with a confidence
            interval; ``"omnibus"``; ``"max-count"``; ``"goldreich"``, the reduction to uniformity,
            which loses most of the power; for a uniform null ``"paninski"``, for many categories
            and few choices; for two categories ``"binary"``, the most powerful test; for both
            ``"sigmoid"``, one bit without a stated level. Mallows null: ``"auto"`` or
            ``"omnibus"`` of the two, ``"kernel"``, for another centre, and ``"distance"``, for
            another dispersion.
        alpha : float, default 0.05
            Significance level.
        alternative : {"two-sided", "larger", "smaller"}
            For ``"binary"``: what the probability of the first category is under H1.
        tolerance : float, optional
            Total variation distance that ``"sigmoid"`` shall detect; needed there.
        draws : int, default 9999
            Monte Carlo draws of the null law where it is not known exactly.
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
        check_choice("method", method, IdentityMethod)
        check_choice("alternative", alternative, Alternative)
        check_count("draws", draws, low=19)
        check_rng(rng)
        check_tolerance(tolerance)
        if (tolerance is None) == (method == "sigmoid"):
            raise ValueError(
                "tolerance= is what method='sigmoid' shall detect: give it there, and leave it out "
                "elsewhere."
            )
        settings: dict[str, Any] = {
            "method": method,
            "alternative": alternative,
            "tolerance": tolerance,
        }
        xi = pure_epsilon(epsilon, delta)
        asked = _asked(settings, self._null, self._encoded, xi)
        # public, and computed before anything is spent: that may be interrupted
        law = asked.null(draws) if isinstance(asked, Statistic) else None
        release = release_sample(
            self._encoded,
            asked,
            plan_sample(
                self._encoded.sample, asked, epsilon, delta, by="IdentityTest", method=method
            ),
            reduction=reduction(method, self._null),
            budget=budget,
            rng=rng,
        )
        return infer(
            release, null=self._null.to_record(), alpha=alpha, draws=draws, law=law, **settings
        )


def _asked(
    settings: Mapping[str, Any], null: NullModel, holder: EncodedSample | Release, xi: float
) -> Any:
    return ask(
        settings["method"],
        null,
        holder.sample,
        xi=xi,
        tolerance=settings["tolerance"] or 0.0,
        alternative=settings["alternative"],
    )


def infer(
    release: Release,
    *,
    null: Mapping[str, Any],
    method: IdentityMethod = "auto",
    alternative: Alternative = "two-sided",
    tolerance: float | None = None,
    alpha: float = 0.05,
    draws: int = FULL,
    found: Mapping[str, Any] | None = None,
    law: Null | None = None,
) -> RankTestResult:
    """Compute the test from a release: post-processing, nothing is spent.

    Parameters
    ----------
    release : Release
        Of a test of identity.
    null : mapping
        Record of the null hypothesis (:class:`privrank.hypotheses.nullmodel.NullModel`).
    method, alternative, tolerance
        Those of the fit.
    alpha : float
        Significance level.
    draws : int
        Monte Carlo draws of the null law, where it is not exact.
    found : mapping, optional
        What was found from this release before and archived with it.
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
    check_release(release)
    settings = {"method": method, "alternative": alternative, "tolerance": tolerance}
    model = NullModel.from_record(null)
    asked = _asked(settings, model, release, pure_epsilon(release.epsilon, release.delta))
    if asked.name != release.mechanism:
        raise ValueError("release must be of an IdentityTest, and this one is of another model.")
    if found is None:
        found = find(release, asked, alpha, draws, law)
    return RankTestResult(
        release=release,
        test="IdentityTest",
        method=method,
        alpha=alpha,
        hypotheses=(model.words, "they do not."),
        pvalue=found["pvalue"],
        threshold=found["threshold"],
        draws=found["draws"],
        notes=_remarks(method, model, release),
        asked=asked,
        null_model=model,
        settings=tuple(settings.items()),
    )


def _remarks(method: str, null: NullModel, release: Release) -> tuple[str, ...]:
    notes = []
    if found := impossible(release):
        notes.append(
            f"H0 gives probability 0 to {found} of the {release.sample.nobs} observations: it is "
            f"rejected whatever the statistic."
        )
    apart = method not in ("tv", "max-count", "goldreich") or release.source == "none"
    if null.rules_out and not apart:
        notes.append(
            "An observation to which H0 gives probability 0 counts no more than another here; "
            "method='auto' counts them apart."
        )
    if method == "goldreich":
        notes.append(
            "The choices were mapped at random so that H0 becomes uniformity; method='tv' tests "
            "the same with far more power."
        )
    if method == "sigmoid":
        notes.append(
            "The bit is no test of a stated level: how often it errs depends on the numbers of "
            "choices and categories."
        )
    return tuple(notes)
