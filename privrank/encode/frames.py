"""A user's frame of any engine: opened, read by names and types of columns, counted.

The only use of narwhals. Group-bys are the only data-sized step. Messages name columns and rules,
never a cell's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dis import opname
from itertools import chain, islice, pairwise
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from pandas.api.types import infer_dtype

from privrank.encode import coding
from privrank.util.checks import UNSTATED, check_items, check_text, first_absent, undeclared
from privrank.util.workers import in_threads

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


_MAX_NUMBERED = 4096
"""More labels take longer to declare in a query than they save."""


COUNT = "count"
"""The column that says how many comparisons a row stands for."""

AS_COMPARISONS = "privrank.as_comparisons(frame, form=...)"
AS_RANKINGS = "privrank.as_rankings(frame, form=...)"
"""The calls that convert data of another form."""

LIST_OUTCOME = "list_outcome"
"""The outcome column of comparisons that were read from lists of some items.

Which pairs a list compares is part of the answer. The mark is the name of the column that a model
cannot do without, so operations that keep the outcome keep the mark. A new name, or a pivot to
another form, loses it.
"""

ORDER_FROM = "order_from"
"""The column, or one of ``attrs``, of a frame whose form does not say which item was named first.

Nothing private depends on it: items come in the order of the list then.
"""

DECLARED = "privrank_items"
"""Where the ``attrs`` of a frame that a form has made list the items that its call declared.

A frame that has lost them is refused, whereas one that had lost what is above would be taken.
"""


def open_frame(frame: object, name: str) -> Frame:
    """Return a view of any supported frame, eager or lazy; refuse all else."""
    try:
        if isinstance(frame, pd.DataFrame) and not frame.columns.is_unique:
            raise DuplicateError
        view = nw.from_native(frame, pass_through=True)
        if isinstance(view, nw.DataFrame | nw.LazyFrame):
            for column in filter(lambda column: isinstance(column, str), column_names(view)):
                check_text("column", column)
            return view
    except DuplicateError:
        raise ValueError(f"{name} must have unique column names: rename repeated ones.") from None
    raise TypeError(
        f"{name} must be a data frame (pandas, polars, pyarrow, duckdb, dask or any other that "
        f"narwhals supports), got {type(frame).__name__}."
    )


_CODED = (nw.Categorical, nw.Enum)
_EXACT = (nw.String, nw.Boolean, nw.Date, nw.Datetime, *_CODED)
"""Types whose equal entries are equal by every engine, as those of numbers of 64 bits are."""

_WIDE = (nw.Int128, nw.UInt128, nw.Decimal)


def check_respondents(view: Frame, column: str) -> None:
    """Refuse respondents whose type leaves open which of their names are equal.

    **Privacy.** A respondent whose name is there in two forms, as 1 and 1.0, would have the rows of
    two wherever an engine takes these for different. Objects of pandas are compared by this process
    (:func:`privrank.encode.coding.key_of`). All other engines have to hold names in a type whose
    equal entries are equal everywhere.
    """
    if view.implementation.is_pandas():
        return
    kind = view.collect_schema()[column]
    exact = kind in _EXACT or kind.is_numeric() and kind not in _WIDE
    if view.implementation.is_dask():
        native: Any = view.to_native()
        typed = kind not in _CODED and native.dtypes[column] != np.dtype(object)
        exact = exact and typed and _typed_at_source(native, column)
    if not exact:
        raise TypeError(
            f"Column {column!r} must hold names of a type that is compared alike everywhere: "
            f"texts, whole numbers, truth values or dates. Cast the column to text where it is "
            f"read: with astype(str) before Dask takes a pandas frame, or with CAST in a query."
        )


def _typed_at_source(frame: Any, column: str) -> bool:
    """Return whether Dask has made no texts of objects of several types for a column.

    It makes texts of the objects of a pandas frame: of 1 and 1.0, which are one name, it makes two.
    The expression of the column alone leads to where it comes from, whatever its name was there.
    """
    for node in frame[[column]].optimize(fuse=False).expr.walk():
        if (
            type(node).__name__ == "ArrowStringConversion"
            and (node.frame._meta.dtypes == "O").any()
        ):
            return False
        if type(node).__name__ == "FromPandas":
            held = list(node.columns)
            names = [column] if column in held else held
            taken = [node.frame.get(name) for name in names] or [node.frame.index.to_series()]
            if not all(map(_of_one_type, taken)):
                return False
    return True


def _of_one_type(names: pd.Series[Any]) -> bool:
    """Return whether entries are of one type, whatever holds them."""
    kind = infer_dtype(names, skipna=True) if names.dtype == np.dtype(object) else "string"
    return kind in ("string", "integer", "boolean", "empty")


def column_names(view: Frame) -> list[str]:
    """Return the column names."""
    return list(computed(view.collect_schema).names())


def computed(compute: Callable[[], Any]) -> Any:
    """Return what a frame's engine computes, or say that it failed.

    An engine's own error quotes the cell that it failed at, and so may one of a library. The
    sentence is raised after that error was dealt with, so that none of it is left in a context that
    a traceback could show. What the package itself raises is passed on.
    """
    try:
        return compute()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of polars is no Exception
        if _is_refusal(error):
            raise
        kind = type(error).__name__
    raise ValueError(
        f"the frame's columns could not be computed ({kind}, whose message may quote an answer and "
        f"is not shown): compute the frame by itself, and pass what comes out."
    )


def _is_refusal(error: BaseException) -> bool:
    """Return whether a statement of this package has raised an error, so that it quotes no cell."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not str(last.tb_frame.f_globals.get("__name__")).startswith("privrank."):
        return False
    # what a line of the package calls of NumPy's has no frame of its own, and is no `raise`
    return opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def evaluate(
    view: Frame, columns: Sequence[str], *, whole: bool = False
) -> Iterator[nw.DataFrame[Any]]:
    """Yield columns of a frame in pieces, or in one piece, from a single evaluation.

    This is the only function that evaluates a user's frame. Everything that is known of a row is
    read here at once, because a lazy query may give other rows each time it is evaluated.
    """
    view = computed(lambda: view.select(*columns))
    if isinstance(view, nw.DataFrame):
        yield view
    elif whole:
        yield computed(view.collect)
    else:
        pieces = _pieces(view)
        while (piece := computed(lambda: next(pieces, None))) is not None:
            yield piece


def numeric_columns(view: Frame, columns: Sequence[str]) -> set[str]:
    """Return the columns that hold numbers by their declared type, or have no type of their own.

    A column of an eager frame without any value counts as numeric: its engine has guessed the type,
    and a single answer would change it. A lazy frame is not evaluated for that.
    """
    schema = computed(view.collect_schema)
    others = [name for name in columns if not schema[name].is_numeric()]
    if isinstance(view, nw.LazyFrame):
        return set(columns) - {name for name in others if schema[name] != nw.Unknown}
    return set(columns) - {n for n in others if not computed(view[n].is_null().all)}


def check_numeric(view: Frame, columns: Sequence[str]) -> str | None:
    """Return the first column of an eager frame that holds no numbers, None if there is none.

    Whether a lazy frame's column holds any value is only known when its rows are read. So encoders
    ask again for each part of it.
    """
    if isinstance(view, nw.LazyFrame):
        return None
    numeric = numeric_columns(view, columns)
    return next((name for name in columns if name not in numeric), None)


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
        return (
            tuple(dtype.categories) if public and isinstance(dtype, pd.CategoricalDtype) else None
        )
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
    frame = next(evaluate(view, columns, whole=True))
    table: pd.DataFrame = computed(
        lambda: pd.DataFrame({name: frame.get_column(name).to_numpy() for name in columns})
    )
    return table


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
    if compared:
        view = view.with_columns(
            (nw.col(n) == texts[n]).fill_null(False).alias(n) for n in compared
        )
    frame = next(evaluate(view, columns, whole=True))
    arrays = {name: frame.get_column(name).to_numpy() for name in columns}
    for name in compared:
        arrays[name] = np.where(arrays[name], np.array(texts[name], dtype=object), "")
    return {name: _series(array) for name, array in arrays.items()}


def _series(array: NDArray[Any]) -> pd.Series[Any]:
    """Return an array as a Series; entries that are arrays, and dates of any unit, are objects."""
    if array.ndim > 1 or array.dtype.kind in "mM":
        return pd.Series(list(array), dtype=object)
    return pd.Series(array, dtype=array.dtype, copy=False)


PARTS = 48
BATCH = 2**19
"""The parts that frames of more rows than a batch are cut into."""


def whole_respondents(
    view: Frame, columns: Sequence[str], owner: str | None, *, whole: bool = False
) -> Iterator[nw.DataFrame[Any]]:
    """Yield a frame in parts: all rows of a respondent are in one of them.

    Rows come in batches, from a lazy frame as its engine makes them. A hash of a respondent's name
    says in which part a row is; without respondents a batch is one, or the `whole` frame is.
    """
    batches = evaluate(view, columns, whole=whole)
    ahead = list(islice(batches, 2))
    if whole or owner is None or (len(ahead) < 2 and sum(map(len, ahead)) <= BATCH):
        yield from chain(ahead, batches)
        return
    # texts that many rows have in common are a number in each
    lazy = isinstance(view, nw.LazyFrame)
    schema = ahead[0].schema
    texts = [nw.col(n) for n in columns if lazy and n != owner and schema[n] == nw.String]

    def cut(batch: nw.DataFrame[Any]) -> list[nw.DataFrame[Any]]:
        part = (coding.numbers_by_row(batch.get_column(owner)) % PARTS).astype(np.int16)
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


def _pieces(view: nw.LazyFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
    """Yield a lazy frame in pieces, as its engine makes them."""
    native = view.to_native()
    # DuckDB has renamed the reader of its batches
    reader = getattr(native, "to_arrow_reader", getattr(native, "fetch_record_batch", None))
    if hasattr(native, "collect_batches"):
        yield from map(nw.from_native, native.collect_batches(chunk_size=BATCH))
    elif reader is not None:
        import pyarrow as pa

        for batch in reader(BATCH):
            yield nw.from_native(pa.Table.from_batches([batch]))
    else:
        yield view.collect()


def numbered(view: Frame, columns: Iterable[str], labels: Sequence[Any]) -> Frame:
    """Return a frame in which DuckDB has texts as their numbers among labels, others as null.

    It groups these in three quarters of the time. A frame of another engine stays as it is, and so
    does one of labels that are many, or hold what a query cannot.
    """
    written = ["'" + str(label).replace("'", "''") + "'" for label in labels]
    few = len(written) <= _MAX_NUMBERED and "".join(written).isprintable()
    if not (view.implementation.is_duckdb() and few):
        return view
    kind = f"enum({', '.join(written)})"
    return _replaced(view, columns, lambda name: f"try_cast({name} as {kind})")


def _replaced(view: Frame, columns: Iterable[str], expression: Callable[[str], str]) -> Frame:
    """Return a frame of DuckDB whose texts in some columns are replaced by an expression."""
    schema = view.collect_schema()
    native = view.to_native()
    quoted = ['"' + n.replace('"', '""') + '"' for n in columns if schema[n] == nw.String]
    if not quoted:
        return view
    replaced = ", ".join(f"{expression(name)} as {name}" for name in quoted)
    frame: Frame = nw.from_native(computed(lambda: native.project(f"* replace ({replaced})")))
    return frame


def grouped(view: Frame, columns: Sequence[str]) -> Frame:
    """Return columns of a frame; rows of a lazy one that are alike leave its engine as a group.

    A combination may be there twice, with null here and NaN there, or with two counts.

    **Privacy.** Texts are equal if all their characters are, whatever the collation of the column.
    An engine that took "a" and "A" for equal would put one of them in place of the other, and a
    single row could decide which.
    """
    rows: Frame = computed(lambda: view.select(*columns))
    if not isinstance(rows, nw.LazyFrame):
        return rows
    if rows.implementation.is_duckdb():
        rows = _replaced(rows, columns, lambda name: f"{name} collate c")
    elif rows.implementation.is_pyspark():
        texts = [nw.col(n) for n, kind in rows.collect_schema().items() if kind == nw.String]
        rows = rows.with_columns(text.cast(nw.Binary).cast(nw.String) for text in texts)
    return rows.group_by(*columns).agg(nw.len().alias(coding.ROWS))


def has_lists(columns: Iterable[object]) -> bool:
    """Return whether one of some columns is, or was made of, the outcome of lists."""
    return any(LIST_OUTCOME in str(name).casefold() for name in columns)


def is_unordered(frame: object, columns: Sequence[str]) -> bool:
    """Return whether a frame with these columns has the mark `ORDER_FROM`, either way."""
    return ORDER_FROM in columns or isinstance(frame, pd.DataFrame) and ORDER_FROM in frame.attrs


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


def check_named(data: object, columns: Sequence[Any]) -> list[str]:
    """Return the columns of data; refuse a formula that names others."""
    present = column_names(open_frame(data, "data"))
    absent = first_absent(columns, present)
    if absent is not None:
        raise ValueError(f"data has no column {absent!r}: the formula names columns of data.")
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
        raise undeclared("items", "items")
    return check_items(items)


def check_rows(rows: int, name: str = "frame") -> None:
    """Refuse an argument without rows, or without rows that count."""
    if not rows:
        raise ValueError(
            f"{name} must have at least one row that counts: check the file that was read, and "
            f"what was left out since."
        )
