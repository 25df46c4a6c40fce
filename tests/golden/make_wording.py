"""All sentences, header lines and column heads of summaries, in one file to be read and renewed.

`python tests/golden/make_wording.py` writes `wording.txt` beside this file anew. No other test pins
the words of a whole sentence: `tests/results/test_wording.py` compares this file with the package.
"""

import re
from pathlib import Path

import privrank as pr
from privrank.results import claims, testnotes

HERE = Path(__file__).parent
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def archives():
    """Yield the saved results of this version by name."""
    for path in sorted((HERE / pr.__version__).glob("*.json")):
        if path.with_suffix(".txt").exists():
            yield path.stem, pr.from_json(path.read_text(encoding="utf-8"))


def sentences():
    """Yield a heading and the texts by their keys, for each store of sentences."""
    yield "Assumptions", claims.ASSUMPTIONS
    yield "Sources of error", claims.ERRORS
    yield "Notes", claims.CLAIMS
    yield "Differences", {" ".join(map(str, key)): v for key, v in claims.STATEMENTS.items()}
    yield "Power", testnotes.BLINDNESS
    yield "Warnings", claims.WARNINGS
    yield "Limits", claims.LIMITS


def headers():
    """Yield titles, header lines and column heads of the saved results, without their numbers."""
    for name, result in archives():
        yield f"# {name}"
        for details in (False, True):
            table = result.summary(details=details)
            yield table.title
            for label, value in table.header:
                yield f"    {label} {NUMBER.sub('#', value)}"
            yield f"    | {' | '.join(table.columns[1:])}"


def wording():
    """Return the whole file."""
    lines = []
    for heading, texts in sentences():
        lines += [f"## {heading}", *(f"{key}: {text}" for key, text in texts.items()), ""]
    return "\n".join([*lines, "## Headers", *headers()]) + "\n"


if __name__ == "__main__":
    (HERE / "wording.txt").write_text(wording(), encoding="utf-8")
