"""The worked examples: built where the source repository and its tools are at hand."""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from importlib.util import find_spec
from pathlib import Path

__all__ = ["examples_html", "heading"]

DOCS_TOOLS = ("jupytext", "nbclient", "nbconvert", "ipykernel", "latex2mathml")


def examples_html(folder: Path | None, out: Path) -> tuple[str, list[str]]:
    """Build the vignettes where that is possible.

    Returns links to them or a reason, and a line for each that could not be built.
    """
    builder = None if folder is None else folder.resolve().parent / "tools" / "vignettes.py"
    if folder is None or builder is None:
        return "<p>Left out of this report.</p>", []
    if not builder.is_file():
        return (
            "<p>The worked examples are part of the source repository: <code>make report</code> "
            "there adds them here.</p>"
        ), []
    lacking = [name for name in DOCS_TOOLS if find_spec(name) is None]
    if lacking:
        print('Worked examples: left out; for them, pip install ".[docs]" in the checkout')
        return (
            '<p>Left out; for them, <code>pip install ".[docs]"</code> in the checkout and run '
            "the report again.</p>"
        ), []
    pages = {path: out / "vignettes" / f"{path.stem}.html" for path in sorted(folder.glob("*.py"))}
    failures = _build(builder, pages)
    links = "".join(
        f'<li><a href="vignettes/{html.name}">{escape(heading(script))}</a></li>'
        for script, html in pages.items()
        if script not in failures
    )
    return (
        "<p>Each is a script that runs from top to bottom. Their noise is seeded, so that the "
        "pages can be reproduced, and they show the non-private fit beside the private one, which "
        "is possible because both surveys are published. They have nothing to do with the releases "
        f"and ledgers of this report.</p><ul>{links}</ul>"
        + "".join(f"<p>{escape(script.name)} could not be built here.</p>" for script in failures)
    ), list(failures.values())


def _build(builder: Path, pages: dict[Path, Path]) -> dict[Path, str]:
    """Build the pages that are older than what they are made from; say why some are missing."""
    newest = max(p.stat().st_mtime for p in (builder, *Path(__file__).parents[1].rglob("*.py")))
    stale = [
        script
        for script, html in pages.items()
        if not html.exists() or html.stat().st_mtime < max(newest, script.stat().st_mtime)
    ]
    if not stale:
        return {}
    print(f"Worked examples: running {', '.join(script.stem for script in stale)} ...")
    for script in stale:
        pages[script].unlink(missing_ok=True)
    command = [sys.executable, builder, *stale, "--out", pages[stale[0]].parent]
    run = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    said = run.stderr.strip().splitlines() or ["the builder stopped"]
    return {
        script: next(
            (line for line in said if line.startswith(f"{script}: ")), f"{script}: {said[-1]}"
        )
        for script in stale
        if not pages[script].exists()
    }


def heading(script: Path) -> str:
    """Return the first heading of a py:percent script, or its name if it has none."""
    found = re.search(r"^# # (.+)$", script.read_text(encoding="utf-8"), flags=re.M)
    return found[1] if found else script.stem
