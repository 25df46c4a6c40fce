"""Two processes share a ledger on disk and are killed: it never overspends.

A script, so that little is copied when it forks: ``python killing.py calls FOLDER``.
"""

import fcntl
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
            say(pipe, f"{name}-{k}\n".encode())
    except BudgetExceeded:
        say(pipe, b"full\n")


say = os.write  # as the system has it, while a child's own is replaced


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


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def dying(point, when, part):
    """Replace what a ledger asks the system for: the process dies at call number `point`."""
    calls = [0]

    def replaced(original, tear):
        def call(*arguments):
            calls[0] += 1
            here = calls[0] == point
            if here and when == "before":
                die()
            if here and when == "within" and tear:
                tear(original, *arguments)
                die()
            result = original(*arguments)
            if here:
                die()
            return result

        return call

    def torn(write, file, content):
        write(file, content[: int(part * len(content))])

    os.write = replaced(os.write, torn)
    # a kill takes back no write, and so nobody has to wait for the disk
    os.fsync = replaced(lambda file: None, None)
    for name in ("open", "close", "ftruncate", "lseek", "replace"):
        setattr(os, name, replaced(getattr(os, name), None))
    lock = fcntl.flock

    def flock(file, kind):
        lock(file, kind)  # waiting is not counted
        locked(file, kind)

    locked = replaced(lambda file, kind: None, None)
    fcntl.flock = flock


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


def calls(folder, rounds=150):
    """Each of two processes dies before, within or after some call to the system."""
    draw, killed, number = random.Random(1), 0, 0
    survey = Survey(folder, number)
    for place in range(rounds):
        children = []
        for name in (f"{place}-one", f"{place}-two"):
            # the earliest points are those of making the ledger
            point, part = draw.randrange(1, 60), draw.random()
            when = draw.choice(("before", "within", "after"))

            def run(point=point, when=when, part=part, name=name, survey=survey):
                dying(point, when, part)
                spend_until_refused(survey.path, survey.outlet, name)

            children.append(forked(run))
        killed += sum([ended(child) for child in children])
        survey.check()
        if survey.full:
            number += 1
            survey = Survey(folder, number)
    print(killed, "killed,", number, "ledgers filled")


def times(folder, kills=1000):
    """Two processes spend as fast as they can, and one after the other is killed at any time."""
    draw, killed, number = random.Random(2), 0, 0
    while killed < kills:
        survey, children, started = Survey(folder, number), [], 0
        while not survey.full:
            while len(children) < 2:
                name, started = f"{number}-{started}", started + 1

                def run(name=name, survey=survey):
                    os.fsync = lambda file: None
                    spend_until_refused(survey.path, survey.outlet, name)

                children.append(forked(run))
            time.sleep(draw.uniform(0, 0.003))
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
    {"exactly": exactly, "calls": calls, "times": times}[sys.argv[1]](Path(sys.argv[2]))
