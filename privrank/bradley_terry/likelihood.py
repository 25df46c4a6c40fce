"""The likelihood of a non-private fit, and the likelihood-ratio test of nested ones.

With w_ij wins of item i over item j, ties half a win to each, it is the sum of w_ij log F(t_ij)
over ordered pairs. Where ties occur that is a quasi-likelihood: a tie counts as half an answer for
each item. For the logit it needs the net wins alone: score'b - sum n_ij log(2 cosh(t_ij / 2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from privrank.bradley_terry.estimate import Estimate
from privrank.bradley_terry.linear import ItemContrasts, predictor_matrix
from privrank.bradley_terry.modelmatrix import rows_at
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.distributions.links import LOGIT
from privrank.release.names import GROUP_ANSWERS, NET, ORDER_EFFECT, PAIR_COUNTS, WINS
from privrank.release.release import Release
from privrank.release.survey import FINENESS, Covariates

__all__ = ["Likelihood", "why_none"]

FloatArray = NDArray[np.float64]

_ANSWERS = {NET, WINS, PAIR_COUNTS, GROUP_ANSWERS, ORDER_EFFECT}
"""What a release holds of the answers, beside what is known of their dependence."""


def why_none(release: Release) -> str:
    """Return why a release has no likelihood, in one sentence; empty if it has one."""
    if release.source != "none":
        return (
            "a private fit has no likelihood, which is a function of the exact answers that the "
            "release does not hold: use test_homogeneity(), wald_test() or wald_test_terms(), or "
            "fit with epsilon=numpy.inf."
        )
    if WINS not in release.parts and release.link != LOGIT:
        return (
            f"the likelihood of link={release.link.name!r} needs the wins of every pair, and this "
            f"release holds net wins alone: fit the data again with link={release.link.name!r}."
        )
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """The likelihood of a non-private fit.

    Parameters
    ----------
    release : Release
        A release without noise.
    fitted : Estimate
        The fit.
    equations : ScoreEquations
        The release, read as score equations.
    """

    release: Release
    fitted: Estimate
    equations: ScoreEquations

    @classmethod
    def of(cls, release: Release, fitted: Estimate) -> Likelihood:
        """Return the likelihood of a fit, or say in one sentence why there is none."""
        if reason := why_none(release):
            raise ValueError(reason)
        return cls(release, fitted, score_equations(release))

    @property
    def comparisons(self) -> float:
        """Number of answers."""
        return self.equations.pairs.total

    @property
    def llf(self) -> float:
        """Log-likelihood at the estimates."""
        facts, b = self.equations, self.fitted.coefficients
        # the matching loss of the logit is counted from equal worths
        start = self.llnull if facts.answers is None else 0.0
        return start + float(facts.target @ b) - facts.loss.value(facts.linear.predict(b))

    @property
    def llnull(self) -> float:
        """Log-likelihood where either answer has probability 1/2."""
        return -math.log(2.0) * self.comparisons

    @property
    def df_model(self) -> int:
        """Number of coefficients that are free."""
        linear = self.equations.linear
        return linear.size - isinstance(linear, ItemContrasts)

    @property
    def maximised(self) -> bool:
        """Whether the estimates maximise the likelihood."""
        return not np.any(self.fitted.ridge) and self.fitted.converged

    def criterion(self, name: str, price: float) -> float:
        """Return an information criterion with this price of a coefficient."""
        if not self.maximised:
            raise ValueError(f"{name} needs estimates that maximise the likelihood: use penalty=0.")
        return price * self.df_model - 2.0 * self.llf

    def against(self, restricted: Likelihood) -> tuple[float, float, int]:
        """Test a nested fit; see :func:`privrank.results.loglikelihood.compare_lr_test`."""
        for each in (self, restricted):
            several = each.release.design.unit == "respondent" and each.release.design.max_rows > 1
            if several and each.release.parts.keys() - _ANSWERS:
                raise ValueError(
                    "compare_lr_test supposes independent answers, and a respondent gave several: "
                    "use wald_test(), wald_test_terms() or test_lack_of_fit(), whose errors allow "
                    "for that."
                )
            if not each.maximised:
                raise ValueError("compare_lr_test needs penalty=0 in both fits.")
        df = self.df_model - restricted.df_model
        if df <= 0 or not _nested(self, restricted):
            raise ValueError(
                "restricted must be a fit of the same answers with the same link, whose worths are "
                "a special case of this one's, with fewer coefficients."
            )
        statistic = max(0.0, 2.0 * (self.llf - restricted.llf))
        return statistic, float(chdtrc(df, statistic)), df


def _nested(full: Likelihood, restricted: Likelihood) -> bool:
    """Return whether a fit is nested in another of the same answers.

    Its predictors on the edges of the larger fit are then linear combinations A of those of the
    larger fit, its scores are A' those scores, and its counts give the same information.
    """
    facts, smaller = full.equations, restricted.equations
    columns = _predictors(facts, smaller.covariates)
    same = full.release.design.items == restricted.release.design.items
    if columns is None or not same or full.release.link != restricted.release.link:
        return False
    matrix = facts.linear.matrix()
    whole = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    gram = facts.linear.information(np.ones(len(whole)))
    combined = facts.linear.inverse(gram) @ whole.T @ columns
    close = 1e-6 * (1.0 + facts.pairs.total)
    wanted = smaller.linear.information(np.asarray(smaller.pairs.count, dtype=np.float64))
    apart = columns.T @ (facts.pairs.count[:, None] * columns) - wanted
    return bool(
        np.abs(whole @ combined - columns).max() < 1e-6
        and np.abs(combined.T @ facts.score - smaller.score).max() < close
        and np.abs(apart).max() < close
    )


def _predictors(full: ScoreEquations, narrow: Covariates | None) -> FloatArray | None:
    """Return the predictors of a smaller model on the edges of a larger one, shape (edges, p).

    None if it has covariates, levels or bounds that the larger model has not.
    """
    wide, m = full.covariates, full.items
    pattern, first, second = full.pairs.first // m, full.pairs.first % m, full.pairs.second % m
    if narrow is None:
        return np.asarray(np.eye(m)[first] - np.eye(m)[second])
    factors, bounds = ((), ()) if wide is None else (wide.factors, wide.bounds)
    if not set(narrow.factors) <= set(factors) or not set(narrow.bounds) <= set(bounds):
        return None
    values: dict[str, list[object]] = {}
    order = np.zeros(len(first), dtype=np.int64)
    if wide is not None:
        labels, order = wide.cell_labels, wide.first[pattern]
        for name, _ in factors:
            values[name] = [labels[cell][name] for cell in wide.cell[pattern]]
        for column, (name, low, high) in enumerate(bounds):
            share = 0.5 + 0.5 * wide.position[pattern, column] / FINENESS
            values[name] = list(np.clip(low + share * (high - low), low, high))
    rows = rows_at(narrow, values, len(first))
    return predictor_matrix(narrow, rows, first, second, m, order)
