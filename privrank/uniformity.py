"""Private tests of uniformity for rankings and choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Self, get_args

import numpy as np

from privrank.encode.choices import encode_tested, formula_tested
from privrank.encode.samples import encode_counts
from privrank.hypotheses.nulls import Null, RandomBit, Statistic, null_for, uniform, wanted_draws
from privrank.local import uniform as reported
from privrank.local.tally import Tally
from privrank.mechanisms import ranknorms
from privrank.mechanisms.categories import distance_from_null, omnibus_of
from privrank.mechanisms.choices import score_norm
from privrank.mechanisms.samples import release_sample
from privrank.plans.declarations import Gaps, Ties, read_null
from privrank.plans.samples import (
    TEST,
    budget_shares,
    effect_beside,
    guaranteed,
    least_bias,
    plan_sample,
    share_of_test,
)
from privrank.published import bfz21
from privrank.release.names import EFFECT
from privrank.release.release import Release, check_release, fit_error_guard
from privrank.release.survey import Design, Sample, Setting, kind_of, size_of
from privrank.results.ledger import Budget
from privrank.results.ranktest import RankTestResult, read_test, tested_survey
from privrank.results.testnotes import hypotheses_of_uniformity
from privrank.util import checks

OfBits = Literal["truncated", "bucket"]
UniformityMethod = Literal[
    "auto", "borda", "laplace", "two-sample", "mallows", "omnibus", OfBits, "tv"
]

Build = Callable[[int, int, float], Statistic]


_RANKINGS: dict[str, Build] = {
    "auto": ranknorms.of_rankings,
    # without noise Friedman's test, which is the plain norm
    "borda": lambda n, m, xi: (
        ranknorms.plain_norm(n, m) if math.isinf(xi) else ranknorms.borda_norm(n, m)
    ),
    "laplace": lambda n, m, xi: bfz21.pair_squares(n, m),
    "two-sample": lambda n, m, xi: bfz21.two_rankings(m),
    "mallows": lambda n, m, xi: bfz21.central_distance(n, m),
    "omnibus": ranknorms.of_orders,
}
_CHOICES: dict[str, Build] = {
    "auto": ranknorms.of_choices,
    "omnibus": lambda n, k, xi: omnibus_of(n, uniform(k), xi),
    "tv": lambda n, k, xi: distance_from_null(n, uniform(k)),
}
_BITS = get_args(OfBits)


class UniformityTest:
    """Test that all rankings (or categories) are equally likely.

    Do the rankings show any consensus, or could they be random?

    Parameters
    ----------
    rankings : data frame, ndarray of shape (n, m), or Series
        A rankings frame: one row per ranking, one column per item, cells the ranks 1 (best) to m.
        A Series is a sample of choices; see also `from_formula` and `from_counts`. Or choices from
        publicly offered sets, from :func:`privrank.as_choices`.
    items : sequence of str, optional
        The item columns; by default every column except `respondent`. For a Series, all
        categories. They are required, because the categories of a pandas categorical may be only
        those that occur. For choices from sets, by default the items of the conversion.
    categories : sequence of str, optional
        The same as `items` for a Series; the name agrees with `from_formula` and `from_counts`.
    respondent : str, optional
        Column or pandas index level of a frame (not of a Series) that identifies the respondent of
        each row. The unit of privacy is then a respondent with all their rows. The test uses one
        of these rows, drawn at random and in secret. For choices from sets the test uses all rows,
        and `respondent` must be stated; None means that each task is a unit.
    max_rows : int, default 1
        Public bound on the rows (or tasks) of a respondent.
    ties : {"refuse", "complete"}
        Whether items may share a rank. With ``"complete"`` each fit draws the order of tied items
        from H0, in secret.
    missing : {"refuse", "bottom", "complete"}
        Whether items may have no rank. ``"bottom"``: they are below the ranked items and tied (a
        top-k list). ``"complete"``: their ranks are unknown, and each fit draws them from H0.

    Raises
    ------
    ValueError, TypeError
        If the frame or an argument violates a rule.

    See Also
    --------
    privrank.IdentityTest : Test of a specified distribution.
    privrank.ClosenessTest : Test that groups have the same distribution.

    Notes
    -----
    **Assumptions.** Independent respondents (if families or classes answer alike, name the family
    or class in `respondent`); ignorable nonresponse (whether a question is answered does not depend
    on the answer). For the consequences of violations, see :doc:`assumptions </assumptions>`.

    **Choices from sets.** H0 is that all answers to a set are equally likely, and that all tasks
    are answered independently of each other. The statistic compares the scores of the items, summed
    over all tasks, with their mean and covariance under H0
    (:func:`privrank.mechanisms.choices.score_norm`). Camps reject: if respondents have opposite
    preferences, their own answers are dependent, so H0 is not true even if the worths are equal on
    average. Which sets were offered is public.

    **Privacy.** Neighbours replace one unit; the number of units is public. The statistic of each
    method is a whole number with a proved bound on the change by one row. It has discrete Laplace
    noise in proportion to this bound; see :mod:`privrank.mechanisms.ranknorms` and
    :mod:`privrank.mechanisms.samples`.

    **Validity.** The distribution of the noisy statistic under H0 is a function of public numbers.
    The p-value is therefore post-processing and accounts for the noise. The Monte Carlo draws are
    from one public sequence per statistic and size, and are cached on disk.

    References
    ----------
    Busa-Fekete, Fotakis and Zampetakis (2021), with corrections to tests that are not private as
    published; Acharya, Sun and Zhang (2018) for categories.

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

    @checks.without_weights
    def __init__(
        self,
        rankings: object,
        *,
        items: object = None,
        categories: object = None,
        respondent: str | None = checks.UNSTATED,
        max_rows: int = 1,
        ties: Ties = "refuse",
        missing: Gaps = "refuse",
    ) -> None:
        self._encoded = encode_tested(
            rankings,
            items=items,
            categories=categories,
            respondent=respondent,
            max_rows=max_rows,
            ties=ties,
            missing=missing,
        )

    @classmethod
    @checks.without_weights
    def from_formula(cls, formula: str, data: object, **arguments: Any) -> Self:
        """Build the test from a formula.

        Parameters
        ----------
        formula : str
            Rankings: the item columns, ``"London + Paris + Milano ~ 1"``. Choices: one column of
            categories, ``"choice ~ 1"``. Choices from sets: the answers, ``"best + worst ~ 1"``,
            ``"best ~ 1"``, ``"worst ~ 1"`` or ``"order ~ 1"``.
        data : data frame
            Frame with these columns.
        **arguments
            `respondent`, `max_rows`; for rankings `ties` and `missing`; for choices `categories`,
            required unless the column is a polars Enum or contains True and False; for choices from
            sets `items`.

        Returns
        -------
        UniformityTest

        Examples
        --------
        >>> import numpy as np
        >>> import privrank as pr
        >>> immigration = pr.datasets.load_immigration()
        >>> test = pr.UniformityTest.from_formula(
        ...     "sex ~ 1", immigration.students, categories=immigration.levels["sex"])
        >>> round(test.fit(epsilon=np.inf, method="tv").pvalue, 3)
        0.266
        """
        return cls(formula_tested(formula, data, arguments))

    @classmethod
    def from_counts(cls, counts: Mapping[str, int] | object, categories: object = None) -> Self:
        """Build the test from counts by category; the unit of privacy is one choice.

        Parameters
        ----------
        counts : mapping, Series or sequence of int
            How often each category was chosen.
        categories : sequence of str
            All categories, including those that no one chose. A mapping or a Series, such as the
            result of ``value_counts()``, may contain only the categories that occur.

        Returns
        -------
        UniformityTest

        Examples
        --------
        >>> test = pr.UniformityTest.from_counts({"yes": 61, "no": 37}, categories=["yes", "no"])
        >>> round(test.fit(epsilon=np.inf).pvalue, 3)
        0.02
        """
        return cls(encode_counts(counts, categories))

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self._encoded.sample
        return f"<UniformityTest of {kind_of(sample)}: {size_of(sample)}>"

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        method: UniformityMethod = "auto",
        alpha: float = 0.05,
        tolerance: float | None = None,
        draws: int | None = None,
        effect_epsilon: float | None = None,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> RankTestResult:
        """Run the test under differential privacy.

        The test uses `epsilon` and `delta` once.

        Parameters
        ----------
        epsilon : float
            Privacy budget to spend; ``numpy.inf`` for the non-private test.
        delta : float, default 0
            Privacy delta.
        method : str, default "auto"
            The test statistic. For rankings, ``"auto"`` combines a test of mean ranks, at nine
            tenths of the level, with a test against deviations that leave mean ranks equal, at one
            tenth. ``"borda"`` tests mean ranks alone: the norm of the summed rank vectors, capped
            if n and m show that this lowers the noise (without noise, Friedman's test).
            ``"laplace"`` is the sum of squared wins in disjoint random pairs of items.
            ``"mallows"`` uses distances to the order of the columns. ``"two-sample"``, for two
            rankings, is their distance. ``"omnibus"``, for at most 6 items, uses counts of all
            orders. ``"truncated"`` and ``"bucket"`` release the decision alone.

            For choices, ``"auto"`` or ``"omnibus"`` combines small deviations in many categories
            with large deviations in few. ``"tv"`` is the total variation distance, with a
            confidence interval. For choices from sets there is only ``"auto"``. The summary states
            the alternatives against which a statistic has little power.
        alpha : float, default 0.05
            Significance level.
        tolerance : float, optional
            Total variation distance at which ``"truncated"`` and ``"two-sample"`` have their
            published guarantee; by default the smallest possible. For ``"two-sample"`` with few
            items there is no such distance; its size does not depend on `tolerance`.
        draws : int, optional
            Number of Monte Carlo draws of the null distribution, if it is not known exactly. The
            default is 9,999; it is 1,999 or 999 if the numbers of rankings and items make a draw
            slow. Draws are cached on disk. Fewer draws give a coarser p-value; the summary states
            its Monte Carlo standard error.
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
        privrank.power.UniformityPower : Power and sample size.

        Examples
        --------
        >>> result = test.fit(epsilon=1.0, rng=np.random.default_rng(2))
        >>> result.pvalue < 0.01
        True
        """
        epsilon, delta, alpha = checks.check_fit(epsilon, delta, alpha, rng)
        checks.check_choice("method", method, UniformityMethod)
        checks.check_tolerance(tolerance)
        effect_epsilon = checks.check_extra("effect_epsilon", effect_epsilon, epsilon)
        sample = self._encoded.sample
        draws = wanted_draws(draws, sample, uniform=True)
        # the statistic, its noise and its null distribution are public, so they come before the
        # budget is spent
        xi = budget_shares(epsilon, delta, {EFFECT: effect_epsilon})[1][TEST]
        # a one-bit method draws its bit at the level; a statistic can be compared at any level
        query, constants = uniformity_statistic(
            method, sample, xi=xi, alpha=alpha, tolerance=tolerance
        )
        null = read_null("uniform", sample)
        effect = effect_beside(
            query,
            sample,
            partial(distance_from_null, sample.nobs, null.probabilities),
            epsilon,
            effect_epsilon,
        )
        distribution = null_for(query, draws, alpha)
        plan = plan_sample(query, epsilon, delta, effect, "UniformityTest", method, constants)
        release = release_sample(
            self._encoded, query, plan, null=null, effect=effect, budget=budget, rng=rng
        )
        return fit_error_guard(
            partial(infer_uniformity, release, alpha=alpha, draws=draws, distribution=distribution),
            release,
            "UniformityTest.from_release(error.release)",
        )

    @staticmethod
    def from_reports(
        tally: Tally, *, alpha: float = 0.05, draws: int | None = None
    ) -> RankTestResult:
        """Run the test on a tally of local reports.

        Parameters
        ----------
        tally : Tally
            Local reports, counted by ``protocol.tally(reports)``. The protocol must have no ties;
            :class:`privrank.local.PairBits` is made for this test.
        alpha : float, default 0.05
            Significance level.
        draws : int, optional
            Monte Carlo draws of the null distribution; by default 9,999, fewer for many reports.

        Returns
        -------
        RankTestResult

        See Also
        --------
        privrank.local.PairBits : The protocol made for this test.

        Notes
        -----
        **Validity.** The null distribution is exact up to its simulation, for any number of local
        reports. It is conditional on how often each pair or list of items was asked; for protocols
        with several random pairs or directions per report, it is conditional on each report up to
        reversal. Proofs are in :mod:`privrank.local.uniform`. All these statistics have power only
        against differences in mean ranks, or in the mean ranks of the public pairs.

        Examples
        --------
        >>> from privrank.local import PairBits
        >>> protocol = PairBits(["tea", "coffee", "milk"], epsilon=4.0, pairing="private")
        >>> tally = protocol.tally(protocol.simulate(rankings, np.random.default_rng(3)))
        >>> pr.UniformityTest.from_reports(tally, draws=999).reject
        True
        """
        if draws is not None:
            checks.check_count("draws", draws, low=19)
        return infer_uniformity(reported.release_test(tally, draws), alpha=alpha)

    @staticmethod
    def from_release(
        release: Release, *, alpha: float = 0.05, draws: int | None = None
    ) -> RankTestResult:
        """Compute the test from an existing release, at no additional privacy cost.

        Parameters
        ----------
        release : Release
            The release of a fit of this test.
        alpha : float, default 0.05
            Significance level; one-bit methods keep the level of their fit.
        draws : int, optional
            Number of Monte Carlo draws of the null distribution; see :meth:`fit`.

        Returns
        -------
        RankTestResult

        Examples
        --------
        >>> pr.UniformityTest.from_release(result.release, alpha=0.01).reject
        True
        """
        return infer_uniformity(release, alpha=alpha, draws=draws)


def uniformity_statistic(
    method: str, sample: Sample | Design, *, xi: float, alpha: float, tolerance: float | None
) -> tuple[Statistic | RandomBit, dict[str, float]]:
    """Return the statistic that a method releases, and its public constants.

    Arguments are the pure budget `xi`, the level of one-bit methods, and the distance at which a
    published guarantee is requested. Raises an error for methods that do not apply.
    """
    checks.check_choice("method", method, _known(sample), kind_of(sample))
    if method in _BITS:
        checks.check_noisy(method, xi, "laplace")
    if tolerance is not None and method not in ("truncated", "two-sample"):
        raise ValueError(
            f"tolerance is for method='truncated' and method='two-sample', whose guarantees depend "
            f"on it. Omit it for method={method!r}."
        )
    n = sample.nobs
    m = len(sample.items)
    constants = {}
    if method == "truncated":
        # stored in the release, which needs the level and the bias (or buckets) to be read again
        constants = {"level": alpha, "bias": least_bias(n, m, xi, alpha, tolerance)}
    elif method == "bucket":
        constants = {"level": alpha, "buckets": float(bfz21.private_buckets(n, m, xi, alpha))}
    elif method == "two-sample":
        constants = guaranteed(n, m, alpha, tolerance)
    return statistic_or_bit(method, sample, xi, constants), constants


def statistic_or_bit(
    method: str,
    sample: Sample | Design,
    xi: float,
    constants: Mapping[str, Setting],
    worths: tuple[float, ...] = (),
) -> Statistic | RandomBit:
    """Return the statistic of a method at a pure budget `xi`.

    For choices from sets `worths` are the worths under H0, equal ones by default.
    """
    n = sample.nobs
    m = len(sample.items)
    if isinstance(sample, Design):
        return score_norm(sample, worths or (0.0,) * len(sample.items))
    if method == "truncated":
        return bfz21.ramp_bit(n, m, float(constants["level"]), float(constants["bias"]))
    if method == "bucket":
        return bfz21.bucket_bit(m, float(constants["level"]), int(constants["buckets"]))
    return (_CHOICES if sample.kind == "choices" else _RANKINGS)[method](n, m, xi)


def infer_uniformity(
    release: Release,
    *,
    alpha: float = 0.05,
    draws: int | None = None,
    found: Mapping[str, Any] | None = None,
    distribution: Null | None = None,
) -> RankTestResult:
    """Compute the test from a release: post-processing, at no privacy cost.

    Results in `found`, computed earlier from this release, and the null distribution
    `distribution` of its statistic are not computed again.
    """
    check_release(release)
    alpha = checks.check_alpha(alpha)
    if release.local:
        return reported.infer_reports(release, alpha=alpha, simulation=found)
    sample = tested_survey(release)
    plan = release.plan
    # the same public numbers give the same statistic; another name belongs to another model
    xi = share_of_test(plan)
    known = xi and plan.method in _known(sample)
    query = statistic_or_bit(plan.method, sample, xi, plan.settings) if known else None
    if query is None or query.name != release.mechanism:
        raise ValueError("release must be of a UniformityTest, but it is of another model.")
    return read_test(
        distribution,
        release=release,
        test="UniformityTest",
        method=plan.method,
        alpha=plan.number("level") if isinstance(query, RandomBit) else alpha,
        hypotheses=hypotheses_of_uniformity(sample),
        draws=wanted_draws(draws, sample, uniform=True),
        simulation=found,
        query=query,
        null_model=read_null("uniform", sample),
    )


def _known(sample: Sample | Design) -> tuple[str, ...]:
    if isinstance(sample, Design):
        return ("auto",)
    return (*_CHOICES,) if sample.kind == "choices" else (*_RANKINGS, *_BITS)
