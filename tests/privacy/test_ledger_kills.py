"""Processes that share a ledger on disk are killed at any point: it never overspends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import privrank as pr

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def study(call, folder):
    """What a function of the study finds, which is run in a process that has imported little."""
    code = f"import json, pathlib, ledger_kills as k; print(json.dumps(k.{call}))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "validation")))},
    )
    assert run.returncode == 0 and run.stderr == "", run.stderr
    return json.loads(run.stdout)


def faults(found):
    return {found[name] for name in ("overspent", "lost", "entered twice")}


def test_two_processes_fill_a_ledger_exactly(tmp_path):
    found = study("exactly(pathlib.Path())", tmp_path)
    assert found["granted"] == found["entered"] == 100 and faults(found) == {0}
    assert pr.Budget(tmp_path / "survey0.ledger").left == (0.0, 0.0)


@pytest.mark.parametrize("room, wait", [(100, 0.01), (1, 0.002)])
def test_a_thousand_kills_of_two_processes(room, wait, tmp_path):
    """With room for one spending it is mostly the making of the ledger that is cut short."""
    found = study(f"killed(pathlib.Path(), 1000, {room}, {wait})", tmp_path)
    assert found["kills"] >= 1000 and found["entered"] == room * found["ledgers"] > 0
    assert faults(found) == {0} and found["failed"] == 0


def test_two_accounts_outlive_their_processes(tmp_path):
    """Nobody takes from the one what belongs to the other, however often a ledger is reopened."""
    spend = "k.spend_both_until_refused"
    found = study(f"killed(pathlib.Path(), 100, 40, 0.01, {spend})", tmp_path)
    assert found["kills"] >= 100 and found["entered"] == 40 * found["ledgers"] > 0
    assert faults(found) == {0} and found["moved"] == found["failed"] == 0


def test_processes_that_fit_every_class_are_killed(tmp_path):
    """What fits said to have released is in the ledger, which holds no more than its total."""
    spend = "__import__('functools').partial(k.fit_until_refused, k.fits())"
    found = study(f"killed(pathlib.Path(), 20, 24, 0.2, {spend})", tmp_path)
    assert found["kills"] >= 20 and found["entered"] == 24 * found["ledgers"] > 0
    assert faults(found) == {0} and found["failed"] == 0 and found["granted"] > 0


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
