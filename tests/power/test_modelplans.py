"""Plans of models: what they predict is what fits give, and they refuse what is no plan."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import privrank as pr

NAMES = [str(number) for number in range(4)]


def survey(rng, worths, nobs, rows):
    """Return comparisons of random pairs, `rows` of each respondent, by an order of theirs."""
    first, second = np.triu_indices(len(worths), 1)
    asked = rng.random((nobs, len(first))).argsort(axis=1)[:, :rows].ravel()
    felt = np.repeat(worths + rng.gumbel(size=(nobs, len(worths))), rows, axis=0)
    each = np.arange(len(asked))
    ahead = felt[each, first[asked]] > felt[each, second[asked]]
    return pd.DataFrame(
        {
            "item1": np.array(NAMES)[first[asked]],
            "item2": np.array(NAMES)[second[asked]],
            "outcome": np.where(ahead, 1, -1),
            "respondent": np.repeat(np.arange(nobs), rows),
        }
    )


@pytest.mark.parametrize("design", ["public", "private"])
def test_a_contrast_is_separated_as_often_as_predicted(design):
    plan = pr.power.BTLPower(items=4, max_rows=6, design=design)
    found, errors, runs = 0, [], 40
    for run in range(runs):
        rng = np.random.default_rng([1, run])
        frame = survey(rng, np.array([0.2, -0.2, 0.0, 0.0]), 150, 6)
        model = pr.PrivateBTL(
            frame, items=NAMES, respondent="respondent", max_rows=6, design=design
        )
        result = model.fit(1.0, rng=rng)
        found += result.t_test([1.0, -1.0, 0.0, 0.0]).pvalue <= 0.05
        covariance = result.cov_params().to_numpy()
        errors.append(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    power = plan.power(nobs=150, epsilon=1.0, contrast=0.4)
    assert abs(found / runs - power) < 3.5 * math.sqrt(power * (1 - power) / runs)
    # what is found with power 1/2 is the half width of an interval
    half = plan.solve_power(150, 1.0, power=0.5)
    assert half == pytest.approx(1.96 * math.sqrt(np.median(errors)), rel=0.2)


def test_the_top_is_separated_as_often_as_predicted():
    plan = pr.power.TopKPower(items=4, k=1, max_rows=3, design="private")
    worths, found, runs = np.array([0.6, 0.0, 0.0, 0.0]), 0, 50
    for run in range(runs):
        rng = np.random.default_rng([2, run])
        frame = survey(rng, worths, 300, 3)
        model = pr.PrivateTopK(frame, 1, items=NAMES, respondent="respondent", max_rows=3)
        result = model.fit(1.0, rng=rng)
        found += result.pvalue <= 0.05 and result.selected == ("0",)
    power = plan.power(nobs=300, epsilon=1.0, gap=0.6)
    assert abs(found / runs - power) < 3.5 * math.sqrt(power * (1 - power) / runs)


def test_a_consensus_loses_what_is_predicted():
    plan = pr.power.AggregationPower(items=5, replicates=40)
    wide = pr.power.AggregationPower(items=5, loss="width", replicates=40)
    model, losses, widths = pr.Mallows(5, phi=0.8), [], []
    for run in range(25):
        rng = np.random.default_rng([3, run])
        ranks = pd.DataFrame(model.rvs(150, rng), columns=list("abcde"))
        result = pr.PrivateRankAggregation(ranks).fit(0.5, rng=rng)
        limits = result.rank_conf_int()
        widths.append((limits["upper"] - limits["lower"]).mean())
        order = ["abcde".index(item) for item in result.order]
        pairs = [(i, j) for place, i in enumerate(order) for j in order[place + 1 :] if i > j]
        losses.append(sum(2 * model.pair_probability(j, i) - 1 for i, j in pairs) / 10)
    for found, predicted in (
        (losses, plan.power(nobs=150, epsilon=0.5, phi=0.8)),
        (widths, wide.power(nobs=150, epsilon=0.5, phi=0.8)),
    ):
        error = math.hypot(np.std(found) / 5.0, predicted.error)
        assert abs(np.mean(found) - predicted) < 3.5 * error


@pytest.mark.parametrize("method", ["kwiksort", "kwiksort-hay", "exponential"])
def test_orders_of_two_items_lose_what_follows_by_hand(method):
    """The wrong order of two items, from the distributions of votes and of the noise."""
    nobs, epsilon, phi = 41, 0.25, 0.5
    right = 1.0 / (1.0 + phi)
    votes = np.arange(nobs + 1)
    shares = binom.pmf(votes, nobs, right)
    if method == "exponential":  # the scores are the votes against, which move by one
        wrong = 1.0 / (1.0 + np.exp(0.5 * epsilon * (2 * votes - nobs)))
    else:  # one noisy count of a sensitivity of one; there are no ties of 41 votes
        noise = np.arange(-200, 201)
        mass = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(noise))
        wrong = np.array([mass[2 * (count + noise) < nobs].sum() for count in votes])
    expected = shares @ wrong * (2.0 * right - 1.0)
    plan = pr.power.AggregationPower(items=2, method=method, replicates=900)
    predicted = plan.power(nobs=nobs, epsilon=epsilon, phi=phi)
    assert abs(predicted - expected) < 3.5 * predicted.error
    assert predicted.error < 0.12 * expected


def test_a_delta_makes_sorts_lose_less():
    plan = pr.power.AggregationPower(items=15, method="kwiksort", replicates=40)
    pure, gaussian = (plan.power(400, 0.5, phi=0.8, delta=delta) for delta in (0.0, 1e-6))
    assert gaussian < 0.7 * pure
    drawn = pr.power.AggregationPower(items=4, method="exponential")
    with pytest.raises(ValueError, match="Leave delta out"):
        drawn.power(400, 0.5, phi=0.8, delta=1e-6)


PLANS = [
    (pr.power.BTLPower(items=4, max_rows=6, replicates=40), "contrast", 0.8, 0.8),
    (pr.power.BTLPower(items=4, mode="local", replicates=40), "contrast", 1.0, 0.8),
    (pr.power.TopKPower(items=4, k=2, design="public", replicates=40), "gap", 1.0, 0.8),
    (pr.power.AggregationPower(items=4, replicates=40), "phi", 0.8, 0.01),
]


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "effect", "size", "target"), PLANS)
def test_solving_is_the_inverse_of_predicting(plan, effect, size, target):
    goal = {plan.outcome: target}
    nobs = plan.solve_power(epsilon=1.0, **{effect: size}, **goal)
    predicted = plan.power(int(nobs), 1.0, size)
    assert abs(predicted - target) < 3.0 * predicted.error + 0.02 * target
    if effect != "phi":
        found = plan.solve_power(nobs=int(nobs), epsilon=1.0, **goal)
        assert abs(found - size) < 3.0 * found.error
    assert plan.solve_power(int(nobs), 1.0, size) == predicted


def test_answers_are_counted_in_units():
    rows = pr.power.BTLPower(items=4, unit="row", replicates=20)
    assert rows.solve_power(epsilon=1.0, contrast=1.0, power=0.8).words == "comparisons"
    pairs = pr.power.TopKPower(items=4, k=1, max_rows=6, design="public", replicates=20)
    assert pairs.solve_power(epsilon=1.0, gap=1.0, power=0.8).words == "respondents"
    # the least that is looked for is enough
    least = pairs.solve_power(epsilon=math.inf, gap=4.0, power=0.1)
    assert least <= 8 and least.error > 0
    single = pr.power.TopKPower(items=4, k=1, design="public", replicates=20)
    assert single.solve_power(40_000, gap=4.0, power=0.1) == pytest.approx(1e-3, abs=0)
    with pytest.raises(ValueError, match="nobs must be between 2 and 699050"):
        pairs.power(10**6, 1.0, 1.0)


def test_the_power_says_what_it_supposes_whichever_way_it_is_asked_for():
    plan = pr.power.BTLPower(items=3, max_rows=3, design="public", replicates=20)
    asked = plan.power(nobs=40, epsilon=1.0, contrast=1.0)
    solved = plan.solve_power(nobs=40, epsilon=1.0, contrast=1.0)
    assert str(asked) == str(solved) and asked.assumption == "all other items alike"
    with pytest.raises(TypeError, match="takes no power="):
        plan.power(nobs=40, epsilon=1.0, contrast=1.0, power=0.8)


def test_reports_that_do_not_connect_all_items_say_nothing():
    facts = {"items": 5, "mode": "local", "replicates": 40}
    at_random = np.mean([0.5 - _losing(pair, 0.7) for pair in (1, 1, 1, 1, 2, 2, 2, 3, 3, 4)])
    assert pr.power.AggregationPower(**facts).power(2, 1.0, 0.7) == pytest.approx(at_random)
    wide = pr.power.AggregationPower(**facts, loss="width")
    assert wide.power(2, 1.0, 0.7) == 4.0
    few = pr.power.AggregationPower(**{**facts, "items": 12})
    by_size = [few.power(nobs, 2.0, 0.7) for nobs in (5, 20, 80, 1000)]
    assert by_size == sorted(by_size, reverse=True)


def _losing(gap, phi):
    """Return how probable it is that the worse of two items so far apart is ranked first."""
    return 1.0 - pr.Mallows(5, phi=phi).pair_probability(0, gap)


def test_the_only_other_item_is_in_the_middle():
    three = pr.power.BTLPower(items=3, worths=2.0, replicates=20)
    assert three._worths(1.0).tolist() == [0.5, -0.5, 0.0]


def test_power_grows_with_what_it_should():
    facts = {"items": 6, "max_rows": 15, "design": "public", "replicates": 40}
    plan = pr.power.BTLPower(**facts)
    by_size = [plan.power(n, 1.0, 0.4) for n in (100, 200, 400)]
    assert by_size == sorted(by_size)
    by_epsilon = [plan.power(200, e, 0.4) for e in (0.5, 1.0, math.inf)]
    assert by_epsilon == sorted(by_epsilon)
    assert plan.power(200, 1.0, -0.4) == plan.power(200, 1.0, 0.4)
    spread = pr.power.BTLPower(**facts, worths=3.0)
    assert spread.power(200, 1.0, 0.4) < plan.power(200, 1.0, 0.4)
    # without an effect, the level
    assert plan.power(200, 1.0, 0.0) == pytest.approx(0.05, abs=0.04)


def test_a_plan_for_rankings_finds_what_fits_of_rankings_do():
    plan = pr.power.BTLPower(items=4, max_rows=6, design="public")
    worths, found, runs = np.array([0.25, -0.25, 0.0, 0.0]), 0, 60
    for run in range(runs):
        rng = np.random.default_rng([3, run])
        ranks = np.argsort(np.argsort(-(worths + rng.gumbel(size=(120, 4))))) + 1
        frame = pr.as_comparisons(pd.DataFrame(ranks, columns=NAMES), "rankings")
        model = pr.PrivateBTL(
            frame, items=NAMES, respondent="respondent", max_rows=6, design="public"
        )
        result = model.fit(1.0, rng=rng)
        found += result.t_test([1.0, -1.0, 0.0, 0.0]).pvalue <= 0.05
    power = plan.power(nobs=120, epsilon=1.0, contrast=0.5)
    error = math.sqrt(power * (1 - power) / runs)
    assert abs(found / runs - power) < 2.5 * error


def test_other_forms_are_planned():
    for settings in (
        {"method": "objective"},
        {"dependence": "pairs"},
        {"dependence": "pairs", "design": "public"},
        {"mode": "local", "max_rows": 1},
    ):
        plan = pr.power.BTLPower(**{"items": 4, "max_rows": 6, "replicates": 20, **settings})
        assert 0.05 < plan.power(300, 1.0, 0.5) <= 1
    facts = {"items": 4, "max_rows": 6, "dependence": "pairs", "replicates": 40}
    right = pr.power.TopKPower(k=2, aim="right", **facts)
    apart = pr.power.TopKPower(k=2, **facts)
    assert right.power(200, 1.0, 0.4) > apart.power(200, 1.0, 0.4)
    worths = pd.Series([1.0, 0.7, 0.0, -0.4], index=["a", "b", "c", "d"])
    given = pr.power.TopKPower(k=2, worths=worths, **facts)
    assert given._worths(0.5) == pytest.approx(worths - [0.2, 0.2, 0.0, 0.0] + 0.1 - 0.325)
    for loss in ("excess", "width"):
        local = pr.power.AggregationPower(items=4, mode="local", loss=loss, replicates=20)
        assert 0 < local.power(1200, 2.0, 0.7) < 3


def test_figures_have_a_line_for_each_number():
    plan = pr.power.BTLPower(items=4, max_rows=6, design="public", replicates=20)
    figure = plan.plot_power("nobs", nobs=[50, 100], epsilon=[0.5, 1.0], contrast=0.4)
    assert len(figure.axes[0].lines) == 2
    top = pr.power.TopKPower(items=4, k=1, max_rows=6, design="public", replicates=20)
    assert top.plot_power("epsilon", nobs=100, epsilon=[0.5, 1.0], gap=0.4).axes
    order = pr.power.AggregationPower(items=4, replicates=20)
    assert order.plot_power("effect", nobs=100, epsilon=0.5, phi=[0.7, 0.9]).axes


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: pr.power.BTLPower(items=1), "items must"),
        (lambda: pr.power.BTLPower(items=4, max_rows=7), "max_rows must"),
        (lambda: pr.power.BTLPower(items=4, max_rows=2, unit="row"), "max_rows must be 1"),
        (lambda: pr.power.BTLPower(items=4, worths=[1.0]), "worths must"),
        (lambda: pr.power.BTLPower(items=4, worths="a"), "worths must"),
        (lambda: pr.power.BTLPower(items=4, mode="far"), "mode must"),
        (lambda: pr.power.BTLPower(items=4).power(100, 1.0), "contrast must be given"),
        (
            lambda: pr.power.BTLPower(items=4).power(100, 1.0, 0.4, contrast=0.5),
            "BTLPower takes no contrast= with another effect. State contrast= once",
        ),
        (
            lambda: pr.power.BTLPower(items=4, mode="local").power(100, 1.0, 0.5, delta=0.1),
            "delta must be 0",
        ),
        (lambda: pr.power.BTLPower(items=4).solve_power(100, 1.0, power=None), "exactly one"),
        (lambda: pr.power.BTLPower(items=4).power(100, 1.0, "big"), "contrast must be a finite"),
        (lambda: pr.power.BTLPower(items=4).power(100, 1.0, math.nan), "contrast must be a finite"),
        (lambda: pr.power.AggregationPower(items=4).power(100, 1.0, "a"), "phi must"),
        (lambda: pr.power.BTLPower(items=4, mode="local", unit="row"), "unit is a setting"),
        (lambda: pr.power.BTLPower(items=4, mode="local", method="counts"), "method is a setting"),
        (
            lambda: pr.power.BTLPower(items=4, unit="row", dependence="pairs").power(9, 1.0, 0.5),
            "dependence='pairs' concerns the answers of one respondent",
        ),
        (lambda: pr.power.TopKPower(items=4, k=2).power(100, 1.0, -0.5), "gap must not be"),
        (lambda: pr.power.TopKPower(items=4, k=4), "k must"),
        (lambda: pr.power.TopKPower(items=4, k=1, worths=[0, 1, 2, 3]), "worths must"),
        (lambda: pr.power.TopKPower(items=4, k=1, worths="a"), "worths must"),
        (lambda: pr.power.AggregationPower(items=4, method="copeland"), "method must"),
        (
            lambda: pr.power.AggregationPower(items=4, method="kwiksort", loss="width"),
            "method='kwiksort' has no rank sets in private fits. Use loss='excess'",
        ),
        (
            lambda: pr.power.AggregationPower(items=21, method="exponential").power(9, 1.0, 0.5),
            "at most 20 items",
        ),
        (
            lambda: pr.power.AggregationPower(items=4, mode="local", method="borda"),
            "method and releases",
        ),
        (lambda: pr.power.AggregationPower(items=4).power(100, 1.0, 1.0), "phi must"),
        (
            lambda: pr.power.AggregationPower(items=4).solve_power(100, 1.0, excess=0.9),
            "excess must",
        ),
        (
            lambda: pr.power.AggregationPower(items=4).solve_power(100, 1.0, excess=0.1),
            "phi cannot be found from excess",
        ),
        (
            lambda: pr.power.AggregationPower(items=4).solve_power(9, 1.0, width=1),
            "takes no width=",
        ),
        (
            lambda: pr.power.AggregationPower(items=4, mode="local").power(9, 1.0, 0.5, delta=0.1),
            "delta must be 0",
        ),
    ],
)
def test_what_is_no_plan_is_refused_briefly(build, words):
    with pytest.raises((TypeError, ValueError), match=words):
        build()
