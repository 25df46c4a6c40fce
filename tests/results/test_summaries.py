"""A summary fits on a screen and says what protects whom; what an expert asks is one word away."""

import numpy as np
import pytest

import privrank as pr

cems = pr.datasets.load_university()
people = {"respondent": "respondent", "max_rows": 15, "ties": True, "items": cems.items}
ranks = cems.rankings()


def fits():
    rng = np.random.default_rng(1)
    public = {"design": "public", **people}
    yield "worths", pr.PrivateBTL(cems.comparisons, **public).fit(1.0, rng=rng)
    yield "top-k", pr.PrivateTopK(cems.comparisons, 2, **public).fit(0.5, rng=rng)
    consensus = pr.PrivateRankAggregation(ranks, respondent="respondent")
    yield "consensus", consensus.fit(1.0, rng=rng)
    yield "uniformity", pr.UniformityTest(ranks, respondent="respondent").fit(0.5, rng=rng)
    shares = {"a": 30, "b": 20, "c": 50}
    identity = pr.IdentityTest.from_counts(shares, [0.3, 0.3, 0.4])
    yield "identity", identity.fit(1.0, draws=199, rng=rng)
    halves = ranks.iloc[:150], ranks.iloc[150:]
    closeness = pr.ClosenessTest(*halves, respondent="respondent")
    yield "closeness", closeness.fit(1.0, permutations=99, rng=rng)


FITS = dict(fits())


@pytest.mark.parametrize("name", FITS)
def test_six_items_fit_in_26_lines(name):
    text = str(FITS[name].summary())
    assert len(text.splitlines()) <= 26, text
    for words in ("Neighbours:", "Mechanism:", "Noise source:", "SEEDED", "Epsilon:", "Delta:"):
        assert words in text
    assert text.count("Privacy: replacing one respondent") + text.count("replacing one row") == 1


@pytest.mark.parametrize("name", FITS)
def test_details_are_added_when_they_are_asked_for(name):
    short, full = (str(FITS[name].summary(details=more)) for more in (False, True))
    assert "Noise scale:" in full and "Noise scale:" not in short
    if FITS[name].release.parts.keys() & {"dependence"}:
        assert "Epsilon includes " in full and "Epsilon includes" not in short
