"""A fit as equations for pooling: the errors of the fit by itself, and what weighs its parts."""

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.bradley_terry.estimate import score_covariance
from privrank.bradley_terry.sources import contrast_basis, worth_source

ITEMS = ["a", "b", "c", "d"]
FIRST, SECOND = np.triu_indices(4, 1)


def model(**more):
    rng = np.random.default_rng(0)
    ahead = rng.random((200, 6)) < 1.0 / (1.0 + np.exp(0.6 * (FIRST - SECOND)))
    frame = pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(200), 6),
            "item1": np.tile(np.array(ITEMS)[FIRST], 200),
            "item2": np.tile(np.array(ITEMS)[SECOND], 200),
            "outcome": np.where(ahead, 1, -1).ravel(),
        }
    )
    return pr.PrivateBTL(frame, items=ITEMS, respondent="respondent", max_rows=6, **more)


def fits(*epsilons, **fit):
    asked = model(design=fit.pop("design", "private"))
    return [asked.fit(e, rng=np.random.default_rng(k), **fit) for k, e in enumerate(epsilons)]


@pytest.mark.parametrize(
    "given", [{"design": "public"}, {"method": "counts"}, {"method": "objective"}]
)
def test_errors_are_those_of_the_fit_by_itself(given):
    both = fits(2.0, 4.0, **given)
    # declared of several surveys, each keeps its own estimate of the sampling error
    pooled = pr.pool(both, survey="different")
    for k, result in enumerate(both):
        assert pooled.bse_single.iloc[:, k].to_numpy() == pytest.approx(result.bse, rel=0.1)


def test_public_weights_of_one_survey():
    both = fits(1.0, 4.0, method="counts")
    sources = [worth_source(each._inference()) for each in both]
    parts = [each.release.parts for each in both]
    spent = [each["dependence"].epsilon for each in parts]
    assert sources[1].measured / sources[0].measured == pytest.approx((spent[1] / spent[0]) ** 2)
    noise = [each["pair_counts"].distribution.variance for each in parts]
    assert sources[1].counts / sources[0].counts == pytest.approx(noise[0] / noise[1])


def test_what_responses_add_counts_as_noise_once():
    protocol = pr.local.Comparisons(ITEMS, 1.0)
    rankings = pr.Mallows(ITEMS, 0.6).rvs(600, np.random.default_rng(1))
    tally = protocol.tally(protocol.simulate(np.asarray(rankings), np.random.default_rng(2)))
    inference = pr.PrivateBTL.from_reports(tally)._inference()
    facts, basis = inference.equations, contrast_basis(4)
    sampling, noise = worth_source(inference).covariances(np.zeros((1, 3)))
    added = basis @ facts.response_covariance @ basis.T
    whole = basis @ score_covariance(facts, inference.release, np.zeros(4)) @ basis.T
    assert np.trace(added) > np.trace(sampling[0]) > 0
    assert np.allclose(noise[0], added) and np.allclose(sampling[0] + noise[0], whole)
