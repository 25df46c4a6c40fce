"""A user's frame of any engine: opened, read by names and types of columns, counted.

The only use of narwhals. Group-bys are the only data-sized step. Messages name columns and rules,
never a cell's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from pandas.api.types import is_hashable

from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import UNSTATED, check_items, check_present, check_text, undeclared
from privrank.util.workers import in_threads

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

_ROWS = "privrank_rows"
"""The column of group sizes that an engine makes."""

_MOST_NUMBERED = 4096
"""More labels take longer to declare in a query than they save."""

LARGEST_CODE = 2**62
"""Combinations of columns are numbered by one whole number of 64 bits, below this."""

COUNT = "count"
"""The column that says how many comparisons a row stands for."""

AS_COMPARISONS = "privrank.as_comparisons(frame, form=...)"
AS_RANKINGS = "privrank.as_rankings(frame, form=...)"
"""The calls that convert data of another form."""

ORDER_FROM, PAIRS_FROM = "order_from", "pairs_from"
"""Columns of a comparisons frame that say what of it no questionnaire has fixed.

They are columns because these survive merges, exports and other engines, as ``attrs`` do not; and
``attrs`` of the same names, as these survive a choice of columns.
"""

DECLARED = "privrank_items"
"""Where the ``attrs`` of a frame that a form has made list the items that its call declared.

A frame that has lost them is refused, whereas one that had lost what is above would be taken.
"""


def open_frame(frame: object, name: str) -> Frame:
    """Return a view of any supported frame, eager or lazy; one sentence when it is not one."""
    try:
        if isinstance(frame, pd.DataFrame) and not frame.columns.is_unique:
            raise DuplicateError
        view = nw.from_native(frame, pass_through=True)
        if isinstance(view, nw.DataFrame | nw.LazyFrame):
            for column in filter(lambda column: isinstance(column, str), column_names(view)):
                check_text(f"a column name of {name}", column)
            return view
    except DuplicateError:
        raise ValueError(f"{name} must have unique column names: rename repeated ones.") from None
    raise TypeError(
        f"{name} must be a data frame (pandas, polars, pyarrow, duckdb, dask or any other that "
        f"narwhals supports), got {type(frame).__name__}."
    )


def column_names(view: Frame) -> list[str]:
    """Return the column names."""
    return list(computed(view.collect_schema).names())


def computed(compute: Callable[[], Any]) -> Any:
    """Return what a frame's engine computes, or say in one sentence that it failed.

    An engine's own error quotes the cell that it failed at. The sentence is raised after that error
    was dealt with, so that none of it is left in a context that a traceback could show.
    """
    try:
        return compute()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of polars is no Exception
        kind = type(error).__name__
    raise ValueError(
        f"the frame's columns could not be computed by its own engine ({kind}, whose message may "
        f"quote an answer and is not shown): compute the frame by itself, and pass what comes out."
    )


def _computed(view: Frame) -> nw.DataFrame[Any]:
    """Return an eager frame, a lazy one collected once."""
    return computed(view.collect) if isinstance(view, nw.LazyFrame) else view


def numeric_columns(view: Frame, columns: Sequence[str]) -> set[str]:
    """Return those of the columns that hold numbers by their declared type, or no value at all.

    The type of a column without values is made up by its engine, and a single answer changes it.
    """
    schema = computed(view.collect_schema)
    others = [name for name in columns if not schema[name].is_numeric()]
    if not others:
        return set(columns)
    row = computed(lambda: _computed(view.select(nw.col(*others).is_null().all()))).row(0)
    # a row of a pyarrow table holds scalars of its own, which once were all true
    void = map(nw.to_py_scalar, row)
    return set(columns) - {name for name, none in zip(others, void, strict=True) if not none}


def declared_values(frame: object, column: str, *, public: bool = False) -> tuple[Any, ...] | None:
    """Return what a column's type declares: False and True, or :func:`declared_categories`."""
    if open_frame(frame, "data").collect_schema()[column] == nw.Boolean:
        return False, True
    return declared_categories(frame, column, public=public)


def column_of(data: object, name: str) -> object:
    """Return a Series of pandas or of another engine as a frame with one column, else None."""
    if isinstance(data, pd.Series):
        return data.to_frame(name)
    if isinstance(data, pd.DataFrame):
        return None
    series = nw.from_native(data, pass_through=True, allow_series=True)
    return series.alias(name).to_frame().to_native() if isinstance(series, nw.Series) else None


def declared_categories(
    frame: object, column: str, *, public: bool = False
) -> tuple[Any, ...] | None:
    """Return the categories that a column declares, or None.

    **Privacy.** A polars ``Enum`` is a list that somebody wrote, and holds no other value. All else
    that lists categories may have got them from the values met (``astype("category")`` in pandas
    and Dask, the ENUM that DuckDB makes of such a column), and nothing tells. These are taken where
    it is `public` who has which value, and the values met are no secret.
    """
    if isinstance(frame, pd.DataFrame):
        dtype = frame[column].dtype
        known = public and isinstance(dtype, pd.CategoricalDtype)
        return tuple(dtype.categories) if known else None  # type: ignore[union-attr]
    view = open_frame(frame, "data")
    kind = view.collect_schema()[column]
    if isinstance(kind, nw.Enum) and (public or view.implementation.is_polars()):
        return tuple(kind.categories)
    return None


def collect(view: Frame, columns: Sequence[Any]) -> pd.DataFrame:
    """Return columns of any frame as a pandas frame, a lazy one collected once.

    A pandas frame keeps its index and dtypes. From others null comes as None or NaN.
    """
    if isinstance(view, nw.DataFrame) and isinstance(native := view.to_native(), pd.DataFrame):
        places: Any = list(map(native.columns.get_loc, columns))
        return native.take(places, axis=1)
    frame = _computed(view.select(*columns))
    return pd.DataFrame({name: frame.get_column(name).to_numpy() for name in columns})


def series_of(
    view: Frame, columns: Sequence[str], texts: Mapping[str, str]
) -> dict[str, pd.Series[Any]]:
    """Return columns of any frame as pandas Series, a lazy frame collected once.

    Texts of other engines stay Python's: to make a pandas type of them takes as long as to read.
    Entries of a column that have to be one of the `texts` are compared with it by the engine, where
    the column's type is that of texts: others come as "".
    """
    if isinstance(view, nw.DataFrame) and isinstance(native := view.to_native(), pd.DataFrame):
        return {name: native[name].reset_index(drop=True) for name in columns}
    schema = view.collect_schema()
    compared = [name for name in texts if schema[name] == nw.String]
    chosen = [
        (nw.col(name) == texts[name]).fill_null(False).alias(name) if name in compared else name
        for name in columns
    ]
    frame = _computed(view.select(*chosen))
    arrays = {name: frame.get_column(name).to_numpy() for name in columns}
    for name in compared:
        arrays[name] = np.where(arrays[name], np.array(texts[name], dtype=object), "")
    return {name: _series(array) for name, array in arrays.items()}


def _series(array: NDArray[Any]) -> pd.Series[Any]:
    """Return an array as a Series; entries that are arrays, and dates of any unit, are objects."""
    if array.ndim > 1 or array.dtype.kind in "mM":
        return pd.Series(list(array), dtype=object)
    return pd.Series(array, dtype=array.dtype, copy=False)


@dataclass(frozen=True, slots=True)
class Key:
    """One column, or one of the groups of :func:`tally`: distinct values, and each entry's code.

    A code is the position in `values`, -1 where the value is missing.
    """

    codes: NDArray[np.int64]
    values: NDArray[Any]

    def among(self, labels: Sequence[Any]) -> NDArray[np.int64]:
        """Return the place of each entry among labels, -1 where it is missing or none of them."""
        # objects are looked up as they are, without guessing a type for them
        kind = object if self.values.dtype == object else None
        place = pd.Index(labels, dtype=kind).get_indexer(pd.Index(self.values, dtype=kind))
        # a missing entry, code -1, reads the sentinel put last
        return np.append(place, -1)[self.codes].astype(np.int64, copy=False)


def rows_where(view: Frame, column: str, value: object) -> object:
    """Return the rows whose entry in a column is a value, as a frame of their engine."""
    return view.filter(nw.col(column) == value).to_native()


PARTS, BATCH = 48, 2**19
"""The parts that frames of more rows than a batch are cut into."""


def whole_respondents(
    view: Frame, columns: Sequence[str], owner: str | None, *, whole: bool = False
) -> Iterator[nw.DataFrame[Any]]:
    """Yield a frame in parts: all rows of a respondent are in one of them.

    Rows come in batches, from a lazy frame as its engine makes them. A hash of a respondent's name
    says in which part a row is; without respondents a batch is one, or the `whole` frame is.
    """
    view = computed(lambda: view.select(*columns))
    batches = iter([_computed(view)]) if whole else _batches(view)
    ahead = list(islice(batches, 2))
    if whole or owner is None or (len(ahead) < 2 and sum(map(len, ahead)) <= BATCH):
        yield from chain(ahead, batches)
        return
    # texts that many rows have in common are a number in each
    lazy, schema = isinstance(view, nw.LazyFrame), ahead[0].schema
    texts = [nw.col(n) for n in columns if lazy and n != owner and schema[n] == nw.String]

    def cut(batch: nw.DataFrame[Any]) -> list[nw.DataFrame[Any]]:
        part = (_numbers_by_row(batch.get_column(owner)) % PARTS).astype(np.int16)
        small = batch.with_columns(text.cast(nw.Categorical) for text in texts)
        rows = small[np.argsort(part, kind="stable")]
        ends = np.cumsum([0, *np.bincount(part, minlength=PARTS)])
        return [rows[start:stop] for start, stop in pairwise(ends.tolist())]

    parts = list(zip(*in_threads(cut, chain(ahead, batches)), strict=True))
    # parts of few rows go together, as each takes a table of all pairs
    rows = sum(len(piece) for part in parts for piece in part)
    together = max(1, PARTS * BATCH // max(2 * rows, 1))
    while parts:
        yield nw.concat(chain(*parts[-together:]))
        del parts[-together:]


def _batches(view: Frame) -> Iterator[nw.DataFrame[Any]]:
    """Yield a frame in pieces: an eager one is a piece, a lazy one comes as its engine makes it."""
    pieces = _pieces(view)
    while (piece := computed(lambda: next(pieces, None))) is not None:
        yield piece


def _pieces(view: Frame) -> Iterator[nw.DataFrame[Any]]:
    native = view.to_native()
    # DuckDB has renamed the reader of its batches
    reader = getattr(native, "to_arrow_reader", getattr(native, "fetch_record_batch", None))
    if isinstance(view, nw.DataFrame):
        yield view
    elif hasattr(native, "collect_batches"):
        yield from map(nw.from_native, native.collect_batches(chunk_size=BATCH))
    elif reader is not None:
        import pyarrow as pa

        for batch in reader(BATCH):
            yield nw.from_native(pa.Table.from_batches([batch]))
    else:
        yield view.collect()


def numbers_of_names(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a number for each name; the same for numbers, or for texts, of every engine.

    It is public, and two names may have the same: it says in which part a respondent is, and what a
    secret key draws of their rows, but never who a respondent is.
    """
    texts = values.dtype == object and any(isinstance(name, str) for name in values)
    names = values if texts else pd.Series(values).infer_objects().to_numpy()
    if names.dtype.kind not in "iubf":
        written = [str(name).encode(errors="surrogatepass") for name in names]
        text = np.frombuffer(b"".join(written), dtype=np.uint8)
        return _hashed(text, np.cumsum([0, *map(len, written)]))
    if names.dtype.kind == "f":
        names = names.astype(np.float64)
        whole = (np.abs(names) < 2**53) & (np.floor(names) == names)
        names = np.where(whole, np.where(whole, names, 0).astype(np.int64), names.view(np.int64))
    return _hashed(names.astype(np.int64).view(np.uint8), np.arange(len(names) + 1) * 8)


def _hashed(text: NDArray[np.uint8], ends: IntArray) -> NDArray[np.uint64]:
    from privrank.kernels.hashing import siphash

    return siphash(text, ends, np.zeros(2, dtype=np.uint64))


def _numbers_by_row(names: nw.Series[Any]) -> NDArray[np.uint64]:
    """Return the number of the name in each row."""
    if names.dtype == nw.String and (texts := _texts(names)):
        return np.concatenate([_hashed(*_bytes_of(chunk)) for chunk in texts.chunks])
    key = _key(names, numeric=False)
    return np.append(numbers_of_names(key.values), np.uint64(0))[key.codes]


def _bytes_of(texts: Any) -> tuple[NDArray[np.uint8], IntArray]:
    """Return the bytes of an array of Arrow, one text after the other, and where each ends."""
    _, ends, text = texts.cast("large_string").buffers()
    last = texts.offset + len(texts) + 1
    places = np.frombuffer(ends, dtype=np.int64)[texts.offset : last]
    return np.frombuffer(text or b"", dtype=np.uint8), places


def numbered(view: Frame, columns: Iterable[str], labels: Sequence[Any]) -> Frame:
    """Return a frame in which DuckDB has texts as their numbers among labels, others as null.

    It groups these in three quarters of the time. A frame of another engine stays as it is, and so
    does one of labels that are many, or hold what a query cannot.
    """
    written = ["'" + str(label).replace("'", "''") + "'" for label in labels]
    few = len(written) <= _MOST_NUMBERED and "".join(written).isprintable()
    if not (view.implementation.is_duckdb() and few):
        return view
    schema, kind = view.collect_schema(), f"enum({', '.join(written)})"
    names = [name.replace('"', '""') for name in columns if schema[name] == nw.String]
    cast = [f'try_cast("{name}" as {kind}) as "{name}"' for name in names]
    native, replaced = view.to_native(), f"* replace ({', '.join(cast)})"
    return nw.from_native(computed(lambda: native.project(replaced))) if cast else view


def grouped(view: Frame, columns: Sequence[str]) -> Frame:
    """Return columns of a frame; rows of a lazy one that are alike leave its engine as a group.

    A combination may be there twice, with null here and NaN there, or with two counts.
    """
    rows: Frame = computed(lambda: view.select(*columns))
    lazy = isinstance(rows, nw.LazyFrame)
    return rows.group_by(*columns).agg(nw.len().alias(_ROWS)) if lazy else rows


def tally(
    view: Frame, by: Sequence[str], numeric: str | None, counts: str | None = None
) -> tuple[dict[str, Key], IntArray]:
    """Return the combinations of the columns `by` and how often each occurs.

    Given columns that are :func:`grouped`. Null and NaN are both missing. A row counts once, or as
    often as its column `counts` says. The column `numeric` is compared as float64, whatever the
    engine calls it.
    """
    view = _computed(view)
    if _ROWS in set(view.columns) - {*by, counts}:
        size = view.get_column(_ROWS).to_numpy().astype(np.int64)
        return keys_of(view, by, numeric, counts, size)
    keys, size = keys_of(view, by, numeric, counts)
    # a combination is one number, whose digits are the codes of its columns
    combined, span = np.zeros(len(view), dtype=np.int64), 1
    for key in keys.values():
        # one more than the distinct values: missing is a value of its own
        width = len(key.values) + 1
        if span * width > LARGEST_CODE:
            # number the combinations met: both factors are at most rows + 1 < 2^31 then
            places, met = pd.factorize(combined)
            combined, span = places.astype(np.int64), len(met)
        combined = combined * width + (key.codes + 1)
        span *= width
    distinct, place = distinct_codes(combined, span)
    totals = np.bincount(place, size).astype(np.int64)
    # any row of a group has the group's values
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
    """Return the columns `by` of an eager frame, and how many rows each of its rows stands for.

    As for :func:`tally`; `size` are the rows that the engine has put together already.
    """
    if counts is not None:
        size = whole_counts(frame.get_column(counts).to_numpy(), counts, size)
    elif size is None:
        size = np.ones(len(frame), dtype=np.int64)
    return {n: _key(frame.get_column(n), numeric=n == numeric) for n in by}, size


def key_of(column: pd.Series[Any]) -> Key:
    """Return a column as codes of its distinct values; refuse entries that have no hash."""
    try:
        codes, values = pd.factorize(column)
    except (TypeError, NotImplementedError):
        if column.map(is_hashable).all():
            raise  # not for what the column holds
        raise TypeError(
            f"column {column.name!r} must hold names or numbers, not lists: make columns of them."
        ) from None
    # before version 3 pandas counts null among the values of a column of type null
    return Key(codes.astype(np.int64, copy=False), np.asarray(values)[: codes.max(initial=-1) + 1])


def whole_counts(
    values: object, column: str, rows: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return how many comparisons rows stand for, each so many times as there are such `rows`.

    Given the entries of a column. Refuses what is no count, and totals that floats cannot hold.
    """
    counts = real_numbers(pd.Series(values))
    totals = counts if rows is None else counts * rows
    if not (is_whole(counts) and is_whole(totals)):
        raise ValueError(
            f"column {column!r} must hold whole numbers of at least 0, below 2^53 in total, that "
            f"say how many comparisons a row stands for: write 0 where there are none."
        )
    return totals.astype(np.int64)


def real_numbers(values: pd.Series[Any]) -> FloatArray:
    """Return numbers of any type as floats, NaN where an entry is none.

    Where one is a whole number of Python's beyond all floats, all are infinite: no counts are.
    """
    try:
        entries = pd.to_numeric(values, errors="coerce")
    except OverflowError:
        return np.full(len(values), np.inf)
    return np.full(len(entries), np.nan) if entries.dtype.kind == "c" else numbers(entries)


def is_whole(counts: NDArray[np.float64]) -> bool:
    """Return whether all numbers are whole and not negative, with a total below 2^53.

    Floats add whole numbers exactly up to there, and never fall back below once beyond.
    """
    # NaN fails the first comparison
    bounded = bool(((counts >= 0) & (counts < 2**53)).all())
    return bounded and bool((counts % 1 == 0).all()) and bool(counts.sum() < 2**53)


def _key(series: nw.Series[Any], *, numeric: bool) -> Key:
    """Return the codes and distinct values of a column, missing as code -1."""
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
    """Return the codes and distinct values of Arrow's texts, or of numbers that stand for them."""
    import pyarrow as pa

    if not pa.types.is_dictionary(texts.type):
        plain = texts if pa.types.is_string(texts.type) else texts.cast("large_string")
        pieces = plain.dictionary_encode().chunks  # one table of values serves all of them
        indices = [piece.indices.fill_null(-1).to_numpy() for piece in pieces]
        codes = np.concatenate(indices, dtype=np.int64)
        return Key(codes, pieces[-1].dictionary.to_numpy(zero_copy_only=False))
    # in one piece, as the dictionaries of many would have to be brought together
    whole = texts.unify_dictionaries().combine_chunks()
    names = np.array([*whole.dictionary.to_pylist(), None], dtype=object)
    codes = whole.indices.cast("int64").fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
    # a dictionary may hold values that no entry has, some of them twice, and null
    met, place = np.bincount(codes, minlength=len(names)) > 0, np.full(len(names), -1)
    place[met], values = pd.factorize(names[met])
    return Key(place[codes], values)


def _texts(series: nw.Series[Any]) -> Any:
    """Return a column of texts as Arrow's, so that they never become Python's; None for others.

    Those of pandas are its own, and nothing is Arrow's where that is not installed.
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


def distinct_codes(
    numbers: NDArray[np.int64], span: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct numbers of an array, ascending, and the place of each entry among them.

    Given whole numbers from 0 to below `span`; a table of the span spares sorting where it is not
    large.
    """
    if span > max(1_000_000, 4 * len(numbers)):
        return np.unique(numbers, return_inverse=True)
    met = np.zeros(span, dtype=np.bool_)
    met[numbers] = True
    return np.flatnonzero(met), np.cumsum(met)[numbers] - 1


def marks_of(frame: object, columns: Sequence[str]) -> set[str]:
    """Return which of `ORDER_FROM` and `PAIRS_FROM` a frame with these columns has, either way."""
    attrs = frame.attrs if isinstance(frame, pd.DataFrame) else {}
    return {name for name in (ORDER_FROM, PAIRS_FROM) if name in columns or name in attrs}


def with_respondent_column(frame: object, respondent: object) -> object:
    """Turn a pandas index level named `respondent` into a column."""
    if not (isinstance(frame, pd.DataFrame) and isinstance(respondent, str)):
        return frame
    levels = [] if respondent in frame.columns else list(frame.index.names)
    if levels.count(respondent) > 1:
        raise ValueError(
            f"respondent={respondent!r} must name one index level, not several: rename the others."
        )
    return frame.reset_index(respondent) if respondent in levels else frame


def check_stated(respondent: object) -> None:
    """Refuse a unit of privacy that was left open."""
    if respondent is UNSTATED:
        raise TypeError(
            "respondent= must be stated, because it says whom epsilon protects: the column that "
            "says who answered, or None if each comparison is a unit of its own."
        )


def numbers(values: pd.DataFrame | pd.Series[Any]) -> FloatArray:
    """Return numeric columns as floats, null and NaN both as NaN."""
    if isinstance(values, pd.DataFrame):
        return np.column_stack([numbers(values.iloc[:, k]) for k in range(values.shape[1])])
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def check_named(data: object, columns: Sequence[Any]) -> list[str]:
    """Return the columns of data; refuse a formula that names others."""
    present = column_names(open_frame(data, "data"))
    check_present(columns, present, "data", "the formula names columns of data")
    return present


def declared_items(
    frame: object, columns: Sequence[Any], items: object, *, public: bool = False
) -> tuple[Any, ...]:
    """Return the items: those in `items`, else those that a form or the columns declare.

    Where it is `public` who compared what, the categories of the columns will do.

    **Privacy.** A form passes on the items of its own call, not those it met, and a frame that has
    lost them is refused.
    """
    if items is None and isinstance(frame, pd.DataFrame):
        items = frame.attrs.get(DECLARED)
    if items is None:
        declared = {declared_categories(frame, name, public=public) for name in columns}
        items = declared.pop() if len(declared) == 1 else None
    if items is None:
        raise undeclared("items", "items=[...]")
    return check_items(items)


def check_rows(rows: int, name: str = "frame", more: str = "") -> None:
    """Refuse an argument without rows; `more` is what else its rows have to be."""
    if not rows:
        raise ValueError(
            f"{name} must have at least one row{more}: check the file that was read, and what was "
            f"left out since."
        )
