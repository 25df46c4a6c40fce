"""A summary fits on a screen and says what protects whom; what an expert asks is one word away."""

import itertools

import numpy as np
import pytest

import privrank as pr

cems = pr.datasets.load_university()
rows = {"items": range(6), "respondent": None, "design": "public"}
people = {"respondent": "respondent", "max_rows": 15, "ties": True, "items": cems.items}
ranks = cems.rankings()


def fits():
    rng = np.random.default_rng(1)
    public = {"design": "public", **people}
    yield "worths", pr.PrivateBTL(cems.comparisons, **public).fit(1.0, rng=rng)
    yield "top-k", pr.PrivateTopK(cems.comparisons, 2, **public).fit(0.5, rng=rng)
    frame = pr.simulate.bradley_terry(np.linspace(-1, 1, 6), repeats=100, rng=rng)
    yield "worths of rows", pr.PrivateBTL(frame, **rows).fit(0.5, rng=rng)
    yield "top-k of rows", pr.PrivateTopK(frame, 2, max_rows=15, **rows).fit(0.5, rng=rng)
    yield "consensus of rows", pr.PrivateRankAggregation(ranks, items=cems.items).fit(1.0, rng=rng)
    consensus = pr.PrivateRankAggregation(ranks, respondent="respondent")
    yield "consensus", consensus.fit(1.0, rng=rng)
    yield "uniformity", pr.UniformityTest(ranks, respondent="respondent").fit(0.5, rng=rng)
    identity = pr.IdentityTest.from_counts([30, 20, 50], [0.3, 0.3, 0.4], list("abc"))
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
    units = ("respondent", "row", "comparison")
    assert sum(text.count(f"Privacy: replacing one {unit}") for unit in units) == 1


@pytest.mark.parametrize("name", FITS)
def test_details_are_added_when_they_are_asked_for(name):
    short, full = (str(FITS[name].summary(details=more)) for more in (False, True))
    assert "Noise scale:" in full and "Noise scale:" not in short
    if FITS[name].release.parts.keys() & {"dependence"}:
        assert "Epsilon includes " in full and "Epsilon includes" not in short


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("worths of rows", "Epsilon 0.5 is per comparison, r times that for a respondent with r."),
        ("top-k of rows", "Epsilon 0.5 is per comparison, 7.5 for a respondent with up to 15."),
        ("consensus of rows", "Epsilon 1 is per ranking, r times that for a respondent with r."),
    ],
)
def test_epsilon_per_row_is_converted_for_a_respondent(name, said):
    for details in (False, True):
        assert said in " ".join(str(FITS[name].summary(details=details)).split())


def test_a_larger_delta_is_named():
    model = pr.PrivateTopK(cems.comparisons, 2, items=cems.items, respondent=None, ties=True)
    said = str(model.fit(1.0, 1e-6, noise="gaussian", rng=np.random.default_rng(1)).summary())
    assert "for a respondent with r, whose delta is larger." in " ".join(said.split())


@pytest.mark.parametrize("name", ["worths", "top-k", "consensus"])
def test_epsilon_per_respondent_needs_no_conversion(name):
    assert "for a respondent with" not in str(FITS[name].summary(details=True))


def noises():
    """Log probabilities of noise on a difference of wins and losses, with epsilon and delta."""
    values = np.arange(-400, 401)
    for epsilon in (0.1, 0.5, 1.0):
        yield -np.abs(values) * epsilon / 2, epsilon
        yield -(values**2) / (2 * (4 / epsilon) ** 2), epsilon


@pytest.mark.parametrize(("logs", "epsilon"), [*noises()])
def test_r_rows_are_protected_at_r_epsilon_and_a_larger_delta(logs, epsilon):
    # every two surveys of four comparisons of two items, as they differ in r of them
    weights = np.exp(logs - logs.max())

    def excess(move, level):
        one, other = weights[10:-10], np.roll(weights, move)[10:-10]
        return np.maximum(one - np.exp(level) * other, 0.0).sum() / weights.sum()

    delta = max(excess(move, epsilon) for move in (-2, 0, 2))
    surveys = list(itertools.product((-1, 1), repeat=4))
    for one, other in itertools.product(surveys, surveys):
        r = sum(a != b for a, b in zip(one, other, strict=True))
        allowed = delta * sum(np.exp(k * epsilon) for k in range(r))
        assert excess(sum(one) - sum(other), r * epsilon) <= allowed + 1e-12
