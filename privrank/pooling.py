"""Pooling of results: several releases of one survey, or of several surveys."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from privrank.release.release import Release
from privrank.release.survey import Design, record_of
from privrank.results.aggregation import AggregationResult
from privrank.results.btl import BTLResult
from privrank.results.pooled import Effects, PooledResult, Survey, pooled, twice_notes
from privrank.results.topk import TopKResult
from privrank.util import checks

Poolable = BTLResult | AggregationResult


def pool(
    results: Sequence[Poolable],
    *,
    survey: Survey,
    effects: Effects = "common",
    names: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> PooledResult:
    """Pool results of several releases: of one survey, or of several surveys or sites.

    Nothing but the releases is read, so that sites need to share their results' JSON only:
    ``pr.pool([pr.from_json(text) for text in texts], survey="different")``.

    This holds if what each result rests on does, and with ``survey="different"`` if all surveys
    have equal values (else effects='random') and nobody answered in two. What comes about
    otherwise: :doc:`assumptions </assumptions>`.

    Parameters
    ----------
    results : sequence of results
        Two or more private fits of :class:`privrank.PrivateBTL`, or two or more of
        :class:`privrank.PrivateRankAggregation`, of the same items in one order, which sites agree
        on before they fit. Worths may be mixed with those
        of the local model if surveys are different; of a consensus tallies are added instead.
    survey : {"same", "different"}
        Whether all results are of the same respondents. A release does not show it, and the errors
        depend on it. With ``"same"`` releases are weighted by the inverse of their noise variance
        and the sampling error is counted once. With ``"different"`` all errors are independent. One
        survey declared ``"different"`` gives standard errors that are too small and an epsilon that
        is too low. A warning names releases whose public facts are equal; nothing else in the
        releases would show it.
    effects : {"common", "random"}
        Of different surveys: whether all have the same values, up to sampling and noise, or values
        that differ about a mean, which is then estimated, with their standard deviation `tau`.
        Where sites do differ, intervals for common values cover too rarely: 95 % ones .60 where
        worths differ by a standard deviation of .15, .38 at .3. With two or three surveys those for
        random effects are wide.
    names : sequence of str, optional
        What the results are called in tables and figures, such as the sites; by default release 1,
        release 2 and so on.
    alpha : float, default 0.05
        Significance level of intervals.

    Returns
    -------
    PooledResult
        Worths, or Borda scores and pair fractions, with a test that all releases agree.

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two results, they are not of one kind, items or link, one
        of them is there twice or is not private, or facts of one survey differ.

    See Also
    --------
    privrank.PooledResult : What is returned.
    privrank.summary_col : Several results side by side, not combined.

    Notes
    -----
    Weights, errors, the test and random effects: :mod:`privrank.results.pooling`. With
    ``ties="davidson"`` worths are pooled, and each result has its own tie parameter. Pooled worths
    have no penalty of their results': the equations of all releases are solved together, and the
    bias of their ridge is corrected.

    The pooled standard error is at most that of every release alone with the same estimates of
    sampling error and information (``bse_single``). What a release prints by itself may be less,
    as it has its own estimates of both. Intervals are Wald's with Student's t, whose degrees of
    freedom allow for noise that is not normal. Intervals of Borda scores take the largest sampling
    variance of such a mean, and so cover more often than they say.

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
            "effects='random' is for surveys that differ, and survey='same' says that all is one: "
            "leave it out, or use survey='different'."
        )
    if not isinstance(results, Sequence) or isinstance(results, str) or len(results) < 2:
        raise TypeError(
            "results must be a list of at least two results; those of an archive are read with "
            "privrank.from_json(text)."
        )
    alpha = checks.check_alpha(alpha)
    called = () if names is None else tuple(map(str, checks.check_items(names, "names")))
    if called and len(called) != len(results):
        raise ValueError(f"names must hold one for each of the {len(results)} results.")
    # what is refused, and warned of, is known from the releases alone
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
    """Refuse what is no result that can be pooled, different kinds, and one release twice."""
    if any(isinstance(result, TopKResult) for result in results):
        raise TypeError(
            "results must not be of PrivateTopK, whose win rates depend on who met whom: pool "
            "worths of PrivateBTL instead."
        )
    if not all(isinstance(result, BTLResult | AggregationResult) for result in results):
        raise TypeError(
            "results must be of PrivateBTL or of PrivateRankAggregation, not of tests, and JSON "
            "text is read with privrank.from_json(text) first."
        )
    if len({isinstance(result, BTLResult) for result in results}) > 1:
        raise TypeError("results must be of one kind: pool worths and consensus rankings apart.")
    surveys = [result.release.survey for result in results]
    if _differ([isinstance(survey, Design) and survey.davidson for survey in surveys]):
        raise ValueError(
            "results must read ties alike. Fit all of them with ties='davidson', or none."
        )
    if any(result.release.source == "none" for result in results):
        raise ValueError(
            "results must be private, and one has epsilon=inf: fit it with a finite epsilon."
        )
    # by what it says of the data a release is known again, whoever has read it
    records = [result.release.to_record() for result in results]
    drawn = {json.dumps([record["parts"], record["design"]]) for record in records}
    if len(drawn) < len(results):
        raise ValueError(
            "results must be of different releases, and one is there twice: leave one of them out, "
            "as the same noise would count as independent."
        )
    if _differ([result.items for result in results]):
        raise ValueError(
            "results must have the same items, in the same order. Fit all with the same items=."
        )


def _differ(values: Sequence[Any]) -> bool:
    """Whether not all values are equal."""
    return any(value != values[0] for value in values)


def _check_worths(results: Sequence[Any], survey: Survey) -> None:
    """Refuse fits of other numbers, and weights that the noise of pair counts would choose."""
    if any(result.release.design.covariates is not None for result in results):
        raise ValueError("results must have no covariates: pool fits to each group instead.")
    if _differ([result.release.link for result in results]):
        raise ValueError("results must have one link. Read them with from_release(link=...).")
    equations = [result._inference().equations for result in results]
    if survey == "same" and _differ([equation.function for equation in equations]):
        raise ValueError(
            "results of one survey must have the same score equations. Fit all with one method=."
        )
    for result, facts in zip(results, equations, strict=True):
        # weights are taken from the counts, so that these must be more than their noise
        design = result.release.design
        noise = math.sqrt(facts.count_variance)
        expected = design.nominal_total / design.sensitivity.pairs
        if survey == "different" and noise > expected:
            raise ValueError(
                f"results of different surveys must have pair counts that are no smaller than "
                f"their noise, and one has {expected:.3g} comparisons for each pair beside noise "
                f"of {noise:.3g}: leave it out, or fit it with a larger epsilon or a public design."
            )
        if facts.components.projection is not None:
            raise ValueError(
                "results must identify all differences of worths, and the released comparisons of "
                "one do not connect all items: leave it out, or fit it with a larger epsilon."
            )


def _check_votes(results: Sequence[Any]) -> None:
    """Refuse consensus rankings of other numbers, and those of reports, whose tallies add up."""
    if any(result.release.local for result in results):
        raise ValueError(
            "results must not be consensus rankings of reports: add the tallies of their sites, "
            "tally1 + tally2, and read the consensus of all reports."
        )
    if any(result.target == "sample" for result in results):
        raise ValueError(
            "results must be about a population, and target='sample' is about the respondents of "
            "each: fit with target='population'."
        )
    readings = [
        {name for name in result.release.plan.settings if name.startswith(("ties", "missing"))}
        for result in results
    ]
    if _differ(readings):
        raise ValueError(
            "results must read ties and missing items alike. Fit all with one missing=."
        )


def _check_one_survey(releases: Sequence[Release]) -> None:
    """Refuse releases that cannot be of the same answers."""
    if any(release.local for release in releases):
        raise ValueError(
            "results of the local model are of other answers in every release, so survey='same' "
            "does not apply: use survey='different' for different respondents."
        )
    surveys = [release.survey for release in releases]
    if any(isinstance(survey, Design) and survey.excess == "sample" for survey in surveys):
        raise ValueError(
            "results of one survey must be of the same rows, and with excess='sample' every fit "
            "draws its own: fit once, with the whole epsilon."
        )
    if _differ([record_of(survey) for survey in surveys]):
        raise ValueError(
            "results of one survey must have the same public facts (number of units, design, "
            "max_rows, ...). Use survey='different' if respondents are others."
        )
