"""The privacy budget: an SQLite ledger that reserves before noise is drawn."""

import math
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn
from weakref import finalize

from privrank.privacy.accounting import Account, BudgetTerms, Spending, Unit
from privrank.util.checks import (
    check_choice,
    check_delta,
    check_epsilon,
    check_number,
    check_text,
    refuse_if,
)

FORMAT = "privrank ledger 3"
SPLIT = f"{FORMAT}, pure fits apart"
"""Format names in the ledger file; `pure` needs its own, as older versions would add it wrongly."""

PATIENCE = 60.0
"""Seconds to wait for another process; a transaction takes milliseconds."""

_ONLY_GROWS = "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
_SETTINGS = "PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON"

# SQLite's integrity_check tests every line against these conditions. Numbers are doubles, which
# are stored exactly.
_TABLES = (
    """CREATE TABLE survey (format TEXT NOT NULL, label TEXT,
    epsilon REAL CHECK (typeof(epsilon) = 'real' AND epsilon > 0),
    delta REAL CHECK (typeof(delta) = 'real' AND delta >= 0 AND delta < 1),
    unit TEXT NOT NULL CHECK (unit IN ('row', 'respondent')))""",
    """CREATE TABLE ledger (number INTEGER PRIMARY KEY, "by" TEXT NOT NULL,
    epsilon REAL CHECK (typeof(epsilon) = 'real' AND epsilon > 0),
    delta REAL CHECK (typeof(delta) = 'real' AND delta >= 0 AND delta < 1),
    rho REAL CHECK (typeof(rho) = 'real' AND rho >= 0 OR rho IS NULL),
    released TEXT, date TEXT)""",
    f"CREATE TRIGGER stays BEFORE UPDATE ON ledger {_ONLY_GROWS}",
    f"CREATE TRIGGER kept BEFORE DELETE ON ledger {_ONLY_GROWS}",
)
_REMEDIES = {
    "read": "Name a file that can be read.",
    "made": "Name a file on a local disk, in a folder that can be written.",
    "written": "No noise was drawn, though the requested amount may be recorded as spent. Name a "
    "file on a local disk, in a folder that can be written.",
}
"""Remedies for a ledger that cannot be read, made or written."""

_PURE = """ALTER TABLE survey ADD COLUMN
    pure REAL CHECK (typeof(pure) = 'real' AND pure >= 0 AND pure <= epsilon)"""
_LINE = '"by", epsilon, delta, rho, released, date'
"""Columns of the table, in the order of the fields of a Spending."""

_open = RLock()
"""Lock of the single thread in this process that has a transaction.

SQLite separates processes, but its file locks belong to the process. If a process were forked
during a transaction and the child closed the inherited file, the child would release the lock of
the parent. This lock therefore prevents a fork during a transaction. It also gives the connection
of a ledger in memory to one thread at a time.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_open.acquire, after_in_parent=_open.release, after_in_child=_open.release
    )


class BudgetExceeded(Exception):
    """Raised when a fit would exceed the privacy budget.

    No data were read and no noise was drawn.

    Examples
    --------
    >>> import privrank as pr
    >>> budget = pr.Budget(epsilon=1.0, unit="respondent")
    >>> try:
    ...     budget.reserve("PrivateBTL", 1.5, 0.0, unit="respondent")
    ... except pr.BudgetExceeded:
    ...     print("nothing was spent:", budget.left)
    nothing was spent: (1.0, 0.0)
    """


def _connection(place: str) -> sqlite3.Connection:
    return sqlite3.connect(
        place, timeout=PATIENCE, isolation_level=None, uri=True, check_same_thread=False
    )


def _checked_path(path: object) -> str:
    """Return the absolute path of a ledger on disk; refuse invalid file names."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(name, str):
        raise TypeError(
            f"path must be text or os.PathLike, got {type(path).__name__}. It names the file of a "
            f"ledger on disk. For a ledger in memory give epsilon= alone."
        )
    if not name or "\0" in name or name.encode(errors="ignore").decode() != name:
        raise ValueError(
            f"path must be a file name that a disk can hold, got {name!r}. Give a path without "
            f"null characters and halves of surrogate pairs."
        )
    place = os.path.realpath(name)
    if os.path.isdir(place):
        raise IsADirectoryError(
            f"path must name a file, and {os.path.basename(place)!r} is a folder. Add the name of "
            f"the file to the path."
        )
    return place


class Ledger:
    """Ledger of the privacy budget of one data set, in an SQLite table.

    Users create a ledger as :class:`privrank.Budget`, which documents the arguments.

    Notes
    -----
    **Privacy.** Fits are admitted by basic composition or, with `pure`, by two accounts that were
    fixed when the ledger was made (:class:`privrank.privacy.accounting.Account`). A reservation is
    made before the data are read, and it remains if the fit fails afterwards. There is one ledger:
    its table, in memory or in a file, lets one reservation at a time read all spendings, and add
    its own if the total covers it. A budget cannot be copied or pickled.

    **The table.** The claim requires three properties of reading the table, deciding and adding a
    line. SQLite guarantees all three for a transaction.

    *Exclusive access.* Reading and adding are one transaction that begins as IMMEDIATE. SQLite
    grants it to one connection among all threads and processes, and revokes it when the process
    ends, for any reason. A decision made from the lines is therefore still valid when a line is
    added. Every transaction on a file has its own connection, and a process does not fork during a
    transaction. A table in memory has one connection, which one thread uses at a time. A forked
    process inherits a copy without later lines and cannot add lines to it.

    *Durability.* Adding a line returns after the transaction is committed. With
    ``synchronous = EXTRA`` its pages are then on disk. The journal that could undo it has also been
    removed from disk, which FULL leaves to the file system (on macOS ``fullfsync`` flushes the
    drive's cache). So noise is drawn only for spendings that no later crash or power failure can
    undo. On Windows a folder cannot be synchronised: a power failure immediately after a fit may
    restore the journal, and with it the ledger without that fit.

    *Consistency.* The object keeps the lines that it read or added. It refuses a file that does not
    begin with them, such as a file restored to an earlier state or replaced by another.

    A fit that is killed before its commit leaves a journal in the same folder, ``<name>-journal``,
    from which SQLite restores the previous state at the next opening. Keep the journal with the
    file. In all other cases there is one file. If a process is killed while it makes the ledger,
    there is no ledger and nothing was spent; the next call with the total makes it. Each reading
    begins with SQLite's ``integrity_check`` of the whole file. It detects a truncated or damaged
    file, but not a changed digit: the checks protect against accidents, because the analyst is
    trusted. An object that opens the file after it was restored detects nothing, and no object
    detects a copy that is spent elsewhere.

    These properties assume that the file system is correct: a lock excludes others, and
    synchronised data are on disk. Network file systems guarantee this only if configured for it; a
    local disk is safer.

    Examples
    --------
    >>> import privrank as pr
    >>> budget = pr.Budget(epsilon=1.0, unit="respondent")
    >>> budget
    Budget(epsilon=1, delta=0, unit='respondent'; left 1, 0)
    """

    __slots__ = ("__weakref__", "_memory", "_path", "_process", "_seen", "_survey")

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        pure: float | None = None,
        unit: Unit | None = None,
        label: str | None = None,
    ) -> None:
        if label is not None:
            check_text("label", label)
        stated = {
            "label": label,
            "epsilon": None if epsilon is None else check_epsilon(epsilon),
            "delta": None if delta is None else check_delta(delta),
            "pure": None if pure is None else check_number("pure", pure, 0, math.inf, "[)") + 0.0,
            "unit": None if unit is None else check_choice("unit", unit, Unit),
        }
        given: dict[str, Any] = {key: value for key, value in stated.items() if value is not None}
        if path is None and label is not None:
            raise ValueError("label= is for a ledger on disk. Give its path as well.")
        if path is None and epsilon is None:
            raise TypeError("epsilon must be given. It is the total that all fits may spend.")
        # a ledger in memory is also a database, so both kinds use the same transactions
        self._path = None if path is None else _checked_path(path)
        self._seen: tuple[Spending, ...] = ()
        self._process = os.getpid()
        self._memory: sqlite3.Connection | None = None
        if self._path is None:
            self._memory = _connection(":memory:")
            finalize(self, self._memory.close)
        elif epsilon is None and not os.path.exists(self._path):
            raise FileNotFoundError(
                f"there is no ledger {self._name!r}. Give epsilon=, the total, to make one."
            )
        if epsilon is not None and self._is_new():
            stem = None if self._path is None else Path(self._path).stem
            facts = {"label": stem, "delta": 0.0, "unit": "row"} | given
            survey = BudgetTerms(**facts)
            if survey.rest < 0:
                raise ValueError(
                    f"pure={survey.pure:g} must be at most epsilon={survey.epsilon:g}, because it "
                    f"is a part of epsilon."
                )
            if survey.pure is not None and survey.delta == 0:
                raise ValueError(
                    "pure= leaves the rest of epsilon to fits with a delta, which need a delta of "
                    "the budget. Give delta=, for example 1e-6, or leave pure= out."
                )
            self._make(survey)
        # the call that made the ledger fixed its terms; later calls may repeat, never change them
        self._survey = self._read_all().survey
        for key, value in given.items():
            if (entry := getattr(self._survey, key)) != value:
                raise ValueError(
                    f"the ledger {self._name!r} was made with {key} {entry!r}, not "
                    f"{value!r}. Leave {key}= out, or use a separate ledger for another data set."
                )

    @property
    def epsilon(self) -> float:
        """Total epsilon.

        Examples
        --------
        >>> budget.epsilon
        1.0
        """
        return self._survey.epsilon

    @property
    def delta(self) -> float:
        """Total delta.

        Examples
        --------
        >>> budget.delta
        0.0
        """
        return self._survey.delta

    @property
    def pure(self) -> float | None:
        """Part of epsilon for fits without delta; None if there is one account.

        Examples
        --------
        One account for all fits, unless ``pure=`` was given:

        >>> budget.pure is None
        True
        """
        return self._survey.pure

    @property
    def unit(self) -> Unit:
        """The unit of privacy: one row or one respondent.

        Examples
        --------
        >>> budget.unit
        'respondent'
        """
        return self._survey.unit

    @property
    def path(self) -> Path | None:
        """The file of a ledger on disk.

        Examples
        --------
        A ledger in memory has no file:

        >>> budget.path is None
        True
        """
        return None if self._path is None else Path(self._path)

    @property
    def label(self) -> str | None:
        """Name of the data set, for a ledger on disk.

        Examples
        --------
        >>> budget.label is None
        True
        """
        return self._survey.label

    @property
    def spendings(self) -> tuple[Spending, ...]:
        """Lines of the ledger, oldest first; a ledger on disk is read each time.

        Examples
        --------
        >>> budget = pr.Budget(epsilon=1.0, unit="respondent")
        >>> budget.reserve("PrivateBTL", 0.25, 0.0, unit="respondent")
        >>> [(line.by, line.epsilon) for line in budget.spendings]
        [('PrivateBTL', 0.25)]
        """
        return self._read_all().spendings

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta spent; with `pure`, epsilon without delta, and rho.

        Examples
        --------
        >>> budget = pr.Budget(epsilon=1.0, unit="respondent")
        >>> budget.reserve("PrivateBTL", 0.25, 0.0, unit="respondent")
        >>> budget.spent
        (0.25, 0.0)
        """
        return self._read_all().spent

    @property
    def composed(self) -> tuple[float, float]:
        """Epsilon and delta of all spendings, by the tighter of two accounts.

        The first account is basic composition. The second is zero-concentrated composition at the
        budget's delta minus the deltas of spendings with unknown rho, which are added by basic
        composition. It is valid if the sizes of the fits were fixed in advance, not chosen from
        earlier results.

        References
        ----------
        Bun and Steinke (2016), https://doi.org/10.1007/978-3-662-53641-4_24; epsilon is computed by
        :func:`privrank.privacy.accounting.zcdp_epsilon`.

        Examples
        --------
        For many small fits with a delta, it is less than the sum of the spendings:

        >>> budget = pr.Budget(epsilon=3.0, delta=1e-5, unit="respondent")
        >>> for _ in range(20):
        ...     budget.reserve("study", 0.1, 1e-7, unit="respondent", rho=0.0005)
        >>> round(budget.spent[0], 2), round(budget.composed[0], 2)
        (2.0, 0.55)
        """
        return self._read_all().composed

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta left; with `pure`, epsilon without delta, and rho.

        Examples
        --------
        >>> budget = pr.Budget(epsilon=1.0, unit="respondent")
        >>> budget.reserve("PrivateBTL", 0.25, 0.0, unit="respondent")
        >>> budget.left
        (0.75, 0.0)
        """
        return self._read_all().left

    def reserve(
        self,
        by: str,
        epsilon: float,
        delta: float,
        *,
        unit: Unit,
        max_rows: int = 1,
        rho: float | None = None,
        released: str | None = None,
    ) -> None:
        """Enter a spending in the ledger; if refused, the ledger is unchanged.

        Parameters
        ----------
        by : str
            The model or test that spends.
        epsilon, delta : float
            The privacy loss of its release.
        unit : {"row", "respondent"}
            The unit of privacy of the release.
        max_rows : int, default 1
            Rows per respondent, for the message.
        rho : float or None
            Zero-concentrated privacy of the release, for `composed` and for the second account of a
            ledger with `pure`. If None and `delta` is 0, it is epsilon^2 / 2.
        released : str or None
            A description of the release.

        Raises
        ------
        BudgetExceeded
            If less than `epsilon` or `delta` is left.
        ValueError, TypeError, OSError, RuntimeError
            If `unit` differs from the unit of the budget, a number is out of range, a ledger with
            `pure` needs an unknown rho, a file was changed or cannot be written, or a ledger in
            memory belongs to another process.

        Examples
        --------
        Fits call this method themselves. Record the privacy loss of your own mechanism as follows:

        >>> budget = pr.Budget(epsilon=1.0)
        >>> budget.reserve("noisy mean", 0.25, 0.0, unit="row", released="the mean age")
        >>> budget.left
        (0.75, 0.0)
        """
        if check_choice("unit", unit, Unit) != self.unit:
            if self.unit == "respondent":
                raise ValueError(
                    "budget protects one respondent but this fit protects one row. Name the "
                    "respondent column with respondent=, because epsilon per row counts once for "
                    "every row of a respondent."
                )
            raise ValueError(
                f"budget protects one row but this fit protects one respondent "
                f"(max_rows={max_rows}). Epsilon {epsilon} per respondent is stronger than per row "
                f"and cannot be added to it. Use a Budget(unit='respondent')."
            )
        line = Spending.checked(by, epsilon, delta, rho, released)
        if self.pure is not None and line.rho is None:
            raise ValueError(
                f"the rho of {by} at delta {line.delta:g} is not known, and a budget with pure= "
                f"adds the rho of fits with a delta. Use a fit without delta, which it adds by "
                f"epsilon."
            )
        if self.path is not None:
            line = replace(line, date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"))
        # no other thread or process reads or writes between the sum and the new line
        with self._held() as (account, add):
            if not account.covers(line):
                raise BudgetExceeded(account.shortage(line))
            add(line)

    def __repr__(self) -> str:
        """Return a string that shows the total and the remaining budget."""
        place = "" if self.path is None else f"{self.path.name!r}, "
        left = self.left
        pure = "" if self.pure is None else f"pure={self.pure:g}, "
        rho = "" if self.pure is None else "rho "
        return (
            f"Budget({place}epsilon={self.epsilon:g}, delta={self.delta:g}, {pure}"
            f"unit={self.unit!r}; left {left[0]:g}, {rho}{left[1]:g})"
        )

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise TypeError(
            "a Budget cannot be copied or pickled, because two copies would each spend it. Keep "
            "one, or keep it on disk and open its path in each process."
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse_copy

    def _is_new(self) -> bool:
        """Return whether no ledger was written yet, or only an interrupted one."""
        if self._path is None or not os.path.exists(self._path):
            return True
        with self._transaction("read") as connection:
            connection.execute("PRAGMA page_count")  # SQLite undoes an interrupted transaction
            return self._size() == 0

    def _make(self, survey: BudgetTerms) -> None:
        """Write the tables, unless another process has done so."""
        with self._transaction("made") as connection:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                *facts, pure = astuple(survey)
                whole = (FORMAT, *facts) if pure is None else (SPLIT, *facts, pure)
                for statement in _TABLES if pure is None else (*_TABLES, _PURE):
                    connection.execute(statement)
                connection.execute(
                    f"INSERT INTO survey VALUES ({', '.join('?' * len(whole))})", whole
                )
                connection.execute("COMMIT")

    def _read_all(self) -> Account:
        with self._transaction("read") as connection:
            return self._read(connection)

    @contextmanager
    def _held(self) -> Iterator[tuple[Account, Callable[[Spending], None]]]:
        """Exclude all others; yield the account, and a function that adds one line."""
        if self._path is None and os.getpid() != self._process:
            raise RuntimeError(
                "a Budget in memory spends only in the process that made it, because the copy in a "
                "forked process would spend it again. Keep it on disk with "
                "privrank.Budget('survey.ledger', epsilon=...)."
            )
        with self._transaction("written") as connection:

            def add(line: Spending) -> None:
                connection.execute(
                    f"INSERT INTO ledger ({_LINE}) VALUES (?, ?, ?, ?, ?, ?)", astuple(line)
                )
                connection.execute("COMMIT")
                self._seen = (*self._seen, line)

            yield self._read(connection), add

    def _read(self, connection: sqlite3.Connection) -> Account:
        """Return the account in the tables after checking it."""
        surveys = connection.execute("SELECT * FROM survey").fetchall()
        lines = connection.execute(f"SELECT {_LINE} FROM ledger ORDER BY number").fetchall()
        if [(row[0], len(row)) for row in surveys] not in ([(FORMAT, 5)], [(SPLIT, 6)]):
            raise self._stranger(*(row[0] for row in surveys))
        whole = connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
        cut = self._size() % connection.execute("PRAGMA page_size").fetchone()[0]
        # SQLite does not check that texts are texts
        texts = chain(surveys[0][1:2], *((line[0], *line[4:]) for line in lines))
        if not whole or cut or not all(isinstance(text, str | None) for text in texts):
            raise self._damaged()
        account = Account(BudgetTerms(*surveys[0][1:]), tuple(Spending(*line) for line in lines))
        other = getattr(self, "_survey", account.survey) != account.survey
        # a line is entered only if the total covers it; after a crash a line is in every later
        # reading or in none, so this holds in that case as well
        refuse_if(
            (
                other or account.spendings[: len(self._seen)] != self._seen,
                f"the ledger {self._name!r} lacks lines that it had since it was opened, or is "
                f"another ledger. Restore it as it was after the last fit.",
            ),
            (
                not account.covers(),
                f"the ledger {self._name!r} holds more spendings than its total covers, so it was "
                f"not written by fits alone. Restore it as it was after the last fit.",
            ),
        )
        self._seen = account.spendings
        return account

    def _size(self) -> int:
        """Return the size of the file; SQLite reads missing bytes as zeros."""
        return 0 if self._path is None else os.path.getsize(self._path)

    @property
    def _name(self) -> str:
        return os.path.basename(self._path or "")

    def _damaged(self) -> ValueError:
        return ValueError(
            f"the ledger {self._name!r} was damaged or cut short. Restore it as it was after the "
            f"last fit."
        )

    def _stranger(self, *formats: object) -> ValueError:
        known = len(formats) == 1 and formats[0] not in (FORMAT, SPLIT)
        if known and re.fullmatch(r"privrank ledger \d{1,9}(, [a-z ]+)?", str(formats[0])):
            return ValueError(
                f"the ledger {self._name!r} is a {formats[0]!r}, and this version of privrank has "
                f"{FORMAT!r}. Open it with the version that made it."
            )
        return ValueError(
            f"the ledger {self._name!r} is not a ledger of this version of privrank, or was "
            f"changed. Restore it as it was after the last fit, or give another path."
        )

    @contextmanager
    def _transaction(self, doing: str) -> Iterator[sqlite3.Connection]:
        """Begin a transaction, which is rolled back unless it is committed."""
        with _open:
            try:
                with self._connected(doing) as connection:
                    connection.execute("BEGIN" if doing == "read" else "BEGIN IMMEDIATE")
                    yield connection
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise self._sentence(doing, error) from None

    @contextmanager
    def _connected(self, doing: str) -> Iterator[sqlite3.Connection]:
        if self._memory is None:
            mode = "rwc" if doing == "made" else "rw"  # SQLite only reads if it may not write
            place = f"{Path(self._path or '').as_uri()}?mode={mode}"
            with closing(_connection(place)) as connection:
                connection.executescript(_SETTINGS)
                yield connection
        elif self._memory.in_transaction:  # for example a signal handler during a reservation
            raise RuntimeError(
                "a Budget in memory cannot be read by the thread that is spending from it. Read it "
                "after the fit."
            )
        else:
            try:
                yield self._memory
            finally:
                self._memory.rollback()

    def _sentence(self, doing: str, error: Exception) -> Exception:
        """Return the error for a failure of SQLite."""
        code = getattr(error, "sqlite_errorname", "")
        if code in {"SQLITE_NOTADB", "SQLITE_ERROR"}:  # the latter: there is no such table
            return self._stranger()
        if code.startswith("SQLITE_CORRUPT") or not code:  # no code: bytes that are no text
            return self._damaged()
        if code.startswith("SQLITE_BUSY"):
            return TimeoutError(
                f"the ledger {self._name!r} has been locked by another process for {PATIENCE:g} "
                f"seconds. End that process, or wait for it."
            )
        kind = OSError if os.path.exists(self._path or "") else FileNotFoundError
        return kind(f"the ledger {self._name!r} cannot be {doing} ({error}). {_REMEDIES[doing]}")
