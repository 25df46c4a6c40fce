"""The command line of the report."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from privrank.reporting.contents import chapter_html, index, overview, save_table
from privrank.reporting.examples import examples_html
from privrank.reporting.spending import CHAPTERS, TOP, investigate, stop, write
from privrank.results.guarantee import format_pvalue

__all__ = ["main"]


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive, finite number, not {text!r}")
    return value


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m privrank.reporting",
        description="Analyse the example surveys under differential privacy; write tables, "
        "figures and one HTML page. Noise is always secure. Releases are archived in the output "
        "folder and used again, so that a second run spends nothing.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="output folder (default: report)",
    )
    parser.add_argument(
        "--epsilon",
        type=_positive,
        default=1.0,
        help="epsilon of each survey's main fit, per respondent; half and twice as "
        "much are spent besides, to show what epsilon buys (default: 1)",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="draw new releases and spend again, although the archive has some; "
        "the ledger keeps what was spent before",
    )
    examples = parser.add_mutually_exclusive_group()
    examples.add_argument(
        "--vignettes",
        type=Path,
        metavar="DIR",
        help="worked examples to include (default: those of the checkout that "
        "the package runs from, if it does)",
    )
    examples.add_argument("--no-vignettes", action="store_true", help="leave them out")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the report, given command line arguments other than those of the process."""
    arguments = _arguments(argv)
    out: Path = arguments.out
    folder = arguments.vignettes or Path(__file__).resolve().parents[2] / "vignettes"
    try:
        findings = [
            investigate(chapter, out / "releases", arguments.epsilon, arguments.fresh)
            for chapter in CHAPTERS
        ]
        print("Writing tables and figures ...")
        summary = save_table(overview(findings), out, "overview")
        chapters = "".join(chapter_html(found, out) for found in findings)
        examples, failures = examples_html(None if arguments.no_vignettes else folder, out)
        write(out / "index.html", index(findings, summary, chapters, examples))
    except OSError as error:
        stop(f"cannot write to {str(out)!r}: {str(error.strerror or error).removesuffix('.')}.")
    for found in findings:
        print(f"\n{found.survey.name.capitalize()}\n\n{found.main.summary()}")
        print(
            f"\nTop {TOP}: {', '.join(found.top.selected)} (separation "
            f"{format_pvalue(found.top.pvalue)}); epsilon spent in all: {found.budget.spent[0]:g}"
        )
    print(
        f"\nReport: {out / 'index.html'}\nTables, figures, releases: {out / 'tables'}, "
        f"{out / 'figures'}, {out / 'releases'}"
    )
    if failures:
        raise SystemExit("\n".join(f"Worked example not built: {line}" for line in failures))


if __name__ == "__main__":
    main()
