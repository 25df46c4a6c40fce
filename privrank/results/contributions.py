"""What each bound on the rows of a respondent costs: a table from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from privrank.plans.choice import Choice
from privrank.plans.contributions import Activity, difference_errors
from privrank.release.release import Release
from privrank.release.survey import Design
from privrank.results.guarantee import noise_source, promise, seed_notes, spent, units
from privrank.results.tables import Table, printed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ContributionTradeoff:
    """Rows kept and predicted errors by bound, from :func:`privrank.contribution_tradeoff`.

    Parameters
    ----------
    fits : tuple of (Design, Choice)
        For each bound the public facts of a fit, and what it is going to release.
    epsilon : float
        The guarantee of such a fit.
    activity : Activity
        Respondents by the number of their answers, released or declared.
    release : Release or None
        What was released; None of a declared activity.
    """

    fits: tuple[tuple[Design, Choice], ...]
    epsilon: float
    activity: Activity
    release: Release | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return the table: a row for each bound.

        Returns
        -------
        DataFrame
            By ``max_rows``: the number of respondents ``beyond`` it, the ``rows`` it keeps of all
            respondents with their standard error ``rows_std_err``, and of a difference of two
            worths the predicted ``std_err`` with its parts, ``sampling`` and ``privacy``, whose
            squares add up to its square.
        """
        rows = []
        for design, choice in self.fits:
            bound = design.max_rows
            number, error = self.activity.kept(design.sensitivity.effective_rows)
            whole, alone = difference_errors(design, choice, number, self.epsilon)
            added = math.sqrt(max(whole**2 - alone**2, 0.0))
            rows.append((self.activity.beyond(bound), number, error, whole, alone, added))
        names = ["beyond", "rows", "rows_std_err", "std_err", "sampling", "privacy"]
        bounds = pd.Index([design.max_rows for design, _ in self.fits], name="max_rows")
        return pd.DataFrame(rows, index=bounds, columns=names)

    def summary(self) -> Table:
        """Return the table with what it rests on (text, HTML, LaTeX, Markdown, CSV)."""
        frame, design = self.to_frame(), self.fits[0][0]
        header: tuple[tuple[str, str], ...] = (
            ("Items:", str(len(design.items))),
            ("No. Respondents:", str(design.nobs)),
            ("Distinct pairs:", str(design.distinct_pairs)),
            ("Planned fit:", f"epsilon {self.epsilon:g}"),
        )
        notes = [
            f"The least predicted error is that of max_rows = {frame['std_err'].idxmin()}.",
            "Std. errors are predicted for a difference of two worths, pairs met equally often and "
            "answers that are independent, those of one respondent too: where these depend on "
            "each other, many rows of one respondent add less.",
        ]
        if self.release is None:
            notes.append("Activity as declared: nothing was released.")
        else:
            *_, neighbours = units(self.release)
            source = ("Noise source:", noise_source(self.release))
            header = (*header, neighbours, source, *spent(self.release))
            notes += [
                "Within a class of activity all numbers of answers count as equally frequent; "
                "+/- is the standard error from the noise of this release.",
                promise(self.release, "how many answers anybody gave"),
                *seed_notes([self.release]),
            ]
        formats = dict.fromkeys(["beyond", "rows", "rows_std_err"], "{:.0f}")
        formats |= dict.fromkeys(["std_err", "sampling", "privacy"], "{:.3f}")
        rows = printed(frame, formats)
        heads = ("max_rows", "beyond", "rows", "+/-", "std err", "sampling", "privacy")
        return Table("What a bound on a respondent's rows costs", header, heads, rows, tuple(notes))

    def __repr__(self) -> str:
        """Show the shape."""
        return f"<ContributionTradeoff: {len(self.fits)} bounds, epsilon = {self.epsilon:g}>"

    def _repr_html_(self) -> str:
        return self.summary().as_html()
