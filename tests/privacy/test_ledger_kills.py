"""Processes that share a ledger on disk are killed at any point: it never overspends."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import privrank as pr

TESTS = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def killing(how, folder):
    """Run ``tests/killing.py``; how many were killed, and how many ledgers were filled."""
    run = subprocess.run(
        [sys.executable, TESTS / "killing.py", how, folder],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
    )
    assert run.returncode == 0 and run.stderr == "", run.stderr
    return [int(number) for number in re.findall(r"\d+", run.stdout)]


def test_two_processes_fill_a_ledger_exactly(tmp_path):
    killing("exactly", tmp_path)


def test_a_thousand_kills_of_two_processes(tmp_path):
    killed, filled = killing("times", tmp_path)
    assert killed >= 1000 and filled > 0


def test_a_forked_process_may_spend_the_budget_it_inherits(tmp_path):
    budget = pr.Budget(tmp_path / "survey.ledger", epsilon=1.0)
    child = os.fork()
    if child == 0:
        try:
            budget.reserve("child", 0.6, 0.0, unit="row")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(pr.BudgetExceeded):
        budget.reserve("parent", 0.6, 0.0, unit="row")
    budget.reserve("parent", 0.4, 0.0, unit="row")
    assert [line.by for line in budget.spendings] == ["child", "parent"]


def test_forks_while_threads_of_this_process_spend(tmp_path):
    """A forked process must not inherit what SQLite was doing: it could undo another's commit."""
    budget, stop, granted = pr.Budget(tmp_path / "survey.ledger", epsilon=np.inf), [], []

    def spend():
        while not stop:
            budget.reserve("thread", 0.5, 0.0, unit="row")
            granted.append("thread")
            time.sleep(0.1)  # a waiting process asks ten times a second, and is not served in turn

    threads = [threading.Thread(target=spend) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                budget.reserve("fork", 0.5, 0.0, unit="row")
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        granted.append("fork")
    stop.append(True)
    for thread in threads:
        thread.join()
    entered = [line.by for line in budget.spendings]
    assert granted.count("fork") == 30 and sorted(entered) == sorted(granted)
