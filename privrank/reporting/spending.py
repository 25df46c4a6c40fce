"""Spend, archive, read back: the releases behind the report and their ledgers."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from privrank import datasets
from privrank.aggregation import PrivateRankAggregation
from privrank.archive import from_json
from privrank.btl import PrivateBTL
from privrank.results.aggregation import AggregationResult
from privrank.results.btl import BTLResult
from privrank.results.ledger import Budget
from privrank.results.topk import TopKResult
from privrank.topk import PrivateTopK
from privrank.util.checks import PrivrankWarning

__all__ = ["CHAPTERS", "MULTIPLES", "TOP", "Chapter", "Findings", "investigate", "stop", "write"]

TOP = 2
"""Size of the top set; fixed before any release was seen, as its p-value needs."""

MULTIPLES = (0.5, 1.0, 2.0)
"""Each survey is fitted at these multiples of the main epsilon."""


Result = TypeVar("Result", BTLResult, AggregationResult)


@dataclass(frozen=True, slots=True)
class Chapter:
    """What the report says about one survey beyond its results."""

    load: Callable[[], datasets.Survey]
    heading: str
    design: str


CHAPTERS = (
    Chapter(
        datasets.load_university,
        "University: where to study abroad",
        "The missing answers are one pair of universities for a block of consecutive respondents, "
        "as if their questionnaires had not held that question. To call the design public is "
        "plausible here.",
    ),
    Chapter(
        datasets.load_immigration,
        "Immigration: which statement finds more acceptance",
        "Here the design is public by assumption only: respondents left out questions of their own "
        "accord, perhaps because of what the answer would have been. Whoever would rather protect "
        'that too fits the model with <code>design="private"</code>. The survey is small, so '
        "the noise weighs more than in the other one.",
    ),
)


@dataclass(frozen=True, slots=True)
class Findings:
    """All that the report shows of one survey, read back from the archive."""

    chapter: Chapter
    survey: datasets.Survey
    fits: tuple[BTLResult, ...]
    main: BTLResult
    top: TopKResult
    consensus: AggregationResult
    budget: Budget


def stop(sentence: str) -> NoReturn:
    """End the program with a sentence that says why."""
    raise SystemExit(f"privrank.reporting: {sentence}")


def _plain(epsilon: float) -> str:
    """Return an epsilon as it is typed, for file names."""
    return repr(epsilon).removesuffix(".0")


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all, so that a run that was cut short leaves no half release."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8", newline="\n")
    os.replace(partial, path)


def _open_ledger(path: Path, survey: datasets.Survey, archived: bool) -> Budget:
    """Return the survey's ledger, which keeps account and sets no limit."""
    if archived and not path.exists():
        stop(
            f"{path.parent} holds releases but not their ledger {path.name}: restore it, "
            f"or choose another --out."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return Budget(path, epsilon=math.inf, unit="respondent", label=survey.name)
    except (ValueError, OSError) as error:
        stop(str(error).removesuffix(".") + ", or choose another --out.")


def _read_fit(path: Path, survey: datasets.Survey, epsilon: float, kind: type[Result]) -> Result:
    try:
        result = from_json(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError):
        stop(f"{path} is not a release any more: restore it, or spend anew with --fresh.")
    expected = (survey.items, len(survey.students), epsilon, "secure")
    if not isinstance(result, kind) or expected != (
        result.items,
        result.nobs,
        result.epsilon,
        result.release.source,
    ):
        stop(
            f"{path} holds another release than its name says: restore it, or spend anew with "
            f"--fresh."
        )
    return result


def _fit_worths(survey: datasets.Survey, epsilon: float, budget: Budget) -> BTLResult:
    m = len(survey.items)
    model = PrivateBTL(
        survey.comparisons,
        items=survey.items,
        respondent="respondent",
        max_rows=m * (m - 1) // 2,
        ties=True,
        design="public",
    )
    result = model.fit(epsilon=epsilon, budget=budget)
    assert isinstance(result, BTLResult)  # no covariates
    return result


def _fit_consensus(survey: datasets.Survey, epsilon: float, budget: Budget) -> AggregationResult:
    # the pairs themselves, for a figure of them
    ranks = survey.rankings(ties="shared")
    model = PrivateRankAggregation(ranks, respondent="respondent", ties=True)
    return model.fit(epsilon=epsilon, releases="pairs", budget=budget)


_Fit = Callable[[datasets.Survey, float, Budget], BTLResult | AggregationResult]


def investigate(chapter: Chapter, store: Path, epsilon: float, fresh: bool) -> Findings:
    """Spend what is not in the archive yet, write it there, and read everything from there.

    **Privacy.** The ledger is on disk: what a release costs is in the file before its noise is
    drawn, so that the ledger may overstate what was released when a run is cut short but never
    understates it.
    """
    survey = chapter.load()
    epsilons = [epsilon * multiple for multiple in MULTIPLES]
    paths = {e: store / f"{survey.name}-worths-epsilon-{_plain(e)}.json" for e in epsilons}
    consensus_path = store / f"{survey.name}-consensus-epsilon-{_plain(epsilon)}.json"
    kinds = ("worths", "consensus")
    archived = any(path for kind in kinds for path in store.glob(f"{survey.name}-{kind}-*.json"))
    budget = _open_ledger(store / f"{survey.name}.ledger", survey, archived)
    wanted: list[tuple[_Fit, float, Path]] = [(_fit_worths, e, paths[e]) for e in epsilons]
    wanted.append((_fit_consensus, epsilon, consensus_path))
    missing = [one for one in wanted if fresh or not one[2].exists()]
    name = survey.name.capitalize()
    if missing:
        listing = ", ".join(
            _plain(e) + (" (consensus)" if fit is _fit_consensus else "") for fit, e, _ in missing
        )
        print(f"{name}: {len(survey.students)} respondents; spending epsilon {listing} ...")
        for fit, e, path in missing:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivrankWarning)  # the summary says it too
                result = fit(survey, e, budget)
            write(path, result.to_json())
    else:
        print(
            f"{name}: {len(survey.students)} respondents; the archived releases are used again, "
            f"nothing is spent"
        )
    found = tuple(_read_fit(paths[e], survey, e, BTLResult) for e in epsilons)
    main_fit = found[MULTIPLES.index(1.0)]
    top = PrivateTopK.from_release(main_fit.release, k=TOP)
    write(store / f"{survey.name}-top{TOP}-epsilon-{_plain(epsilon)}.json", top.to_json())
    consensus = _read_fit(consensus_path, survey, epsilon, AggregationResult)
    return Findings(chapter, survey, found, main_fit, top, consensus, budget)
