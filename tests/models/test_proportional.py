"""Pair counts from item counts: estimates, their errors, the check, and what is refused."""

import math
from dataclasses import replace
from functools import reduce
from operator import matmul

import numpy as np
import pandas as pd
import pytest
from planting import planted

import privrank as pr
from privrank.bradley_terry import equations as readings
from privrank.bradley_terry.dependence import independent_scores
from privrank.bradley_terry.equations import released_degrees, score_equations
from privrank.bradley_terry.paircounts import Matching, halves, item_weights, matched_counts
from privrank.results.claims import CLAIMS

ITEMS = tuple("abcdefgh")
FIRST, SECOND = np.triu_indices(len(ITEMS), 1)
WORTHS = np.linspace(-1.2, 1.2, len(ITEMS))
POPULARITY = np.array([3.0, 1.0, 2.0, 1.5, 1.0, 2.5, 1.2, 2.0])
ROW = {"items": ITEMS, "respondent": None, "pair_counts": "proportional"}
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def survey(n=20_000, seed=0, correlation=0.0, ties=False, rows=1, items=ITEMS, weights=1.0):
    rng, m = np.random.default_rng(seed), len(items)
    first, second = np.triu_indices(m, 1)
    probability = POPULARITY[first] * POPULARITY[second]
    probability = probability * (1.0 + correlation * WORTHS[first] * WORTHS[second]) * weights
    pair = rng.choice(len(first), n, p=probability / probability.sum())
    apart = WORTHS[first[pair]] - WORTHS[second[pair]] + rng.logistic(size=n)
    outcome = np.sign(np.where(np.abs(apart) < 0.3 * ties, 0, apart)).astype(int)
    named = np.array(items)
    columns = {"item1": named[first[pair]], "item2": named[second[pair]], "outcome": outcome}
    return pd.DataFrame(columns | {"respondent": np.arange(n) // rows})


@pytest.fixture(scope="module")
def fit():
    return pr.PrivateBTL(survey(), **ROW).fit(1.0, rng=np.random.default_rng(1))


@pytest.fixture(scope="module")
def equations(fit):
    return score_equations(fit.release)


@pytest.mark.parametrize("beta", [0.0, 0.2, -0.1])
def test_weights_reproduce_the_counts_of_items(beta):
    x = np.array([5.0, 1.0, 0.2, 0.01, 3.0])
    weights = np.exp(-beta * np.abs(np.arange(5)[:, None] - np.arange(5)))
    np.fill_diagonal(weights, 0.0)
    assert np.allclose(item_weights(x * (weights @ x), weights), x, rtol=1e-9)
    uneven = np.array([98.0, 40.0, 30.0, 30.0])  # one item is in nearly all comparisons
    others = np.ones((4, 4)) - np.eye(4)
    found = item_weights(uneven, others)
    assert np.allclose(found * (others @ found), uneven, rtol=1e-9)


def test_the_release_holds_the_counts_of_items(fit, equations):
    part = fit.release.parts["wins and losses"]
    assert part.values.sum() == 0  # zero-sum noise on wins and minus losses
    won, lost = part.step * part.values.reshape(2, -1)
    assert np.allclose(released_degrees(equations), won - lost, rtol=1e-9)
    assert np.allclose(equations.score, 0.5 * (won + lost))
    spent = {name: part.epsilon for name, part in fit.release.parts.items()}
    assert spent == pytest.approx({"wins and losses": 0.95, "opponents": 0.05})
    assert np.abs(fit.params - WORTHS).max() < 0.15
    again = pr.Release.from_json(fit.release.to_json())
    assert again.design.pairs.origin == "proportional"
    assert pr.PrivateBTL.from_release(again).params.equals(fit.params)


def fitted_again(fit, change, of):
    """The pair counts after a change of what was released of one part."""
    values = dict(fit.release.values)
    values[of] = values[of] + change
    return matched_counts(replace(fit.release, values=values))[0].pairs.count


def net_slopes(equations, mean):
    """J: the slopes of expected net wins by item counts, given the mean score of each pair."""
    scores = equations.linear.scores_by(np.arange(len(mean)), mean)
    return 2.0 * reduce(matmul, equations.matching.by_counts, scores.T)


def by_beta(equations, mean):
    return equations.linear.scores(equations.matching.slopes * mean)


def drawn_noise(equations, b, draws):
    return equations.simulate_noise(b, draws, [*equations.terms.values()], b, None)


def test_slopes_are_derivatives_of_expected_net_wins(fit, equations):
    """J by differences: item counts move beta and the pair counts, these the expected nets."""
    t, m, matching = WORTHS[FIRST] - WORTHS[SECOND], len(ITEMS), equations.matching
    mean, step = 2.0 * equations.function.mean(t), fit.release.parts["wins and losses"].step
    slopes = net_slopes(equations, 0.5 * mean)
    assert np.isfinite(matching.error) and matching.beta != 0.0

    def expected(change, of):
        return equations.linear.scores(fitted_again(fit, change, of) * mean)

    for item in range(m):
        change = np.zeros(2 * m, dtype=np.int64)
        change[[item, m + item]] = 2, -2  # of wins and of minus losses: four steps of comparisons
        moved = expected(change, "wins and losses") - expected(-change, "wins and losses")
        np.testing.assert_allclose(moved / (8 * step), slopes[:, item], atol=2e-4)
    moved = expected(np.array([5]), "opponents") - expected(np.array([-5]), "opponents")
    of_beta = by_beta(equations, mean)
    np.testing.assert_allclose(moved / 10, of_beta, atol=1e-5)
    assert np.abs(of_beta).max() > 0.05
    # the counts of items and Q explain all of the expected nets
    sum_alike = float(matching.alike @ equations.pairs.count)
    explained = slopes @ released_degrees(equations) + of_beta * sum_alike
    assert np.allclose(explained, expected(0, "opponents"))
    assert np.allclose(slopes.sum(axis=0), 0.0, atol=1e-10)


def test_beta_is_where_released_opponents_are_expected(fit, equations):
    count, matching = equations.pairs.count, equations.matching
    part = fit.release.parts["opponents"]
    assert count @ matching.alike == pytest.approx(part.step * part.values[0], abs=1e-6)
    assert abs(matching.beta) < 3.0 * matching.error < 0.1


def check_noise(equations):
    m, b, matching = len(ITEMS), WORTHS, equations.matching
    mean = equations.function.mean(equations.linear.predict(b))
    slopes, beta = net_slopes(equations, mean), by_beta(equations, mean)
    noise = equations.by_item
    v = 0.25 * noise.step**2 * noise.distribution.variance * (2 * m) / (2 * m - 1)
    exact = 2.0 * v * (np.eye(m) - 1.0 / m + slopes @ slopes.T)
    exact += matching.noise.variance * np.outer(beta, beta)
    centred = equations.linear.centred
    assert np.allclose(centred(centred(equations.noise_covariance(b)).T), exact)
    draws = centred(drawn_noise(equations, b, 40_000))
    assert np.allclose(np.cov(draws.T), exact, atol=0.05 * np.diag(exact).max())
    along = equations.linear.predict(np.eye(m) - np.roll(np.eye(m), 1, axis=1))
    t = np.tile(equations.linear.predict(b), (m, 1))
    added = equations.count_noise(along, t)
    contrasts = np.eye(m) - np.roll(np.eye(m), 1, axis=1)
    of_items = noise.score_variance * ((contrasts @ slopes) ** 2).sum(axis=1)
    assert np.allclose(added, of_items + matching.noise.variance * (contrasts @ beta) ** 2)


def test_noise_is_carried_into_the_scores(equations):
    check_noise(equations)


def test_public_noise_does_not_depend_on_the_order_in_which_items_are_listed(fit, equations):
    order = np.random.default_rng(4).permutation(len(ITEMS))
    values = dict(fit.release.values)
    values["wins and losses"] = values["wins and losses"].reshape(2, -1)[:, order].ravel()
    design = fit.release.design
    survey = replace(design, items=tuple(design.items[k] for k in order))
    listed = score_equations(replace(fit.release, survey=survey, values=values))
    drawn = drawn_noise(equations, WORTHS, 50)[:, order]
    np.testing.assert_allclose(drawn_noise(listed, WORTHS[order], 50), drawn, atol=1e-6)


@pytest.mark.parametrize(
    ("owner", "method", "old", "new"),
    [
        (Matching, "by_counts", "multiply(", "multiply(0.0 * "),  # as if item counts were exact
        (
            Matching,
            "by_counts",
            "multiply(",
            "multiply(0.5 * ",
        ),  # as if they moved scores, not net wins
        (
            Matching,
            "by_counts",
            "-(self.alike",
            "-0.0 * (self.alike",
        ),  # as if they did not move beta
        (readings, "_counts", "matching.noise, 1.0", "matching.noise, 0.0"),  # as if Q were exact
    ],
)
def test_noise_that_item_counts_do_not_carry_would_be_found(
    fit, monkeypatch, owner, method, old, new
):
    planted(monkeypatch, owner, method, old, new)
    equations = score_equations(replace(fit.release))
    with pytest.raises(AssertionError):
        check_noise(equations)
        test_slopes_are_derivatives_of_expected_net_wins(fit, equations)


def test_the_covariance_given_item_counts_is_that_of_poisson_pairs(fit, equations):
    """With beta: scores less what item counts and Q, which is fitted, explain of them."""
    rng, t, matching = (
        np.random.default_rng(2),
        equations.linear.predict(WORTHS),
        equations.matching,
    )
    count = rng.poisson(equations.pairs.count, (20_000, len(FIRST)))
    won = rng.binomial(count, fit.link.probability(t))
    scores = np.array([equations.linear.scores(row) for row in won - 0.5 * count])
    items = count @ abs(equations.linear.matrix)
    mean = equations.function.mean(t)
    left = scores - 0.5 * items @ net_slopes(equations, mean).T
    left -= np.outer(count @ matching.alike, by_beta(equations, mean))
    given = independent_scores(equations, fit.release, WORTHS)
    assert np.allclose(np.cov(left.T), given, atol=0.04 * np.diag(given).max())
    least = equations.linear.information(equations.spread(t))
    assert np.linalg.eigvalsh(given - least).min() > -1e-8 * np.diag(given).max()


@quiet
def test_all_that_is_asked_of_a_result_has_an_answer(fit):
    assert fit.design_effect == 1.0
    assert (fit.bse_privacy > 0).all() and (fit.bse > fit.bse_sampling).all()
    inside = fit.conf_int()
    assert ((inside["lower"] < fit.params) & (fit.params < inside["upper"])).all()
    assert fit.test_homogeneity().pvalue < 0.01
    ranks = fit.rank_conf_int()
    assert (ranks["lower"] <= fit.ranks()).all() and (fit.ranks() <= ranks["upper"]).all()
    assert fit.t_test("a = h").summary() is not None
    other = pr.PrivateBTL(survey(seed=1), **ROW).fit(1.0, rng=np.random.default_rng(2))
    both = pr.pool([fit, other], survey="different")
    assert np.abs(both.params - WORTHS).max() < 0.1 and (both.bse < fit.bse).all()


@quiet
@pytest.mark.parametrize("dependence", ["auto", "worst", "pairs", "none"])
def test_respondents_with_ties_and_dependence(dependence):
    frame = survey(4000, ties=True, rows=4)
    given = ROW | {"respondent": "respondent", "max_rows": 4, "ties": True}
    model = pr.PrivateBTL(frame, **given, distinct_pairs=False)
    fit = model.fit(4.0, dependence=dependence, rng=np.random.default_rng(3))
    assert ("dependence" in fit.release.parts) == (dependence != "none")
    part = fit.release.parts["wins and losses"]
    assert part.step * part.sensitivity == pytest.approx(16) and 0.5 % part.step == 0
    assert math.fsum(p.epsilon for p in fit.release.parts.values()) == pytest.approx(4.0)
    assert np.isfinite(fit.pairwise()[["lower", "upper"]]).all(axis=None)


@quiet
def test_the_check_finds_opponents_alike_and_the_fit_allows_for_it(fit, equations):
    assert equations.matching.pvalue > 0.05
    text = " ".join(str(fit.summary()).split())
    assert CLAIMS["matched"] in text
    assert "Checked: whether items met" in text and "Warning" not in text
    assert "5% for the check of opponents" in " ".join(str(fit.summary(details=True)).split())
    alike = pr.PrivateBTL(survey(correlation=0.3), **ROW)
    allowed = alike.fit(1.0, rng=np.random.default_rng(1))
    matching = score_equations(allowed.release).matching
    assert matching.pvalue < 0.01
    assert matching.beta > 5.0 * matching.error
    assert f"beta = {matching.beta:.4f}" in " ".join(str(allowed.summary()).split())
    without = alike.fit(1.0, shares={"opponents": 0}, rng=np.random.default_rng(1))
    off = [np.abs(one.params - WORTHS).max() for one in (allowed, without)]
    assert off[0] < 0.5 * off[1]


def test_what_beta_cannot_allow_for_is_warned_of(fit):
    near = np.exp(-0.4 * np.abs(FIRST - SECOND))
    with pytest.warns(
        pr.PrivrankWarning, match="depends on worth more than intervals can allow for"
    ):
        pr.PrivateBTL(survey(weights=near), **ROW).fit(1.0, rng=np.random.default_rng(1))
    few = pr.PrivateBTL(survey(2000, weights=near), **ROW)
    with pytest.warns(pr.PrivrankWarning, match="their own half of the ranking as often as"):
        found = few.fit(1.0, shares={"opponents": 0.01}, rng=np.random.default_rng(5))
    assert np.isinf(score_equations(found.release).matching.error)


def test_the_check_can_be_left_out():
    model = pr.PrivateBTL(survey(), **ROW)
    fit = model.fit(1.0, shares={"opponents": 0}, rng=np.random.default_rng(1))
    assert fit.release.parts.keys() == {"wins and losses"}
    assert "Not checked: whether opponents" in " ".join(str(fit.summary()).split())
    with pytest.raises(ValueError, match="shares must be positive"):
        model.fit(1.0, shares={"output": 0})


def test_halves_are_those_of_released_win_rates(fit):
    assert halves(fit.release).tolist() == [-1] * 4 + [1] * 4


def test_items_that_do_not_stand_out_are_not_identified():
    frame = survey(4000)
    rare = (frame[["item1", "item2"]] == "h").any(axis=1).to_numpy()
    frame = frame[~rare | (np.cumsum(rare) <= 30)]
    with pytest.warns(pr.PrivrankWarning, match="Not identified: h. Their noisy comparison counts"):
        fit = pr.PrivateBTL(frame, **ROW).fit(2.0, rng=np.random.default_rng(4))
    assert fit.params.isna().tolist() == [False] * 7 + [True]
    assert np.isfinite(fit.conf_int().iloc[:7]).all(axis=None)
    with pytest.warns(pr.PrivrankWarning, match="No differences are identified"):
        none = pr.PrivateBTL(survey(200), **ROW).fit(0.5, rng=np.random.default_rng(4))
    assert none.params.isna().all()


def test_one_item_in_all_comparisons_identifies_nothing():
    frame = survey()
    frame = frame[(frame[["item1", "item2"]] == "a").any(axis=1)]
    with pytest.warns(pr.PrivrankWarning, match="one item is in nearly all"):
        pr.PrivateBTL(frame, **ROW).fit(4.0, rng=np.random.default_rng(5))


@quiet
def test_the_default_names_what_would_cost_less():
    frame, given = survey(3000), ROW | {"pair_counts": None}
    alone = pr.PrivateBTL(frame, **given)
    wide = alone.fit(1.0, method="counts", shares={"pair_counts": 0.05}, noise="zero-sum-laplace",
                     rng=np.random.default_rng(6))  # fmt: skip
    text = " ".join(str(wide.summary()).split())
    sentence = CLAIMS["costly counts"]
    assert (sentence in text) == ("pair_counts" in wide.release.parts)
    assert sentence in text and "pair_counts='proportional'" in text
    narrow = alone.fit(50.0, method="counts", noise="zero-sum-laplace",
                       rng=np.random.default_rng(6))  # fmt: skip
    assert "proportional" not in str(narrow.summary())


@quiet
def test_without_noise_the_counts_that_were_met_are_used():
    frame = survey(2000)
    exact = [pr.PrivateBTL(frame, **ROW | {"pair_counts": counts}).fit(np.inf)
             for counts in ("proportional", None)]  # fmt: skip
    assert exact[0].params.equals(exact[1].params)
    assert "matched at random" not in str(exact[0].summary())


REFUSED = [
    ({}, {"method": "objective"}, "without covariates under the logit"),
    ({"link": "probit"}, {}, "without covariates under the logit"),
    (
        {},
        {"noise": "permutohedron"},
        "noise='permutohedron' cannot be used for the wins and losses",
    ),
    (
        {},
        {"noise": "gaussian", "delta": 1e-6},
        "noise='gaussian' cannot be used for the wins and losses",
    ),
]


@pytest.mark.parametrize(("arguments", "options", "words"), REFUSED)
def test_what_is_not_proved_is_refused_for_nothing(arguments, options, words):
    budget = pr.Budget(epsilon=1.0, delta=1e-5, unit="row")
    model = pr.PrivateBTL(survey(500), **ROW, **arguments)
    with pytest.raises(ValueError, match=words):
        model.fit(1.0, **options, budget=budget)
    assert budget.left[0] == 1.0


def test_other_models_refuse_it(fit):
    frame = survey(500)
    with pytest.raises(ValueError, match="needs at least 4 items"):
        pr.PrivateBTL(frame[frame["item1"].isin(list("abc")) & frame["item2"].isin(list("abc"))],
                      **ROW | {"items": tuple("abc")})  # fmt: skip
    with pytest.raises(ValueError, match="pair_counts='proportional' is for the worths"):
        pr.PrivateTopK(frame, k=2, **ROW)
    with pytest.raises(ValueError, match="link must be 'logit'"):
        pr.PrivateBTL.from_release(fit.release, link="probit")
    grouped = frame.assign(g=np.where(np.arange(len(frame)) % 2, "x", "y"))
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ g", grouped, **ROW, levels={"g": ["x", "y"]}
    )
    with pytest.raises(ValueError, match="without covariates"):
        model.fit(1.0)
    with pytest.raises(ValueError, match="must be left out if design='public'"):
        pr.PrivateBTL(frame, **ROW, design="public")


def test_the_tradeoff_knows_it():
    given = {"items": list("abcdefghijklmnopqrst"), "for_epsilon": 1.0, "bounds": [1]}
    given["replicates"] = 6
    default = pr.contribution_tradeoff({10: 5000}, **given)
    ours = pr.contribution_tradeoff({10: 5000}, **given, pair_counts="proportional")
    assert (ours["privacy"] < 0.8 * default["privacy"]).all()
    with pytest.raises(ValueError, match="pair_counts must be"):
        pr.contribution_tradeoff({10: 5000}, **given, pair_counts="equal")
