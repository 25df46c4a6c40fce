"""Plans of tests of one sample: what they say is what fits do."""

import copy
import math
import pickle
import re
from itertools import combinations, permutations, product
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, multinomial

import privrank as pr

matplotlib.use("Agg")

UNIFORM = pr.power.UniformityPower
IDENTITY = pr.power.IdentityPower


def two(epsilon, **options):
    return dict(total_variation=0.1, epsilon=epsilon, **options)


def test_the_power_of_two_categories_is_exact():
    design, rng = UNIFORM(2, kind="choices"), np.random.default_rng(1)
    planned = design.power(nobs=150, **two(0.2))
    assert planned.exact and planned.error == 0.0
    counts = rng.binomial(150, 0.6, 600)
    fits = [pr.UniformityTest.from_counts([c, 150 - c], ["a", "b"]) for c in counts.tolist()]
    rejected = np.mean([fit.fit(0.2, rng=rng).reject for fit in fits])
    assert abs(rejected - planned) < 3 * 0.5 / math.sqrt(600)
    # the level is kept exactly, by the random number at the boundary
    assert design.power(nobs=150, epsilon=0.2, total_variation=0.0) == pytest.approx(0.05)


def test_what_is_found_reaches_the_power_and_no_less_does():
    design = UNIFORM(["yes", "no"], kind="choices")
    n = design.solve_power(power=0.8, **two(0.3))
    assert n.exact and n == int(n)
    assert design.power(nobs=int(n), **two(0.3)) >= 0.8 > design.power(nobs=int(n) - 1, **two(0.3))
    epsilon = design.solve_power(power=0.8, nobs=int(n), total_variation=0.1)
    assert 0.29 < epsilon <= 0.3
    distance = design.solve_power(power=0.8, nobs=int(n), epsilon=0.3)
    assert 0.099 < distance <= 0.1
    power = design.solve_power(nobs=int(n), **two(0.3))
    assert power == design.power(nobs=int(n), **two(0.3))
    assert design.solve_power(power=0.8, **two(0.1)) > n


def test_rankings_of_two_items_have_the_power_of_two_choices():
    phi, rankings = 0.4 / 0.6, UNIFORM(2, replicates=400)
    choices = UNIFORM(2, kind="choices").power(nobs=90, **two(0.5))
    power = rankings.power(nobs=90, phi=phi, epsilon=0.5)
    assert choices.exact and 0 < power.error < 0.03
    assert abs(power - choices) < 4 * power.error


def test_rankings_are_simulated_with_their_error():
    design, rng = UNIFORM(4, replicates=60), np.random.default_rng(2)
    n = design.solve_power(phi=0.6, epsilon=2.0, power=0.7)
    assert n == int(n) and 0 < n.error < 0.3 * n and not n.exact
    model = pr.Mallows(4, 0.6)
    fits = [pr.UniformityTest(model.rvs(int(n), rng)) for _ in range(60)]
    rejected = [fit.fit(2.0, draws=499, rng=rng).reject for fit in fits]
    assert abs(np.mean(rejected) - 0.7) < 3 * math.hypot(0.06, 0.04)


def test_effects_are_shown_as_they_are_stated():
    for design in (UNIFORM(5), IDENTITY(pr.Mallows(5, 0.6))):
        assert design._shown(design._read(0.8)) == pytest.approx(0.8)


def mallows(m, phi, center):
    """Probabilities of all rankings by the number of pairs in another order than the centre's."""
    pairs = list(combinations(range(m), 2))
    apart = np.array([
        sum((one[i] < one[j]) != (center[i] < center[j]) for i, j in pairs)
        for one in permutations(range(m))
    ])  # fmt: skip
    weights = phi**apart
    return weights / weights.sum()


@pytest.mark.parametrize("distance", [0.02, 0.3, 0.42])
def test_distances_of_rankings_are_those_of_all_their_probabilities(distance):
    center = np.array([2, 4, 1, 3])
    near = pr.Mallows(4, 0.45, center)
    designs = {
        UNIFORM(4): (np.full(24, 1 / 24), np.arange(4)),
        pr.power.ClosenessPower(4, shares=(2, 1)): (np.full(24, 1 / 24), np.arange(4)),
        UNIFORM(4, mode="local"): (np.full(24, 1 / 24), np.arange(4)),
        IDENTITY(near): (mallows(4, 0.45, center), center),
    }
    for design, (null, order) in designs.items():
        effect = design._stated(None, {"total_variation": distance})
        phi = design._shown(effect)
        assert np.abs(mallows(4, phi, order) - null).sum() / 2 == pytest.approx(distance, abs=1e-9)
        assert (phi > 0.45) or design != IDENTITY(near)
        again = design._stated(None, {"phi": phi})
        assert again == pytest.approx(effect, rel=1e-9) == design._stated(phi, {})


def test_plans_take_distances_of_rankings_wherever_they_take_phi():
    rankings, choices = UNIFORM(2, replicates=100), UNIFORM(2, kind="choices")
    # of two items the distance is that of two choices
    power = rankings.power(nobs=90, **two(0.5))
    assert abs(power - choices.power(nobs=90, **two(0.5))) < 4 * power.error
    phi = 0.4 / 0.6
    assert power == pytest.approx(float(rankings.power(nobs=90, phi=phi, epsilon=0.5)), abs=1e-9)
    n = rankings.solve_power(power=0.8, **two(0.5))
    assert n == rankings.solve_power(power=0.8, phi=phi, epsilon=0.5)
    assert UNIFORM(5)._shown(UNIFORM(5)._read_distance(1 - 1 / 120)) < 1e-20
    design = UNIFORM(3, replicates=20)
    at = {"total_variation": [0.1, 0.3], "nobs": 50, "epsilon": 1.0}
    ax = design.plot_power("effect", **at).axes[0]
    assert ax.get_xlabel() == "total variation" and ax.get_ylabel() == "power"
    drawn = [design.power(50, 1.0, total_variation=distance) for distance in (0.1, 0.3)]
    assert ax.lines[0].get_ydata().tolist() == drawn
    ax = design.plot_power(nobs=[50, 90], epsilon=1.0, total_variation=0.3).axes[0]
    assert ax.get_ylabel() == "power" and ax.lines[0].get_ydata()[0] == drawn[1]


def test_detectable_effects_come_from_the_same_engine():
    rng = np.random.default_rng(3)
    test = pr.IdentityTest.from_counts([60, 60, 60], [0.5, 0.3, 0.2], list("abc"))
    fit = test.fit(1.0, rng=rng)
    planned = IDENTITY([0.5, 0.3, 0.2]).solve_power(nobs=180, epsilon=1.0, power=0.8)
    found = fit.detectable_effect(0.8, replicates=400)
    assert abs(planned - found.total_variation) < 2 * planned.error
    two_sided = pr.IdentityTest.from_counts([60, 60], {"a": 0.5, "b": 0.5}).fit(1.0, rng=rng)
    assert "exact" in str(two_sided.detectable_effect(0.8))


def test_less_likely_first_categories_are_planned():
    smaller = IDENTITY([0.3, 0.7], method="binary", alternative="smaller")
    larger = IDENTITY([0.7, 0.3], method="binary", alternative="larger")
    at = {"nobs": 100, "epsilon": 1.0, "total_variation": 0.1}
    assert 0.5 < smaller.power(**at) == pytest.approx(float(larger.power(**at)), abs=1e-9)
    assert IDENTITY([0.3, 0.7], alternative="smaller").power(**at) == smaller.power(**at)


def test_the_bit_of_two_categories_is_planned_exactly():
    n, p, epsilon, tolerance = 60, 0.3, 0.4, 0.2
    design = IDENTITY([p, 1 - p], method="sigmoid", tolerance=tolerance)
    k = np.arange(n + 1)
    bit = expit(epsilon * (np.abs(k - n * p) - n * tolerance / 2))
    for distance in (0.0, 0.1, 0.2):
        summed = [binom.pmf(k, n, q) @ bit for q in (p + distance, p - distance)]
        planned = design.power(n, epsilon, distance)
        assert planned.exact and planned == pytest.approx(np.mean(summed), rel=1e-9)
    # it has no level
    assert design.power(n, epsilon, 0.2, alpha=0.3) == planned
    needed = design.solve_power(total_variation=0.2, epsilon=epsilon, power=0.9)
    below = design.power(int(needed) - 1, epsilon, 0.2)
    assert below < 0.9 <= design.power(int(needed), epsilon, 0.2)


def test_the_bit_of_more_categories_is_planned_as_fits_draw_it():
    n, epsilon, tolerance, apart = 9, 0.8, 0.3, 0.25
    design = IDENTITY([1 / 3] * 3, method="sigmoid", tolerance=tolerance)
    cells = [c for c in product(range(n + 1), repeat=3) if sum(c) == n]

    def distances(shares):
        weights = multinomial.pmf(cells, n, shares)
        return weights, np.abs(np.array(cells) / n - 1 / 3).sum(axis=1) / 2

    # the tolerance is reached with least distance on average by one of two patterns
    even, distance = distances([1 / 3] * 3)
    patterns = [[1 / 3 + s * tolerance, *[1 / 3 - s * tolerance / 2] * 2] for s in (1, -1)]
    means = [w @ d for w, d in map(distances, patterns)]
    middle = (even @ distance + min(means)) / 2
    bit = expit(epsilon * n * (distance - middle))
    alternative = distances([1 / 3 + apart, 1 / 3 - apart / 2, 1 / 3 - apart / 2])[0]
    for effect, weights in ((0.0, even), (apart, alternative)):
        planned = design.power(n, epsilon, effect)
        assert 0 < planned.error < 0.02
        assert abs(planned - weights @ bit) < 4 * planned.error
    rng, test = np.random.default_rng(4), pr.IdentityTest.from_counts
    counts = rng.multinomial(n, [1 / 3 + apart, *[1 / 3 - apart / 2] * 2], 500)
    fits = [test(row, "uniform", list("abc")) for row in counts]
    drawn = [f.fit(epsilon, method="sigmoid", tolerance=tolerance, rng=rng).reject for f in fits]
    assert np.mean(drawn) == pytest.approx(alternative @ bit, abs=4 * 0.5 / math.sqrt(500))


def test_an_estimate_is_a_number_that_says_its_error():
    n = UNIFORM(2, kind="choices").solve_power(power=0.8, **two(0.3))
    assert repr(n) == f"{n:.0f} respondents (no Monte Carlo error)" == f"{n}"
    assert n / 2 == int(n) / 2 and isinstance(n, float)
    for again in (pickle.loads(pickle.dumps(n)), copy.copy(n)):
        assert repr(again) == repr(n) and again.exact
    assert repr(pr.power.Estimate(0.9, 0.01, words="phi =")) == (
        "phi = 0.9 (Monte Carlo standard error 0.01)"
    )


def test_a_table_of_sizes_keeps_their_errors_as_the_guide_shows():
    page = Path(__file__).parents[2] / "docs" / "planning.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    (block,) = [block for block in blocks if "pd.DataFrame" in block]
    names = {}
    exec(compile(block, page.name, "exec"), names)
    table, sizes = names["table"], names["sizes"]
    assert list(table["std err"]) == [size.error for size in sizes] and min(table["std err"]) > 0
    said = re.findall(r"^# ([\d.]+) +([\d.]+) +([\d.]+)$", block, flags=re.M)
    shown = table.reset_index().to_numpy()
    np.testing.assert_allclose(np.array(said, dtype=float), shown, rtol=0.05)


def test_figures_have_a_line_for_each_number():
    design = UNIFORM(2, kind="choices")
    ax = design.plot_power(nobs=[50, 100, 200], **two([0.2, np.inf])).axes[0]
    assert [line.get_label() for line in ax.lines] == ["epsilon = 0.2", "non-private"]
    ax = design.plot_power("effect", nobs=50, epsilon=1.0, total_variation=[0.1, 0.2]).axes[0]
    assert ax.get_xlabel() == "total variation" and len(ax.lines) == 1
    figure = design.plot_power("epsilon", power=0.8, **two([0.1, 0.3, 1.0, np.inf]))
    drawn, plain = figure.axes[0].lines
    assert list(drawn.get_xdata()) == [0.1, 0.3, 1.0] and np.all(np.diff(drawn.get_ydata()) < 0)
    assert plain.get_label() == "non-private"
    assert figure.axes[0].get_ylabel() == "respondents"
    ax = design.plot_power("nobs", nobs=[50, 100], epsilon=1.0, power=0.8).axes[0]
    assert ax.lines[0].get_ydata()[0] > ax.lines[0].get_ydata()[1]  # effects that are found
    with pytest.raises(ValueError, match="exactly one of"):
        design.plot_power("epsilon", epsilon=[1.0], total_variation=0.1)
    with pytest.raises(ValueError, match="nobs and epsilon must not be lists"):
        design.plot_power("effect", nobs=[9, 19], epsilon=[0.1, 1], total_variation=[0.1, 0.2])
    with pytest.raises(ValueError, match="power must not be lists"):
        design.plot_power("epsilon", power=[0.8, 0.9], **two([0.1, 1.0]))


CHOICES, TABLE = UNIFORM(3, kind="choices"), IDENTITY([0.4, 0.3, 0.2, 0.1])
BAD = {
    "nothing left out": (
        lambda: CHOICES.solve_power(nobs=90, power=0.8, **two(1.0)),
        "exactly one of .* must be None",
    ),
    "too much left out": (
        lambda: CHOICES.solve_power(power=0.8, nobs=9),
        "epsilon, total_variation are",
    ),
    "no power": (lambda: CHOICES.solve_power(power=0.05, **two(1.0)), "between the level 0.05 and"),
    "half a person": (lambda: CHOICES.power(nobs=2.5, **two(1.0)), "nobs must be an integer"),
    "no effect stated": (
        lambda: CHOICES.power(nobs=25, epsilon=1.0),
        "total_variation must be given",
    ),
    "two effects": (
        lambda: UNIFORM(4).power(nobs=25, phi=0.5, **two(1.0)),
        "takes no total_variation= with another effect. State phi= or total_variation= once",
    ),
    "phi of choices": (
        lambda: CHOICES.power(nobs=25, phi=0.5, epsilon=1.0),
        "takes no phi=. State total_variation= once, or plan with kind='rankings'",
    ),
    "an effect twice": (
        lambda: UNIFORM(4).power(nobs=25, effect=0.5, **two(1.0)),
        "takes no total_variation= with another effect. State phi= or total_variation= once",
    ),
    "a distance of rankings": (
        lambda: UNIFORM(3).power(nobs=9, total_variation=0.9, epsilon=1.0),
        "total_variation must be between 0 and 0.8333",
    ),
    "a distance beyond uniformity": (
        lambda: IDENTITY(pr.Mallows(3, 0.5)).power(nobs=9, total_variation=0.3, epsilon=1.0),
        "between 0 and 0.2619",
    ),
    "no number": (
        lambda: UNIFORM(3).power(nobs=9, total_variation="far", epsilon=1.0),
        "total_variation must be between",
    ),
    "phi": (lambda: UNIFORM(4).power(nobs=25, phi=1.5, epsilon=1.0), "phi must lie between"),
    "a distance": (lambda: TABLE.power(nobs=9, total_variation=0.7, epsilon=1), "0 and 0.5"),
    "H0": (
        lambda: UNIFORM(4).solve_power(phi=1.0, epsilon=1.0, power=0.8),
        "phi = 1 is H0 itself",
    ),
    "too small an effect": (
        lambda: TABLE.solve_power(total_variation=1e-6, epsilon=1.0, power=0.8),
        "no nobs up to 100000000 reaches power 0.8",
    ),
    "too few": (
        lambda: TABLE.solve_power(nobs=20, total_variation=0.05, power=0.9),
        "no epsilon up to 1000 reaches power 0.9",
    ),
    "no effect": (
        lambda: TABLE.solve_power(nobs=10, epsilon=0.1, power=0.9),
        "no effect reaches power 0.9",
    ),
    "one item": (lambda: UNIFORM(1), "items must be between 2 and"),
    "a method": (
        lambda: UNIFORM(4, method="tv").power(nobs=9, phi=0.5, epsilon=1.0),
        "method must be one of",
    ),
    "few replicates": (lambda: UNIFORM(4, replicates=3), "replicates must be at least 20"),
    "processes": (lambda: UNIFORM(4, n_jobs=0), "n_jobs must be at least 1"),
    "a null of words": (lambda: IDENTITY("uniform"), "null must be a Mallows model or prob"),
    "one bit": (lambda: IDENTITY([0.5, 0.5], method="sigmoid"), "tolerance is"),
    "a tolerance of a level": (lambda: IDENTITY([0.5, 0.5], tolerance=0.1), "tolerance is"),
    "a tolerance": (lambda: IDENTITY([0.5, 0.5], method="sigmoid", tolerance=1.0), "in .0, 1."),
    "one bit of a given null": (
        lambda: IDENTITY([0.5, 0.3, 0.2], method="sigmoid", tolerance=0.1),
        "method must be one of",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    call, words = BAD[case]
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_a_size_at_which_a_fit_is_refused_finds_nothing():
    # the guarantee of the truncated test needs more rankings than the search starts from
    design = pr.power.UniformityPower(10, method="truncated", replicates=20)
    with pytest.raises(ValueError, match="private with level 0.05 only for a bias"):
        design.power(nobs=200, phi=0.9, epsilon=1.0)
    needed = design.solve_power(phi=0.9, epsilon=1.0, power=0.8)
    assert needed > 200 and design.power(nobs=int(needed), phi=0.9, epsilon=1.0) > 0.5
