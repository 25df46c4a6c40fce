"""The privacy budget as a user holds it: the ledger, with its table."""

from __future__ import annotations

from privrank.privacy.budget import Ledger
from privrank.results.tables import Table

__all__ = ["Budget"]


class Budget(Ledger):
    """A ledger of the privacy budget of one data set.

    A fit reserves what it spends before it reads the data, and is refused where too little is left
    (:class:`privrank.privacy.budget.Ledger` has the proofs).

    Parameters
    ----------
    epsilon : float
        Total privacy budget, positive (``numpy.inf`` sets no limit).
    delta : float, default 0.0
        Total failure probability, in [0, 1).
    unit : {"row", "respondent"}, default "row"
        What the budget protects. A fit at another unit is refused: epsilon per row counts
        `max_rows` times for a respondent.

    Raises
    ------
    ValueError, TypeError
        If a number is out of its range or `unit` is unknown.

    Examples
    --------
    >>> import privrank as pr
    >>> budget = pr.Budget(epsilon=1.0, unit="respondent")
    >>> budget.left
    (1.0, 0.0)
    """

    __slots__ = ()

    def summary(self) -> Table:
        """Return the ledger as a table (text, ``as_html()``, ``as_latex()``)."""
        left_epsilon, left_delta = self.left
        spent_epsilon, spent_delta = self.spent
        rows = [(line.by, line.epsilon, line.delta) for line in self.spendings]
        rows += [
            ("spent", spent_epsilon, spent_delta),
            ("left", left_epsilon, left_delta),
        ]
        notes = ["Basic composition: epsilons and deltas add up."]
        epsilon, delta = self.composed
        if (epsilon, delta) != (spent_epsilon, spent_delta):
            notes.append(
                f"If their sizes were fixed in advance, these fits together are private at epsilon "
                f"{epsilon:.4g}, delta {delta:g} (zero-concentrated composition); what is left "
                f"goes by basic composition."
            )
        return Table(
            title="Privacy budget",
            header=(
                ("Protects:", f"one {self.unit}"),
                ("Neighbours:", f"replace one {self.unit}"),
                ("Epsilon:", f"{self.epsilon:g}"),
                ("Delta:", f"{self.delta:g}"),
            ),
            columns=("spent by", "epsilon", "delta"),
            rows=tuple((name, f"{epsilon:g}", f"{delta:g}") for name, epsilon, delta in rows),
            notes=tuple(notes),
        )
