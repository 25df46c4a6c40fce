"""Pooling of results: several releases of one survey, or of several surveys."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from privrank.release.records import record_of
from privrank.release.release import Release
from privrank.release.survey import Design
from privrank.results.aggregation import AggregationResult
from privrank.results.btl import BTLResult
from privrank.results.pooled import Effects, PooledResult, Survey, pooled, twice_notes
from privrank.results.topk import TopKResult
from privrank.util import checks


def pool(
    results: Sequence[BTLResult | AggregationResult],
    *,
    survey: Survey,
    effects: Effects = "common",
    names: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> PooledResult:
    """Pool the results of several releases, from one or several surveys.

    Only the releases are used, so sites share no more than the JSON of their results:
    ``pr.pool([pr.from_json(text) for text in texts], survey="different")``.

    Parameters
    ----------
    results : sequence of results
        At least two private fits of :class:`privrank.PrivateBTL`, or at least two of
        :class:`privrank.PrivateRankAggregation`. All have the same items in the same order, which
        sites must agree on before they fit. With different surveys, fits in the central and the
        local model can be pooled. For consensus rankings of local reports, add the tallies instead.
    survey : {"same", "different"}
        Whether all results are from the same respondents. Releases do not show this, but the
        standard errors depend on it. With ``"same"`` the releases are weighted by the inverse of
        their noise variances, and the sampling error is included once. With ``"different"`` all
        errors are independent. If releases of one survey are declared ``"different"``, standard
        errors and epsilon are too small. A warning names releases with equal public facts; this is
        the only evidence that the releases contain.
    effects : {"common", "random"}
        For different surveys: whether all have the same parameters (``"common"``), or parameters
        that vary about a mean (``"random"``). The pooled estimate is then this mean, and the
        standard deviation `tau` is estimated as well. If sites differ, common-effect intervals
        undercover: for five sites, 95% intervals have coverage 0.60 if worths differ by a standard
        deviation of 0.15, and 0.38 if it is 0.3 (study ``pooling_random``). With two or three
        surveys random-effects intervals are wide.
    names : sequence of str, optional
        Names of the results in tables and figures, such as the sites; by default release 1,
        release 2 and so on.
    alpha : float, default 0.05
        Significance level of intervals.

    Returns
    -------
    PooledResult
        Worths, or Borda scores and pairwise fractions, with a test of agreement of the releases.

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two results; if they differ in kind, items or link; if one
        is given twice or is not private; or if the public facts of one survey differ.

    See Also
    --------
    privrank.PooledResult : Results of pooling.
    privrank.summary_col : Compare several results side by side, without pooling.

    Notes
    -----
    **Assumptions.** The assumptions of each result. With ``survey="different"`` also: all surveys
    share the same parameters (if not, use ``effects="random"``) and no respondent took part
    twice. For the consequences of violations, see :doc:`assumptions </assumptions>`.

    **Statistic.** Weights, standard errors, the test and random effects are defined in
    :mod:`privrank.results.pooling`. With ``ties="davidson"`` worths are pooled, and each result
    keeps its own tie parameter. The ridge penalties of the results do not affect pooled worths: the
    equations of all releases are solved together, and the bias of their ridge is corrected.

    **Standard errors.** The pooled standard error is at most the standard error of each single
    release, computed with the same estimates of sampling error and information (``bse_single``).
    The summary of a single release may have a smaller standard error, because it has its own
    estimates of both. Intervals are Wald intervals with Student's t quantiles; the degrees of
    freedom account for noise that is not normal. Intervals of Borda scores use the largest sampling
    variance of such a mean and are therefore conservative.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> rankings = pr.datasets.load_university().rankings(np.random.default_rng(1))
    >>> model = pr.PrivateRankAggregation(rankings, respondent="respondent")
    >>> seeded = [np.random.default_rng(k) for k in (2, 3)]
    >>> releases = [model.fit(e, rng=rng) for e, rng in zip((0.5, 1.0), seeded)]
    >>> pr.pool(releases, survey="same")
    <PooledResult: 2 releases, same survey, 6 items, epsilon = 1.5>
    """
    checks.check_choice("survey", survey, Survey)
    checks.check_choice("effects", effects, Effects)
    if effects == "random" and survey == "same":
        raise ValueError(
            "effects='random' is for surveys that differ, but survey='same' declares one survey. "
            "Omit effects, or use survey='different'."
        )
    if not isinstance(results, Sequence) or isinstance(results, str) or len(results) < 2:
        raise TypeError(
            "results must be a list of at least two results. To read a JSON text, call "
            "privrank.from_json(text) first."
        )
    alpha = checks.check_alpha(alpha)
    called = () if names is None else tuple(map(str, checks.check_items(names, "names")))
    if called and len(called) != len(results):
        raise ValueError(f"names must contain one name for each of the {len(results)} results.")
    # errors and warnings depend on the releases alone
    _check_kinds(results)
    if isinstance(results[0], BTLResult):
        _check_worths(results, survey)
    else:
        _check_votes(results)
    if survey == "same":
        _check_one_survey([result.release for result in results])
    else:
        checks.warn(*twice_notes(results, called))
    return pooled(results, survey, alpha, effects, called)


def _check_kinds(results: Sequence[Any]) -> None:
    """Refuse results that cannot be pooled, of different kinds, or given twice."""
    checks.refuse_if(
        (
            any(isinstance(result, TopKResult) for result in results),
            "results must not be of PrivateTopK, because win rates depend on the opponents of each "
            "item. Pool worths of PrivateBTL instead.",
        ),
        (
            not all(isinstance(result, BTLResult | AggregationResult) for result in results),
            "results must be a list of PrivateBTL or PrivateRankAggregation results; results of "
            "tests cannot be pooled. To read a JSON text, call privrank.from_json(text) first.",
        ),
        (
            len({isinstance(result, BTLResult) for result in results}) > 1,
            "results must be of one kind. Pool worths and consensus rankings separately.",
        ),
        error=TypeError,
    )
    surveys = [result.release.survey for result in results]
    # the released values and public facts identify a release, however it was analysed
    records = [result.release.to_record() for result in results]
    checks.refuse_if(
        (
            _differ([isinstance(survey, Design) and survey.davidson for survey in surveys]),
            "results must treat ties alike. Fit all of them with ties='davidson', or none.",
        ),
        (
            any(result.release.source == "none" for result in results),
            "results must be private, but one has epsilon=inf. Fit it with a finite epsilon.",
        ),
        (
            len({json.dumps([one["parts"], one["design"]]) for one in records}) < len(results),
            "results must be of different releases, but one is given twice. Omit the duplicate, "
            "because its noise would be counted as independent.",
        ),
        (
            _differ([result.items for result in results]),
            "results must have the same items, in the same order. Fit all with the same items=.",
        ),
    )


def _differ(values: Sequence[Any]) -> bool:
    """Whether not all values are equal."""
    return any(value != values[0] for value in values)


def _check_worths(results: Sequence[Any], survey: Survey) -> None:
    """Refuse fits with other parameters, and pair counts too noisy for weights."""
    offered = [result.release.design for result in results]
    checks.refuse_if(
        (
            any(design.covariates is not None for design in offered),
            "results must have no covariates. Pool fits to each group instead.",
        ),
        (
            _differ([result.release.link for result in results]),
            "results must have one link. Read them with from_release(link=...).",
        ),
        (
            _differ(
                [
                    {*map(len, design.offered.sets)} if design.scaled_by_sets else None
                    for design in offered
                ]
            ),
            "results must have worths on one scale, and the scale of best-worst worths depends on "
            "the size of the offered sets. Pool results with sets of the same sizes.",
        ),
    )
    equations = [result._inference().equations for result in results]
    if survey == "same" and _differ([equation.function for equation in equations]):
        raise ValueError(
            "results of one survey must have the same score equations. Fit all with one method=."
        )
    for result, facts in zip(results, equations, strict=True):
        # weights are computed from the counts, which must therefore exceed their noise
        design = result.release.design
        noise = math.sqrt(facts.count_variance)
        expected = design.nominal_total / design.sensitivity.pairs
        checks.refuse_if(
            (
                survey == "different" and noise > expected,
                f"results of different surveys must have pair counts at least as large as their "
                f"noise, but one has {expected:.3g} comparisons per pair and noise of {noise:.3g}. "
                f"Omit it, or fit it with a larger epsilon or a public design.",
            ),
            (
                facts.components.projection is not None,
                "results must identify all differences of worths, but the released comparisons of "
                "one do not connect all items. Omit it, or fit it with a larger epsilon.",
            ),
        )


def _check_votes(results: Sequence[Any]) -> None:
    """Refuse consensus rankings that are not comparable, or of local reports."""
    checks.refuse_if(
        (
            any(result.release.local for result in results),
            "results must not be consensus rankings of local reports. Add the tallies of the "
            "sites, tally1 + tally2, and compute the consensus from the sum.",
        ),
        (
            any(result.target == "sample" for result in results),
            "results must be about a population, but target='sample' is about the respondents of "
            "each survey. Use target='population'.",
        ),
        (
            _differ(
                [
                    {
                        name
                        for name in result.release.plan.settings
                        if name.startswith(("ties", "missing"))
                    }
                    for result in results
                ]
            ),
            "results must treat ties and missing items alike. Fit all with one missing=.",
        ),
    )


def _check_one_survey(releases: Sequence[Release]) -> None:
    """Refuse releases that cannot be from the same answers."""
    surveys = [release.survey for release in releases]
    checks.refuse_if(
        (
            any(release.local for release in releases),
            "results of the local model are from other answers in every release, so survey='same' "
            "does not apply. Use survey='different' for different respondents.",
        ),
        (
            any(isinstance(survey, Design) and survey.excess == "sample" for survey in surveys),
            "results of one survey must use the same rows, but with excess='sample' every fit "
            "draws its own rows. Fit once, with the total epsilon.",
        ),
        (
            _differ([record_of(survey) for survey in surveys]),
            "results of one survey must have the same public facts (number of units, design, "
            "max_rows, ...). Use survey='different' if the respondents differ.",
        ),
    )
