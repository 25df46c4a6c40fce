"""Frames of Dask and of Spark: their workers see whole respondents, and add up what is asked.

The only use of both. Answers stay with the workers, which are inside the trust of whoever holds
them; what comes back of a part is as small as what is released.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from privrank.encode import frames

T = TypeVar("T")
Mapped = Callable[[Callable[[Any], T]], list[T]]


def on_workers(view: frames.Frame, columns: Sequence[str], owner: str) -> Mapped[Any] | None:
    """Return what maps a function over the parts of a frame where these are; None if here.

    Parts hold all rows of their respondents, whom a column names. Each call reads the frame again,
    unless its owner has told the engine to keep it.
    """
    native: Any = view.to_native()
    engine = type(native).__module__.partition(".")[0]
    if engine.startswith("dask"):
        return partial(_on_dask, native[list(columns)].shuffle(on=owner))
    if engine == "pyspark":
        return partial(_on_spark, native.select(*columns).repartition(owner))
    return None


def _on_dask(frame: Any, function: Callable[[Any], T]) -> list[T]:
    from dask import compute, delayed

    work = delayed(partial(_answer, function), pure=False)
    return _returned(lambda: compute(*map(work, frame.to_delayed())))


def _on_spark(frame: Any, function: Callable[[Any], T]) -> list[T]:
    def each(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        if rows := list(batches):
            answer = pickle.dumps(_answer(function, pa.Table.from_batches(rows)))
            yield pa.RecordBatch.from_pydict({"answer": [answer]})

    answers = frame.mapInArrow(each, "answer binary")
    return _returned(lambda: [pickle.loads(row.answer) for row in answers.collect()])


def _answer(function: Callable[[Any], T], rows: Any) -> tuple[list[T], Exception | None]:
    """Return what a function returns of the rows of a part, if there are any, or why it refuses."""
    view: Any = frames.open_frame(rows, "data")
    try:
        return [function(view)] if len(view) else [], None
    except (TypeError, ValueError) as refusal:
        return [], type(refusal)(str(refusal))


def _returned(compute: Callable[[], Sequence[tuple[list[T], Exception | None]]]) -> list[T]:
    """Return what workers return; raise what one of them refuses."""
    answers = frames.computed(compute)
    for _, refusal in answers:
        if refusal is not None:
            raise refusal
    return [value for values, _ in answers for value in values]
