"""Measure the time of the summary and the figure of fits of 1,000 items, by design and unit.

`python benchmarks/items.py` prints the table and writes it to docs/benchmarks-items.md (a minute);
`--quick` uses 60 items and writes nothing.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot
from run import comparisons, item_names, seconds

import privrank as pr

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-items.md"
PERSON = {"respondent": "who", "max_rows": 10}
FITS: dict[str, dict[str, Any]] = {
    "rows, public design": {"respondent": None, "design": "public"},
    "rows, private design": {"respondent": None},
    "respondents, public design": {**PERSON, "design": "public"},
    "respondents, private design": PERSON,
    "respondents, proportional pair counts": {**PERSON, "pair_counts": "proportional"},
}
RUNS = 5


def afresh(result: pr.BTLResult, work: Callable[[Any], object]) -> float:
    """Return the median time of work on a result without cached computations."""
    text = result.to_json()
    copies = [pr.from_json(text) for _ in range(RUNS + 1)]
    return seconds(lambda: work(copies.pop()), RUNS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    items, rows = (60, 10_000) if quick else (1000, 1_000_000)
    frame = comparisons(items, rows)[0].assign(who=np.arange(rows) // 10)
    lines = ["| fit | identified | summary, s | figure, s |", "| --- | --- | --- | --- |"]
    for name, options in FITS.items():
        model = pr.PrivateBTL(frame, items=item_names(items), distinct_pairs=False, **options)
        result = model.fit(1.0)
        times = [afresh(result, work) for work in (lambda r: str(r.summary()), lambda r: r.plot())]
        pyplot.close("all")
        shown = int(result.params.notna().sum())
        lines.append(f"| {name} | {shown:,} | {times[0]:.2f} | {times[1]:.2f} |")
        print(lines[-1], flush=True)
    if not quick:
        packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "pandas"))
        head = (
            f"# Benchmarks of many items\n\nCommand `make bench`, {datetime.date.today()}, "
            f"privrank {pr.__version__}, Python {platform.python_version()}, {packages}, "
            f"{os.cpu_count()} cores. Times for the summary and the figure of a fit of {items:,} "
            f"items to {rows:,} rows at epsilon 1. They are medians of {RUNS} runs in one process, "
            f"after a first run that is not counted. Each run uses a result that was just read "
            f"from its archive. The column *identified* gives the number of items that the "
            f"released comparisons connect with others. With few comparisons of each pair, the "
            f"noise of a private design leaves few items identified.\n\n"
        )
        OUT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    matplotlib.use("Agg")
    warnings.simplefilter("ignore", pr.PrivrankWarning)
    main()
