"""The summary of a fit of paired comparisons: worths or coefficients, and what is said below."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from privrank.bradley_terry.contrasts import HomogeneityResult
from privrank.bradley_terry.score import score_equations
from privrank.release.release import Release
from privrank.results import guarantee
from privrank.results.assumptions import assumptions, holds_if
from privrank.results.tables import Table, interval_heads
from privrank.util.checks import check_flag

__all__ = ["fit_table"]

_LIKELIHOOD = "The log-likelihood takes answers as independent, and a tie as half a win to each."

_ENDLESS = (
    "An interval that ends in inf has no bound on that side: with this much noise no worth there, "
    "however extreme, can be ruled out."
)


def fit_table(
    release: Release,
    frame: pd.DataFrame,
    tests: HomogeneityResult | pd.DataFrame,
    *,
    alpha: float,
    parts: tuple[tuple[str, ...], ...],
    estimator: str,
    effect: float,
    fit_of_items: list[str],
    likelihood: tuple[tuple[str, str], ...],
    penalty: str,
    warnings: tuple[str, ...],
    details: bool,
) -> Table:
    """Return a fit as a table in the style of statsmodels.

    Given its ``to_frame()``, the test of equal worths or those of the terms, items by component,
    the loss whose minimum the estimates are, the design effect, what is said of the fit of item
    covariates, and the header's lines on the likelihood and penalty.
    """
    check_flag("details", details)
    link, design = release.link, release.design
    notes, counts = (
        [_tests_note(tests, parts)],
        guarantee.count_notes(release, "worths towards zero"),
    )
    if design.covariates is None:
        known = design.pairs is not None and design.pairs.origin != "equal"
        total = f"{design.pairs.total:g}" if known and design.pairs is not None else "private"
        kind, second = "Results", ("No. Comparisons:", total)
        notes = counts + notes
    else:
        kind, second = "Regression Results", ("Formula:", f"~ {design.covariates.formula}")
        notes += fit_of_items + _zero_notes(release) + counts + _group_notes(release)
    ranks = ("rank",) if "rank" in frame else ()
    heads, estimated = guarantee.column_heads(release), frame[frame.columns[0]].notna()
    certain = np.isfinite(frame["std_err"][estimated].to_numpy(dtype=np.float64)).all()
    return Table(
        title=guarantee.title(f"{link.model} {kind}", release),
        header=(
            ("Model:", f"{link.model} ({link.name})"),
            second,
            *guarantee.comparison_header(release, effect, details),
            ("Penalty:", penalty),
            *likelihood,
        ),
        columns=(
            "",
            "coef",
            "std err",
            "sampling",
            "privacy",
            *heads,
            *interval_heads(alpha),
            *ranks,
        ),
        rows=_rows(frame, {item: len(part) for part in parts for item in part}),
        notes=(
            guarantee.reading(release) + _coverage_note(release, alpha),
            *notes,
            *guarantee.loss_notes(release, estimator),
            *([_LIKELIHOOD] if likelihood else []),
            holds_if(assumptions(release, "model", *(["linear"] if _by_items(release) else []))),
            *guarantee.privacy_notes(release, details),
            *warnings,
            *([] if certain else [guarantee.UNCERTAIN]),
            *([_ENDLESS] if np.isinf(frame[["lower", "upper"]]).any(axis=None) else []),
        ),
    )


def _by_items(release: Release) -> bool:
    """Whether worths are functions of covariates of the items."""
    facts = release.design.covariates
    return facts is not None and bool(facts.item_columns)


def _tests_note(tests: HomogeneityResult | pd.DataFrame, parts: tuple[tuple[str, ...], ...]) -> str:
    if isinstance(tests, pd.DataFrame):
        terms = "; ".join(
            f"{name}: {row['statistic']:.2f}, {guarantee.format_pvalue(row['pvalue'])}"
            if row["df"]
            else f"{name}: {guarantee.UNIDENTIFIED}"
            for name, row in tests.to_dict("index").items()
        )
        return f"Wald tests of terms (Monte Carlo): {terms}."
    if tests.df == 0:
        return "Test of equal worths: none, as the release identifies no difference."
    several = [part for part in parts if len(part) > 1]
    among = f", of the {len(several[0])} items identified" if len(parts) > 1 else ""
    among = ", within each component" if len(several) > 1 else among
    return (
        f"Test of equal worths{among}: statistic {tests.statistic:.2f}, "
        f"{guarantee.format_pvalue(tests.pvalue)} (Monte Carlo)."
    )


def _rows(frame: pd.DataFrame, sizes: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    """Return the cells of a fit's ``to_frame()``, as they are printed: ranks for worths only.

    Given how many items there are in the part of each: ranks are among these.
    """
    before = [name for name in ("std_err", "sampling", "privacy", "z") if name in frame]
    ranked, rows = "rank_lower" in frame, []
    estimate = "worth" if ranked else "coef"
    for name, row in zip(frame.index, frame.to_dict("records"), strict=True):
        cells, place = [guarantee.UNIDENTIFIED, *[""] * (len(before) + 3)], guarantee.UNIDENTIFIED
        if not np.isnan(row[estimate]):
            cells = [f"{row[estimate]:.4f}", *(f"{row[number]:.3f}" for number in before)]
            cells.append(guarantee.pvalue_cell(row["pvalue"]))
            cells += [f"{row[limit]:.3f}" for limit in ("lower", "upper")]
            if ranked:
                place = guarantee.rank_range(int(row["rank_lower"]), int(row["rank_upper"]))
                place += f" of {sizes[name]}" if sizes[name] < len(frame) else ""
        rows.append((str(name), *cells, *([place] if ranked else [])))
    return tuple(rows)


def _coverage_note(release: Release, alpha: float) -> str:
    """Return what the intervals of a summary cover."""
    level, covariates = f"{100 * (1 - alpha):g}%", release.design.covariates
    if covariates is None:
        return (
            f"Each {level} interval by itself covers the centred worth (best-fitting for the pairs "
            f"compared), {guarantee.allowance(release)}; rank sets hold jointly."
        )
    scale = (
        "Item covariates are centred."
        if _by_items(release)
        else "Coefficients of one column add up to zero over the items."
    )
    covered = f"Each {level} interval by itself covers its coefficient"
    return f"{covered}, {guarantee.allowance(release)}. {scale}"


def _zero_notes(release: Release) -> list[str]:
    """Return at which values the coefficients without a prefix are worths."""
    facts = release.design.covariates
    if facts is None or not facts.bounds or "Intercept" not in facts.columns:
        return []
    names = " and ".join(name for name, _, _ in facts.bounds)
    return [f"Coefficients without a prefix are worths where {names} would be 0."]


def _group_notes(release: Release) -> list[str]:
    """Return what is public about who has which covariates, and about the order of naming."""
    facts = release.design.covariates
    if facts is None or release.source == "none":
        return []
    if release.design.kind == "public":
        notes = []
        if facts.names:
            notes.append(
                "Who has which covariates is taken as public, as is who compared which pairs."
            )
        if facts.ordered:
            notes.append(
                "Which item was named first is taken as public, so no answer may have decided it."
            )
        return notes
    if facts.cells == 1:
        return []
    released = score_equations(release).group_answers
    groups = "; ".join(
        f"{', '.join(label.values())} {answers:.0f}"
        for label, answers in zip(facts.cell_labels, released, strict=True)
    )
    return [
        f"Answers of each group, released with noise: {groups}; every group is taken to have "
        f"compared the pairs in the same proportions."
    ]
