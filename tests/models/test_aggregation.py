"""Consensus orders: what is found, what is said of it, and what is refused."""

import re
import warnings
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import polars
import pytest
from scipy.stats import kendalltau

import privrank as pr
from privrank.consensus.statements import fraction_interval
from privrank.hypotheses.tails import half_width
from privrank.privacy.knorm import CubeNoise
from privrank.privacy.noise import DiscreteLaplace
from privrank.results.claims import CLAIMS

CEMS = pr.datasets.load_university()


def seeded(seed=7):
    return np.random.default_rng(seed)


def model(n=400, m=5, phi=0.7, seed=1, **arguments):
    return pr.PrivateRankAggregation(pr.Mallows(m, phi).rvs(n, seeded(seed)), **arguments)


def test_the_university_students_agree_on_the_first_and_the_last():
    budget = pr.Budget(epsilon=3.0, delta=1e-6, unit="respondent")
    fitted = pr.PrivateRankAggregation(CEMS.rankings(), respondent="respondent").fit(
        epsilon=2.0, delta=1e-6, budget=budget
    )
    assert fitted.order[0] == "London" and fitted.order[-1] == "Stockholm"
    assert fitted.nobs == 303 and budget.spent == (2.0, 1e-6)
    assert fitted.rank_conf_int().loc["London"].tolist() == [1, 1]
    assert fitted.release.source == "secure"
    assert "PrivateRankAggregation: Borda totals" in str(budget.summary())


def test_the_statements_on_foreigners_have_an_order():
    survey = pr.datasets.load_immigration()
    ranks = pr.PrivateRankAggregation(survey.rankings(), respondent="respondent")
    with pytest.warns(pr.PrivrankWarning, match="consensus may disagree"):
        fitted = ranks.fit(epsilon=0.5)
    assert fitted.release.mechanism == "Borda totals, Borda"
    exact = ranks.fit(epsilon=np.inf)
    assert set(exact.order[:2]) == {"crimRate", "socBurd"} and exact.proven


def mean_distance(places, ranks):
    """Return the mean number of pairs that a ranking and this order arrange differently."""
    placed = ranks[:, places]
    ahead, behind = np.triu_indices(len(places), 1)
    return (placed[:, ahead] > placed[:, behind]).sum(axis=1).mean()


def test_without_noise_orders_are_those_of_brute_force():
    rng = seeded(3)
    for m in (3, 5, 6):
        ranks = rng.permuted(np.tile(np.arange(1, m + 1), (31, 1)), axis=1)
        fit = pr.PrivateRankAggregation(ranks).fit
        best = min(mean_distance(np.array(o), ranks) for o in permutations(range(m)))
        for method in ("auto", "kemeny"):
            fitted = fit(np.inf, method=method)
            assert mean_distance(fitted.places, ranks) == best and fitted.proven
            assert fitted.kemeny_score == pytest.approx(best)
        borda = fit(np.inf, method="borda")
        assert (np.diff(ranks.mean(axis=0)[borda.places]) >= -1e-12).all()
        np.testing.assert_allclose(
            borda.borda()["mean_rank"], ranks.mean(axis=0)[borda.places], atol=1e-12
        )
        ahead = (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0)
        wins = np.sign(ahead - ahead.T).sum(axis=1)
        assert (np.diff(wins[fit(np.inf, method="copeland").places]) <= 0).all()
        for method in ("local-search", "kwiksort"):
            order = fit(np.inf, method=method, rng=rng).places
            assert sorted(order) == list(range(m))
            assert mean_distance(order, ranks) <= 2 * best


@pytest.mark.parametrize(
    ("method", "delta"),
    [("auto", 1e-6), ("kemeny", 0.0), ("borda", 0.0), ("pairs-laplace", 0.0), ("kwiksort", 0.0)]
    + [("kwiksort-hay", 0.0), ("exponential", 0.0)],
)
def test_with_little_noise_every_method_finds_the_order(method, delta):
    fitted = model(3000, 6, 0.6).fit(3.0, delta, method=method, rng=seeded())
    assert fitted.order == tuple("012345")
    assert fitted.consensus.tolist() == [1, 2, 3, 4, 5, 6]


def test_more_items_than_a_sort_may_ask_about_are_sorted_all_the_same():
    fitted = model(4000, 24, 0.8).fit(20.0, method="kwiksort", rng=seeded())
    assert fitted.order == tuple(str(k) for k in range(24))


TIED = pd.DataFrame([[1, 2, 3, 4], [2, 1, 3, 4], [1, 2, 4, 3], [2, 1, 4, 3]] * 5, columns=[*"abcd"])


@pytest.mark.parametrize("method", ["kemeny", "borda", "copeland"])
def test_equal_items_share_a_place_and_keep_the_order_of_the_items(method):
    survey = pr.PrivateRankAggregation(TIED, items=[*"dbca"])
    drawn = set()
    for seed in range(8):
        result = survey.fit(np.inf, method=method, rng=seeded(seed))
        assert result.consensus.to_dict() == {"b": 1, "a": 1, "d": 3, "c": 3}
        assert list(result.consensus.index) == list(result.to_frame().index) == [*"badc"]
        equal = CLAIMS["equal estimates"].format(names="b, a; d, c")
        assert equal in " ".join(result.summary().notes)
        if method != "borda":
            assert list(result.fraction_frame()) == [*"badc"]
            np.testing.assert_array_equal(result.to_frame()["over_next"][:3], [0.5, 1.0, 0.5])
            assert result.smith_set(alpha=0.999) == ("b", "a")
        drawn.add(result.order)
    # an order that has to be strict is the release's, by its public permutation
    assert (len(drawn) > 1) == (method != "kemeny")


def test_a_kemeny_order_that_is_not_the_only_one_says_so():
    cycle = pd.DataFrame([[1, 2, 3], [3, 1, 2], [2, 3, 1]] * 4, columns=[*"abc"])
    for ranks, several in ((cycle, True), (TIED, True), (TIED.iloc[[0, 0]], False)):
        result = pr.PrivateRankAggregation(ranks, items=[*ranks]).fit(np.inf, method="kemeny")
        assert result.proven
        assert ("not unique" in " ".join(result.summary().notes)) == several
        again = pr.from_json(result.to_json())
        assert str(again.summary()) == str(result.summary())
    # of more items than are tried in all subsets nothing is known, and where an optimum is claimed
    # that is said
    few = model(n=200, m=14, phi=0.7).fit(np.inf, method="kemeny").summary(details=True)
    many = model(n=200, m=15, phi=0.7).fit(np.inf, method="kemeny").summary(details=True)
    said = ["as good as this one was not checked" in " ".join(table.notes) for table in (few, many)]
    assert said == [False, True]


def test_pairs_say_what_was_released():
    fitted = model(2000, 6, 0.85).fit(2.0, 1e-6, releases="pairs", rng=seeded())
    pairs = fitted.pairwise().set_index(["item1", "item2"])
    assert len(pairs) == 15 and pairs.index[0] == fitted.order[:2]
    for ahead, behind in combinations(fitted.order, 2):
        i, j = fitted.items.index(ahead), fitted.items.index(behind)
        row = pairs.loc[(ahead, behind)]
        assert row["fraction"] == pytest.approx(fitted.fractions[i, j])
        assert row["all_lower"] <= row["lower"] <= row["fraction"] <= row["upper"]
        assert row["separated"] == (row["all_lower"] > 0.5 or row["all_upper"] < 0.5)
    pairs = pairs.reset_index()
    assert fitted.pairwise(0.5)["upper"].lt(pairs["upper"]).all()
    sample = pr.PrivateRankAggregation.from_release(fitted.release, target="sample").pairwise()
    assert (sample["upper"] - sample["lower"]).lt(pairs["upper"] - pairs["lower"]).all()
    assert fitted.fraction_frame().loc[fitted.order[0], fitted.order[1]] == pairs["fraction"][0]


def test_items_that_differ_by_nothing_are_not_separated():
    ranks = seeded(2).permuted(np.tile([1, 2, 3, 4, 5], (3000, 1)), axis=1)
    ranks[:, 4] = 5  # the last item is the last of all
    for row in ranks:
        row[:4] = np.argsort(np.argsort(row[:4])) + 1
    fitted = pr.PrivateRankAggregation(ranks, items=list("abcde")).fit(1.0, 1e-6, rng=seeded())
    assert fitted.rank_conf_int().to_numpy().tolist() == [[1, 4]] * 4 + [[5, 5]]
    frame = fitted.to_frame()
    assert frame[["rank_lower", "rank_upper"]].to_numpy().tolist() == [[1, 4]] * 4 + [[5, 5]]
    text = " ".join(str(fitted.summary()).split())
    sets = CLAIMS["rank sets"].format(level="95%", known=4, pairs=10)
    assert sets in text and " 1-4" in text
    assert pr.PrivateRankAggregation.from_release(fitted.release, target="sample").target


def test_an_order_that_contradicts_what_is_printed_is_explained():
    # a majority circle: Borda scores tie, and every order contradicts one majority
    circle = np.array([[1, 2, 3], [3, 1, 2], [2, 3, 1]] * 5 + [[1, 2, 3]] * 2)
    # the first item beats the second in a majority, which prefers it by little
    split = np.array([[1, 2, 3, 4]] * 6 + [[4, 1, 2, 3]] * 5)
    fit = pr.PrivateRankAggregation(split).fit(np.inf, method="borda")
    assert (fit.to_frame()["over_next"] < 0.5).any()
    said = CLAIMS["minorities"].format(rule="Borda")
    assert said in " ".join(str(fit.summary()).split())
    fit = pr.PrivateRankAggregation(split).fit(np.inf)
    assert fit.order[0] == "0" and (np.diff(fit.to_frame()["borda"]) > 0).any()
    assert CLAIMS["majorities"] in " ".join(str(fit.summary()).split())
    text = str(pr.PrivateRankAggregation(circle).fit(np.inf).summary())
    assert "Where" not in text
    noisy = model(300, 8, 0.97).fit(0.5, releases="pairs", rng=seeded(1))
    assert (noisy.to_frame()["over_next"] < 0.5).any()
    assert CLAIMS["minorities, shrunken"] in " ".join(str(noisy.summary()).split())


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_intervals_cover(delta):
    m, n, rng = 5, 200, seeded(11)
    truth_model = pr.Mallows(m, 0.85)
    truth = {k: truth_model.pair_probability(0, k) for k in range(1, m)}
    hits = {"pair": [], "all": [], "score": [], "borda": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        for _ in range(300):
            ranks = truth_model.rvs(n, rng)
            fitted = pr.PrivateRankAggregation(ranks).fit(
                0.6, delta, method="kemeny", score_share=0.1, rng=rng
            )
            table = fitted.pairwise()
            first, second = (table[name].astype(int) for name in ("item1", "item2"))
            p = np.array([truth[j - i] if j > i else 1 - truth[i - j]
                          for i, j in zip(first, second, strict=True)])  # fmt: skip
            hits["pair"].append(np.mean((table["lower"] <= p) & (p <= table["upper"])))
            hits["all"].append(np.all((table["all_lower"] <= p) & (p <= table["all_upper"])))
            of_sample = pr.PrivateRankAggregation.from_release(fitted.release, target="sample")
            low, high = of_sample.score_conf_int()
            score = mean_distance(fitted.places, ranks)
            hits["score"].append(low <= score <= high)
            frame = of_sample.borda().set_index(fitted.places)
            mean = m - ranks.mean(axis=0)[fitted.places]
            hits["borda"].append(np.mean((frame["lower"] <= mean) & (mean <= frame["upper"])))
    shares = {what: np.mean(found) for what, found in hits.items()}
    assert all(0.91 < share < 0.985 for share in shares.values()), shares


def test_cube_noise_intervals_are_exact_at_one_half():
    distribution, n, rng = CubeNoise.calibrate(15, 1, 0.2), 2500, seeded(2)
    p = np.full(15, 0.5)
    hits = {1: [], 15: []}
    for _ in range(1000):
        counts = np.rint(rng.normal(n * p, np.sqrt(n * p * (1 - p)))).astype(int)
        w = distribution.draw(counts, rng) / n
        for coordinates in hits:
            low, high = fraction_interval(w, distribution, 1 / n, n, 0.1, "population", coordinates)
            inside = (low <= p) & (p <= high)
            hits[coordinates].append(inside.mean() if coordinates == 1 else inside.all())
    assert np.mean(hits[1]) == pytest.approx(0.9, abs=0.02)
    assert np.mean(hits[15]) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("method", ["auto", "borda", "kemeny", "kwiksort", "exponential"])
def test_summaries_say_what_they_must(method):
    delta = 0.0 if method == "exponential" else 1e-6
    fitted = model(600, 5).fit(1.0, delta, method=method, rng=seeded())
    text = " ".join(str(fitted.summary()).split())
    for words in (
        "Private Rank Aggregation", "No. Rows: 600", "row (replace one)", "Epsilon: 1",
        f"Delta: {delta:g}", "seeded (do", "privacy for replacing one row", "exp(1)", *fitted.order,
    ):  # fmt: skip
        assert words in text
    if method in ("kwiksort", "exponential"):
        assert fitted.to_frame().columns.tolist() == ["rank"]
        acts = (fitted.pairwise, fitted.borda, fitted.score_conf_int, fitted.plot_pairwise)
        for act in (*acts, fitted.rank_conf_int):
            with pytest.raises(ValueError, match=r"\.$"):
                act()
    if method == "exponential":
        assert CLAIMS["idealised"] in text
    if method == "borda":
        assert CLAIMS["pairs unsaid"] in text
        with pytest.raises(ValueError, match="releases='pairs'"):
            _ = fitted.pairwise()
        shared = model(600, 5).fit(1.0, method="borda", score_share=0.2, rng=seeded())
        words = " ".join(str(shared.summary(details=True)).split())
        assert "Epsilon includes 20% for the Kemeny score" in words
    if method in ("auto", "kemeny"):
        assert "Kemeny score" not in text
        full = " ".join(str(fitted.summary(details=True)).split())
        assert "solved exactly" not in text and "EB-Kemeny" not in text
        assert "Kemeny, solved exactly" in full or method == "auto"
    assert "<table" in fitted._repr_html_() and "epsilon = 1" in repr(fitted)


def test_results_stand_side_by_side():
    fits = [model().fit(e, method="kemeny", score_share=0.1, rng=seeded()) for e in (0.5, 1.0)]
    text = pr.summary_col([*fits, model().fit(1.0, method="kwiksort")]).as_text()
    assert "eps=0.5" in text and "rank of 4" in text and "Kemeny score" in text


def test_few_rankings_are_warned_of_from_public_numbers():
    with pytest.warns(pr.PrivrankWarning, match=r"logarithm of 8!"):
        fitted = model(20, 8).fit(0.2, rng=seeded())
    text = " ".join(str(fitted.summary()).split())
    assert "Warning: Too few rows" in text and "Warning: The consensus may disagree" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(5000, 5).fit(1.0, rng=seeded())
        model(20, 8).fit(np.inf)
        pr.from_json(fitted.to_json())


def test_other_frames_and_formulas_make_the_same_model():
    ranks = CEMS.rankings()
    one = pr.PrivateRankAggregation(ranks, respondent="respondent").fit(np.inf)
    formula = " + ".join(ranks.columns) + " ~ 1"
    two = pr.PrivateRankAggregation.from_formula(formula, ranks, respondent="respondent")
    assert two.fit(np.inf).to_frame().equals(one.to_frame())
    assert "303 respondents" in repr(two)


def test_figures_are_drawn(tmp_path):
    fits = [model().fit(1.0, 1e-6, method=m, rng=seeded()) for m in ("kemeny", "borda", "kwiksort")]
    figures = [fit.plot() for fit in fits] + [fits[0].plot_pairwise()]
    for number, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 5000


REFUSED = {
    "unknown": (dict(method="schulze"), "method must be one of"),
    "non-private": (dict(method="copeland"), "epsilon=numpy.inf"),
    "searching": (dict(method="local-search"), "epsilon=numpy.inf"),
    "no noise": (dict(method="exponential", epsilon=np.inf), "finite epsilon"),
    "no noise to sort by": (dict(method="kwiksort-hay", epsilon=np.inf), "finite epsilon"),
    "a score of an order": (dict(method="kwiksort", score_share=0.1), "Leave out score_share"),
    "a tiny share": (dict(score_share=0.01), "0 or a number in [0.05, 0.5]"),
    "a share of words": (dict(score_share="auto"), "must be 0 or a number"),
    "releases": (dict(releases="totals"), "releases must be one of"),
    "pairs of totals": (dict(method="borda", releases="pairs"), "releases no pairs"),
    "pairs of a sort": (dict(method="kwiksort", releases="pairs"), "releases no pairs"),
    "target": (dict(target="everybody"), "target must be one of"),
    "epsilon": (dict(epsilon=0.0), "epsilon must be positive"),
    "delta": (dict(delta=1.5), "delta must be a number in [0, 1)"),
    "an int for rng": (dict(rng=3), "rng must be None"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_before_spending(case):
    arguments, words = REFUSED[case]
    budget = pr.Budget(epsilon=5.0, delta=0.1, unit="row")
    with pytest.raises((ValueError, TypeError), match=re.escape(words)) as caught:
        model().fit(**{"epsilon": 1.0, "budget": budget} | arguments)
    assert budget.spent == (0.0, 0.0) and "\n" not in str(caught.value)


def test_more_refusals():
    good = pd.DataFrame({"who": [0, 0, 1], "a": [1, 2, 1], "b": [2, 1, 2], "c": [3, 3, 3]})
    for bad, words in (
        (good.assign(a=2), "has a tie. Declare ties with PrivateRankAggregation"),
        (good.assign(a=[1, np.nan, 1]), "missing='bottom'"),
        (good.head(1), "at least two units"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            pr.PrivateRankAggregation(bad, items=list("abc"))
    many = pr.PrivateRankAggregation(good, items=list("abc"), respondent="who", max_rows=11)
    with pytest.raises(ValueError, match="max_rows must be at most 10"):
        many.fit(1.0)
    with pytest.raises(ValueError, match="at least two item columns"):
        pr.PrivateRankAggregation.from_formula("a ~ 1", good, categories=[1, 2])
    with pytest.raises(ValueError, match="at most 20 items"):
        model(30, 21).fit(1.0, method="exponential")
    uniform = pr.UniformityTest(good[list("abc")]).fit(1.0, rng=seeded())
    with pytest.raises(ValueError, match="release must contain an order"):
        pr.PrivateRankAggregation.from_release(uniform.release)
    btl = pr.PrivateBTL(CEMS.comparisons, items=CEMS.items, respondent=None, ties=True).fit(
        1.0, rng=seeded()
    )
    with pytest.raises(ValueError, match="release must contain an order"):
        pr.PrivateRankAggregation.from_release(btl.release)


def test_laplace_half_widths_are_quantiles():
    for scale in (0.4, 3.0, 50.0):
        distribution = DiscreteLaplace(scale)
        for alpha, coordinates in ((0.05, 1), (0.05, 20), (0.5, 1)):
            h = half_width(distribution, alpha, coordinates)
            kept = (1 - 2 * distribution.tail(np.array([h + 1, h]))) ** coordinates
            assert kept[0] >= 1 - alpha and (h == 0 or kept[1] < 1 - alpha)


def test_figures_name_both_privacy_parameters():
    axes = model(300, 4).fit(1.0, 1e-6, rng=seeded()).plot_consensus().axes[0]
    words = "epsilon = 1, delta = 1e-06 per row"
    assert words in axes.get_title() and axes.texts[-1].get_text() == "seeded noise"
    pure = model(300, 4).fit(1.0, method="kemeny", rng=seeded()).plot_pairwise().axes[0]
    assert "delta" not in pure.get_title()


@pytest.mark.parametrize("options", [{}, {"score_share": 0.1}, {"releases": "pairs"}])
def test_a_summary_of_six_items_fits_a_page_and_more_is_asked_for(options):
    fit = model(3000, 6).fit(2.0, rng=seeded(), **options)
    short, full = str(fit.summary()), str(fit.summary(details=True))
    assert len(short.splitlines()) <= 32
    assert CLAIMS["bounds"] in " ".join(short.split())
    assert "Noise scale:" in full and "Noise scale:" not in short


def test_distances_to_an_order_are_those_of_kendalls_tau():
    names, order = list("abcdef"), tuple("fbdace")
    ranks = pd.DataFrame(pr.Mallows(names, 0.8).rvs(40, seeded(2)), columns=names)
    ranks.index = pd.Index([f"person {k}" for k in range(40)], name="who")
    places = [order.index(name) + 1 for name in names]
    expected = [15 * (1 - kendalltau(row, places).statistic) / 2 for row in ranks.to_numpy()]
    found = pr.kendall_distance(order, ranks)
    assert found.to_numpy() == pytest.approx(expected) and found.index.equals(ranks.index)
    assert found.name == "distance" and found.dtype == np.int64
    assert pr.kemeny_score(order, ranks) == pytest.approx(np.mean(expected))
    # the order of the columns, others beside them, the kind of numbers and of frame do not matter
    shuffled = ranks[list("cfabed")].assign(remark="x")
    for frame in (shuffled, shuffled.astype(dict.fromkeys(names, float)), polars.DataFrame(ranks)):
        assert pr.kendall_distance(list(order), frame).to_list() == found.to_list()
    lazy = polars.DataFrame(ranks).lazy()
    assert pr.kendall_distance(order, lazy).index.to_list() == list(range(40))


def test_the_least_score_is_that_of_the_order_without_noise():
    ranks = pd.DataFrame(seeded(4).permuted(np.tile(np.arange(1, 6), (21, 1)), axis=1))
    fitted = pr.PrivateRankAggregation(ranks).fit(np.inf, method="kemeny")
    scores = [pr.kemeny_score(order, ranks) for order in permutations(fitted.items)]
    assert len(set(scores)) > 20
    assert pr.kemeny_score(fitted.order, ranks) == min(scores) == fitted.kemeny_score


@pytest.mark.parametrize(
    ("order", "change", "words"),
    [
        ("abc", {}, "order must be a sequence of names, got str. List the names one by one"),
        (["a"], {}, "order must hold at least two names"),
        (["a", "b", "b"], {}, "order must be distinct"),
        (["a", "b", "d"], {}, "rankings has no column 'd'. Give its columns the names of the"),
        (["a", "c"], {}, "ranks 1 to 2 once in every row"),
        (list("abc"), {"a": [2, 2]}, "ranks 1 to 3 once in every row"),
        (list("abc"), {"a": [1.5, 2]}, "privrank.as_rankings."),
        (list("abc"), {"a": [np.nan, 2]}, "privrank.as_rankings."),
        (list("abc"), {"a": [np.inf, 2]}, "privrank.as_rankings."),
        (list("abc"), {"a": ["first", "second"]}, "must hold numbers in the column of every item"),
    ],
)
def test_what_no_order_can_be_compared_with_is_refused(order, change, words):
    ranks = pd.DataFrame({"a": [1, 2], "b": [2, 1], "c": [3, 3]}).assign(**change)
    for frame in (ranks, polars.DataFrame(ranks).lazy()):
        with pytest.raises((TypeError, ValueError), match=re.escape(words)) as caught:
            pr.kemeny_score(order, frame)
        assert "second" not in str(caught.value)


def test_distances_are_of_frames_with_rows():
    ranks = pd.DataFrame({"a": [1, 2], "b": [2, 1]})
    with pytest.raises(TypeError, match="rankings must be a data frame"):
        pr.kendall_distance(["a", "b"], ranks.to_numpy())
    with pytest.raises(ValueError, match="rankings must have at least one row"):
        pr.kendall_distance(["a", "b"], ranks.head(0))
