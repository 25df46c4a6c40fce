"""Numbers that pages and docstrings quote from studies agree with the tables of the studies."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "docs" / "validation"
NUMBER = r"(?<![\w.,-])\d*\.\d+(?![\w.])"


def studied(name, **where):
    """Return the rows of a table whose cells begin like this."""
    table = pd.read_csv(STUDIES / f"{name}.csv", dtype=str, keep_default_na=False)
    for column, value in where.items():
        table = table[table[column].str.startswith(value)]
    return table


def number(name, column, **where):
    """Return the one number of a column in such a row."""
    (text,) = studied(name, **where)[column]
    return float(text)


def five_sites(tau):
    rows = studied("pooling_random", sites="300 600", spread="1.0")
    (text,) = rows["common"][rows["tau"] == tau]
    return float(text)


def assumption(statement, column="found"):
    what, fit = statement
    return number("assumptions", column, statement=what, fit=fit)


def sample_sizes():
    """Return the first size of each row, all of the last, and the range of Monte Carlo errors."""
    table = studied("planning_sizes").drop(columns="question")
    sizes = table.apply(lambda column: column.str.extract(r"^(\d+)", expand=False).astype(float))
    errors = table.apply(lambda column: column.str.extract(r"error (\d+)\)", expand=False))
    least, most = errors.stack().astype(float).agg(["min", "max"])
    return [*sizes.iloc[:2, 0], *sizes.iloc[2], least, most]


# the file, a regular expression for the numbers and the words around them, and their values
QUOTED = {
    "pooled intervals, docstring": (
        "privrank/pooling.py",
        r"coverage (\S+) if worths differ by a standard deviation of 0\.15, and (\S+) if it is",
        lambda: [five_sites("0.15"), five_sites("0.3")],
    ),
    "pooled intervals": (
        "docs/assumptions.md",
        r"over sites in (\S+) of replicates, and in (\S+) if the standard deviation",
        lambda: [five_sites("0.15"), five_sites("0.3")],
    ),
    "an estimated null, docstring": (
        "privrank/identity.py",
        r"in (\S+) of the cases for four choices and (\S+) for twelve \(epsilon 2;",
        lambda: [number("identity_null", "level, taken as exact", data=f"{m} ", epsilon="2")
                 for m in (4, 12)],
    ),
    "an estimated null": (
        "docs/assumptions.md",
        r"rejected in (\S+) of the cases for four choices and in (\S+) for twelve",
        lambda: [number("identity_null", "level, taken as exact", data=f"{m} ", epsilon="2")
                 for m in (4, 12)],
    ),
    "a null with noise": (
        "docs/assumptions.md",
        r"found in (\S+) and (\S+) \(four and twelve choices\) without noise is "
        r"found in (\S+) and (\S+) If the noise is not stated, the test rejects in (\S+) of",
        lambda: [
            *(number("identity_null", "power, null_nobs", data=f"{m} ") for m in (4, 12)),
            *(number("identity_null", "power, null_noise", data=f"{m} ") for m in (4, 12)),
            number("identity_null", "level, noise untold", data="12 "),
        ],
    ),
    "classes": (
        "docs/assumptions.md",
        r"rejects in (\S+) of the surveys at level.+?closeness of rankings.+?rejects in "
        r"(\S+)\s.+?rejection rates are then (\S+) and (\S+) with standard errors "
        r"of (\S+) and (\S+)\s",
        lambda: [
            *(assumption((what, fit)) for fit in ("as", "respondent")
              for what in ("uniformity", "closeness")),
            *(assumption((what, "respondent"), "SE") for what in ("uniformity", "closeness")),
        ],
    ),
    "camps": (
        "docs/assumptions.md",
        r"interval for the worst pair covers in (\S+) of the surveys\..+?coverage is then (\S+) .+?"
        r"standard error of (\S+)\s",
        lambda: [assumption(("worst pair", "as")), assumption(("worst pair", "rel")),
                 assumption(("worst pair", "rel"), "SE")],
    ),
    "silent reports": (
        "docs/assumptions.md",
        r"covers in (\S+) of surveys of 1,000 people",
        lambda: [assumption(("Borda", "as"))],
    ),
    "chosen pairs": (
        "docs/assumptions.md",
        r"covers in none of 100 surveys\. It covers in (\S+) if pairs are assigned",
        lambda: [assumption(("worth, chosen", "assigned"))],
    ),
    "a test that rejects too often": (
        "docs/standard-errors.md",
        r"is\s+rarely\s+preferred,\s+level\s+(\S+)\s+instead\s+of",
        lambda: [number("hypotheses", "worst", answers="half alike", respondents="50")],
    ),
    "sample sizes for power": (
        "docs/planning.md",
        r"55 to 45 \| (\d+) (?:\| \d+ ){4}\|.+? 0\.1 \| (\d+) (?:\| \d+ ){4}\|.+? by 0\.15 "
        r"\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|.+? errors of (\d+) to (\d+)",
        sample_sizes,
    ),
    "rankings as independent pairs": (
        "docs/validation/README.md",
        r"\| fits of respondents \| (\S+) on average over pairs \|",
        lambda: [studied("ranking_worths", fit="auto")["average"].astype(float).min()],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUOTED)
def test_a_number_that_is_quoted_stands_in_its_table(name):
    place, words, values = QUOTED[name]
    page = " ".join((ROOT / place).read_text(encoding="utf-8").split())
    (said,) = re.findall(words, page)
    said, found = [said] if isinstance(said, str) else [*said], values()
    assert len(said) == len(found)
    for text, value in zip(said, found, strict=True):
        text = text.rstrip(".,;")
        places = len(text.partition(".")[2])
        assert abs(float(text) - value) <= 0.5001 * 10.0**-places, (text, value)


def test_a_list_of_studies_quotes_numbers_of_their_tables():
    """Except for numbers that are computed from several cells."""
    computed = {
        0.99, 2.3, 0.48, 1.7, 1.6, 1.23, 2.7, 0.14, 0.011, 0.7, 0.987, 1.2, 0.995, 0.971, 0.003,
    }  # fmt: skip
    page = (STUDIES / "README.md").read_text(encoding="utf-8")
    quoted = 0
    for bullet in re.split(r"\n- (?=`)", page)[1:]:
        tables = [
            name for name in re.findall(r"`(\w+)`", bullet) if (STUDIES / f"{name}.csv").exists()
        ]
        cells = " ".join((STUDIES / f"{name}.csv").read_text(encoding="utf-8") for name in tables)
        values = [float(text) for text in re.findall(r"\d*\.?\d+(?:e-?\d+)?", cells)]
        for text in re.findall(NUMBER, re.sub(r"`[^`]*`", "", bullet)):
            quoted += 1
            places = len(text.partition(".")[2])
            close = any(abs(float(text) - value) <= 0.5001 * 10.0**-places for value in values)
            assert close or float(text) in computed, (tables, text)
    assert quoted > 100
