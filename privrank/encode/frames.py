"""Open and read a user's frame of any engine by column names and types.

No other module uses narwhals. Only group-bys take time proportional to the data. Messages name
columns and rules, never a cell's value.
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
from pandas.api.types import infer_dtype

from privrank.encode import coding
from privrank.util.checks import UNSTATED, check_items, check_text, first_absent, undeclared
from privrank.util.workers import in_threads

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


_MAX_NUMBERED = 4096
"""Largest number of labels for which declaring them in a query saves time."""


COUNT = "count"
"""The column with the number of comparisons that a row represents."""

AS_COMPARISONS = "privrank.as_comparisons(frame, form=...)"
AS_RANKINGS = "privrank.as_rankings(frame, form=...)"
"""The calls that convert data of another form."""

LIST_OUTCOME = "list_outcome"
"""The outcome column of comparisons read from partial lists.

Which pairs a list compares is part of the answer. The mark is the name of the outcome column, which
every model needs, so operations that keep the outcome keep the mark. Renaming the column or
pivoting to another form loses the mark.
"""

ORDER_FROM = "order_from"
"""Marks a frame that does not record which item was named first: a column, or an attribute.

The mark does not depend on private data. In such a frame items are in the order of the list.
"""

DECLARED = "privrank_items"
"""Key in the ``attrs`` of a converted frame with the items declared in the conversion.

A frame that has lost this key is refused, so it needs no column. The marks above must be columns,
because a frame that had lost them would be accepted.
"""


def open_frame(frame: object, name: str) -> Frame:
    """Return a view of any supported frame, eager or lazy; refuse other objects."""
    try:
        if isinstance(frame, pd.DataFrame) and not frame.columns.is_unique:
            raise DuplicateError
        view = nw.from_native(frame, pass_through=True)
        if isinstance(view, nw.DataFrame | nw.LazyFrame):
            for column in filter(lambda column: isinstance(column, str), column_names(view)):
                check_text("column", column)
            return view
    except DuplicateError:
        raise ValueError(f"{name} must have unique column names. Rename repeated ones.") from None
    raise TypeError(
        f"{name} must be a data frame (pandas, polars, pyarrow, duckdb, dask or any other that "
        f"narwhals supports), got {type(frame).__name__}."
    )


_CODED = (nw.Categorical, nw.Enum)
_EXACT = (nw.String, nw.Boolean, nw.Date, nw.Datetime, *_CODED)
"""Types for which all engines agree on equality, in addition to 64-bit numbers."""

_WIDE = (nw.Int128, nw.UInt128, nw.Decimal)


def check_respondents(view: Frame, column: str) -> None:
    """Refuse respondents of a type that does not determine which names are equal.

    **Privacy.** A respondent whose name occurs in two forms, such as 1 and 1.0, would contribute
    the rows of two respondents if an engine treats the forms as different. Objects in pandas are
    compared by this process (:func:`privrank.encode.coding.key_of`). All other engines must store
    names in a type for which all engines agree on equality.
    """
    if view.implementation.is_pandas():
        return
    kind = view.collect_schema()[column]
    exact = kind in _EXACT or kind.is_numeric() and kind not in _WIDE
    if view.implementation.is_dask():
        native: Any = view.to_native()
        exact = (
            exact
            and kind not in _CODED
            and native.dtypes[column] != np.dtype(object)
            and _typed_at_source(native, column)
        )
    if not exact:
        raise TypeError(
            f"Column {column!r} must hold names of a type that all engines compare in the same "
            f"way: texts, whole numbers, truth values or dates. Cast the column to text where it "
            f"is read, with astype(str) before Dask takes a pandas frame or with CAST in a query."
        )


def _typed_at_source(frame: Any, column: str) -> bool:
    """Return whether Dask made no texts from objects of mixed types for a column.

    Dask converts the objects of a pandas frame to texts. It makes two texts from 1 and 1.0, which
    are one name. The expression of the single column leads to its source, even if the column has
    another name there.
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
            for taken in [node.frame.get(name) for name in names] or [node.frame.index.to_series()]:
                # all entries have one type, whatever the dtype of the column
                kind = infer_dtype(taken, skipna=True) if taken.dtype == object else "string"
                if kind not in ("string", "integer", "boolean", "empty"):
                    return False
    return True


def column_names(view: Frame) -> list[str]:
    """Return the column names."""
    if isinstance(view, nw.DataFrame):
        return list(view.columns)  # without the types of the columns
    return list(computed(view.collect_schema).names())


def computed(compute: Callable[[], Any]) -> Any:
    """Return the result of a frame's engine; raise a safe error if it failed.

    The error of an engine, or of a library, may quote the cell at which it failed. The safe error
    is raised after the except block, so no traceback can show the original error as its context.
    Errors raised by this package are passed on.
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
        f"is not shown). Compute the frame beforehand to see the error, and pass the result."
    )


def _is_refusal(error: BaseException) -> bool:
    """Return whether this package raised an error, so it quotes no cell."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not str(last.tb_frame.f_globals.get("__name__")).startswith("privrank."):
        return False
    # a NumPy function called by this package has no frame of its own, and its line is not `raise`
    return opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def evaluate(
    view: Frame, columns: Sequence[str], *, whole: bool = False
) -> Iterator[nw.DataFrame[Any]]:
    """Yield columns of a frame from one evaluation, in one piece if `whole`.

    This is the only function that evaluates a user's frame. All columns of a row are read together,
    because a lazy query may return other rows each time it is evaluated.
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
    """Return the columns whose declared type is numeric or unknown.

    A column of an eager frame without any value is treated as numeric, because its engine guessed
    the type and a single answer would change it. A lazy frame is not evaluated for this.
    """
    schema = computed(view.collect_schema)
    others = [name for name in columns if not schema[name].is_numeric()]
    if isinstance(view, nw.LazyFrame):
        return set(columns) - {name for name in others if schema[name] != nw.Unknown}
    return set(columns) - {n for n in others if not computed(view[n].is_null().all)}


def check_numeric(view: Frame, columns: Sequence[str]) -> str | None:
    """Return the first non-numeric column of an eager frame, None if none.

    Whether a column of a lazy frame contains any value is known only when its rows are read, so
    encoders check each part of it again.
    """
    if isinstance(view, nw.LazyFrame) or not columns:
        return None
    numeric = numeric_columns(view, columns)
    return next((name for name in columns if name not in numeric), None)


def declared_values(frame: object, column: str, *, public: bool = False) -> tuple[Any, ...] | None:
    """Return the values that a column's type declares, None if it declares none.

    A Boolean column declares False and True; for others see :func:`declared_categories`.
    """
    if open_frame(frame, "data").collect_schema()[column] == nw.Boolean:
        return False, True
    return declared_categories(frame, column, public=public)


def column_of(data: object, name: str) -> object:
    """Return a Series of any engine as a frame, None for other data."""
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

    **Privacy.** A polars ``Enum`` is a list of categories that somebody wrote, and its column
    cannot contain any other value. Other categorical types may have taken their categories from the
    values in the data (``astype("category")`` in pandas and Dask, the ENUM that DuckDB makes from
    such a column), and this cannot be detected. Their categories are used only if the respondents'
    values are `public`, because the values that occur are then not secret.
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
    """Return columns of any frame as a pandas frame; collect a lazy frame once.

    A pandas frame keeps its index and dtypes. Nulls of other frames become None or NaN.
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
    """Return columns of any frame as pandas Series; collect a lazy frame once.

    Texts of other engines stay Python objects, because converting them to a pandas type would take
    as long as reading them. `texts` gives the only valid entry of some columns. If such a column
    has a text type, the engine makes the comparison, and all other entries are returned as "".
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
    return {
        name: (
            pd.Series(list(array), dtype=object)  # nested arrays and dates become objects
            if array.ndim > 1 or array.dtype.kind in "mM"
            else pd.Series(array, dtype=array.dtype, copy=False)
        )
        for name, array in arrays.items()
    }


PARTS = 48
BATCH = 2**19
"""Number of parts into which frames of more than `BATCH` rows are divided."""


def whole_respondents(
    view: Frame, columns: Sequence[str], owner: str | None, *, whole: bool = False
) -> Iterator[nw.DataFrame[Any]]:
    """Yield a frame in parts, each with all rows of its respondents.

    Rows are read in batches; the engine of a lazy frame determines the batches. A hash of the
    respondent's name decides the part of a row. Without respondents each batch is a part, or the
    entire frame if `whole`.
    """
    batches = evaluate(view, columns, whole=whole)
    ahead = list(islice(batches, 2))
    if whole or owner is None or (len(ahead) < 2 and sum(map(len, ahead)) <= BATCH):
        yield from chain(ahead, batches)
        return
    # repeated texts are stored as category codes
    schema = ahead[0].schema if isinstance(view, nw.LazyFrame) else {}
    texts = [nw.col(n) for n in columns if n != owner and schema.get(n) == nw.String]

    def cut(batch: nw.DataFrame[Any]) -> list[nw.DataFrame[Any]]:
        part = (coding.numbers_by_row(batch.get_column(owner)) % PARTS).astype(np.int16)
        small = batch.with_columns(text.cast(nw.Categorical) for text in texts)
        rows = small[np.argsort(part, kind="stable")]
        ends = np.cumsum([0, *np.bincount(part, minlength=PARTS)])
        return [rows[start:stop] for start, stop in pairwise(ends.tolist())]

    parts = list(zip(*in_threads(cut, chain(ahead, batches)), strict=True))
    # small parts are combined, because each part needs a table of all pairs
    rows = sum(len(piece) for part in parts for piece in part)
    together = max(1, PARTS * BATCH // max(2 * rows, 1))
    while parts:
        yield nw.concat(chain(*parts[-together:]))
        del parts[-together:]


def _pieces(view: nw.LazyFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
    """Yield a lazy frame in the batches of its engine."""
    native = view.to_native()
    # DuckDB renamed the method that reads batches
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
    """Return a DuckDB frame with texts as enums of labels, other texts as null.

    Grouping enums takes three quarters of the time. A frame of another engine is returned
    unchanged, and so is any frame if there are many labels or if a query cannot contain them.
    """
    written = ["'" + str(label).replace("'", "''") + "'" for label in labels]
    few = len(written) <= _MAX_NUMBERED and "".join(written).isprintable()
    if not (view.implementation.is_duckdb() and few):
        return view
    return _replaced(view, columns, lambda name: f"try_cast({name} as enum({', '.join(written)}))")


def _replaced(view: Frame, columns: Iterable[str], expression: Callable[[str], str]) -> Frame:
    """Return a DuckDB frame in which text columns are replaced by an expression."""
    schema = view.collect_schema()
    native = view.to_native()
    quoted = ['"' + n.replace('"', '""') + '"' for n in columns if schema[n] == nw.String]
    if not quoted:
        return view
    replaced = ", ".join(f"{expression(name)} as {name}" for name in quoted)
    frame: Frame = nw.from_native(computed(lambda: native.project(f"* replace ({replaced})")))
    return frame


def grouped(view: Frame, columns: Sequence[str]) -> Frame:
    """Return columns of a frame, with identical rows of a lazy frame grouped.

    A combination may occur in two groups, with null in one and NaN in the other, or with two
    counts.

    **Privacy.** Texts are equal only if all characters are equal, whatever the collation of the
    column. An engine that treated "a" and "A" as equal would replace one by the other, and a single
    row could decide which.
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
    """Return whether any column is, or was derived from, the outcome of lists."""
    return any(LIST_OUTCOME in str(name).casefold() for name in columns)


def is_unordered(frame: object, columns: Sequence[str]) -> bool:
    """Return whether a frame has the mark `ORDER_FROM` (column or ``attrs``)."""
    return ORDER_FROM in columns or isinstance(frame, pd.DataFrame) and ORDER_FROM in frame.attrs


def with_respondent_column(frame: object, respondent: object) -> object:
    """Turn a pandas index level named `respondent` into a column."""
    if not (isinstance(frame, pd.DataFrame) and isinstance(respondent, str)):
        return frame
    levels = [] if respondent in frame.columns else list(frame.index.names)
    if levels.count(respondent) > 1:
        raise ValueError(
            f"respondent={respondent!r} must name one index level, not several. Rename the others."
        )
    return frame.reset_index(respondent) if respondent in levels else frame


def check_stated(respondent: object) -> None:
    """Refuse a call that does not state the unit of privacy."""
    if respondent is UNSTATED:
        raise TypeError(
            "respondent= must be stated, because it defines the unit of privacy. Pass the column "
            "that identifies the respondent, or None if each comparison is a separate unit."
        )


def check_named(data: object, columns: Sequence[Any]) -> list[str]:
    """Return the columns of data; refuse a formula that names other columns."""
    present = column_names(open_frame(data, "data"))
    if (absent := first_absent(columns, present)) is not None:
        raise ValueError(f"data has no column {absent!r}. Correct the name in the formula.")
    return present


def declared_items(
    frame: object, columns: Sequence[Any], items: object, *, public: bool = False
) -> tuple[Any, ...]:
    """Return the items from `items`, a conversion, or the types of the columns.

    If it is `public` who compared what, the categories of the columns are used.

    **Privacy.** A conversion passes on the items declared in its own call, not the items in the
    data, and a frame that has lost them is refused.
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
            f"{name} must have at least one row that counts. Check the file that was read and any "
            f"filters applied since."
        )
