"""The result of a private Bradley-Terry fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.bradley_terry import inference
from privrank.bradley_terry.errors import NoisyErrors
from privrank.bradley_terry.evidence import evidence
from privrank.bradley_terry.optim import Solver
from privrank.distributions.links import LOGIT, Link
from privrank.hypotheses.nulls import monte_carlo_pvalue
from privrank.results import tables
from privrank.results.base import Result
from privrank.results.guarantee import (
    UNCERTAIN,
    caption,
    count_notes,
    format_pvalue,
    guarantee,
    loss_notes,
    privacy_notes,
    title,
)
from privrank.results.homogeneity import HomogeneityResult
from privrank.results.hypotheses import t_test, wald_test
from privrank.results.pairs import pair_table, positions, quasi_table
from privrank.results.worthtable import worth_columns, worth_rows
from privrank.util.checks import check_alpha

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BTLResult"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class BTLResult(Result):
    """A private Bradley-Terry fit: worths, errors, ranks, tables and plots.

    Everything is computed from `release` and the settings below; there is no way back to the data.

    Parameters
    ----------
    release : Release
        What the mechanism let out.
    alpha : float
        Significance level of intervals and rank sets.
    requested : float or "auto"
        Ridge that was asked for.
    penalty : float
        Ridge gamma of the fit.
    corrected : bool
        Whether `params` carry the ridge bias correction.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of the fit.
    theta : ndarray, shape (m,)
        Ridge estimate, centred.
    worths : ndarray, shape (m,)
        Reported worths, centred.
    warnings : tuple of str
        What to read with care.
    """

    family: ClassVar[str] = "Bradley-Terry worths"
    noisy_errors: ClassVar[bool] = True

    requested: float | Literal["auto"]
    penalty: float
    corrected: bool
    solver: Solver
    theta: FloatArray = field(repr=False)
    worths: FloatArray = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def link(self) -> Link:
        """Link of the model."""
        return self.release.link

    @property
    def estimator(self) -> str:
        """The loss whose minimum the worths are, before its ridge."""
        reading = evidence(self.release).estimator
        likelihood = reading.likelihood or reading.link == LOGIT
        return "maximum likelihood" if likelihood else "matching loss"

    def _covariance(self) -> inference.Covariance:
        return inference.covariance(
            evidence(self.release),
            self.release,
            self.theta,
            self.worths,
            self.penalty,
            corrected=self.corrected,
        )

    def _law(self) -> NoisyErrors:
        return inference.noisy_errors(self.release, self._covariance(), self.worths)

    @property
    def params(self) -> pd.Series[float]:
        """Centred worths on the scale of the link; larger is preferred."""
        return self._series(self.worths, "worth")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and privacy noise together."""
        return self._series(self._covariance().errors(), "std err")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Sampling part of the standard errors."""
        return self._series(self._covariance().errors("sampling"), "sampling")

    @property
    def bse_privacy(self) -> pd.Series[float]:
        """Privacy part of the standard errors."""
        return self._series(self._covariance().errors("privacy"), "privacy")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Worths over their standard errors."""
        return (self.params / self.bse).rename("z")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a worth equal to the average."""
        return self._series(self._law().pvalues(np.eye(len(self.items)), self.worths), "P>|z|")

    @property
    def design_effect(self) -> float:
        """Variance inflation from dependent answers of one respondent; 1 for rows."""
        pairs = evidence(self.release).pairs
        return inference.design_effect(self.release, pairs, self.worths)

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance matrix of the worths, shape (m, m)."""
        return pd.DataFrame(self._covariance().total, index=self.items, columns=self.items)

    def conf_int(self, alpha: float | None = None, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return confidence intervals of the worths.

        Parameters
        ----------
        alpha : float or None
            Significance level; None takes the result's own.
        simultaneous : bool, default False
            Cover all worths at once (Bonferroni).

        Returns
        -------
        DataFrame
            Columns ``lower`` and ``upper``, one row per item.
        """
        level = self.alpha if alpha is None else check_alpha(alpha)
        tests = len(self.items) if simultaneous else 1
        half = self._law().half_widths(np.eye(len(self.items)), level / tests)
        return pd.DataFrame({"lower": self.params - half, "upper": self.params + half})

    def worth(self) -> pd.Series[float]:
        """Return worths on the multiplicative scale of the logit, which add up to 1."""
        if self.link != LOGIT:
            raise ValueError(
                f"worth() is the multiplicative scale of the logit, and this fit has "
                f"link={self.link.name!r}: use params, or probabilities() for chances."
            )
        weight = np.exp(self.worths - self.worths.max())
        return self._series(weight / weight.sum(), "worth")

    def ranks(self) -> pd.Series[Any]:
        """Return ranks, 1 = most preferred; equal worths are ordered by the release's coin."""
        place = np.lexsort((np.argsort(self.release.tie_break), -self.worths))
        rank = np.empty(len(place), dtype=np.int64)
        rank[place] = np.arange(1, len(place) + 1)
        return self._series(rank, "rank")

    def rank_conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks.

        1 plus the number of items surely better, to m minus the number surely worse, by
        simultaneous bands for all differences of two worths.

        Returns
        -------
        DataFrame
            Columns ``lower`` and ``upper``, one row per item.
        """
        level = self.alpha if alpha is None else check_alpha(alpha)
        return self._rank_sets(self._covariance(), level)

    def _rank_sets(self, errors: inference.Covariance, alpha: float) -> pd.DataFrame:
        facts = evidence(self.release)
        quantile = inference.contrast_quantile(facts, errors, self.worths, alpha)
        low, high = inference.rank_sets(self.worths, quantile * errors.contrast_errors())
        return pd.DataFrame({"lower": low, "upper": high}, index=pd.Index(self.items, name="item"))

    def pairwise(self, alpha: float | None = None, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return every pair's difference, win probability, interval and p-value.

        Parameters
        ----------
        alpha : float or None
            Significance level; None takes the result's own.
        simultaneous : bool, default False
            Make intervals cover, and p-values hold, for all pairs at once: by the law of the
            largest |t| of all differences, simulated from normal sampling error plus the exact
            noise law (Bonferroni's bound for more than 200 items).

        Returns
        -------
        DataFrame
            One row per pair with columns ``item1, item2, difference, std_err, probability, lower,
            upper, pvalue``; ``probability`` is that of item1 being preferred, ``lower`` and
            ``upper`` its interval, ``pvalue`` tests equal worths.
        """
        level = self.alpha if alpha is None else check_alpha(alpha)
        first, second = np.triu_indices(len(self.items), 1)
        names = np.array(self.items, dtype=object)
        return pd.DataFrame(
            {
                "item1": names[first],
                "item2": names[second],
                **self._pair_table(first, second, level, simultaneous),
            }
        )

    def _pair_table(
        self, first: Any, second: Any, alpha: float, simultaneous: bool = False
    ) -> dict[str, FloatArray]:
        errors = self._covariance()
        maxima = (
            inference.contrast_maxima(evidence(self.release), errors, self.worths)
            if simultaneous
            else None
        )
        table = errors.contrast_errors()
        return pair_table(self.worths, table, first, second, self.link, alpha, self._law(), maxima)

    def predict(self, frame: pd.DataFrame, alpha: float | None = None) -> pd.DataFrame:
        """Predict who is preferred.

        Parameters
        ----------
        frame : DataFrame
            Columns ``item1`` and ``item2``.
        alpha : float or None
            Significance level; None takes the result's own.

        Returns
        -------
        DataFrame
            Probability that item1 is preferred, with its confidence limits ``lower`` and ``upper``,
            indexed as `frame`.

        Raises
        ------
        TypeError, ValueError
            If a column is missing, or an entry is no item.
        """
        level = self.alpha if alpha is None else check_alpha(alpha)
        table = self._pair_table(*positions(frame, self.items), level)
        shown = {name: table[name] for name in ("probability", "lower", "upper")}
        return pd.DataFrame(shown, index=frame.index)

    def quasi_se(self) -> pd.DataFrame:
        """Return quasi standard errors, from which readers compute the error of any difference.

        The standard error of the difference of two worths is close to sqrt(q_1^2 + q_2^2).

        Returns
        -------
        DataFrame
            One row per item: ``worth``, ``std_err``, ``quasi_se`` (missing where there is none) and
            ``largest_error``, how far off relatively the worst of the item's differences is.

        References
        ----------
        Firth and de Menezes (2004), https://doi.org/10.1093/biomet/91.1.65.
        """
        return quasi_table(self.params, self.bse, self._covariance().total)

    def probabilities(self) -> pd.DataFrame:
        """Return the matrix of win probabilities, row item over column item."""
        return pd.DataFrame(
            self.link.probability(self.worths[:, None] - self.worths[None, :]),
            index=self.items,
            columns=self.items,
        )

    def test_homogeneity(self) -> HomogeneityResult:
        """Test that all worths are equal (score form of the Wald test).

        Its errors are those under the hypothesis. :meth:`wald_test` has those at the fit, which
        grow faster than worths that noise drives apart (Hauck and Donner, 1977,
        https://doi.org/10.1080/01621459.1977.10479969): it keeps its level, and sees less.
        """
        facts = evidence(self.release)
        statistic, table = inference.homogeneity(facts, self.release, self.worths)
        return HomogeneityResult(
            statistic, monte_carlo_pvalue(statistic, table), len(self.items) - 1, len(table)
        )

    def t_test(self, hypothesis: Any) -> Any:
        """Test linear hypotheses one by one, as statsmodels does, by the law of the noise."""
        return t_test(self.params, self.cov_params(), self._law(), hypothesis)

    def wald_test(self, hypothesis: Any) -> Any:
        """Test linear hypotheses jointly, with errors at the fit and a Monte Carlo p-value.

        For the equality of all worths under much noise :meth:`test_homogeneity` sees more.
        """
        return wald_test(self.params, self.cov_params(), self._law(), hypothesis)

    def to_frame(self) -> pd.DataFrame:
        """Return the table of worths as a data frame, one row per item, best first."""
        errors = self._covariance()
        total = errors.errors()
        law, every = self._law(), np.eye(len(self.items))
        half = law.half_widths(every, self.alpha)
        sets = self._rank_sets(errors, self.alpha)
        frame = pd.DataFrame(
            {
                "worth": self.params,
                "std_err": total,
                "sampling": errors.errors("sampling"),
                "privacy": errors.errors("privacy"),
                "z": self.worths / total,
                "pvalue": law.pvalues(every, self.worths),
                "lower": self.worths - half,
                "upper": self.worths + half,
                "rank": self.ranks(),
                "rank_lower": sets["lower"],
                "rank_upper": sets["upper"],
            }
        )
        return frame.sort_values("rank")

    def summary(self) -> tables.Table:
        """Return the fit as a table in the style of statsmodels (text, HTML, LaTeX, CSV)."""
        frame = self.to_frame()
        homogeneity = self.test_homogeneity()
        level = f"{100 * (1 - self.alpha):g}%"
        pairs = self.release.design.pairs
        comparisons = "private" if pairs is None or pairs.origin == "equal" else f"{pairs.total:g}"
        heard = "" if self.release.source == "none" else ", noise included"
        notes = [
            f"With {level} confidence each interval covers the item's centred worth, allowing for "
            f"sampling and privacy noise; the rank sets hold for all items at once.",
            *count_notes(self.release, "worths towards zero"),
            f"Test of equal worths: statistic {homogeneity.statistic:.2f} on {homogeneity.df} "
            f"degrees of freedom, {format_pvalue(homogeneity.pvalue)} (Monte Carlo{heard}).",
            *loss_notes(self.release, self.estimator),
            *privacy_notes(self.release),
            *self.warnings,
            *([] if np.isfinite(frame["std_err"]).all() else [UNCERTAIN]),
        ]
        return tables.Table(
            title=title(f"{self.link.model} Results", self.release),
            header=(
                ("Model:", f"{self.link.model} ({self.link.name})"),
                ("No. Comparisons:", comparisons),
                *guarantee(self.release, self.design_effect),
                ("Penalty:", f"{self.penalty:.4g}" + (", bias-corrected" * self.corrected)),
            ),
            columns=worth_columns(self.alpha),
            rows=worth_rows(frame),
            notes=tuple(notes),
        )

    def plot_worth(self, ax: Axes | None = None) -> Figure:
        """Draw worths with sampling-only and full intervals and rank sets."""
        from privrank.results import plots

        heading = f"{self.link.model} worths, {caption(self.release)}"
        return plots.worth(self.to_frame(), self.alpha, heading, self.link.name, ax=ax)

    def plot_pairwise(self, ax: Axes | None = None) -> Figure:
        """Draw the win probabilities as a heat map, best item first."""
        from privrank.results import plots

        order = list(self.ranks().sort_values().index)
        return plots.pairwise(self.probabilities().loc[order, order], caption(self.release), ax=ax)

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the worths (:meth:`plot_worth`)."""
        return self.plot_worth(ax=ax)

    def _settings(self) -> dict[str, Any]:
        return {"penalty": self.requested, "solver": self.solver}

    def _estimates(self) -> dict[str, Any]:
        return {"worths": self.worths.tolist(), "penalty": self.penalty}

    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], tuple[tuple[str, str], ...]]:
        return self.params, self.bse, ()
