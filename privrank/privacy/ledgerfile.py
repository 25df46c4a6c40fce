"""A ledger on disk: a file to which lines are only added, and a seal that counts them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import NoReturn

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["FORMAT", "LedgerFile", "Record"]

Record = dict[str, str]

FORMAT = "privrank ledger 1"

PATIENCE = 60.0
"""Seconds to wait for another process, which needs milliseconds."""

_PAUSE = 0.002
_FAR = 2**30  # Windows locks a byte, which nobody can read then: one beyond the end
_BINARY: int = getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class _Content:
    """The good lines of a file: what they say, the check of the last, and where they end."""

    records: tuple[Record, ...]
    check: str
    end: int


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """Records in a file, to which one process at a time adds.

    Each line of the file is a JSON object of texts, a header first, and ends with a running check:
    the SHA-256 of the check of the line before and of the line itself. Beside it,
    ``<name>.seal`` holds the number of records that were added and the check of the last.

    Parameters
    ----------
    path : str
        The file; it exists. :meth:`open` finds or makes it.
    header : dict of str
        Its first line, which stays as it is.

    Notes
    -----
    **Privacy.** The ledger's claim rests on three facts about :meth:`held`, which reads the file,
    and lets its caller decide and add a record. Unit, neighbours and guarantee are the ledger's
    (:class:`privrank.privacy.budget.Ledger`).

    *One at a time.* From reading to adding, the caller holds an exclusive lock of the file. The
    operating system grants it to one open file among all threads and processes, and takes it back
    when a process ends, however it ends. What was decided from the records is therefore still true
    when the record is added.

    *An added record stays.* Adding writes the whole line, asks the system to put the file on disk
    (fsync), then replaces the seal likewise, and returns only after both. A process that is killed
    takes back no write, and a power failure none that was synchronised. So once adding has
    returned, and noise may be drawn, the line and all before it are whole in every later state of
    the file, as long as nothing damages it. A record whose adding did not return may be there or
    not; if it is there it counts.

    *What is left out was never granted.* A line is good if it is, byte for byte, what is written
    for its record after good lines; reading stops before the first that is not. It refuses the file
    unless the good lines include all that the seal counts, with its check. Otherwise it leaves
    out what follows the good lines, and the next record is written in its place. If a record left
    out had been granted, its line and all before it would have been whole and so good: a
    contradiction. What a crash leaves of a torn line is thus neither counted nor in the way.

    *Damage.* A changed byte makes its line not good, and so does a change of order, as checks are
    chained; a file that ends early, even between two lines, lacks what the seal counts. Either is
    refused, unless SHA-256 collides or it hits lines beyond the seal, which only a crash leaves.
    The seal is a second file, since the first alone cannot do that: with lines only added, each of
    its beginnings was once the whole file, so that no reader can tell a cut from the past. For the
    same reason nothing is seen where both files are put back to an earlier time, or replaced by
    others that were made by the same rules: the checks find accidents, not forgery.

    The proof takes the file system at its word: a lock excludes, and what was synchronised is on
    disk. Network file systems keep that between their clients as far as they are set up for it, and
    some lock by process, so that threads are not kept apart: a local disk is safer. Whoever puts
    another file in its place while a fit is waiting for the lock goes round it.
    """

    path: str
    header: Record

    @classmethod
    def open(cls, path: str, header: Record | None) -> LedgerFile:
        """Return the ledger at a path, whatever its header; make it with `header` if it is new.

        Notes
        -----
        **Privacy.** A file without a seal holds nothing that was granted, as adding replaces the
        seal before it returns, and making a file ends with its first. It is taken for a new one
        only if all it holds is a beginning of the header asked for: nothing, or what a crash left.
        """
        path = os.path.realpath(path)
        if header is not None and not os.path.exists(_seal_of(path)):
            line, check = _line(header, "")
            with _locked(path, os.O_RDWR | os.O_CREAT) as file:
                new = not os.path.exists(_seal_of(path)) and line.startswith(_content(file))
                if new:
                    _append(file, 0, line)
                    _synchronise_folder(path)
                    _seal(path, 0, check)
        if not os.path.exists(path):
            sealed = os.path.exists(_seal_of(path))
            raise FileNotFoundError(
                f"the ledger {_name(path)!r} is missing, but its seal is there: restore the file "
                f"as it was after the last fit."
                if sealed
                else f"there is no ledger {_name(path)!r}: give epsilon=, the total, to make one."
            )
        with _locked(path, os.O_RDONLY) as file:
            return cls(path, _read(path, file).records[0])

    def records(self) -> tuple[Record, ...]:
        """Return all records, oldest first."""
        with _locked(self.path, os.O_RDONLY) as file:
            return self._entries(_read(self.path, file))

    @contextmanager
    def held(self) -> Iterator[tuple[tuple[Record, ...], Callable[[Record], None]]]:
        """Keep all others from the file; yield its records and a function that adds one, once."""
        with _locked(self.path, os.O_RDWR) as file:
            found = _read(self.path, file)

            def add(record: Record) -> None:
                line, check = _line(record, found.check)
                _append(file, found.end, line)
                _seal(self.path, len(found.records), check)

            yield self._entries(found), add

    def _entries(self, found: _Content) -> tuple[Record, ...]:
        if found.records[0] != self.header:
            _refuse(self.path, "is another one than when it was opened", "open it again")
        return found.records[1:]


def _name(path: str) -> str:
    return os.path.basename(path)


def _seal_of(path: str) -> str:
    return f"{path}.seal"


def _refuse(path: str, what: str, remedy: str) -> NoReturn:
    raise ValueError(f"the ledger {_name(path)!r} {what}: {remedy}.")


def _line(record: Record, check: str) -> tuple[bytes, str]:
    """Return the line of a record after a line with this check, and its own check."""
    check = sha256((check + json.dumps(record)).encode("ascii")).hexdigest()
    return json.dumps({**record, "check": check}).encode("ascii") + b"\n", check


def _read(path: str, file: int) -> _Content:
    """Return the good lines of a locked file, or refuse it."""
    content, records, checks, end = _content(file), [], [""], 0
    for raw in content.splitlines(keepends=True):
        try:
            record = json.loads(raw)
            del record["check"]
            line, check = _line(record, checks[-1])
        except (ValueError, TypeError, KeyError, RecursionError):
            break
        if line != raw:
            break
        records.append(record)
        checks.append(check)
        end += len(raw)
    if not records or records[0].get("format") != FORMAT:
        _refuse(
            path,
            "is not a ledger of this version of privrank, or its first line was changed",
            "restore it as it was after the last fit, or give another path",
        )
    try:
        with open(_seal_of(path), "rb") as stream:
            seal = stream.read()
    except FileNotFoundError:
        _refuse(
            path,
            f"is without its seal, the file {_name(_seal_of(path))!r} beside it",
            "restore the seal as it was after the last fit, or, if the ledger was just being made, "
            "give epsilon= again",
        )
    known = (_seal_line(number, check) for number, check in enumerate(checks[1:]))
    if seal not in known:
        whole = end == len(content)
        _refuse(
            path,
            "has lost lines at its end, or its seal was changed"
            if whole
            else f"was changed, damaged or cut short at line {len(records) + 1}",
            "restore it and its seal as they were after the last fit",
        )
    return _Content(tuple(records), checks[-1], end)


def _content(file: int) -> bytes:
    with open(file, "rb", closefd=False) as stream:
        stream.seek(0)
        return stream.read()


def _append(file: int, end: int, line: bytes) -> None:
    """Put a line after the good ones, and on disk."""
    os.ftruncate(file, end)
    os.lseek(file, end, os.SEEK_SET)
    while line:
        line = line[os.write(file, line) :]
    os.fsync(file)


def _seal_line(number: int, check: str) -> bytes:
    return _line({"records": str(number)}, check)[0]


def _seal(path: str, number: int, check: str) -> None:
    """Replace the seal, whole or not at all."""
    partial = f"{_seal_of(path)}.part"
    with open(partial, "wb") as stream:
        stream.write(_seal_line(number, check))
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, _seal_of(path))
    _synchronise_folder(path)


def _synchronise_folder(path: str) -> None:
    """Put the names of files on disk; Windows does so with the files."""
    if sys.platform != "win32":
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _locked(path: str, flags: int) -> Iterator[int]:
    """Open a file and lock it, for all others, or for those who write if it is only read."""
    doing = "read" if flags == os.O_RDONLY else "written"
    try:
        file = os.open(path, flags | _BINARY, 0o666)
        try:
            _lock(path, file, exclusive=doing == "written")
            try:
                yield file
            finally:
                _unlock(file)
        finally:
            os.close(file)
    except OSError as error:
        if error.errno is None:  # it is a sentence already
            raise
        reason = os.strerror(error.errno).lower()
        remedy = (
            "name a file that can be read"
            if doing == "read"
            else "no noise was drawn, though what was asked for may stand as spent; name a file on "
            "a local disk that can be written"
        )
        raise type(error)(
            f"the ledger {_name(path)!r} cannot be {doing} ({reason}): {remedy}."
        ) from None


def _lock(path: str, file: int, *, exclusive: bool) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if sys.platform == "win32":
                os.lseek(file, _FAR, os.SEEK_SET)
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            else:
                kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
                fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        except (BlockingIOError, PermissionError):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the ledger {_name(path)!r} has been locked by another process for "
                    f"{PATIENCE:g} seconds: end that process, or wait for it."
                ) from None
        time.sleep(_PAUSE)


def _unlock(file: int) -> None:
    if sys.platform == "win32":
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_UN)
