"""What every study shares: replicates in parallel, and tables with their provenance."""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib
import platform
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from scipy.stats import binom

import privrank as pr

OUT = Path(__file__).resolve().parent.parent / "docs" / "validation"
SEED = 20260101


def replicate(
    one: Callable[..., Any], replicates: int, *arguments: Any, cell: int = 0
) -> list[Any]:
    """Run `one(rng, *arguments)` with independent generators, two at a time."""
    if one.__module__ == "__main__":  # processes find a study, and what it keeps, by its name
        one = getattr(importlib.import_module(Path(sys.argv[0]).stem), one.__name__)
    seeds = np.random.SeedSequence([SEED, cell]).spawn(replicates)
    return joblib.Parallel(n_jobs=2, batch_size=8)(
        joblib.delayed(_quiet)(one, seed, arguments) for seed in seeds
    )


def _quiet(one: Callable[..., Any], seed: np.random.SeedSequence, arguments: Sequence[Any]) -> Any:
    import threadpoolctl

    with warnings.catch_warnings(), threadpoolctl.threadpool_limits(1):
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        return one(np.random.default_rng(seed), *arguments)


def resample(rng: np.random.Generator, comparisons: pd.DataFrame) -> pd.DataFrame:
    """Draw as many respondents as there are, with replacement, and number them anew."""
    people = comparisons["respondent"].to_numpy()
    rows = len(people) // people.max()
    drawn = rng.integers(0, people.max(), people.max())
    taken = (drawn[:, None] * rows + np.arange(rows)).ravel()
    sample = comparisons.iloc[taken].copy()
    sample["respondent"] = np.repeat(np.arange(len(drawn)), rows)
    return sample


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over replicates and its standard error."""
    sample = np.asarray(values, dtype=float)
    return float(sample.mean()), float(sample.std(ddof=1) / np.sqrt(len(sample)))


def floor(number: int, replicates: int, level: float) -> float:
    """Return what the least of `number` estimates falls below with probability at most .05."""
    each = 1.0 - 0.95 ** (1.0 / number)
    return float(binom.ppf(each, replicates, level)) / replicates


def least(found: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Return the least coverage of statements, shape (replicates, number), and its floor."""
    return float(found.mean(axis=0).min()), floor(found.shape[1], len(found), level)


def most(found: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Return the most coverage of statements, shape (replicates, number), and its ceiling.

    That is what the most of as many estimates exceeds with probability at most .05.
    """
    replicates, number = found.shape
    ceiling = float(binom.ppf(0.95 ** (1.0 / number), replicates, level)) / replicates
    return float(found.mean(axis=0).max()), ceiling


def covers(result: pr.BTLResult, true: Any) -> np.ndarray:
    """Return which 95 % intervals of a fit hold what is true."""
    sides = result.conf_int(0.05)
    inside = (sides["lower"] <= np.asarray(true)) & (np.asarray(true) <= sides["upper"])
    return inside.to_numpy()


def arguments(description: str, replicates: int) -> int:
    """Return the number of replicates asked for on the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--replicates", type=int, default=replicates)
    return int(parser.parse_args().replicates)


def asked(description: str, replicates: int) -> argparse.Namespace:
    """Return the replicates, and the parts of names of cells, asked for on the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--replicates", type=int, default=replicates)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME")
    return parser.parse_args()


def table(
    name: str,
    title: str,
    command: str,
    cells: Sequence[Any],
    run: Callable[..., Any],
    row: Callable[..., dict[str, Any]],
    asked: argparse.Namespace,
    first: int,
    verdict: Callable[[list[dict[str, Any]]], str] = lambda rows: "",
) -> None:
    """Run the cells whose names hold any of what was asked for; write the table if all were.

    `row(cell, found)` makes a row of what `run(rng, cell)` found in all replicates, of which a cell
    may want fewer, and `verdict(rows)` says what follows from all.
    """
    started, rows = time.time(), []
    for number, cell in enumerate(cells):
        if not any(part in str(cell) for part in asked.only):
            continue
        start = time.time()
        found = replicate(run, cell.replicates(asked.replicates), cell, cell=first + number)
        rows.append({**row(cell, found), "seconds": f"{time.time() - start:.0f}"})
        print(f"{cell}: {rows[-1]}", flush=True)
    if len(rows) == len(cells):
        write(name, title, command, rows, started, verdict(rows))


def write(
    name: str,
    title: str,
    command: str,
    rows: Sequence[dict[str, Any]],
    started: float,
    verdict: str = "",
) -> None:
    """Write a table as CSV with its provenance, and a verdict, in a Markdown file beside it."""
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / f"{name}.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    packages = ", ".join(
        f"{package} {version(package)}" for package in ("numpy", "scipy", "pandas")
    )
    minutes = (time.time() - started) / 60
    command = shlex.join([*command.split(), *sys.argv[1:]])
    heads = list(rows[0])
    lines = [
        f"# {title}",
        "",
        f"Command `{command}`, seed {SEED}, {datetime.date.today()}, {minutes:.1f} minutes, "
        f"privrank {pr.__version__}, Python {platform.python_version()}, {packages}.",
        "",
        *((verdict, "") if verdict else ()),
        "| " + " | ".join(heads) + " |",
        "|" + " --- |" * len(heads),
        *("| " + " | ".join(str(row[head]) for head in heads) + " |" for row in rows),
        "",
    ]
    (OUT / f"{name}.md").write_text("\n".join(lines))
    print("\n".join(lines))
