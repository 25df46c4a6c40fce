"""Pooling of results: several releases of one survey, or of several surveys."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from privrank.release.release import Release
from privrank.release.survey import Design
from privrank.results.aggregation import AggregationResult
from privrank.results.btl import BTLResult
from privrank.results.poolable import Effects, Survey, counted_twice
from privrank.results.pooled import PooledResult, pooled
from privrank.results.topk import TopKResult
from privrank.util.checks import PrivrankWarning, check_alpha, check_choice, check_items

__all__ = ["pool"]

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
    have equal values (else effects='random') and nobody answered in two; ``docs/assumptions.md``
    says what comes about otherwise.

    Parameters
    ----------
    results : sequence of results
        Two or more private fits of :class:`privrank.PrivateBTL`, or two or more of
        :class:`privrank.PrivateRankAggregation`, of the same items. Central and local results may
        be mixed if surveys are different.
    survey : {"same", "different"}
        Whether all results are of the same respondents. A release does not show it, and the errors
        depend on it: with ``"same"`` releases are weighted by the inverse of their noise variance
        and the sampling error is counted once, with ``"different"`` all errors are independent. One
        survey declared ``"different"`` gives standard errors that are too small and an epsilon that
        is too low; a warning names releases whose public facts are equal, and reports that may be
        part of others, and nothing else in the releases would tell.
    effects : {"common", "random"}
        Of different surveys: whether all have the same values, up to sampling and noise, or values
        that differ about a mean, which is then estimated, with their standard deviation `tau`.
        Where sites do differ, intervals for common values cover too rarely: 95 % ones .90 where
        worths differ by a standard deviation of .15, .73 at .3. With two or three surveys those for
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
        If there are fewer than two results, they are not of one kind, items, link or target, one
        of them is there twice or is not private, or facts of one survey differ.

    Notes
    -----
    Weights, errors and the test: :mod:`privrank.bradley_terry.pooling`; random effects:
    :mod:`privrank.bradley_terry.randomeffects`. Pooled worths have no
    penalty of their results': the equations of all releases are solved together, and the bias of
    their ridge is corrected.

    The pooled standard error is at most that of every release alone with the same estimates of
    sampling error and information (``best_single``). What a release prints by itself may be less,
    as it has its own estimates of both. Intervals of worths invert score tests, as those of one
    release do (:mod:`privrank.bradley_terry.pooledtests`). Intervals of Borda scores take the
    largest sampling variance of such a mean, and so cover more often than they say.

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
    check_choice("survey", survey, Survey)
    check_choice("effects", effects, Effects)
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
    alpha = check_alpha(alpha)
    called = () if names is None else tuple(map(str, check_items(names, "names")))
    if called and len(called) != len(results):
        raise ValueError(f"names must hold one for each of the {len(results)} results.")
    _check_kinds(results)
    _check_releases(results)
    _check_facts(results, survey)
    if survey == "different":
        for message in counted_twice([each.release for each in results], called):
            warnings.warn(message, PrivrankWarning, stacklevel=2)
    return pooled(results, survey, alpha, effects, called)


def _check_kinds(results: Sequence[Any]) -> None:
    """Refuse what is no result that can be pooled, and different kinds."""
    if any(isinstance(each, TopKResult) for each in results):
        raise TypeError(
            "results must not be of PrivateTopK, whose win rates depend on who met whom: pool the "
            "worths of their releases, pr.PrivateBTL.from_release(result.release)."
        )
    if not all(isinstance(each, BTLResult | AggregationResult) for each in results):
        raise TypeError(
            "results must be of PrivateBTL or of PrivateRankAggregation, and JSON text is read "
            "with privrank.from_json(text) before."
        )
    if len({isinstance(each, BTLResult) for each in results}) > 1:
        raise TypeError("results must be of one kind: pool worths and consensus rankings apart.")


def _check_releases(results: Sequence[Poolable]) -> None:
    """Refuse runs without noise, and the same release twice, whose noise is not independent."""
    if any(each.release.source == "none" for each in results):
        raise ValueError(
            "results must be private, and one has epsilon=inf: fit it with a finite epsilon."
        )
    drawn = [_drawn(each) for each in results]
    if any(one == other for one, other in combinations(drawn, 2)):
        raise ValueError(
            "results must be of different releases, and one is there twice: leave one of them out, "
            "as the same noise would count as independent."
        )


def _drawn(result: Poolable) -> str:
    """Return what a release says of the data, by which the same one is known again."""
    record = result.release.to_record()
    return json.dumps([record["parts"], record["design"]])


def _check_facts(results: Sequence[Poolable], survey: Survey) -> None:
    """Refuse results that are not about the same numbers, or not of the survey they are said."""
    releases, first = [each.release for each in results], results[0]
    if any(each.items != first.items for each in results):
        raise ValueError("results must have the same items, in the same order.")
    for each in results:
        if isinstance(each, BTLResult) and each.release.design.covariates is not None:
            raise ValueError("results must have no covariates: pool fits to each group instead.")
        if isinstance(each, AggregationResult):
            each._scores()
    if isinstance(first, BTLResult):
        if any(release.link != releases[0].link for release in releases):
            raise ValueError("results must have one link: read them with from_release(link=...).")
    else:
        _check_readings(results)
    if survey == "different":
        if isinstance(first, AggregationResult) and first.target == "sample":
            raise ValueError(
                "results of different surveys must be about a population, and target='sample' is "
                "about the respondents of each: fit with target='population'."
            )
        return
    _check_one_survey(releases)


def _check_one_survey(releases: Sequence[Release]) -> None:
    """Refuse releases that cannot be of the same answers."""
    if any(release.local for release in releases):
        raise ValueError(
            "results of the local model are of other answers in every release, so survey='same' "
            "does not apply: use survey='different' for different respondents."
        )
    if any(isinstance(each.survey, Design) and each.survey.excess == "sample" for each in releases):
        raise ValueError(
            "results of one survey must be of the same rows, and with excess='sample' every fit "
            "draws its own: fit once, with the whole epsilon."
        )
    if any(release.survey.to_record() != releases[0].survey.to_record() for release in releases):
        raise ValueError(
            "results of one survey must have the same public facts (number of units, design, "
            "max_rows, ...), and these differ: use survey='different' if respondents are others."
        )


def _check_readings(results: Sequence[Any]) -> None:
    """Refuse consensus rankings with other targets, or that read ties and missing items apart."""
    if len({each.target for each in results}) > 1:
        raise ValueError("results must have one target: fit all with target='population'.")
    read = [
        {name for name in each.release.plan.settings if name.startswith(("ties", "missing"))}
        for each in results
    ]
    if any(each != read[0] for each in read):
        raise ValueError("results must read ties and missing items alike: fit with one missing=.")
