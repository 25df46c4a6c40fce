"""The table of a ledger, in SQLite, on disk or in memory: lines are only added."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from urllib.parse import quote
from weakref import finalize

__all__ = ["FORMAT", "LedgerTable", "Record"]

Record = dict[str, str]

FORMAT = "privrank ledger 2"

PATIENCE = 60.0
"""Seconds to wait for another process, which needs milliseconds."""

_FORKED = (
    "a Budget in memory spends only in the process that made it, because the copy in a forked "
    "process would spend it a second time: keep it on disk, "
    "privrank.Budget('survey.ledger', epsilon=...), which all processes may spend."
)
_SPENDING = (
    "a Budget in memory cannot be asked by the thread that is spending from it: ask again when "
    "that fit is done."
)
_SETTINGS = "PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON"
_TABLE = """
CREATE TABLE ledger (number INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TRIGGER stays BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER kept BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
"""

_open = RLock()
"""Held by the one thread of this process that has a transaction.

SQLite keeps processes apart, but its locks on a file are those of the process: a forked process
that closed what it inherited in the midst of a transaction would give up another's. So nobody forks
during one. The lock also passes the connection of a ledger in memory from thread to thread.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_open.acquire, after_in_parent=_open.release, after_in_child=_open.release
    )


class LedgerTable:
    """Records in a table, to which one at a time adds.

    Each record is a JSON object of texts in a row of the table ``ledger``. The first is the header,
    which says of which survey the ledger is.

    Parameters
    ----------
    path : str or None
        The file; None is a table in memory, which ends with the object.
    header : dict of str or None
        The first record of a table that is made if it is new; None opens a file that exists.
    records : sequence of dict of str
        What a new table holds besides.

    Notes
    -----
    **Privacy.** The ledger's claim rests on three facts about :meth:`held`, which reads the table,
    and lets its caller decide and add a record. Unit, neighbours and guarantee are the ledger's
    (:class:`privrank.privacy.budget.Ledger`). All three are what SQLite promises of a transaction.

    *One at a time.* Reading and adding are one transaction that begins as IMMEDIATE: SQLite gives
    it to one connection among all threads and processes, and takes it back when the process ends,
    however it ends. What was decided from the records is still true when the record is added. Every
    transaction on a file has a connection of its own, and a process does not fork while it has one.
    A table in memory has one connection, which one thread has at a time; the copy that a forked
    process inherits, which knows nothing of later records, adds none.

    *An added record stays.* Adding returns once the transaction is committed. With
    ``synchronous = EXTRA`` its pages are on disk by then, and so is the removal of the journal
    that could undo it, which FULL leaves to the file system (on macOS ``fullfsync`` sees to the
    drive's cache). So noise is drawn only for what no later crash or power failure takes back. On
    Windows a folder cannot be synchronised: there a power failure in the moments after a fit may
    bring the journal back, and with it the ledger without that fit.

    *What was seen stays.* The object keeps the records that it read or added, and refuses a file
    that does not begin with them: one that was put back to an earlier state, or in place of
    another.

    A fit that is killed before its commit leaves a journal beside the file, ``<name>-journal``,
    from which SQLite restores the state before, at the next opening. It belongs to the file.
    Otherwise there is one file. One that is killed while it makes the ledger leaves no ledger, and
    nothing spent: the next to give the total makes it. Each reading begins with SQLite's
    ``integrity_check`` of the whole file. It finds a cut or broken file, not a digit that was
    changed: the checks are against accidents, as the analyst is trusted. Nothing is seen by an
    object that opens the file after it was put back, nor a copy that is spent elsewhere.

    The facts take the file system at its word: a lock excludes, and what was synchronised is on
    disk. Network file systems keep that only as far as they are set up for it: a local disk is
    safer.
    """

    __slots__ = ("__weakref__", "_memory", "_process", "_seen", "path")

    def __init__(
        self, path: str | None, header: Record | None, records: Sequence[Record] = ()
    ) -> None:
        self.path = None if path is None else os.path.realpath(path)
        self._seen: tuple[bytes, ...] = ()
        self._process = os.getpid()
        self._memory: sqlite3.Connection | None = None
        if self.path is None:
            self._memory = _connection(":memory:")
            finalize(self, self._memory.close)
        elif header is None and not os.path.exists(self.path):
            raise FileNotFoundError(
                f"there is no ledger {self._name!r}: give epsilon=, the total, to make one."
            )
        if header is not None and self._is_new():
            self._make((header, *records))
        self.records()

    def _is_new(self) -> bool:
        """Return whether nothing was written yet, or only what a kill cut short."""
        if self.path is None or not os.path.exists(self.path):
            return True
        with self._transaction("read") as connection:
            connection.execute("PRAGMA page_count")  # SQLite takes back what was cut short
            return os.path.getsize(self.path) == 0

    def _make(self, records: Sequence[Record]) -> None:
        """Write the table and its first records, unless another process was faster."""
        with self._transaction("made") as connection:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                for statement in _TABLE.strip().splitlines():
                    connection.execute(statement)
                for record in records:
                    _insert(connection, record)
                connection.execute("COMMIT")

    @property
    def header(self) -> Record:
        """The first record, which stays as it is."""
        return _parsed(self._seen[0])

    def records(self) -> tuple[Record, ...]:
        """Return all records after the header, oldest first."""
        with self._transaction("read") as connection:
            return self._read(connection)

    @contextmanager
    def held(self) -> Iterator[tuple[tuple[Record, ...], Callable[[Record], None]]]:
        """Keep all others from adding; yield the records and a function that adds one, once."""
        if self.path is None and os.getpid() != self._process:
            raise RuntimeError(_FORKED)
        with self._transaction("written") as connection:

            def add(record: Record) -> None:
                line = _insert(connection, record)
                connection.execute("COMMIT")
                self._seen = (*self._seen, line)

            yield self._read(connection), add

    def _read(self, connection: sqlite3.Connection) -> tuple[Record, ...]:
        """Return what the table holds, or refuse it."""
        found = connection.execute("PRAGMA integrity_check(1)").fetchall()
        rows = connection.execute("SELECT record FROM ledger ORDER BY number").fetchall()
        if found != [(b"ok",)]:
            raise self._damaged()
        lines = tuple(line for (line,) in rows)
        try:
            header, *records = (_parsed(line) for line in lines)
        except (ValueError, TypeError, RecursionError):
            raise self._stranger() from None
        if header.get("format") != FORMAT:
            raise self._stranger()
        if lines[: len(self._seen)] != self._seen:
            raise self._refusal(
                "lacks what was in it since it was opened, or is another one",
                "restore it as it was after the last fit",
            )
        self._seen = lines
        return tuple(records)

    @property
    def _name(self) -> str:
        return os.path.basename(self.path or "")

    def _refusal(self, what: str, remedy: str) -> ValueError:
        return ValueError(f"the ledger {self._name!r} {what}: {remedy}.")

    def _damaged(self) -> ValueError:
        return self._refusal("was damaged or cut short", "restore it as it was after the last fit")

    def _stranger(self) -> ValueError:
        return self._refusal(
            "is not a ledger of this version of privrank, or was changed",
            "restore it as it was after the last fit, or give another path",
        )

    @contextmanager
    def _transaction(self, doing: str) -> Iterator[sqlite3.Connection]:
        """Begin a transaction, which is undone unless it is committed."""
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
            with closing(self._opened(doing)) as connection:
                connection.executescript(_SETTINGS)
                yield connection
        elif self._memory.in_transaction:  # a signal's handler, say, in the midst of a reservation
            raise RuntimeError(_SPENDING)
        else:
            try:
                yield self._memory
            finally:
                self._memory.rollback()

    def _opened(self, doing: str) -> sqlite3.Connection:
        path = Path(self.path or "").as_posix()
        mode = "rwc" if doing == "made" else "rw"  # SQLite only reads where it may not write
        root = "" if path.startswith("/") else "/"
        return _connection(f"file://{root}{quote(os.fsencode(path))}?mode={mode}")

    def _sentence(self, doing: str, error: Exception) -> Exception:
        """Return what SQLite could not do."""
        if isinstance(error, UnicodeDecodeError):  # a message that quotes what is broken
            return self._damaged()
        code = getattr(error, "sqlite_errorname", "")
        if code in {"SQLITE_NOTADB", "SQLITE_ERROR"}:  # the latter: there is no such table
            return self._stranger()
        if code.startswith("SQLITE_CORRUPT"):
            return self._damaged()
        if code.startswith("SQLITE_BUSY"):
            return TimeoutError(
                f"the ledger {self._name!r} has been locked by another process for {PATIENCE:g} "
                f"seconds: end that process, or wait for it."
            )
        remedy = "name a file that can be read"
        if doing != "read":
            remedy = "name a file on a local disk, in a folder that can be written"
        if doing == "written":
            remedy = f"no noise was drawn, though what was asked for may stand as spent; {remedy}"
        kind = OSError if os.path.exists(self.path or "") else FileNotFoundError
        return kind(f"the ledger {self._name!r} cannot be {doing} ({error}): {remedy}.")


def _connection(place: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        place, timeout=PATIENCE, isolation_level=None, uri=True, check_same_thread=False
    )
    connection.text_factory = bytes  # what is no text is then no error that quotes it
    return connection


def _parsed(line: object) -> Record:
    record = json.loads(line) if isinstance(line, bytes) else None
    if not isinstance(record, dict) or not all(isinstance(text, str) for text in record.values()):
        raise TypeError("a record must be an object of texts")
    return record


def _insert(connection: sqlite3.Connection, record: Record) -> bytes:
    """Add a record to the transaction; return its text."""
    line = json.dumps(record)
    connection.execute("INSERT INTO ledger (record) VALUES (?)", (line,))
    return line.encode("ascii")
