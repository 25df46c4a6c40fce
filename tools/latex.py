"""Compile the LaTeX of every kind of table, and fail if a table exceeds the page: `make tables`.

Each table is set in a 10 pt article with lines of 345 points and pages of 550 points. Needs
pdflatex with adjustbox and booktabs (on Debian and Ubuntu texlive-latex-base,
texlive-latex-recommended and texlive-latex-extra).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import privrank as pr  # noqa: E402
from privrank.results.tables import Table  # noqa: E402

TOLERANCE = 1.0
"""Tolerance for the width of a line, in points."""

MARK = "privrank table: "

PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{adjustbox,booktabs}
\begin{document}
"""


def document(tables: dict[str, Table]) -> str:
    """Return an article with the tables; the log contains the name of each."""
    body = "\n".join(
        f"\\typeout{{{MARK}{name}}}\n{table.as_latex()}\n\\clearpage"
        for name, table in tables.items()
    )
    return f"{PREAMBLE}{body}\n\\end{{document}}\n"


def too_wide(log: str) -> list[tuple[str, float]]:
    """Return the tables of a log with a line that is too wide, and the excess in points."""
    found, name = [], "before the first table"
    for line in log.splitlines():
        if line.startswith(MARK):
            name = line.removeprefix(MARK)
        over = re.match(r"Overfull \\hbox \(([\d.]+)pt too wide\)", line)
        if over and float(over[1]) > TOLERANCE:
            found.append((name, float(over[1])))
    return found


def too_high(log: str) -> list[str]:
    """Return the tables of a log that are longer than a page."""
    found, name = [], "before the first table"
    for line in log.splitlines():
        if line.startswith(MARK):
            name = line.removeprefix(MARK)
        if "Float too large for page" in line:
            found.append(name)
    return found


def errors(log: str) -> list[str]:
    """Return the errors of a log."""
    return [line for line in log.splitlines() if line.startswith("!")]


def compiled(text: str, folder: Path) -> str:
    """Return the log of pdflatex on a document."""
    (folder / "tables.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "tables.tex"]
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return (folder / "tables.log").read_text(encoding="utf-8", errors="replace")


def fits() -> Iterator[tuple[str, object]]:
    """Fit one of each kind of result to the example surveys, with seeded noise."""
    rng = np.random.default_rng(1)
    cems = pr.datasets.load_university()
    people = {"items": cems.items, "respondent": "respondent", "max_rows": 15, "ties": True}
    public = {**people, "design": "public"}
    rows = {"items": cems.items, "respondent": None, "ties": True}
    yield "worths", pr.PrivateBTL(cems.comparisons, **public).fit(1.0, rng=rng)
    yield "worths, not private", pr.PrivateBTL(cems.comparisons, **public).fit(np.inf, penalty=0)
    yield (
        "worths, objective",
        pr.PrivateBTL(cems.comparisons, **rows).fit(1.0, method="objective", rng=rng),
    )
    joined = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    yield (
        "worths by group",
        pr.PrivateBTL.from_formula(
            "item1 + item2 + outcome ~ french + gender", joined, **public
        ).fit(1.0, rng=rng),
    )
    yield "worths, private design", pr.PrivateBTL(cems.comparisons, **people).fit(1.0, rng=rng)
    seeded = (pr.PrivateBTL(cems.comparisons, **public).fit(e, rng=rng) for e in (0.5, 1.0))
    yield "pooled", pr.pool(list(seeded), survey="same")
    yield "top k", pr.PrivateTopK(cems.comparisons, 2, **public).fit(0.5, rng=rng)
    yield (
        "top k of rows",
        pr.PrivateTopK(cems.comparisons, 2, **rows).fit(1.0, 1e-6, noise="gaussian", rng=rng),
    )
    places = [f"A place of study with the number {number}" for number in range(60)]
    orders = np.array(places)[rng.random((400, 60)).argsort(axis=1)[:, :4]]
    wide = pd.DataFrame(orders, columns=["a", "b", "c", "d"])
    met = [wide[[a, b]].set_axis(["item1", "item2"], axis=1) for a, b in ("ab", "bc", "cd")]
    yield (
        "many items",
        pr.PrivateTopK(
            pd.concat(met).assign(outcome=1), 3, items=places, respondent=None, design="public"
        ).fit(2.0, rng=rng),
    )
    ranks = cems.rankings()
    consensus = pr.PrivateRankAggregation(ranks, respondent="respondent")
    yield "consensus", consensus.fit(1.0, rng=rng)
    yield "consensus by pairs", consensus.fit(1.0, releases="pairs", score_share=0.1, rng=rng)
    yield "consensus, order alone", consensus.fit(1.0, method="exponential", rng=rng)
    uniform = pr.UniformityTest(ranks, respondent="respondent")
    yield "uniformity", uniform.fit(0.5, draws=199, rng=rng)
    shares = pr.IdentityTest.from_counts([30, 20, 50], [0.3, 0.3, 0.4], list("abc"))
    yield "identity", shares.fit(1.0, draws=199, effect_epsilon=0.5, rng=rng)
    groups = pr.ClosenessTest.from_formula(
        f"{' + '.join(cems.items)} ~ gender", ranks.join(cems.students), respondent="respondent"
    )
    yield (
        "closeness",
        groups.fit(1.0, permutations=99, effect_epsilon=1.0, details_epsilon=1.0, rng=rng),
    )
    protocol = pr.local.SubRanking(["tea", "coffee", "milk", "water"], epsilon=2.0)
    opinions = pr.Mallows(protocol.items, phi=0.7).rvs(2000, rng)
    tally = protocol.tally(protocol.simulate(opinions, rng))
    yield "local consensus", pr.PrivateRankAggregation.from_reports(tally)


LABELS = {
    "London": "London School of Economics and Political Science",
    "StGallen": "Universität St. Gallen",
}


def tables() -> dict[str, Table]:
    """Return every kind of table the package prints, by name."""
    made = dict(fits())
    found: dict[str, Table] = {}
    for name, result in made.items():
        found[name] = result.summary()  # type: ignore[attr-defined]
        if isinstance(result, pr.results.base.Result):
            found[f"{name}, details"] = result.summary(details=True)
    worths, by_group = made["worths"], made["worths by group"]
    pooled = [worths, made["pooled"]]
    found["pooled side by side"] = pr.summary_col(pooled)  # type: ignore[arg-type]
    four = [worths, by_group, made["top k"], made["consensus by pairs"]]
    found["side by side"] = pr.summary_col([worths, made["worths, objective"]])  # type: ignore[list-item]
    found["four side by side"] = pr.summary_col(four)  # type: ignore[arg-type]
    labelled = [result.with_labels(LABELS) for result in four]  # type: ignore[attr-defined]
    named = labelled[0].items
    found["four with labels"] = pr.summary_col(
        labelled,
        rows=[*named, *(f"french[T.poor]:{item}" for item in named)],
        names=["worths", "by knowledge of French", "win rates", "Borda"],
    )
    found["long labels"] = worths.with_labels(LABELS).summary()  # type: ignore[attr-defined]
    tests = [made[name] for name in ("uniformity", "identity", "closeness")]
    found["three tests"] = pr.summary_col(tests)  # type: ignore[arg-type]
    budget = pr.Budget(epsilon=4.0, delta=1e-6, unit="respondent")
    for by in ("PrivateBTL", "PrivateRankAggregation, a second time for the pairs"):
        budget.reserve(by, 0.5, 0.0, unit="respondent")
    found["budget"] = budget.summary()
    return found


def main() -> None:
    """Compile all tables in a separate folder, and exit with a list of tables that are too wide."""
    if shutil.which("pdflatex") is None:
        raise SystemExit(
            "tools/latex.py needs pdflatex: on Debian and Ubuntu, sudo apt install "
            "texlive-latex-base texlive-latex-recommended texlive-latex-extra."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        made = tables()
    with tempfile.TemporaryDirectory() as folder:
        log = compiled(document(made), Path(folder))
        if len(sys.argv) > 1:
            shutil.copy(Path(folder) / "tables.pdf", sys.argv[1])
    faults = [f"{name}: {over:g} pt too wide" for name, over in too_wide(log)]
    faults += [f"{name}: longer than a page" for name in too_high(log)] + errors(log)
    if missing := [name for name in made if f"{MARK}{name}" not in log]:
        faults.append(f"not compiled: {', '.join(missing)}")
    if faults:
        raise SystemExit("\n".join(faults))
    print(f"{len(made)} tables compile, and none is wider than a line or longer than a page.")


if __name__ == "__main__":
    main()
