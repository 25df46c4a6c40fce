"""Simulated surveys: they are released and read as fits of the same answers are."""

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import privrank as pr
from privrank import btl
from privrank.bradley_terry.fit import answer_probabilities
from privrank.power.base import DesignPoint
from privrank.power.comparisons import different_pairs, simulated_counts
from privrank.release.names import MOMENTS, WINS

NAMES = tuple("0123")


def plan_and_point(nobs, epsilon, contrast, **settings):
    plan = pr.power.BTLPower(items=4, **settings)
    at = {"nobs": nobs, "epsilon": epsilon, "effect": contrast, "delta": 0.0, "alpha": 0.05}
    return plan, DesignPoint(**at)


def counts_of(plan, at, worths, number):
    """Return the counts of a simulated survey of a plan."""
    answers = np.full(at.nobs, plan.max_rows)
    facts = plan._facts(at.nobs, at.epsilon)
    return simulated_counts(facts, worths, answers, number, plan._tie_parameter)


def release_of(plan, at, number):
    """Return the release of a simulated survey of a plan."""
    return plan._released(at, plan._planned(at), plan._worths(at.effect), number)


def answers_of(encoded):
    """Return the pairs, respondents and signs of the answers of a simulated survey."""
    (part,) = encoded._parts.held
    return part


def frame_of(encoded):
    """Return the answers of a simulated survey as a user has them."""
    part = answers_of(encoded)
    first, second = np.divmod(part.pair, 4)
    return pd.DataFrame(
        {
            "item1": np.array(NAMES)[first],
            "item2": np.array(NAMES)[second],
            "outcome": part.sign,
            "respondent": part.person,
        }
    )


@pytest.mark.parametrize(
    ("epsilon", "settings"),
    [
        (math.inf, {"max_rows": 6, "design": "public"}),
        (math.inf, {"max_rows": 3}),
        (400.0, {"max_rows": 6, "design": "public", "dependence": "worst"}),
        (400.0, {"max_rows": 3, "dependence": "worst"}),
        (400.0, {"max_rows": 3, "dependence": "pairs"}),
        (400.0, {"max_rows": 6, "design": "public", "dependence": "pairs"}),
        (400.0, {"max_rows": 3, "method": "objective"}),
        (math.inf, {"max_rows": 6, "design": "public", "ties": "davidson"}),
        (math.inf, {"max_rows": 3, "ties": "davidson", "tie_rate": 0.4}),
        (400.0, {"max_rows": 6, "design": "public", "ties": "davidson"}),
        (400.0, {"max_rows": 3, "ties": "davidson"}),
    ],
)
def test_a_simulated_fit_is_the_fit_of_its_answers(epsilon, settings):
    plan, at = plan_and_point(120, epsilon, 0.6, worths=1.0, **settings)
    simulated = btl.infer(release_of(plan, at, 3))
    options = {name: settings[name] for name in ("method", "dependence") if name in settings}
    model = pr.PrivateBTL(
        frame_of(counts_of(plan, at, plan._worths(at.effect), 3)),
        items=NAMES,
        respondent="respondent",
        max_rows=settings.get("max_rows", 1),
        design=settings.get("design", "private"),
        ties=settings.get("ties", False),
    )
    fitted = model.fit(epsilon, rng=np.random.default_rng(0), **options)
    close = 1e-8 if math.isinf(epsilon) else 0.03
    assert simulated.params.to_numpy() == pytest.approx(fitted.params.to_numpy(), abs=close)
    assert simulated.bse.to_numpy() == pytest.approx(fitted.bse.to_numpy(), rel=max(close, 1e-6))
    if settings.get("ties"):
        ties, again = simulated.tie_parameter, fitted.tie_parameter
        assert ties["estimate"] == pytest.approx(again["estimate"], abs=close)
        assert ties["std_err"] == pytest.approx(again["std_err"], rel=max(close, 1e-6))


def test_pairs_of_a_respondent_are_different_ones_and_all_sets_alike():
    rng = np.random.default_rng(3)
    asked = np.sort(different_pairs(40_000, 3, 5, rng), axis=1)
    sets, times = np.unique(asked, axis=0, return_counts=True)
    assert len(sets) == math.comb(5, 3)
    assert chisquare(times).pvalue > 1e-4
    assert (np.sort(different_pairs(7, 5, 5, rng), axis=1) == np.arange(5)).all()


def test_answers_follow_the_model_and_vary_as_those_of_orders_do():
    plan, at = plan_and_point(4000, 1.0, 0.0, max_rows=6)
    part = answers_of(counts_of(plan, at, np.zeros(4), 1))
    first, second = np.divmod(part.pair, 4)
    net = np.zeros((4000, 4))
    np.add.at(net, (part.person, first), part.sign)
    np.subtract.at(net, (part.person, second), part.sign)
    # a difference of two nets has the variance 2 m for independent answers to all pairs
    assert np.var(net[:, 0] - net[:, 1]) / 8 == pytest.approx(5 / 3, rel=0.08)
    worths = np.array([1.0, 0.0, 0.0, -1.0])
    first, second, count, total = counts_of(plan, at, worths, 2)._pairs
    expected = np.tanh(0.5 * (worths[first] - worths[second]))
    assert (np.abs(total / count - expected) < 4.0 / np.sqrt(count)).all()


def test_ties_with_a_parameter_follow_the_model_and_leave_the_others_as_they_are():
    worths = np.array([1.0, 0.0, 0.0, -1.0])
    plan, at = plan_and_point(4000, 1.0, 0.0, max_rows=6, ties="davidson", tie_rate=0.3)
    encoded = counts_of(plan, at, worths, 2)
    part = answers_of(encoded)
    first, second, count, net = encoded._pairs
    pair = np.unique(part.pair, return_inverse=True)[1]
    tied = np.bincount(pair, part.sign == 0)
    # two equal items tie with probability nu / (2 + nu)
    tie_parameter = math.log(2 * 0.3 / (1 - 0.3))
    won, tie, lost = answer_probabilities(worths[first] - worths[second], tie_parameter)
    assert (np.abs(tied / count - tie) < 4.0 * np.sqrt(tie / count)).all()
    assert (np.abs(net / count - (won - lost)) < 4.0 / np.sqrt(count)).all()
    assert encoded._ties == tied.sum()
    assert plan._tie_parameter == pytest.approx(tie_parameter)
    assert answer_probabilities(np.zeros(1), tie_parameter)[1] == pytest.approx(0.3)
    plain, _ = plan_and_point(4000, 1.0, 0.0, max_rows=6)
    decided = answers_of(counts_of(plain, at, worths, 2)).sign
    assert (part.sign[part.sign != 0] == decided[part.sign != 0]).all()


def test_more_ties_leave_less_power():
    few, many = (
        pr.power.BTLPower(items=4, max_rows=6, ties="davidson", tie_rate=rate, replicates=60)
        for rate in (0.02, 0.7)
    )
    assert few.power(150, 2.0, 0.6) > many.power(150, 2.0, 0.6) + 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ties": "half"}, "ties must be True or False, or 'davidson'"),
        ({"ties": "davidson", "mode": "local"}, "Use ties=True in the local model"),
        ({"ties": "davidson", "tie_rate": 0.0}, "tie_rate must be a probability"),
        ({"ties": "davidson", "tie_rate": "half"}, "tie_rate must be a probability"),
    ],
)
def test_ties_that_cannot_be_planned_for_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        pr.power.BTLPower(items=4, **settings)


def test_ties_that_responses_make_up_are_simulated():
    plan = pr.power.BTLPower(items=6, mode="local", ties=True, replicates=60)
    at = DesignPoint(nobs=3000, epsilon=1.0, effect=0.5, delta=0.0, alpha=0.05)
    release = release_of(plan, at, 0)
    decided = release.parts[WINS].values.sum() / 3000
    protocol = pr.local.Comparisons([str(k) for k in range(6)], epsilon=1.0, ties=True)
    tied = 1.0 / (math.e + 2.0)  # the weight of a value that is not the true one
    assert 1.0 - decided == pytest.approx(tied, abs=0.03)
    assert protocol.gain == pytest.approx((math.e - 1.0) * tied)


def test_comparisons_that_fall_apart_find_nothing():
    plan, at = plan_and_point(2, math.inf, 1.0, max_rows=1, design="public")
    for number in range(5):
        assert release_of(plan, at, number) is None
    plan = pr.power.BTLPower(items=4, design="public", replicates=20)
    assert plan.power(2, math.inf, 1.0) == 0.0
    top = pr.power.TopKPower(items=4, k=1, design="public", replicates=20)
    assert top.power(2, math.inf, 1.0) == 0.0
    local = pr.power.BTLPower(items=4, mode="local", ties=True, replicates=20)
    assert local.power(2, 1.0, 1.0) == 0.0


def test_selections_without_noise_keep_the_moments_of_respondents():
    plan = pr.power.TopKPower(items=4, k=1, max_rows=6)
    at = DesignPoint(nobs=60, epsilon=math.inf, effect=0.5, delta=0.0, alpha=0.05)
    assert set(MOMENTS) <= release_of(plan, at, 0).parts.keys()


def test_other_processes_find_the_same():
    plan, at = plan_and_point(100, 1.0, 0.5, max_rows=3)
    planned = plan._planned(at)
    one = partial(plan._found, at, planned)
    assert pickle.loads(pickle.dumps(one))(7) == one(7)
