"""Pooling of results: what is pooled, what it says, and what is refused."""

import copy
import json
import pickle
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from mutating import with_check
from scipy import stats
from scipy.special import expit

import privrank as pr
from privrank.hypotheses.tails import simulated
from privrank.results.claims import CLAIMS
from privrank.results.pooling import score_source

ITEMS = ["a", "b", "c", "d"]
FIRST, SECOND = np.triu_indices(4, 1)


def test_equal_pooled_worths_share_a_rank():
    pairs = [("a", "b", 1), ("a", "b", -1), ("a", "c", 1), ("b", "c", 1)]
    frame = pd.DataFrame(pairs * 9, columns=["item1", "item2", "outcome"])
    model = pr.PrivateBTL(frame, items=[*"cba"], respondent=None, design="public")
    # with so large an epsilon the noise is 0
    fits = [model.fit(epsilon, rng=np.random.default_rng(1)) for epsilon in (1e6, 2e6)]
    result = pr.pool(fits, survey="different")
    assert result.ranks().to_dict() == {"c": 3, "b": 1, "a": 1}
    assert list(result.to_frame().index) == [*"bac"]
    equal = CLAIMS["equal estimates"].format(names="b, a")
    assert any(equal in note for note in result.summary().notes)


def comparisons(people=120, seed=0, gap=0.6):
    rng = np.random.default_rng(seed)
    worth = np.arange(4) * -gap
    chance = 1.0 / (1.0 + np.exp(worth[SECOND] - worth[FIRST]))
    return pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(people), 6),
            "item1": np.tile(np.array(ITEMS)[FIRST], people),
            "item2": np.tile(np.array(ITEMS)[SECOND], people),
            "outcome": np.where(rng.random((people, 6)) < chance, 1, -1).ravel(),
        }
    )


def worths(epsilon=2.0, seed=0, fit_seed=None, people=120, items=ITEMS, gap=0.6, **more):
    given = {"respondent": "respondent", "max_rows": 6, "design": "public"} | more
    fit = {name: given.pop(name) for name in ("method", "alpha", "penalty") if name in given}
    model = pr.PrivateBTL(comparisons(people, seed, gap), items=items, **given)
    rng = np.random.default_rng(seed + 50 if fit_seed is None else fit_seed)
    return model.fit(epsilon, rng=rng, **fit)


def rankings(people=150, seed=0):
    ranks = pr.Mallows(ITEMS, 0.6).rvs(people, np.random.default_rng(seed))
    frame = pd.DataFrame(np.asarray(ranks), columns=ITEMS)
    return frame.rename_axis("respondent")


def consensus(epsilon=1.0, seed=0, fit_seed=None, people=150, **fit):
    model = pr.PrivateRankAggregation(rankings(people, seed), respondent="respondent")
    rng = np.random.default_rng(seed + 70 if fit_seed is None else fit_seed)
    return model.fit(epsilon, rng=rng, **{"releases": "pairs", **fit})


def reports(seed=0, people=600, epsilon=2.0):
    protocol = pr.local.SubRanking(ITEMS, epsilon)
    sent = protocol.simulate(rankings(people, seed).to_numpy(), np.random.default_rng(seed))
    return pr.PrivateRankAggregation.from_reports(protocol.tally(sent))


def reported_worths(seed=0, people=600):
    protocol = pr.local.Comparisons(ITEMS, 2.0)
    sent = protocol.simulate(rankings(people, seed).to_numpy(), np.random.default_rng(seed))
    return pr.PrivateBTL.from_reports(protocol.tally(sent))


@pytest.fixture(scope="module")
def twice():
    """Two releases of one survey."""
    return [worths(epsilon, fit_seed=k) for k, epsilon in enumerate((1.0, 2.0))]


@pytest.fixture(scope="module")
def sites():
    return [worths(2.0, seed=k, people=80 + 20 * k) for k in range(3)]


def test_one_survey(twice):
    found = pr.pool(twice, survey="same")
    assert found.epsilon == 3.0 and found.nobs == 120
    # the precision of the noise is as the square of what was spent on the net wins
    spent = np.array([each.release.parts["net wins"].epsilon for each in twice])
    assert found.weights.to_numpy() == pytest.approx(spent**2 / (spent @ spent), abs=0.02)
    assert (found.bse <= found.bse_single.min(axis=1)).all()
    assert np.allclose(found.bse**2, found.bse_sampling**2 + found.bse_privacy**2)
    assert found.params.sum() == pytest.approx(0.0, abs=1e-9)


def _twin(result):
    """A result like this one, of another release."""
    values = {name: each.copy() for name, each in result.release.values.items()}
    values["net wins"] = values["net wins"] + np.array([1, -1, 1, -1])
    fields = ("alpha", "requested", "solver", "estimate", "warnings")
    kept = {name: getattr(result, name) for name in fields}
    return kept | {"release": replace(result.release, values=values)}


def test_equal_releases_of_one_survey_share_their_sampling_error():
    first = worths(1.0, fit_seed=0)
    found = pr.pool([first, type(first)(**_twin(first))], survey="same")
    single = found.by_item.single[0]
    sampling, noise = found.by_item.parts
    assert np.allclose(single, sampling + 2.0 * noise)
    apart = pr.pool([first, type(first)(**_twin(first))], survey="different")
    assert np.allclose(apart.by_item.single[0], 2.0 * sum(apart.by_item.parts), rtol=0.05)


def test_different_surveys(sites):
    found = pr.pool(sites, survey="different")
    assert found.epsilon == 2.0 and found.nobs == 80 + 100 + 120
    assert list(found.params.sort_values(ascending=False).index) == ITEMS
    assert (found.bse < np.min([site.bse for site in sites], axis=0)).all()
    test = found.test_heterogeneity()
    assert test["df"] == 6 and test["pvalue"] > 0.01
    odd = worths(2.0, seed=9, people=120, gap=-0.6)
    shifted = pr.pool([*sites, odd], survey="different").test_heterogeneity()
    assert shifted["pvalue"] < 0.001 and shifted["I2"] > 0.5
    assert shifted["I2"] == pytest.approx(1.0 - shifted["df"] / shifted["statistic"])


def test_heterogeneity_of_consensus_rankings_is_that_of_the_worst_of_six_pairs():
    found = pr.pool([consensus(seed=1), consensus(seed=2)], survey="different")
    statistics, pvalues = found.by_pair.heterogeneity()
    test = found.test_heterogeneity()
    assert test["df"] == 1 and test["statistic"] == statistics[np.argmin(pvalues)]
    assert test["pvalue"] == pytest.approx(min(1.0, 6 * pvalues.min()))
    assert test["I2"] == pytest.approx(max(0.0, 1.0 - 6 / statistics.sum()))


def test_releases_of_other_answers_are_no_one_survey(twice):
    # 120 respondents with other answers: the releases differ by more than their noise
    other = worths(2.0, seed=4, gap=-0.6)
    assert pr.pool([twice[1], other], survey="same").test_heterogeneity()["pvalue"] < 0.01
    assert pr.pool(twice, survey="same").test_heterogeneity()["pvalue"] > 0.01


@pytest.mark.parametrize("releases", ["pairs", "auto"])
@pytest.mark.parametrize("survey", ["same", "different"])
def test_consensus(releases, survey):
    seeds = [(0, 1), (0, 2)] if survey == "same" else [(3, None), (4, None)]
    results = [consensus(1.0, seed, fit, releases=releases) for seed, fit in seeds]
    found = pr.pool(results, survey=survey)
    assert list(found.ranks().sort_values().index) == ITEMS
    assert (found.bse <= found.bse_single.min(axis=1)).all()
    sides = found.conf_int()
    assert ((sides["lower"] <= found.params) & (found.params <= sides["upper"])).all()
    if releases == "auto" and found.by_pair is None:
        with pytest.raises(ValueError, match="releases='pairs'"):
            found.pairwise()
        return
    pairs = found.pairwise()
    mean = np.mean([each.fractions[FIRST, SECOND] for each in results], axis=0)
    assert pairs["fraction"].to_numpy() == pytest.approx(mean, abs=0.01)
    # an interval holds 1/2 exactly if the p-value says so
    kept = (pairs["lower"] < 0.5) & (0.5 < pairs["upper"])
    assert (kept == (pairs["pvalue"] > 0.05)).all()


def test_results_whose_weights_would_be_chance_are_refused():
    rows = {"respondent": None, "max_rows": 1, "design": "private"}
    few = [worths(0.3, seed=k, people=12, **rows) for k in (1, 2)]
    with pytest.raises(ValueError, match="pair counts at least as large as their noise"):
        pr.pool(few, survey="different")
    steep = pr.Link(
        "steep logit",
        cdf=lambda t: expit(3.0 * t),
        pdf=lambda t: 3.0 * expit(3.0 * t) * expit(-3.0 * t),
        slope=lambda t: 9.0 * expit(3.0 * t) * expit(-3.0 * t) * (1.0 - 2.0 * expit(3.0 * t)),
        kappa1=3.0,
        kappa2=2.25,
    )
    both = [
        worths(1.0, fit_seed=k, respondent=None, max_rows=1, link=steep, method=method)
        for k, method in enumerate(("counts", "objective"))
    ]
    with pytest.raises(ValueError, match="the same score equations"):
        pr.pool(both, survey="same")
    assert pr.pool(both, survey="different").params.notna().all()


def test_noise_of_borda_totals_is_drawn_once_for_all_sites():
    totals = [
        consensus(e, seed=k, releases="auto", method="borda") for k, e in enumerate((0.5, 1.0))
    ]
    assert all(each.fractions is None for each in totals)
    drawn = [score_source(each._scores()).draws for each in totals]
    assert drawn[0] is drawn[1] and not drawn[0].flags.writeable


@pytest.mark.parametrize("kind", ["worths", "consensus"])
def test_json_rebuilds_the_result(kind, sites):
    results = sites if kind == "worths" else [consensus(seed=k) for k in (1, 2)]
    found = pr.pool(results, survey="different", alpha=0.1)
    text = found.to_json()
    again = pr.from_json(text)
    assert again.to_json() == text
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
    # sites share their JSON only
    shared = pr.pool([pr.from_json(each.to_json()) for each in results], survey="different")
    pd.testing.assert_series_equal(shared.params, found.params)
    record = json.loads(text)
    del record["check"]
    settings = {"survey": "different", "effects": "common", "alpha": 0.1, "names": None}
    assert record["settings"] == settings
    with pytest.raises(ValueError, match="must be JSON"):
        pr.from_json(with_check(record | {"results": [{}]}))


def test_a_link_of_ones_own_is_asked_for_again():
    link = pr.Link(
        "my logit",
        expit,
        lambda t: expit(t) * expit(-t),
        lambda t: expit(t) * expit(-t) * (expit(-t) - expit(t)),
        kappa1=1.0,
        kappa2=0.25,
    )
    results = [worths(2.0, seed=k, link=link) for k in (1, 2)]
    text = pr.pool(results, survey="different").to_json()
    with pytest.raises(ValueError, match="link= must be given"):
        pr.from_json(text)
    assert pr.from_json(text, link=link).to_json() == text


def test_summary_names_what_was_pooled(twice, sites):
    text = str(pr.pool(twice, survey="same").summary())
    assert "2 releases, same survey" in text and "3 (1 + 2)" in text
    assert "Release 2: epsilon 2, 120 respondents" in text and "net wins" not in text
    assert "seeded (do not publish)" in text
    text = str(pr.pool(sites, survey="different").summary(details=True))
    assert "3 surveys" in text and "2 (the largest)" in text and "Covariance:" in text
    found = pr.pool(sites, survey="different")
    assert found.summary().as_latex() and found._repr_html_()
    assert "PooledResult: 3 releases, different surveys" in repr(found)
    assert set(found.to_frame()) >= {"worth", "std_err", "rank_lower"}


def test_plots(sites):
    import matplotlib

    matplotlib.use("Agg")
    for found in (
        pr.pool(sites, survey="different"),
        pr.pool([consensus(seed=k) for k in (1, 2)], survey="different"),
    ):
        figure = found.plot()
        assert "pooled" in {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
        matplotlib.pyplot.close(figure)


def test_epsilon_of_all_releases_together():
    """Enumerate what is said of epsilon: outputs of randomised response, alone and together."""
    epsilons = (0.5, 1.0)
    keep = [np.exp(e) / (1.0 + np.exp(e)) for e in epsilons]

    def probability(bits, answers):
        each = [q if b == a else 1.0 - q for q, b, a in zip(keep, bits, answers, strict=True)]
        return np.prod(each)

    def loss(neighbours):
        return max(
            abs(np.log(probability(one, out) / probability(other, out)))
            for one, other in neighbours
            for out in product((0, 1), repeat=2)
        )

    # other respondents in each survey: one bit of the two is replaced
    every = list(product((0, 1), repeat=2))
    apart = [(x, y) for x, y in product(every, repeat=2) if (x[0] != y[0]) + (x[1] != y[1]) == 1]
    results = [worths(e, seed=k) for k, e in enumerate(epsilons)]
    assert loss(apart) == pytest.approx(pr.pool(results, survey="different").epsilon)
    # the same respondent in both
    results = [worths(e, fit_seed=k) for k, e in enumerate(epsilons)]
    assert loss([((0, 0), (1, 1))]) == pytest.approx(pr.pool(results, survey="same").epsilon)


def refusals():
    one, other = worths(fit_seed=1), worths(fit_seed=2)
    top = pr.PrivateTopK(
        comparisons(), 2, items=ITEMS, respondent="respondent", max_rows=6, design="public"
    ).fit(1.0, rng=np.random.default_rng(0))
    grouped = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ group",
        comparisons().assign(group=np.repeat(np.arange(120) % 2, 6)),
        items=ITEMS,
        respondent="respondent",
        max_rows=6,
        design="public",
        levels={"group": [0, 1]},
    ).fit(1.0, rng=np.random.default_rng(0))
    sampled = [consensus(seed=k, target="sample") for k in (1, 2)]
    order = consensus(method="kwiksort", releases="auto")
    return {
        "at least two": ([one], "same"),
        "list of at least two": (one, "same"),
        "survey must be": ([one, other], "one"),
        "Pool worths of PrivateBTL instead": ([one, top], "same"),
        "must be a list of PrivateBTL or": ([one, "text"], "same"),
        "worths and consensus rankings separately": ([one, consensus()], "different"),
        "finite epsilon": ([one, worths(np.inf)], "same"),
        "one is given twice": ([one, other, pr.from_json(one.to_json())], "same"),
        "same items": ([one, worths(seed=2, items=ITEMS[::-1])], "different"),
        "no covariates": ([one, grouped], "same"),
        "one link": ([one, worths(seed=2, link="probit")], "different"),
        "same public facts": ([one, worths(seed=2, people=100)], "same"),
        "about a population": (sampled, "different"),
        "for target='population'|target='population'": (sampled, "same"),
        "no Borda scores": ([order, consensus(seed=2)], "different"),
        "Add the tallies": ([reports(1), reports(2)], "different"),
        "does not apply": ([reported_worths(1), reported_worths(2)], "same"),
        "alpha": ([one, other], "same", 2.0),
    }


def test_refusals():
    for message, (results, survey, *alpha) in refusals().items():
        with pytest.raises((TypeError, ValueError), match=message):
            pr.pool(results, survey=survey, alpha=alpha[0] if alpha else 0.05)
    with pytest.raises(TypeError, match="survey"):
        pr.pool([worths(fit_seed=1), worths(fit_seed=2)])


def test_private_designs_and_objective_perturbation_are_pooled():
    given = {"design": "private", "people": 200}
    counts = [worths(4.0, fit_seed=k, method="counts", **given) for k in (1, 2)]
    perturbed = worths(4.0, fit_seed=3, method="objective", **given)
    found = pr.pool([*counts, perturbed], survey="same")
    assert np.isfinite(found.bse).all()
    assert (found.bse <= found.bse_single.min(axis=1)).all()
    assert np.abs(found.params - perturbed.params).max() < 1.0
    assert found.weights.sum() == pytest.approx(1.0)


def test_coverage_of_pair_fractions():
    """A quick look at what `validation/pooling.py` measures: five sites, fractions of one pair."""
    rng, p, inside = np.random.default_rng(5), 0.7, []
    base = [consensus(0.5, seed=k, people=100) for k in range(5)]
    for _ in range(25):
        results = []
        for each in base:
            part = each.release.parts["pairs"]
            exact = rng.binomial(100, p, len(part.values)) / part.step
            values = np.rint(exact + simulated(part.distribution, (1, len(exact)), rng)[0])
            release = replace(each.release, values={**each.release.values, "pairs": values})
            results.append(pr.PrivateRankAggregation.from_release(release))
        sides = pr.pool(results, survey="different").pairwise()
        inside.append((sides["lower"] <= p) & (p <= sides["upper"]))
    assert 0.89 <= np.mean(inside) <= 0.995


def test_fits_that_draw_their_own_rows_are_not_of_one_survey():
    given = {"max_rows": 2, "excess": "sample", "design": "private"}
    drawn = [worths(4.0, fit_seed=k, **given) for k in (1, 2)]
    with pytest.raises(ValueError, match="Fit once, with the total epsilon"):
        pr.pool(drawn, survey="same")
    other = worths(4.0, seed=3, **given)
    assert pr.pool([drawn[0], other], survey="different").nobs == 240


@pytest.mark.parametrize("kind", ["worths", "consensus"])
def test_pickled_results_are_the_same(kind, twice):
    results = twice if kind == "worths" else [consensus(fit_seed=k) for k in (1, 2)]
    found = pr.pool(results, survey="same", alpha=0.1)
    found.to_frame()
    again = pickle.loads(pickle.dumps(found))
    assert again.to_json() == found.to_json()
    pd.testing.assert_frame_equal(copy.deepcopy(again).to_frame(), found.to_frame())


@pytest.mark.parametrize("kind", ["worths", "consensus"])
def test_pooled_results_are_used_as_all_others(kind, twice, tmp_path):
    results = twice if kind == "worths" else [consensus(fit_seed=k) for k in (1, 2)]
    found = pr.pool(results, survey="same")
    tidy = found.tidy()
    assert list(tidy) == list(results[0].tidy())
    # the p-value is of no statistic that would stand beside it
    assert tidy.drop(columns="statistic").notna().all(axis=None)
    assert tidy["p_value"].to_numpy() == pytest.approx(found.to_frame()["pvalue"].to_numpy())
    rows = {row[0]: row[1:] for row in pr.summary_col([*results, found]).rows if row[0]}
    assert rows["epsilon"] == tuple(f"{each.epsilon:g}" for each in [*results, found])
    assert rows["a"][2] == f"{found.params['a']:.4f}" and rows["pooled"][2] == "2 releases"
    assert "estimate" not in rows
    named = found.with_labels({"a": "Apples"})
    assert named.items == ("Apples", "b", "c", "d")
    assert named.params.to_numpy() == pytest.approx(found.params.to_numpy())
    assert pr.from_json(named.to_json()).items == named.items
    page = pr.report([results[0], named], tmp_path / "page.html")
    assert "Apples" in page.read_text(encoding="utf-8") and "Pooled Private" in page.read_text(
        encoding="utf-8"
    )


def test_archives_that_no_pool_wrote_are_refused(sites):
    record = json.loads(pr.pool(sites, survey="different").to_json())
    check = record.pop("check")
    mixed = [record["results"][0], json.loads(consensus().to_json())]
    params = record["estimates"]["params"] | {"a": 3.0}
    for other in (
        {"results": mixed},
        {"settings": None},
        {"settings": record["settings"] | {"x": 1}},
        {"estimates": {"params": params}},
    ):
        with pytest.raises(ValueError, match="no PooledResult of its release"):
            pr.from_json(with_check(record | other))
    for wrong in ({"results": [1, 2]}, {"settings": record["settings"] | {"survey": "same"}}):
        with pytest.raises(ValueError, match="text must be JSON"):
            pr.from_json(json.dumps(record | wrong | {"check": check}))


def test_releases_of_rows_are_pooled_with_those_of_respondents():
    ranks = rankings(300, 1).reset_index(drop=True)
    rows = pr.PrivateRankAggregation(ranks).fit(1.0, releases="pairs", rng=np.random.default_rng(1))
    found = pr.pool([rows, consensus(seed=2)], survey="different")
    text = str(found.summary())
    assert "respondent or row (replace one)" in text and "No. Units" in text
    assert "Epsilon protects one row in releases of rows" in text
    assert found.nobs == 450 and (found.bse <= found.bse_single.min(axis=1)).all()
    by_row = worths(seed=2, respondent=None, max_rows=1)
    assert "respondent or row" in str(pr.pool([worths(), by_row], survey="different").summary())
    mixed = pr.pool([worths(), reported_worths(2)], survey="different")
    assert mixed.nobs == 720 and (mixed.bse <= mixed.bse_single.min(axis=1)).all()
    assert "; local randomisation" in str(mixed.summary())


def _warned(*results, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pr.pool(results, **({"survey": "different"} | given))
    return [str(each.message) for each in caught if "count twice" in str(each.message)]


def test_one_survey_called_different_is_warned_of():
    assert (
        "releases 1 and 2 have the same public facts"
        in _warned(worths(fit_seed=1), worths(fit_seed=2))[0]
    )
    other = [consensus(seed=1, people=149), consensus(seed=2)]
    assert _warned(*other) == [] == _warned(worths(fit_seed=1), worths(fit_seed=2), survey="same")
    [message] = _warned(*other, consensus(fit_seed=9))
    assert "releases 2 and 3" in message


def test_surveys_that_may_be_one_are_warned_of_together_and_by_name():
    five = [consensus(seed=seed) for seed in range(5)]
    [message] = _warned(*five)
    assert "releases 1, 2, 3, 4 and 5 have the same public facts" in message
    names = ["north", "south", "east", "west", "isles"]
    [message] = _warned(*five, names=names)
    assert "north, south, east, west and isles have the same" in message
    others = [consensus(seed=seed, people=149) for seed in range(2)]
    first, second = _warned(*five[:2], *others, names=names[:4])
    assert "north and south have" in first and "east and west have" in second
    [message] = _warned(worths(), worths(fit_seed=2), names=names[:2])
    assert "north and south have the same" in message and "tally1 + tally2" in message


@pytest.mark.parametrize("kind", ["worths", "Borda", "fractions"])
def test_random_effects_are_the_mean_of_all_sites(kind):
    if kind == "worths":
        results = [worths(2.0, seed=k, people=150, gap=0.3 * k) for k in range(4)]
    else:
        results = [consensus(1.0, seed=k, people=80 + 20 * k) for k in range(4)]
    found = pr.pool(results, survey="different", effects="random")
    effects = found.by_pair if kind == "fractions" else found.by_item
    values = np.array([survey.point for survey in effects.alone])
    assert np.allclose(effects.point, values.mean(axis=0))
    # every survey has the value and the errors that it has by itself
    for survey in effects.alone:
        here = survey._here
        assert np.abs(here.residual).max() <= 0.05 * np.abs(here.slope).max()
    backs = [np.linalg.inv(one._here.slope[0]) for one in effects.alone]
    errors = [one._here.sampling[0] + one._here.noise[0] for one in effects.alone]
    pairs = zip(backs, errors, strict=True)
    within = np.array([back @ error @ back.swapaxes(-1, -2) for back, error in pairs])
    one = np.eye(values.shape[2])[:1], np.array([0])
    spread = values[:, 0, 0].var(ddof=1) / 4
    error = np.sqrt(max(spread, within[:, 0, 0, 0].sum() / 16))
    assert effects.errors(*one)[0] == pytest.approx(error)
    lower, upper = effects.limits(*one, 0.05)
    assert (upper - lower) / 2 == pytest.approx(stats.t.ppf(0.975, 3) * error)
    assert list(found.weights) == pytest.approx([0.25] * 4)
    variances = np.diagonal(within, axis1=-2, axis2=-1)
    between = values.var(axis=0, ddof=1).mean() - variances.mean()
    assert effects.tau == pytest.approx(np.sqrt(max(between, 0.0)))
    if kind == "worths":
        assert effects.tau > 0 and found.test_heterogeneity()["pvalue"] < 0.05
        # as fits have them, whose ridge and its correction are their own
        alone = np.mean([result.params for result in results], axis=0)
        assert found.params.to_numpy() == pytest.approx(alone, abs=0.03)


def test_the_mean_of_sites_is_that_of_worths_and_not_of_probabilities():
    gaps = (-1.0, 0.0, 1.0, 2.0)
    results = [worths(8.0, seed=k, people=2_000, gap=gap) for k, gap in enumerate(gaps)]
    found = pr.pool(results, survey="different", effects="random")
    alone = np.mean([result.params for result in results], axis=0)
    assert found.params.to_numpy() == pytest.approx(alone, abs=0.001)
    common = pr.pool(results, survey="different")
    assert np.abs(common.params.to_numpy() - alone).max() > 0.3


def test_random_effects_are_used_as_all_others(sites):
    found = pr.pool(sites, survey="different", effects="random")
    assert found.effects == "random" and found.tau is not None and found.tau >= 0
    common = pr.pool(sites, survey="different")
    assert common.effects == "common" and common.tau is None
    # the least errors are those of common values, taken at the mean of random ones
    assert (found.bse >= 0.98 * common.bse).all()
    assert pr.from_json(found.to_json()).bse.to_numpy() == pytest.approx(found.bse.to_numpy())
    assert pickle.loads(pickle.dumps(found)).to_json() == found.to_json()
    text = str(found.summary())
    assert "3 surveys, random effects" in text and "between surveys" in text
    assert "(Student's t, 2 df)" in " ".join(text.split())
    assert np.allclose(found.bse**2, found.bse_sampling**2 + found.bse_privacy**2)
    assert found.weights.sum() == pytest.approx(1.0)
    # an interval holds 1/2 exactly where the p-value says so
    pairs = found.pairwise()
    kept = (pairs["lower"] <= 0.5) & (0.5 <= pairs["upper"])
    assert (kept == (pairs["pvalue"] >= 0.05)).all()
    with pytest.raises(ValueError, match="effects='random' is for surveys that differ"):
        pr.pool(sites, survey="same", effects="random")
    found.plot()


def test_sites_have_names_in_tables_figures_and_archives():
    rankings = [pr.datasets.load_university().rankings(np.random.default_rng(k)) for k in (1, 2)]
    fits = [
        pr.PrivateRankAggregation(each, respondent="respondent").fit(
            2.0, rng=np.random.default_rng(k)
        )
        for k, each in enumerate(rankings)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        plain = pr.pool(fits, survey="different")
        named = pr.pool(fits, survey="different", names=["Bern", "basel"])
        again = pr.from_json(named.to_json())
    assert list(named.weights.index) == list(named.bse_single.columns) == ["Bern", "basel"]
    text = str(named.summary())
    assert "Bern: " in text and "basel: " in text and "Release 1" not in text
    assert "Release 1: " in str(plain.summary())
    assert str(again.summary()) == text and again.names == ("Bern", "basel")
    legend = named.plot().axes[0].get_legend()
    assert [label.get_text() for label in legend.get_texts()] == ["pooled", "Bern", "basel"]
    for wrong, words in (
        (["a"], "at least two"),
        (["a", "a"], "distinct"),
        (["a", "b", "c"], "one name for each of the 2 results"),
        ("ab", "sequence"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            pr.pool(fits, survey="different", names=wrong)
