"""Processes that share a ledger on disk are killed at any point: it never overspends."""

import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_killed_at_every_call_to_the_system(tmp_path):
    killed, filled = killing("calls", tmp_path)
    assert killed > 200 and filled > 0


@pytest.mark.slow
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
