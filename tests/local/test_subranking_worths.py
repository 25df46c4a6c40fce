"""Worths from orders of three items and more: several votes of one report, which go together."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.bradley_terry.dependence import Clusters
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import score_covariance
from privrank.local.estimates import MAX_ITEMS, release_wins
from privrank.local.kinds import RandomPairs, SubRanking
from privrank.local.tally import Tally

ITEMS = ["tea", "coffee", "milk", "water"]
WORTHS = np.array([0.9, 0.3, -0.3, -0.9])
BASE = 10**8


def plackett_luce(worths):
    """All rankings as tuples of items, the best first, with their probabilities."""
    weights, model = np.exp(worths), {}
    for ranking in permutations(range(len(worths))):
        left = [weights[list(ranking[place:])].sum() for place in range(len(ranking))]
        model[ranking] = float(np.prod(weights[list(ranking)] / left))
    return model


def report_probabilities(protocol, model):
    """Probabilities of the reports by subset: of the true order of its items, or of any."""
    shares = {}
    for subset in combinations(range(len(protocol.items)), protocol.width):
        orders = dict.fromkeys(permutations(subset), 0.0)
        for ranking, probability in model.items():
            orders[tuple(item for item in ranking if item in subset)] += probability
        level, gain = (1.0 - protocol.gain) / len(orders), protocol.gain
        shares[subset] = {order: level + gain * share for order, share in orders.items()}
    return shares


def half_nets(order, items):
    """Half the wins less losses of each item in an order."""
    score = np.zeros(items)
    for winner, loser in combinations(order, 2):
        score[[winner, loser]] += 0.5, -0.5
    return score


def moments_of_a_report(protocol, model):
    """Mean and covariance, summed over the subsets, of what a report adds to the scores."""
    m, mean, covariance = len(protocol.items), 0.0, 0.0
    for shares in report_probabilities(protocol, model).values():
        added = np.array([half_nets(order, m) for order in shares]) / protocol.gain
        share = np.array(list(shares.values()))
        centred = added - share @ added
        mean = mean + share @ added
        covariance = covariance + centred.T @ (share[:, None] * centred)
    return mean, covariance


def proportional_tally(protocol, model):
    """Return a tally of reports in exact proportions, as many of every subset."""
    shares = report_probabilities(protocol, model)
    cells, counts = [], []
    for assignment in range(protocol.assignments):
        # the number of an order is its place among all of them
        (names,) = protocol.question(assignment)
        subset = tuple(protocol.items.index(name) for name in names)
        for answer, order in enumerate(permutations(subset)):
            cells.append((assignment, answer))
            counts.append(round(BASE * shares[subset][order]))
    return Tally(protocol, *np.array(cells).T, np.array(counts), {}, None, None)


def rankings_of(worths, n, rng):
    """Ranks under Plackett-Luce: the order of worths with Gumbel errors."""
    values = worths + rng.gumbel(size=(n, len(worths)))
    return np.argsort(np.argsort(-values, axis=1), axis=1) + 1


def tally_of(protocol, worths, n, rng):
    return protocol.tally(protocol.simulate(rankings_of(worths, n, rng), rng))


PROTOCOLS = [
    SubRanking(ITEMS[:3], 1.0, size=3),
    SubRanking(ITEMS, 3.0, size=3),
    SubRanking(ITEMS, 4.5, size=4),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: f"{p.width} of {len(p.items)}")
def test_scores_and_their_covariance_are_those_of_all_reports(protocol):
    m = len(protocol.items)
    worths = WORTHS[:m] - WORTHS[:m].mean()
    mean, covariance = moments_of_a_report(protocol, plackett_luce(worths))
    release = release_wins(proportional_tally(protocol, plackett_luce(worths)), "PrivateBTL")
    facts = score_equations(release)
    assert facts.score / BASE == pytest.approx(mean, abs=1e-6)
    assert pr.PrivateBTL.from_release(release, penalty=0).params.to_numpy() == pytest.approx(
        worths, abs=1e-6
    )
    found = score_covariance(facts, release, worths) / BASE
    assert found == pytest.approx(covariance, rel=1e-5)
    # independent votes vary otherwise, and the design effects are what makes up for it
    alone = facts.linear.information(facts.spread(facts.linear.predict(worths))) / BASE
    contrasts = np.eye(m)[:-1] - np.eye(m)[1:]
    effect = np.einsum("ci,ij,cj->c", contrasts, covariance, contrasts)
    effect /= np.einsum("ci,ij,cj->c", contrasts, alone, contrasts)
    assert (effect > 1.1).all()
    along = facts.linear.predict(contrasts)
    t = facts.linear.predict(worths)[None]
    assert Clusters(facts, release).effects(along, t) == pytest.approx(effect, rel=1e-5)


def test_an_answers_own_square_is_no_part_of_its_dependence():
    """Reports of one answer are unanimous, and what is expected of them is far off."""
    protocol = SubRanking(ITEMS[:3], 60.0, size=3)
    zero = np.zeros(1, dtype=np.int64)
    release = release_wins(Tally(protocol, zero, zero, zero + 50, {}, None, None), "PrivateBTL")
    facts = score_equations(release)
    one = np.eye(3)
    # the residual of each pair is 1/2 at equal worths, and that of two pairs together 1
    effects = Clusters(facts, release).effects(np.vstack((one, [1, 1, 0])), np.zeros((1, 3)))
    assert effects == pytest.approx([1, 1, 1, 2])


def test_orders_that_hardly_change_are_the_answers_of_respondents():
    """A fit without privacy to the same orders, broken into pairs, reads the same data."""
    protocol, rng = SubRanking(ITEMS, 60.0, size=3), np.random.default_rng(3)
    assert protocol.gain == 1.0
    ranks = rankings_of(WORTHS, 150, rng)
    reports = protocol.simulate(ranks, rng)
    asked = [protocol.question(code)[0] for code in reports["assignment"]]
    rows = []
    for who, names in enumerate(asked):
        rank = dict(zip(ITEMS, ranks[who], strict=True))
        for one, other in combinations(names, 2):
            rows.append((who, one, other, 1 if rank[one] < rank[other] else -1))
    frame = pd.DataFrame(rows, columns=["respondent", "item1", "item2", "outcome"])
    facts = {"items": ITEMS, "respondent": "respondent", "max_rows": 3, "design": "public"}
    exact = pr.PrivateBTL(frame, **facts).fit(np.inf, penalty=0)
    tally = protocol.tally(reports)
    fit = pr.PrivateBTL.from_reports(tally, penalty=0)
    assert fit.to_frame().drop(columns=["rank"], errors="ignore").to_numpy(float) == pytest.approx(
        exact.to_frame().drop(columns=["rank"], errors="ignore").to_numpy(float), rel=1e-5, abs=1e-9
    )
    columns = ["difference", "lower", "upper", "pvalue"]
    assert fit.pairwise()[columns].to_numpy() == pytest.approx(
        exact.pairwise()[columns].to_numpy(), rel=1e-4, abs=1e-9
    )
    assert fit.test_homogeneity().pvalue == exact.test_homogeneity().pvalue
    top = pr.PrivateTopK.from_reports(tally, 2)
    known = pr.PrivateTopK(frame, k=2, **facts).fit(np.inf)
    columns = ["win_rate", "std_err", "lower", "upper"]
    assert top.to_frame()[columns].to_numpy() == pytest.approx(known.to_frame()[columns].to_numpy())
    assert top.pvalue == pytest.approx(known.pvalue)


@pytest.mark.parametrize("protocol", PROTOCOLS[1:], ids=lambda p: f"{p.width} of {len(p.items)}")
def test_standard_errors_are_the_spread_of_estimates(protocol):
    """Of worths and win rates; votes taken as independent state .9 or .8 of it."""
    rng, worths, rates, errors = np.random.default_rng(4), [], [], []
    for _ in range(150):
        tally = tally_of(protocol, WORTHS, 2000, rng)
        fit = pr.PrivateBTL.from_reports(tally)
        top = pr.PrivateTopK.from_reports(tally, 2)
        worths.append(fit.params.to_numpy())
        rates.append(top.estimate)
        errors.append((fit.bse.to_numpy(), top.bse.to_numpy()))
    stated, spread = np.mean(errors, axis=0), np.std((worths, rates), axis=1)
    # the mean of eight ratios is known to .04
    assert np.mean(stated / spread) == pytest.approx(1.0, abs=0.1)
    assert stated == pytest.approx(spread, rel=0.23)
    off = np.mean(worths, axis=0) - WORTHS
    assert (np.abs(off) < 4.0 * stated[0] / np.sqrt(150) + 0.01).all()


def test_equal_worths_have_the_design_effect_of_the_proof_and_keep_the_level():
    protocol, rng = SubRanking(ITEMS, 3.0, size=3), np.random.default_rng(6)
    fit = pr.PrivateBTL.from_reports(tally_of(protocol, 0 * WORTHS, 60_000, rng))
    assert fit.design_effect == pytest.approx(4 / 3, rel=0.03)
    assert np.allclose(fit.bse**2, fit.bse_sampling**2 + fit.bse_privacy**2)
    # as of single votes: 1/4 by sampling, the rest of 1 / (4 gain^2) by responses
    share = (fit.bse_sampling / fit.bse).to_numpy() ** 2
    assert share == pytest.approx(protocol.gain**2, rel=0.01)
    found = []
    for _ in range(150):
        fit = pr.PrivateBTL.from_reports(tally_of(protocol, 0 * WORTHS, 400, rng))
        found.append(fit.test_homogeneity().pvalue)
    # with independent votes it would be .12
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 150)
    assert 0.4 < np.mean(found) < 0.6


def test_camps_have_the_worths_that_fit_their_pairs_best():
    """Orders of no Plackett-Luce model: worths whose expected wins are those of the population."""
    protocol = SubRanking(ITEMS, 3.0, size=3)
    model = {(0, 1, 2, 3): 0.6, (3, 1, 2, 0): 0.3, (2, 3, 0, 1): 0.1}
    fit = pr.PrivateBTL.from_reports(proportional_tally(protocol, model), penalty=0)
    b = fit.params.to_numpy()
    ahead = np.zeros((4, 4))
    for ranking, share in model.items():
        for winner, loser in combinations(ranking, 2):
            ahead[winner, loser] += share
    expected = 1.0 / (1.0 + np.exp(b - b[:, None]))
    np.fill_diagonal(expected, 0.0)
    assert expected.sum(axis=1) == pytest.approx(ahead.sum(axis=1), abs=1e-6)


def test_results_are_used_and_archived_as_others():
    protocol, rng = SubRanking(ITEMS, 3.0), np.random.default_rng(7)
    assert protocol.size == 3
    fits = [pr.PrivateBTL.from_reports(tally_of(protocol, WORTHS, n, rng)) for n in (300, 500)]
    text = str(fits[0].summary(details=True))
    for words in (
        "cluster-robust",
        "sub-ranking",
        f"gain {protocol.gain:.4g} of a response",
        "3 per respondent and report",
        "account for sampling error and randomised response",
    ):
        assert words in " ".join(text.split()), words
    assert str(pr.from_json(fits[0].to_json()).summary(details=True)) == text
    assert (pr.pool(fits, survey="different").bse < np.minimum(*(fit.bse for fit in fits))).all()
    probit = pr.PrivateBTL.from_release(fits[1].release, link="probit")
    assert (probit.ranks() == fits[1].ranks()).all()
    assert pr.PrivateTopK.from_release(fits[1].release, 1).selected == ("tea",)


def test_what_cannot_be_read_is_refused_briefly():
    fit, one = pr.PrivateBTL.from_reports, np.zeros(1, dtype=np.int64)
    several = RandomPairs(ITEMS, 3.0, pairs=2)
    many = SubRanking(range(MAX_ITEMS + 1), 3.0, size=3)
    for protocol, message in (
        (several, "one pair or of the order of a few items"),
        (many, "Use SubRanking with size=2"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(Tally(protocol, one, one, one + 5, {}, None, None))
    tally = tally_of(SubRanking(ITEMS, 3.0), WORTHS, 30, np.random.default_rng(1))
    with pytest.raises(ValueError, match="needs reports that can be ties"):
        fit(tally, ties="davidson")
