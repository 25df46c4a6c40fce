"""Spend, then draw: the two steps that every release is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privrank.privacy.budget import Ledger, check_budget
from privrank.release.plan import PartPlan, Plan
from privrank.release.survey import Design, Sample

__all__ = ["draw", "spend"]

IntArray = NDArray[np.int64]


def spend(budget: Ledger | None, plan: Plan, survey: Design | Sample) -> None:
    """Reserve what a plan costs, before anything is read or drawn.

    Raises
    ------
    BudgetExceeded, ValueError, TypeError
        If the budget has too little left, protects another unit, or is none.
    """
    check_budget(budget)
    if budget is not None:
        budget.reserve(
            f"{plan.by}: {plan.mechanism}",
            plan.epsilon,
            plan.delta,
            unit=survey.unit,
            max_rows=survey.max_rows,
            rho=plan.rho,
        )


def draw(part: PartPlan, exact: IntArray, rng: np.random.Generator | None) -> IntArray:
    """Return the exact statistic with the noise that was planned for it.

    Notes
    -----
    **Privacy.** The noise is calibrated to `part.sensitivity`, on the lattice of
    `part.fineness` steps in one of the exact statistic; nothing else of the statistic is used. A
    part without noise of its own, such as an order found in noisy numbers, is not drawn.
    """
    if part.noise is None:
        raise AssertionError("a part that was planned without noise cannot release a statistic")
    return part.noise.draw(part.fineness * np.asarray(exact, dtype=np.int64), rng)
