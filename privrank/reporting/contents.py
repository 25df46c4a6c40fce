"""What the report shows: tables, figures and the text around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from privrank import __version__
from privrank.reporting.figures import Drawing, draw
from privrank.reporting.pages import page
from privrank.reporting.spending import MULTIPLES, TOP, Findings, write
from privrank.results.btl import BTLResult
from privrank.results.columns import summary_col
from privrank.results.guarantee import column_heads, pvalue_cell
from privrank.results.tables import Table
from privrank.topk import PrivateTopK

__all__ = ["chapter_html", "index", "overview", "pair_table", "save_table"]


def save_table(table: Table, out: Path, name: str, csv: str | None = None) -> str:
    """Write a table as text and comma-separated values, and return it as HTML."""
    write(out / "tables" / f"{name}.txt", table.as_text() + "\n")
    write(out / "tables" / f"{name}.csv", table.as_csv() if csv is None else csv)
    return table.as_html()


def _save_figure(drawing: Drawing, out: Path, name: str) -> str:
    """Write a figure as PNG, and return it as HTML with the picture inside."""
    path = out / "figures" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(drawing.png)
    return drawing.as_html()


_CHAPTER = """
<h2 id="{name}">{heading}</h2>
<p>{description} {design}</p>
<h3>Worths</h3>
{worths_table}
{worths_figure}
<h3>Win probabilities</h3>
<p>Two items are compared through the difference of their worths; a tie counts as half a preference
for each, and the intervals are pointwise.</p>
{pairwise_figure}
<details><summary>All pairs as a table</summary>{pairwise_table}</details>
<h3>The top {top}</h3>
<p>Selected from the noisy net wins of the same release; this costs nothing more.</p>
{top_table}
{top_figure}
<h3>A consensus ranking</h3>
<p>Worths suppose a model; a consensus does not. Each respondent's answers make a ranking by net
wins, in which items may be tied, and a tie is half a vote for each order. The votes on all pairs
are released once more, at an epsilon of their own, and the consensus is the order with the fewest
disagreements (Kemeny's), after noise is taken out of them as far as it explains them.</p>
{consensus_table}
{consensus_figure}
<h3>What epsilon buys</h3>
<p>Three separate fits of the worths, each with its own noise and its own line in the ledger.
Whoever needs one table only would spend {epsilon:g} and not the sum.</p>
{precision_table}
{epsilons_table}
<h3>Ledger</h3>
<p>Everything ever spent into this folder on this survey, oldest first: {spent}. The top {top} and
all figures were computed from these releases, the consensus from the one at its line. The ledger
knows of this folder only.</p>
{ledger_table}
<p>Source: {source}. {citation}</p>"""


def chapter_html(found: Findings, out: Path) -> str:
    """Write the tables and figures of a survey, and return its chapter as HTML."""
    survey, fit, top, agreed = found.survey, found.main, found.top, found.consensus
    tables: dict[str, tuple[Table, str | None]] = {
        "worths": (fit.summary(), fit.to_frame().to_csv()),
        "pairwise": (pair_table(fit), fit.pairwise().to_csv(index=False)),
        "top": (top.summary(), top.to_frame().to_csv()),
        "precision": (_precision_table(found.fits), None),
        "epsilons": (summary_col(found.fits), None),
        "ledger": (found.budget.summary(), None),
        "consensus": (agreed.summary(), agreed.to_frame().to_csv()),
    }
    figures = {
        "worths": draw(fit),
        "pairwise": draw(fit, "plot_pairwise"),
        "top": draw(top),
        "consensus": draw(agreed),
    }
    files = {name: f"{survey.name}-{name}{TOP if name == 'top' else ''}" for name in tables}
    written = {
        f"{name}_table": save_table(table, out, files[name], csv)
        for name, (table, csv) in tables.items()
    }
    written |= {
        f"{name}_figure": _save_figure(drawing, out, files[name])
        for name, drawing in figures.items()
        if drawing is not None
    }
    return _CHAPTER.format(
        **written,
        name=survey.name,
        heading=escape(found.chapter.heading),
        description=escape(survey.description),
        design=found.chapter.design,
        epsilon=fit.epsilon,
        spent=", ".join(f"{line.epsilon:g}" for line in found.budget.spendings),
        source=escape(survey.source),
        citation=escape(survey.citation),
        top=TOP,
    )


def pair_table(fit: BTLResult) -> Table:
    """Return every pair's difference of worths, probability, interval and p-value."""
    frame = fit.pairwise()
    names = frame.pop("item1").astype(str) + " : " + frame.pop("item2").astype(str)
    frame["pvalue"] = frame["pvalue"].map(pvalue_cell)
    cells = frame.map(lambda cell: cell if isinstance(cell, str) else f"{cell:.3f}").to_numpy()
    rows = tuple((name, *row) for name, row in zip(names, cells, strict=True))
    tied = fit.release.design.ties
    bounds = (f"[{fit.alpha / 2:.3g}", f"{1 - fit.alpha / 2:.4g}]")
    heads = (
        "first : second",
        "difference",
        "std err",
        "P(first) + P(tie) / 2" if tied else "P(first)",
        *bounds,
        column_heads(fit.release)[-1],
    )
    notes = ["The interval is that of P(first), the probability that the first is preferred."]
    if tied:
        notes = ["The interval is that of P(first) + P(tie) / 2: preferred, and half of the ties."]
    if fit.release.design.covariates is not None:
        notes.append("In the reference group: first levels, numbers in the middle of their bounds.")
    return Table("Pairwise comparisons", (), heads, rows, tuple(notes))


def _precision_table(fits: Sequence[BTLResult]) -> Table:
    rows = tuple(
        (
            f"{fit.epsilon:g}",
            *(f"{part.mean():.3f}" for part in (fit.bse, fit.bse_sampling, fit.bse_privacy)),
            f"{fit.design_effect:.2f}",
            ", ".join(PrivateTopK.from_release(fit.release, k=TOP).selected),
        )
        for fit in fits
    )
    heads = ("epsilon", "std err", "sampling", "privacy", "design effect", f"top {TOP}")
    note = (
        "Standard errors are means over the items. The design effect is released with noise and "
        "carries it into the sampling part."
    )
    return Table("Precision by epsilon", (), heads, rows, (note,))


def overview(findings: Sequence[Findings]) -> Table:
    """Return a row for each survey: its size, its leading items, what was spent."""
    rows = tuple(
        (
            found.survey.name.capitalize(),
            str(found.main.nobs),
            str(len(found.survey.items)),
            ", ".join(found.top.selected),
            pvalue_cell(found.top.pvalue),
            f"{found.main.epsilon:g}",
            f"{found.budget.spent[0]:g}",
        )
        for found in findings
    )
    heads = f"survey|respondents|items|top {TOP}|separation p|epsilon|spent in all".split("|")
    note = (
        "Separation p: of the hypothesis that a selected item is no better than one left out. "
        "Spent in all: with the fits at other epsilons and the consensus below."
    )
    return Table("The two surveys", (), tuple(heads), rows, (note,))


def index(findings: Sequence[Findings], overview: str, chapters: str, examples: str) -> str:
    """Return the page, given its parts as HTML."""
    epsilon, multiples = findings[0].main.epsilon, ", ".join(f"{m:g}" for m in MULTIPLES)
    body = f"""<h1>Two preference surveys under differential privacy</h1>
<p>Paired comparisons from two published surveys, analysed with privrank {__version__} as if they
were confidential: each fit publishes noisy counts, and everything on this page is computed from
them.</p>
{overview}
<p class="banner"><strong>Secure noise.</strong> All noise on this page came from a
cryptographically secure source. Nothing was seeded, so nobody can take the noise off again, and a
second draw would give other numbers. That is why the releases are archived: running the report
again reads them back, spends nothing and gives this page. <code>--fresh</code> draws and spends
anew.</p>
<h2>What is protected</h2>
<ul>
<li><strong>Whom.</strong> The unit is a respondent with all their answers. Neighbouring data sets
differ in one respondent; epsilon {epsilon:g} means that exchanging a respondent's answers for any
other answers changes the probability of any result by a factor of at most exp({epsilon:g}) =
{math.exp(epsilon):.2f}. Each survey has a ledger of its own; a person in both would be
counted in both.</li>
<li><strong>What not.</strong> The design counts as public: how many respondents there were, who was
asked which pairs, and which answers are missing. The answers are protected, the fact of having
answered is not.</li>
<li><strong>The alternative.</strong> <code>design="private"</code> protects who answered what, too.
Then the numbers of comparisons per pair are not known: they are assumed equal, declared, or
released for a share of epsilon. Missing answers then pull the worths towards zero unless they are
accounted for.</li>
<li><strong>What it cost.</strong> Each survey is fitted at {multiples} times the main epsilon to
show what epsilon buys, and the main epsilon is spent once more on its consensus. It all adds up,
and the ledgers list it.</li>
</ul>
<h2>How to read the tables</h2>
<ul>
<li><code>coef</code> is the worth on the logit scale; worths add up to zero, larger means more
preferred.</li>
<li><code>std err</code> has two parts: <code>sampling</code>, from the choice of respondents, with
their dependent answers allowed for, and <code>privacy</code>, from the noise. Their squares add up.
</li>
<li><code>rank</code> is the set of ranks that cannot be ruled out, for all items at once.</li>
</ul>
{chapters}
<h2>Worked examples</h2>
{examples}
<h2>Files</h2>
<p><code>tables/</code> has each table as text and as comma-separated values, <code>figures/</code>
each figure as PNG. <code>releases/</code> has the archive: <code>privrank.from_json</code> turns a
release back into its result, <code>privrank.Budget</code> opens a ledger by its path. Keep
the ledgers: what they list cannot be taken back, even if the releases are deleted.</p>"""
    return page("privrank report", body)
