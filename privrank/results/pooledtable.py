"""Tables of pooled releases: the summary, and what a table of several results says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privrank.results.assumptions import assumptions, holds_if
from privrank.results.btl import BTLResult
from privrank.results.guarantee import (
    format_pvalue,
    noise_source,
    pvalue_cell,
    rank_range,
    reading,
    release_facts,
    seed_notes,
)
from privrank.results.tables import Column, Table
from privrank.util.checks import check_flag

if TYPE_CHECKING:
    from privrank.results.pooled import PooledResult

__all__ = ["pooled_column", "pooled_facts", "pooled_table"]


def pooled_table(result: PooledResult, details: bool) -> Table:
    """Return pooled releases as a table in the style of statsmodels."""
    check_flag("details", details)
    frame, test, same = result.to_frame(), result.test_heterogeneity(), result.survey == "same"
    first, count = result.results[0], len(result.results)
    units = sorted({each.release.survey.unit for each in result.results})
    unit = units[0] if len(units) == 1 else "unit"
    epsilons = " + ".join(f"{each.epsilon:g}" for each in result.results)
    sources = dict.fromkeys(noise_source(each.release) for each in result.results)
    worths = isinstance(first, BTLResult)
    name = f"{first.link.model} Results" if isinstance(first, BTLResult) else "Rank Aggregation"
    random = result.tau is not None
    numbers = ["std_err", "sampling", "privacy", *(["best_single"] * (not random))]
    limits = (f"[{result.alpha / 2:.3g}", f"{1 - result.alpha / 2:.4g}]")
    pooled = f"{count} releases of one survey" if same else f"{count} surveys"
    pooled += ", random effects" * random
    rows = []
    for item, row in zip(frame.index, frame.to_dict("records"), strict=True):
        estimate = f"{row['worth' if worths else 'borda']:.4f}"
        place = str(row["rank"])
        if worths:
            place = rank_range(int(row["rank_lower"]), int(row["rank_upper"]))
        shown = [f"{row[each]:.3f}" for each in numbers]
        shown += [pvalue_cell(row["pvalue"]), *(f"{row[end]:.3f}" for end in ("lower", "upper"))]
        rows.append((str(item), estimate, *shown, place))
    heads = ("sampling", "privacy", *(["best alone"] * (not random)), "p-value")
    return Table(
        title=f"Pooled Private {name}",
        header=(
            ("Pooled:", pooled),
            ("Items:", str(len(frame))),
            (f"No. {unit.capitalize()}s:", str(result.nobs)),
            ("Neighbours:", f"replace one {' or '.join(units)}"),
            ("Epsilon:", f"{result.epsilon:g} ({epsilons if same else 'the largest'})"),
            ("Delta:", f"{result.delta:g}"),
            ("Noise source:", "; ".join(sources)),
            ("Q:", f"{test['statistic']:.2f}, {format_pvalue(test['pvalue'])} (Monte Carlo)"),
            ("I-squared:", f"{test['I2']:.0%}"),
            *((("Tau:", f"{result.tau:.3g} between surveys"),) if random else ()),
        ),
        columns=("", "coef" if worths else "Borda", "std err", *heads, *limits, "rank"),
        rows=tuple(rows),
        notes=(*_notes(result), *_releases(result, details)),
    )


def _notes(result: PooledResult) -> list[str]:
    """Return what the numbers cover, what Q tests, and what the guarantee is."""
    level, same = f"{100 * (1 - result.alpha):g}%", result.survey == "same"
    worths = isinstance(result.results[0], BTLResult)
    what = "centred worth (best-fitting for the pairs compared)" if worths else "Borda score"
    once = "the one sampling error of the survey" if same else "the sampling of every survey"
    once, of = f"{once} and ", ""
    sampled = getattr(result.results[0], "target", "") == "sample"
    if sampled:
        once, of = "", " among these units"
    if result.tau is not None:
        what, of = f"mean of the item's {what}", " over all surveys that these stand for"
        once = f"which surveys they are (Student's t, {len(result.results) - 1} df), {once}"
    else:
        what = f"item's {what}"
    said = "".join(dict.fromkeys(reading(each.release) for each in result.results if worths))
    notes = [
        f"{said}Each {level} interval by itself covers the {what}{of}, allowing for {once}"
        f"privacy noise{'; the rank sets hold for all items at once' * worths}."
    ]
    if not worths:
        notes.append(f"H0 of a p-value: the score is {0.5 * (len(result.items) - 1):g}, the mean.")
    if result.tau is not None:
        noun = "worth" if worths else "Borda score"
        notes.append(f"Tau: the standard deviation of an item's {noun} between surveys.")
    else:
        notes.append(
            "Best alone: the least standard error of one release by itself, with the same "
            "estimates of sampling error."
        )
    where = ""
    if not worths:
        pairs = result.by_pair is not None
        where = f", of the {'pair' if pairs else 'item'} that differs most surely, p adjusted"
    if same:
        notes.append(f"Q tests that the releases differ by their noise alone{where}.")
        notes.append("Epsilon: the releases are of the same units, so what they spent adds up.")
    else:
        notes.append(f"Q tests that all surveys have the same values{where}.")
        notes.append(
            "Epsilon: the largest, if nobody answered in two surveys; who did is protected by the "
            "sum over theirs."
        )
    if len({each.release.survey.unit for each in result.results}) > 1:
        notes.append("Epsilon protects one row in releases of rows, else a respondent's rows.")
    rests = {key for each in result.results for key in assumptions(each.release)}
    rests |= {"model"} if worths else set()
    rests |= set() if same else {"surveys" if result.tau is None else "drawn"}
    return [*notes, holds_if({"sample"} if sampled else rests)]


def _releases(result: PooledResult, details: bool) -> list[str]:
    """Return what was pooled, one sentence each."""
    notes = []
    for (name, weight), each in zip(result.weights.items(), result.results, strict=True):
        release = each.release
        called = name if result.names else str(name).capitalize()
        text = (
            f"{called}: {release.mechanism}, epsilon {release.epsilon:g}, {each.nobs} "
            f"{release.survey.unit}s, weight {weight:.2f}."
        )
        if details:
            header = each.summary(details=True).header
            text += " " + " ".join(f"{key} {value}." for key, value in header)
        notes.append(text)
    return notes + seed_notes([each.release for each in result.results])


def pooled_column(result: PooledResult) -> Column:
    """Return a pooled result as a column of a table of several, with its test of heterogeneity."""
    test, same = result.test_heterogeneity(), result.survey == "same"
    facts = (
        ("pooled", f"{len(result.results)} {'releases' if same else 'surveys'}"),
        ("Q", test["statistic"]),
        ("p-value of Q", test["pvalue"]),
    )
    params = result.params
    if not isinstance(result.results[0], BTLResult):
        params = params.rename("Borda score")
    return Column(f"eps={result.epsilon:g}", params, result.bse, facts, pooled_facts(result))


def pooled_facts(result: PooledResult) -> tuple[tuple[str, str], ...]:
    """Return what is public of all releases together, in the words of one."""
    facts = [dict(release_facts(each.release)) for each in result.results]
    joined = {name: ", ".join(dict.fromkeys(each[name] for each in facts)) for name in facts[0]}
    own = {"epsilon": f"{result.epsilon:g}", "delta": f"{result.delta:g}", "N": str(result.nobs)}
    return tuple((joined | own).items())
