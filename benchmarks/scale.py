"""Time fits of respondents as rows grow, beside the bare group-by of DuckDB on the same files.

`python benchmarks/scale.py` makes answers of 1,000 items in a temporary folder of Parquet files and
prints one row for each number of rows and engine: seconds on the clock and of processors, the peak
of the memory, and the times of the bare group-by (ten minutes with the default sizes). Every fit
runs in a process of its own. `--rows 1e6 1e7 1e8 --engines duckdb` asks for others; engines are
pandas, polars, pyarrow, duckdb, dask and spark (where a JVM is), and `--row-unit` takes each
comparison as a unit. The last lines are the exponents of time in rows, fitted by least squares.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ITEMS = 1000
ENGINES = ("pandas", "polars", "pyarrow", "duckdb", "dask", "spark")


def write(folder: Path, rows: int) -> None:
    """Write answers of a tenth as many respondents as rows, in files of at most five million."""
    import duckdb

    files = max(4, rows // 5_000_000)
    folder.mkdir()
    connection = duckdb.connect()
    connection.execute("select setseed(.5)")
    for number in range(files):
        connection.execute(
            f"""copy (
                select 'r' || lpad(floor(random() * {rows // 10})::bigint::varchar, 9, '0') as who,
                    'item' || lpad(i::varchar, 4, '0') as item1,
                    'item' || lpad(((i + 1 + j) % {ITEMS})::varchar, 4, '0') as item2,
                    case when u < .5 then 1 else -1 end as outcome
                from (select floor(random() * {ITEMS})::int as i, random() as u,
                    floor(random() * {ITEMS - 1})::int as j from range({rows // files}))
            ) to '{folder}/{number}.parquet' (format parquet)"""
        )


def opened(engine: str, folder: Path) -> object:
    """Return the files as a frame of an engine."""
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

        return dask.dataframe.read_parquet(folder)
    if engine == "spark":
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[*]").config("spark.driver.memory", "4g")
        return session.getOrCreate().read.parquet(str(folder))
    import pandas

    return pandas.read_parquet(folder)


def bare(folder: Path, unit: bool) -> None:
    """Count the distinct rows by DuckDB alone."""
    import duckdb

    by = "who, item1, item2, outcome" if unit else "item1, item2, outcome"
    source = f"select {by}, count(*) from '{folder}/*.parquet' group by all"
    duckdb.sql(f"select count(*) from ({source})").fetchall()


def fit(engine: str, folder: Path, unit: bool) -> None:
    """Fit worths with all that a default fit releases."""
    import privrank as pr

    warnings.simplefilter("ignore")
    items = [f"item{k:04d}" for k in range(ITEMS)]
    options = {"respondent": "who", "max_rows": 5, "excess": "sample"} if unit else {}
    model = pr.PrivateBTL(opened(engine, folder), items=items, **{"respondent": None, **options})
    print(f"  counted after {time.perf_counter() - START:.1f} s, {peak():.2f} GB", flush=True)
    model.fit(1.0)


def peak() -> float:
    """Return the largest memory of this process so far, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measured(engine: str, folder: Path, unit: bool) -> float:
    """Run one piece of work in a process of its own, which prints its line; return its seconds."""
    command = [sys.executable, __file__, "--run", engine, str(folder)]
    command += [] if unit else ["--row-unit"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(found, end="", flush=True)
    return float(found.split()[-2])


START = time.perf_counter()


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=float, default=[1e6, 3e6, 1e7])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["duckdb", "polars"])
    parser.add_argument("--row-unit", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    unit = not given.row_unit
    if given.run:
        engine, folder = given.run[0], Path(given.run[1])
        bare(folder, unit) if engine == "bare" else fit(engine, folder, unit)
        clock = time.perf_counter() - START
        used = f"{time.process_time():.1f} s of processors, {peak():.2f} GB"
        print(f"{folder.name} rows, {engine}: {used}; on the clock {clock:.2f} s")
        return
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in map(int, given.rows):
            write(Path(folder, f"{rows:.0e}"), rows)
            for engine in ("bare", *given.engines):
                seconds = measured(engine, Path(folder, f"{rows:.0e}"), unit)
                times.setdefault(engine, []).append(seconds)
                print(f"  {seconds / times['bare'][-1]:.1f} times the bare group-by")
    for engine, seconds_by_rows in times.items():
        if len(given.rows) > 1:
            slope = np.polyfit(np.log(given.rows), np.log(seconds_by_rows), 1)[0]
            print(f"{engine}: time grows with rows to the power of {slope:.2f}")


if __name__ == "__main__":
    main()
