"""A ledger on disk: an SQLite database with one table, to which lines are only added."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from urllib.parse import quote

__all__ = ["FORMAT", "LedgerFile", "Record"]

Record = dict[str, str]

FORMAT = "privrank ledger 2"

PATIENCE = 60.0
"""Seconds to wait for another process, which needs milliseconds."""

_SETTINGS = "PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON"
_TABLE = """
CREATE TABLE ledger (number INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TRIGGER stays BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER kept BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
"""

_open = RLock()
if hasattr(os, "register_at_fork"):  # what SQLite has open must not get into a forked process
    os.register_at_fork(
        before=_open.acquire, after_in_parent=_open.release, after_in_child=_open.release
    )


class LedgerFile:
    """Records in a file, to which one process at a time adds.

    Each record is a JSON object of texts in a row of the table ``ledger``. The first is the header,
    which says of which survey the ledger is.

    Parameters
    ----------
    path : str
        The file.
    header : dict of str or None
        The first record of a file that is made if it is new; None opens one that exists.

    Notes
    -----
    **Privacy.** The ledger's claim rests on three facts about :meth:`held`, which reads the file,
    and lets its caller decide and add a record. Unit, neighbours and guarantee are the ledger's
    (:class:`privrank.privacy.budget.Ledger`). All three are what SQLite promises of a transaction.

    *One at a time.* Reading and adding are one transaction that begins as IMMEDIATE: SQLite gives
    it to one connection among all threads and processes, and takes it back when the process ends,
    however it ends. What was decided from the records is still true when the record is added. Every
    transaction has a connection of its own, and a process does not fork while it has one.

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
    Otherwise there is one file. Each reading begins with SQLite's ``integrity_check`` of the whole
    file. It finds a cut or broken file, not a digit that was changed: the checks are against
    accidents, as the analyst is trusted. Nothing is seen by an object that opens the file after it
    was put back, nor a copy that is spent elsewhere.

    The facts take the file system at its word: a lock excludes, and what was synchronised is on
    disk. Network file systems keep that only as far as they are set up for it: a local disk is
    safer.
    """

    __slots__ = ("_seen", "path")

    def __init__(self, path: str, header: Record | None) -> None:
        self.path = os.path.realpath(path)
        self._seen: tuple[bytes, ...] = ()
        there = os.path.exists(self.path)
        if header is None and not there:
            raise FileNotFoundError(
                f"there is no ledger {self._name!r}: give epsilon=, the total, to make one."
            )
        if header is not None and not (there and os.path.getsize(self.path)):
            self._make(header)
        self.records()

    def _make(self, header: Record) -> None:
        """Write the table and its header into a file that is new or empty."""
        with self._transaction("made") as connection:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                for statement in _TABLE.strip().splitlines():
                    connection.execute(statement)
                _insert(connection, header)

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
        with self._transaction("written") as connection:

            def add(record: Record) -> None:
                self._seen = (*self._seen, _insert(connection, record))

            yield self._read(connection), add

    def _read(self, connection: sqlite3.Connection) -> tuple[Record, ...]:
        """Return what the file holds, or refuse it."""
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
        return os.path.basename(self.path)

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
        """Open the file for one transaction, which is undone unless :func:`_insert` ends it."""
        mode = "rwc" if doing == "made" else "rw"  # SQLite only reads where it may not write
        with _open:
            try:
                with closing(self._connection(mode)) as connection:
                    connection.executescript(_SETTINGS)
                    connection.execute("BEGIN" if doing == "read" else "BEGIN IMMEDIATE")
                    yield connection
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise self._sentence(doing, error) from None

    def _connection(self, mode: str) -> sqlite3.Connection:
        path = Path(self.path).as_posix()
        uri = f"file://{'' if path.startswith('/') else '/'}{quote(os.fsencode(path))}?mode={mode}"
        connection = sqlite3.connect(uri, timeout=PATIENCE, isolation_level=None, uri=True)
        connection.text_factory = bytes  # what is no text is then no error that quotes it
        return connection

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
        kind = OSError if os.path.exists(self.path) else FileNotFoundError
        return kind(f"the ledger {self._name!r} cannot be {doing} ({error}): {remedy}.")


def _parsed(line: object) -> Record:
    record = json.loads(line) if isinstance(line, bytes) else None
    if not isinstance(record, dict) or not all(isinstance(text, str) for text in record.values()):
        raise TypeError("a record must be an object of texts")
    return record


def _insert(connection: sqlite3.Connection, record: Record) -> bytes:
    """Add a record for good; return its text."""
    line = json.dumps(record)
    connection.execute("INSERT INTO ledger (record) VALUES (?)", (line,))
    connection.execute("COMMIT")
    return line.encode("ascii")
