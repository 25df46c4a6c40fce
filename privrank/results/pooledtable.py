"""The summary of pooled releases, and what is said below it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from privrank.release.survey import record_of
from privrank.results import guarantee, tables
from privrank.results.btl import BTLResult
from privrank.util.checks import check_flag


def pooled_table(result: Any, details: bool) -> tables.Table:
    """Return pooled numbers as a table in the style of statsmodels."""
    check_flag("details", details)
    first, name, estimate = result.results[0], "Rank Aggregation", "Borda"
    if isinstance(first, BTLResult):
        name, estimate = f"{first.link.model} Results", "coef"
    return tables.Table(
        title=f"Pooled Private {name}",
        header=_header(result),
        columns=(
            "",
            estimate,
            "std err",
            guarantee.sampling_head([member.release for member in result.results]),
            "privacy",
            "p-value",
            *tables.interval_heads(result.alpha),
            "rank",
        ),
        rows=tables.fit_rows(result.to_frame()),
        notes=(
            *_notes(result),
            *_count_notes(result),
            *_release_notes(result, details),
            *result._cautions(),
        ),
        cautions=result._cautions(),
    )


def twice_notes(results: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Return a warning of surveys whose public facts are equal, once for all that have the same.

    Given their names, if any. Equal facts are no proof of one survey, so that it is no error.
    """
    groups: dict[str, list[str]] = {}
    for name, result in zip(names or map(str, range(1, len(results) + 1)), results, strict=True):
        groups.setdefault(json.dumps(record_of(result.release.survey)), []).append(name)
    twice = [f"{', '.join(some)} and {last}" for *some, last in groups.values() if some]
    return [
        f"Warning: respondents may count twice: {listed if names else f'releases {listed}'} have "
        f"the same public facts. If they are of one survey, use survey='same'; tallies of reports "
        f"are better added, tally1 + tally2, which finds reports that are in both."
        for listed in twice
    ]


def _header(result: Any) -> tuple[tuple[str, str], ...]:
    """Return the header of a summary: what was pooled, the guarantee, and Q."""
    test, same, count = result.test_heterogeneity(), result.survey == "same", len(result.results)
    units = sorted({member.release.survey.unit for member in result.results})
    unit = units[0] if len(units) == 1 else "unit"
    pooled = f"{count} releases of one survey" if same else f"{count} surveys"
    epsilons = " + ".join(f"{member.epsilon:g}" for member in result.results)
    sources = dict.fromkeys(guarantee.noise_source(member.release) for member in result.results)
    return (
        ("Pooled:", pooled + ", random effects" * (result.tau is not None)),
        ("Items:", str(len(result.items))),
        (f"No. {unit.capitalize()}s:", str(result.nobs)),
        ("Neighbours:", f"replace one {' or '.join(units)}"),
        ("Epsilon:", f"{result.epsilon:g} ({epsilons if same else 'the largest'})"),
        ("Delta:", f"{result.delta:g}"),
        ("Noise source:", "; ".join(sources)),
        ("Q:", f"{test['statistic']:.2f}, {test['df']} df, {tables.format_pvalue(test['pvalue'])}"),
        ("I-squared:", f"{test['I2']:.0%}"),
        *([] if result.tau is None else [("Tau:", f"{result.tau:.3g} between surveys")]),
    )


def _notes(result: Any) -> list[str]:
    """Return what the numbers cover, what Q tests, and whom epsilon protects."""
    same, first = result.survey == "same", result.results[0]
    rests = {key for member in result.results for key in guarantee.assumptions(member.release)}
    what, null = "Borda score", f"the score is {0.5 * (len(result.items) - 1):g}, the mean"
    errors = (
        "the one sampling error of the survey and privacy noise"
        if same
        else "the sampling of every survey and privacy noise"
    )
    # worths and Borda scores differ in what H0 and the intervals are about; the rest is common
    said, joint = "", ""
    if isinstance(first, BTLResult):
        releases = [member.release for member in result.results]
        said = "".join(dict.fromkeys(map(guarantee.reading, releases)))
        what, null = "centred worth (best-fitting for the pairs compared)", "the worth is 0"
        joint = "; the rank sets hold for all items at once"
        if first.release.design.davidson:
            said += "Every release has its own tie parameter; worths are of answers that decide. "
        rests.add("model")
    what = f"the item's {what}"
    if result.tau is not None:
        what = f"the mean of {what} over all surveys that these stand for"
        errors = f"which surveys they are (Student's t, {len(result.results) - 1} df), {errors}"
    level = f"{100 * (1 - result.alpha):g}%"
    tested = "the releases differ by their noise alone"
    if not same:
        tested = "all surveys have the same values"
        rests.add("surveys" if result.tau is None else "drawn")
    if not isinstance(first, BTLResult):
        pairs = "item" if result.by_pair is None else "pair"
        tested += f", of the {pairs} that differs most surely, p adjusted"
    several = "Who answered in several surveys is protected by the sum of their epsilons."
    units = {member.release.survey.unit for member in result.results}
    unlike = "Epsilon protects one row in releases of rows, else a respondent's rows."
    return [
        f"{said}Each {level} interval by itself covers {what}, allowing for {errors}{joint}.",
        f"H0 of a p-value: {null}.",
        f"Q tests that {tested}.",
        *([] if same else [several]),
        *([unlike] if len(units) > 1 else []),
        *tables.tie_notes(result.ranks()),
        guarantee.holds_if(rests),
    ]


def _count_notes(result: Any) -> dict[str, None]:
    """Return what is asserted of the pair counts of worths, once for all releases."""
    if not isinstance(result.results[0], BTLResult):
        return {}
    releases = [member.release for member in result.results]
    counted = [guarantee.count_notes(release, "worths towards zero") for release in releases]
    return dict.fromkeys(itertools.chain(*counted))


def _release_notes(result: Any, details: bool) -> list[str]:
    """Return what was pooled, one sentence each."""
    notes = []
    for (name, weight), member in zip(result.weights.items(), result.results, strict=True):
        release = member.release
        called = name if result.names else str(name).capitalize()
        text = (
            f"{called}: epsilon {release.epsilon:g}, {member.nobs} {release.survey.unit}s, weight "
            f"{weight:.2f}."
        )
        if details:
            text += "".join(f" {key} {value}." for key, value in member.summary(True).header)
        notes.append(text)
    return notes + guarantee.seed_notes([member.release for member in result.results])
