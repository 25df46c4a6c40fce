"""The model of ties with covariates of respondents: one tie parameter for all groups."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mutating import with_check
from scipy.optimize import approx_fprime, minimize

import privrank as pr
from privrank.bradley_terry.equations import score_equations, scores_by_pattern
from privrank.bradley_terry.estimate import covariance, objective
from privrank.bradley_terry.fit import answer_probabilities
from privrank.hypotheses.nulls import public_generator

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "davidson.json").read_text(encoding="utf-8")
)["university_gender"]
CEMS = pr.datasets.load_university()
STUDENTS = CEMS.students.reset_index().assign(age=lambda s: 18 + (7 * s["respondent"]) % 23)
FRAME = CEMS.comparisons.merge(STUDENTS, on="respondent")
LEVELS = {"gender": ["female", "male"], "study": ["commerce", "other"]}
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def model(right="gender", unit="respondent", frame=FRAME, **options):
    options = {"items": CEMS.items, "ties": "davidson", "design": "public"} | options
    factors = [name for name in LEVELS if name in right]
    if factors:
        options["levels"] = {name: LEVELS[name] for name in factors}
    if "age" in right:
        options["bounds"] = {"age": (18, 40)}
    if unit == "respondent":
        options = {"respondent": "respondent", "max_rows": 15} | options
    else:
        options["respondent"] = None
    return pr.PrivateBTL.from_formula(f"item1 + item2 + outcome ~ {right}", frame, **options)


@cache
def exact(right="gender", unit="respondent", design="public", ties="davidson"):
    return model(right, unit, design=design, ties=ties).fit(np.inf, penalty=0)


@cache
def private(right="gender", unit="respondent", design="public"):
    return model(right, unit, design=design).fit(2.0, rng=np.random.default_rng(3))


def answered(right):
    """Positions of the items of each answer, model matrix rows, the answer, and the respondent."""
    rows = FRAME.dropna(subset="outcome")
    first, second = (pd.Index(CEMS.items).get_indexer(rows[c]) for c in ("item1", "item2"))
    columns = [np.ones(len(rows))]
    if "gender" in right:
        columns.append((rows["gender"] == "male").to_numpy(float))
    if "age" in right:
        columns.append(rows["age"].to_numpy(float))
    return first, second, np.array(columns), rows["outcome"].to_numpy(), rows["respondent"]


# --- without privacy ---


@pytest.mark.parametrize("design", ["public", "private"])
@pytest.mark.parametrize("unit", ["row", "respondent"])
def test_worths_by_group_are_those_of_the_log_linear_model(unit, design):
    result = exact(unit=unit, design=design)
    np.testing.assert_allclose(
        result.params.to_numpy().reshape(2, 6),
        [[REFERENCE[part][item] for item in CEMS.items] for part in ("params", "male")],
        atol=1e-6,
    )
    assert result.tie_parameter["estimate"] == pytest.approx(REFERENCE["undecided"], abs=1e-6)
    assert result.llf == pytest.approx(REFERENCE["loglik"], abs=1e-6)


@pytest.mark.parametrize("right", ["gender", "age", "gender + age"])
def test_the_fit_maximises_its_likelihood(right):
    first, second, columns, answer, _ = answered(right)

    def loss(b):
        worths = np.einsum("ki,kr->ri", b[:-1].reshape(len(columns), 6), scaled)
        rows = np.arange(len(first))
        table = answer_probabilities(worths[rows, first] - worths[rows, second], b[-1])
        return -np.log(np.choose((1 - answer).astype(int), table)).sum()

    scaled = columns.copy()
    if "age" in right:  # as the search has it easier
        scaled[-1] = scaled[-1] / 20
    best = minimize(loss, np.zeros(6 * len(columns) + 1), tol=1e-10)
    result = exact(right)
    assert result.llf == pytest.approx(-best.fun, abs=1e-5)
    shown = best.x[:-1].reshape(len(columns), 6)
    shown = shown - shown.mean(axis=1, keepdims=True)
    if "age" in right:
        shown[-1] /= 20
    np.testing.assert_allclose(result.params, shown.ravel(), atol=1e-3)
    assert result.tie_parameter["estimate"] == pytest.approx(best.x[-1], abs=1e-3)


def test_nested_models_are_compared_by_their_likelihoods():
    plain, larger = exact("1"), exact("gender + study")
    test = exact().compare_lr_test(plain)
    assert test["statistic"] == pytest.approx(2 * (REFERENCE["loglik"] - plain.llf), abs=1e-5)
    assert test["df"] == 5 and test["pvalue"] == pytest.approx(0.0, abs=1e-6)
    both = larger.compare_lr_test(plain)
    assert both["df"] == 10
    steps = test["statistic"] + larger.compare_lr_test(exact())["statistic"]
    assert both["statistic"] == pytest.approx(steps)
    # a tie parameter for each group: the fits to both of them by themselves
    alone = [
        model("1", frame=FRAME[FRAME["gender"] == group]).fit(np.inf, penalty=0).llf
        for group in LEVELS["gender"]
    ]
    np.testing.assert_allclose(alone, list(REFERENCE["loglik_alone"].values()), atol=1e-6)
    assert sum(alone) > exact().llf


def test_under_the_hypothesis_the_likelihood_ratio_has_its_distribution():
    rng, found = np.random.default_rng(4), []
    first, second = np.triu_indices(3, 1)
    pair = np.tile(np.arange(3), 200)
    worths, items = np.array([0.5, 0.0, -0.5]), np.array(["a", "b", "c"])
    won, tied, _ = answer_probabilities((worths[first] - worths[second])[pair], -1.0)
    for _ in range(150):
        draw = rng.random(len(pair))
        outcome = np.where(draw < won, 1, np.where(draw < won + tied, 0, -1))
        frame = pd.DataFrame({"item1": items[first][pair], "item2": items[second][pair]})
        frame = frame.assign(outcome=outcome, gender=rng.choice(LEVELS["gender"], len(pair)))
        fits = [
            model(right, "row", frame, items=list(items)).fit(np.inf, penalty=0)
            for right in ("gender", "1")
        ]
        found.append(fits[0].compare_lr_test(fits[1]))
    table = pd.DataFrame(found)
    assert (table["df"] == 2).all()
    assert table["statistic"].mean() == pytest.approx(2.0, abs=0.5)
    assert (table["pvalue"] < 0.05).mean() < 0.11 and (table["pvalue"] < 0.5).mean() > 0.38


@pytest.mark.parametrize(
    ("full", "restricted", "message"),
    [
        (lambda: exact("1"), exact, "leave out terms"),
        (exact, exact, "leave out terms"),
        (exact, lambda: exact("study"), "leave out terms"),
        (exact, lambda: exact("1", ties=True), "same answers"),
        (exact, lambda: exact("1", unit="row"), "same answers"),
        (exact, lambda: model("1").fit(np.inf), "penalty=0"),
        (lambda: model().fit(np.inf, penalty=1), lambda: exact("1"), "penalty=0"),
        (exact, lambda: private("1"), "epsilon=numpy.inf"),
    ],
)
def test_models_that_are_not_nested_are_refused(full, restricted, message):
    with pytest.raises(ValueError, match=message):
        full().compare_lr_test(restricted())


def test_something_else_is_no_smaller_model():
    with pytest.raises(TypeError, match="must be a fit of PrivateBTL"):
        exact().compare_lr_test(3.0)


def test_half_wins_are_compared_too():
    reference = json.loads(
        (Path(__file__).parents[1] / "reference" / "covariates.json").read_text(encoding="utf-8")
    )["university"]["fits"]
    wanted = [reference[name]["loglik"] for name in ("~gender", "~1")]
    found = [exact(right, ties=True) for right in ("gender", "1")]
    np.testing.assert_allclose([fit.llf for fit in found], wanted, atol=1e-6)
    test = found[0].compare_lr_test(found[1])
    assert test["statistic"] == pytest.approx(2 * (wanted[0] - wanted[1]), abs=1e-5)


# --- errors ---


@pytest.mark.parametrize("right", ["gender", "gender + age"])
def test_slopes_and_information_are_derivatives_of_the_loss(right):
    equations = score_equations(exact(right).release)
    linear, loss = equations.linear, objective(equations)[1]
    b = np.random.default_rng(2).normal(size=linear.size) / 4

    def slope(b):
        return linear.scores(loss.slope(linear.predict(b)))

    numeric = approx_fprime(b, lambda x: loss.value(linear.predict(x)), 1e-7)
    np.testing.assert_allclose(slope(b), numeric, rtol=1e-4, atol=2e-2)
    information = linear.information(loss.curvature(linear.predict(b)))
    np.testing.assert_allclose(information, approx_fprime(b, slope, 1e-7), rtol=1e-4, atol=1e-3)
    by_pattern = scores_by_pattern(equations, b)
    np.testing.assert_allclose(by_pattern.sum(axis=0), slope(b))
    np.testing.assert_allclose(linear.matrix @ b, linear.predict(b))


@pytest.mark.parametrize("right", ["gender", "gender + age"])
def test_cluster_robust_errors_are_those_of_respondents_scores(right):
    first, second, columns, answer, who = answered(right)
    result = exact(right)
    worths = np.einsum("ki,kr->ri", result.params.to_numpy().reshape(len(columns), 6), columns)
    rows = np.arange(len(answer))
    difference = worths[rows, first] - worths[rows, second]
    table = answer_probabilities(difference, result.tie_parameter["estimate"])
    at = pd.DataFrame(dict(zip(("win", "tie", "loss"), table, strict=True)))
    half = 0.5 * (answer - (at["win"] - at["loss"]).to_numpy())
    scores = np.zeros((len(columns), len(answer), 6))
    for k, column in enumerate(columns):
        scores[k, rows, first], scores[k, rows, second] = half * column, -half * column
    ties = ((answer == 0) - at["tie"]).to_numpy()
    table = np.column_stack((*scores, ties))
    by_person = pd.DataFrame(table).groupby(who.to_numpy()).sum().to_numpy()
    meat = by_person.T @ by_person * result.nobs / (result.nobs - 1)
    found = result.cov_params().to_numpy()
    # the bread by the information of every answer
    design = np.zeros((len(columns), len(answer), 6))
    for k, column in enumerate(columns):
        design[k, rows, first], design[k, rows, second] = column, -column
    worths = np.concatenate(list(design), axis=1)
    won, tied, lost = (at[name].to_numpy()[:, None] for name in ("win", "tie", "loss"))
    net = won + lost - (won - lost) ** 2
    bread = np.zeros((worths.shape[1] + 1,) * 2)
    bread[:-1, :-1] = 0.25 * worths.T @ (net * worths)
    bread[-1, :-1] = bread[:-1, -1] = -0.5 * ((won - lost) * tied * worths).sum(axis=0)
    bread[-1, -1] = (tied * (1 - tied)).sum()
    inverse = np.linalg.pinv(bread, rcond=1e-9)
    expected = (inverse @ meat @ inverse)[:-1, :-1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7 * np.abs(found).max())


@quiet
@pytest.mark.parametrize("right", ["gender", "gender + age"])
def test_noise_covariance_is_that_of_simulated_releases(right):
    release = private(right).release
    equations, b = score_equations(release), private(right).estimate.coefficients
    terms = [term for term in equations.terms.values() if not term.additional]
    drawn = equations.simulate_noise(b, 6_000, terms, b, public_generator("test", 1))
    stated, found = equations.noise_covariance(b), np.cov(drawn.T)
    scale = np.sqrt(np.diag(stated))
    np.testing.assert_allclose(
        found / np.outer(scale, scale), stated / np.outer(scale, scale), atol=0.1
    )


@quiet
def test_the_errors_of_groups_and_pairs_are_those_of_moved_counts():
    # the slopes of the expected scores by what is released of groups and of pairs
    release = private(design="private").release
    equations, b = score_equations(release), private(design="private").estimate.coefficients
    answers = equations.group_answers
    share = answers / answers.sum()
    mean = equations.mean_scores(b).reshape(2, 15, -1)
    count = equations.pairs.count.reshape(2, 15).sum(axis=0)
    by_cell = np.einsum("e,cep->cp", count, mean)
    slopes = (by_cell - share @ by_cell) / answers.sum()
    by_pair = np.einsum("c,cep->ep", share, mean)
    expected = equations.variance("group_answers") * slopes.T @ slopes
    expected = expected + equations.count_variance * by_pair.T @ by_pair
    terms = [term for term in equations.terms.values() if term.additional]
    np.testing.assert_allclose(equations.noise_covariance(b, terms), expected, rtol=1e-8, atol=1e-9)


# --- private ---


@quiet
@pytest.mark.parametrize("unit", ["row", "respondent"])
@pytest.mark.parametrize(
    ("right", "design"),
    [("gender", "public"), ("gender", "private"), ("gender + age", "public"), ("1", "private")],
)
def test_results_say_how_probable_each_answer_is(right, design, unit):
    result = private(right, unit, design)
    at = {"gender": "male"} if "gender" in right else None
    pairs = result.pairwise(at=at)
    np.testing.assert_allclose(pairs[["win", "tie", "loss"]].sum(axis=1), 1.0)
    frame = pairs[["item1", "item2"]].assign(gender="male", age=29.0)
    pd.testing.assert_frame_equal(
        result.predict(frame)[["win", "tie", "loss"]], pairs[["win", "tie", "loss"]]
    )
    ties, last = result.tie_parameter, result.summary().rows[-1]
    assert ties["lower"] < ties["estimate"] < ties["upper"]
    assert last[0] == "tie (log nu)" and len(last) == len(result.summary().columns)
    again = pr.from_json(result.to_json())
    pd.testing.assert_series_equal(again.tie_parameter, ties)
    assert str(again.summary()) == str(result.summary())
    assert np.isfinite(result.bse).all() and np.isfinite(result.wald_test_terms()["pvalue"]).all()
    whole = covariance(score_equations(result.release), result.release, result.estimate)
    assert np.linalg.eigvalsh(whole.total).min() > -1e-9


@quiet
def test_with_little_noise_a_private_fit_is_the_exact_one():
    for design in ("public", "private"):
        result = model(design=design).fit(1e6, rng=np.random.default_rng(1), penalty=0)
        if design == "public":
            np.testing.assert_allclose(result.params, exact().params, atol=1e-3)
        assert result.tie_parameter["estimate"] == pytest.approx(REFERENCE["undecided"], abs=0.01)


@quiet
@pytest.mark.parametrize("right", ["gender", "gender + age"])
@pytest.mark.parametrize("ties", [-800, 10**7])
def test_the_number_of_ties_is_brought_to_where_there_is_a_fit(right, ties):
    record = json.loads(private(right).release.to_json())
    record["parts"]["ties"]["values"] = [ties]
    release = pr.Release.from_json(with_check(record))
    part = release.parts["net wins"]
    steps = 2 if "age" in right else 1  # net wins, and those times the age
    net = part.step * part.values.reshape(-1, 6)[::steps]
    most = release.design.pairs.total - np.abs(net.sum(axis=0)).sum() / 2
    assert score_equations(release).score[-1] == pytest.approx(0.5 if ties < 0 else most)
    assert np.isfinite(pr.PrivateBTL.from_release(release).bse).all()


@quiet
def test_a_release_with_other_weights_than_its_noise_is_none():
    record = json.loads(private("gender + age").release.to_json())
    for name, match in (("net wins", "noise of the scale"), ("ties", "noise of the scale")):
        changed = json.loads(json.dumps(record))
        changed["parts"][name]["noise"]["scale"] /= 2
        with pytest.raises(ValueError, match=match):
            pr.Release.from_json(with_check(changed))


@pytest.mark.parametrize(
    ("right", "left", "options", "message"),
    [
        (
            "1",
            "item1 + item2 + outcome",
            {"contest": "first"},
            "Leave contest= and item_formula= out",
        ),
        (
            "1",
            "item1 + item2 + outcome",
            {
                "item_formula": "city",
                "item_data": pd.DataFrame({"city": [1.0, 0, 0, 1, 0, 0]}, index=CEMS.items),
            },
            "Leave contest= and item_formula= out",
        ),
        ("1", "item1 + item2", {}, "needs outcomes"),
    ],
)
def test_what_has_no_tie_parameter_is_refused(right, left, options, message):
    frame = FRAME if "outcome" in left else FRAME.drop(columns="outcome")
    with pytest.raises(ValueError, match=re.escape(message)):
        pr.PrivateBTL.from_formula(
            f"{left} ~ {right}",
            frame,
            items=CEMS.items,
            respondent="respondent",
            max_rows=15,
            ties="davidson",
            **options,
        )
