"""What a selection is ranked by: net wins or win rates, and what either states."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

import privrank as pr
from privrank.bradley_terry.equations import degree_error, score_equations
from privrank.bradley_terry.winrates import equal_variances, most_met
from privrank.hypotheses.tails import noisy_tail, normal_laplace_tail

CEMS = pr.datasets.load_university()
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def seeded(seed=7):
    return np.random.default_rng(seed)


def survey(items, rows, seed=0, spread=1.0):
    """Rows of random pairs of items whose worths are evenly spread."""
    rng = seeded(seed)
    worths = np.linspace(spread, -spread, items)
    one, other = np.triu_indices(items, 1)
    pair = rng.integers(0, len(one), rows)
    one, other = one[pair], other[pair]
    won = rng.random(rows) < 1 / (1 + np.exp(worths[other] - worths[one]))
    return pd.DataFrame({"item1": one, "item2": other, "outcome": np.where(won, 1, -1)})


def selection(items=6, rows=3000, k=2, seed=0, spread=1.0, **more):
    frame = survey(items, rows, seed, spread)
    return pr.PrivateTopK(frame, k, items=range(items), respondent=None, **more)


@quiet
@pytest.mark.parametrize(("items", "rows"), [(6, 30), (10, 45), (10, 180), (40, 780)])
@pytest.mark.parametrize("target", ["auto", "net wins", "win rate"])
def test_k_items_are_always_selected(items, rows, target):
    for seed, k in itertools.product(range(3), (1, items // 4 or 1, items - 1)):
        result = selection(items, rows, k).fit(1.0, target=target, rng=seeded(seed))
        assert len(result.selected) == k
        assert 0 <= result.pvalue <= 1
        ends = result.conf_int().to_numpy()
        if result.target == "win rate":
            assert (ends[:, 0] <= ends[:, 1]).all()
        else:
            assert np.isnan(ends).all()


@quiet
def test_the_setting_of_the_paper_finds_most_of_the_leading_items():
    rng = seeded(0)
    worths = np.log(np.r_[np.ones(25), rng.uniform(0.2, 0.7, 75)])
    frame = pr.simulate.bradley_terry(worths, share=1.0, rng=rng)
    model = pr.PrivateTopK(frame, 25, items=range(100), respondent=None)
    right = [
        sum(int(item) < 25 for item in model.fit(1.0, target="net wins", rng=seeded(s)).selected)
        for s in range(20)
    ]
    assert np.mean(right) / 25 > 0.8


@quiet
def test_no_pair_counts_are_released_and_all_of_epsilon_is_used():
    for target, part in (("net wins", "net wins"), ("win rate", "wins and losses")):
        release = selection().fit(1.0, target=target, rng=seeded()).release
        assert set(release.parts) == {part}
        assert release.parts[part].epsilon == pytest.approx(1.0)
        with pytest.raises(ValueError, match="this selection released none"):
            pr.PrivateBTL.from_release(release)


@quiet
def test_the_default_goes_by_public_numbers():
    # of 6 items in 3,000 rows 1,000 comparisons each; at epsilon 1 noise of sd 7.6
    assert selection(6, 3000).fit(1.0, rng=seeded()).target == "win rate"
    assert selection(6, 30).fit(1.0, rng=seeded()).target == "net wins"
    assert selection(6, 3000).fit(0.01, rng=seeded()).target == "net wins"
    declared = selection(6, 30, pair_counts="equal").fit(1.0, rng=seeded())
    assert declared.target == "win rate" and "net wins" in declared.release.parts


def answers(items, people, rows, seed=0, spread=1.0):
    """Rows of respondents who are asked so many pairs each, drawn at random."""
    rng, worths = seeded(seed), np.linspace(spread, -spread, items)
    one, other = np.triu_indices(items, 1)
    pair = np.argsort(rng.random((people, len(one))), axis=1)[:, :rows].ravel()
    one, other = one[pair], other[pair]
    won = rng.random(len(pair)) < 1 / (1 + np.exp(worths[other] - worths[one]))
    columns = {"item1": one, "item2": other, "outcome": np.where(won, 1, -1)}
    return pd.DataFrame(columns | {"respondent": np.repeat(np.arange(people), rows)})


def asked(items=6, people=300, rows=15, **more):
    frame = answers(items, people, rows, **more)
    return pr.PrivateTopK(frame, 2, items=range(items), respondent="respondent", max_rows=rows)


def rates(release):
    """Win rates, and comparisons, as they were released in either form."""
    parts = {name: part.step * part.values for name, part in release.parts.items()}
    if "item_counts" in parts:
        return 0.5 + 0.5 * parts["net wins"] / parts["item_counts"], parts["item_counts"]
    won, lost = parts["wins and losses"].reshape(2, -1)
    return won / (won - lost), won - lost


@quiet
@pytest.mark.parametrize(
    ("items", "rows", "epsilon", "arguments", "split"),
    [
        (6, 15, 1.0, {}, True),
        (6, 9, 1.0, {}, True),
        (6, 3, 1.0, {}, False),
        (3, 3, 1.0, {}, False),  # the gain would be too small
        (6, 15, 0.4, {}, False),  # item counts would not stand out
        (6, 3, 1.0, {"shares": {"item_counts": 0.4}}, True),
        (6, 3, 1.0, {"noise": "permutohedron"}, True),
        (6, 3, 1.0, {"noise": "gaussian", "delta": 1e-6}, True),
        (6, 15, 1.0, {"noise": "zero-sum-laplace"}, False),
    ],
)
def test_win_rates_have_the_form_of_the_less_predicted_noise(
    items, rows, epsilon, arguments, split
):
    fit = asked(items, 300, rows).fit(epsilon, target="win rate", rng=seeded(), **arguments)
    released = fit.release.parts.keys() - {"dependence"}
    assert released == ({"net wins", "item_counts"} if split else {"wins and losses"})
    if arguments.keys() == {"shares"}:
        assert fit.release.parts["item_counts"].epsilon == pytest.approx(0.4)
    rate, compared = rates(fit.release)
    seen = compared > 5 * degree_error(score_equations(fit.release))
    np.testing.assert_allclose(fit.estimate[seen], rate[seen])
    np.testing.assert_allclose(fit.degrees[seen], compared[seen])
    text = " ".join(str(fit.summary()).split())
    assert len(str(fit.summary()).splitlines()) <= 32
    assert ("from net wins and item counts" in text) == split
    assert ("from wins and losses released together" in text) == (not split)
    again = pr.from_json(fit.to_json())
    assert again.to_frame().equals(fit.to_frame()) and again.pvalue == fit.pvalue


@quiet
@pytest.mark.parametrize(("items", "rows"), [(6, 15), (6, 9), (4, 6)])
def test_the_chosen_form_has_the_less_noise_and_as_much_as_was_predicted(items, rows):
    model, measured = asked(items, 400, rows), []
    exact = model.fit(np.inf)
    for arguments in ({}, {"noise": "zero-sum-laplace"}):
        plain = {"dependence": "none", "target": "win rate"} | arguments
        fits = [model.fit(1.0, rng=seeded(seed), **plain) for seed in range(300)]
        off = np.array([fit.estimate - exact.estimate for fit in fits]) * exact.degrees
        facts = score_equations(fits[0].release)
        # of half net wins: theirs, and that of the comparisons at the rates there are
        rest = np.mean((exact.estimate - 0.5) ** 2) * degree_error(facts) ** 2
        apart = off - off.mean(axis=1, keepdims=True)
        measured.append((apart**2).sum(axis=1).mean() / (items - 1))
        assert measured[-1] == pytest.approx(facts.by_item.score_variance + rest, rel=0.15)
    assert measured[0] < 0.85 * measured[1]


@quiet
@pytest.mark.parametrize("rows", [15, 9])
def test_intervals_of_net_wins_and_comparisons_allow_for_the_noise_of_both(rows):
    fit = asked(6, 300, rows).fit(1.0, target="win rate", dependence="none", rng=seeded())
    (rate, met), facts = rates(fit.release), score_equations(fit.release)
    ends = fit.conf_int(0.1)
    for item in range(6):

        def excess(r, rate=rate[item], met=met[item]):
            noise = degree_error(facts) * (r - 0.5) / met
            deviation = np.sqrt([r * (1 - r) / met + noise**2])
            net = np.array([0.5 * facts.by_item.step / met])
            tail = noisy_tail(facts.by_item.distribution, np.array([abs(rate - r)]), deviation, net)
            return float(tail[0]) - 0.1

        for end in ends.iloc[item]:
            other = 1e-9 if end < rate[item] else 1 - 1e-9
            assert end == pytest.approx(brentq(excess, other, rate[item], xtol=1e-12), abs=1e-7)


@quiet
def test_an_item_whose_comparisons_do_not_exceed_their_noise_may_have_any_rate():
    frame = answers(6, 60, 15)
    frame = frame[(frame["item1"] != 0) & (frame["item2"] != 5)]
    model = pr.PrivateTopK(frame, 2, items=range(6), respondent="respondent", max_rows=15)
    arguments = {"target": "win rate", "shares": {"item_counts": 0.5}}
    fit = model.fit(2.0, rng=seeded(), **arguments)
    rough = rates(fit.release)[1] <= 4 * degree_error(score_equations(fit.release))
    assert rough[[0, 5]].all() and not rough.all()
    assert (fit.conf_int()[rough].to_numpy() == [0.0, 1.0]).all()
    assert (fit.rank_conf_int()[rough].to_numpy() == [1, 6]).all()
    assert fit.params.isna().to_numpy().tolist() == rough.tolist() and fit.pvalue == 1.0


@quiet
def test_a_selection_of_net_wins_and_comparisons_has_no_pair_counts():
    release = asked().fit(1.0, rng=seeded()).release
    assert "item_counts" in release.parts
    with pytest.raises(ValueError, match="this selection released none"):
        pr.PrivateBTL.from_release(release)
    by_net = pr.PrivateTopK.from_release(release, 3, target="net wins")
    assert by_net.target == "net wins" and by_net.conf_int().notna().all(axis=None)


@quiet
def test_two_items_have_no_released_win_rates():
    model = selection(2, 500, 1)
    assert model.fit(1.0, rng=seeded()).target == "net wins"
    with pytest.raises(ValueError, match="needs three items"):
        model.fit(1.0, target="win rate")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"target": "worths"}, "target must be"),
        ({"target": "win rate", "noise": "gaussian"}, "needs a delta"),
        ({"target": "win rate", "shares": {"item_counts": 0.95}}, "add up to less than 1"),
        ({"target": "net wins", "dependence": "pairs"}, "has no effect"),
    ],
)
def test_what_does_not_go_together_is_refused_for_nothing(arguments, words):
    budget = pr.Budget(epsilon=1.0, delta=1e-5, unit="respondent")
    people = CEMS.comparisons
    model = pr.PrivateTopK(
        people, 2, items=CEMS.items, respondent="respondent", max_rows=15, ties=True
    )
    with pytest.raises(ValueError, match=words):
        model.fit(1.0, **arguments, budget=budget)
    assert budget.left[0] == 1.0


@pytest.mark.parametrize("choice", ["release", "proportional"])
def test_pair_counts_are_not_for_a_selection(choice):
    with pytest.raises(ValueError, match="Omit pair_counts"):
        selection(pair_counts=choice)
    with pytest.raises(ValueError, match="Omit pair_counts"):
        pr.PrivateTopK.from_formula(
            "item1 + item2 + outcome ~ 1", survey(4, 99), 1, respondent=None, items=range(4),
            pair_counts=choice,
        )  # fmt: skip


@quiet
def test_a_release_of_net_wins_has_no_win_rates():
    release = selection().fit(1.0, target="net wins", rng=seeded()).release
    with pytest.raises(ValueError, match="needs a release with the comparisons of each item"):
        pr.PrivateTopK.from_release(release, 2, target="win rate")
    again = pr.PrivateTopK.from_release(release, 3)
    assert again.target == "net wins" and again.pvalue == 1.0
    assert again.conf_int().isna().all(axis=None) and (again.pvalues == 1).all()
    assert again.rank_conf_int().to_numpy().tolist() == [[1, 6]] * 6
    assert "No intervals, tests or rank sets are given" in " ".join(str(again.summary()).split())


@quiet
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_intervals_of_win_rates_invert_the_noisy_binomial(epsilon):
    result = selection(6, 900).fit(epsilon, target="win rate", noise="laplace", rng=seeded())
    part = result.release.parts["wins and losses"]
    won, lost = part.step * part.values.reshape(2, -1)
    ends = result.conf_int(0.1)
    for item in range(6):
        met, rate = won[item] - lost[item], won[item] / (won[item] - lost[item])

        def excess(r, met=met, rate=rate):
            scale = part.step * part.distribution.scale * math.hypot(r, 1 - r) / met
            deviation = math.sqrt(r * (1 - r) / met)
            return float(normal_laplace_tail(abs(rate - r), deviation, (scale,))) - 0.1

        low, high = ends.iloc[item]
        if result.bse.isna().iloc[item]:
            assert (low, high) == (0.0, 1.0)
            continue
        for end, inside in ((low, rate), (high, rate)):
            if 1e-9 < end < 1 - 1e-9:
                other = 1e-9 if end < inside else 1 - 1e-9
                assert end == pytest.approx(brentq(excess, other, inside, xtol=1e-12), abs=1e-7)


def test_one_noise_stands_for_that_of_wins_and_losses_in_the_tails():
    rng = seeded()
    for rate in (0.5, 0.7, 0.95):
        noise = rng.laplace(size=(2, 2_000_000))
        sums = np.abs((1 - rate) * noise[0] - rate * noise[1])
        for level in (0.05, 0.01, 0.001):
            x = np.quantile(sums, 1 - level)
            tail = math.exp(-x / math.hypot(rate, 1 - rate))
            assert level * 0.97 < tail < level * 2.5


def test_gaps_allow_for_as_many_comparisons_of_two_items_as_there_can_be():
    result = selection(3, 400).fit(4.0, target="win rate", rng=seeded())
    facts, degrees = score_equations(result.release), np.array([200.0, 150.0, 90.0])
    met = most_met(facts, result.release.design, degrees)
    assert met[0, 1] == 150 and met[1, 2] == 90
    bound = equal_variances(facts, degrees, degrees, met)
    # whoever met whom, of equal items: independent fair coins by comparison
    for together in range(0, 151, 10):
        alone = (degrees[0] - together) / degrees[0] ** 2 + (150 - together) / 150**2
        variance = 0.25 * (alone + together * (1 / degrees[0] + 1 / 150) ** 2)
        assert variance <= bound[0, 1] * (1 + 1e-12)
    assert variance == pytest.approx(bound[0, 1])
    people = pr.PrivateTopK(
        CEMS.comparisons, 2, items=CEMS.items, respondent="respondent", max_rows=15, ties=True
    ).fit(2.0, rng=seeded())
    released = score_equations(people.release)
    assert most_met(released, people.release.design, people.degrees).max() == 303


def test_net_wins_under_a_public_design_are_stated_by_hand():
    rows = [("a", "c", 1.0)] * 9 + [("a", "c", -1.0)]
    rows += [("b", "c", 1.0)] * 60 + [("b", "c", -1.0)] * 40
    frame = pd.DataFrame(rows, columns=["item1", "item2", "outcome"])
    model = pr.PrivateTopK(frame, 1, items=list("abc"), respondent=None, design="public")
    by_net = model.fit(np.inf, target="net wins")
    assert model.fit(np.inf).selected == ("a",) and by_net.selected == ("b",)
    assert by_net.params.round(9).to_dict() == {"a": 8.0, "b": 20.0, "c": -28.0}
    # 100 comparisons won with probability .6 have net wins of variance 4 * 100 * .24
    assert by_net.bse["b"] == pytest.approx(math.sqrt(96))
    plain = model.fit(np.inf).conf_int()
    for item, met in {"a": 10, "b": 100, "c": 110}.items():
        wilson = met * (2 * plain.loc[item] - 1)
        np.testing.assert_allclose(by_net.conf_int().loc[item], wilson, atol=1e-6)
    again = pr.from_json(by_net.to_json())
    assert again.target == "net wins" and again.to_frame().equals(by_net.to_frame())
    assert by_net.tidy()["estimate"].round(9).tolist() == [20.0, 8.0, -28.0]
    assert "ranked by net wins" in str(by_net.summary())


def test_cluster_robust_errors_of_net_wins_are_those_of_sums_over_respondents():
    rng, people = seeded(), 60
    frame = survey(4, 5 * people, seed=3)
    frame["respondent"] = np.repeat(np.arange(people), 5)
    frame = frame[rng.random(len(frame)) < 0.8]
    named = {"items": range(4), "respondent": "respondent", "max_rows": 5, "distinct_pairs": False}
    result = pr.PrivateTopK(frame, 1, design="public", **named).fit(np.inf, target="net wins")
    nets = np.zeros((people, 4))
    np.add.at(nets, (frame["respondent"], frame["item1"]), frame["outcome"])
    np.add.at(nets, (frame["respondent"], frame["item2"]), -frame["outcome"])
    nets = nets[np.unique(frame["respondent"])]
    variance = len(nets) * np.cov(nets, rowvar=False)
    np.testing.assert_allclose(result.bse**2, np.diag(variance), rtol=1e-9)


@quiet
def test_the_largest_gap_holds_for_all_sizes_at_once():
    fit = selection(5, 2000).fit(2.0, rng=seeded())
    table = fit.largest_gap()
    assert sorted(table.index) == [1, 2, 3, 4]
    for k in table.index:
        alone = pr.PrivateTopK.from_release(fit.release, int(k))
        assert table.loc[k, "pvalue"] == pytest.approx(min(1.0, 4 * alone.pvalue))
        assert table.loc[k, "gap"] == pytest.approx(alone.statistic)
    assert table["pvalue"].is_monotonic_increasing


@quiet
def test_membership_goes_by_the_sets_of_ranks():
    fit = selection(6, 4000).fit(2.0, rng=seeded())
    ends = fit.rank_conf_int()
    for tolerance in (0, 1, 3):
        words = fit.membership(tolerance)
        for item in fit.items:
            low, high = ends.loc[item]
            sure = "in" if high <= 2 + tolerance else "out" if low > 2 - tolerance else "open"
            assert words[item] == sure
    with pytest.raises(ValueError, match="tolerance"):
        fit.membership(-1)


@quiet
def test_a_plan_of_a_selection_has_the_target_of_a_fit():
    plan = pr.power.TopKPower(items=6, k=2, unit="row", replicates=40, aim="right")
    for target in ("net wins", "win rate"):
        named = pr.power.TopKPower(
            items=6, k=2, unit="row", replicates=40, aim="right", target=target
        )
        power = named.power(nobs=3000, epsilon=1.0, gap=0.4)
        assert power > 0.5
        if target == "win rate":  # what such a survey gets by default
            assert power == plan.power(nobs=3000, epsilon=1.0, gap=0.4)


@quiet
def test_a_plan_of_a_selection_releases_what_a_fit_does():
    shown = {"max_rows": 15, "design": "private", "replicates": 40, "aim": "right"}
    plan = pr.power.TopKPower(items=6, k=2, **shown)
    design = asked().fit(1.0, rng=seeded()).release.design
    assert plan._choice(design, 1.0, 0.0).shares.keys() == {"dependence", "item_counts"}
    assert plan.power(nobs=300, epsilon=1.0, gap=0.5) > 0.5


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("people", [False, True])
def test_intervals_of_win_rates_cover_and_the_test_of_the_set_keeps_its_level(people):
    covered, separated = [], []
    for seed in range(200 if people else 400):
        model = (
            asked(6, 200, 15, seed=seed, spread=0.0)
            if people
            else selection(6, 600, seed=seed, spread=0.0)
        )
        fit = model.fit(1.0, target="win rate", rng=seeded(seed))
        assert ("item_counts" in fit.release.parts) == people
        ends = fit.conf_int()
        covered.append(((ends["lower"] <= 0.5) & (ends["upper"] >= 0.5)).mean())
        separated.append(fit.pvalue <= 0.05)
    assert np.mean(covered) > 0.94 and np.mean(separated) <= 0.05


def test_a_share_for_what_is_not_released_is_refused_before_anything_is_spent():
    frame = pr.simulate.bradley_terry(np.array([1.0, 0.0, -1.0]), repeats=5)
    budget = pr.Budget(epsilon=1.0)
    for design in ("public", "private"):
        model = pr.PrivateTopK(frame, 1, items=range(3), respondent=None, design=design)
        with pytest.raises(ValueError, match="releases, and not 'pair_counts'"):
            model.fit(1.0, shares={"pair_counts": 0.5}, budget=budget)
        with pytest.raises(ValueError, match="releases, and not 'item_counts'"):
            model.fit(1.0, target="net wins", shares={"item_counts": 0.5}, budget=budget)
    worths = pr.PrivateBTL(frame, items=range(3), respondent=None, design="public")
    with pytest.raises(ValueError, match="releases, and not 'ties'"):
        worths.fit(1.0, shares={"ties": 0.5}, budget=budget)
    assert budget.left == (1.0, 0.0)
