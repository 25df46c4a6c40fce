"""Design weights: statistic, sensitivity, errors, tables, refusals."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm

import privrank as pr
from privrank.bradley_terry.dependence import contrast_directions
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import estimate, response
from privrank.encode.comparisons import ComparisonColumns, encode_comparisons
from privrank.mechanisms import tallies
from privrank.release.survey import STEPS, UnitSensitivity
from privrank.release.weights import WEIGHT_STEPS

ITEMS = ("a", "b", "c", "d")
PAIRS = [(i, j) for i in range(4) for j in range(i)]
PERSON = {"items": ITEMS, "respondent": "id", "max_rows": 3, "design": "public"}
ROWS = {"items": ITEMS, "respondent": None, "design": "public"}
COLUMNS = ComparisonColumns("item1", "item2", "outcome", "id", weights="w")


def survey(n=300, seed=1, rows=3, heavy=0.7):
    """Respondents whose worths go with their weights."""
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(0.0, heavy, n)
    asked = np.array([rng.choice(len(PAIRS), rows, replace=False) for _ in range(n)])
    first, second = np.array(PAIRS)[asked].transpose(2, 0, 1)
    worths = np.linspace(1.0, -1.0, 4) * np.where(weight[:, None] > 1.5, -0.5, 1.0)
    worths = worths + rng.normal(0.0, 1.0, (n, 4))
    apart = np.take_along_axis(worths, first, 1) - np.take_along_axis(worths, second, 1)
    won = rng.random(apart.shape) < 1.0 / (1.0 + np.exp(-apart))
    names = np.array(ITEMS)
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(n), rows),
            "item1": names[first.ravel()],
            "item2": names[second.ravel()],
            "outcome": np.where(won, 1.0, -1.0).ravel(),
            "w": np.repeat(weight, rows),
        }
    )


def rounded(weight, most=None):
    """The weights of the statistic, by the definition on the page on weights."""
    largest = min(most or np.inf, weight.max())
    return np.maximum(np.rint(WEIGHT_STEPS * np.minimum(weight, largest) / largest), 1.0)


@pytest.mark.parametrize("most", [None, 2.0])
def test_without_privacy_it_is_the_weighted_pseudo_likelihood_with_its_sandwich(most):
    data = survey()
    result = pr.PrivateBTL(data, weights="w", max_weight=most, **PERSON).fit(np.inf, penalty=0)
    place = {name: k for k, name in enumerate(ITEMS)}
    rows = np.arange(len(data))
    pairs = np.zeros((len(data), 4))
    pairs[rows, data["item1"].map(place)] = 1.0
    pairs[rows, data["item2"].map(place)] = -1.0
    centred = np.vstack((np.eye(3), -np.ones(3)))
    model = sm.GLM(
        (data["outcome"] > 0).astype(float),
        pairs @ centred,
        family=sm.families.Binomial(),
        freq_weights=rounded(data["w"].to_numpy(), most),
    )
    groups = {"groups": data["id"].to_numpy(), "use_correction": False}
    peer = model.fit(cov_type="cluster", cov_kwds=groups, tol=1e-14)
    np.testing.assert_allclose(result.params, centred @ peer.params, atol=1e-9)
    n = data["id"].nunique()
    covariance = centred @ np.asarray(peer.cov_params()) @ centred.T * n / (n - 1)
    np.testing.assert_allclose(result.cov_params(), covariance, atol=1e-10)


def test_without_respondents_variances_are_the_largest_possible_ones():
    data = survey()
    result = pr.PrivateBTL(data.drop(columns="id"), weights="w", **ROWS).fit(np.inf, penalty=0)
    steps = rounded(data["w"].to_numpy())
    place = {name: k for k, name in enumerate(ITEMS)}
    pairs = np.zeros((len(data), 4))
    pairs[np.arange(len(data)), data["item1"].map(place)] = 1.0
    pairs[np.arange(len(data)), data["item2"].map(place)] -= 1.0
    chance = 1.0 / (1.0 + np.exp(-pairs @ result.params.to_numpy()))
    bread = np.linalg.pinv(pairs.T @ (pairs * (steps * chance * (1.0 - chance))[:, None]))
    meat = 0.25 * pairs.T @ (pairs * (steps**2)[:, None])
    np.testing.assert_allclose(result.cov_params(), bread @ meat @ bread, atol=1e-10)


def three(weights, answers):
    """Three respondents who compare all pairs of three items."""
    first, second = ["a", "a", "b"], ["b", "c", "c"]
    return pd.DataFrame(
        {
            "id": np.repeat(range(3), 3),
            "item1": first * 3,
            "item2": second * 3,
            "outcome": np.ravel(answers).astype(float),
            "w": np.repeat(weights, 3),
        }
    )


def encoded(frame, columns=COLUMNS, **more):
    options = {"items": ("a", "b", "c"), "max_rows": 3, "ties": True, "design": "public"}
    return encode_comparisons(frame, columns, **options | more)


def test_win_rates_hold_where_light_and_heavy_respondents_differ():
    # heavy respondents are undecided, and light ones decide elsewhere; by simulation in the study
    rng = np.random.default_rng(7)
    groups = {("a", "b"): (150, 1.0, 0.5), ("c", "d"): (150, 1.0, 0.5)}
    light = {("a", "c"): 0.97, ("a", "d"): 0.97, ("b", "c"): 0.97, ("b", "d"): 0.97}
    groups |= {pair: (2000, 0.05, chance) for pair, chance in light.items()}
    rates = []
    for _ in range(30):
        parts = [
            pd.DataFrame({"item1": i, "item2": j, "w": w, "outcome": rng.random(n) < p}, range(n))
            for (i, j), (n, w, p) in groups.items()
        ]
        data = pd.concat(parts, ignore_index=True).assign(id=lambda frame: frame.index)
        data["outcome"] = 2.0 * data["outcome"] - 1.0
        asked = {"items": ITEMS, "respondent": "id", "design": "public", "weights": "w"}
        fit = pr.PrivateTopK(data, 2, **asked).fit(100.0, rng=rng)
        rates.append((fit.params["a"], fit.bse["a"]))
    estimates, errors = np.array(rates).T
    assert errors.mean() > 0.75 * estimates.std(ddof=1)


@pytest.mark.parametrize("weights", [(1.0, 2.0, 4.0), (0.3, 0.3, 0.3)])
def test_sensitivities_by_enumeration(weights):
    # all answers of the heaviest respondent; the answers of the others do not matter
    rest = [[1, -1, 0], [0, 1, 1]]
    nets = []
    for answers in product((-1, 0, 1, np.nan), repeat=3):
        data = encoded(three(weights, [*rest, answers]))
        nets.append(tallies.net_wins(data))
    nets = np.array(nets)
    moved = (nets[:, None] - nets).reshape(-1, 3)
    allowed = data.design.sensitivity
    assert np.abs(moved).sum(axis=1).max() == allowed.net_l1
    assert np.sqrt((moved**2).sum(axis=1).max()) == pytest.approx(allowed.net_l2)
    assert np.abs(moved).max() == allowed.net_linf
    # K contains the sums over one item up to 2, and over two items, which are the same in size
    assert np.abs(moved).max() / 2 == allowed.net_permutohedra
    alone = UnitSensitivity(3, 3, True, "outcome")
    assert allowed.net_l1 == WEIGHT_STEPS * alone.net_l1


def contrasts_of(data, epsilon=1.0):
    model = pr.PrivateBTL(data, weights="w", ties=True, items=("a", "b", "c"), **SMALL)
    release = model.fit(epsilon, rng=np.random.default_rng(4), allow_unidentified=True).release
    equations = score_equations(release)
    fitted = estimate(equations, release)
    b = fitted.coefficients
    directions = contrast_directions(equations, release, b, response(equations, fitted))
    expected = tallies.round_expected(release.design, None)
    return release.design, directions, expected


SMALL = {"respondent": "id", "max_rows": 3, "design": "public"}


def largest_move(contrasts, expected):
    """How far the heaviest respondent moves the largest design effect, over all answers."""
    values = []
    for answers in product((-1, 0, 1), repeat=3):
        data = encoded(three((1.0, 2.0, 4.0), [[1, -1, 0], [0, 1, 1], answers]))
        values.append(tallies.largest_design_effect(data, contrasts, expected))
    return max(values) - min(values)


def test_the_largest_design_effect_moves_by_its_sensitivity_at_most():
    data = three((1.0, 2.0, 4.0), [[1, -1, 0], [0, 1, 1], [1, 1, 1]])
    design, directions, expected = contrasts_of(data)
    contrasts = tallies.round_directions(design, directions, expected)
    assert 0 < largest_move(contrasts, expected) <= STEPS
    # the bound of a respondent of weight 1 is not enough
    light = [max(1, number // WEIGHT_STEPS**2) for number in contrasts.scale]
    assert largest_move(replace(contrasts, scale=light), expected) > STEPS


def test_equal_weights_change_nothing():
    # item a wins all comparisons, so its worth depends on the ridge
    data = survey().assign(w=3.0)
    data.loc[data["item1"] == "a", "outcome"] = 1.0
    data.loc[data["item2"] == "a", "outcome"] = -1.0
    plain = data.drop(columns="w")
    for unit, penalty in ((PERSON, "auto"), (PERSON, 100.0), (ROWS, "auto")):
        exact, other = (
            pr.PrivateBTL(frame, **unit, **more).fit(np.inf, penalty=penalty)
            for frame, more in ((data, {"weights": "w"}), (plain, {}))
        )
        assert exact.penalty == pytest.approx(other.penalty)
        np.testing.assert_allclose(exact.params, other.params, rtol=1e-9)
        if unit is PERSON:  # without respondents variances are upper bounds
            np.testing.assert_allclose(exact.bse, other.bse, rtol=1e-9)
            assert exact.llf == pytest.approx(other.llf)


def test_equal_weights_change_nothing_but_the_lattice_of_noise():
    data = survey().assign(w=3.0)
    plain = data.drop(columns="w")
    for epsilon in (2.0, 20.0):
        fits = [
            pr.PrivateBTL(frame, **PERSON, **more).fit(
                epsilon, noise="laplace", rng=np.random.default_rng(2)
            )
            for frame, more in ((data, {"weights": "w"}), (plain, {}))
        ]
        # the lattice is finer by WEIGHT_STEPS, so equal seeds give similar noise
        pairs = [fit.pairwise() for fit in fits]
        apart = np.abs(pairs[0]["difference"] - pairs[1]["difference"]) / pairs[1]["std_err"]
        assert apart.max() < 0.05
        np.testing.assert_allclose(pairs[0]["std_err"], pairs[1]["std_err"], rtol=0.01)
        np.testing.assert_allclose(pairs[0]["upper"], pairs[1]["upper"], atol=0.01)
        assert fits[0].release.design.weights.kish == pytest.approx(300)
        assert fits[0].release.design.weights.effective == pytest.approx(300)


def test_only_ratios_of_weights_matter():
    data = survey()
    first, second = (
        pr.PrivateBTL(frame, weights="w", **PERSON).fit(1.0, rng=np.random.default_rng(2))
        for frame in (data, data.assign(w=8.0 * data["w"]))
    )
    np.testing.assert_array_equal(first.params, second.params)


def test_all_frames_and_counted_rows_give_one_release():
    data = survey()
    frames = (data, pl.from_pandas(data), pl.from_pandas(data).lazy(), data.sample(frac=1.0))
    found = [
        pr.PrivateBTL(frame, weights="w", **PERSON).fit(1.0, rng=np.random.default_rng(2)).to_json()
        for frame in frames
    ]
    assert len(set(found)) == 1
    rows = data.drop(columns="id").assign(w=np.resize([1.0, 2.5], len(data)))
    counted = rows.value_counts(sort=False).rename("times").reset_index()
    one = pr.PrivateBTL(rows, weights="w", **ROWS)
    more = {"counts": "times", "distinct_pairs": False}
    other = pr.PrivateBTL(counted, weights="w", **ROWS | more)
    fits = [model.fit(1.0, rng=np.random.default_rng(2)) for model in (one, other)]
    np.testing.assert_array_equal(fits[0].params, fits[1].params)
    assert fits[0].release.design.weights == fits[1].release.design.weights


def test_public_facts_of_weights():
    data = survey()
    weight = data.groupby("id")["w"].first().to_numpy()
    facts = pr.PrivateBTL(data, weights="w", max_weight=2.0, **PERSON)._encoded.design.weights
    steps = rounded(weight, 2.0)
    assert facts.kish == pytest.approx(steps.sum() ** 2 / (steps**2).sum())
    assert facts.effective == pytest.approx(steps.sum() / WEIGHT_STEPS)
    assert facts.effective <= facts.kish <= len(weight)
    assert facts.answers == len(data)
    # no answer that all give moves further, and the answer "is heavy" attains the bound
    before, after = weight / weight.sum(), steps / steps.sum()
    worst = before > after
    assert facts.moved == pytest.approx(before[worst].sum() - after[worst].sum())


def test_summaries_say_what_weights_do():
    data = survey()
    more = {"weights": "w", "max_weight": 2.0}
    fit = pr.PrivateBTL(data, **more, **PERSON).fit(2.0, rng=np.random.default_rng(3))
    top = pr.PrivateTopK(data, 2, **more, **PERSON).fit(2.0, rng=np.random.default_rng(3))
    for result in (fit, top):
        text = " ".join(str(result.summary()).split())
        for words in (
            "Effective Units:",
            "Answers are weighted by w, at most 2. Trimming and rounding of the weights move",
            "the weights were fixed before any answer",
            "Public: who answered which pairs, and the weights.",
        ):
            assert words in text
        assert pr.from_json(result.to_json()).to_json() == result.to_json()
    assert "No. Comparisons: 900 " in " ".join(str(fit.summary()).split())
    # in the unit of the weights, as the frame has them
    weight = data["w"].clip(upper=2.0)
    won = (data["outcome"] * weight).groupby(data["item1"]).sum()
    lost = (data["outcome"] * weight).groupby(data["item2"]).sum()
    exact = pr.PrivateTopK(data, 2, **more, **PERSON).fit(np.inf).net_wins
    np.testing.assert_allclose(exact[list(ITEMS)], won.sub(lost, fill_value=0.0), atol=2.0)


@pytest.mark.parametrize(
    ("change", "more", "words"),
    [
        ({"w": 0.0}, {}, "positive weight in every row"),
        ({"w": np.nan}, {}, "positive weight in every row"),
        ({"w": np.inf}, {}, "positive weight in every row"),
        ({"w": "heavy"}, {}, "must hold numbers"),
        ({"w": range(1, 901)}, {}, "one weight for each respondent"),
        ({}, {"weights": "weight"}, "Name the right column with weights="),
        ({}, {"weights": "id"}, "different columns"),
        ({}, {"design": "private"}, "design='public'"),
        ({}, {"ties": "davidson"}, "without a parameter for ties"),
        ({}, {"max_weight": 0}, "max_weight must be a number"),
        ({}, {"weights": None, "max_weight": 2.0}, "max_weight= needs weights="),
    ],
)
def test_weights_without_a_proof_are_refused(change, more, words):
    with pytest.raises((ValueError, TypeError), match=words):
        pr.PrivateBTL(survey().assign(**change), **{"weights": "w"} | PERSON | more)


@pytest.mark.parametrize(
    "more", [{"method": "objective"}, {"dependence": "pairs"}], ids=["objective", "pairs"]
)
def test_releases_without_a_proof_are_refused(more):
    with pytest.raises(ValueError, match="weight"):
        pr.PrivateBTL(survey(), weights="w", **PERSON).fit(1.0, **more)


def test_other_links_are_refused():
    with pytest.raises(ValueError, match="under the logit"):
        pr.PrivateBTL(survey(), weights="w", link="probit", **PERSON).fit(1.0)
    release = pr.PrivateBTL(survey(), weights="w", **PERSON).fit(1.0).release
    with pytest.raises(ValueError, match="release with weights="):
        pr.PrivateBTL.from_release(release, link="probit")


@pytest.mark.parametrize(
    "change",
    [
        lambda design: design.pop("weights"),
        lambda design: design["pairs"].pop("squares"),
        lambda design: design["pairs"]["squares"].pop(),
        lambda design: design["pairs"]["squares"].__setitem__(0, -1.0),
        lambda design: design["weights"].__setitem__("kish", 1e6),
        lambda design: design["weights"].__setitem__("effective", 0.0),
        lambda design: design["weights"].__setitem__("cubes", "many"),
        lambda design: design["weights"].__setitem__("by_row", True),
        lambda design: design.__setitem__("kind", "private"),
    ],
)
def test_altered_archives_are_refused(change):
    text = pr.PrivateBTL(survey(), weights="w", **PERSON).fit(1.0).to_json()
    record = json.loads(text)
    change(record["release"]["design"])
    with pytest.raises(ValueError, match="A release must|text must"):
        pr.from_json(json.dumps(record))


def test_covariates_beside_weights_are_refused():
    data = survey().assign(town=lambda frame: np.where(frame["id"] % 2, "x", "y"))
    with pytest.raises(ValueError, match="without covariates"):
        pr.PrivateBTL.from_formula(
            "item1 + item2 + outcome ~ town",
            data,
            weights="w",
            levels={"town": ["x", "y"]},
            **PERSON,
        )
