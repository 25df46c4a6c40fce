"""Make the table and the figure of the University survey for the README and the start page.

    python tools/figures.py

Writes docs/figures/worths.txt and docs/figures/worths.png, and puts the table into the README.
The noise is seeded, so the table is reproducible.
"""

import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"

sys.path.insert(0, str(ROOT))  # the checkout of this file, installed or not
import privrank as pr  # noqa: E402

BLOCK = re.compile(r"(?<=^```text\n).*?(?=^```$)", flags=re.S | re.M)


def fitted():
    """The worths of six universities at epsilon 1, noise included."""
    cems = pr.datasets.load_university()
    model = pr.PrivateBTL(
        cems.comparisons,
        items=cems.items,
        respondent="respondent",
        max_rows=15,
        ties=True,
        design="public",
    )
    return model.fit(epsilon=1.0, rng=np.random.default_rng(1998))


def main():
    result = fitted()
    FIGURES.mkdir(exist_ok=True)
    table = "".join(f"{line.rstrip()}\n" for line in str(result.summary()).splitlines())
    (FIGURES / "worths.txt").write_text(table, encoding="utf-8")
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    result.plot(ax=figure.add_subplot())
    figure.savefig(FIGURES / "worths.png", dpi=110, metadata={"Software": None})
    readme = ROOT / "README.md"
    text = BLOCK.sub(lambda _: table, readme.read_text(encoding="utf-8"), count=1)
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
