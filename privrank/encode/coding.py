"""Code the cells of a frame: distinct values as integers, outcomes as signs.

This module decides which names are equal, for frames of all engines. Messages name columns and
rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype, is_hashable

from privrank.release.survey import Ties
from privrank.util.arrays import AnyArray, FloatArray, IntArray, Words

ROWS = "privrank_rows"
"""Name of the column of group sizes that an engine computes."""


Signs = NDArray[np.int8]

LARGEST_CODE = 2**62
"""Combinations of columns are numbered by one 64-bit integer below this limit."""


@dataclass(frozen=True, slots=True)
class Key:
    """Distinct values of a column, or of the groups of :func:`tally`, with codes.

    The code of an entry is its position in `values`, -1 if the entry is missing.
    """

    codes: IntArray
    values: AnyArray

    def among(self, labels: Sequence[Any]) -> IntArray:
        """Return the position of each entry among labels, -1 if there is none."""
        # look up objects as they are, without inferring a type
        kind = object if self.values.dtype == object else None
        place = pd.Index(labels, dtype=kind).get_indexer(pd.Index(self.values, dtype=kind))
        # a missing entry, code -1, reads the sentinel put last
        return np.append(place, -1)[self.codes].astype(np.int64, copy=False)

    def take(self, rows: IntArray) -> Key:
        """Return the key of selected entries, with only the values that occur."""
        if len(rows) == len(self.codes):
            return self
        codes, place = np.unique(self.codes[rows], return_inverse=True)
        missing = int(len(codes) > 0 and codes[0] < 0)
        return Key(place.astype(np.int64) - missing, self.values[codes[missing:]])


def numbers_of_names(values: AnyArray) -> Words:
    """Return a hash of each name that does not depend on the engine.

    The hash function is public, and two names may have the same hash. The hash decides to which
    part a respondent belongs and which rows a secret key selects, but never which rows belong to
    the same respondent. It is a function of the name alone, not of the other names.
    """
    if values.dtype.kind not in "iubf":
        written = [_written(name) for name in values]
        return _hashed(
            np.frombuffer(b"".join(written), dtype=np.uint8), np.cumsum([0, *map(len, written)])
        )
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        whole = (np.abs(values) < 2**53) & (np.floor(values) == values)
        values = np.where(whole, np.where(whole, values, 0).astype(np.int64), values.view(np.int64))
    return _hashed(values.astype(np.int64).view(np.uint8), np.arange(len(values) + 1) * 8)


def _written(name: object) -> bytes:
    """Return the bytes of a name: 8 bytes for a number, the encoded text if not."""
    if isinstance(name, date | np.datetime64):
        stamp = pd.Timestamp(name)
        return str(stamp if stamp.tz is None else stamp.tz_convert(None)).encode()
    if isinstance(name, float) and abs(name) < 2**53 and name.is_integer():
        name = int(name)
    if isinstance(name, float):
        return np.float64(name).tobytes()
    number: Any = name if isinstance(name, Integral | np.bool_) else None
    if isinstance(name, np.timedelta64) or number is None or not -(2**63) <= int(number) < 2**64:
        return str(name).encode(errors="surrogatepass")
    return (int(number) % 2**64).to_bytes(8, "little")


def _hashed(text: NDArray[np.uint8], ends: IntArray) -> Words:
    from privrank.kernels.hashing import siphash

    return siphash(text, ends, np.zeros(2, dtype=np.uint64))


def numbers_by_row(names: nw.Series[Any]) -> Words:
    """Return the hash of the name in each row."""
    if names.dtype == nw.String and (texts := _texts(names)):
        return np.concatenate([_hashed(*_bytes_of(chunk)) for chunk in texts.chunks])
    key = _key(names, numeric=False)
    return np.append(numbers_of_names(key.values), np.uint64(0))[key.codes]


def _bytes_of(texts: Any) -> tuple[NDArray[np.uint8], IntArray]:
    """Return the concatenated bytes of Arrow texts, and their end positions."""
    _, ends, text = texts.cast("large_string").buffers()
    places = np.frombuffer(ends, dtype=np.int64)[texts.offset :][: len(texts) + 1]
    return np.frombuffer(text or b"", dtype=np.uint8), places


def comparable(names: AnyArray) -> tuple[str, pd.Index[Any]]:
    """Return the type of names, and names that are comparable between frames.

    Dates and times are converted to UTC, whatever their unit and zone. Numbers have one type,
    whatever their dtype. All are Python objects, because a cast could round them.
    """
    values: Any = pd.Series(names).infer_objects()
    kind = infer_dtype(values, skipna=False)
    if kind in ("date", "datetime", "datetime64"):
        values = pd.to_datetime(values, utc=True).dt.tz_localize(None)
        kind = "time"
    elif kind in ("integer", "floating", "mixed-integer-float", "boolean"):
        kind = "number"
    return kind, pd.Index(values.astype(object), dtype=object)


def distinct_names(*names: str | None) -> list[str]:
    """Return each name once, without those that are None."""
    return list(dict.fromkeys(name for name in names if name is not None))


def tally(
    view: nw.DataFrame[Any], by: Sequence[str], numeric: str | None, counts: str | None = None
) -> tuple[dict[str, Key], IntArray]:
    """Return the combinations of the columns `by` and how often each occurs.

    The rows may be groups (:func:`privrank.encode.frames.grouped`). Null and NaN are both missing.
    A row counts once, or as often as given in the column `counts`. The column `numeric` is compared
    as float64, whatever its type in the engine.
    """
    if ROWS in set(view.columns) - {*by, counts}:
        size = view.get_column(ROWS).to_numpy().astype(np.int64)
        return keys_of(view, by, numeric, counts, size)
    keys, size = keys_of(view, by, numeric, counts)
    # a combination is one integer whose digits are the codes of its columns
    combined = np.zeros(len(view), dtype=np.int64)
    span = 1
    for key in keys.values():
        # one more than the number of distinct values, because missing is a separate value
        width = len(key.values) + 1
        if span * width > LARGEST_CODE:
            # renumber the combinations that occur; both factors are then at most rows + 1 < 2^31
            places, met = pd.factorize(combined)
            combined = places.astype(np.int64)
            span = len(met)
        combined *= width
        combined += key.codes + 1
        span *= width
    distinct, place = distinct_codes(combined, span)
    totals = np.bincount(place, None if counts is None else size).astype(np.int64)
    # all rows of a group have the same values, so any of them will do
    row = np.empty(len(distinct), dtype=np.int64)
    row[place] = np.arange(len(place))
    return {name: Key(key.codes[row], key.values) for name, key in keys.items()}, totals


def keys_of(
    frame: nw.DataFrame[Any],
    by: Sequence[str],
    numeric: str | None,
    counts: str | None = None,
    size: IntArray | None = None,
) -> tuple[dict[str, Key], IntArray]:
    """Return the columns `by` of an eager frame, and the count of each row.

    For the arguments see :func:`tally`; `size` is the number of original rows that the engine
    has combined in each row.
    """
    if counts is not None:
        size = whole_counts(frame.get_column(counts).to_numpy(), counts, size)
    elif size is None:
        size = np.ones(len(frame), dtype=np.int64)
    return {n: _key(frame.get_column(n), numeric=n == numeric) for n in by}, size


def key_of(column: pd.Series[Any]) -> Key:
    """Return a column as codes of its distinct values; refuse unhashable entries."""
    try:
        codes, values = pd.factorize(column)
    except (TypeError, NotImplementedError):
        if column.map(is_hashable).all():
            raise  # the cause is not the content of the column
        codes = None
    if codes is None:
        raise TypeError(
            f"column {column.name!r} must hold names or numbers, not lists. Split the lists into "
            f"separate columns."
        )
    # before version 3, pandas includes null in the values of a column of type null
    return Key(codes.astype(np.int64, copy=False), np.asarray(values)[: codes.max(initial=-1) + 1])


def whole_counts(values: object, column: str, rows: IntArray | None = None) -> IntArray:
    """Return the number of comparisons that each row represents.

    `values` are the entries of a column; `rows` is the number of identical rows, by which an entry
    is multiplied. Refuses entries that are not counts and totals that float64 cannot represent.
    """
    counts = real_numbers(pd.Series(values))
    totals = counts if rows is None else counts * rows
    if not (are_counts(counts) and are_counts(totals)):
        raise ValueError(
            f"column {column!r} must give the number of comparisons of each row: whole numbers of "
            f"at least 0, below 2^53 in total. Enter 0 for a row without comparisons."
        )
    return totals.astype(np.int64)


def real_numbers(values: pd.Series[Any]) -> FloatArray:
    """Return numbers of any type as floats, NaN for entries that are not numbers.

    If an entry is a Python integer too large for a float, all are infinite and hence not counts.
    """
    try:
        entries = pd.to_numeric(values, errors="coerce")
    except OverflowError:
        return np.full(len(values), np.inf)
    return np.full(len(entries), np.nan) if entries.dtype.kind == "c" else numbers(entries)


def are_counts(counts: FloatArray) -> bool:
    """Return whether all entries are nonnegative integers with total below 2^53.

    Floating-point sums of integers are exact up to 2^53, and a sum beyond it never returns below.
    """
    # NaN fails the first comparison
    bounded = bool(((counts >= 0) & (counts < 2**53)).all())
    return bounded and bool((counts % 1 == 0).all()) and bool(counts.sum() < 2**53)


def _key(series: nw.Series[Any], *, numeric: bool) -> Key:
    """Return the codes of a column (-1 if missing) and its distinct values."""
    if texts := _texts(series):
        return _key_of_texts(texts)
    values = series.to_native()
    if not isinstance(values, pd.Series):
        entries = series.to_numpy()
        values = pd.Series(entries if entries.ndim == 1 else list(entries), name=series.name)
    if numeric and values.dtype != np.int64:
        values = pd.Series(values.to_numpy(dtype=np.float64, na_value=np.nan), name=series.name)
    return key_of(values)


def _key_of_texts(texts: Any) -> Key:
    """Return the codes and distinct values of plain or dictionary Arrow texts."""
    import pyarrow as pa

    if not pa.types.is_dictionary(texts.type):
        plain = texts if pa.types.is_string(texts.type) else texts.cast("large_string")
        pieces = plain.dictionary_encode().chunks  # all chunks share one dictionary
        codes = np.concatenate(
            [piece.indices.fill_null(-1).to_numpy() for piece in pieces], dtype=np.int64
        )
        return Key(codes, pieces[-1].dictionary.to_numpy(zero_copy_only=False))
    # use one chunk, because several chunks may have different dictionaries
    whole = texts.unify_dictionaries().combine_chunks()
    names = np.array([*whole.dictionary.to_pylist(), None], dtype=object)
    codes = whole.indices.cast("int64").fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
    # a dictionary may contain unused values, repeated values and null
    met = np.bincount(codes, minlength=len(names)) > 0
    place = np.full(len(names), -1)
    place[met], values = pd.factorize(names[met])
    return Key(place[codes], values)


def _texts(series: nw.Series[Any]) -> Any:
    """Return a column of texts as an Arrow array, None for other columns.

    Arrow texts need not be converted to Python objects. Returns None for pandas columns and if
    pyarrow is not installed.
    """
    native = series.to_native()
    texts = series.dtype in (nw.String, nw.Categorical, nw.Enum)
    if not texts or isinstance(native, pd.Series) or not len(series):
        return None
    try:
        import pyarrow as pa
    except ImportError:
        return None
    return native if isinstance(native, pa.ChunkedArray) else pa.chunked_array([series.to_arrow()])


def distinct_codes(numbers: IntArray, span: int) -> tuple[IntArray, IntArray]:
    """Return the sorted distinct numbers of an array, and each entry's position.

    The numbers are integers from 0 to `span` - 1. If `span` is not large, a lookup table of that
    length avoids sorting.
    """
    if span > max(1_000_000, 4 * len(numbers)):
        return np.unique(numbers, return_inverse=True)
    met = np.zeros(span, dtype=np.bool_)
    met[numbers] = True
    return np.flatnonzero(met), np.cumsum(met)[numbers] - 1


def numbers(values: pd.DataFrame | pd.Series[Any]) -> FloatArray:
    """Return numeric columns as floats, null and NaN both as NaN."""
    if isinstance(values, pd.DataFrame):
        return np.column_stack([numbers(values.iloc[:, k]) for k in range(values.shape[1])])
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def outcome_signs(
    keys: Mapping[str, Key], outcome: str | None, size: int, ties: Ties
) -> tuple[Signs, Signs]:
    """Return for each group of rows whether it was answered, and the sign."""
    if outcome is None:
        return np.ones(size, dtype=np.int8), np.ones(size, dtype=np.int8)
    # a missing answer, code -1, reads the NaN appended at the end
    codes = keys[outcome].codes
    values = np.append(keys[outcome].values.astype(np.float64), np.nan)
    answers = values[pd.unique(codes)]
    if not (np.isnan(answers) | np.isin(answers, (-1.0, 0.0, 1.0))).all():
        raise ValueError(
            f"column {outcome!r} must hold 1 (first item preferred), 0 (tie), -1 (second item "
            f"preferred) or missing values. Recode all other values."
        )
    if not ties and (answers == 0).any():
        raise ValueError(
            f"column {outcome!r} contains 0 (a tie), but ties=False declares that there are no "
            f"ties. Use ties=True if the questionnaire allows ties. If 0 means that the second "
            f"item was preferred, recode the column as 2 * x - 1."
        )
    signs = np.where(np.isin(values, (-1.0, 1.0)), values, 0.0).astype(np.int8)
    return (~np.isnan(values)).astype(np.int8)[codes], signs[codes]
