"""Write a report on the preferences in the example surveys: ``make report``.

Each survey has one ledger. Releases are archived as JSON in ``releases/`` of the output folder and
read from there, so a second run uses no budget and writes the same report.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from privrank import datasets
from privrank.aggregation import PrivateRankAggregation
from privrank.archive import from_json
from privrank.btl import PrivateBTL
from privrank.reporting.document import report, write
from privrank.results.aggregation import AggregationResult
from privrank.results.btl import BTLResult
from privrank.results.ledger import Budget
from privrank.results.tables import Table
from privrank.topk import PrivateTopK
from privrank.util.checks import PrivrankWarning

# Size of the top set, fixed before any release, which its p-value requires.
TOP = 2

# Epsilon of each release: one of comparisons, one of rankings.
EPSILON = 1.0

# Labels for the codes.
LABELS = {
    "university": {"StGallen": "St. Gallen"},
    "immigration": {
        "crimRate": "Crime rate",
        "position": "Training places",
        "socBurd": "Social burden",
        "culture": "Culture threatened",
    },
}

TEXT = """Students of a business university said, pair by pair, at which of six universities they \
would rather spend time abroad (University), and others which of four negative statements about \
foreigners they found more acceptable (Immigration): that they increase crime rates, take training \
places, are a burden on the social system, or threaten the culture."""


def _worths(survey: datasets.Survey, budget: Budget) -> BTLResult:
    m = len(survey.items)
    model = PrivateBTL(
        survey.comparisons,
        items=survey.items,
        respondent="respondent",
        max_rows=m * (m - 1) // 2,
        ties=True,
        design="public",
    )
    return model.fit(epsilon=EPSILON, budget=budget)


def _consensus(survey: datasets.Survey, budget: Budget) -> AggregationResult:
    model = PrivateRankAggregation(
        survey.rankings(ties="shared"), respondent="respondent", ties=True
    )
    return model.fit(epsilon=EPSILON, releases="pairs", budget=budget)


def _stop(sentence: str) -> NoReturn:
    raise SystemExit(f"report: {sentence}")


def _ledger(path: Path, survey: datasets.Survey) -> Budget:
    """Return the survey's ledger, which records fits and sets no limit."""
    if not path.exists() and any(path.parent.glob(f"{survey.name}-*.json")):
        _stop(
            f"{path.parent} holds releases but not their ledger {path.name}: restore it, "
            f"or choose another --out."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return Budget(path, epsilon=math.inf, unit="respondent", label=survey.name)
    except (ValueError, OSError) as error:
        _stop(f"{error} Or choose another --out.")


def _read(path: Path, survey: datasets.Survey) -> Any:
    """Return an archived result, which must agree with the name of its file."""
    kind = BTLResult if "-worths-" in path.name else AggregationResult
    try:
        result: Any = from_json(path.read_text(encoding="utf-8"))
        shown = (type(result), result.items, result.nobs, result.epsilon, result.release.source)
    except (ValueError, KeyError, TypeError):
        shown = None
    if shown != (kind, survey.items, len(survey.students), EPSILON, "secure"):
        _stop(f"{path} holds no such release as its name says: restore it, or delete it.")
    return result


def investigate(survey: datasets.Survey, store: Path) -> dict[str, Any]:
    """Return results of a survey by heading; results missing in the archive are fitted and stored.

    **Privacy.** The ledger is on disk: the epsilon of a release is in the file before its noise is
    drawn. If a run is interrupted, the ledger may overstate the released epsilon, but never
    understates it.
    """
    name, budget = survey.name.capitalize(), _ledger(store / f"{survey.name}.ledger", survey)
    results = []
    for what, fit in (("worths", _worths), ("consensus", _consensus)):
        path = store / f"{survey.name}-{what}-epsilon-{EPSILON:g}.json"
        # fit, store, and read back: the report shows the archived result
        if not path.exists():
            print(f"{name}: {what} of {len(survey.students)} respondents, epsilon {EPSILON:g} ...")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivrankWarning)  # also in the summary
                write(path, fit(survey, budget).to_json())
        results.append(_read(path, survey))
    worths, consensus = results
    labels, top = LABELS[survey.name], PrivateTopK.from_release(worths.release, k=TOP)
    return {
        f"{name}: worths": worths.with_labels(labels),
        f"{name}: the top {TOP}": top.with_labels(labels),
        f"{name}: consensus ranking": consensus.with_labels(labels),
        f"{name}: privacy budget": budget,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Write the report; `arguments` replace the command-line arguments of the process."""
    parser = argparse.ArgumentParser(
        description="Analyse the example surveys under differential privacy, with secure noise, "
        "and write one HTML page. Releases are archived in the output folder and used again, so "
        "that a second run spends nothing.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("report"), help="output folder (default: report)"
    )
    arguments = parser.parse_args(argv)
    out: Path = arguments.out
    chapters: dict[str, Any] = {}
    try:
        for load in (datasets.load_university, datasets.load_immigration):
            chapters |= investigate(load(), out / "releases")
        title = "Two preference surveys under differential privacy"
        page = report(chapters, out / "index.html", title=title, text=TEXT)
    except OSError as error:
        _stop(f"cannot write to {str(out)!r}: {str(error.strerror or error).removesuffix('.')}.")
    for heading, entry in chapters.items():
        print(f"\n{heading}\n\n{entry if isinstance(entry, Table) else entry.summary()}")
    print(f"\nReport: {page}\nReleases and ledgers: {out / 'releases'}")


if __name__ == "__main__":
    main()
