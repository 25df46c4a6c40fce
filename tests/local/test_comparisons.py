"""Worths and leading items from reports of single pairs: one binomial draw, nothing added twice."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privrank as pr
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import response_covariance
from privrank.bradley_terry.fit import answer_probabilities
from privrank.local.estimates import release_wins
from privrank.local.kinds import Comparisons, PairBits, RandomPairs, SubRanking
from privrank.local.tally import Tally
from privrank.release.names import GAIN, NET, WINS
from privrank.release.survey import QUIET, PartPlan

ITEMS = ["tea", "coffee", "milk", "water", "juice"]
WORTHS = np.array([0.9, 0.3, 0.0, -0.4, -0.8])
TIES = 0.4


def outcomes(protocol, worths=WORTHS):
    """Probabilities of the true outcomes of each pair, shape (pairs, options)."""
    first, second = protocol.all_pairs.T
    share = 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
    tie = TIES * 4.0 * share * (1.0 - share) * (protocol.options > 2)
    both = np.column_stack((share - tie / 2, 1.0 - share - tie / 2, tie))
    return both[:, : protocol.options]


def reported(protocol, chances):
    """Probabilities of the reports, given those of the outcomes."""
    low = protocol.response.other_weight / protocol.response.total
    return low + protocol.gain * chances


def tally_of(protocol, n, rng, worths=WORTHS):
    count = rng.multinomial(n, np.full(protocol.assignments, 1 / protocol.assignments))
    counts = rng.multinomial(count, reported(protocol, outcomes(protocol, worths)))
    cells = np.argwhere(counts)
    return Tally(protocol, *cells.T, counts[tuple(cells.T)], {}, None, None)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_expected_score_and_variance_are_those_of_enumeration(ties, epsilon):
    """Half a report over the gain has mean F - 1/2, by the exact weights of the response."""
    protocol = Comparisons(ITEMS[:2], epsilon, ties=ties)
    weights, sign = protocol.response, (1, -1, 0)
    gain = Fraction(weights.favoured_weight - weights.other_weight, weights.total)
    assert float(gain) == protocol.gain
    chances = [Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)]
    if not ties:
        chances = [Fraction(3, 4), Fraction(1, 4)]
    low = Fraction(weights.other_weight, weights.total)
    shown = [low + gain * chance for chance in chances]
    half = [Fraction(s) / (2 * gain) for s in sign[: len(shown)]]
    mean = sum(p * s for p, s in zip(shown, half, strict=True))
    assert mean == sum(p * s for p, s in zip(chances, sign, strict=False)) / 2
    variance = sum(p * s**2 for p, s in zip(shown, half, strict=True)) - mean**2
    # a million reports with exactly these shares
    counts = [round(10**6 * float(p)) for p in shown]
    answers = np.arange(len(counts))
    tally = Tally(protocol, 0 * answers, answers, np.array(counts), {}, None, None)
    facts = score_equations(release_wins(tally, "PrivateBTL"))
    at = np.log((0.5 + float(mean)) / (0.5 - float(mean)))
    assert facts.score[0] / sum(counts) == pytest.approx(float(mean), abs=1e-5 / protocol.gain)
    spread = facts.spread(np.array([at]))[0] / sum(counts)
    assert spread == pytest.approx(float(variance), rel=1e-4)


def test_a_report_that_is_the_answer_is_an_exact_comparison():
    """With a gain of 1 and no ties the fit is that of net wins without noise."""
    protocol = Comparisons(ITEMS, 1.0)
    release = release_wins(tally_of(protocol, 400, np.random.default_rng(1)), "PrivateBTL")
    exact = replace(release, plan=replace(release.plan, settings={GAIN: 1.0}))
    wins = release.values[WINS].reshape(2, -1)
    pairs = release.design.pairs
    net = np.zeros(5, dtype=np.int64)
    np.add.at(net, pairs.first, wins[0] - wins[1])
    np.add.at(net, pairs.second, wins[1] - wins[0])
    plan = replace(release.plan, parts={NET: PartPlan(QUIET, 0, 1.0)}, settings={})
    central = replace(release, plan=plan, values={NET: net})
    found, expected = (pr.PrivateBTL.from_release(each) for each in (exact, central))
    assert np.allclose(found.params, expected.params, atol=1e-12)
    assert np.allclose(found.cov_params(), expected.cov_params(), rtol=1e-9)
    assert np.allclose(found.conf_int(), expected.conf_int(), rtol=1e-6)
    top, known = (pr.PrivateTopK.from_release(each, 2) for each in (exact, central))
    columns = ["win_rate", "std_err", "lower", "upper", "rank_lower", "rank_upper"]
    assert np.allclose(top.to_frame()[columns], known.to_frame()[columns])
    assert top.pvalue == pytest.approx(known.pvalue)


@pytest.mark.parametrize(
    "protocol",
    [
        Comparisons(ITEMS, 1.0),
        Comparisons(ITEMS, 2.5, ties=True),
        RandomPairs(ITEMS, 1.0, method="laplace"),
    ],
    ids=["two values", "ties", "thresholded Laplace"],
)
def test_standard_errors_are_the_spread_of_estimates(protocol):
    """Of worths and win rates; noise counted twice, or left out, would be far off."""
    rng, worths, rates, errors = np.random.default_rng(2), [], [], []
    aligned = Comparisons(ITEMS, 1.0)
    for _ in range(120):
        tally = tally_of(protocol, 3000, rng)
        if isinstance(protocol, RandomPairs):
            asked = protocol.asked(np.arange(10))[:, 0]
            order = np.array([[*map(list, aligned.all_pairs)].index(list(pair)) for pair in asked])
            tally = replace(tally, assignment=np.argsort(order)[tally.assignment])
        fit = pr.PrivateBTL.from_reports(tally)
        top = pr.PrivateTopK.from_reports(tally, 2)
        worths.append(fit.params.to_numpy())
        rates.append(top.estimate)
        errors.append((fit.bse.to_numpy(), top.bse.to_numpy()))
    stated = np.mean(errors, axis=0)
    spread = np.std((worths, rates), axis=1)
    assert (np.abs(spread / stated - 1.0) < 0.23).all()
    bias = np.mean(worths, axis=0) - WORTHS + WORTHS.mean()
    assert (np.abs(bias) < 4.0 * stated[0] / np.sqrt(120) + 0.02).all()


def test_the_two_parts_of_standard_errors_add_up():
    tally = tally_of(Comparisons(ITEMS, 1.0), 2000, np.random.default_rng(3))
    fit = pr.PrivateBTL.from_reports(tally)
    assert np.allclose(fit.bse**2, fit.bse_sampling**2 + fit.bse_privacy**2)
    assert (fit.bse_privacy > fit.bse_sampling).all()
    assert fit.design_effect == pytest.approx(1.0)


def test_pairs_named_in_another_order_are_turned_round():
    """A matching of a public shuffle names pairs in any order; with two items it is one pair."""
    names = ["a", "b"]
    count = np.array([70, 30])
    fits = []
    for protocol in (PairBits(names, 1.0), Comparisons(names, 1.0)):
        first = protocol.asked(np.array([0]))[0, 0, 0]
        ahead = count if first == 0 else count[::-1]
        tally = Tally(protocol, np.zeros(2, int), np.arange(2), ahead, {}, None, None)
        fits.append(pr.PrivateBTL.from_reports(tally))
    assert np.allclose(fits[0].params, fits[1].params)
    assert fits[0].params["a"] > 0


@pytest.mark.parametrize("kind", [SubRanking, RandomPairs, PairBits])
def test_sub_rankings_of_two_and_other_single_pairs_are_comparisons(kind):
    """The same answers to the same pairs, whose assignments have other numbers."""
    options = {SubRanking: {"size": 2}, PairBits: {"pairing": "private"}}.get(kind, {})
    protocol, aligned = kind(ITEMS, 1.0, **options), Comparisons(ITEMS, 1.0)
    tally = tally_of(aligned, 900, np.random.default_rng(7))
    pairs = protocol.asked(np.arange(10))[:, 0].tolist()
    named = [pairs.index(pair) for pair in aligned.all_pairs.tolist()]
    assert named != list(range(10)) or kind is PairBits
    other = replace(tally, protocol=protocol, assignment=np.array(named)[tally.assignment])
    fits = [pr.PrivateBTL.from_reports(each) for each in (tally, other)]
    assert fits[0].to_frame().equals(fits[1].to_frame())
    first, second = (pr.PrivateTopK.from_reports(each, k=2) for each in (tally, other))
    assert first.to_frame().equals(second.to_frame())


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_results_say_local_and_survive_their_archive(link):
    protocol = Comparisons(ITEMS, 1.0, ties=True)
    tally = tally_of(protocol, 1500, np.random.default_rng(4))
    fit = pr.PrivateBTL.from_reports(tally, link=link)
    top = pr.PrivateTopK.from_reports(tally, 2)
    for result in (fit, top):
        text = str(result.summary(details=True))
        for words in (
            "Locally Private",
            "1 per respondent and report",
            "respondents' devices",
            "Mechanism: randomised response, comparisons",
            f"gain {protocol.gain:.4g} of a response",
            "account for sampling error and randomised response",
        ):
            assert words in " ".join(text.split()), words
        assert str(pr.from_json(result.to_json()).summary(details=True)) == text
        assert str(pickle.loads(pickle.dumps(result)).summary(details=True)) == text
        assert result.plot() is not None
    assert fit.pairwise().shape == (10, 8)
    assert fit.test_homogeneity().pvalue < 0.05
    assert np.allclose(pr.PrivateBTL.from_release(top.release, link=link).params, fit.params)


def test_tests_of_equal_worths_keep_their_level():
    protocol, rng, found = Comparisons(ITEMS, 1.0), np.random.default_rng(6), []
    for _ in range(120):
        fit = pr.PrivateBTL.from_reports(tally_of(protocol, 500, rng, np.zeros(5)))
        found.append(fit.test_homogeneity().pvalue)
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    assert 0.35 < np.mean(found) < 0.65


def test_unanimous_answers_are_not_called_noise():
    protocol, rng = Comparisons(ITEMS, 20.0), np.random.default_rng(1)
    tally = protocol.tally(protocol.simulate(np.tile(np.arange(1, 6), (60, 1)), rng))
    with pytest.warns(pr.PrivrankWarning, match="on or outside the boundary of possible data"):
        fit = pr.PrivateBTL.from_reports(tally)
    text = " ".join(str(fit.summary()).split())
    assert "on or outside the boundary of possible data" in text
    assert "noise has carried" not in text


def test_what_cannot_be_fitted_is_refused_briefly():
    fit = pr.PrivateBTL.from_reports
    with pytest.raises(TypeError, match="tally must be a protocol's tally"):
        fit([1, 2])
    protocol = Comparisons(ITEMS, 1.0)
    empty = np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="at least 1 accepted reports, got 0"):
        fit(Tally(protocol, empty, empty, empty, {}, None, None))
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="must hold reports that connect all items"):
        fit(Tally(protocol, one, one, one + 9, {}, None, None))
    ties = Comparisons(ITEMS, 20.0, ties=True)
    even = ties.tally(ties.simulate(np.ones((60, 5), dtype=int), np.random.default_rng(2)))
    for model in (fit, lambda tally: pr.PrivateTopK.from_reports(tally, 2)):
        with pytest.raises(ValueError, match="all of them are ties"):
            model(even)
    with pytest.raises(ValueError, match="k must be"):
        pr.PrivateTopK.from_reports(tally_of(protocol, 300, np.random.default_rng(1)), 5)


def davidson(protocol, tie=-0.4, worths=WORTHS):
    """Probabilities of the outcomes of each pair under a tie parameter, shape (pairs, 3)."""
    first, second = protocol.all_pairs.T
    won, tied, lost = answer_probabilities(worths[first] - worths[second], tie)
    return np.column_stack((won, lost, tied))


def reports_of(protocol, counts):
    cells = np.argwhere(counts)
    return Tally(protocol, *cells.T, counts[tuple(cells.T)], {}, None, None)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_reported_ties_have_the_scores_and_the_variance_of_enumeration(epsilon):
    """Scores and covariance by all three reports of a pair, for reports in exact proportions."""
    protocol = Comparisons(ITEMS, epsilon, ties=True)
    chances = davidson(protocol)
    counts = np.rint(1e8 * reported(protocol, chances)).astype(np.int64)
    release = release_wins(reports_of(protocol, counts), "PrivateBTL", ties="davidson")
    facts, b = score_equations(release), np.append(WORTHS, -0.4)
    mean = facts.linear.scores(facts.count * facts.function.mean(facts.linear.predict(b)))
    assert facts.score == pytest.approx(mean, abs=1e-4 * abs(mean).max())
    fit = pr.PrivateBTL.from_release(release, penalty=0)
    assert fit.params.to_numpy() == pytest.approx(WORTHS - WORTHS.mean(), abs=1e-5)
    assert fit.tie_parameter["estimate"] == pytest.approx(-0.4, abs=1e-5)
    # what a report adds to the scores: half a win, half a loss, a tie, less what responses make up
    covariance, other = np.zeros((6, 6)), (1.0 - protocol.gain) / 3.0
    for shown, (first, second) in zip(reported(protocol, chances), protocol.all_pairs, strict=True):
        added = np.zeros((3, 6))
        added[0, first] = added[1, second] = 0.5
        added[0, second] = added[1, first] = -0.5
        added[2, 5] = 1.0
        added[:, 5] -= other
        added /= protocol.gain
        centred = added - shown @ added
        covariance += 1e8 * centred.T @ (shown[:, None] * centred)
    spread = facts.linear.information(facts.spread(facts.linear.predict(b)))
    assert spread == pytest.approx(covariance, rel=1e-5, abs=1e-5 * covariance.max())
    added = covariance - facts.information(b)
    assert response_covariance(facts) == pytest.approx(added, abs=1e-5 * covariance.max())


def test_standard_errors_with_a_tie_parameter_are_the_spread_of_estimates():
    protocol, rng = Comparisons(ITEMS, 1.5, ties=True), np.random.default_rng(16)
    chances, found, errors = reported(protocol, davidson(protocol)), [], []
    for _ in range(100):
        counts = rng.multinomial(rng.multinomial(4000, np.full(10, 0.1)), chances)
        fit = pr.PrivateBTL.from_reports(reports_of(protocol, counts), ties="davidson")
        ties = fit.tie_parameter
        found.append([*fit.params, ties["estimate"]])
        errors.append([*fit.bse, ties["std_err"]])
    spread = np.std(found, axis=0)
    assert np.mean(errors, axis=0) == pytest.approx(spread, rel=0.25)
    off = np.mean(found, axis=0) - np.append(WORTHS - WORTHS.mean(), -0.4)
    assert (np.abs(off) < 4.0 * spread / 10.0).all()


def test_fits_of_reported_ties_are_used_as_others():
    protocol, rng = Comparisons(ITEMS, 2.0, ties=True), np.random.default_rng(7)
    chances = reported(protocol, davidson(protocol))
    fits = [
        pr.PrivateBTL.from_reports(
            reports_of(protocol, rng.multinomial(np.full(10, n), chances)), ties="davidson"
        )
        for n in (300, 400)
    ]
    again = pr.from_json(fits[0].to_json())
    assert str(again.summary()) == str(fits[0].summary())
    assert np.allclose(fits[0].pairwise()[["win", "tie", "loss"]].sum(axis=1), 1.0)
    together = pr.pool(fits, survey="different")
    assert (together.bse < np.minimum(*(fit.bse for fit in fits))).all()
    halves = pr.PrivateTopK.from_release(fits[0].release, 2)
    assert halves.estimate.shape == (5,)
    with pytest.raises(ValueError, match="have no likelihood"):
        _ = fits[0].llf


@pytest.mark.parametrize(
    ("protocol", "given", "message"),
    [
        (Comparisons(ITEMS, 1.0), {"ties": "davidson"}, "needs reports that can be ties"),
        (Comparisons(ITEMS, 1.0, ties=True), {"ties": "half"}, "ties must be True or False, or"),
        (
            Comparisons(ITEMS, 1.0, ties=True),
            {"ties": "davidson", "link": "probit"},
            "link must be 'logit'",
        ),
    ],
)
def test_readings_of_reports_that_there_are_not_are_refused(protocol, given, message):
    tally = tally_of(protocol, 400, np.random.default_rng(1))
    with pytest.raises(ValueError, match=message):
        pr.PrivateBTL.from_reports(tally, **given)
