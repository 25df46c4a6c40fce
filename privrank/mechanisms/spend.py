"""Spend, then draw, then build the release: the steps of every mechanism."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from privrank.distributions.links import LOGIT, Link
from privrank.privacy.budget import Ledger
from privrank.privacy.noise import NoiseSource
from privrank.release.release import Release, fit_error_guard
from privrank.release.survey import Design, PartPlan, Plan, Sample
from privrank.util.arrays import IntArray, Rng
from privrank.util.checks import warn


@dataclass(frozen=True, slots=True)
class Drawn:
    """The values that a mechanism has drawn, with the public facts about them.

    Parameters
    ----------
    values : mapping of str to ndarray of int64
        Released values, by part.
    tie_break : tuple of int
        A random order of the items, drawn without looking at the data.
    found : mapping of str to float
        Facts about how the values were found, computed from them.
    then : callable, optional
        Adds to the release the statistics that depend on the values, with the noise and the share
        of epsilon of the plan.
    """

    values: Mapping[str, IntArray]
    tie_break: tuple[int, ...]
    found: Mapping[str, float] = field(default_factory=dict)
    then: Callable[[Release], Release] | None = None


def spend_and_release(
    plan: Plan,
    survey: Design | Sample,
    drawn: Callable[[], Drawn],
    *,
    budget: Ledger | None,
    rng: Rng,
    link: Link = LOGIT,
) -> Release:
    """Spend the epsilon of a plan, draw its parts and return the release.

    Without a budget nothing is reserved. A fit that may be published, with a finite epsilon and
    secure noise, warns about this once. Seeded noise is for simulations, whose results are not for
    publication and of which studies make thousands.

    Parameters
    ----------
    plan : Plan
        The parts to release with their noise, fixed from public numbers.
    survey : Design or Sample
        Public facts of the data.
    drawn : callable
        Reads the data and adds the noise of the plan. It is called once, after the budget was
        reserved.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.
    link : Link, optional
        Link of the model.

    Raises
    ------
    BudgetExceeded, ValueError, TypeError, OSError
        Before anything is read or drawn: if the budget has too little left, protects another unit,
        is none, or cannot be written.
    FitError
        If reading or drawing fails. The budget remains spent.

    Notes
    -----
    **Privacy.** `drawn` and the `then` that it returns alone see the data, and they are called
    after the budget was reserved. They add the noise of the plan, so their values together have the
    guarantee that is proved for the plan. The rest of a release is the plan itself, public facts
    and functions of the values.
    """
    if not isinstance(budget, Ledger | None):
        raise TypeError(
            f"budget must be a privrank.Budget or None, got {type(budget).__name__}. Make one with "
            f"privrank.Budget(epsilon=...)."
        )
    if budget is not None:
        budget.reserve(
            plan.by,
            plan.epsilon,
            plan.delta,
            unit=survey.unit,
            max_rows=survey.max_rows,
            rho=plan.rho,
            released=plan.mechanism,
        )
    elif rng is None and math.isfinite(plan.epsilon):
        _advise(survey.unit)
    outcome = fit_error_guard(drawn, None, "")
    source: NoiseSource = "secure" if rng is None else "seeded"
    release = Release(
        plan=plan,
        survey=survey,
        source="none" if math.isinf(plan.epsilon) else source,
        values=outcome.values,
        tie_break=outcome.tie_break,
        found=outcome.found,
        link=link,
    )
    return release if outcome.then is None else outcome.then(release)


_ADVISED = Lock()
"""Acquired for good by the thread that gives the advice, so only one of several threads does."""


def _advise(unit: str) -> None:
    """Warn once in a process that fits without a budget are not recorded."""
    if not _ADVISED.acquire(blocking=False):
        return
    try:
        warn(
            "this fit is not recorded in a budget, although its epsilon adds to the epsilon of "
            "every other fit to the same data. Make budget = privrank.Budget('survey.ledger', "
            f"epsilon=..., unit={unit!r}) with the total, and pass budget= to all fits (shown "
            "once)."
        )
    except BaseException:  # if warnings are errors, the next fit is stopped as well
        _ADVISED.release()
        raise


def draw(part: PartPlan, exact: IntArray, rng: Rng) -> IntArray:
    """Return the exact statistic with the noise that was planned for it.

    Notes
    -----
    **Privacy.** The noise is the noise of the plan, where its proof is, on the lattice of
    `part.fineness` steps in one of the exact statistic; nothing else of the statistic is used. A
    part without noise of its own, such as an order found in noisy numbers, is not drawn.
    """
    if part.noise is None:
        raise AssertionError("a part that was planned without noise cannot release a statistic")
    return part.noise.draw(part.fineness * np.asarray(exact, dtype=np.int64), rng)
