"""Two processes share a ledger on disk and are killed at any point: overspends and lost entries.

Both open the ledger by its path, create it if it is new, and spend a tenth at a time as fast as
they can. After each grant by the ledger, a process reports it through a pipe. Repeatedly one of the
two is killed after a random time. Another process replaces it and opens the ledger again, until the
ledger is full; then a new ledger begins. The table counts ledgers that exceed their total, grants
missing in the ledger, duplicate entries, and processes that failed, for example because they could
not open the ledger. Entries without a report are from processes that were killed before they could
report. In the last row but one the ledger has two accounts, each with room for half of the
spendings: processes spend from both in turn until both are full. "Moved" are entries in the wrong
account, and ledgers whose two accounts differ from the original ones after reopening. In the last
row the processes fit every public class in turn, and report each release after the fit returns.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import sqlite3
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from privrank.privacy.accounting import zcdp_epsilon, zcdp_rho
from privrank.privacy.budget import BudgetExceeded, Ledger

SIZE = 0.1

Fit = Callable[[Ledger | None], object]

# spendings that a ledger has room for, and the mean time between kills: the last is killed mostly
# while it makes the ledger
CELLS = ((100, 0.01), (100, 0.003), (1, 0.002))
SPLIT = (100, 0.01)
FITTED = (60, 0.2)
"""The same for processes that fit models, whose memory is copied at every fork."""

DELTA = 1e-6
SHARE = zcdp_rho(1.0, DELTA) / 1000
"""Rho of a spending from the second account of a ledger that has two; sums of it are not exact."""


def spend_until_refused(path: Path, room: int, pipe: int, name: str) -> None:
    """Open the ledger, and spend until it is full; report grants through the pipe."""
    budget = Ledger(path, epsilon=room * SIZE, unit="respondent")
    try:
        for k in range(room + 1):
            budget.reserve(f"{name}-{k}", SIZE, 0.0, unit="respondent")
            os.write(pipe, f"{name}-{k}\n".encode())
    except BudgetExceeded:
        os.write(pipe, b"full\n")


def two_parts(room: int) -> dict[str, float]:
    """The arguments of a ledger with two accounts, each of which covers half of the spendings."""
    pure = room // 2 * SIZE
    rest = zcdp_epsilon((room // 2 + 0.5) * SHARE, DELTA)
    return {"epsilon": pure + rest, "delta": DELTA, "pure": pure}


def spend_both_until_refused(path: Path, room: int, pipe: int, name: str) -> None:
    """Open the ledger, and spend from its two accounts in turn until both are full."""
    budget = Ledger(path, **two_parts(room), unit="respondent")
    left = {"pure": (0.0, None), "rho": (DELTA / 10, SHARE)}
    for k in range(2 * room + 2):
        account = ("pure", "rho")[k % 2]
        if account not in left:
            continue
        delta, rho = left[account]
        try:
            budget.reserve(f"{account} {name}-{k}", SIZE, delta, unit="respondent", rho=rho)
            os.write(pipe, f"{account} {name}-{k}\n".encode())
        except BudgetExceeded:
            del left[account]
    if not left:
        os.write(pipe, b"full\n")


def fits() -> dict[str, Fit]:
    """A fit of each public class, at epsilon SIZE, by the name under which it is entered."""
    import warnings

    import numpy as np
    import pandas as pd

    import privrank as pr

    warnings.simplefilter("ignore")
    pairs = {"item1": list("aab") * 6, "item2": list("bcc") * 6, "outcome": [1, -1, 1] * 6}
    people = pd.DataFrame(pairs).assign(who=np.repeat(range(6), 3))
    ranks = pd.DataFrame([[1, 2, 3], [2, 1, 3], [3, 2, 1]] * 4, columns=list("abc"))
    ranks = ranks.assign(who=range(12))
    choices = pd.DataFrame({"choice": list("aabc") * 3, "who": range(12)})
    choices = choices.assign(group=list("uv") * 6)
    person = {"respondent": "who", "max_rows": 3}
    compared, listed = {"items": list("abc"), **person}, {"categories": list("abc"), **person}
    null, levels = dict.fromkeys("abc", 1 / 3), {"levels": ["u", "v"]}
    models = {
        "PrivateBTL": (pr.PrivateBTL(people, **compared), {"allow_unidentified": True}),
        "PrivateTopK (k = 1)": (pr.PrivateTopK(people, 1, **compared), {}),
        "PrivateRankAggregation": (
            pr.PrivateRankAggregation(ranks, items=list("abc"), **person),
            {},
        ),
        "UniformityTest": (
            pr.UniformityTest.from_formula("choice ~ 1", choices, **listed),
            {"draws": 19},
        ),
        "IdentityTest": (
            pr.IdentityTest.from_formula("choice ~ 1", choices, null=null, **listed),
            {"draws": 19},
        ),
        "ClosenessTest": (
            pr.ClosenessTest.from_formula("choice ~ group", choices, **levels, **listed),
            {"permutations": 19},
        ),
    }

    def fit(name: str) -> Fit:
        model, options = models[name]
        return lambda budget: model.fit(SIZE, budget=budget, **options)

    calls = {name: fit(name) for name in models}
    for call in calls.values():  # null distributions are simulated once, and copied at every fork
        call(None)
    return calls


def fit_until_refused(calls: dict[str, Fit], path: Path, room: int, pipe: int, name: str) -> None:
    """Open the ledger, and fit each class in turn until it is full; report releases."""
    from privrank import Budget

    budget = Budget(path, epsilon=room * SIZE, unit="respondent")
    names = list(calls)
    try:
        for k in range(room + 1):
            released = names[(k + len(name)) % len(names)]
            calls[released](budget)
            os.write(pipe, f"{released}\n".encode())
    except BudgetExceeded:
        os.write(pipe, b"full\n")


def forked(call: Callable[[], None]) -> int:
    """Run `call` in a child process; return its id."""
    child = os.fork()
    if child == 0:
        try:
            call()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def ended(child: int) -> int:
    """Wait for a child; return its exit code, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


Spender = Callable[[Path, int, int, str], None]


class Survey:
    """A ledger, the grants reported by its processes, and its errors."""

    def __init__(
        self, folder: Path, number: int, room: int, spend: Spender = spend_until_refused
    ) -> None:
        self.path, self.room, self.spend = folder / f"survey{number}.ledger", room, spend
        self.inlet, self.outlet = os.pipe()
        os.set_blocking(self.inlet, False)
        self.granted: Counter[str] = Counter()
        self.full, self.rest, self.started = False, b"", 0

    def spender(self) -> int:
        """Start a process that spends."""
        name, self.started = f"process {self.started}", self.started + 1
        return forked(lambda: self.spend(self.path, self.room, self.outlet, name))

    def listen(self) -> None:
        """Collect the reports."""
        try:
            self.rest += os.read(self.inlet, 2**16)
        except BlockingIOError:
            pass
        *said, self.rest = self.rest.split(b"\n")
        self.full |= b"full" in said
        self.granted.update(line.decode() for line in said if line != b"full")

    def entered(self) -> list[str]:
        """Return the names in the ledger, read without privrank."""
        with closing(sqlite3.connect(self.path)) as connection:
            rows = connection.execute('SELECT "by" FROM ledger ORDER BY number').fetchall()
        return [name for (name,) in rows]

    def moved(self) -> int:
        """Return how much of a ledger with two accounts is in the wrong account, or missing.

        Read without privrank, and then with it, as a later process would.
        """
        with closing(sqlite3.connect(self.path)) as connection:
            lines = connection.execute('SELECT "by", delta, rho FROM ledger').fetchall()
        wrong = sum(
            (delta, rho)
            != ((0.0, 0.5 * SIZE**2) if name.startswith("pure") else (DELTA / 10, SHARE))
            for name, delta, rho in lines
        )
        half, again = self.room // 2, Ledger(self.path)
        accounts = Counter(name.partition(" ")[0] for name, _, _ in lines)
        asked = {"pure": half, "rho": half}
        spent = (half * SIZE, half * SHARE)
        parts = {name: getattr(again, name) for name in two_parts(self.room)}
        kept = parts == two_parts(self.room) and accounts == asked
        return (
            wrong
            + (not kept)
            + any(
                not math.isclose(found, real)
                for found, real in zip(again.spent, spent, strict=True)
            )
        )

    def close(self) -> Counter[str]:
        """Return the counts; no process may spend any more."""
        self.listen()
        os.close(self.inlet)
        os.close(self.outlet)
        entered = Counter(self.entered())
        # a class is entered once for each of its fits, everything else once
        fitted = self.spend not in (spend_until_refused, spend_both_until_refused)
        twice = Counter() if fitted else entered - Counter(set(entered))
        return Counter(
            {
                "ledgers": 1,
                "granted": self.granted.total(),
                "entered": entered.total(),
                "not heard of": (entered - self.granted).total(),
                "overspent": entered.total() > self.room,
                "lost": (self.granted - entered).total(),
                "entered twice": twice.total(),
                "moved": self.moved() if self.spend is spend_both_until_refused else 0,
            }
        )


def exactly(folder: Path, room: int = 100) -> Counter[str]:
    """Without kills, two processes are granted the total, and no more."""
    survey = Survey(folder, 0, room)
    children = [survey.spender(), survey.spender()]
    assert [ended(child) for child in children] == [0, 0]
    return survey.close()


def killed(
    folder: Path,
    kills: int,
    room: int = 100,
    wait: float = 0.01,
    spend: Spender = spend_until_refused,
) -> Counter[str]:
    """Two processes spend as fast as they can, and one after the other is killed at any time."""
    draw, found = random.Random(2), Counter({"kills": 0, "failed": 0})
    while found["kills"] < kills:
        survey = Survey(folder, found["ledgers"], room, spend)
        children: list[int] = []
        while children or not survey.full:
            while len(children) < 2 and not survey.full:
                children.append(survey.spender())
            time.sleep(draw.expovariate(1 / wait))
            child = children.pop(draw.randrange(len(children)))
            os.kill(child, signal.SIGKILL)
            code = ended(child)
            found["kills"] += code == -signal.SIGKILL
            found["failed"] += code > 0
            survey.full |= code > 0  # this ledger is given up
            survey.listen()
        found.update(survey.close())
    return found


FAULTS = ("overspent", "lost", "entered twice", "moved", "failed")


def cells() -> Iterator[tuple[str, int, float, Spender]]:
    """The amounts, the number of spendings, the mean time to a kill, and the processes."""
    for room, wait in CELLS:
        yield "a tenth", room, wait, spend_until_refused
    yield "two accounts", *SPLIT, spend_both_until_refused
    yield "all classes", *FITTED, partial(fit_until_refused, fits())


def main() -> None:
    import study  # not at the top: imported modules are copied at every fork

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    kills, started, rows = parser.parse_args().kills, time.time(), []
    for spends, room, wait, spend in cells():
        some = kills // 10 if spends == "all classes" else kills
        with TemporaryDirectory() as folder:
            found = killed(Path(folder), some, room, wait, spend)
        seen = ("kills", "ledgers", "granted", "entered", "not heard of", *FAULTS)
        rows.append(
            {
                "spends": spends,
                "spendings per ledger": room,
                "mean time to a kill": f"{1000 * wait:g} ms",
            }
            | {name: found[name] for name in seen}
        )
        print(rows[-1], flush=True)
    study.write(
        "ledger_kills",
        "A ledger on disk shared by two processes that are killed",
        "python validation/ledger_kills.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
