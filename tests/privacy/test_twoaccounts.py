"""A ledger with `pure=`: fits without delta in one account, zero-concentrated ones in another."""

import contextlib
import math
import os
import random
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import privrank as pr
from privrank.privacy import budget as ledgers
from privrank.privacy.accounting import gaussian_scale, zcdp_epsilon, zcdp_rho

RHO = 0.5 / gaussian_scale(0.5, 1e-7) ** 2
TOTAL = {"epsilon": 5.0, "delta": 1e-6}


def gaussian(budget, rho=RHO):
    budget.reserve("Gaussian", 0.5, 1e-7, unit="row", rho=rho)


def pure(budget, epsilon=0.5):
    budget.reserve("pure", epsilon, 0.0, unit="row")


def times(spend, budget, most=1000):
    """How often it is granted until it is refused."""
    for k in range(most):
        try:
            spend(budget)
        except pr.BudgetExceeded as error:
            assert "No data were read and no noise was drawn" in str(error)
            return k
    return most


def test_gaussian_fits_fit_in_as_often_as_their_rho_allows():
    budget = pr.Budget(**TOTAL, pure=0)
    fits = times(gaussian, budget)
    assert zcdp_epsilon(fits * RHO, 1e-6) <= 5 < zcdp_epsilon((fits + 1) * RHO, 1e-6)
    assert fits == 74 and zcdp_epsilon(10 * RHO, 1e-6) == pytest.approx(1.65, abs=0.001)
    assert times(pure, budget) == 0
    assert times(gaussian, pr.Budget(**TOTAL)) == 10


def test_both_caps_hold_in_any_order():
    order = random.Random(1)
    for _ in range(3):
        budget = pr.Budget(**TOTAL, pure=3)
        for _ in range(60):
            times(order.choice((gaussian, pure)), budget, 1)
        assert times(pure, budget) >= 0 and times(gaussian, budget) >= 0
        spendings = budget.spendings
        assert sum(s.epsilon for s in spendings if s.delta == 0) == 3
        rho = math.fsum(s.rho for s in spendings if s.delta > 0)
        assert zcdp_epsilon(rho, 1e-6) <= 2 < zcdp_epsilon(rho + RHO, 1e-6)
        assert budget.spent == pytest.approx((3, rho))
        assert budget.left == pytest.approx((0, zcdp_rho(2.0, 1e-6) - rho))


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.01, 1.0, 30.0, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-6, 0.5])
def test_rho_is_what_the_conversion_gives_back(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-5, abs=2e-6)
    assert zcdp_rho(math.inf, delta) == math.inf


def test_the_whole_is_private_whatever_the_first_release_makes_the_rest():
    """After a Gaussian release the rest is divided anew, by the choice that is worst for privacy.

    The loss of a pure release is +-a as of randomised response, that of a Gaussian one normal.
    """
    a, delta = 1.0, 1e-3
    whole = a + 2.0
    r = zcdp_rho(2.0, delta)
    node, weight = np.polynomial.hermite_e.hermegauss(80)
    first = r / 3
    loss = first + math.sqrt(2 * first) * node

    def beyond(so_far, rho, epsilon):
        """E max(0, 1 - exp(whole - loss)) after one more release of each kind."""
        total = 0.0
        for sign, chance in ((1, expit(epsilon)), (-1, expit(-epsilon))):
            room, sd = whole - so_far - sign * epsilon, math.sqrt(2 * rho)
            total = total + chance * (
                norm.sf((room - rho) / sd) - np.exp(room) * norm.sf((room + rho) / sd)
            )
        return total

    choices = [(rho, epsilon) for rho in (1e-9, r / 3, 2 * r / 3) for epsilon in (0, a / 2, a)]
    worst = np.max([beyond(loss, *choice) for choice in choices], axis=0)
    assert 0 < weight @ worst / weight.sum() <= delta


def test_a_rho_that_is_not_known_is_refused():
    budget = pr.Budget(**TOTAL, pure=1)
    with pytest.raises(ValueError, match="rho of test at delta 1e-07 is not known, .* fit without"):
        budget.reserve("test", 0.5, 1e-7, unit="row")
    assert budget.spendings == ()
    ranks = pr.Mallows(4, 0.5).rvs(50, np.random.default_rng(1))
    with pytest.raises(ValueError, match="rho of UniformityTest .* is not known"):
        pr.UniformityTest(ranks).fit(0.5, 1e-7, budget=budget)
    frame = pr.simulate.bradley_terry([1.0, 0.0, -1.0], repeats=9, rng=np.random.default_rng(1))
    model = pr.PrivateBTL(frame, items=range(3), respondent=None, design="public")
    model.fit(0.5, 1e-7, noise="gaussian", budget=budget)
    model.fit(0.5, budget=budget)
    (one, other) = budget.spendings
    assert budget.spent == (other.epsilon, one.rho) and one.rho > 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"epsilon": 1.0, "delta": 1e-6, "pure": 2}, "pure=2 must be at most epsilon=1"),
        ({"epsilon": 1.0, "pure": 0.5}, "Give delta=, for example 1e-6"),
        ({"epsilon": 1.0, "delta": 1e-6, "pure": -1}, r"pure must be a number in \[0, inf\)"),
        (
            {"epsilon": math.inf, "delta": 1e-6, "pure": math.inf},
            r"pure must be a number in \[0, inf\)",
        ),
        ({"epsilon": 1.0, "delta": 1e-6, "pure": "half"}, r"pure must be a number in \[0, inf\)"),
    ],
)
def test_parts_that_are_none_are_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        pr.Budget(**arguments)


def test_no_part_is_nothing_without_a_sign():
    budget = pr.Budget(**TOTAL, pure=-0.0)
    assert math.copysign(1.0, budget.pure) == 1.0 and "pure=0," in repr(budget)


def test_without_limit_pure_fits_still_have_theirs():
    budget = pr.Budget(epsilon=math.inf, delta=1e-6, pure=1)
    assert times(pure, budget) == 2 and times(gaussian, budget, 100) == 100
    assert budget.left == (0, math.inf)


def test_the_summary_has_both_accounts():
    budget = pr.Budget(**TOTAL, pure=3)
    pure(budget)
    gaussian(budget)
    text = " ".join(str(budget.summary()).split())
    assert "spent 0.5 0.00617877 remaining 2.5 0.0819739" in text and "at most 0.0881527" in text
    assert "epsilon 5, delta 1e-06" in text and "not a guarantee by themselves" in text
    assert "pure=3" in repr(budget) and "left 2.5, rho 0.0819739" in repr(budget)
    assert "Basic composition" in str(pr.Budget(**TOTAL).summary())


def test_a_file_keeps_both_and_says_so(tmp_path):
    path = tmp_path / "tea.ledger"
    first = pr.Budget(path, **TOTAL, pure=3)
    pure(first)
    gaussian(first)
    for again in (pr.Budget(path), pr.Budget(path, **TOTAL, pure=3), pr.Budget(path, epsilon=5)):
        assert again.pure == 3 and again.left == first.left
    with pytest.raises(ValueError, match=r"made with pure 3\.0, not 2\.0"):
        pr.Budget(path, pure=2)
    assert times(pure, pr.Budget(path)) == 5
    assert times(gaussian, pr.Budget(path)) + 1 == times(gaussian, pr.Budget(**TOTAL, pure=3))
    plain = tmp_path / "plain.ledger"
    pr.Budget(plain, **TOTAL)
    with pytest.raises(ValueError, match=r"made with pure None, not 3\.0"):
        pr.Budget(plain, pure=3)
    # an earlier version reads the one and refuses the other, which it would add up wrongly
    for file, start, columns in ((path, ledgers.SPLIT, 6), (plain, ledgers.FORMAT, 5)):
        with contextlib.closing(sqlite3.connect(file)) as connection:
            (row,) = connection.execute("SELECT * FROM survey").fetchall()
        assert row[0] == start and len(row) == columns
    assert ledgers.SPLIT != ledgers.FORMAT


@pytest.mark.parametrize("change", ["pure = NULL", "pure = 6.0", "pure = -1.0", "format = 'old'"])
def test_a_changed_part_is_refused(tmp_path, change):
    path = tmp_path / "tea.ledger"
    pr.Budget(path, **TOTAL, pure=3)
    change = change.replace("old", ledgers.FORMAT)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE survey SET {change}")
        connection.commit()
    with pytest.raises(ValueError, match="was damaged|is not a ledger of this version"):
        pr.Budget(path)


def test_threads_and_objects_spend_both_accounts_and_no_more(tmp_path):
    path = tmp_path / "tea.ledger"
    pr.Budget(path, epsilon=3.0, delta=1e-6, pure=2)
    rho = zcdp_rho(1.0, 1e-6) / 10.001

    def take(spend):
        return times(spend, pr.Budget(path))

    with ThreadPoolExecutor(4) as pool:
        granted = list(pool.map(take, [pure, lambda budget: gaussian(budget, rho)] * 2))
    assert granted[0] + granted[2] == 4 and granted[1] + granted[3] == 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_killed_processes_leave_both_accounts_as_they_were_entered(tmp_path):
    path, rng = tmp_path / "tea.ledger", random.Random(2)
    rho = zcdp_rho(1.0, 1e-6) / 60.001
    pr.Budget(path, epsilon=2.0, delta=1e-6, pure=1)
    spend = (lambda budget: pure(budget, 1 / 64), lambda budget: gaussian(budget, rho))
    for _ in range(12):
        if (child := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                budget = pr.Budget(path)
                for k in range(4):
                    spend[k % 2](budget)
                    time.sleep(0.002)
            os._exit(0)
        time.sleep(rng.uniform(0.0, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    budget = pr.Budget(path)
    before = [sum((s.delta > 0) == kind for s in budget.spendings) for kind in (False, True)]
    assert [times(one, budget) + was for one, was in zip(spend, before, strict=True)] == [64, 60]
