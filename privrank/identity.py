"""Private tests of identity (goodness of fit) for rankings and choices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from privrank.closeness import ClosenessTest
from privrank.encode.choices import encode_tested, formula_tested
from privrank.encode.encoded import EncodedChoices
from privrank.encode.groups import against_answers
from privrank.encode.samples import encode_counts
from privrank.hypotheses.nulls import (
    Null,
    NullModel,
    RandomBit,
    Statistic,
    is_uniform,
    null_for,
    wanted_draws,
)
from privrank.mechanisms import categories, ranknorms
from privrank.mechanisms.samples import release_sample
from privrank.plans.declarations import Gaps, Ties, null_categories, read_null
from privrank.plans.samples import TEST, budget_shares, effect_beside, plan_sample, share_of_test
from privrank.published import asz18
from privrank.release.names import EFFECT, PVALUE
from privrank.release.release import Release, check_release, fit_error_guard
from privrank.release.survey import Design, Sample, kind_of, size_of
from privrank.results.closeness import ClosenessResult
from privrank.results.ledger import Budget
from privrank.results.ranktest import RankTestResult, read_test, tested_survey
from privrank.results.testnotes import OTHER_ANSWERS, against_null
from privrank.uniformity import statistic_or_bit
from privrank.util import checks

IdentityMethod = Literal[
    "auto", "tv", "omnibus", "borda", "kernel", "distance", "paninski", "sigmoid", "binary"
]

_H1 = {
    "two-sided": "they do not.",
    "larger": "the first category is more likely.",
    "smaller": "the first category is less likely.",
}


class IdentityTest:
    """Test that rankings (or choices) follow a specified distribution.

    Have the rankings the same distribution as last year? Do the shares agree with the census?

    Parameters
    ----------
    data : data frame, array of ranks, or Series
        Rankings, see :class:`privrank.UniformityTest`; a Series contains choices. Or choices from
        publicly offered sets, from :func:`privrank.as_choices`.
    null : "uniform", Mallows, mapping, Series, DataFrame or sequence
        The distribution under H0. For choices: probabilities by category. For rankings: a
        :class:`privrank.Mallows` model of the same items, or for at most 6 items a DataFrame with
        the item columns and a column ``probability``. For choices from sets: the worth of each
        item, on the scale of :class:`privrank.PrivateBTL` for these answers. It must not be
        estimated from `data`, and is assumed to be exact unless `null_nobs` is given.
    categories : sequence of str, optional
        The categories of choices; by default the keys of `null`, if it has keys, or the categories
        of a polars Enum.
    items : sequence of str, optional
        The item columns of rankings; by default every column except `respondent`. For choices from
        sets, by default the items of the conversion.
    respondent : str, optional
        Column or pandas index level of a frame (not of a Series) that identifies the respondent of
        each row. The test uses one row per respondent, drawn at random and in secret. For choices
        from sets the test uses all rows, and `respondent` must be stated; None means that each task
        is a unit.
    max_rows : int, default 1
        Public bound on the rows (or tasks) of a respondent.
    ties, missing : str, default "refuse"
        See :class:`privrank.UniformityTest`.
    null_nobs : int, optional
        Number of answers from which the probabilities of `null` were estimated, such as the answers
        of last year. The test then compares two samples.
    null_noise : float, optional
        Standard deviation of independent noise in each count behind `null`, if its shares are from
        a private release; needs `null_nobs`.

    Raises
    ------
    ValueError, TypeError
        If the data, the null or an argument violates a rule.

    See Also
    --------
    privrank.UniformityTest : Test that all rankings (or categories) are equally likely.
    privrank.ClosenessTest : Test that groups have the same distribution.

    Notes
    -----
    **Assumptions.** Independent respondents (if families or classes answer alike, name the family
    or class in `respondent`); ignorable nonresponse (whether a question is answered does not depend
    on the answer); a null distribution that is known without error (if it was estimated, use
    `null_nobs`). For the consequences of violations, see :doc:`assumptions </assumptions>`.

    **Choices from sets.** H0 is that answers have the probabilities that the null worths give to
    them, and that all tasks are answered independently of each other; see
    :class:`privrank.UniformityTest`. Camps reject.

    **Privacy.** A whole-number statistic of proved sensitivity with discrete Laplace noise; see
    :class:`privrank.UniformityTest`. The null and everything computed from it are public.

    **Validity.** The distribution of the noisy statistic under H0 is known, so the p-value accounts
    for the noise at any epsilon and any sample size. The test has power against observations to
    which H0 gives probability 0 (:func:`privrank.mechanisms.categories.omnibus_of`). With one row
    per respondent the rows used are independent if respondents are independent. The number of rows
    of a respondent must not depend on their answers.

    **Estimated null.** An estimated distribution is not the true one. If the shares of 500 answers
    are taken as exact, 500 other answers from the same distribution reject them at level 0.05
    in 0.24 of the cases for four choices and 0.50 for twelve (epsilon 2; study ``identity_null``).
    With `null_nobs` the answers behind `null`, which are public, are the second sample of a
    :class:`privrank.ClosenessTest`, whose result is returned. Give the shares with enough digits to
    determine the counts. Shares from a private release contain noise as well.
    With its standard deviation, `null_noise`, the number of answers is reduced to the number that
    is no more informative than the noisy shares. The summary states this number, which is small
    if a share is small.

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

    __slots__ = ("_encoded", "_null", "_two")

    @checks.without_weights
    def __init__(
        self,
        data: object,
        null: object,
        *,
        categories: object = None,
        items: object = None,
        respondent: str | None = checks.UNSTATED,
        max_rows: int = 1,
        ties: Ties = "refuse",
        missing: Gaps = "refuse",
        null_nobs: int | None = None,
        null_noise: float | None = None,
    ) -> None:
        self._encoded = encode_tested(
            data,
            items=items,
            categories=categories,
            respondent=respondent,
            max_rows=max_rows,
            ties=ties,
            missing=missing,
            known=null_categories(null),
        )
        self._null = read_null(
            null,
            self._encoded.sample,
            anywhere=getattr(self._encoded, "missing", None) == "half",
        )
        # a null estimated from other answers makes this a two-sample test: fit() runs a
        # ClosenessTest
        self._two = None
        if null_nobs is not None:
            if isinstance(self._encoded, EncodedChoices):
                raise ValueError(
                    "null_nobs= and null_noise= must be left out for choices from offered sets. "
                    "Their null worths must be known exactly."
                )
            self._two = ClosenessTest(
                against_answers(self._encoded, self._null, null_nobs, null_noise), None
            )
        elif null_noise is not None:
            raise ValueError(
                "null_noise is the noise in the counts behind null, so it needs their sum, "
                "null_nobs. Give null_nobs, or omit null_noise."
            )

    @classmethod
    @checks.without_weights
    def from_formula(cls, formula: str, data: object, null: object, **arguments: Any) -> Self:
        """Build the test from a formula.

        Parameters
        ----------
        formula : str
            Rankings: ``"London + Paris + Milano ~ 1"``. Choices: ``"choice ~ 1"``. Choices from
            sets: the answers, such as ``"best + worst ~ 1"``.
        data : data frame
            Frame with these columns.
        null
            See the class.
        **arguments
            `respondent`, `max_rows`, `null_nobs`, `null_noise`; for rankings `ties` and `missing`;
            for choices `categories`; for choices from sets `items`.

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
        about_null = {n: arguments.pop(n) for n in ("null_nobs", "null_noise") if n in arguments}
        return cls(
            formula_tested(formula, data, arguments, known=null_categories(null)),
            null,
            **about_null,
        )

    @classmethod
    def from_counts(
        cls,
        counts: object,
        null: object,
        categories: object = None,
        *,
        null_nobs: int | None = None,
        null_noise: float | None = None,
    ) -> Self:
        """Build the test from counts by category; the unit of privacy is one choice.

        Parameters
        ----------
        counts : mapping, Series or sequence of int
            How often each category was chosen.
        null
            See the class.
        categories : sequence of str, optional
            The categories, see the class. The counts may contain only the categories that occur.
        null_nobs, null_noise
            See the class.

        Returns
        -------
        IdentityTest

        Examples
        --------
        >>> census = {"town": 0.7, "country": 0.3}
        >>> test = pr.IdentityTest.from_counts({"town": 150, "country": 90}, census)
        >>> round(test.fit(epsilon=np.inf).pvalue, 3)
        0.014
        """
        return cls(
            encode_counts(counts, null_categories(null) if categories is None else categories),
            null,
            null_nobs=null_nobs,
            null_noise=null_noise,
        )

    def __repr__(self) -> str:
        """Show the shape only."""
        return f"<IdentityTest of {kind_of(self._encoded.sample)}: {size_of(self._encoded.sample)}>"

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        method: IdentityMethod = "auto",
        alpha: float = 0.05,
        alternative: categories.Alternative = "two-sided",
        tolerance: float | None = None,
        draws: int | None = None,
        effect_epsilon: float | None = None,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> RankTestResult | ClosenessResult:
        """Run the test under differential privacy.

        The test uses `epsilon` and `delta` once.

        Parameters
        ----------
        epsilon : float
            Privacy budget to spend; ``numpy.inf`` for the non-private test.
        delta : float, default 0
            Privacy delta.
        method : str, default "auto"
            The test statistic. For choices, ``"auto"`` or ``"omnibus"`` combines small deviations
            in many categories, large deviations in few, and observations that H0 rules out.
            ``"tv"`` is the total variation distance, with a confidence interval. For a uniform null
            ``"paninski"`` is for many categories and few choices.

            For choices with two categories, ``"auto"`` is ``"binary"``. Its level is exact, by a
            public random number at the boundary, and it is most powerful if one-sided.
            ``"sigmoid"``, for a uniform null or two categories, releases one bit, without a stated
            level. Other nulls can use it by a reduction to uniformity that is drawn before the test
            (:doc:`ASZ18 </papers/asz18>`).

            For rankings with a uniform null, see :class:`privrank.UniformityTest`; ``"borda"`` is
            available. For a Mallows null, ``"kernel"`` has power against another centre,
            ``"distance"`` against another dispersion, and ``"auto"`` or ``"omnibus"`` combines
            both. For choices from sets there is only ``"auto"``. With `null_nobs`: ``"auto"`` or,
            for choices, ``"tv"``, see :class:`privrank.ClosenessTest`. The summary states the
            alternatives against which a statistic has little power.
        alpha : float, default 0.05
            Significance level.
        alternative : {"two-sided", "larger", "smaller"}
            Alternative hypothesis about the probability of the first category, for choices of two
            categories and ``"auto"`` or ``"binary"``.
        tolerance : float, optional
            Total variation distance that ``"sigmoid"`` is designed to detect; required there.
        draws : int, optional
            Number of Monte Carlo draws of the null distribution, if it is not known exactly; for
            the default see :class:`privrank.UniformityTest`.
        effect_epsilon : float, optional
            For choices, additional budget of an effect size: the total variation distance from H0,
            with an interval. It is reserved together with `epsilon`. ``"tv"`` tests this distance
            and reports it without additional budget.
        budget : Budget, optional
            Ledger from which the fit reserves its budget.
        rng : numpy.random.Generator, optional
            Generator for seeded noise, for studies only. None, the default: secure noise.

        Returns
        -------
        RankTestResult
            With `null_nobs`, a :class:`privrank.ClosenessResult`.

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            Before any budget is spent.
        FitError
            If inference fails after the release. The release is stored in the exception, and
            `from_release` computes the result from it at no additional privacy cost.

        See Also
        --------
        privrank.RankTestResult : Results of the test.
        privrank.power.IdentityPower : Power and sample size.

        Examples
        --------
        >>> result = test.fit(epsilon=1.0, rng=np.random.default_rng(2))
        >>> result.method, result.reject
        ('auto', True)
        """
        epsilon, delta, alpha = checks.check_fit(epsilon, delta, alpha, rng)
        checks.check_choice("method", method, IdentityMethod)
        checks.check_choice("alternative", alternative, categories.Alternative)
        sample = self._encoded.sample
        null = self._null
        if self._two is not None:
            known = ("auto", "tv") if sample.kind == "choices" else ("auto",)
            checks.refuse_if(
                (
                    method not in known,
                    f"method must be one of {', '.join(map(repr, known))} with null_nobs=, which "
                    f"compares two samples of {sample.kind}, got {method!r}.",
                ),
                (
                    (alternative, tolerance, draws) != ("two-sided", None, None),
                    "alternative, tolerance and draws are for a null that is known exactly. Omit "
                    "them with null_nobs.",
                ),
            )
            return self._two.fit(
                epsilon,
                delta,
                method=method,  # type: ignore[arg-type]
                effect_epsilon=effect_epsilon,
                alpha=alpha,
                budget=budget,
                rng=rng,
            )
        draws = wanted_draws(draws, sample)
        given = {"alternative": alternative, "tolerance": tolerance}
        settings: dict[str, Any] = {
            name: value for name, value in given.items() if value not in (None, "two-sided")
        }
        effect_epsilon = checks.check_extra("effect_epsilon", effect_epsilon, epsilon)
        # the statistic, its noise and its null distribution are public, so they come before the
        # budget is spent
        xi = budget_shares(epsilon, delta, {EFFECT: effect_epsilon})[1][TEST]
        query = identity_statistic(null, sample, method, xi=xi, **settings)
        effect = effect_beside(
            query,
            sample,
            partial(categories.distance_from_null, sample.nobs, null.probabilities),
            epsilon,
            effect_epsilon,
        )
        distribution = null_for(query, draws, alpha)
        plan = plan_sample(query, epsilon, delta, effect, "IdentityTest", method, settings)
        release = release_sample(
            self._encoded,
            query,
            plan,
            null=null.tabulated() if getattr(self._encoded, "missing", "") == "half" else null,
            effect=effect,
            budget=budget,
            rng=rng,
        )
        return fit_error_guard(
            partial(
                infer_identity,
                release,
                null=null.to_record(),
                alpha=alpha,
                draws=draws,
                distribution=distribution,
            ),
            release,
            "IdentityTest.from_release(error.release, null)",
        )

    @staticmethod
    def from_release(
        release: Release, null: object, *, alpha: float = 0.05, draws: int | None = None
    ) -> RankTestResult:
        """Compute the test from an existing release, at no additional privacy cost.

        Parameters
        ----------
        release : Release
            The release of a fit of this test. For the release of a fit with `null_nobs` use
            :meth:`privrank.ClosenessTest.from_release`.
        null
            The null distribution of that fit, which the release does not contain.
        alpha : float, default 0.05
            Significance level; one-bit methods keep the level of their fit.
        draws : int, optional
            Number of Monte Carlo draws of the null distribution; see :meth:`fit`.

        Returns
        -------
        RankTestResult

        Examples
        --------
        >>> result = test.fit(epsilon=1.0, rng=np.random.default_rng(2))
        >>> pr.IdentityTest.from_release(result.release, last_year, alpha=0.01).reject
        True
        """
        check_release(release)
        return infer_identity(
            release,
            null=read_null(null, tested_survey(release)).to_record(),
            alpha=alpha,
            draws=draws,
        )


def identity_statistic(
    null: NullModel,
    sample: Sample | Design,
    method: str,
    *,
    xi: float,
    alternative: categories.Alternative = "two-sided",
    tolerance: float | None = None,
) -> Statistic | RandomBit:
    """Return the statistic of a method at a pure budget `xi`.

    It depends on public numbers alone. Raises an error for methods that do not apply.
    """
    n = sample.nobs
    checks.check_choice("method", method, _methods(null, sample), kind_of(sample))
    checks.check_tolerance(tolerance)
    if (tolerance is None) == (method == "sigmoid"):
        raise ValueError(
            "tolerance is the distance that method='sigmoid' is designed to detect. Give it with "
            "method='sigmoid', and omit it for all other methods."
        )
    p = null.probabilities
    k = len(sample.items)
    choices = sample.kind == "choices"
    # with two categories, the count of one category is sufficient, and its test is exact
    if method == "auto" and len(p) == 2 and (alternative != "two-sided" or not null.rules_out):
        method = "binary"
    if alternative != "two-sided" and not (choices and method == "binary"):
        raise ValueError(
            "alternative is for choices of two categories and method='auto' or method='binary'. "
            "Omit it in all other cases."
        )
    if tolerance is not None:
        checks.check_noisy(method, xi, "tv")
        return (
            asz18.binary_bit(n, p[0], xi, tolerance)
            if k == 2
            else asz18.sigmoid_bit(n, k, xi, tolerance)
        )
    if method == "binary":
        counted = categories.binomial(n, p[0], alternative)
        return counted if choices else categories.of_ranks(counted)
    if method == "paninski":
        return asz18.paninski(n, k)
    if null.center:
        return _of_mallows(method, n, null, xi)
    if not p or isinstance(sample, Design):
        return statistic_or_bit(method, sample, xi, {}, null.worths)
    # without noise a single observation that H0 rules out rejects H0; with noise the omnibus
    # statistic includes the number of such observations
    query = _of_counts(method, n, null, sample, xi)
    if null.rules_out and math.isinf(xi):
        query = replace(
            query,
            impossible=partial(categories.impossible_count, p=p),
            blind_to=tuple(one for one in query.blind_to if one != "impossible observations"),
        )
    return query if choices else categories.of_ranks(query)


def _of_mallows(method: str, n: int, null: NullModel, xi: float) -> Statistic:
    if method in ("auto", "omnibus"):
        return ranknorms.omnibus_mallows(n, null.model, xi)
    build = ranknorms.clipped_kernel if method == "kernel" else ranknorms.clipped_distance
    return build(n, null.model)


def _of_counts(method: str, n: int, null: NullModel, sample: Sample, xi: float) -> Statistic:
    """Return a statistic of the counts by category, or by ranking."""
    p = null.probabilities
    if method == "omnibus" or (method == "auto" and len(p) > 2):
        return categories.omnibus_of(n, p, xi, rankings=sample.kind == "rankings")
    return replace(
        categories.distance_from_null(n, p), name="total variation distance from the null"
    )


def _methods(null: NullModel, sample: Sample | Design) -> tuple[str, ...]:
    if isinstance(sample, Design):
        return ("auto",)
    if sample.kind == "rankings":
        if null.center:
            return (
                ("auto", "omnibus", "kernel", "distance")
                if len(sample.items) <= ranknorms.MAX_PAIRED
                else ("auto", "distance")
            )
        if not null.probabilities:
            return (
                ("auto", "borda", "omnibus")
                if len(sample.items) <= categories.MAX_ITEMS
                else ("auto", "borda")
            )
        return ("auto", "omnibus", "tv")
    if len(sample.items) == 2:
        return ("auto", "tv", "omnibus", "binary", "sigmoid")
    flat = ("paninski", "sigmoid") if is_uniform(null.probabilities) else ()
    return ("auto", "tv", "omnibus", *flat)


def infer_identity(
    release: Release,
    *,
    null: Mapping[str, Any],
    alpha: float = 0.05,
    draws: int | None = None,
    found: Mapping[str, Any] | None = None,
    distribution: Null | None = None,
) -> RankTestResult:
    """Compute the test from a release and the record of its null distribution.

    Results in `found`, computed earlier from this release, and the null distribution
    `distribution` of its statistic are not computed again.
    """
    check_release(release)
    model = NullModel.from_record(null)
    plan = release.plan
    sample = tested_survey(release)
    xi = share_of_test(plan)
    settings = dict[str, Any](plan.settings)
    known = plan.method in _methods(model, sample) and PVALUE not in plan.parts
    query = identity_statistic(model, sample, plan.method, xi=xi, **settings) if known else None
    if query is None or query.name != plan.mechanism:
        raise ValueError("release must be of an IdentityTest, but it is of another model.")
    against = OTHER_ANSWERS if model.worths else _H1[settings.get("alternative", "two-sided")]
    if "alternative" not in settings and model.words.startswith("all "):
        against = "some are more likely than others."
    return read_test(
        distribution,
        release=release,
        test="IdentityTest",
        method=plan.method,
        alpha=checks.check_alpha(alpha),
        hypotheses=(model.words, against),
        draws=wanted_draws(draws, sample),
        simulation=found,
        notes=against_null(release),
        query=query,
        null_model=model,
        settings={"null": model.to_record()},
    )
