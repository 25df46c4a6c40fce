"""A consensus from reports: what is said, what is refused, and archives."""

import pickle

import numpy as np
import pytest

import privrank as pr
from privrank.local import (
    CapBorda,
    Comparisons,
    DuchiBall,
    PairBits,
    RandomPairs,
    SubRanking,
    Tally,
)
from privrank.local.tally import public_order
from privrank.plans.aggregation import predicted_excess
from privrank.results.claims import CLAIMS

ITEMS = ["tea", "coffee", "milk", "water", "juice"]
PROTOCOLS = {
    "default": SubRanking(ITEMS, 2.0),
    "pairs": RandomPairs(ITEMS, 2.0, pairs=2),
    "ball": DuchiBall(ITEMS, 2.0),
    "cap": CapBorda(ITEMS, 2.0),
    "comparisons": Comparisons(ITEMS, 2.0),
    "bits": PairBits(ITEMS, 2.0, pairing="private"),
}


def fitted(name="default", n=4000, phi=0.5, **arguments):
    protocol, rng = PROTOCOLS[name], np.random.default_rng(6)
    reports = protocol.simulate(pr.Mallows(5, phi).rvs(n, rng), rng)
    return pr.PrivateRankAggregation.from_reports(protocol.tally(reports), **arguments)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_gives_the_usual_result(name):
    fit = fitted(name)
    assert fit.order == tuple(ITEMS) and fit.nobs == 4000 and fit.epsilon == 2.0
    assert fit.release.source == "respondents" and fit.release.local
    ranks = fit.rank_conf_int()
    assert (ranks["lower"] <= np.arange(1, 6)).all() and (ranks["upper"] >= np.arange(1, 6)).all()
    assert ranks.loc["tea"].tolist() == [1, 1]
    borda = fit.borda()
    assert (borda["lower"] < borda["score"]).all() and borda["std_err"].between(0, 0.2).all()
    assert borda["score"].sum() == pytest.approx(10, abs=0.01)
    again = pr.from_json(fit.to_json())
    assert again.to_frame().equals(fit.to_frame())
    assert str(again.summary(True)) == str(fit.summary(True))
    assert str(pickle.loads(pickle.dumps(fit)).summary()) == str(fit.summary())
    assert "<table" in fit._repr_html_() and "tabular" in fit.summary().as_latex()
    fit.plot()
    if name == "cap":
        with pytest.raises(ValueError, match="use a protocol that asks about pairs"):
            fit.pairwise()
        assert fit.fractions is None and "over_next" not in fit.to_frame()
        return
    fit.plot_pairwise()
    pairs = fit.pairwise()
    separated = pairs.set_index(["item1", "item2"])["separated"]
    assert separated["tea", "juice"] and fit.noise_sd == 0
    inside = (pairs["lower"] <= pairs["upper"]) & (pairs["all_lower"] <= pairs["lower"])
    assert inside.all() and (pairs["upper"] <= pairs["all_upper"]).all()


def test_the_summary_says_local():
    text = " ".join(str(fitted().summary()).split())
    for words in (
        "Locally Private Rank Aggregation",
        "2 per respondent and report",
        "local randomisation",
        "Local reports rejected: none",
        CLAIMS["errors of reports"],
        CLAIMS["private reports"].format(epsilon=2.0),
    ):
        assert words in text, words
    assert "sub-ranking" in str(fitted().summary(True))
    assert "seeded" not in text and CLAIMS["bounds"] not in str(fitted().summary(True))
    assert "gain" in str(fitted().summary(True)) and "Warning" not in text
    both = str(pr.summary_col([fitted(), fitted("pairs")]))
    assert "respondents" in both


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("default", "randomised response"),
        ("pairs", "randomised response"),
        ("ball", "Duchi's ball mechanism"),
        ("cap", "cap mechanism"),
    ],
)
def test_the_mechanism_of_a_protocol_is_named(name, mechanism):
    protocol, rng = PROTOCOLS[name], np.random.default_rng(1)
    tally = protocol.tally(protocol.simulate(pr.Mallows(5, 0.5).rvs(60, rng), rng))
    for result in (fitted(name), pr.UniformityTest.from_reports(tally, draws=99)):
        assert ("Mechanism:", mechanism) in result.summary().header


def test_targets_and_levels():
    wide, narrow = fitted(alpha=0.01), fitted(alpha=0.2, target="sample")
    width = [fit.borda()["upper"] - fit.borda()["lower"] for fit in (wide, narrow)]
    assert (width[0] > width[1]).all()
    assert fitted(target="sample").borda().equals(fitted().borda())
    assert "for the sample" in " ".join(str(narrow.summary()).split())


def test_few_reports_are_warned_of_or_refused():
    with pytest.warns(pr.PrivrankWarning, match="Use more respondents or a larger epsilon"):
        fit = fitted(n=300, phi=0.9)
    assert "consensus may disagree" in str(fit.summary())
    protocol = PROTOCOLS["ball"]
    one = protocol.tally([protocol.randomize(ITEMS)])
    with pytest.raises(ValueError, match="at least 2 accepted reports, got"):
        pr.PrivateRankAggregation.from_reports(one)
    with pytest.raises(ValueError, match="got 0"):
        pr.PrivateRankAggregation.from_reports(protocol.tally([]))


def sorted_by(fractions, pivots):
    """KwikSort as it is usually written: the first item of the list divides the others."""
    if not pivots:
        return []
    pivot, *others = pivots
    ahead = [item for item in others if fractions[item, pivot] > 0.5]
    behind = [item for item in others if item not in ahead]
    return [*sorted_by(fractions, ahead), pivot, *sorted_by(fractions, behind)]


@pytest.mark.filterwarnings("ignore:The consensus may")
@pytest.mark.parametrize("name", ["default", "pairs", "ball", "comparisons"])
def test_kwiksort_is_by_the_majorities_of_the_same_fractions(name):
    # so close to uniform that the majorities are no order, and pivots decide
    orders = set()
    for seed in (None, 1, 2, 3, 4, 5):
        rng = None if seed is None else np.random.default_rng(seed)
        fit = fitted(name, n=150, phi=0.97, method="kwiksort", rng=rng)
        plain = fitted(name, n=150, phi=0.97)
        pivots = (
            public_order(5) if seed is None else tuple(np.random.default_rng(seed).permutation(5))
        )
        assert fit.release.tie_break == pivots
        assert fit.places.tolist() == sorted_by(plain.fractions, list(pivots))
        # all but the order is that of the default
        assert fit.pairwise().shape == plain.pairwise().shape
        assert np.array_equal(fit.fractions, plain.fractions)
        assert fit.rank_conf_int().equals(plain.rank_conf_int())
        assert fit.release.plan.method == "KwikSort" and not fit.proven
        assert fit.epsilon == plain.epsilon and fit.release.source == "respondents"
        orders.add(fit.order)
    assert len(orders) > 1
    again = pr.from_json(fit.to_json())
    assert str(again.summary(True)) == str(fit.summary(True)) and again.order == fit.order
    assert "KwikSort" in str(fit.summary())


def test_kwiksort_is_that_of_the_paper_where_majorities_are_an_order():
    for name in ("default", "pairs", "ball"):
        fit = fitted(name, method="kwiksort", rng=np.random.default_rng(3))
        assert fit.order == tuple(ITEMS)


def test_a_sort_that_cannot_be_made_is_refused():
    with pytest.raises(ValueError, match="'cap Borda' concern whole rankings. Leave out method"):
        fitted("cap", method="kwiksort")
    with pytest.raises(ValueError, match="method must be one of 'auto', 'kwiksort', got 'sort'"):
        fitted(method="sort")
    with pytest.raises(TypeError, match="rng must be a numpy.random.Generator, got int"):
        fitted(method="kwiksort", rng=1)


def test_the_excess_of_a_sort_is_predicted_by_pairs():
    """0.34 standard deviations of a fraction, by hand, of 60 reports on each of the 10 pairs."""
    protocol = RandomPairs(ITEMS, 2.0)
    cells = np.indices((10, 2)).reshape(2, -1)
    tally = Tally(protocol, *cells, np.full(20, 30), {}, None, None)
    gain = (np.exp(2) - 1) / (np.exp(2) + 1)
    with pytest.warns(pr.PrivrankWarning, match="consensus may disagree"):
        fit = pr.PrivateRankAggregation.from_reports(tally, method="kwiksort")
    expected = 0.34 * 0.5 / gain / np.sqrt(60)
    assert predicted_excess(fit.release) == pytest.approx(expected)
    # a pair of which nothing is known is placed by a guess at worst
    few = Tally(protocol, *cells[:, 2:], np.full(18, 30), {}, None, None)
    with pytest.warns(pr.PrivrankWarning, match="consensus may disagree"):
        fit = pr.PrivateRankAggregation.from_reports(few, method="kwiksort")
    assert predicted_excess(fit.release) == pytest.approx(0.9 * expected + 0.05)


def test_what_is_no_tally_is_refused():
    with pytest.raises(TypeError, match="Count reports with protocol.tally"):
        pr.PrivateRankAggregation.from_reports([{"answer": 1}])
    with pytest.raises(ValueError, match="alpha"):
        fitted(alpha=2)
    with pytest.raises(ValueError, match="target"):
        fitted(target="everybody")
    with pytest.raises(ValueError, match="the Kemeny score was not released"):
        _ = fitted().kemeny_score


def test_an_archived_release_can_be_read_again():
    fit = fitted()
    again = pr.PrivateRankAggregation.from_release(
        pr.Release.from_json(fit.release.to_json()), alpha=0.1
    )
    assert again.order == fit.order and again.alpha == 0.1
    assert again.release.rejected == fit.release.rejected
