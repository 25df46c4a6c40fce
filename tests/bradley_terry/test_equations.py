"""Score equations: their noise terms against simulations and differences; read once a fit."""

from collections import Counter
from functools import reduce
from operator import matmul

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.bradley_terry import equations as readings
from privrank.bradley_terry.equations import score_equations
from privrank.release import release as releases

ITEMS = tuple("abcd")
WORTHS = np.array([0.9, 0.2, -0.3, -0.8])
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def fitted(epsilon=2.0, method="counts", **options):
    rng = np.random.default_rng(3)
    frame = pr.simulate.bradley_terry(pd.Series(WORTHS, ITEMS), repeats=300, rng=rng)
    model = pr.PrivateBTL(frame, items=ITEMS, respondent=None, ties=False, design="private")
    return model.fit(epsilon, method=method, rng=rng, **options)


@quiet
@pytest.mark.parametrize(
    ("noise", "parts"),
    [("laplace", {"win matrix"}), ("zero-sum-laplace", {"net wins", "pair_counts"})],
)
def test_simulated_noise_has_the_covariance_of_its_terms(noise, parts):
    equations = score_equations(fitted(noise=noise).release)
    assert equations.terms.keys() == parts
    terms = [*equations.terms.values()]
    drawn = equations.simulate_noise(WORTHS, 40_000, terms, WORTHS, None)
    centred = np.eye(4) - 0.25
    stated = centred @ equations.noise_covariance(WORTHS, terms) @ centred
    found = np.cov((drawn @ centred).T)
    np.testing.assert_allclose(found, stated, atol=0.05 * np.diag(stated).max())
    assert np.trace(stated) > np.trace(centred @ equations.noise_covariance(0 * WORTHS) @ centred)


@quiet
def test_the_map_of_pair_counts_is_the_slope_of_the_expected_scores():
    equations = score_equations(fitted(noise="zero-sum-laplace").release)
    factors = equations.terms["pair_counts"].counts
    slopes = reduce(matmul, factors, equations.mean_scores(WORTHS).T).toarray()
    mean = equations.function.mean(equations.linear.predict(WORTHS))
    for pair, count in enumerate(np.eye(6)):
        np.testing.assert_allclose(slopes[:, pair], equations.linear.scores(count * mean))


@quiet
def test_a_release_is_read_once(monkeypatch):
    calls = Counter()

    def counted(name, honest):
        def count(*arguments):
            calls[name] += 1
            return honest(*arguments)

        return count

    for name, read in readings.READERS.items():
        monkeypatch.setitem(readings.READERS, name, counted("readings", read))
    part = releases.ReleasedPart
    monkeypatch.setattr(releases, "ReleasedPart", counted("parts", part))
    fit = fitted()
    fit.summary()
    assert calls == {"readings": 1, "parts": len(fit.release.values)}
