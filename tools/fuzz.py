"""Run the fuzz tests of each public interface in parts, with a seed for each part: `make fuzz`.

An interface is a test in tests/fuzz. A part that fails prints the reduced case of its test, and is
counted. The results of the parts are stored in build/fuzz.json, so an interrupted run can be
continued. The table docs/validation/fuzz.md is written once every interface has all its cases.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "validation")]

import study  # noqa: E402

RESULTS = ROOT / "build" / "fuzz.json"


def pytest(*arguments: str, cases: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "FUZZ": str(cases)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def surfaces() -> list[str]:
    lines = pytest("--collect-only", "tests/fuzz").stdout.splitlines()
    return [line for line in lines if "::" in line]


def tried(surface: str, seed: int, cases: int) -> dict[str, Any]:
    """Run the cases of one part; each is refused or accepted, or shows a fault."""
    start = time.time()
    run = pytest("-s", f"--hypothesis-seed={seed}", surface, cases=cases)
    if run.returncode:
        print(f"{surface}, part {seed}:\n{run.stdout[-5000:]}{run.stderr[-1000:]}", flush=True)
        return {"failed": 1, "minutes": (time.time() - start) / 60}
    counts = next(line for line in run.stdout.splitlines() if line.startswith("{"))
    return {**ast.literal_eval(counts), "failed": 0, "minutes": (time.time() - start) / 60}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="of each surface")
    parser.add_argument("--part", type=int, default=5_000, help="cases tried by one process")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="of surfaces")
    parser.add_argument("--table", action="store_true", help="write the table")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    asked, started = parser.parse_args(), time.time()
    asked.part = min(asked.part, asked.cases)
    every, parts = surfaces(), -(-asked.cases // asked.part)
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    names = {
        f"{surface} {asked.part} {seed}": (surface, seed)
        for seed in range(parts)
        for surface in every
    }
    open_parts = {
        name: part
        for name, part in names.items()
        if (name not in kept or kept[name]["failed"])
        and any(text in part[0] for text in asked.only)
    }
    RESULTS.parent.mkdir(exist_ok=True)
    with ThreadPoolExecutor(asked.workers) as pool:
        running = {pool.submit(tried, *part, asked.part): name for name, part in open_parts.items()}
        for done in as_completed(running):
            kept[running[done]] = done.result()
            RESULTS.write_text(json.dumps(kept, indent=1))
            print(f"{running[done]}: {done.result()}", flush=True)
    rows = []
    for surface in every:
        parts_of = [part for name, part in kept.items() if name.rsplit(" ", 2)[0] == surface]
        total = {
            key: sum(part.get(key, 0) for part in parts_of)
            for key in ("taken", "refused", "failed", "minutes")
        }
        rows.append({
            "surface": surface.split("::test_")[1].replace("_", " "),
            "cases": total["taken"] + total["refused"],
            "taken": total["taken"], "refused": total["refused"],
            "parts with a fault": total["failed"], "minutes": f"{total['minutes']:.0f}",
        })  # fmt: skip
    if asked.table:
        title = "Malformed inputs passed to each entry point of the package"
        study.write("fuzz", title, "python tools/fuzz.py", rows, started)
    sys.exit(any(row["parts with a fault"] for row in rows))


if __name__ == "__main__":
    main()
