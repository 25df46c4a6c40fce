"""One ledger: no second process spends it, and it is opened as it was left."""

import math
import multiprocessing
import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privrank as pr
from privrank.privacy.accounting import Spending, zcdp_epsilon

WIN = pd.DataFrame({"item1": ["a", "b"], "item2": ["b", "a"], "outcome": [1, 1]})

pytestmark = pytest.mark.filterwarnings("ignore::privrank.util.checks.PrivrankWarning")
forks = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)


def spend(budget):
    budget.reserve("test", 1.0, 0.0, unit="row")


def fit(budget):
    model = pr.PrivateBTL(WIN, items=["a", "b"], respondent=None, ties=False)
    model.fit(epsilon=1.0, budget=budget)


def read(budget):
    assert budget.left == (1.0, 0.0) and budget.spendings == ()
    assert "left 1" in repr(budget) and "remaining" in str(budget.summary())
    assert budget.epsilon == 1.0


def in_a_fork(call, budget):
    """What `call(budget)` raises in a forked process, as text; the empty text where nothing."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run():
        try:
            call(budget)
        except Exception as error:
            there.send(f"{type(error).__name__}: {error}")
        else:
            there.send("")

    process = context.Process(target=run)
    process.start()
    try:
        assert here.poll(60), "the forked process does not answer"
        return here.recv()
    finally:
        process.kill()
        process.join()


@forks
@pytest.mark.parametrize("call", [spend, fit])
def test_a_fork_does_not_spend_the_budget_again(call):
    budget = pr.Budget(epsilon=1.0)
    for _ in range(2):
        said = in_a_fork(call, budget)
        assert said.startswith(
            "RuntimeError: a Budget in memory spends only in the process that made it"
        )
        assert "Keep it on disk" in said
    call(budget)
    assert budget.left == (0.0, 0.0) and len(budget.spendings) == 1


@forks
def test_a_fork_may_read_the_ledger_and_make_its_own():
    assert in_a_fork(read, pr.Budget(epsilon=1.0)) == ""
    assert in_a_fork(lambda _: spend(pr.Budget(epsilon=1.0)), None) == ""


@forks
def test_a_fork_while_another_thread_reserves_is_refused_and_does_not_wait():
    budget = pr.Budget(epsilon=1.0)
    with budget._held():
        assert in_a_fork(spend, budget).startswith("RuntimeError")


def test_no_reservation_comes_between_what_another_reads_and_adds():
    """A signal's handler runs in the thread that it interrupts."""
    budget = pr.Budget(epsilon=1.0)
    with budget._held() as (account, add):
        for ask in (spend, str, lambda budget: budget.left):
            with pytest.raises(RuntimeError, match="by the thread that is spending from it. Read"):
                ask(budget)
        assert account.spendings == ()
        add(Spending("first", 1.0, 0.0))
    assert [line.by for line in budget.spendings] == ["first"] and budget.left == (0.0, 0.0)


def test_worker_processes_do_not_get_the_budget():
    budget = pr.Budget(epsilon=1.0)
    with pytest.raises((TypeError, pickle.PicklingError)) as refusal:
        joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(spend)(budget) for _ in range(2))
    causes = [refusal.value, refusal.value.__cause__]
    assert any("cannot be copied or pickled" in str(cause) for cause in causes)
    assert budget.left == (1.0, 0.0)


@st.composite
def ledgers(draw):
    """A budget with any legal spendings: those that do not fit are refused."""
    epsilons = st.floats(1e-9, 1e9) | st.just(math.inf)
    deltas = st.just(0.0) | st.floats(0, 1, exclude_max=True)
    rhos = st.none() | st.floats(0, 5e17) | st.just(math.inf)
    unit = draw(st.sampled_from(["row", "respondent"]))
    budget = pr.Budget(epsilon=draw(epsilons), delta=draw(deltas), unit=unit)
    for by, epsilon, delta, rho in draw(
        st.lists(st.tuples(st.text(max_size=5), epsilons, deltas, rhos), max_size=6)
    ):
        try:
            budget.reserve(by, epsilon, delta, unit=unit, rho=rho)
        except pr.BudgetExceeded:
            pass
    return budget


@given(ledgers())
@settings(deadline=None, max_examples=50)
def test_every_legal_ledger_is_opened_as_it_was_left(budget):
    with TemporaryDirectory() as folder:
        facts = {"epsilon": budget.epsilon, "delta": budget.delta, "unit": budget.unit}
        first = pr.Budget(Path(folder, "survey.ledger"), **facts)
        for line in budget.spendings:
            first.reserve(line.by, line.epsilon, line.delta, unit=budget.unit, rho=line.rho)
        again = pr.Budget(first.path)
        assert again.spendings == first.spendings
        assert [replace(line, date=None) for line in again.spendings] == list(budget.spendings)
        for name in ("epsilon", "delta", "unit", "spent", "left", "composed"):
            assert getattr(again, name) == getattr(budget, name)


@pytest.mark.parametrize("rho", [-1e-300, 1e18, math.nan, True, "0.1"])
def test_a_spending_that_no_ledger_could_hold_is_not_entered(rho):
    budget = pr.Budget(epsilon=1.0, delta=0.1)
    with pytest.raises(ValueError, match="rho must be between 0 and"):
        budget.reserve("test", 0.5, 0.05, unit="row", rho=rho)
    with pytest.raises(TypeError, match="by must be text"):
        budget.reserve(None, 0.5, 0.05, unit="row")
    assert budget.spendings == ()


@pytest.mark.parametrize("delta", [5e-324, 1e-6, 0.5, 1 - 2**-53])
def test_composition_has_a_value_at_every_rho(delta):
    epsilons = [zcdp_epsilon(rho, delta) for rho in (0.0, 5e-324, 1e-9, 0.5, 5e17, 1e300, math.inf)]
    assert epsilons[0] == 0 and epsilons[-1] == math.inf
    assert all(low <= high for low, high in pairwise(epsilons))  # false at NaN
    assert epsilons[4] == pytest.approx(5e17, rel=1e-6)
