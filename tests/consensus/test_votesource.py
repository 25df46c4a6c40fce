"""What a consensus states as equations for pooling: values, and the variances of their errors."""

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.consensus.votesource import fraction_source, score_source

ITEMS = ["a", "b", "c", "d"]
N = 150


def rankings(people):
    ranks = pr.Mallows(ITEMS, 0.6).rvs(people, np.random.default_rng(0))
    return pd.DataFrame(np.asarray(ranks), columns=ITEMS)


@pytest.fixture(scope="module")
def pairs():
    model = pr.PrivateRankAggregation(rankings(N))
    return model.fit(1.0, releases="pairs", rng=np.random.default_rng(1))


@pytest.fixture(scope="module")
def scores():
    return pr.PrivateRankAggregation(rankings(N)).fit(
        1.0, method="borda", rng=np.random.default_rng(1)
    )


@pytest.fixture(scope="module")
def reported():
    protocol = pr.local.RandomPairs(ITEMS, 2.0)
    sent = protocol.simulate(rankings(400).to_numpy(), np.random.default_rng(1))
    return pr.PrivateRankAggregation.from_reports(protocol.tally(sent))


def flat(matrices):
    return matrices[:, 0, 0]


def noise_of(result, name):
    """The variance of the noise in the mean of what was released, by its distribution."""
    part = result.release.parts[name]
    return part.distribution.variance * (part.step / N) ** 2


def test_fractions(pairs):
    point = np.linspace(0.0, 1.0, 6)[:, None]
    source = fraction_source(pairs._scores(), "population")
    sampling, noise = source.covariances(point)
    p = point[:, 0]
    assert flat(sampling) == pytest.approx(p * (1 - p) / N)
    assert flat(noise) == pytest.approx(noise_of(pairs, "pairs"))
    assert not fraction_source(pairs._scores(), "sample").covariances(point)[0].any()
    residual, slope = source.equations(point)
    fractions = pairs.fractions[np.triu_indices(4, 1)]
    assert residual[:, 0] == pytest.approx(fractions - p) and (slope == 1.0).all()
    assert np.isinf(source.freedom).all()


def test_fractions_of_reports(reported):
    votes = reported._scores().pairs
    n = votes.counts[np.triu_indices(4, 1)]
    point = np.linspace(0.0, 1.0, 6)[:, None]
    sampling, noise = fraction_source(reported._scores(), "population").covariances(point)
    p, gain = point[:, 0], votes.gain
    assert flat(sampling) == pytest.approx(p * (1 - p) / n)
    # a vote of 1 or -1 has the mean gain (2 p - 1), and the fraction is it over 2 gain
    whole = (1 - (gain * (2 * p - 1)) ** 2) / (4 * gain**2 * n)
    assert flat(sampling + noise) == pytest.approx(whole)


def test_scores(pairs, scores):
    point = np.array([[0.0], [1.0], [1.5], [3.0]])
    largest = point[:, 0] * (3.0 - point[:, 0]) / N
    sampling, noise = score_source(scores._scores(), "population").covariances(point)
    assert flat(sampling) == pytest.approx(largest)
    assert flat(noise) == pytest.approx(scores._scores().score_errors("sample") ** 2)
    # a score of released pairs is a sum of three fractions, and its noise that of three
    source = score_source(pairs._scores(), "population")
    spread = [np.std(one.draws) for one in (fraction_source(pairs._scores(), "population"), source)]
    assert spread[1] / spread[0] == pytest.approx(np.sqrt(3.0), rel=0.05)
    assert flat(source.covariances(point)[1]) == pytest.approx(3 * noise_of(pairs, "pairs"))
    assert not score_source(pairs._scores(), "sample").covariances(point)[0].any()


def test_scores_of_reports(reported):
    stated = reported._scores()
    source = score_source(stated, "population")
    sampling, noise = source.covariances(np.full((4, 1), 1.5))
    assert not noise.any()
    assert flat(sampling) == pytest.approx(np.diag(stated.covariance))
    assert source.freedom == pytest.approx(np.diag(stated.concerned) - 1.0)
