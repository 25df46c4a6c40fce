"""The engine that finds a number: exact and simulated curves, and its error."""

import math
import os
import time

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import privrank as pr
from privrank.hypotheses.effects import Curve, Search, Solved, least_number, mean_of
from privrank.power import base
from privrank.util import workers
from privrank.util.workers import in_processes


def normal(x):
    return float(ndtr(0.2 * math.sqrt(x) - 1.645))


def test_an_exact_curve_is_followed_to_the_end():
    found = least_number(Search(lambda x, r: (normal(x), 0.0), 0.8, 2, 1e6, 400, whole=True), 5.0)
    assert found.error == 0.0 and found.at == int(found.at)
    assert normal(found.at) >= 0.8 > normal(found.at - 1)
    real = least_number(Search(lambda x, r: (normal(x), 0.0), 0.8, 1e-3, 1e6, 400), 1e5)
    assert normal(real.at) == pytest.approx(0.8, abs=1e-5)


def test_a_curve_may_fall():
    error = Search(
        lambda x, r: (2.0 / math.sqrt(x), 0.0), 0.1, 2, 1e6, 400, True, False, probability=False
    )
    assert least_number(error, 10.0).at == 400


def test_ends_of_the_range():
    assert least_number(Search(lambda x, r: (normal(x), 0.0), 0.8, 2, 100, 400), 5.0) is None
    assert least_number(
        Search(lambda x, r: (0.9, 0.0), 0.8, 2, 100, 400), 50.0
    ).at == pytest.approx(2)


def simulated(turn, probability):
    """Return a curve from the same normal numbers everywhere."""

    def measure(x, replicates):
        hits = ndtr(np.random.default_rng(turn).standard_normal(replicates)) < probability(x)
        return float(hits.mean()), float(hits.std() / math.sqrt(replicates)) or 0.01

    return measure


def test_the_least_number_has_an_error_unless_it_is_exact():
    found = least_number(Search(simulated(1, lambda x: 0.6), 0.5, 2, 1e6, 400, whole=True), 20.0)
    assert found.at == 2.0 and found.error > 0.0


def test_where_a_curve_levels_off_the_error_is_larger():
    # a quarter is right by chance, and it rises late
    def probability(x):
        return 0.25 + 0.75 * ndtr(0.5 * math.sqrt(x) - 4.0)

    truth = (2.0 * (4.0 + ndtri(0.2))) ** 2
    found = [
        least_number(Search(simulated(turn, probability), 0.4, 2, 1e6, 400, whole=True), 200.0)
        for turn in range(60)
    ]
    scores = np.array([(one.at - truth) / one.error for one in found])
    assert np.sqrt(np.square(scores).mean()) < 1.6


@pytest.mark.parametrize("critical", [1.645, 6.0])
def test_the_error_of_a_number_is_that_of_its_simulation(critical):
    found = []
    for turn in range(40):

        def measure(x, replicates, turn=turn):
            z = np.random.default_rng(turn).standard_normal(replicates)
            hits = 0.2 * math.sqrt(x) - critical + z > 0
            return float(hits.mean()), float(hits.std() / math.sqrt(replicates)) or 0.01

        found.append(least_number(Search(measure, 0.8, 2, 1e6, 400, whole=True), 20.0))
    at, errors = np.array([[one.at, one.error] for one in found]).T
    truth = ((critical + 0.8416) / 0.2) ** 2
    assert abs(at.mean() - truth) < 4 * at.std() / math.sqrt(len(at)) + 0.5
    assert 0.7 < np.median(errors) / at.std(ddof=1) < 1.4


def uniform(number):
    return np.random.default_rng(number).random()


def test_any_number_of_processes_finds_the_same(monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.0)
    assert mean_of(uniform, 45, 2, "test") == mean_of(uniform, 45, 1, "test")
    assert mean_of(uniform, 45, 2, "test")[0] == np.mean([uniform(k) for k in range(45)])
    assert in_processes(abs, [-3, 1, -2, 0], "test", 2) == [3, 1, 2, 0]
    assert len(set(in_processes(process, range(20), "test", 2))) > 1


def process(number):
    time.sleep(0.02)
    return os.getpid()


def test_an_error_in_another_process_comes_out_and_more_work_can_follow(monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.0)
    with pytest.raises(ZeroDivisionError):
        in_processes(failing, range(40), "test", 2)
    assert in_processes(abs, range(-40, 0), "test", 2) == list(range(40, 0, -1))


def failing(number):
    return 1 / (number - 20)


def test_what_replicates_agree_on_is_not_exact():
    assert mean_of(lambda number: 1.0, 20, 1, "test") == (1.0, 1 / 21)
    rounded = mean_of(lambda number: 0.1 + 1e-17 * number, 20, 1, "test", step=0.5)
    assert rounded == (pytest.approx(0.1), 0.5 / 21)


def accepted(data, order):
    return float(data > 0.3) + 0.1 * order[0]


def drawn(effect, rng):
    return effect * rng.random()


def test_replicates_of_a_curve_are_the_same_in_any_process(monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.0)
    one, two = (Curve(accepted, drawn, 3, "test", n_jobs) for n_jobs in (1, 2))
    assert two.at(0.8, 45) == one.at(0.8, 45)


def test_the_error_of_an_effect_is_on_the_scale_on_which_it_is_stated(monkeypatch):
    monkeypatch.setattr(base, "least_number", lambda search, start: Solved(0.5, 0.1))
    found = pr.power.UniformityPower(4).solve_power(nobs=50, epsilon=1.0, power=0.8)
    # Mallows models are looked for by theta, and stated by phi
    assert (float(found), found.error) == pytest.approx(
        (math.exp(-0.5), math.exp(-0.5) - math.exp(-0.6))
    )


def test_a_curve_that_levels_off_below_its_target_reaches_it_nowhere():
    measure = simulated(3, lambda x: 0.74 * (1.0 - 1.0 / (1.0 + x)))
    assert least_number(Search(measure, 0.8, 1e-3, 1e3, 400), 1.0) is None
    assert least_number(Search(measure, 0.6, 1e-3, 1e3, 400), 1.0).at == pytest.approx(4.3, rel=0.5)


def test_exact_values_among_simulated_ones():
    def measure(x, replicates):
        return normal(x), 0.0 if x < 200 else 0.01

    found = least_number(Search(measure, 0.9, 2, 1e6, 400, whole=True), 20.0)
    assert normal(found.at) == pytest.approx(0.9, abs=0.01)


def test_effects_at_the_end_of_their_range_have_an_error():
    null = pr.Mallows(list("abcde"), phi=0.86)
    found = pr.power.IdentityPower(null).solve_power(nobs=150, epsilon=1.0, power=0.85)
    assert 0.98 < found <= 1.0 and found.error > 0.0


def test_figures_of_several_lines_against_epsilon_take_finite_ones():
    plan, at = pr.power.UniformityPower(2, kind="choices"), {"total_variation": 0.1}
    with pytest.raises(ValueError, match="epsilon must be finite on the axis if nobs is a list"):
        plan.plot_power("epsilon", nobs=[50, 90], epsilon=[1.0, math.inf], **at)
