"""The privacy budget of a user: the ledger, with its table."""

from __future__ import annotations

from math import inf

from privrank.privacy.budget import Ledger
from privrank.results.claims import said
from privrank.results.tables import Table, statistic_words


class Budget(Ledger):
    """Privacy budget (ledger) for one data set, in memory or on disk.

    A fit reserves its epsilon and delta before it reads the data, and is refused if too little is
    left (for proofs see :class:`privrank.privacy.budget.Ledger`).

    Parameters
    ----------
    path : str or os.PathLike, optional
        File of a ledger on disk, which is created if it does not exist. Any number of scripts and
        processes may open it, even at the same time; together they cannot spend more than the
        total. Without a path the ledger is in memory and ends with the script.
    epsilon : float
        Total privacy budget, positive (``numpy.inf`` sets no limit). Needed unless the file exists.
    delta : float, default 0.0
        Total failure probability, in [0, 1).
    pure : float, optional
        Part of epsilon for fits without delta. With `pure` there are two accounts, fixed when the
        ledger is created. In the first account, the epsilons of fits without delta may add up to
        `pure`. The second account is for fits with a delta, which use Gaussian noise. Their
        zero-concentrated privacy parameters rho may add up to the value that corresponds to the
        rest of epsilon at the delta of the ledger; their own deltas do not count. Many Gaussian
        fits use less of the budget in this way. By default all epsilons add up, and all deltas.
    unit : {"row", "respondent"}, default "row"
        Privacy unit of the budget. A fit with another unit is refused, because epsilon per row
        counts `max_rows` times for a respondent.
    label : str, optional
        Name of the data set, for a ledger on disk; the default is the name of the file. A file that
        was created with another label, unit, epsilon, delta or `pure` is refused. Arguments that
        are left out are taken from the file.

    Raises
    ------
    ValueError, TypeError, OSError
        If a number is out of its range or `unit` is unknown; if the file is not a ledger, is
        another ledger, is damaged or truncated, or cannot be read, locked or written.

    See Also
    --------
    privrank.BudgetExceeded : The error of a fit that needs more than is left.

    Notes
    -----
    The file is an SQLite database with one table, to which lines are only added. Each line records
    the date, the released statistic, the model, epsilon and delta. Entries of a ledger cannot be
    removed. An open ledger refuses a file that was restored to an earlier state. A ledger that is
    opened after such a change cannot detect it; the analyst is trusted. A local disk is safer than
    a network folder.

    Examples
    --------
    >>> import privrank as pr
    >>> budget = pr.Budget(epsilon=1.0, unit="respondent")
    >>> budget.left
    (1.0, 0.0)

    Half of the total for fits without delta, half for fits with Gaussian noise:

    >>> pr.Budget(epsilon=2.0, delta=1e-6, pure=1.0)
    Budget(epsilon=2, delta=1e-06, pure=1, unit='row'; left 1, rho 0.024356)

    On disk, here in a temporary folder:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     first = pr.Budget(Path(folder) / "survey.ledger", epsilon=3.0, unit="respondent")
    ...     pr.Budget(Path(folder) / "survey.ledger")  # in another script, or next year
    Budget('survey.ledger', epsilon=3, delta=0, unit='respondent'; left 3, 0)
    """

    __slots__ = ()

    def summary(self) -> Table:
        """Return the ledger as a table (text, ``as_html()``, ``as_latex()``).

        Examples
        --------
        >>> budget = pr.Budget(epsilon=1.0, unit="respondent")
        >>> budget.reserve("PrivateBTL", 0.25, 0.0, unit="respondent", released="net wins")
        >>> for line in str(budget.summary()).splitlines()[4:9]:
        ...     print(line)
        =================================================
        release                          epsilon    delta
        -------------------------------------------------
        PrivateBTL: net wins                0.25        0
        total spent                         0.25        0
        """
        account = self._read_all()
        split = self.pure is not None
        header = [
            ("Privacy unit:", f"{self.unit} (replace one)"),
            ("Epsilon:", "no limit" if self.epsilon == inf else f"{self.epsilon:g}"),
            ("Delta:", f"{self.delta:g}"),
        ]
        columns = ["release", "epsilon", "delta"]
        if self.path is not None:
            header[:0] = [("Data:", str(self.label)), ("Ledger:", self.path.name)]
            columns = ["date (UTC)", "model", "released", "epsilon", "delta"]
        # with two accounts each line also has the amount that counts in its own account
        totals = ["of pure", "of rho"] if split else ["epsilon", "delta"]
        lines = [
            {
                "date (UTC)": line.date or "",
                "model": line.by,
                "released": statistic_words(line.released),
                "release": ": ".join(filter(None, (line.by, statistic_words(line.released)))),
                "epsilon": f"{line.epsilon:g}",
                "delta": f"{line.delta:g}",
                "of pure": "" if line.delta else f"{line.epsilon:g}",
                "of rho": "" if line.rho is None or not line.delta else f"{line.rho:g}",
            }
            for line in account.spendings
        ]
        lines += [
            {columns[0]: label} | dict(zip(totals, map("{:g}".format, amounts), strict=True))
            for label, amounts in (("total spent", account.spent), ("remaining", account.left))
        ]
        columns = list(dict.fromkeys([*columns, *totals]))
        both = account.survey
        pure, rho = account.limits
        composed = account.spent if split else account.composed
        return Table(
            title="Privacy budget",
            header=tuple(header),
            columns=tuple(columns),
            rows=tuple(tuple(line.get(name, "") for name in columns) for line in lines),
            notes=(
                *said("composition", not split),
                *said(
                    "concentrated",
                    composed != account.spent,
                    epsilon=composed[0],
                    delta=composed[1],
                ),
                *said("two accounts", split, pure=pure, rho=rho, rest=both.rest, delta=both.delta),
                *said("both accounts", split, epsilon=both.epsilon, delta=both.delta),
            ),
        )

    def _repr_html_(self) -> str:
        return self.summary().as_html()
