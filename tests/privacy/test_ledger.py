"""One ledger: no second process spends it, and no archive holds one that could not have been."""

import json
import math
import multiprocessing
import pickle
from itertools import pairwise

import joblib
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privrank as pr
from privrank.privacy.gaussian import zcdp_epsilon

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
    assert "left 1" in repr(budget) and "left" in str(budget.summary())
    assert json.loads(budget.to_json())["epsilon"] == "1.0"


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
        assert "keep it on disk" in said
    call(budget)
    assert budget.left == (0.0, 0.0) and len(budget.spendings) == 1


@forks
def test_a_fork_may_read_the_ledger_and_make_its_own():
    assert in_a_fork(read, pr.Budget(epsilon=1.0)) == ""
    assert in_a_fork(lambda _: spend(pr.Budget(epsilon=1.0)), None) == ""


@forks
def test_a_fork_while_another_thread_reserves_is_refused_and_does_not_wait():
    budget = pr.Budget(epsilon=1.0)
    with budget._table.held():
        assert in_a_fork(spend, budget).startswith("RuntimeError")


def test_no_reservation_comes_between_what_another_reads_and_adds():
    """A signal's handler runs in the thread that it interrupts."""
    budget = pr.Budget(epsilon=1.0)
    with budget._table.held() as (records, add):
        for ask in (spend, str, lambda budget: budget.left):
            with pytest.raises(RuntimeError, match="by the thread that is spending from it: ask"):
                ask(budget)
        assert records == ()
        add({"by": "first", "epsilon": "1.0", "delta": "0.0"})
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
@settings(deadline=None)
def test_every_legal_ledger_comes_back_as_it_was(budget):
    again = pr.Budget.from_json(budget.to_json())
    assert again.to_json() == budget.to_json() and again.spendings == budget.spendings
    for name in ("epsilon", "delta", "unit", "spent", "left", "composed"):
        assert getattr(again, name) == getattr(budget, name)


LINE = {"by": "test", "epsilon": "0.5", "delta": "1e-07", "rho": "0.01"}
RECORD = {"epsilon": "1.0", "delta": "1e-06", "unit": "row", "spendings": [LINE, LINE]}


def ledger(**changes):
    return json.dumps(RECORD | changes)


def spending(**changes):
    return json.dumps(RECORD | {"spendings": [LINE, LINE | changes]})


def without(record, name):
    return {key: value for key, value in record.items() if key != name}


IMPOSSIBLE = {
    "not JSON": ("epsilon 1", "must be JSON written"),
    "deep": ("[" * 100_000, "must be JSON written"),
    "a long whole number": ("9" * 5000, "must be JSON written"),
    "a list": ("[]", "the ledger must have epsilon, delta, unit, spendings, each once"),
    "null": ("null", "the ledger must have"),
    "total negative": (ledger(epsilon="-1.0"), "epsilon must be positive, got -1.0"),
    "total zero": (ledger(epsilon="0.0"), "epsilon must be positive"),
    "total NaN": (ledger(epsilon="nan"), "epsilon must be positive, got nan"),
    "total beyond": (ledger(epsilon="1e999"), "a number must be text such as '0.5'"),
    "total true": (ledger(epsilon=True), "a number must be text .*: True"),
    "total a JSON number": (ledger(epsilon=1.0), "a number must be text"),
    "total a JSON NaN": (ledger(epsilon=math.nan), "a number must be text"),
    "total a word": (ledger(epsilon="much"), "a number must be text .*: 'much'"),
    "total a list": (ledger(epsilon=["1.0"]), "a number must be text"),
    "delta negative": (ledger(delta="-0.1"), r"delta must lie in \[0, 1\), got -0.1"),
    "delta one": (ledger(delta="1.0"), r"delta must lie in \[0, 1\), got 1.0"),
    "delta NaN": (ledger(delta="nan"), r"delta must lie in \[0, 1\)"),
    "delta false": (ledger(delta=False), "a number must be text"),
    "unit unknown": (ledger(unit="person"), "unit must be one of 'row', 'respondent'"),
    "unit a list": (ledger(unit=["row"]), "unit must be one of"),
    "unit an object": (ledger(unit={}), "unit must be one of"),
    "spendings text": (ledger(spendings="none"), "spendings must be a list"),
    "spendings an object": (ledger(spendings={}), "spendings must be a list"),
    "spending a list": (ledger(spendings=[["test"]]), "every spending must have by, epsilon"),
    "key missing": (json.dumps(without(RECORD, "delta")), "the ledger must have"),
    "key too many": (ledger(left="1.0"), "the ledger must have"),
    "key twice": ('{"epsilon": "9.0", ' + ledger()[1:], "the ledger must have .* each once"),
    "line without by": (ledger(spendings=[without(LINE, "by")]), "every spending must have"),
    "line with more": (spending(alpha="0.05"), "every spending must have .* nothing else"),
    "line's key twice": (
        ledger(spendings=[]).replace("[]", '[{"by": "test", ' + json.dumps(LINE)[1:] + "]"),
        "every spending must have .* each once",
    ),
    "by a number": (spending(by=3), "by must be text"),
    "by null": (spending(by=None), "by must be text"),
    "spent negative": (spending(epsilon="-0.5"), "epsilon must be positive, got -0.5"),
    "spent zero": (spending(epsilon="0.0"), "epsilon must be positive"),
    "spent NaN": (spending(epsilon="nan"), "epsilon must be positive, got nan"),
    "spent true": (spending(epsilon=True), "a number must be text"),
    "spent infinite": (spending(epsilon="inf"), "the spendings add up to more than the total"),
    "spent too much": (spending(epsilon="0.5000001"), "add up to more than the total"),
    "spent delta negative": (spending(delta="-1e-07"), "delta must lie in"),
    "spent delta NaN": (spending(delta="nan"), "delta must lie in"),
    "spent delta one": (spending(delta="1.0"), "delta must lie in"),
    "spent delta too much": (spending(delta="1e-06"), "add up to more than the total"),
    "rho negative": (spending(rho="-0.1"), "rho must be between 0 and"),
    "rho NaN": (spending(rho="nan"), "rho must be between 0 and"),
    "rho null": (spending(rho=None), "a number must be text"),
    "released a number": (spending(released=3), "released must be text or None, got int"),
    "date a number": (spending(date=3), "date must be text"),
    "rho true": (spending(rho=True), "a number must be text"),
}


@pytest.mark.parametrize(("text", "reason"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_ledger_is_refused_in_one_sentence(text, reason):
    assert pr.Budget.from_json(ledger()).left == (0.0, 8e-7)
    with pytest.raises(ValueError, match=reason) as refusal:
        pr.Budget.from_json(text)
    said = str(refusal.value)
    assert type(refusal.value) is ValueError
    assert said.startswith("text must be ") and "\n" not in said
    assert said.count(". ") == 0 and said.endswith(".")


@pytest.mark.parametrize("rho", [-1e-300, 1e18, math.nan, True, "0.1"])
def test_a_spending_that_no_archive_could_hold_is_not_entered(rho):
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
