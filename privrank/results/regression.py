"""The result of a private Bradley-Terry fit with covariates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.bradley_terry import coefficients, regression
from privrank.bradley_terry.errors import NoisyErrors
from privrank.bradley_terry.linear import predictor_matrix
from privrank.distributions.links import LOGIT, Link
from privrank.release.covariates import Covariates
from privrank.results import tables
from privrank.results.base import Result
from privrank.results.guarantee import (
    caption,
    count_notes,
    format_pvalue,
    guarantee,
    loss_notes,
    privacy_notes,
    title,
)
from privrank.results.hypotheses import t_test, wald_test
from privrank.results.pairs import positions
from privrank.util.checks import check_alpha

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BTLRegressionResult"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class BTLRegressionResult(Result):
    """A private Bradley-Terry fit with covariates: coefficients, tests of terms, predictions.

    Everything is computed from `release` and the settings below; there is no way back to the data.

    Parameters
    ----------
    release : Release
        What the mechanism let out.
    alpha : float
        Significance level of intervals.
    requested : float or "auto"
        Ridge that was asked for.
    corrected : bool
        Whether the bias of the ridge is corrected.
    ridge : ndarray, shape (p, p)
        Ridge of the fit, on the fitted coefficients.
    estimate : Estimate
        Fitted coefficients, on contrasts between items, with the parts of their covariance.
    warnings : tuple of str
        What to read with care.
    """

    family: ClassVar[str] = "Bradley-Terry coefficients"
    noisy_errors: ClassVar[bool] = True

    requested: float | Literal["auto"]
    corrected: bool
    ridge: FloatArray = field(repr=False)
    estimate: regression.Estimate = field(repr=False)
    warnings: tuple[str, ...] = ()

    def _shape(self) -> tuple[str, ...]:
        return f"{len(self.params)} coefficients", f"{self.nobs} {self.release.design.unit}s"

    @property
    def _covariates(self) -> Covariates:
        facts = self.release.design.covariates
        assert facts is not None
        return facts

    @property
    def design_effect(self) -> float:
        """Variance inflation from dependent answers of one respondent; 1 for rows."""
        return self.estimate.design_effect

    @property
    def _display(self) -> FloatArray:
        return coefficients.display(self._covariates, len(self.items))

    @property
    def _names(self) -> list[str]:
        return coefficients.column_names(self._covariates, self.items)

    @property
    def _total(self) -> FloatArray:
        return np.asarray(self.estimate.sampling + self.estimate.privacy)

    @property
    def _law(self) -> NoisyErrors:
        return coefficients.noisy_errors(self.estimate, self.release)

    @property
    def link(self) -> Link:
        """Link of the model."""
        return self.release.link

    @property
    def estimator(self) -> str:
        """The loss whose minimum the coefficients are, before its ridge."""
        exact = self.release.source == "none" or self.link == LOGIT
        return "maximum likelihood" if exact else "matching loss"

    def _series(self, values: Any, name: str) -> pd.Series[Any]:
        return pd.Series(np.array(values), index=pd.Index(self._names, name="term"), name=name)

    def _errors(self, covariance: FloatArray, name: str) -> pd.Series[float]:
        return self._series(coefficients.standard_errors(self._display, covariance), name)

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients: worths of the reference group, then how each column changes them.

        Coefficients of one column add up to zero over the items; larger is preferred. ``first`` is
        the advantage of the item named first.
        """
        return self._series(self._display @ self.estimate.coefficients, "coef")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and privacy noise together."""
        return self._errors(self._total, "std err")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Sampling part of the standard errors."""
        return self._errors(self.estimate.sampling, "sampling")

    @property
    def bse_privacy(self) -> pd.Series[float]:
        """Privacy part of the standard errors."""
        return self._errors(self.estimate.privacy, "privacy")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Coefficients over their standard errors."""
        return (self.params / self.bse).rename("z")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for coefficients of zero."""
        away = self._display @ self.estimate.coefficients
        return self._series(self._law.pvalues(self._display, away), "P>|z|")

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance matrix of the coefficients."""
        shown = self._display
        return pd.DataFrame(shown @ self._total @ shown.T, index=self._names, columns=self._names)

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return confidence intervals of the coefficients, columns ``lower`` and ``upper``."""
        level = self.alpha if alpha is None else check_alpha(alpha)
        half = self._law.half_widths(self._display, level)
        return pd.DataFrame({"lower": self.params - half, "upper": self.params + half})

    def wald_test_terms(self) -> pd.DataFrame:
        """Test every term of the formula, each given all the others.

        Returns
        -------
        DataFrame
            One row per term, the intercept being equal worths in the reference group; columns
            ``statistic``, ``df`` and ``pvalue``. P-values are Monte Carlo, under normal sampling
            error plus the exact noise law.
        """
        facts = regression.equations(self.release)
        tests = coefficients.term_tests(facts, self.estimate, self.release)
        frame = pd.DataFrame.from_dict(tests, orient="index", columns=["statistic", "df", "pvalue"])
        return frame.rename_axis("term")

    def test_lack_of_fit(self) -> pd.Series[Any]:
        """Test that the item covariates explain the worths of all items.

        The unrestricted model is fitted to the same release, at no cost; H0 says that its worths
        are linear combinations of the item covariates.

        Returns
        -------
        Series
            ``statistic``, ``df`` and ``pvalue``.

        Raises
        ------
        ValueError
            If the model has no item covariates, or as many as worths.
        """
        values = coefficients.lack_of_fit(self.release, corrected=self.corrected)
        return pd.Series(values, index=["statistic", "df", "pvalue"], name="lack of fit")

    def worths(self, at: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Return the worths of each group.

        Parameters
        ----------
        at : mapping of str to value, optional
            Levels and values of the covariates, for one group. Without it every combination of
            levels, numeric covariates in the middle of their bounds.

        Returns
        -------
        DataFrame
            One row per group and item: the levels, ``item``, ``worth``, ``std_err``, ``lower`` and
            ``upper``.

        Raises
        ------
        TypeError, ValueError
            If `at` names no covariate of the model, or a value is not declared or out of bounds.
        """
        facts, m = self._covariates, len(self.items)
        if at is not None and not isinstance(at, Mapping):
            raise TypeError("at must map covariates to their values, as {'gender': 'female'} does.")
        if at is not None and (unknown := at.keys() - self._known()):
            raise ValueError(f"at must name covariates of the model, not {sorted(unknown)}.")
        groups = [dict(group) for group in (facts.cell_labels if at is None else (at,))]
        for name, low, high in facts.bounds:
            for group in groups:
                group.setdefault(name, 0.5 * (low + high))
        columns = {name: [group.get(name) for group in groups] for name in sorted(self._known())}
        shown = coefficients.worth_map(facts, m, facts.rows_at(columns, len(groups)))
        worth = shown @ self.estimate.coefficients
        error = coefficients.standard_errors(shown, self._total)
        half = self._law.half_widths(shown, self.alpha)
        order = [name for name, _ in facts.factors] + [name for name, _, _ in facts.bounds]
        return pd.DataFrame(
            {name: np.repeat(np.array(columns[name], dtype=object), m) for name in order}
            | {
                "item": np.tile(np.array(self.items, dtype=object), len(groups)),
                "worth": worth,
                "std_err": error,
                "lower": worth - half,
                "upper": worth + half,
            }
        ).infer_objects()

    def _known(self) -> set[str]:
        facts = self._covariates
        return {name for name, _ in facts.factors} | {name for name, _, _ in facts.bounds}

    def predict(self, frame: pd.DataFrame, alpha: float | None = None) -> pd.DataFrame:
        """Predict who is preferred.

        Parameters
        ----------
        frame : DataFrame
            Columns ``item1``, ``item2`` and the covariates of the model; with an order effect item1
            is the one named first.
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
            If a column is missing, or an entry is no item or no declared level.
        """
        level = self.alpha if alpha is None else check_alpha(alpha)
        first, second = positions(frame, self.items)
        known = sorted(self._known())
        if not set(known) <= set(frame.columns):
            raise TypeError(f"frame must have the covariates as columns: {', '.join(known)}.")
        facts = self._covariates
        rows = facts.rows_at({name: list(frame[name]) for name in known}, len(frame))
        named = np.ones(len(frame), dtype=np.int64)
        shown = predictor_matrix(facts, rows, first, second, len(self.items), named)
        t, half = shown @ self.estimate.coefficients, self._law.half_widths(shown, level)
        return pd.DataFrame(
            {
                "probability": self.link.probability(t),
                "lower": self.link.probability(t - half),
                "upper": self.link.probability(t + half),
            },
            index=frame.index,
        )

    def t_test(self, hypothesis: Any) -> Any:
        """Test linear hypotheses one by one, as statsmodels does, by the law of the noise."""
        return t_test(self.params, self.cov_params(), self._law.through(self._display), hypothesis)

    def wald_test(self, hypothesis: Any) -> Any:
        """Test linear hypotheses jointly; Monte Carlo, as :meth:`wald_test_terms` is."""
        law = self._law.through(self._display)
        return wald_test(self.params, self.cov_params(), law, hypothesis)

    def to_frame(self) -> pd.DataFrame:
        """Return the table of coefficients as a data frame, one row per coefficient."""
        intervals = self.conf_int()
        return pd.DataFrame(
            {
                "coef": self.params,
                "std_err": self.bse,
                "sampling": self.bse_sampling,
                "privacy": self.bse_privacy,
                "z": self.tvalues,
                "pvalue": self.pvalues,
                "lower": intervals["lower"],
                "upper": intervals["upper"],
            }
        )

    def summary(self) -> tables.Table:
        """Return the fit as a table in the style of statsmodels (text, HTML, LaTeX, CSV)."""
        level = f"{100 * (1 - self.alpha):g}%"
        rows = tuple(
            (str(name), f"{row.coef:.4f}", *(f"{value:.3f}" for value in row[2:]))
            for name, row in zip(self._names, self.to_frame().itertuples(), strict=True)
        )
        tests = self.wald_test_terms().to_dict("index")
        terms = [
            f"{name}: {row['statistic']:.2f} on {row['df']} df, {format_pvalue(row['pvalue'])}"
            for name, row in tests.items()
        ]
        facts = self._covariates
        notes = [
            f"With {level} confidence each interval covers its coefficient, allowing for sampling "
            f"and privacy noise. Coefficients of one column add up to zero over the items."
            if not facts.item_columns
            else f"With {level} confidence each interval covers its coefficient, allowing for "
            f"sampling and privacy noise. Item covariates are centred.",
            f"Wald tests of terms (Monte Carlo): {'; '.join(terms)}.",
            *self._zero_notes(),
            *count_notes(self.release, "worths towards zero"),
            *self._group_notes(),
            *loss_notes(self.release, self.estimator),
            *privacy_notes(self.release),
            *self.warnings,
        ]
        return tables.Table(
            title=title(f"{self.link.model} Regression Results", self.release),
            header=(
                ("Model:", f"{self.link.model} ({self.link.name})"),
                ("Formula:", f"~ {facts.formula}"),
                *guarantee(self.release, self.design_effect),
                ("Penalty:", f"{self.requested}" + (", bias-corrected" * self.corrected)),
            ),
            columns=(
                "",
                "coef",
                "std err",
                "sampling",
                "privacy",
                "z",
                "P>|z|",
                f"[{self.alpha / 2:.3g}",
                f"{1 - self.alpha / 2:.4g}]",
            ),
            rows=rows,
            notes=tuple(notes),
        )

    def _zero_notes(self) -> list[str]:
        """Return at which values the coefficients without a prefix are worths."""
        facts = self._covariates
        if not facts.bounds or "Intercept" not in facts.columns:
            return []
        names = " and ".join(name for name, _, _ in facts.bounds)
        return [f"Coefficients without a prefix are worths where {names} would be 0."]

    def _group_notes(self) -> list[str]:
        """Return what is public about who has which covariates."""
        if self.release.source == "none" or not self._known():
            return []
        if self.release.design.kind == "public":
            return ["Who has which covariates is taken as public, as is who compared which pairs."]
        if self._covariates.cells == 1:
            return []
        sizes = regression.equations(self.release).covariates.units
        groups = "; ".join(
            f"{', '.join(label.values())} {size:.0f}"
            for label, size in zip(self._covariates.cell_labels, sizes, strict=True)
        )
        return [
            f"Group sizes, released with noise: {groups}; every group is taken to have compared "
            f"the pairs in the same proportions."
        ]

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the worths of every group with their intervals."""
        from privrank.results import plots

        return plots.group_worths(
            self.worths(),
            [name for name, _ in self._covariates.factors],
            self.alpha,
            f"{self.link.model} worths, {caption(self.release)}",
            self.link.name,
            ax=ax,
        )

    def _settings(self) -> dict[str, Any]:
        return {"penalty": self.requested}

    def _estimates(self) -> dict[str, Any]:
        return {"params": dict(self.params)}

    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], tuple[tuple[str, str], ...]]:
        return self.params, self.bse, ()
