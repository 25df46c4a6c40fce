"""Second moments of net wins and ties together: what is released, and the errors it gives."""

import json
from functools import cache
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from mutating import with_check
from test_tie_dependence import encode, expect

import privrank as pr
from privrank.bradley_terry import dependence
from privrank.bradley_terry.dependence import (
    floored_moments,
    independent_scores,
    second_moments,
)
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.inference import SecondMoments, single_contrasts
from privrank.mechanisms.tallies import pair_moments
from privrank.privacy.sensitivity import UnitSensitivity
from privrank.release.survey import FINE

ITEMS = list("abcd")
FIRST, SECOND = np.triu_indices(4, 1)


def survey(nobs, seed=1):
    """Answers of two camps who disagree about the items, and of whom one ties far more often."""
    rng = np.random.default_rng(seed)
    camp = rng.integers(0, 2, nobs)
    worths = np.where(camp == 1, 1.0, -1.0)[:, None] * np.array([1.0, 1.0, -1.0, -1.0])
    worths = worths + np.linspace(0.6, -0.6, 4)
    apart = worths[:, FIRST] - worths[:, SECOND]
    tied = rng.random(apart.shape) < np.where(camp == 1, 0.4, 0.1)[:, None]
    outcome = np.where(rng.random(apart.shape) < 1 / (1 + np.exp(-apart)), 1, -1)
    return np.where(tied, 0, outcome)


def model(answers, design="public", **options):
    frame = pd.DataFrame({"outcome": answers.ravel()})
    frame["item1"] = np.tile(np.array(ITEMS)[FIRST], len(answers))
    frame["item2"] = np.tile(np.array(ITEMS)[SECOND], len(answers))
    frame["who"] = np.repeat(np.arange(len(answers)), len(FIRST))
    facts = {"items": ITEMS, "respondent": "who", "max_rows": 6, "ties": "davidson"} | options
    return pr.PrivateBTL(frame, design=design, **facts)


@cache
def fitted(epsilon=3.0, design="public", nobs=2000, form="pairs"):
    return model(survey(nobs), design).fit(epsilon, dependence=form, rng=np.random.default_rng(2))


def parts(result):
    """The release, its equations and coefficients."""
    return result.release, score_equations(result.release), result.estimate.coefficients


# --- what is released ---


def test_moments_are_those_of_nets_and_of_ties():
    units = [tuple(np.random.default_rng(k).choice([1, 0, -1], 3)) for k in range(9)]
    sides = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])  # of a:b, a:c, b:c
    net, ties = np.array(units) @ sides.T, (np.array(units) == 0).sum(axis=1)
    apart = [((net[:, i] - net[:, j]) ** 2).sum() for i, j in combinations(range(3), 2)]
    assert pair_moments(encode(units)).tolist() == [*apart, (ties**2).sum()]


@pytest.mark.parametrize("taken", ["nothing", "expected answers"])
def test_one_respondent_moves_what_is_released_by_its_sensitivity_at_most(taken):
    reach, most = UnitSensitivity(3, 3, True, "replace"), 0
    for seed in range(4 if taken == "expected answers" else 1):
        expected = expect(seed, 3) if taken == "expected answers" else None
        found = np.array(
            [
                pair_moments(encode([(1, 1, 1), (-1, 0, 1), unit]), expected)
                for unit in product((1, 0, -1), repeat=3)
            ]
        )
        most = max(most, max(np.abs(found - one).sum(axis=1).max() for one in found))
    stated = reach.moments_l1(ties=True, expected=taken != "nothing")
    if taken == "nothing":
        # more than nets alone move, also where no answer is missing
        assert most == stated == 33 > reach.second_moments_l1
    else:
        assert 0.3 * FINE * stated < most <= FINE * stated + reach.pairs + 1


@pytest.mark.parametrize("design", ["public", "private"])
def test_the_plan_pays_for_nets_and_ties_in_one_draw(design):
    release = fitted(design=design).release
    part, reach = release.plan.parts["dependence"], release.design.sensitivity
    assert len(release.parts["dependence"].values) == 7
    if release.design.varied:
        assert part.sensitivity == FINE * (reach.convex_moments_l1 + 36) + 7
        assert part.step == 1 / FINE and 1.0 < release.found["largest residual"] < 2.0
    else:
        assert part.sensitivity == 116 and part.step == 1
    assert part.noise.scale == pytest.approx(part.sensitivity / part.epsilon, rel=1e-6)
    assert "largest design effect" not in release.found


def test_a_fit_takes_second_moments_where_they_promise_less_error():
    forms = {
        nobs: model(survey(nobs)).fit(epsilon, rng=np.random.default_rng(1)).release.plan.settings
        for nobs, epsilon in ((80, 0.5), (3000, 2.0))
    }
    assert [forms[nobs]["dependence"] for nobs in (80, 3000)] == ["worst", "pairs"]


@pytest.mark.parametrize("form", ["pairs", "worst"])
@pytest.mark.parametrize("design", ["public", "private"])
def test_archives_have_the_numbers_of_their_form(design, form):
    result = fitted(design=design, form=form)
    again = pr.from_json(result.to_json())
    assert str(again.summary()) == str(result.summary())
    record = json.loads(result.release.to_json())
    assert pr.Release.from_json(with_check(record)).found == result.release.found
    values = record["parts"]["dependence"]["values"]
    for wrong in (values[:-1], [*values, 5]):
        record["parts"]["dependence"]["values"] = wrong
        with pytest.raises(ValueError, match="as many values as its parts have|right numbers"):
            pr.Release.from_json(with_check(record))


def test_a_selection_reads_the_net_wins_of_such_a_release():
    top = pr.PrivateTopK.from_release(fitted().release, 1)
    alike = pr.PrivateTopK.from_release(model(survey(2000), ties=True).fit(np.inf).release, 1)
    assert top.selected == alike.selected == ("a",)


# --- the errors it gives ---


def test_without_noise_errors_are_no_less_than_cluster_robust_ones():
    answers = survey(4000)
    robust, found = (model(answers).fit(np.inf, dependence=form) for form in ("cluster", "pairs"))
    for one, other in ((robust.pairwise(), found.pairwise()), (robust.bse, found.bse)):
        ratio = np.asarray(other["std_err"] if "std_err" in other else other) / np.asarray(
            one["std_err"] if "std_err" in one else one
        )
        assert (ratio > 0.999).all() and (ratio < 1.25).all()
    ratio = found.tie_parameter["std_err"] / robust.tie_parameter["std_err"]
    assert 0.999 < ratio < 1.1
    # of this survey the largest design effect says three times as much of lambda
    worst = model(answers).fit(np.inf, dependence="worst")
    assert worst.tie_parameter["std_err"] > 1.3 * found.tie_parameter["std_err"]


def test_second_moments_are_those_of_respondents():
    answers = survey(500)
    release, equations, b = parts(model(answers).fit(np.inf, dependence="pairs", penalty=0))
    sides = np.eye(4)[FIRST] - np.eye(4)[SECOND]
    scores = np.column_stack((0.5 * answers @ sides, (answers == 0).sum(axis=1)))
    exact = 500 * np.cov(scores.T)
    measured = second_moments(equations, release, b)
    assert measured[:4, :4] == pytest.approx(exact[:4, :4])
    assert measured[-1, -1] == pytest.approx(exact[-1, -1])
    # a bound for every combination, whatever the signs
    moments = single_contrasts(equations, release, b)
    rows = np.random.default_rng(1).normal(size=(400, 5))
    rows[:, :4] -= rows[:, :4].mean(axis=1, keepdims=True)
    rows[:100, 4] = 0.0
    rows[100:150, :4] = 0.0
    bound, side = moments.variances(rows)
    least = independent_scores(equations, release, b)
    for matrix in (exact, least):
        assert (bound >= np.einsum("ij,jk,ik->i", rows, matrix, rows) * (1 - 1e-9)).all()
    assert (side == 0).all()


def test_joint_statements_on_worths_and_one_on_lambda_hold_for_any_correlation():
    release, equations, b = parts(fitted())
    alone = independent_scores(equations, release, b)
    matrix = floored_moments(equations, release, b, alone)
    inverse = equations.linear.inverse(equations.information(b))
    nets = dependence.floored(second_moments(equations, release, b)[:4, :4], alone[:4, :4])
    ties = max(second_moments(equations, release, b)[-1, -1], alone[-1, -1])
    rows = np.random.default_rng(1).normal(size=(300, 4)) @ inverse[:4]

    def bound(rows):
        apart = np.sqrt(np.einsum("ij,jk,ik->i", rows[:, :4], nets, rows[:, :4]))
        return (apart + np.abs(rows[:, 4]) * np.sqrt(ties)) ** 2

    stated = np.einsum("ij,jk,ik->i", rows, matrix, rows)
    assert (stated >= bound(rows) * (1 - 1e-9)).all()
    assert (stated <= bound(rows) * 1.2).all()
    assert inverse[-1] @ matrix @ inverse[-1] == pytest.approx(bound(inverse[-1:])[0])
    assert inverse[:4] @ matrix @ inverse[-1] == pytest.approx(0.0, abs=1e-12)


def test_the_noise_of_variances_is_carried_to_their_bound():
    rng = np.random.default_rng(3)
    root, scale, m = rng.normal(size=(m_ := 5, 4)), 0.02, 4
    least = np.zeros((m_, m_))
    true = root @ root.T + 2.0 * np.eye(m_)
    true[:m, m] = true[m, :m] = 0.0
    first, second = np.triu_indices(m, 1)
    centre = np.eye(m) - 1.0 / m
    weights = rng.normal(size=(6, m_))
    weights[0, :m], weights[1, m] = 0.0, 0.0

    def variances(noise):
        squares, measured = np.zeros((m, m)), true.copy()
        squares[first, second] = noise[:-1]
        measured[:m, :m] -= 0.125 * centre @ (squares + squares.T) @ centre
        measured[m, m] += noise[-1]
        moments = SecondMoments(measured, least, scale**2 / 16.0, True)
        return moments.variances(weights)

    bound, side = variances(np.zeros(len(first) + 1))
    drawn = np.array([variances(scale * row)[0] for row in rng.normal(size=(4000, 7))])
    np.testing.assert_allclose(drawn.mean(axis=0), bound, rtol=0.01)
    np.testing.assert_allclose(drawn.var(axis=0), side, rtol=0.1)


def test_intervals_of_lambda_and_of_worths_hold_what_is_true():
    # many small surveys of one population of two camps
    truth = model(survey(60_000, 99)).fit(np.inf)
    apart, tie = truth.pairwise()["difference"], truth.tie_parameter["estimate"]
    inside, ties, forms = [], [], set()
    for seed in range(40):
        result = model(survey(600, seed)).fit(2.0, rng=np.random.default_rng(seed))
        forms.add(result.release.plan.settings["dependence"])
        pairs, own = result.pairwise(), result.tie_parameter
        decided = 1 / (1 + np.exp(-apart))
        inside.append((pairs["lower"] <= decided) & (decided <= pairs["upper"]))
        ties.append(own["lower"] <= tie <= own["upper"])
    assert forms == {"pairs"}
    assert np.mean(ties) >= 0.85 and np.mean(inside) >= 0.9
    assert "clustered by respondent" in str(result.summary())


def test_pooled_fits_bound_what_is_not_measured():
    results = [
        model(survey(1500, seed)).fit(3.0, dependence="pairs", rng=np.random.default_rng(seed))
        for seed in (1, 2)
    ]
    together = pr.pool(results, survey="different")
    assert (together.bse < 0.85 * results[0].bse).all()
    assert (together.bse > 0.6 * results[0].bse).all()
