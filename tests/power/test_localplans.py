"""Plans of the test of uniformity from reports: what they say is what tests of reports do."""

import math

import numpy as np
import pytest

import privrank as pr
from privrank.hypotheses.nulls import public_generator
from privrank.local.kinds import PairBits, SubRanking
from privrank.local.uniform import Asked, planned_statistic, simulated_survey

NAMES = list("abcdefgh")
UNIFORM = pr.power.UniformityPower


def rejected(protocol, n, phi, fits):
    """Share of simulated surveys whose reports reject."""
    rng, m = np.random.default_rng(1), len(protocol.items)
    found = []
    for _ in range(fits):
        ranks = pr.Mallows(m, phi).rvs(n, rng)[:, rng.permutation(m)]
        tally = protocol.tally(protocol.simulate(ranks, rng))
        found.append(pr.UniformityTest.from_reports(tally, draws=199).reject)
    return np.mean(found)


@pytest.mark.parametrize(
    ("protocol", "n", "phi", "fits"),
    [(PairBits(NAMES[:5], 2.0), 120, 0.5, 100), (PairBits(NAMES[:4], 4.0), 20, 0.4, 100)],
    ids=repr,
)
def test_the_power_is_that_of_tests_of_reports(protocol, n, phi, fits):
    design = UNIFORM(protocol.items, mode="local")
    planned = design.power(nobs=n, phi=phi, epsilon=protocol.epsilon)
    assert 0.3 < planned < 0.99 and 0 < planned.error < 0.05
    found = rejected(protocol, n, phi, fits)
    assert abs(found - planned) < 3 * math.hypot(planned.error, 0.5 / math.sqrt(fits))


def test_one_of_the_numbers_is_found():
    design, at = UNIFORM(6, mode="local"), {"epsilon": 1.0, "phi": 0.8}
    n = design.solve_power(power=0.8, **at)
    assert repr(n).endswith(f"respondents (Monte Carlo standard error {n.error:.2g})")
    assert abs(design.power(nobs=int(n), **at) - 0.8) < 0.08
    epsilon = design.solve_power(nobs=int(n), phi=0.8, power=0.8)
    assert abs(epsilon - 1.0) < 4 * epsilon.error
    phi = design.solve_power(nobs=int(n), epsilon=1.0, power=0.8)
    assert abs(phi - 0.8) < 4 * phi.error
    ax = design.plot_power(nobs=[200, 2000], **at).axes[0]
    assert len(ax.lines) == 1 and ax.lines[0].get_ydata()[0] < ax.lines[0].get_ydata()[1]


def test_large_surveys_take_no_longer():
    # Figure 3 of BFZ21: their scheme, of many bits about all pairs, has no power here
    design = UNIFORM(1000, mode="local", replicates=60)
    assert design.power(nobs=300_000, epsilon=1 / 3, phi=0.999) > 0.9
    level = design.power(nobs=300_000, epsilon=1 / 3, phi=1.0)
    assert abs(level - 0.05) < 4 * level.error


class Unturned(np.random.Generator):
    """A generator whose permutations leave the order as it is."""

    def permutation(self, size):
        return np.arange(size)


@pytest.mark.parametrize(
    "protocol", [SubRanking(NAMES[:5], 4.0, size=3), PairBits(NAMES[:5], 3.0)], ids=repr
)
def test_simulated_net_wins_have_the_moments_of_reports(protocol):
    """Numbers of answers, and the scaled net wins of larger surveys, against whole reports."""
    n, theta = 8_000, 0.05
    rng = Unturned(np.random.PCG64(2))

    def net(simulate):
        facts = [simulate(rng) for _ in range(60)]
        scale = math.sqrt(n / facts[0].count.sum())
        return scale * np.array([each.net for each in facts])

    drawn = net(lambda rng: simulated_survey(protocol, n, theta, rng))
    model = pr.Mallows.from_theta(5, theta)

    def whole(rng):
        return Asked.of(protocol.tally(protocol.simulate(model.rvs(n, rng), rng)))

    reports = net(whole)
    spread = reports.std(axis=0, ddof=1)
    apart = drawn.mean(axis=0) - reports.mean(axis=0)
    assert (abs(apart) <= 4 * spread / math.sqrt(30)).all()
    own = drawn.std(axis=0, ddof=1)
    assert ((0.6 * spread <= own) & (own <= 1.6 * spread)).all()


def test_results_of_reports_have_the_power_that_their_plan_says():
    protocol, rng = PairBits(NAMES[:6], 1.0), np.random.default_rng(4)
    ranks = pr.Mallows(6, 0.8).rvs(3_000, rng)
    result = pr.UniformityTest.from_reports(protocol.tally(protocol.simulate(ranks, rng)))
    found = result.detectable_effect(0.8)
    planned = UNIFORM(NAMES[:6], mode="local").solve_power(nobs=3_000, epsilon=1.0, power=0.8)
    assert abs(found.phi - planned) < 4 * planned.error
    # by public numbers alone
    sampler = planned_statistic(protocol, 3_000).sampler
    drawn = sampler(0.1, public_generator("test", 1))
    assert drawn == sampler(0.1, public_generator("test", 1))


def test_where_reports_are_simulated_one_by_one_there_is_a_least_effect_too():
    protocol, rng = SubRanking(NAMES[:5], 3.0), np.random.default_rng(4)
    ranks = pr.Mallows(5, 0.8).rvs(300, rng)
    result = pr.UniformityTest.from_reports(protocol.tally(protocol.simulate(ranks, rng)))
    assert 0.5 < result.detectable_effect(0.8, replicates=20).phi < 1


LOCAL = UNIFORM(4, mode="local")
BAD = {
    "choices": (lambda: UNIFORM(4, kind="choices", mode="local"), "kind and method must"),
    "a method": (lambda: UNIFORM(4, method="borda", mode="local"), "kind and method must"),
    "no mode": (lambda: UNIFORM(4, mode="lokal"), "mode must be one of"),
    "delta": (lambda: LOCAL.power(nobs=99, phi=0.5, epsilon=1.0, delta=1e-6), "delta must be 0"),
    "no noise": (
        lambda: LOCAL.power(nobs=99, phi=0.5, epsilon=np.inf),
        "epsilon must be a number in",
    ),
    "no phi": (lambda: LOCAL.power(nobs=99, epsilon=1.0), "phi must be given"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    call, words = BAD[case]
    with pytest.raises((ValueError, TypeError), match=words):
        call()
