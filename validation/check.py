"""Repeat the first replicate of every cell, and report tables that the code no longer reproduces.

`make validate-check` does this for all studies with a fingerprint
(`docs/validation/fingerprints/`), in minutes instead of hours. A table is stale if a cell has a
relative difference above 1e-6; its page has a note until the study is run again. On other versions
of Python or the packages a difference is reported and does not fail.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import study

HERE = Path(__file__).resolve().parent
STALE = "**Stale**: the present code finds other numbers. Run the study again."


def stored(name: str) -> dict[str, Any]:
    """Return the fingerprint of a table."""
    return json.loads((study.FINGERPRINTS / f"{name}.json").read_text())


def mark(name: str, stale: bool) -> None:
    """Write on the page of a table whether it is stale."""
    path = study.OUT / f"{name}.md"
    page = path.read_text().replace(f"{STALE}\n\n", "")
    if stale:
        title, rest = page.split("\n", 1)
        page = f"{title}\n\n{STALE}\n{rest}"
    path.write_text(page)


def compared(script: str) -> dict[str, tuple[int, int]]:
    """Return the numbers of reproduced and of different cells for each table of a script."""
    mode = {"PRIVRANK_FINGERPRINTS": "check"}
    done = subprocess.run(
        [sys.executable, str(HERE / f"{script}.py")],
        env=os.environ | mode,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script}.py failed: {done.stderr[-2000:]}")
    lines = re.findall(r"^fingerprint (\w+) (\d+) (\d+)$", done.stdout, flags=re.M)
    return {name: (int(cells), int(differ)) for name, cells, differ in lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TABLE")
    asked = parser.parse_args()
    names = sorted(path.stem for path in study.FINGERPRINTS.glob("*.json"))
    names = [name for name in names if asked.only is None or name in asked.only]
    failed = False
    for script in dict.fromkeys(stored(name)["script"] for name in names):
        found = compared(script)
        for name in (name for name in names if stored(name)["script"] == script):
            if name not in found:  # the script omits tables of surveys that are not available
                print(f"{name}: not looked at, as PRIVRANK_SURVEYS names no folder of its survey")
                continue
            record = stored(name)
            same = record["versions"] == study.versions()
            cells, differ = found[name]
            stale = differ > 0 or cells < len(record["first"])
            words = f"{differ} differ" if stale else "as it was"
            print(f"{name}: {cells} of {len(record['first'])} cells found again, {words}")
            if stale and not same:
                print(f"    made with {record['versions']}, checked with {study.versions()}")
            if same:
                mark(name, stale)
                failed |= stale
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
