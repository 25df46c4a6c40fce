"""Count respondents part by part, locally or on workers of Dask and Spark.

No other module uses Dask or Spark. Answers stay on the workers, which the data holder trusts; only
one sum is returned.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import islice
from typing import Any

from privrank.encode import coding, frames
from privrank.encode.encoded import RespondentBlocks
from privrank.release.release import FrameChanged
from privrank.util.workers import in_threads

Total = Callable[[Callable[[Any], Any], Callable[[Any, Any], Any]], Any]
"""A callable of (function, add): applies the function to each part and adds up the results."""

_RECORD = "total binary"
"""Schema of the Spark rows that contain a sum: a single column."""

_TOGETHER = 16
"""Number of sums that one Dask task adds up."""


def count_parts(
    view: frames.Frame,
    columns: Sequence[str],
    owner: str | None,
    count: Callable[[Any], tuple[Any, Any]],
    add: Callable[..., Any],
    *,
    whole: bool = False,
) -> tuple[Any, RespondentBlocks]:
    """Return the total count of a frame, and its respondents in parts.

    `count` takes all rows of some respondents and returns their counts and the data to keep for
    them. `add` adds up any number of counts. With `whole` the entire frame is one part. The total
    is None if the frame has no rows.
    """
    clustered = None if whole else frames.computed(lambda: on_workers(view, columns, owner))
    if clustered is not None:

        def counted(piece: Any) -> tuple[int, Any]:
            total, held = count(piece)
            return _fingerprint(held), total

        met = clustered(counted, partial(_both, add))
        first, total = (0, None) if met is None else met
        return total, RespondentBlocks(made=partial(_again, clustered, count, first))
    counts = in_threads(
        lambda piece: frames.computed(lambda: count(piece)),
        filter(len, frames.whole_respondents(view, columns, owner, whole=whole)),
    )
    total = None
    held = list[Any]()
    while some := list(islice(counts, 16)):  # a table for every part would cost more
        sums, parts = zip(*some, strict=True)
        total = add(*sums) if total is None else add(total, *sums)
        held += parts
    return total, RespondentBlocks(tuple(held))


def _both(add: Callable[[Any, Any], Any], one: Any, other: Any) -> tuple[int, Any]:
    """Add two pairs (fingerprint, sum)."""
    return (one[0] + other[0]) % 2**64, add(one[1], other[1])


def _fingerprint(held: Any) -> int:
    """Return the fingerprint of a part, including all groups if it has groups."""
    if isinstance(held, tuple):
        return sum((k + 1) * int(rows.fingerprint) for k, rows in enumerate(held)) % 2**64
    return 0 if held is None else int(held.fingerprint)


def _again(
    clustered: Total,
    count: Callable[[Any], tuple[Any, Any]],
    first: int,
    function: Callable[[Any], Any],
    add: Callable[[Any, Any], Any],
) -> Any:
    """Read the parts again and add up a function of them; refuse changed rows.

    **Privacy.** The first pass established the bounds of all respondents and the public facts of
    the frame. This pass must have the same fingerprint; if it differs, none of its results is used.
    """

    def computed(piece: Any) -> tuple[int, Any]:
        held = count(piece)[1]
        return _fingerprint(held), function(held)

    try:
        met = clustered(computed, partial(_both, add))
    except Exception:  # such as rows beyond the bound, or a pair not compared in the first pass
        met = None
    if met is None or met[0] != first:
        raise FrameChanged(
            "A later pass over the frame failed or returned other rows than the first pass. "
            "Keep the frame with frame.persist() in Dask or frame.cache() in Spark, and create "
            "the model again."
        )
    return met[1]


def on_workers(view: frames.Frame, columns: Sequence[str], owner: str | None) -> Total | None:
    """Return a callable that sums a function over remote parts; None if local.

    If a column names respondents, each part contains all rows of its respondents. Each call reads
    the frame again, unless the user has persisted or cached it in the engine.

    **Privacy.** An engine decides only which worker receives a name. Names are of a type whose
    equal entries have equal hashes (:func:`privrank.encode.frames.check_respondents`). Dask's
    shuffle also brings together texts that it may have made from one name. This package decides
    which names are the same respondent.
    """
    native: Any = view.to_native()
    engine = type(native).__module__.partition(".")[0]
    if engine.startswith("dask"):
        rows = native[list(columns)]
        return partial(_on_dask, rows if owner is None else _shuffled(rows, owner), owner)
    if engine == "pyspark":
        rows = native.select(*columns)
        return partial(_on_spark, rows if owner is None else rows.repartition(owner))
    return None


_SPELLING = "privrank_spelling"
"""The column by which a Dask frame is shuffled: names in a unified spelling."""


def _shuffled(rows: Any, owner: str) -> Any:
    """Return a Dask frame with all rows of a respondent in one partition.

    The origin of the texts in a frame is unknown once the frame has been computed. Texts that Dask
    may have made from the same object, such as "1", "1.0" and "True", are therefore sent to one
    partition and refused there (:func:`_check_spelling`).
    """
    sources = {type(node).__name__ for node in rows.expr.walk()}
    if rows.dtypes[owner].kind not in "OU" or not sources & {"FromGraph", "FromDelayed"}:
        return rows.shuffle(on=owner)

    def spelled(part: Any) -> Any:
        spelling = part.copy()
        spelling[_SPELLING] = (
            part[owner]
            .str.replace(r"^(-?[0-9]+)\.0$", r"\1", regex=True)
            .str.replace(r"[ T]00:00:00(\.0+)?$", "", regex=True)
            .replace({"True": "1", "False": "0"})
        )
        return spelling

    meta = rows._meta.copy()
    meta[_SPELLING] = meta[owner]
    return rows.map_partitions(spelled, meta=meta).shuffle(on=_SPELLING)


def _check_spelling(view: Any, owner: Any) -> None:
    """Refuse texts that differ but may have been made from the same name."""
    names, spelling = coding.keys_of(view, [owner, _SPELLING], None)[0].values()
    if len(names.values) != len(spelling.values):
        raise ValueError(
            f"column {owner!r} contains names that differ only by '.0', by midnight or as True and "
            f"1 do, so Dask may have made them from one name. Each respondent must have one name. "
            f"Pass the frame as it was before persist() or to_delayed()."
        )


def _of_part(function: Callable[[Any], Any], rows: Any, owner: str | None = None) -> Any:
    """Apply a function to a part; return None if empty, or the exception raised."""
    view: Any = frames.open_frame(rows, "data")
    if not len(view):
        return None

    def computed() -> Any:
        if _SPELLING in view.columns:
            _check_spelling(view, owner)
        return function(view)

    try:
        return frames.computed(computed)
    except (TypeError, ValueError) as refusal:
        return type(refusal)(str(refusal))


def _added(add: Callable[[Any, Any], Any], sums: Iterable[Any]) -> Any:
    """Return the sum of all sums, None if there are none, or the first exception."""

    def both(one: Any, other: Any) -> Any:
        if one is None or isinstance(other, Exception):
            return other
        return one if other is None or isinstance(one, Exception) else add(one, other)

    return reduce(both, sums, None)


def _on_dask(
    frame: Any, owner: str | None, function: Callable[[Any], Any], add: Callable[[Any, Any], Any]
) -> Any:
    from dask import delayed

    work = delayed(partial(_of_part, function, owner=owner), pure=False)
    join = delayed(partial(_added, add))
    sums = list(map(work, frame.to_delayed()))
    while len(sums) > 1:
        sums = [join(sums[k : k + _TOGETHER]) for k in range(0, len(sums), _TOGETHER)]
    return _value(frames.computed(sums[0].compute))


def _on_spark(frame: Any, function: Callable[[Any], Any], add: Callable[[Any, Any], Any]) -> Any:
    def parts(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        rows = list(batches)
        yield _record(_of_part(function, pa.Table.from_batches(rows)) if rows else None)

    def whole(batches: Iterator[Any]) -> Iterator[Any]:
        sums = (pickle.loads(cell.as_py()) for batch in batches for cell in batch.column(0))
        yield _record(_added(add, sums))

    def added() -> Any:  # by one worker
        sums = frame.mapInArrow(parts, _RECORD).repartition(1).mapInArrow(whole, _RECORD)
        return pickle.loads(sums.collect()[0].total)

    return _value(frames.computed(added))


def _record(total: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"total": [pickle.dumps(total)]})


def _value(total: Any) -> Any:
    """Return a sum; raise the exception of a worker."""
    if isinstance(total, Exception):
        raise total
    return total
