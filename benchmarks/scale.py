"""Measure the time of fits by number of rows, respondents, items and parts.

`python benchmarks/scale.py` simulates answers in a temporary folder of Parquet files, fits worths
to them in separate processes, and writes docs/benchmarks-scale.md: wall-clock times, their ratio to
the time in which DuckDB groups the same rows, and peak memory. One size varies at a time, and the
exponent of time in this size is estimated by least squares. `--rows 1e7 1e8 --engines duckdb` sets
other sizes and engines; it varies only rows and writes nothing. `--quick` also writes nothing. With
`--runs 5` every time is the median over 5 processes.

For dask (if distributed is installed) and spark (if a JVM is installed), rows vary again, with two
workers in separate processes, to measure the memory of the driver alone.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-scale.md"
ENGINES = ("pandas", "polars", "pyarrow", "duckdb", "dask", "spark")


@dataclass(frozen=True)
class Work:
    """A task: rows of respondents about items, read by an engine, in parts."""

    rows: int = 1_000_000
    respondents: int = 100_000
    items: int = 1000
    parts: int = 48
    engine: str = "duckdb"
    unit: str = "respondent"
    apart: bool = False
    """Whether the workers of a cluster are separate processes."""
    runs: int = 1
    """Number of repeated processes; the median of their times is reported."""

    @property
    def name(self) -> str:
        """The folder of the answers."""
        return f"{self.rows}-{self.respondents}-{self.items}"


class Cost(NamedTuple):
    """The cost of a fit: elapsed seconds, and gigabytes."""

    seconds: float
    memory: float


def write(folder: Path, work: Work) -> None:
    """Write random answers, in files of at most five million rows."""
    import duckdb

    files = max(4, work.rows // 5_000_000)
    folder.mkdir()
    connection = duckdb.connect()
    connection.execute("select setseed(.5)")
    for number in range(files):
        connection.execute(
            f"""copy (
                select 'r' || lpad(floor(random() * {work.respondents})::bigint::varchar, 9, '0')
                        as who,
                    'item' || lpad(i::varchar, 5, '0') as item1,
                    'item' || lpad(((i + 1 + j) % {work.items})::varchar, 5, '0') as item2,
                    case when u < .5 then 1 else -1 end as outcome
                from (select floor(random() * {work.items})::int as i, random() as u,
                    floor(random() * {work.items - 1})::int as j
                    from range({work.rows // files}))
            ) to '{folder}/{number}.parquet' (format parquet)"""
        )


def opened(work: Work, folder: Path) -> object:
    """Return the files as a frame of an engine."""
    engine = work.engine
    if engine == "duckdb":
        import duckdb

        return duckdb.sql(f"select * from '{folder}/*.parquet'")
    if engine == "polars":
        import polars

        return polars.scan_parquet(folder / "*.parquet")
    if engine == "pyarrow":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(folder)
    if engine == "dask":
        import dask.dataframe

        if work.apart:
            from distributed import Client

            Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
        return dask.dataframe.read_parquet(folder)
    if engine == "spark":
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        workers = "local-cluster[2,1,2048]" if work.apart else "local[*]"
        session = SparkSession.builder.master(workers).config("spark.driver.memory", "4g")
        return session.getOrCreate().read.parquet(str(folder))
    import pandas

    return pandas.read_parquet(folder)


def warm_up(work: Work) -> None:
    """Import all modules and start the engine, by a fit of a few rows."""
    with tempfile.TemporaryDirectory() as name:
        few = replace(work, rows=4000, respondents=400, items=10)
        write(Path(name) / few.name, few)
        group_by(Path(name) / few.name, few.unit)
        if work.engine != "bare":
            fit(Path(name) / few.name, few)


def group_by(folder: Path, unit: str) -> None:
    """Count the distinct rows by DuckDB alone."""
    import duckdb

    by = "item1, item2, outcome" if unit == "row" else "who, item1, item2, outcome"
    source = f"select {by}, count(*) from '{folder}/*.parquet' group by all"
    duckdb.sql(f"select count(*) from ({source})").fetchall()


def fit(folder: Path, work: Work) -> None:
    """Fit worths with all default releases; five rows per respondent are used."""
    import privrank as pr
    from privrank.encode import frames

    warnings.simplefilter("ignore")
    frames.PARTS = work.parts
    items = [f"item{k:05d}" for k in range(work.items)]
    options = {"respondent": None}
    if work.unit == "respondent":
        options = {"respondent": "who", "max_rows": 5, "excess": "sample"}
    pr.PrivateBTL(opened(work, folder), items=items, **options).fit(1.0)


def run(folder: Path, work: Work) -> None:
    """Run a fit in a separate process, and print its cost."""
    warm_up(work)
    start = time.perf_counter()
    group_by(folder, work.unit) if work.engine == "bare" else fit(folder, work)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if work.engine == "spark" and work.apart:
        memory += jvm_memory()
    print(seconds, memory / 1e6)


def jvm_memory() -> int:
    """Return the peak memory of Spark's part of the driver, in kilobytes."""
    import pyspark
    from pyspark import SparkContext

    context = SparkContext.getOrCreate()
    process = context._gateway.proc.pid
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    # the log of its workers, next to the package
    logs = Path(pyspark.__file__).parent / "work" / context.applicationId
    context.stop()
    shutil.rmtree(logs, ignore_errors=True)
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measured(folder: Path, work: Work) -> Cost:
    """Return the cost of a fit."""
    if not (answers := folder / work.name).exists():
        write(answers, work)
    command = [sys.executable, __file__, "--run", str(answers), repr(work)]
    outs = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for _ in range(work.runs)
    ]
    seconds, memory = zip(*(map(float, out.split()[-2:]) for out in outs), strict=True)
    return Cost(median(seconds), max(memory))


def table(folder: Path, works: list[Work]) -> tuple[list[str], list[Cost]]:
    """Return the rows of a table of these fits, and their costs."""
    head = "| engine | unit | rows | respondents | items | parts | s | ratio | GB |"
    lines, costs, bare = [head, "| --- " * 9 + "|"], [], {}
    print(*lines, sep="\n", flush=True)
    for work in works:
        key = work.name, work.unit
        if key not in bare:
            bare[key] = measured(folder, replace(work, engine="bare"))
        cost = measured(folder, work)
        costs.append(cost)
        lines.append(
            f"| {work.engine} | {work.unit} | {work.rows:,} | {work.respondents:,} | "
            f"{work.items:,} | {work.parts} | {cost.seconds:.1f} | "
            f"{cost.seconds / bare[key].seconds:.1f} | {cost.memory:.2f} |"
        )
        print(lines[-1], flush=True)
    return lines, costs


def exponent(sizes: list[int], costs: list[Cost]) -> float:
    """Return the exponent of time in a size."""
    seconds = [cost.seconds for cost in costs]
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(base: Work) -> dict[str, list[Work]]:
    """Return fits of increasing size, one size at a time."""
    steps = (1, 3, 10)
    return {
        "rows": [replace(base, rows=base.rows * k, respondents=base.rows * k // 10) for k in steps],
        "respondents": [replace(base, respondents=base.respondents * k // 3) for k in steps],
        "items": [replace(base, items=k) for k in (100, 300, 1000)],
        "parts": [replace(base, parts=k) for k in (4, 16, 64, 256)],
    }


def main() -> None:
    """Print the tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=float)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["duckdb"])
    parser.add_argument("--unit", choices=["respondent", "row"], default="respondent")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run(Path(given.run[0]), eval(given.run[1]))
        return
    base = Work(unit=given.unit, runs=given.runs)
    if given.quick:
        base = replace(base, rows=30_000, respondents=3000, items=100)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.rows:
            sizes = [int(rows) for rows in given.rows]
            for engine in given.engines:
                works = [
                    replace(base, rows=rows, respondents=rows // 10, engine=engine)
                    for rows in sizes
                ]
                _, costs = table(folder, works)
                if len(sizes) > 1:
                    print(
                        f"time is proportional to rows to the power of {exponent(sizes, costs):.2f}"
                    )
            return
        text = []
        for what, works in growth(base).items():
            lines, costs = table(folder, works)
            power = exponent([getattr(work, what) for work in works], costs)
            text += [f"## More {what}", "", *lines, ""]
            text += [f"Time is proportional to {what} to the power of {power:.2f}.", ""]
        jvm = find_spec("pyspark") and shutil.which("java")
        engines = [engine for engine in ENGINES if engine != "spark" or jvm]
        works = [replace(base, engine=engine) for engine in engines]
        works += [replace(base, engine=engine, unit="row") for engine in engines]
        text += ["## Engines", "", *table(folder, works)[0], ""]
        clusters = ["dask"] if find_spec("distributed") else []
        clusters += ["spark"] if jvm else []
        few = replace(base, items=100, apart=True)
        more = replace(few, rows=10 * few.rows, respondents=10 * few.respondents)
        works = [replace(work, engine=engine) for engine in clusters for work in (few, more)]
        text += ["## Driver's memory", "", *table(folder, works)[0], ""]
    if not given.quick:
        packages = ("numpy", "pandas", "polars", "pyarrow", "duckdb")
        packages = (*packages, "dask", "distributed", "pyspark")
        packages = [f"{name} {version(name)}" for name in packages if find_spec(name)]
        head = (
            f"# Benchmarks of many rows\n\nCommand `make bench`, {datetime.date.today()}, Python "
            f"{platform.python_version()}, {', '.join(packages)}. Every fit runs in a separate "
            f"process, after a fit of 4,000 rows, to exclude import times. It opens a folder of "
            f"Parquet files, counts, spends, and releases what a default fit releases. Five rows "
            f"of each respondent are selected. The column *ratio* is relative to the time in which "
            f"DuckDB groups the same rows by respondent, items and outcome (without the respondent "
            f"if the unit is a row). Memory is the peak memory of the process, without the workers "
            f"of Spark. The section *Driver's memory* has the memory of the main process, "
            f"including the JVM of Spark, with two workers in separate processes.\n\n"
        )
        OUT.write_text(head + "\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
