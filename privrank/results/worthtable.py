"""The summary of a fit of paired comparisons, with notes and warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtri

from privrank.bradley_terry.contrasts import own_and_between
from privrank.bradley_terry.equations import ScoreEquations, released_total
from privrank.bradley_terry.estimate import WorthEstimate, nominal_information
from privrank.bradley_terry.inference import attainable
from privrank.bradley_terry.losses import answer_probabilities
from privrank.bradley_terry.paircounts import MAX_ERROR, Matching, pair_counts
from privrank.bradley_terry.readings import score_equations
from privrank.bradley_terry.scoretests import hardly_identified
from privrank.distributions.links import LOGIT
from privrank.plans.choice import MIN_ITEMS_MATCHED
from privrank.release.names import GROUP_ANSWERS, MOMENTS, PAIR_COUNTS
from privrank.release.release import Release
from privrank.release.survey import ASSERTED, Covariates, Design
from privrank.results import guarantee, tables
from privrank.results.claims import assumed, percent, said, warned
from privrank.util.arrays import IntArray
from privrank.util.solvers import largest_ratio, propagate

if TYPE_CHECKING:
    from privrank.results.btl import BTLResult

TIE_ROW = "tie (log nu)"

# Number of respondents from which tests with known answers keep their level.
MIN_CLUSTERS = 8

# Significance level of the check of proportional pair counts.
MATCHING_LEVEL = 0.05

# Number of items whose differences are compared to find the largest source of error.
_SOME_ITEMS = 64

# Largest relative standard error of the released number of answers of a group.
ROUGH = 1 / 4


def fit_table(result: BTLResult, details: bool) -> tables.Table:
    """Return a fit as a table in the style of statsmodels."""
    release = result.release
    frame = result.to_frame()
    link = release.link
    design = release.design
    covariates = design.covariates
    known = design.pairs is not None and design.pairs.origin not in ASSERTED
    total = f"{design.pairs.total:,.15g}" if known and design.pairs is not None else "private"
    plain = covariates is None
    kind = "Results" if plain else "Regression Results"
    ties = ", Davidson" if design.davidson else ""
    size = result.penalty if isinstance(result.penalty, str) else f"{result.penalty:.4g}"
    linear = ["linear"] if _by_items(release) else []
    return tables.laid_out(
        _shown(result, frame),
        tables.fit_columns(
            str(frame.columns[0]),
            result.alpha,
            sampling=tables.Column(guarantee.sampling_head([release])),
        ),
        title=guarantee.title(f"{link.model} {kind}", release),
        header=(
            ("Model:", f"{link.model}{ties} ({link.name})"),
            ("No. Comparisons:", total)
            if covariates is None
            else ("Formula:", f"~ {covariates.formula}"),
            *guarantee.comparison_header(release, result.design_effect, details),
            ("Estimator:", _estimator(result, size)),
            *([("Ridge penalty:", size)] if details else []),
        ),
        notes=tables.Notes(
            estimates=_estimate_notes(result, frame),
            tests=_test_of_equality(result) if plain else _tests_of_terms(result),
            assumptions=[
                *assumed(guarantee.assumptions(release, "model", *linear), link.model),
                *guarantee.count_notes(release),
                *(_matching_notes(result) if plain else []),
            ],
            privacy=[
                *guarantee.comparison_privacy(release, details),
                *([] if covariates is None else _public_notes(release, covariates)),
            ],
        ),
        cautions=result._cautions(),
    )


def _estimate_notes(result: BTLResult, frame: pd.DataFrame) -> list[str]:
    """Return notes on estimates, intervals and the coding of answers."""
    release = result.release
    design = release.design
    level = percent(1.0 - result.alpha)
    noisy = bool((2.0 * frame["privacy"] >= frame["sampling"]).mean() > 0.5)
    # with covariates the rows are terms, not items
    if design.covariates is None:
        shared = (frame["rank"].loc[list(part)] for part in result.components)
        key = "worths" if len(result.components) == 1 else "worths of components"
        notes = guarantee.interval_notes(key, release, level)
        notes += [*chain.from_iterable(map(guarantee.tie_notes, shared)), *_cost_notes(result)]
    else:
        scale = "centred" if _by_items(release) else "sum to zero"
        notes = guarantee.interval_notes("coefficients", release, level) + said(scale)
        notes += _zero_notes(design.covariates) + _fit_of_items(result)
        notes += _group_notes(release, design.covariates)
    return [
        *notes,
        *_tie_notes(result),
        *guarantee.loss_notes(release, result.estimator),
        *guarantee.bound_notes(design),
        *guarantee.cost_notes(release, result.design_effect, noisy),
    ]


def _shown(result: BTLResult, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the printed rows of a fit: identified terms and a tie parameter."""
    estimate = frame.columns[0]
    shown = frame.where(frame[estimate].notna(), axis=0)
    if "rank" in frame:
        sizes = {item: len(part) for part in result.components for item in part}
        among = [f" of {sizes[item]}" if sizes[item] < len(frame) else "" for item in frame.index]
        shown = shown.assign(ranks=tables.rank_ranges(frame) + among)
    if not result.release.design.davidson:
        return shown
    tie = result.tie_parameter.rename({"estimate": estimate})
    row = tie.to_frame(TIE_ROW).T.assign(ranks="")
    return pd.concat([shown, row])[list(shown)]


def limit_notes(result: BTLResult) -> list[str]:
    """Return notes on missing errors and infinite intervals."""
    # an item that is not identified has NaN everywhere, and the covariance did not fail
    shown = result.params.notna()
    errors = result.bse[shown].to_numpy(dtype=np.float64)
    notes = said("no limit", result._unlimited())
    if result.release.design.davidson:
        ties = result.tie_parameter
        errors = np.append(errors, ties["std_err"])
        notes += said("nobody ties", math.isinf(ties["lower"]))
        notes += said("everybody ties", math.isinf(ties["upper"]))
    known = np.isfinite(errors).all() and result.conf_int()[shown].notna().all(axis=None)
    return warned("uncertain", not known) + notes


def _estimator(result: BTLResult, size: str) -> str:
    """Return the estimator in words, without the size of a bias-corrected ridge."""
    if result.corrected:
        return "ridge, bias-corrected"
    return "unpenalised" if result.penalty == 0 else f"ridge, penalty {size}"


def _tie_notes(result: BTLResult) -> list[str]:
    """Return notes on the tie parameter."""
    if not result.release.design.davidson:
        return []
    probability = float(answer_probabilities(np.zeros(1), result.estimate.coefficients[-1])[1][0])
    return said("tie parameter", probability=probability)


def _matching_notes(result: BTLResult) -> list[str]:
    """Return notes on the check of the matching of opponents."""
    matching = result._equations().matching
    if matching is None:
        return []
    if math.isnan(matching.off):
        return said("matching unchecked")
    known = math.isfinite(matching.error)
    return [
        *said("matching allowed for", known, beta=matching.beta, error=matching.error),
        *said("matching checked", pvalue=tables.format_pvalue(matching.pvalue)),
    ]


def _unlike_notes(matching: Matching) -> list[str]:
    """Return a warning if the matching of opponents contradicts the model."""
    if not math.isfinite(matching.error):
        unlike = matching.pvalue < MATCHING_LEVEL
        return warned("matching rejected", unlike, pvalue=tables.format_pvalue(matching.pvalue))
    margin = -float(ndtri(MATCHING_LEVEL)) * matching.error
    within = abs(matching.beta) - matching.most <= margin
    return warned("matching by worth", not within, beta=matching.beta, most=matching.most)


def _cost_notes(result: BTLResult) -> list[str]:
    """Return advice to avoid released pair counts, if they dominate the error."""
    release = result.release
    facts = result._equations()
    other = release.link != LOGIT or release.design.davidson or facts.items < MIN_ITEMS_MATCHED
    if other or PAIR_COUNTS not in release.parts or facts.count_variance == 0.0:
        return []
    # with many items, use differences among a few that are evenly spread in the list
    some = np.unique(np.linspace(0, facts.items - 1, _SOME_ITEMS).astype(int))
    errors = result._inference().errors
    first, second = np.triu_indices(len(some), 1)
    noise = facts.noise_covariance(result.estimate.coefficients, facts.pair_terms)
    counts = propagate(errors.response[some], noise)
    total = errors.total[np.ix_(some, some)]
    parts = [own_and_between(part)[first, second] for part in (counts, total)]
    return said("costly counts", np.median(parts[0] / np.maximum(parts[1], 1e-300)) > 0.5)


def _by_items(release: Release) -> bool:
    """Return whether worths are functions of item covariates."""
    facts = release.design.covariates
    return facts is not None and bool(facts.item_columns)


def _tests_of_terms(result: BTLResult) -> list[str]:
    tests = [
        f"{name}: statistic = {row['statistic']:.2f}, df = {row['df']:.0f}, "
        f"{tables.format_pvalue(row['pvalue'])}"
        if row["df"]
        else f"{name}: {tables.UNIDENTIFIED}"
        for name, row in result.wald_test_terms().to_dict("index").items()
    ]
    return said("coefficient tests") + said("tests of terms", tests="; ".join(tests))


def _test_of_equality(result: BTLResult) -> list[str]:
    """Return notes on the tests of single worths and of equality of all worths."""
    test = result.test_homogeneity()
    if test.df == 0:
        return said("equal worths, unknown")
    several = [part for part in result.components if len(part) > 1]
    key = "equal worths"
    if len(result.components) > 1:
        key += ", components" if len(several) > 1 else ", identified"
    method = "worth tests, Wald" if result._inference().many else "worth tests"
    pvalue = tables.format_pvalue(test.pvalue)
    facts = {
        "statistic": test.statistic,
        "df": test.df,
        "pvalue": f"Monte Carlo {pvalue}" if test.draws else pvalue,
    }
    return said(method) + said(key, count=len(several[0]), **facts)


def _fit_of_items(result: BTLResult) -> list[str]:
    """Return notes on the deviation of items from the covariate model."""
    facts = result.release.design.covariates
    if facts is None or (free := result._inference().free) is None:
        return []
    scatter = zip(facts.columns, np.sqrt(free.scatter), strict=True)
    return said(
        "lack of fit",
        pvalue=tables.format_pvalue(result.test_lack_of_fit()["pvalue"]),
        listed=", ".join(f"{name} {sd:.2f}" for name, sd in scatter),
        freedom=result.release.design.item_freedom,
    )


def _zero_notes(facts: Covariates) -> list[str]:
    """Return a note on the covariate values of coefficients without a prefix."""
    names = " and ".join(name for name, _, _ in facts.bounds)
    return said("zero of covariates", names and "Intercept" in facts.columns, names=names)


def _group_notes(release: Release, facts: Covariates) -> list[str]:
    """Return a note with the released numbers of answers by group."""
    # a single cell has all answers: its share is public, and nothing was released about it
    if release.source == "none" or release.design.kind == "public" or facts.cells == 1:
        return []
    released = score_equations(release).group_answers
    groups = "; ".join(
        f"{', '.join(label.values())} {answers:,.0f}"
        for label, answers in zip(facts.cell_labels, released, strict=True)
    )
    return said("groups", groups=groups)


def _public_notes(release: Release, facts: Covariates) -> list[str]:
    """Return notes on the public covariates of a public design."""
    public = release.source != "none" and release.design.kind == "public"
    return said("covariates public", public and facts.names) + said(
        "order public", public and facts.ordered
    )


def fit_warnings(
    release: Release, equations: ScoreEquations, fitted: WorthEstimate
) -> tuple[str, ...]:
    """Return the warnings about a fit."""
    plain = equations.covariates is None
    matching = equations.matching
    parts = equations.components.groups
    messages = part_notes(release.design, parts, rough=matching is not None)
    whole = len(parts) == 1
    alone = whole and _by_items(release) and pair_counts(release).get("member") is not None
    messages += warned("item covariates alone", alone)
    messages += _weak_notes(release.design, equations)
    few = MOMENTS[0] in release.parts and release.design.nobs < MIN_CLUSTERS
    messages += warned("few respondents", few, fewest=MIN_CLUSTERS)
    if len(parts) == equations.items:  # no number is shown that needs a warning
        return (*messages, *guarantee.delta_notes(release))
    messages += warned("infinite", fitted.infinite, estimates="worths" if plain else "coefficients")
    noisy = plain and release.source != "none" and len(equations.pairs.first) > 0
    score = equations.score[: equations.items]
    # in the local model unanimous answers to a pair are on the boundary at every epsilon
    beyond = noisy and not attainable(score, equations.pairs, equations.function)
    messages += warned("beyond", beyond) + warned("unfinished", not fitted.converged)
    if matching is not None:
        messages += _unlike_notes(matching)
    messages += guarantee.delta_notes(release) + _rough_notes(equations)
    messages += _ridge_notes(release, equations, fitted)
    return tuple(messages)


def _ridge_notes(release: Release, equations: ScoreEquations, fitted: WorthEstimate) -> list[str]:
    """Return a warning if the ridge is large relative to the information."""
    ridge = fitted.worths_ridge(release.design)
    # without covariates the ridge and the information at equal worths and counts are numbers
    if not isinstance(ridge, np.ndarray):
        nominal = nominal_information(equations.items, released_total(equations), equations.fitted)
        most = ridge / nominal if nominal > 0 else math.inf
    else:
        curvature = equations.fitted.mean_curvature * equations.pairs.count
        linear = equations.linear
        if linear.worths is not None:  # no ridge for a tie parameter
            linear = linear.worths
            ridge = ridge[:-1, :-1]
        information = linear.information(np.asarray(curvature))
        p = len(ridge)
        # unidentified directions are not shown
        known = (
            linear.identity
            if equations.components.projection is None
            else equations.components.projection[:p, :p]
        )
        rest = np.trace(information + ridge) * (np.eye(len(known)) - known)
        # the largest eigenvalue of the ridge relative to the information, over all directions
        most = largest_ratio(ridge, information + rest) if ridge.any() else 0.0
    return warned("large ridge", most > 1.0, most=most)


def part_notes(design: Design, parts: Sequence[IntArray], *, rough: bool = False) -> list[str]:
    """Return warnings about items that the released comparisons do not connect.

    If `rough`, the reason is that the counts of items are too noisy.
    """
    items = design.items
    alone = [items[part[0]] for part in parts if len(part) == 1 < len(items)]
    several = [part for part in parts if len(part) > 1]
    times = 1.0 / MAX_ERROR
    if len(alone) == len(items):
        key = "rough counts" if rough else "no item identified"
        return warned(f"{key}, rows" if design.max_rows > 1 else key, times=times)
    names = " and ".join("{" + ", ".join(items[k] for k in part) + "}" for part in several)
    key = "items too rough" if rough else "items not identified"
    return [
        *warned(key, alone, names=", ".join(alone), times=times),
        *warned("components", len(several) > 1, names=names),
    ]


def _weak_notes(design: Design, equations: ScoreEquations) -> list[str]:
    """Return a warning about weakly identified items.

    For every weak cut these are the items on the smaller side.
    """
    weak = np.zeros(equations.items, dtype=bool)
    for side, _ in hardly_identified(equations):
        inside = side > 0
        others = equations.components.together[np.argmax(inside)] & ~inside
        weak |= inside if inside.sum() <= others.sum() else others
    names = ", ".join(design.items[k] for k in np.flatnonzero(weak))
    return warned("weakly identified", names, names=names)


def _rough_notes(equations: ScoreEquations) -> list[str]:
    """Return a warning about groups with few answers relative to the noise."""
    facts = equations.covariates
    error = math.sqrt(equations.variance(GROUP_ANSWERS))
    if facts is None or error == 0.0:
        return []
    rough = [
        f"{', '.join(f'{name} {level}' for name, level in cell.items())} ({answers:.0f})"
        for cell, answers in zip(facts.cell_labels, equations.group_answers, strict=True)
        if error > ROUGH * answers
    ]
    return warned("rough groups", rough, error=error, groups="; ".join(rough))
