"""How the dependence of a respondent's answers is released: chosen from public numbers."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from privrank.plans.choice import deviation, noise_choices
from privrank.release.survey import Design
from privrank.util.checks import check_choice

__all__ = ["FINE", "STEPS", "Dependence", "Form", "asked_form", "choose_form"]

Dependence = Literal["auto", "worst", "pairs", "none", "cluster"]

Form = Literal["worst", "pairs", "none", "cluster"]

SHARES: dict[Form, tuple[float, ...]] = {"worst": (0.05, 0.10, 0.15), "pairs": (0.1, 0.2, 0.3)}
"""Shares of epsilon that each form may take."""

MOST_NUMBERS = 2**25
"""Weights of the contrasts of a model with covariates that fit into memory."""

TYPICAL_SQUARE = 2.25
"""Largest square of an answer less what is expected of it, where that is a half either way."""

TYPICAL_EFFECT = 1.5
"""Design effect of a survey whose respondents differ, but not in one direction."""

STEPS = 2**16
"""Sensitivity of the largest design effect, in lattice steps."""

FINE = 2**8
"""Lattice steps of sums of squares within their own unit, where answers are less expected ones."""


def asked_form(design: Design, epsilon: float, dependence: Dependence) -> Form | None:
    """Return the form that the caller asks for, None where it is to be chosen.

    Raises
    ------
    ValueError
        If the form does not apply.
    """
    check_choice("dependence", dependence, Dependence)
    if dependence == "none" or (dependence == "auto" and design.unit == "row"):
        return "none"
    if design.unit == "row":
        raise ValueError(
            f"dependence={dependence!r} is about the answers of one respondent: name the "
            f"respondent column with respondent=."
        )
    if dependence == "cluster" and not math.isinf(epsilon):
        raise ValueError(
            "dependence='cluster' needs the covariance of all answers without noise: use "
            "dependence='auto', or epsilon=numpy.inf for the non-private run."
        )
    if dependence in ("auto", "cluster") and math.isinf(epsilon):
        return "cluster"
    rows, facts = design.sensitivity.effective_rows, design.covariates
    if design.nobs * rows**2 > 2**46:
        raise ValueError(
            f"max_rows={design.max_rows} is too large to measure dependence by: state the length "
            f"of the questionnaire, or use dependence='none'."
        )
    kinds = 1 if facts is None else len(np.unique(facts.kinds))
    shown = len(design.items) * (1 if facts is None else len(facts.columns) + facts.cells)
    if facts is not None and shown * kinds * len(design.items) > MOST_NUMBERS:
        raise ValueError(
            "dependence cannot be measured for so many combinations of covariate values: cut "
            "numeric covariates into declared levels, or use dependence='none'."
        )
    return None if dependence == "auto" else dependence


def choose_form(
    design: Design,
    epsilon: float,
    delta: float,
    taken: float,
    form: Form | None = None,
    share: float | None = None,
    *,
    nets: bool = True,
) -> tuple[Form, float]:
    """Return the form in which dependence is released, and its share of epsilon.

    Parameters
    ----------
    design : Design
        Public facts of the survey, whose unit is a respondent.
    epsilon, delta : float
        The guarantee of the whole fit.
    taken : float
        Share of epsilon that other side releases take.
    form, share : str, float, optional
        What the caller asked for.
    nets : bool
        Whether scores are net wins, as they are but for the log-losses of objective perturbation.

    Notes
    -----
    **Statistic.** For two worths that are equal, in units of the variance that independent answers
    would give their net wins, a fit has an interval of half width w(d) for the design effect d
    (:func:`_half_width`). The form of the least w(1.5)^2 w(D) is taken: 1.5 stands for an ordinary
    survey, and D for one whose respondents, with questions spread evenly over the pairs, are of two
    minds about one pair of items: all answers to either of them say so, which counts by half. The
    second moments of all pairs keep to that pair what the largest design effect spreads to all.
    Covariates and objective perturbation have one form.

    Raises
    ------
    ValueError
        If second moments of pairs are asked for where they are not those of the scores.
    """
    alone = design.covariates is not None or not nets
    if alone and form == "pairs":
        raise ValueError(
            "dependence='pairs' is for net wins and models without covariates: use "
            "dependence='worst' or leave it at 'auto'."
        )
    forms: tuple[Form, ...] = ("worst",) if alone else tuple(SHARES)
    candidates = [
        (name, part)
        for name in (forms if form is None else (form,))
        for part in (SHARES[name] if share is None else (share,))
    ]
    if math.isinf(epsilon):
        return min(candidates)
    least = deviation(
        noise_choices(design.sensitivity, epsilon, delta)[0], design.sensitivity.items
    )
    costs = [_cost(design, epsilon, least, taken, *each) for each in candidates]
    return min(zip(costs, candidates, strict=True))[1]


def _cost(
    design: Design, epsilon: float, least: float, taken: float, form: Form, share: float
) -> float:
    """Return the cost of a form at a share, given the deviation of net wins with all of epsilon."""
    sensitivity, n = design.sensitivity, design.nobs
    if taken + share >= 1.0:  # without room for it
        return math.inf
    rows, pairs = sensitivity.effective_rows, sensitivity.pairs
    independent = 2.0 * sensitivity.items * rows / pairs
    # answering the pair itself, and then either of its items with a third
    largest = (
        2 * rows if not sensitivity.distinct else 2 + min(rows - 1, 2 * (sensitivity.items - 2))
    ) ** 2
    noise = 2.0 * least**2
    noise /= (1.0 - taken - share) ** 2 * n * independent
    moved = float(largest if form == "worst" else sensitivity.second_moments_l1)
    if design.varied:
        moved = TYPICAL_SQUARE * (largest if form == "worst" else sensitivity.convex_moments_l1)
    side = min(math.sqrt(2.0) * moved / (independent * share * n * epsilon), 1e100)
    even = _half_width(TYPICAL_EFFECT, side, noise, n)
    # how probable it is that a respondent has two answers, of all that can say the same
    both = rows * (rows - 1) / (pairs * max(pairs - 1, 1) if sensitivity.distinct else pairs**2)
    others = 4 * (sensitivity.items - 1) ** 2 - (
        2 * sensitivity.items if sensitivity.distinct else 0
    )
    divided = max(TYPICAL_EFFECT, 0.5 * (1.0 + both * others / independent))
    return even**2 * (_half_width(divided, side, noise, n) if form == "worst" else even)


def _half_width(effect: float, side: float, noise: float, n: int) -> float:
    """Return the half width of an interval for a sampling variance that is itself noisy.

    Given the design effect, the standard deviation of its noise, and the variance of the noise of
    the estimate; t quantiles stand for what an error of the variance costs.
    """
    total = effect + noise
    df = 1.0 / (0.5 * (side / total) ** 2 + (effect / total) ** 2 / max(n - 1, 1))
    return float(stdtrit(df, 0.975)) * math.sqrt(total)
