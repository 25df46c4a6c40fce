"""What one respondent can do to what is released of dependence, by enumeration of small surveys."""

import math
from functools import cache
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import respondents

import privrank as pr
from privrank.bradley_terry.dependence import (
    Directions,
    contrast_directions,
    floored_moments,
    independent_scores,
)
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import estimate, response
from privrank.hypotheses.tails import simulated
from privrank.mechanisms import comparisons as mechanism
from privrank.mechanisms import tallies
from privrank.mechanisms.tallies import (
    Expected,
    largest_design_effect,
    pair_moments,
    round_directions,
    round_expected,
)
from privrank.plans import choice as planning
from privrank.plans.choice import choose_form
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.sensitivity import UnitSensitivity
from privrank.release import survey as surveys
from privrank.release.survey import FINE, STEPS, Design


@cache
def fewest(m, repeats=1):
    """Every net of answers to pairs asked so often, and the fewest decided answers that give it."""
    found = {(0,) * m: 0}
    for first, second in list(combinations(range(m), 2)) * repeats:
        more = dict(found)
        for net, used in found.items():
            for side in (1, -1):
                moved = list(net)
                moved[first] += side
                moved[second] -= side
                moved = tuple(moved)
                more[moved] = min(more.get(moved, math.inf), used + 1)
        found = more
    return np.array(list(found)), np.array(list(found.values()))


def nets(m, rows, distinct=True):
    """Every net that one respondent of at most `rows` answers can have."""
    found, decided = fewest(m, 1 if distinct else rows)
    return found[decided <= rows]


def squares(net):
    """(net_i - net_j)^2 of all pairs."""
    return np.stack([(net[:, i] - net[:, j]) ** 2 for i, j in combinations(range(net.shape[1]), 2)])


SMALL = [(m, rows) for m in (3, 4, 5) for rows in range(1, m * (m - 1) // 2 + 1)]
ENUMERATED = SMALL + [(6, rows) for rows in range(1, 16)]


@pytest.mark.parametrize(("m", "rows"), ENUMERATED)
def test_second_moments_move_by_their_sensitivity_and_no_more(m, rows):
    net = nets(m, rows)
    q = np.unique(squares(net).T, axis=0)
    # other names of the items bring one of the two nets into order
    ordered = squares(net[(np.diff(net, axis=1) >= 0).all(axis=1)]).T
    moved = max(np.abs(q - one).sum(axis=1).max() for one in ordered)
    for adjacency in ("replace", "outcome"):
        assert UnitSensitivity(m, rows, True, adjacency).second_moments_l1 == moved


@pytest.mark.parametrize(("m", "rows"), [(3, 1), (3, 2), (3, 4), (4, 2), (4, 3)])
def test_second_moments_of_repeated_pairs_move_by_no_more_than_stated(m, rows):
    q = np.unique(squares(nets(m, rows, distinct=False)).T, axis=0)
    moved = max(np.abs(q - one).sum(axis=1).max() for one in q)
    assert moved <= UnitSensitivity(m, rows, False, "replace").second_moments_l1


@pytest.mark.parametrize(("nobs", "steps"), [(98, 128), (10**9, 16), (10**16, 1)])
def test_expected_answers_are_as_fine_as_exact_sums_of_squares_allow(nobs, steps):
    survey = Design(tuple("abc"), nobs, "respondent", 15, False, True, "private", None)
    answers, ties = np.array([[0.0, 1, 1], [-1, 0, 1], [-1, -1, 0]]), np.full((3, 3), 0.5)
    expected = round_expected(survey, answers, ties)
    assert expected.steps == steps and expected.answers[0, 1] == steps
    assert (expected.ties == np.rint(0.5 * steps)).all()
    # squares of the sums of 15 answers over all respondents
    assert nobs * (15 * steps) ** 2 <= 2**46 or steps == 1


@pytest.mark.parametrize(("m", "rows"), [(6, 5), (6, 14), (7, 21), (10, 45), (12, 20)])
def test_second_moments_of_more_items_keep_their_bound(m, rows):
    # the largest found among stars and rankings, in opposite orders and rotated
    stated = UnitSensitivity(m, rows, True, "replace").second_moments_l1
    rng, edges = np.random.default_rng(1), list(combinations(range(m), 2))
    found = []
    for _ in range(300):
        net, order = np.zeros(m, dtype=int), rng.permutation(m)
        for first, second in (edges[k] for k in rng.permutation(len(edges))[:rows]):
            up = order[first] < order[second]
            net[first] += 1 if up else -1
            net[second] -= 1 if up else -1
        found.append(net)
    q = squares(np.array(found)).T
    assert max(np.abs(q - one).sum(axis=1).max() for one in q) <= stated


@pytest.mark.parametrize(("m", "rows"), SMALL)
def test_answers_of_any_size_move_second_moments_by_no_more_than_their_convex_bound(m, rows):
    rng, edges = np.random.default_rng(rows), np.array(list(combinations(range(m), 2)))
    sides = np.eye(m)[edges[:, 0]] - np.eye(m)[edges[:, 1]]
    asked = np.argsort(rng.random((400, len(edges))), axis=1) < rows
    size = rng.choice([1.0, 0.9, 0.3], (400, len(edges)))
    net = (asked * size * rng.choice([-1, 1], (400, len(edges)))) @ sides
    q = squares(net).T
    moved = max(np.abs(q - one).sum(axis=1).max() for one in q)
    reach = UnitSensitivity(m, rows, True, "replace")
    assert moved <= reach.convex_moments_l1 + 1e-9
    assert reach.second_moments_l1 <= reach.convex_moments_l1


def expect(seed, m=3, steps=8):
    """Expected answers of m items, in whole numbers."""
    above = np.triu(np.random.default_rng(seed).integers(-steps, steps + 1, (m, m)), 1)
    return Expected(above - above.T, steps)


NOTHING = round_expected(
    Design(tuple("abc"), 3, "respondent", 3, True, True, "private", None), None
)


def design(m, rows, n=5, distinct=True):
    items = tuple("abcdefgh"[:m])
    return Design(items, n, "respondent", rows, distinct, True, "private", None)


@pytest.mark.parametrize(
    ("rows", "distinct"),
    [*((rows, True) for rows in range(1, 7)), *((rows, False) for rows in (1, 2, 3))],
)
def test_one_respondent_reaches_along_a_contrast_as_far_as_stated(rows, distinct):
    rng = np.random.default_rng(rows)
    weights = rng.normal(size=(20, 1, 5))
    weights[:, :, -1] = 0.0
    rounded = round_directions(
        design(4, rows, distinct=distinct),
        Directions(weights, np.ones(20), np.zeros(20), np.array([2.0])),
        Expected(np.zeros((4, 4), dtype=int)),
    )
    reached = np.abs(nets(4, rows, distinct) @ rounded.weights[:, 0, :4].T).max(axis=0)
    np.testing.assert_array_equal(reached, rounded.farthest)


def encode(units, rows):
    """A survey of three items from one list of answers, by pair, for each respondent."""
    pairs = list(combinations("abc", 2))
    answered = [
        [(pair, float(y)) for pair, y in zip(pairs, unit, strict=True) if y is not None]
        for unit in units
    ]
    return respondents.encode(
        answered, max_rows=rows, distinct_pairs=True, ties=True, pair_counts="equal"
    )


def largest_move(statistic, rows=3):
    """The largest difference of a statistic between surveys that differ in one respondent."""
    answers = list(product((1, 0, -1), repeat=3))
    others = [[(1, 1, 1), (1, 1, -1)], [(0, 0, 0), (-1, 1, 1)], [(-1, -1, -1), (-1, -1, -1)]]
    moved = 0
    for rest in others:
        values = [statistic(encode([*rest, unit], rows)) for unit in answers]
        moved = max(moved, max(values) - min(values))
    return moved


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("taken", ["nothing", "expected answers"])
def test_the_worst_contrast_moves_by_its_sensitivity_at_most(taken, seed):
    # whatever was released before, and so whatever the contrasts, what they explain, by how much
    # answers are supposed to vary, and what is expected of them
    rng = np.random.default_rng(seed)
    found = Directions(
        rng.normal(size=(6, 1, 3)), rng.exponential(9.0, 6), rng.normal(size=6) * 9, np.array([9.0])
    )
    expected = NOTHING if taken == "nothing" else expect(seed)
    contrasts = round_directions(design(3, 3, n=3), found, expected)
    moved = largest_move(lambda encoded: largest_design_effect(encoded, contrasts, expected))
    assert 0.15 * STEPS < moved <= STEPS


def test_a_contrast_that_reaches_farther_than_stated_is_found():
    found = Directions(np.eye(3)[None, :1], np.ones(1), np.zeros(1), np.array([9.0]))
    contrasts = round_directions(design(3, 1, n=3), found, NOTHING)
    assert largest_move(lambda encoded: largest_design_effect(encoded, contrasts, NOTHING)) > STEPS
    # nor would it do to take answers for no farther from expected ones than from 0
    expected = Expected(np.array([[0, 8, 8], [-8, 0, 0], [-8, 0, 0]]), 8)
    contrasts = round_directions(design(3, 3, n=3), found, NOTHING)
    assert largest_move(lambda encoded: largest_design_effect(encoded, contrasts, expected)) > STEPS


@pytest.mark.parametrize("seed", range(6))
def test_second_moments_around_expected_answers_move_by_their_sensitivity_at_most(seed):
    rest, expected = [(1, 1, 1), (-1, 0, 1)], expect(seed)
    answers = list(product((1, 0, -1, None), repeat=3))[:-1]  # a respondent has a row at least
    for rows in (1, 2, 3):
        units = [unit for unit in answers if 3 - unit.count(None) <= rows]
        found = np.array([pair_moments(encode([*rest, unit], 3), expected) for unit in units])
        moved = max(np.abs(found - one).sum(axis=1).max() for one in found)
        reach = UnitSensitivity(3, rows, True, "replace")
        assert moved <= FINE * reach.convex_moments_l1 + reach.pairs
    assert moved > 0.2 * FINE * reach.convex_moments_l1


@pytest.mark.parametrize(("nobs", "rows"), [(10, 3), (3_000, 45), (100_000, 1_770), (2**20, 2**13)])
def test_sums_of_squares_around_expected_answers_are_exact(nobs, rows):
    survey = Design(tuple("abc"), nobs, "respondent", rows, False, True, "private", None)
    expected = round_expected(survey, np.array([[0.0, 1, 1], [-1, 0, 1], [-1, -1, 0]]))
    assert 1 <= expected.steps <= 128 and expected.farthest == 2 * expected.steps
    found = Directions(np.eye(3)[None, :1], np.ones(1), np.zeros(1), np.array([9.0]))
    contrasts = round_directions(survey, found, expected)
    assert nobs * (rows * expected.farthest) ** 2 <= 2**52
    assert nobs * int(contrasts.farthest[0]) ** 2 <= 2**62


def university(**options):
    cems = pr.datasets.load_university()
    arguments = {"items": cems.items, "respondent": "respondent", "max_rows": 15, "ties": True}
    return pr.PrivateBTL(cems.comparisons, **({"design": "public"} | arguments | options))


def test_second_moments_are_those_of_the_net_wins():
    rng = np.random.default_rng(3)
    units = [tuple(rng.choice([1, 0, -1], 3)) for _ in range(7)]
    sides = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])  # of a:b, a:c, b:c
    net = np.array(units) @ sides.T
    q = pair_moments(encode(units, 3))
    np.testing.assert_array_equal(q, squares(net).sum(axis=1))
    weights = rng.normal(size=3)
    weights -= weights.mean()
    products = [weights[i] * weights[j] for i, j in combinations(range(3), 2)]
    assert weights @ net.T @ net @ weights == pytest.approx(-np.array(products) @ q)


@pytest.mark.parametrize("form", ["worst", "pairs"])
def test_without_noise_dependence_is_that_of_the_cluster_robust_covariance(form):
    # complete, so that all respondents have one mean; the directions are those of the fit
    cems = pr.datasets.load_university()
    rows = cems.comparisons.fillna({"outcome": 0.0})
    model = pr.PrivateBTL(
        rows, items=cems.items, respondent="respondent", max_rows=15, ties=True, design="public"
    )
    robust, found = model.fit(np.inf), model.fit(np.inf, dependence=form)
    n = robust.nobs
    exact = robust._inference().errors
    if form == "pairs":
        own = np.diag(exact.sampling)
        floored = np.diag(found._inference().errors.sampling)
        assert (floored >= own * (1 - 1e-9)).all()
        assert (floored <= np.maximum(own, np.diag(exact.independent)) * 1.2).all()
        assert found.design_effect == pytest.approx(robust.design_effect, rel=0.02)
    else:
        # the largest of all contrasts, and no worth or difference has a larger one
        assert found.design_effect >= robust.design_effect * (n - 1) / n * (1 - 1e-3)
        assert found.design_effect <= robust.design_effect * 1.1


def lists(nobs, rng):
    """The leading three of six items of Plackett-Luce rankings, as pairs of a private design."""
    ranks = pr.PlackettLuce(np.linspace(1.0, -1.0, 6)).rvs(nobs, rng)
    place = np.minimum(ranks, 4)
    first, second = np.triu_indices(6, 1)
    outcome = np.sign(place[:, second] - place[:, first])
    person, pair = np.nonzero(outcome)
    frame = pd.DataFrame({"item1": first[pair], "item2": second[pair], "person": person})
    frame["outcome"] = outcome[person, pair]
    return pr.PrivateBTL(frame, items=range(6), respondent="person", max_rows=12)


def test_second_moments_of_lists_are_those_of_the_scores():
    # which pairs a list decides goes with the answers, so net wins alone vary otherwise
    model = lists(3_000, np.random.default_rng(4))
    robust, found = (model.fit(np.inf, dependence=form) for form in ("cluster", "pairs"))
    np.testing.assert_allclose(found.pairwise()["std_err"], robust.pairwise()["std_err"], rtol=0.01)
    worst = model.fit(np.inf, dependence="worst")
    assert worst.design_effect == pytest.approx(robust.design_effect, rel=0.05)


@pytest.mark.parametrize("counts", ["equal", "release"])
@pytest.mark.parametrize("form", ["pairs", "worst"])
def test_without_noise_counts_that_were_asserted_give_way_to_those_met(counts, form):
    model = university(design="private", pair_counts=counts)
    robust, found = (model.fit(np.inf, dependence=each, penalty=0) for each in ("cluster", form))
    np.testing.assert_allclose(found.params, robust.params)
    ratio = found.bse / robust.bse
    assert ratio.between(0.99, 1.01 if form == "pairs" else 2.0).all()


def test_second_moments_around_expected_answers_are_planned_in_finer_steps():
    release = (
        lists(3_000, np.random.default_rng(4))
        .fit(4.0, dependence="pairs", rng=np.random.default_rng(1))
        .release
    )
    part, reach = release.plan.parts["dependence"], release.design.sensitivity
    assert part.sensitivity == FINE * reach.convex_moments_l1 + reach.pairs
    assert part.step == 1 / FINE
    assert 1.0 < release.found["largest residual"] < 2.0


def test_the_floor_is_that_of_independent_answers_in_every_direction():
    result = university().fit(1.0, dependence="pairs", rng=np.random.default_rng(1))
    release, equations = result.release, score_equations(result.release)
    b = estimate(equations, release).coefficients
    independent = independent_scores(equations, release, b)
    floored = floored_moments(equations, release, b, independent)
    over = np.linalg.eigvalsh(floored - independent)
    assert over.min() > -1e-9 * np.abs(independent).max()
    assert over.max() > 0.1 * np.abs(independent).max()


def test_contrasts_depend_on_the_survey_through_the_release_alone():
    result = university().fit(1.0, dependence="worst", rng=np.random.default_rng(2))
    release = pr.Release.from_json(result.release.to_json())
    equations = score_equations(release)
    fitted = estimate(equations, release)
    found = contrast_directions(
        equations, release, fitted.coefficients, response(equations, fitted)
    )
    contrasts = round_directions(release.design, found, round_expected(release.design, None))
    assert contrasts.most == release.found["largest design effect"]


@pytest.mark.parametrize("design", ["public", "private"])
def test_what_mean_nets_add_to_sums_of_squares(design):
    result = university(design=design).fit(1.0, dependence="worst", rng=np.random.default_rng(2))
    release, equations = result.release, score_equations(result.release)
    fitted = estimate(equations, release)
    b, m = fitted.coefficients, equations.items
    found = contrast_directions(equations, release, b, response(equations, fitted))
    scores = found.weights[:, 0, :m]
    noise = np.einsum("ci,ij,cj->c", scores, equations.noise_covariance(b), scores)
    # less expected nets nothing but noise is left where pairs vary, else all but noise explains
    assert release.design.varied == (design == "private")
    more = (
        noise if release.design.varied else np.maximum((scores @ equations.score) ** 2 - noise, 0)
    )
    np.testing.assert_allclose(found.explained, 4.0 * more / release.design.nobs)
    assert (found.explained > 0).any()


def test_worths_that_noise_has_driven_far_apart_keep_a_finite_scale():
    frame = pr.datasets.load_university().comparisons
    few = frame[frame["respondent"].isin(frame["respondent"].unique()[:20])]
    cems = pr.datasets.load_university()
    model = pr.PrivateBTL(
        few, items=cems.items, respondent="respondent", max_rows=15, ties=True, design="public"
    )
    for seed in range(5):
        result = model.fit(0.1, dependence="worst", rng=np.random.default_rng(seed))
        most = result.release.found["largest design effect"]
        # no answer varies less than at the farthest predictor, nor more than at even odds
        assert 1.0 <= most <= 100 * 2 * 25 / 12
        assert result.design_effect <= most * (1 + 1e-9)


def test_both_stages_are_reserved_before_anything_is_read(monkeypatch):
    def unread(*_):
        raise AssertionError("read")

    monkeypatch.setattr(tallies, "_moments", unread)
    budget = pr.Budget(epsilon=0.5, unit="respondent")
    with pytest.raises(pr.BudgetExceeded):
        university().fit(1.0, budget=budget, dependence="worst")
    assert budget.spent[0] == 0.0


W5, W10, W15 = (("worst", share) for share in (0.05, 0.1, 0.15))
P1, P2, P3 = (("pairs", share) for share in (0.1, 0.2, 0.3))
CHOSEN = {  # by items and respondents, at epsilon .5, 1, 2 and 4
    (4, 100): (W10, W15, P3, P3),
    (4, 300): (W10, P2, P2, P2),
    (4, 3000): (P1, P1, P1, P1),
    (6, 100): (W10, W10, W15, P3),
    (6, 300): (W10, W10, P3, P3),
    (6, 1000): (P2, P2, P2, P2),
    (10, 300): (W5, W5, W10, W10),
    (10, 1000): (W5, W5, P3, P3),
    (20, 300): (W5, W5, W5, W5),
    (20, 3000): (W5, W5, W5, P3),
}


@pytest.mark.parametrize(("m", "n"), CHOSEN)
def test_the_form_is_chosen_from_public_numbers(m, n):
    names = tuple(f"item {k}" for k in range(m))
    survey = Design(names, n, "respondent", m * (m - 1) // 2, True, True, "public", None)
    found = tuple(choose_form(survey, epsilon, 0.0, 0.0) for epsilon in (0.5, 1, 2, 4))
    assert found == CHOSEN[m, n]


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("rows", [5, 20])
def test_few_questions_of_many_pairs_are_not_taken_to_ask_for_one_item_alone(rows, distinct):
    # of two answers of a respondent hardly ever both are about one item, so no pair of items can
    # divide respondents much, and second moments of all pairs would cost more than they tell
    names = tuple(f"item {k}" for k in range(60))
    survey = Design(names, 50_000, "respondent", rows, distinct, True, "private", None)
    assert [choose_form(survey, epsilon, 0.0, 0.5)[0] for epsilon in (1, 4)] == ["worst"] * 2


def test_noise_of_second_moments_is_that_of_its_scale_in_every_direction():
    rng, m = np.random.default_rng(5), 4
    first, second = np.triu_indices(m, 1)
    noise = DiscreteLaplace(37.0)
    drawn = simulated(noise, (100_000, len(first)), rng)
    for _ in range(3):
        weights = rng.normal(size=m)
        weights -= weights.mean()
        products = weights[first] * weights[second]
        stated = noise.variance * (products**2).sum()
        assert np.var(drawn @ -products) == pytest.approx(stated, rel=0.03)


def test_a_release_depends_on_respondents_through_its_statistic_alone(monkeypatch):
    # the same net wins and the same largest square, from other respondents
    released = []
    monkeypatch.setattr(mechanism, "largest_design_effect", lambda *_: 12_345_678)
    for order in (slice(None), slice(None, None, -1)):
        cems = pr.datasets.load_university()
        frame = cems.comparisons.copy()
        for _, rows in frame.groupby(["item1", "item2"]).groups.items():
            frame.loc[rows, "outcome"] = frame.loc[rows, "outcome"].to_numpy()[order]
        model = pr.PrivateBTL(
            frame, items=cems.items, respondent="respondent", max_rows=15, ties=True,
            design="public",
        )  # fmt: skip
        fit = model.fit(1.0, dependence="worst", rng=np.random.default_rng(3))
        released.append(fit.release.to_json())
    assert released[0] == released[1]


def test_many_combinations_of_covariate_values_are_compared_in_little_memory(monkeypatch):
    rng, n, m = np.random.default_rng(2), 40, 6
    first, second = np.triu_indices(m, 1)
    frame = pd.DataFrame(
        {
            "item1": np.tile(first, n), "item2": np.tile(second, n),
            "outcome": rng.choice([-1.0, 1.0], n * len(first)),
            "who": np.repeat(np.arange(n), len(first)),
            "age": np.repeat(rng.uniform(18, 65, n), len(first)),
        }
    )  # fmt: skip
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ age", frame, items=range(m), respondent="who", max_rows=15,
        design="public", bounds={"age": (18, 65)},
    )  # fmt: skip
    whole = model.fit(np.inf, dependence="worst")
    monkeypatch.setattr(surveys, "MAX_NUMBERS", 1000)
    fewer = model.fit(np.inf, dependence="worst")
    # without differences: twice the largest of the coefficients and worths bounds all of them
    assert whole.design_effect <= fewer.design_effect * (1 + 1e-9)
    monkeypatch.setattr(planning, "MAX_NUMBERS", 1000)
    with pytest.raises(ValueError, match="combinations of covariate values"):
        model.fit(1.0, budget=(budget := pr.Budget(epsilon=1.0, unit="respondent")))
    assert budget.spent == (0.0, 0.0)
    assert model.fit(1.0, dependence="none", rng=rng).design_effect == 1.0


def test_a_share_may_be_any_number():
    fit = university().fit(
        1.0, shares={"dependence": np.float32(0.1)}, rng=np.random.default_rng(1)
    )
    assert fit.release.parts["dependence"].epsilon == pytest.approx(0.1)


@pytest.mark.parametrize(("form", "sensitivity"), [("worst", STEPS), ("pairs", 560)])
def test_noise_of_dependence_is_that_of_its_sensitivity_and_share(form, sensitivity):
    shares = {"dependence": 0.25}
    fit = university().fit(2.0, dependence=form, shares=shares, rng=np.random.default_rng(1))
    part = fit.release.parts["dependence"]
    assert part.sensitivity == sensitivity
    assert part.epsilon == pytest.approx(0.5)
    assert (
        part.distribution.scale == pytest.approx(sensitivity / 0.5)
        and part.distribution.scale * 0.5 >= sensitivity
    )
