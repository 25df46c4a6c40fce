"""Two processes share a ledger on disk and are killed: it never overspends.

A script, so that little is copied when it forks: ``python killing.py times FOLDER``.
"""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from privrank.privacy.budget import BudgetExceeded, Ledger

ROOM = 100  # spendings that a ledger has room for
SIZE = 0.1


def spend_until_refused(path, pipe, name):
    """Open the ledger, and spend until it is full; say through the pipe what was granted."""
    budget = Ledger(path, epsilon=ROOM * SIZE, unit="respondent")
    try:
        for k in range(ROOM + 1):
            budget.reserve(f"{name}-{k}", SIZE, 0.0, unit="respondent")
            os.write(pipe, f"{name}-{k}\n".encode())
    except BudgetExceeded:
        os.write(pipe, b"full\n")


def forked(call):
    """Run `call` in a child of this process; its number."""
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


class Survey:
    """A ledger, what its processes said was granted, and what has to be true of it."""

    def __init__(self, folder, number):
        self.path = folder / f"survey{number}.ledger"
        self.inlet, self.outlet = os.pipe()
        os.set_blocking(self.inlet, False)
        self.granted, self.full, self.rest = set(), False, b""

    def listen(self):
        try:
            self.rest += os.read(self.inlet, 2**16)
        except BlockingIOError:
            pass
        *said, self.rest = self.rest.split(b"\n")
        self.full |= b"full" in said
        self.granted |= {line.decode() for line in said} - {"full"}

    def check(self):
        """Every grant is in the ledger, which never holds more than its total."""
        self.listen()
        budget = Ledger(self.path, epsilon=ROOM * SIZE, unit="respondent")
        entered = [line.by for line in budget.spendings]
        assert len(entered) == len(set(entered)) <= ROOM
        assert self.granted <= set(entered)
        assert not self.full or len(entered) == ROOM


def ended(child):
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "a process failed: its traceback is above"
    return False


def exactly(folder):
    """Nobody is killed: two processes are granted what there is, and no more."""
    survey = Survey(folder, 0)
    children = [
        forked(lambda name=name: spend_until_refused(survey.path, survey.outlet, name))
        for name in ("one", "two")
    ]
    assert [ended(child) for child in children] == [False, False]
    survey.check()
    assert survey.full and len(survey.granted) == ROOM
    assert Ledger(survey.path).left == (0.0, 0.0)


def times(folder, kills=1000):
    """Two processes spend as fast as they can, and one after the other is killed at any time."""
    draw, killed, number = random.Random(2), 0, 0
    while killed < kills:
        survey, children, started = Survey(folder, number), [], 0
        while not survey.full:
            while len(children) < 2:
                name, started = f"{number}-{started}", started + 1

                def run(name=name, survey=survey):
                    spend_until_refused(survey.path, survey.outlet, name)

                children.append(forked(run))
            time.sleep(draw.expovariate(100))
            child = children.pop(draw.randrange(2))
            os.kill(child, signal.SIGKILL)
            killed += ended(child)
            survey.listen()
        for child in children:
            os.kill(child, signal.SIGKILL)
            ended(child)
        survey.check()
        number += 1
    print(killed, "killed,", number, "ledgers filled")


if __name__ == "__main__":
    {"exactly": exactly, "times": times}[sys.argv[1]](Path(sys.argv[2]))
