"""Which archived releases could have been made: numbers that cannot belong together are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from privrank.privacy.budget import Unit, pure_epsilon
from privrank.privacy.gaussian import gaussian_delta
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.netnoise import ZeroSumLaplace, cell_noise, count_noise, net_noise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace, NoiseSource
from privrank.release.names import (
    ACTIVITY,
    CEILING,
    CONCERNED,
    COVARIANCE,
    DECISION,
    DEPENDENCE,
    DETAILS,
    GROUP_ANSWERS,
    LARGEST,
    NET,
    ORDER,
    ORDER_EFFECT,
    PAIR_COUNTS,
    PAIRS,
    PVALUE,
    QUERIES,
    SCORE,
    SCORES,
    TOTALS,
    WINS,
    WORTHS,
)
from privrank.release.plan import PartPlan, Plan
from privrank.release.survey import (
    Covariates,
    Design,
    DesignKind,
    Excess,
    Origin,
    Sample,
    SampleKind,
)
from privrank.util.checks import check_delta, check_epsilon, check_items, is_number

__all__ = ["verify"]

Values = NDArray[np.int64]

_NEAR = 1e-6
"""Relative room for other versions of the numerics that calibrated the noise."""

_FALLBACK = "fallback"
_OWN_RANDOMNESS = frozenset({PVALUE, DECISION})
_DISTRIBUTIONS: dict[type, Any] = {
    DiscreteLaplace: "laplace",
    DiscreteGaussian: "gaussian",
    ZeroSumLaplace: "zero-sum-laplace",
    PermutohedronNoise: "permutohedron",
}


def verify(
    plan: Plan,
    survey: Design | Sample,
    source: str,
    values: Mapping[str, Values],
    tie_break: tuple[Any, ...],
    found: Mapping[str, Any],
) -> None:
    """Refuse a release that no fit makes, in one sentence.

    Checked are ranges, the public facts among themselves, the scale of every noise against
    sensitivity and epsilon, the parts against the total, and that values, orders and decisions are
    of their kind. That is no signature: somebody who draws numbers from the noise of another data
    set, or of none, writes an archive that passes, and whether noise was secret cannot be read
    from it.

    Raises
    ------
    ValueError
        If the numbers cannot belong together.
    """
    try:
        _survey(survey, source)
        _total(plan, source)
        for name, drawn in values.items():
            part = plan.parts[name]
            _part(name, part, plan, survey, source)
            _of_its_kind(name, part, drawn, survey, source)
        _named(plan, survey, values, source)
        if source == "respondents" and ORDER in values:
            _reports(plan, survey, values)
        _require(sorted(tie_break) == list(range(len(survey.items))), "an order of all items")
        known = [value for value in found.values() if not math.isnan(value)]
        _require(all(_finite(v) and v >= 0 for v in known), "numbers found in it")
        if "gap" in found:
            _require(
                found["gap"] <= _widest_gap(plan, survey, values), "a gap that orders can have"
            )
        if plan.settings.get(DEPENDENCE) == "worst" and isinstance(survey, Design):
            _design_effects(found[LARGEST], found[CEILING], survey)
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        reason = str(error) if isinstance(error, _Unfit) else "numbers of the right kind"
        raise ValueError(
            f"text is no release that a fit can make, which has {reason}: take the text as it was "
            f"written."
        ) from None


class _Unfit(ValueError):
    """What a release has to have, in a few words."""


def _require(fine: object, what: str) -> None:
    if not fine:
        raise _Unfit(what)


def _whole(value: object, low: int) -> bool:
    return type(value) is int and low <= value < 2**53


def _finite(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


def _close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=_NEAR)


def _survey(survey: Design | Sample, source: str) -> None:
    """Check the public facts by themselves."""
    _require(check_items(list(survey.items)), "items")
    _require(all(isinstance(item, str) for item in survey.items), "items that are texts")
    least = 0 if source == "respondents" else 1  # of those who are asked, none may have answered
    _require(_whole(survey.nobs, least) and _whole(survey.max_rows, 1), "whole numbers of units")
    _require(survey.unit in get_args(Unit), "a unit that is a row or a respondent")
    _require(survey.unit == "respondent" or survey.max_rows == 1, "one row where rows are units")
    flags = [value for value in asdict(survey).values() if isinstance(value, bool)]
    if isinstance(survey, Sample):
        _require(len(flags) == 2 and survey.kind in get_args(SampleKind), "rankings or choices")
        _require(isinstance(survey.group_column, str), "a column of groups")
        sizes = [size for _, size in survey.groups]
        _require(all(size is None or _whole(size, 0) for size in sizes), "sizes of groups")
        _require(len({size is None for size in sizes}) <= 1, "sizes of all groups or of none")
        _require(not survey.paired or len(sizes) == 2, "two groups where answers are paired")
        if survey.sizes:
            known = survey.sizes
            each = {survey.nobs} == set(known) if survey.paired else sum(known) == survey.nobs
            _require(each, "groups that add up to the number of units")
        return
    _require(len(flags) == 2, "declarations that are true or false")
    _require(survey.kind in get_args(DesignKind), "a design that is public or private")
    _require(survey.excess in get_args(Excess), "an excess that is refused or sampled")
    if survey.covariates is not None:
        _covariates(survey.covariates, len(survey.items))
    if (pairs := survey.pairs) is not None:
        patterns = 1 if survey.covariates is None else max(1, survey.covariates.patterns)
        last = len(survey.items) * patterns
        _require(pairs.origin in get_args(Origin), "pair counts of a known origin")
        _require(
            len(pairs.first) == len(pairs.second) == len(pairs.count)
            and ((pairs.first >= 0) & (pairs.first < pairs.second) & (pairs.second < last)).all()
            and np.isfinite(pairs.count).all()
            and (pairs.count >= 0).all(),
            "counts of pairs of its items",
        )


def _covariates(facts: Covariates, m: int) -> None:
    """Check that the names, columns and patterns of a linear predictor belong together."""
    columns, size = facts.columns, len(facts.columns)
    texts = [facts.formula, *columns, *facts.item_columns]
    for name, levels in facts.factors:
        texts += [name, *levels]
        _require(len(set(levels)) == len(levels) >= 2, "different levels")
    for name, low, high in facts.bounds:
        texts.append(name)
        _require(_finite(low) and _finite(high) and low < high, "bounds of numbers")
    _require(all(isinstance(text, str) for text in texts), "names that are texts")
    ends = [0, *(stop for _, _, stop in facts.terms)]
    starts = [start for _, start, _ in facts.terms]
    _require(starts == ends[:-1] and ends[-1] == size, "terms of its columns")
    _require(all(isinstance(name, str) for name, _, _ in facts.terms), "terms that are texts")
    known = all(len(each) == len(facts.bounds) for each in facts.monomials)
    _require(known and {e for each in facts.monomials for e in each} <= {0, 1}, "its monomials")
    _require(type(facts.ordered) is bool, "an order effect that is there or not")
    _require(facts.weights.shape == (facts.rows, size), "weights of its columns")
    _require(facts.item_matrix.shape == (m, len(facts.item_columns)), "covariates of all items")
    for table in (facts.weights, facts.item_matrix, facts.units):
        _require(np.isfinite(table).all(), "finite tables")
    _require(
        ((facts.cell >= 0) & (facts.cell < facts.cells)).all()
        and len(facts.cell) == len(facts.position) == len(facts.first)
        and (np.abs(facts.first) <= 1).all(),
        "patterns of its covariates",
    )


def _total(plan: Plan, source: str) -> None:
    """Check the guarantee, and that the parts make it up."""
    _require(check_epsilon(plan.epsilon) and check_delta(plan.delta) >= 0, "a guarantee")
    _require(source in get_args(NoiseSource), "a known source of noise")
    _require((source == "none") == math.isinf(plan.epsilon), "noise where epsilon is finite")
    _require(plan.rho is None or (is_number(plan.rho) and plan.rho >= 0), "a rho of at least 0")
    for value in plan.settings.values():
        _require(isinstance(value, str | bool) or is_number(value), "settings that are plain")
        _require(not (isinstance(value, float) and math.isnan(value)), "settings that are numbers")
    if source in ("none", "respondents"):
        return
    # groups share the epsilon of their totals, and an order of queries that of the queries
    spent = {DETAILS if name.startswith(DETAILS) else name: p for name, p in plan.parts.items()}
    if ORDER in spent and not {PAIRS, TOTALS} & spent.keys():
        spent = {ORDER: spent[ORDER]}
    total = math.fsum(part.epsilon for part in spent.values())
    most = pure_epsilon(plan.epsilon, plan.delta)
    _require(
        plan.epsilon * (1.0 - _NEAR) <= total <= most * (1.0 + _NEAR),
        "parts whose epsilons add up to the total",
    )


def _part(name: str, part: PartPlan, plan: Plan, survey: Design | Sample, source: str) -> None:
    """Check the noise of a part against its sensitivity and epsilon."""
    _require(_whole(part.sensitivity, 0) and part.step > 0 and _finite(part.step), "a lattice")
    noise, epsilon = part.noise, part.epsilon
    _require(is_number(epsilon) and epsilon >= 0, "an epsilon of every part")
    _require(source != "respondents" or epsilon == 0, "noise of the respondents alone")
    if noise is None:
        _require(epsilon == 0 or name == ORDER, "noise in every part that spends")
        _require(part.sensitivity == 0, "a sensitivity where there is noise")
        _require(name != ORDER or part.step == 1.0, "an order in steps of one")
        return
    fine = getattr(noise, "fineness", 1)
    _require(_whole(fine, 1) and part.sensitivity % fine == 0, "whole steps of its noise")
    silent = math.isinf(noise.rate) if hasattr(noise, "rate") else noise.scale == 0
    if name.startswith(DETAILS):
        body = isinstance(noise, PermutohedronNoise)
        _require(
            _close(part.step * (part.sensitivity if body else 1), 1.0), "totals in their steps"
        )
    if source in ("none", "respondents") or name in _OWN_RANDOMNESS:
        _require(silent, "noise in private releases only")
        _require(name not in _OWN_RANDOMNESS or part.sensitivity == 1, "one step of a decision")
        return
    _require(not silent and epsilon > 0, "noise in every part of a private release")
    _require(getattr(noise, "items", len(survey.items)) == len(survey.items), "noise of all items")
    if isinstance(survey, Design) and _by_reach(name, part, survey, plan):
        return
    if name in (GROUP_ANSWERS, ORDER_EFFECT):
        _require(part.step == 1.0, "counts in steps of one")
    if name == TOTALS and isinstance(noise, PermutohedronNoise):
        _require(_close(part.step * part.sensitivity, 1.0), "totals on their lattice")
    if name == DEPENDENCE:
        form = plan.settings[DEPENDENCE]
        _require(form in ("worst", "pairs") and part.step <= 1, "a known form of dependence")
        _require(form == "pairs" or _close(part.step * part.sensitivity, 1), "its lattice")
    if name in (PAIRS, SCORE):
        _require(_close(part.step * plan.number("steps"), 1.0), "pairs on their lattice")
    if isinstance(noise, DiscreteGaussian):
        _gaussian(noise, part, plan)
        return
    rate = noise.rate if isinstance(noise, CubeNoise | PermutohedronNoise) else 1.0 / noise.scale
    spent = rate * _moved(name, part, plan, len(survey.items))
    # the worths of a perturbed objective have noise of their own besides, at the rest of epsilon
    fits = 0 < spent < epsilon if name == WORTHS else _close(spent, epsilon)
    _require(fits, "noise of the scale that sensitivity and epsilon ask for")


def _moved(name: str, part: PartPlan, plan: Plan, m: int) -> int:
    """Return how far one unit moves a part, as its noise counts it."""
    pairs = m * (m - 1) // 2
    if name == QUERIES:
        return part.sensitivity * int(plan.number("cap"))
    every = name == _FALLBACK or (name == PAIRS and isinstance(part.noise, DiscreteLaplace))
    return part.sensitivity * (pairs if every else 1)


def _named(plan: Plan, survey: Design | Sample, values: Mapping[str, Values], source: str) -> None:
    """Check that mechanism, method and rho are those of the parts."""
    _require(isinstance(plan.mechanism, str) and isinstance(plan.method, str), "a named mechanism")
    if "steps" in plan.settings:
        _require(_whole(plan.settings["steps"], 1), "whole steps")
    if source == "respondents":
        _require(plan.rho is None, "no rho in the local model")
        return
    for name in ("score share", "threshold level", "level"):
        share = plan.settings.get(name, 0.5)
        _require(_finite(share) and 0 < float(share) < 1, "shares and levels below 1")
    if isinstance(survey, Design):
        named = {"objective perturbation": WORTHS, "respondents by activity": ACTIVITY}
        main = named.get(plan.mechanism, plan.mechanism)
        _require(plan.method == plan.mechanism and main in values, "the part of its mechanism")
    elif ORDER in values:
        nouns = {PAIRS: "pair counts, ", TOTALS: "Borda totals, "}
        noun = "".join(word for name, word in nouns.items() if name in values)
        _require(plan.mechanism == noun + plan.method, "the part of its mechanism")
    if isinstance(survey, Sample) and "rate" in plan.settings:
        pairs = len(survey.items) * (len(survey.items) - 1) // 2
        moved = plan.number("rate") * 2 * pairs * plan.number("steps")
        _require(_close(moved, plan.parts[ORDER].epsilon), "the rate that its epsilon asks for")
    distributions = {type(plan.parts[name].noise) for name in values}
    if plan.rho is not None and source != "none" and not distributions & {DiscreteGaussian}:
        rho = sum(0.5 * plan.parts[name].epsilon ** 2 for name in values)
        if WORTHS in values:  # its two shares are one part
            part = plan.parts[WORTHS]
            output = part.sensitivity / getattr(part.noise, "scale", math.nan)
            rho += output**2 - part.epsilon * output
        _require(_close(plan.rho, rho), "the rho of its parts")


def _gaussian(noise: DiscreteGaussian, part: PartPlan, plan: Plan) -> None:
    """Check Gaussian noise by the concentrated privacy that its release states."""
    others = sum(0.5 * p.epsilon**2 for p in plan.parts.values() if p is not part)
    rho = -1.0 if plan.rho is None else plan.rho - others
    _require(rho > 0, "Gaussian noise with its rho")
    moved = math.sqrt(2.0 * rho) * noise.scale
    most = gaussian_delta(noise.scale, part.epsilon, moved)
    least = gaussian_delta(noise.scale, part.epsilon * (1 + 1e-3), moved)
    _require(moved >= part.sensitivity * (1.0 - _NEAR), "Gaussian noise for its sensitivity")
    _require(
        least * (1 - 1e-3) <= plan.delta and plan.delta * 0.98 <= most,
        "Gaussian noise of the scale that rho, epsilon and delta ask for",
    )


def _by_reach(name: str, part: PartPlan, design: Design, plan: Plan) -> bool:
    """Check parts of comparisons by what one unit can change; False if it is another part."""
    covariates, sensitivity, noise, delta = (
        design.covariates,
        design.sensitivity,
        part.noise,
        plan.delta,
    )
    distribution: Any = _DISTRIBUTIONS.get(type(noise))
    step = 1.0
    if name == NET and (covariates is None or not covariates.bounds):
        asked: Any = net_noise(sensitivity, distribution, part.epsilon, delta)
    elif name == WINS:
        asked = cell_noise(sensitivity, distribution, part.epsilon, delta, ties=design.ties)
        step = 0.5 if design.ties else 1.0
    elif name == PAIR_COUNTS:
        asked = count_noise(sensitivity, part.epsilon)
    else:
        return False
    size = "rate" if isinstance(noise, CubeNoise | PermutohedronNoise) else "scale"
    _require(
        type(asked.distribution) is type(noise)
        and _close(getattr(asked.distribution, size), getattr(noise, size))
        and getattr(asked.distribution, "fineness", 1) == getattr(noise, "fineness", 1)
        and part.sensitivity == asked.sensitivity
        and _close(part.step, step / asked.fineness),
        "noise of the scale that sensitivity and epsilon ask for",
    )
    if type(noise) is DiscreteGaussian:
        others = sum(0.5 * p.epsilon**2 for p in plan.parts.values() if p is not part)
        _require(plan.rho is not None and _close(plan.rho, asked.rho + others), "its rho")
    return True


def _of_its_kind(
    name: str, part: PartPlan, values: Values, survey: Design | Sample, source: str
) -> None:
    """Check that values are on the lattice of their part, and as many as it has."""
    m = len(survey.items)
    sizes = {WINS: m * (m - 1), PAIRS: m * (m - 1) // 2, TOTALS: m, PVALUE: 1, DECISION: 1}
    if source in ("none", "respondents") and isinstance(survey, Design) and survey.pairs:
        sizes[WINS] = 2 * len(survey.pairs.first)  # of the pairs that were met
    _require(values.size == sizes.get(name, values.size) > 0, "as many values as its parts have")
    dimension = getattr(part.noise, "dimension", values.size)
    _require(dimension == values.size, "noise of as many values")
    if name == ORDER:
        _require(sorted(values.tolist()) == list(range(m)), "an order of all items")
    if name in (PVALUE, DECISION):
        _require(0 <= values.min() and values.max() * part.step <= 1.0, "p-values from 0 to 1")
    if name == NET:
        _require(values.size % m == 0, "net wins of all items")
    if name == NET and (source == "none" or isinstance(part.noise, ZeroSumLaplace)):
        _require(not values.reshape(-1, m).sum(axis=1).any(), "net wins that add up to 0")


def _reports(plan: Plan, survey: Design | Sample, values: Mapping[str, Values]) -> None:
    """Check the numbers and moments of reports of the local model."""
    m = len(survey.items)
    if SCORES in values:  # which adaptive protocols do not tell
        about, sizes = values[CONCERNED], [values[k].size for k in (SCORES, COVARIANCE, CONCERNED)]
        _require(sizes == [m, m * m, m * m], "scores of all items with their covariance")
        _require((values[COVARIANCE][:: m + 1] >= 0).all(), "variances that are not negative")
        inside = (about >= 0) & (about <= survey.nobs)
        _require(inside.all(), "reports about items, of all reports")
    _require(_finite(plan.settings["gain"]) and plan.number("gain") > 0, "a gain")
    square = plan.settings["square"]
    _require(_finite(square) and 0 < float(square) <= 1, "votes of a mean square up to 1")
    if PAIRS in values:
        counts, net = values[PAIR_COUNTS], values[PAIRS] * plan.parts[PAIRS].step
        _require(counts.size == net.size and (counts >= 0).all(), "numbers of reports by pair")
        _require((np.abs(net) <= counts * (1.0 + _NEAR)).all(), "no more votes than reports")


def _widest_gap(plan: Plan, survey: Design | Sample, values: Mapping[str, Values]) -> float:
    """Return how far the scores of two orders can be apart, as sums of fractions over pairs.

    A pair adds to it how far its fraction is from that of the reverse, at most 1 if it was shrunk.
    """
    votes = values[PAIRS] * plan.parts[PAIRS].step
    if PAIR_COUNTS in values:
        apart = votes / (np.maximum(values[PAIR_COUNTS], 1) * plan.number("gain"))
    else:
        apart = 2.0 * votes / survey.nobs - 1.0
    return float(np.maximum(np.abs(apart), 1.0).sum())


def _design_effects(largest: float, ceiling: float, design: Design) -> None:
    """Check the design effects of the contrasts of a fit: where both are NaN it has none.

    Sums of r answers have design effects of at most r; of differences that were left out a bound is
    twice that.
    """
    _require(math.isnan(largest) == math.isnan(ceiling), "both bounds of its design effects")
    if not math.isnan(largest):
        most = design.sensitivity.effective_rows * (1 if design.few_differences else 2)
        _require(0 < ceiling <= min(largest, most) * (1.0 + _NEAR), "a largest design effect")
