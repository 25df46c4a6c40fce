"""The summary of a fit of paired comparisons: worths or coefficients, and what is said below."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privrank.bradley_terry.contrasts import HomogeneityResult
from privrank.bradley_terry.score import score_equations
from privrank.release.release import Release
from privrank.results.guarantee import (
    UNCERTAIN,
    allowance,
    column_heads,
    count_notes,
    format_pvalue,
    guarantee,
    loss_notes,
    privacy_notes,
    rank_range,
    title,
)
from privrank.results.tables import Table
from privrank.util.checks import check_flag

__all__ = ["fit_table"]

_LIKELIHOOD = "The log-likelihood takes answers as independent, and a tie as half a win to each."


def fit_table(
    release: Release,
    frame: pd.DataFrame,
    tests: HomogeneityResult | pd.DataFrame,
    *,
    alpha: float,
    estimator: str,
    effect: float,
    likelihood: tuple[tuple[str, str], ...],
    penalty: str,
    warnings: tuple[str, ...],
    details: bool,
) -> Table:
    """Return a fit as a table in the style of statsmodels.

    Given its ``to_frame()``, the test of equal worths or those of the terms, the loss whose minimum
    the estimates are, the design effect, and the header's lines on the likelihood and penalty.
    """
    check_flag("details", details)
    link, design = release.link, release.design
    notes, counts = [_tests_note(release, tests)], count_notes(release, "worths towards zero")
    if design.covariates is None:
        known = design.pairs is not None and design.pairs.origin != "equal"
        total = f"{design.pairs.total:g}" if known and design.pairs is not None else "private"
        kind, second = "Results", ("No. Comparisons:", total)
        notes = counts + notes
    else:
        kind, second = "Regression Results", ("Formula:", f"~ {design.covariates.formula}")
        notes += _zero_notes(release) + counts + _group_notes(release)
    limits = (f"[{alpha / 2:.3g}", f"{1 - alpha / 2:.4g}]")
    ranks = ("rank",) if "rank" in frame else ()
    heads = column_heads(release)
    return Table(
        title=title(f"{link.model} {kind}", release),
        header=(
            ("Model:", f"{link.model} ({link.name})"),
            second,
            *guarantee(release, effect, details),
            ("Penalty:", penalty),
            *likelihood,
        ),
        columns=("", "coef", "std err", "sampling", "privacy", *heads, *limits, *ranks),
        rows=_rows(frame),
        notes=(
            _coverage_note(release, alpha),
            *notes,
            *loss_notes(release, estimator),
            *([_LIKELIHOOD] if likelihood else []),
            *privacy_notes(release, details),
            *warnings,
            *([] if np.isfinite(frame["std_err"]).all() else [UNCERTAIN]),
        ),
    )


def _tests_note(release: Release, tests: HomogeneityResult | pd.DataFrame) -> str:
    if isinstance(tests, pd.DataFrame):
        terms = "; ".join(
            f"{name}: {row['statistic']:.2f} on {row['df']} df, {format_pvalue(row['pvalue'])}"
            for name, row in tests.to_dict("index").items()
        )
        return f"Wald tests of terms (Monte Carlo): {terms}."
    return (
        f"Test of equal worths: statistic {tests.statistic:.2f} on {tests.df} df, "
        f"{format_pvalue(tests.pvalue)} (Monte Carlo)."
    )


def _rows(frame: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    """Return the cells of a fit's ``to_frame()``, as they are printed: ranks for worths only."""
    numbers = ["std_err", "sampling", "privacy", "z", "pvalue", "lower", "upper"]
    ranked = "rank_lower" in frame
    return tuple(
        (
            str(name),
            f"{row['worth' if ranked else 'coef']:.4f}",
            *(f"{row[number]:.3f}" for number in numbers),
            *([rank_range(int(row["rank_lower"]), int(row["rank_upper"]))] if ranked else []),
        )
        for name, row in zip(frame.index, frame.to_dict("records"), strict=True)
    )


def _coverage_note(release: Release, alpha: float) -> str:
    """Return what the intervals of a summary cover."""
    level, covariates = f"{100 * (1 - alpha):g}%", release.design.covariates
    if covariates is None:
        return (
            f"With {level} confidence each interval covers the item's centred worth, "
            f"{allowance(release)}; the rank sets hold for all items at once."
        )
    scale = (
        "Item covariates are centred."
        if covariates.item_columns
        else "Coefficients of one column add up to zero over the items."
    )
    covered = f"With {level} confidence each interval covers its coefficient"
    return f"{covered}, {allowance(release)}. {scale}"


def _zero_notes(release: Release) -> list[str]:
    """Return at which values the coefficients without a prefix are worths."""
    facts = release.design.covariates
    if facts is None or not facts.bounds or "Intercept" not in facts.columns:
        return []
    names = " and ".join(name for name, _, _ in facts.bounds)
    return [f"Coefficients without a prefix are worths where {names} would be 0."]


def _group_notes(release: Release) -> list[str]:
    """Return what is public about who has which covariates."""
    facts = release.design.covariates
    if facts is None or release.source == "none" or not facts.names:
        return []
    if release.design.kind == "public":
        return ["Who has which covariates is taken as public, as is who compared which pairs."]
    released = score_equations(release).covariates
    if facts.cells == 1 or released is None:
        return []
    groups = "; ".join(
        f"{', '.join(label.values())} {size:.0f}"
        for label, size in zip(facts.cell_labels, released.units, strict=True)
    )
    return [
        f"Group sizes, released with noise: {groups}; every group is taken to have compared "
        f"the pairs in the same proportions."
    ]
