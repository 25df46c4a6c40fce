"""Ledgers and budgets: broken files, odd numbers, and what is spent against a sum of our own."""

import contextlib
import os
import sqlite3
from fractions import Fraction

import numpy as np
import pandas as pd
from exploring import REFUSED, TAKEN, arguments, explore, mostly, of, settled
from hypothesis import strategies as st

import privrank as pr
from privrank.privacy import budget as ledgers

ODD = [None, True, 0, -0.0, -1, 1e-300, 5e-324, 1e300, 10**400, np.nan, np.inf, -np.inf, 1j]
ODD += ["1", "", b"1", [], {}, np.float32(0.1), np.int64(1), Fraction(1, 3), pd.NA, object(), "a\0"]
ODD += ["\ud800", "respondents", "x" * 9999, 2**63, 1.0 + 2**-52]

epsilons = mostly(of(0.1, 0.2, 0.3, 0.7, 1 / 3, 1, 1e-9), of(*ODD), 6)
deltas = mostly(of(0.0, 1e-6, 1e-9), of(*ODD), 6)
units = mostly(of("row"), of("respondent", *ODD), 9)
names = mostly(of("a fit", "é", "a 'fit'; --"), of(*ODD), 9)


def spends():
    rho = of(..., ..., None, 0.0, 0.5, *ODD)
    facts = {"by": names, "epsilon": epsilons, "delta": deltas, "unit": units}
    more = {"max_rows": mostly(st.just(...), of(2, *ODD)), "rho": rho, "released": of(..., "a", 3)}
    return arguments(**facts, **more)


def exact(value):
    return Fraction(repr(float(value)))


LINE = {"by": "a fit", "epsilon": 0.1, "delta": 0.0, "unit": "row"}
# entered once, so that the ledger no longer read as it was written, or SQLite refused it
ONCE = [
    ({"epsilon": 1.0}, [LINE | {"released": 3}]),
    ({"epsilon": 1.0}, [LINE | {"by": "\ud800"}]),
]


def test_budgets():
    totals = arguments(epsilon=epsilons, delta=mostly(of(1e-5, 0.0), of(*ODD)), unit=units)

    def spend(case):
        total, lines = case
        made = []
        if settled(lambda: made.append(pr.Budget(**total))) == REFUSED:
            return REFUSED
        (budget,) = made
        for line in lines:
            before = budget.spendings
            kinds = (ValueError, TypeError, pr.BudgetExceeded)
            how = settled(lambda line=line: budget.reserve(**line), budget, kinds)
            assert len(budget.spendings) == len(before) + (how == TAKEN)
            assert budget.spendings[: len(before)] == before
            for name in ("epsilon", "delta"):
                most = getattr(budget, name)
                spent = [getattr(entry, name) for entry in budget.spendings]
                assert np.isinf(most) or sum(map(exact, spent)) <= exact(most)
        str(budget.summary()), repr(budget), budget.left, budget.composed
        return TAKEN

    explore(st.tuples(totals, st.lists(spends(), max_size=6)), spend, ONCE)


def filled(path):
    budget = pr.Budget(path, epsilon=1.0, delta=1e-6, label="tea")
    budget.reserve("a fit", 0.25, 1e-7, unit="row", released="net wins")
    budget.reserve("a test", 0.25, 0.0, unit="row")


@st.composite
def broken(draw, size):
    """Changes of a file: bytes, its end, or what SQLite is told."""
    kind = draw(of("bytes", "bytes", "end", "table", "table", "other"))
    if kind == "bytes":
        places = mostly(st.integers(0, 400), st.integers(0, size - 1), 2)
        return kind, draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4))
    if kind == "end":
        return kind, draw(of(-size, -1, -100, -4096, 1, 4096)), draw(of(b"\0", b"x"))
    if kind == "other":
        return kind, draw(st.binary(max_size=200)), draw(of(b"", b"SQLite format 3\0"))
    column = draw(of("by", "epsilon", "delta", "rho", "released", "date", "number"))
    facts = draw(of("format", "label", "epsilon", "delta", "unit"))
    value = draw(
        of("NULL", "'x'", "x'ff'", "1e999", "-1", "0", "0.1", "2", "9e15", "1e300", "'NaN'")
    )
    change = f'"{column}" = {value}'
    return kind, draw(
        of(
            f"UPDATE ledger SET {change}",
            f"UPDATE ledger SET {change} WHERE number = 1",
            f"UPDATE survey SET {facts} = {value}",
            f"INSERT INTO ledger ({column}) VALUES ({value})",
            "DELETE FROM ledger",
            "DELETE FROM survey",
            "INSERT INTO survey SELECT * FROM survey",
            'INSERT INTO ledger ("by", epsilon, delta) SELECT "by", epsilon, delta FROM ledger',
            "DROP TABLE survey",
            "DROP TABLE ledger",
            "CREATE TABLE other (x)",
            "CREATE VIEW other AS SELECT * FROM ledger",
            f"ALTER TABLE ledger RENAME COLUMN {column if column != 'by' else 'rho'} TO other",
        )
    )


def damage(path, change):
    if change[0] == "table":
        with contextlib.closing(sqlite3.connect(path)) as connection:
            with contextlib.suppress(sqlite3.Error):
                connection.executescript(
                    "PRAGMA ignore_check_constraints = ON; DROP TRIGGER stays; DROP TRIGGER kept;"
                    + change[1]
                )
            connection.commit()
        return
    content = bytearray(path.read_bytes())
    if change[0] == "bytes":
        for place, byte in change[1]:
            content[place] = byte
    elif change[0] == "other":
        content = bytearray(change[2] + change[1])
    else:
        content = content[: change[1]] if change[1] < 0 else content + change[2] * change[1]
    path.write_bytes(content)


KINDS = (ValueError, pr.BudgetExceeded, OSError)


def spent(budget):
    """Whether a ledger that was opened grants a spending; what it holds stays within its total."""
    seen = settled(lambda: str(budget.summary()), kinds=KINDS)
    before = len(budget.spendings) if seen == TAKEN else 0
    how = settled(lambda: budget.reserve("more", 0.25, 0.0, unit=budget.unit), kinds=KINDS)
    if how == TAKEN:
        assert len(budget.spendings) == before + 1
        assert sum(line.epsilon for line in budget.spendings) <= budget.epsilon
    return how


def test_ledgers(tmp_path, monkeypatch):
    monkeypatch.setattr(ledgers, "_SETTINGS", "PRAGMA synchronous = OFF")
    path, whole = tmp_path / "tea.ledger", tmp_path / "whole.ledger"
    filled(whole)
    content = whole.read_bytes()

    def open_it(case):
        change, asked = case
        path.write_bytes(content)
        damage(path, change)
        made = []
        how = settled(lambda: made.append(pr.Budget(path, **asked)), kinds=KINDS)
        if made:
            how = spent(made[0])
        for left in (path, path.with_name(path.name + "-journal")):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)
        return how

    asked = arguments(epsilon=of(..., ..., 1.0, 2.0), label=of(..., ..., "tea", "x"))
    once = [
        (("table", f"UPDATE {what} = x'ff'"), {})
        for what in ('ledger SET "by"', "survey SET label")
    ]
    explore(st.tuples(broken(len(content)), asked), open_it, once)
