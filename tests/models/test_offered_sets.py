"""Choices from offered sets, from the data frame to what a result prints."""

import json
import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from mutating import with_check

import privrank as pr

ITEMS = tuple("abcdef")
SETS = ((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5), (0, 4, 5), (0, 1, 5))


def survey(answer, respondents=60, seed=1, worths=(1.0, 0.6, 0.2, -0.2, -0.6, -1.0)):
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(respondents):
        felt = np.array(worths) + rng.gumbel(size=6)
        for shown in SETS:
            order = sorted(shown, key=lambda item: -felt[item])
            rows.append([person, *(ITEMS[k] for k in shown), *(ITEMS[k] for k in order)])
    names = ["id", "s1", "s2", "s3", "first", "second", "third"]
    frame = pd.DataFrame(rows, columns=names)
    answers = {
        "best": {"best": "first"},
        "worst": {"worst": "third"},
        "best-worst": {"best": "first", "worst": "third"},
        "order": {"places": ["first", "second", "third"]},
    }[answer]
    offered = ["s1", "s2", "s3"]
    return pr.as_choices(frame, offered=offered, items=ITEMS, respondent="id", **answers)


def model(answer, **options):
    frame = survey(answer, **options)
    return pr.PrivateBTL(frame, respondent="id", max_rows=6, design="public")


ANSWERS = ("best", "worst", "best-worst", "order")


@pytest.fixture(scope="module", params=ANSWERS)
def fitted(request):
    return model(request.param).fit(2.0, rng=np.random.default_rng(5))


def test_an_archive_gives_the_same_result(fitted):
    again = pr.from_json(fitted.to_json())
    assert again.release.design.offered == fitted.release.design.offered
    assert again.summary().as_text() == fitted.summary().as_text()
    # pairs follow from the sets and are not stored
    assert json.loads(fitted.release.to_json())["design"]["pairs"] is None


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("noise", ["laplace", "zero-sum-laplace", "permutohedron", None])
def test_an_archive_with_any_noise_is_read(answer, noise):
    """Totals of the best items alone add up to the number of answers, and not to 0."""
    epsilon = math.inf if noise is None else 1.0
    options = {} if noise is None else {"noise": noise}
    fit = model(answer).fit(epsilon, rng=np.random.default_rng(5), **options)
    again = pr.from_json(fit.to_json())
    pd.testing.assert_series_equal(again.params, fit.params)


@pytest.mark.parametrize(
    "change",
    [
        lambda offered: offered["units"].__setitem__(0, 61),
        lambda offered: offered["sets"][0].__setitem__(2, 9),
        lambda offered: offered["sets"][0].__setitem__(1, 0),
        lambda offered: offered["versions"][0].__setitem__(0, 17),
        lambda offered: offered["versions"][0].append(3),
        lambda offered: offered.__setitem__("answer", "order"),
    ],
)
def test_an_archive_with_other_sets_is_refused(change):
    record = json.loads(model("best-worst").fit(1.0, rng=np.random.default_rng(1)).to_json())
    release = record["release"] if "release" in record else record
    change(release["design"]["offered"])
    with pytest.raises(ValueError, match="text is not|does not belong|must"):
        pr.from_json(with_check(record))


def test_probabilities_of_a_set_follow_the_model(fitted):
    frame = pd.DataFrame({"offered 1": ["a"], "offered 2": ["d"], "offered 3": ["f"]}, index=["x"])
    shown = fitted.predict(frame)
    assert shown["row"].tolist() == ["x"] * 3 and shown["item"].tolist() == ["a", "d", "f"]
    worths = fitted.params[["a", "d", "f"]].to_numpy()
    answer = fitted.release.design.offered.answer
    named = {"best": ["best"], "order": ["best"], "worst": ["worst"]}.get(answer, ["best", "worst"])
    weights = np.zeros((3, 2))
    for first, last in permutations(range(3), 2):
        both = worths[first] - worths[last]
        weights[[first, last], [0, 1]] += np.exp(both)
    if answer != "best-worst":
        weights = np.column_stack((np.exp(worths), np.exp(-worths)))
    expected = weights / weights.sum(axis=0)
    for name, column in (("best", 0), ("worst", 1)):
        if name in named:
            assert shown[name].to_numpy() == pytest.approx(expected[:, column], rel=1e-12)
    assert list(shown.columns) == ["row", "item", *named]


@pytest.mark.parametrize(
    "columns",
    [
        {"offered 1": ["a"], "offered 2": ["a"], "offered 3": ["b"]},
        {"offered 1": ["a"], "offered 2": ["z"], "offered 3": ["b"]},
        {"offered 1": ["a"], "offered 2": ["b"]},
    ],
)
def test_sets_that_no_model_predicts_are_refused(columns):
    result = model("best-worst").fit(np.inf)
    with pytest.raises(ValueError, match="frame must offer different items"):
        result.predict(pd.DataFrame(columns))


def test_worths_with_the_scale_of_their_sets_are_not_turned_into_odds():
    result = model("best-worst").fit(1.0, rng=np.random.default_rng(2))
    pairs = pd.DataFrame({"item1": ["a"], "item2": ["b"]})
    for call in (
        result.worth,
        result.elo,
        result.probabilities,
        result.plot_pairwise,
        lambda: result.simulate(3),
        lambda: result.predict(pairs),
    ):
        with pytest.raises(ValueError, match="best-worst worths have the scale"):
            call()
    table = result.pairwise()
    assert "probability" not in table
    assert (table["lower"] < table["difference"]).all()
    assert (table["difference"] < table["upper"]).all()


def test_the_log_likelihood_is_that_of_the_model():
    rows = survey("best-worst", respondents=20)
    result = pr.PrivateBTL(rows, respondent="id", max_rows=6, design="public").fit(
        np.inf, penalty=0
    )
    total = 0.0
    for _, shown in rows.iterrows():
        names = [shown["offered 1"], shown["offered 2"], shown["offered 3"]]
        odds = {
            (b, w): np.exp(result.params[b] - result.params[w]) for b, w in permutations(names, 2)
        }
        total += np.log(odds[shown.best, shown.worst] / sum(odds.values()))
    assert result.llf == pytest.approx(total, abs=1e-8)


def test_choices_are_not_pooled_across_scales_nor_selected_from():
    result = model("best-worst").fit(1.0, rng=np.random.default_rng(3))
    for call in (
        lambda: pr.PrivateTopK.from_release(result.release, k=2),
        lambda: pr.PrivateTopK(survey("best"), 2, respondent="id", max_rows=6, design="public"),
    ):
        with pytest.raises(ValueError, match="needs orders of all items"):
            call()
    both = [result, model("best", seed=2).fit(1.0, rng=np.random.default_rng(4))]
    with pytest.raises(ValueError, match="worths on one scale"):
        pr.pool(both, survey="different")
    same = [result, model("best-worst").fit(0.5, rng=np.random.default_rng(6))]
    assert "weight" in pr.pool(same, survey="same").summary().as_text()


def test_orders_become_comparisons_of_public_pairs():
    choices = survey("order", respondents=30)
    pairs = pr.as_comparisons(choices, respondent="id")
    assert len(pairs) == 30 * 6 * 3
    assert (pairs.item1.cat.codes < pairs.item2.cat.codes).all()
    net = pr.PrivateBTL(
        pairs, respondent="respondent", max_rows=18, distinct_pairs=False, design="public"
    ).fit(np.inf, penalty=0)
    whole = pr.PrivateBTL(choices, respondent="id", max_rows=6, design="public").fit(
        np.inf, penalty=0
    )
    assert net.params.to_numpy() == pytest.approx(whole.params.to_numpy(), abs=1e-9)
    with pytest.raises(ValueError, match="orders of all items"):
        pr.as_comparisons(survey("best"), respondent="id")


def test_items_are_selected_from_orders():
    orders = survey("order")
    options = {"respondent": "id", "max_rows": 6, "design": "public"}
    selection = pr.PrivateTopK(orders, 2, **options)
    # the fraction of the pairs of all orders that an item wins
    pairs = pr.as_comparisons(orders, respondent="id")
    sides = [pairs[["item1", "outcome"]], pairs[["item2"]].assign(outcome=-pairs["outcome"])]
    both = pd.concat([side.set_axis(["item", "outcome"], axis=1) for side in sides])
    rates = 0.5 + 0.5 * both.groupby("item", observed=True)["outcome"].mean()
    found = selection.fit(np.inf).to_frame()["win_rate"]
    assert found[list(ITEMS)].to_numpy() == pytest.approx(rates[list(ITEMS)].to_numpy(), abs=1e-12)
    # the worths and the selection have the same release
    release = model("order").fit(1.0, rng=np.random.default_rng(1)).release
    own = selection.fit(1.0, rng=np.random.default_rng(1))
    assert (
        own.release.parts["net wins"].values.tolist() == release.parts["net wins"].values.tolist()
    )
    assert pr.PrivateTopK.from_release(release, 2).selected == own.selected
    named = pr.PrivateTopK.from_formula("order ~ 1", orders, 2, **options)
    assert named.fit(np.inf).selected == selection.fit(np.inf).selected


def test_one_order_of_three_items_needs_less_noise_than_three_pairs():
    orders = survey("order").drop(columns="id")
    pairs = pr.as_comparisons(survey("order").assign(id=range(360)), respondent="id")
    whole = pr.PrivateTopK(orders, 2, respondent=None, design="public").fit(
        1.0, noise="laplace", rng=np.random.default_rng(1)
    )
    apart = pr.PrivateTopK(pairs, 2, respondent="respondent", max_rows=3, design="public").fit(
        1.0, noise="laplace", dependence="none", rng=np.random.default_rng(1)
    )
    assert whole.release.parts["net wins"].distribution.scale == pytest.approx(8.0)
    assert apart.release.parts["net wins"].distribution.scale == pytest.approx(12.0)


def test_the_pairs_of_an_order_are_dependent():
    every = [list(order) for order in permutations("abc")] * 20
    frame = pd.DataFrame(every, columns=["1", "2", "3"])
    orders = pr.as_choices(frame, offered="own", places=["1", "2", "3"], items=list("abc"))
    result = pr.PrivateTopK(orders, 1, respondent=None, design="public").fit(np.inf)
    # at equal worths the variance is (s + 1) / 3 times that of independent pairs
    assert result.effects == pytest.approx(np.full((3, 3), 4.0 / 3.0))


def test_sets_of_two_are_paired_comparisons():
    frame = pd.DataFrame(
        [(k, *pair, pair[(k + x) % 3 > 0]) for k in range(40) for x, pair in enumerate(
            [("a", "b"), ("b", "c"), ("a", "c")]
        )],
        columns=["id", "one", "two", "best"],
    )  # fmt: skip
    options = {"respondent": "id", "max_rows": 3, "design": "public"}
    choices = pr.as_choices(
        frame, offered=["one", "two"], best="best", items=["a", "b", "c"], respondent="id"
    )
    of_sets = pr.PrivateBTL(choices, **options).fit(np.inf, penalty=0)
    pairs = pr.as_comparisons(choices, respondent="id")
    of_pairs = pr.PrivateBTL(pairs, **(options | {"respondent": "respondent"})).fit(
        np.inf, penalty=0
    )
    assert of_sets.params.to_numpy() == pytest.approx(of_pairs.params.to_numpy(), abs=1e-12)
    # the noise is at most that of net wins, which are twice the number of wins
    plans = [
        pr.PrivateBTL(data, **(options | {"respondent": name})).fit(
            1.0, noise="laplace", dependence="none", rng=np.random.default_rng(1)
        )
        for data, name in ((choices, "id"), (pairs, "respondent"))
    ]
    scales = [one.release.parts["net wins"].noise_variance ** 0.5 for one in plans]
    assert scales[0] <= scales[1] * (1 + 1e-9)


def test_arguments_for_comparisons_are_refused():
    frame = survey("best")
    with pytest.raises(ValueError, match="ties= must be left out"):
        pr.PrivateBTL(frame, respondent="id", max_rows=6, design="public", ties=True)
    with pytest.raises(ValueError, match="design must be 'public'"):
        pr.PrivateBTL(frame, respondent="id", max_rows=6)
    fit = model("best").fit
    for options in ({"method": "objective"}, {"dependence": "pairs"}, {"dependence": "cluster"}):
        with pytest.raises(ValueError, match="choices from offered sets"):
            fit(1.0, rng=np.random.default_rng(1), **options)


def test_a_summary_names_the_model_and_what_is_public(fitted):
    text = " ".join(fitted.summary().as_text().split())
    answer = fitted.release.design.offered.answer
    names = {"best": "First Choice", "worst": "Worst Choice", "best-worst": "MaxDiff"}
    assert f"Private {names.get(answer, 'Plackett-Luce')} Results" in text
    assert "No. Tasks: 360" in text
    assert "Public: which sets were offered to whom, and which were answered." in text
    assert ("Their scale depends" in text) == (answer == "best-worst")
