"""What a bound on the rows of a respondent costs a fit of comparisons, from public numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privrank.plans.choice import Choice
from privrank.plans.comparisons import Request, plan_fit, predicted_error
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import ACTIVITY
from privrank.release.plan import PartPlan, Plan, Setting
from privrank.release.survey import Design, PairCounts
from privrank.util.arrays import FloatArray, IntArray


def plan_activity(bounds: Sequence[int], epsilon: float) -> Plan:
    """Plan the numbers of respondents without answers, up to each bound, and beyond the last.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one respondent with all their rows. Every respondent
    is in exactly one class, so one of them moves the numbers of two classes by 1 each: sensitivity
    2 in l1, whatever the bounds. Discrete Laplace noise for it spends epsilon. The number of
    respondents, the sum of all classes, is public.
    """
    name, cuts = "respondents by activity", ", ".join(map(str, bounds))
    part = PartPlan(DiscreteLaplace.calibrate(2, epsilon), 2, epsilon)
    settings: dict[str, Setting] = {"bounds": cuts}
    rho = 0.5 * epsilon**2
    return Plan("contribution_tradeoff", name, name, epsilon, 0.0, {ACTIVITY: part}, settings, rho)


@dataclass(frozen=True, slots=True, eq=False)
class Activity:
    """Respondents by the number of their answers, as far as the public knows them.

    Parameters
    ----------
    answers : ndarray of float64
        Answers of a respondent of each class; of a class of several numbers their mean.
    respondents : ndarray of float64
        Respondents in each class.
    variance : float
        Variance of their number.
    """

    answers: FloatArray
    respondents: FloatArray
    variance: float

    @classmethod
    def released(
        cls, bounds: Sequence[int], most: float, noisy: IntArray, nobs: int, variance: float
    ) -> Activity:
        """Read noisy numbers of respondents without answers, up to each bound, and beyond the last.

        As if all numbers of answers within a class, up to `most`, were equally frequent.
        """
        upper = np.array([0, *bounds, most], dtype=np.float64)
        answers = np.array([0.0, *(upper[:-1] + 1.0 + upper[1:]) / 2.0])
        some = answers <= most  # beyond it there is nobody but noise
        answers, counts = answers[some], np.maximum(noisy[some], 0).astype(np.float64)
        counts = counts if counts.any() else np.ones(len(counts))
        return cls(answers, counts * (nobs / counts.sum()), variance)

    def kept(self, bound: int) -> tuple[float, float]:
        """Return the rows that a bound keeps, and their standard error."""
        rows = np.minimum(self.answers, bound)
        return float(rows @ self.respondents), math.sqrt(self.variance * float(rows @ rows))

    def beyond(self, bound: int) -> float:
        """Return the respondents with more answers than a bound."""
        return float(self.respondents[self.answers > bound].sum())


def planned_fits(
    design: Design, bounds: Sequence[int], epsilon: float
) -> tuple[tuple[Design, Choice], ...]:
    """Return what a fit at each bound is going to release, by its public facts.

    Raises
    ------
    ValueError
        If a fit at one of the bounds is refused.
    """
    designs = [replace(design, max_rows=bound) for bound in bounds]
    choices = [plan_fit(Request(facts, epsilon)) for facts in designs]
    return tuple(zip(designs, choices, strict=True))


def difference_errors(
    design: Design, choice: Choice, rows: float, epsilon: float
) -> tuple[float, float]:
    """Predict the root mean squared error of a difference of two worths, and what samples add.

    Given a fit and the rows it keeps (:func:`privrank.plans.comparisons.predicted_error`, here
    of a contrast of squared length 2); samples alone are those of a fit without privacy.
    """
    some = max(rows, 1.0)
    whole = predicted_error(Request(design, epsilon), choice, some)
    known = replace(design, pairs=PairCounts.equal(len(design.items), 1.0))
    alone = predicted_error(Request(known, math.inf), Choice("net wins"), some)
    return math.sqrt(2.0 * whole), math.sqrt(2.0 * min(alone, whole))
