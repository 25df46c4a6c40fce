"""Totals by group: sensitivities by enumeration, the noise that is taken, what is spent."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.plans import samples as module
from privrank.plans.samples import plan_details
from privrank.privacy.knorm import PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.sensitivity import RankingSensitivity
from privrank.release.names import DETAILS
from privrank.release.survey import Sample


def sample(kind, k, sizes=(30, 20)):
    groups = tuple((f"g{g}", size) for g, size in enumerate(sizes))
    return Sample(kind, tuple(f"i{x}" for x in range(k)), sum(sizes), "row", 1, groups)


def moves(kind, k):
    """All changes of one group's totals when a unit is replaced."""
    if kind == "choices":
        units = np.eye(k, dtype=int)
    else:
        units = np.array(list(itertools.permutations(range(k))))
    return (units[:, None] - units[None]).reshape(-1, k)


CASES = [("choices", k) for k in (2, 3, 5)] + [("rankings", m) for m in (2, 3, 4, 5)]


def loss(part, changes):
    """The largest privacy loss of the planned noise over all changes of the totals."""
    distribution = part.noise
    if isinstance(distribution, PermutohedronNoise):
        # in k K if the sum over any set A of items is at most k |A| (m - |A|), and over all is 0
        assert not changes.sum(axis=1).any()
        size = np.arange(1, changes.shape[1])
        largest = np.cumsum(-np.sort(-changes, axis=1), axis=1)[:, :-1]
        worst = (largest / (size * size[::-1])).max()
        return worst * distribution.fineness * distribution.rate
    if isinstance(distribution, ZeroSumLaplace):
        assert not changes.sum(axis=1).any()
    return np.abs(changes).sum(axis=1).max() / distribution.scale


@pytest.mark.parametrize(("kind", "k"), CASES)
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0])
def test_the_noise_is_private_for_all_neighbours(kind, k, epsilon):
    plans = plan_details(sample(kind, k), epsilon)
    assert list(plans) == ["details 0", "details 1"]
    for part in plans.values():
        assert part.epsilon == epsilon
        found = loss(part, moves(kind, k))
        # the noise of K-norms is rounded up to a lattice; others are tight
        assert found <= epsilon
        assert isinstance(part.noise, PermutohedronNoise) or found == pytest.approx(epsilon)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_totals_are_tight(m):
    changes = moves("rankings", m)
    assert RankingSensitivity(m).borda_l1 == np.abs(changes).sum(axis=1).max()


def test_half_the_noise_is_found(monkeypatch):
    monkeypatch.setattr(module, "_l1", lambda sample: 1)
    part = plan_details(sample("choices", 3), 1.0)["details 0"]
    assert loss(part, moves("choices", 3)) > 1.9


def test_which_noise_is_taken():
    def distribution(kind, k, epsilon=1.0):
        return type(plan_details(sample(kind, k), epsilon)["details 0"].noise)

    assert distribution("choices", 2) is distribution("choices", 100) is ZeroSumLaplace
    assert distribution("choices", 500) is distribution("choices", 5, 3.0) is DiscreteLaplace
    assert distribution("rankings", 6) is PermutohedronNoise
    assert distribution("rankings", 6, np.inf) is DiscreteLaplace


ITEMS = ["a", "b", "c"]


def people(rng, rows=3):
    """Rankings of ten respondents, up to three each, in two groups."""
    size = 1 + np.arange(10) % rows
    who = np.repeat(np.arange(10), size)
    ranks = rng.permuted(np.tile([1, 2, 3], (len(who), 1)), axis=1)
    frame = pd.DataFrame(ranks, columns=ITEMS).assign(respondent=who)
    frame["choice"] = rng.choice(list("xyz"), len(who))
    frame["group"] = np.where(frame["respondent"] < 4, "few", "more")
    return frame


def fitted(frame, formula, epsilon=np.inf, **options):
    more = {} if "choice" not in formula else {"categories": list("xyz")}
    test = pr.ClosenessTest.from_formula(
        formula, frame, levels=["few", "more"], respondent="respondent", max_rows=3, **more
    )
    rng = np.random.default_rng(3)
    return test.fit(epsilon, permutations=19, rng=rng, **options)


@pytest.mark.parametrize("formula", ["a + b + c ~ group", "choice ~ group"])
def test_every_respondent_counts_once(formula):
    frame = people(np.random.default_rng(1))
    parts = fitted(frame, formula).release.parts
    each = 1 if "choice" in formula else 3
    totals = [parts[f"{DETAILS} {g}"].values.sum() for g in (0, 1)]
    assert totals == [4 * each, 6 * each]


def test_counting_all_rows_is_found(monkeypatch):
    def all_rows(part, rng, apart):
        counts = part._people.total(lambda rows: np.bincount(rows.cells[:, 0], minlength=3))
        return replace(part, _rows=counts, _people=None)

    monkeypatch.setattr("privrank.mechanisms.closeness.one_row_each", all_rows)
    parts = fitted(people(np.random.default_rng(1)), "choice ~ group").release.parts
    assert parts[f"{DETAILS} 0"].values.sum() > 4


def test_all_that_is_spent_is_reserved_at_once():
    frame = people(np.random.default_rng(2))
    budget = pr.Budget(epsilon=2.0, unit="respondent")
    spending = {"details_epsilon": 0.5, "effect_epsilon": 0.25, "method": "tv", "budget": budget}
    result = fitted(frame, "choice ~ group", 1.0, **spending)
    assert result.epsilon == 1.75 and budget.left == (0.25, 0.0)
    parts = result.release.plan.parts
    assert parts["details 0"].epsilon == parts["details 1"].epsilon == pytest.approx(0.5)
    # groups are disjoint, so that their totals spend once
    once = sum(part.epsilon for name, part in parts.items() if name != "details 1")
    assert once <= 1.75 and once == pytest.approx(1.75)
    with pytest.raises(pr.BudgetExceeded):
        fitted(frame, "choice ~ group", 0.2, details_epsilon=0.1, method="tv", budget=budget)
    assert budget.left == (0.25, 0.0)


def test_without_details_nothing_is_released():
    result = fitted(people(np.random.default_rng(2)), "choice ~ group", 1.0, method="tv")
    assert not any(name.startswith(DETAILS) for name in result.release.parts)
    with pytest.raises(ValueError, match="details_epsilon="):
        result.details()
