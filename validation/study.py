"""Common functions of the studies: parallel replicates, and tables with their provenance.

A table has a *fingerprint*: the results of the first replicate of each of its cells. ``check.py``
computes it again, and reports tables that the present code does not reproduce.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib
import json
import os
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
from headings import headings
from scipy.stats import binom

import privrank as pr

OUT = Path(__file__).resolve().parent.parent / "docs" / "validation"
SEED = 20260101
FINGERPRINTS = OUT / "fingerprints"
# "record" finds first replicates and writes fingerprints alone; "check" compares them, and "first"
# stops after the first of a script.
MODE = os.environ.get("PRIVRANK_FINGERPRINTS", "")
_first: dict[str, list[Any]] = {}


def replicate(
    one: Callable[..., Any], replicates: int, *arguments: Any, cell: int = 0
) -> list[Any]:
    """Run `one(rng, *arguments)` with independent generators, two at a time."""
    if one.__module__ == "__main__":  # processes find a study, and what it keeps, by its name
        one = getattr(importlib.import_module(Path(sys.argv[0]).stem), one.__name__)
    seeds = np.random.SeedSequence([SEED, cell]).spawn(replicates)
    if MODE:
        found = [_quiet(one, seeds[0], arguments)] * 2
    else:
        found = joblib.Parallel(n_jobs=2, batch_size=8)(
            joblib.delayed(_quiet)(one, seed, arguments) for seed in seeds
        )
    _first[str(cell)] = spaced(numbers(found[0]))
    if MODE == "first":
        sys.exit(_first_differs(str(cell)))
    return found


def _first_differs(cell: str) -> str | None:
    """Return the difference in the first cell of a script; None if there is none."""
    records = [json.loads(path.read_text()) for path in FINGERPRINTS.glob("*.json")]
    here = [record for record in records if record["script"] == Path(sys.argv[0]).stem]
    stored = next((record for record in here if cell in record["first"]), None)
    if stored is None or _alike(stored["first"][cell], _first[cell]):
        return None
    return f"cell {cell} differs: made with {stored['versions']}, found with {versions()}"


def numbers(found: Any) -> list[Any]:
    """Return the results of a replicate as a flat list of numbers and texts."""
    if isinstance(found, dict):
        return [part for name in found for part in (str(name), *numbers(found[name]))]
    if isinstance(found, np.ndarray | list | tuple | pd.Series):
        return [
            part for entry in np.asarray(found, dtype=object).ravel() for part in numbers(entry)
        ]
    if found is None or isinstance(found, str):
        return [found]
    return [float(found)]


def spaced(values: list[Any], most: int = 40) -> list[Any]:
    """Return at most a given number of the values, evenly spaced."""
    return values[:: -(-len(values) // most) or 1]


def differences(name: str) -> tuple[int, int]:
    """Return the number of cells computed again, and the number of different ones."""
    stored = json.loads((FINGERPRINTS / f"{name}.json").read_text())["first"]
    cells = [cell for cell in _first if cell in stored]
    return len(cells), sum(not _alike(stored[cell], _first[cell]) for cell in cells)


def _alike(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        a == b
        or (
            isinstance(a, float)
            and isinstance(b, float)
            and np.isclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
        )
        for a, b in zip(one, other, strict=True)
    )


def versions() -> str:
    """Return the versions of Python and of the packages that numbers depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "pandas"))
    return f"Python {platform.python_version()}, {packages}"


def _quiet(one: Callable[..., Any], seed: np.random.SeedSequence, arguments: Sequence[Any]) -> Any:
    import threadpoolctl

    with warnings.catch_warnings(), threadpoolctl.threadpool_limits(1):
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        return one(np.random.default_rng(seed), *arguments)


def resample(rng: np.random.Generator, comparisons: pd.DataFrame) -> pd.DataFrame:
    """Resample the respondents with replacement, and renumber them."""
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
    """Return the 5% quantile of the smallest of `number` estimates."""
    each = 1.0 - 0.95 ** (1.0 / number)
    return float(binom.ppf(each, replicates, level)) / replicates


def least(found: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Return the smallest coverage of statements, shape (replicates, number), and its floor."""
    return float(found.mean(axis=0).min()), floor(found.shape[1], len(found), level)


def most(found: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Return the largest coverage of statements, shape (replicates, number), and its ceiling.

    The ceiling is the value that the largest of as many estimates exceeds with probability at most
    0.05.
    """
    replicates, number = found.shape
    ceiling = float(binom.ppf(0.95 ** (1.0 / number), replicates, level)) / replicates
    return float(found.mean(axis=0).max()), ceiling


def covers(result: pr.BTLResult, true: Any) -> np.ndarray:
    """Return which 95% intervals of a fit contain the true value."""
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


def needed(cells: Sequence[Any]) -> Sequence[Any]:
    """Return the cells that this run needs: only the first if its fingerprint alone is compared."""
    return cells[:1] if MODE == "first" else cells


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
) -> list[dict[str, Any]]:
    """Run the cells whose names contain a requested part; write the table if all were run.

    `row(cell, found)` makes a row from the results of `run(rng, cell)` in all replicates; a cell
    may use fewer. `verdict(rows)` returns the conclusion from all rows. Returns the rows.
    """
    started = time.time()
    rows: list[dict[str, Any]] = []
    done = 0
    for number, cell in enumerate(cells):
        if not any(part in str(cell) for part in asked.only):
            continue
        start = time.time()
        found = replicate(run, cell.replicates(asked.replicates), cell, cell=first + number)
        done += 1
        if not MODE:  # a fingerprint needs no row
            rows.append({**row(cell, found), "seconds": f"{time.time() - start:.0f}"})
            print(f"{cell}: {rows[-1]}", flush=True)
    if done == len(cells):
        write(name, title, command, rows, started, verdict(rows) if rows else "")
    return rows


def _record(name: str) -> None:
    """Store the results of the first replicates of a table."""
    FINGERPRINTS.mkdir(parents=True, exist_ok=True)
    record = {
        "script": Path(sys.argv[0]).stem,
        "date": str(datetime.date.today()),
        "versions": versions(),
        "first": dict(_first),
    }
    (FINGERPRINTS / f"{name}.json").write_text(json.dumps(record, indent=0) + "\n")


def write(
    name: str,
    title: str,
    command: str,
    rows: Sequence[dict[str, Any]],
    started: float,
    verdict: str = "",
    more: bool = False,
) -> None:
    """Write a table as CSV, and its provenance and verdict to a Markdown file next to it.

    `more` states that another table of the same replicates follows.
    """
    if MODE == "check":
        if (FINGERPRINTS / f"{name}.json").exists():
            print("fingerprint", name, *differences(name), flush=True)
    elif _first:
        _record(name)
    if not more:
        _first.clear()
    if MODE:
        return
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / f"{name}.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    minutes = (time.time() - started) / 60
    command = " ".join([command, *map(shlex.quote, sys.argv[1:])])
    heads = headings(name, list(rows[0]))
    lines = [
        f"# {title}",
        "",
        f"Command `{command}`, seed {SEED}, {datetime.date.today()}, {minutes:.1f} minutes, "
        f"privrank {pr.__version__}, {versions()}.",
        "",
        *((verdict, "") if verdict else ()),
        "| " + " | ".join(heads) + " |",
        "|" + " --- |" * len(heads),
        *("| " + " | ".join(str(row[name]) for name in rows[0]) + " |" for row in rows),
        "",
    ]
    (OUT / f"{name}.md").write_text("\n".join(lines))
    print("\n".join(lines))
