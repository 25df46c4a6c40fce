"""A consensus from reports: what is said, what is refused, and archives."""

import pickle

import numpy as np
import pytest

import privrank as pr
from privrank.local import CapBorda, DuchiBall, RandomPairs, SubRanking

ITEMS = ["tea", "coffee", "milk", "water", "juice"]
PROTOCOLS = {
    "default": SubRanking(ITEMS, 2.0),
    "pairs": RandomPairs(ITEMS, 2.0, pairs=2),
    "ball": DuchiBall(ITEMS, 2.0),
    "cap": CapBorda(ITEMS, 2.0),
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
        "respondents' devices",
        "Rejected reports: none",
        "Standard errors hold sampling and random responses together",
        "no noise was added",
        "nobody needs to be trusted with the rankings",
        "further reports of a respondent add their epsilons",
    ):
        assert words in text, words
    assert "sub-ranking" in str(fitted().summary(True))
    assert "SEEDED" not in text and "std err is a bound" not in str(fitted().summary(True))
    assert "gain" in str(fitted().summary(True)) and "Warning" not in text
    both = str(pr.summary_col([fitted(), fitted("pairs")]))
    assert "respondents" in both


def test_targets_and_levels():
    wide, narrow = fitted(alpha=0.01), fitted(alpha=0.2, target="sample")
    width = [fit.borda()["upper"] - fit.borda()["lower"] for fit in (wide, narrow)]
    assert (width[0] > width[1]).all()
    assert fitted(target="sample").borda().equals(fitted().borda())
    assert "for the sample" in " ".join(str(narrow.summary()).split())


def test_few_reports_are_warned_of_or_refused():
    with pytest.warns(pr.PrivrankWarning, match="more respondents or a larger epsilon would help"):
        fit = fitted(n=300, phi=0.9)
    assert "Low accuracy" in str(fit.summary())
    protocol = PROTOCOLS["ball"]
    one = protocol.tally([protocol.randomize(ITEMS)])
    with pytest.raises(ValueError, match="at least 2 accepted reports, got"):
        pr.PrivateRankAggregation.from_reports(one)
    with pytest.raises(ValueError, match="got 0"):
        pr.PrivateRankAggregation.from_reports(protocol.tally([]))


def test_what_is_no_tally_is_refused():
    with pytest.raises(TypeError, match="count them with protocol.tally"):
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
