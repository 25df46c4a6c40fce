"""Un-noised data stay in the trusted subpackages; noise is calibrated before they are read.

`taint.py` says how they are followed, and what it does not follow.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import taint
from catalogue import CATALOGUE
from constantnoise import replace_everywhere

from privrank.hypotheses.nulls import monte_carlo_pvalue
from privrank.mechanisms import spend

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import trusted

# Loops that keep nothing of their arrays.
KERNELS = {
    "hashing.distinct_numbers",
    "rankings.discordance_counts",
    "rankings.insertion_codes",
    "rankings.insertion_ranks",
    "rankings.inversion_sums",
    "rankings.kendall_to_center",
    "rankings.packed_pairs",
    "rankings.count_pairs",
    "rankings.places_of",
    "search.stationary_direction",
    "subsets.last_terms",
    "subsets.split_costs",
    "subsets.subset_values",
}
# What objective perturbation minimises, and by what: convex functions of arrays, of which nothing
# is kept. Fits to releases, which know no mechanisms, use them as well.
MINIMISER = {
    "bradley_terry.fit",
    "bradley_terry.linear",
    "bradley_terry.predictor",
    "distributions.links",
    "util.solvers",
}
# The record of comparisons by pair, public or not, and how it copies its arrays.
RECORD = {"release.survey.PairCounts.__post_init__", "util.arrays.readonly_copy"}
# What hands parts of the data to the cores, and keeps none.
THREADS = {"util.workers.in_threads"}

# What turns an epsilon into noise.
CALIBRATION = {"calibrate", "cell_noise", "count_noise", "gaussian_scale", "integer_scale"}
CALIBRATION |= {"lattice_scale", "net_noise", "objective_scale", "pure_epsilon", "side_noise"}
CALIBRATION |= {"smoothing_scale", "split", "totals_scale"}

COUNTS = CATALOGUE["BTL of rows, method counts"]


# What a reviewer of the claim reads, in statements and in modules.
MAX_STATEMENTS, MAX_MODULES = 4_300, 60


@pytest.fixture(scope="module")
def watches(tmp_path_factory):
    """Every fit of the catalogue, watched as for publication."""
    return taint.followed_for_publication(CATALOGUE, tmp_path_factory.mktemp("ledgers"))


def test_un_noised_data_stay_in_the_trusted_subpackages(watches):
    outside = {name for watch in watches.values() for name in watch.outside()}
    loops = {name for name in outside if name.startswith("kernels.")}
    assert {name.removeprefix("kernels.") for name in loops} == KERNELS
    others = outside - loops - RECORD - THREADS
    assert outside >= RECORD | THREADS
    assert {".".join(name.split(".")[:2]) for name in others} == MINIMISER


def test_noise_is_that_of_the_plan(watches):
    calibrated, untouched = set(), []
    for name, watch in watches.items():
        calibrated |= {code.co_name for code in watch.spending} & CALIBRATION
        if not (watch.boxes and watch.inside() and watch.spending) or watch.spent:
            untouched.append(name)
    assert untouched == []
    assert calibrated == set()
    text = "".join(path.read_text(encoding="utf-8") for path in taint.PACKAGE.rglob("*.py"))
    assert [name for name in CALIBRATION if f"def {name}(" not in text] == []


def test_a_reviewer_can_read_the_trusted_code_path(watches):
    parts = trusted.counted(watches.values())
    sizes = parts["from a data frame to its release"]
    assert {"mechanisms.spend", "privacy.noise", "privacy.budget"} <= sizes.keys()
    assert 1_000 < sum(sizes.values()) <= MAX_STATEMENTS
    assert len(sizes) <= MAX_MODULES
    page = trusted.stated((trusted.ROOT / "docs" / "proofs.md").read_text(encoding="utf-8"))
    assert page.keys() == parts.keys()
    for what, found in parts.items():  # rare coins make a difference
        assert page[what] == pytest.approx((sum(found.values()), len(found)), rel=0.03, abs=2)


def leaking(to):
    """Noise is drawn as ever, and the exact numbers are handed to a function besides."""
    exactly = spend.draw

    def draw(part, exact, rng):
        to(exact)
        return exactly(part, exact, rng)

    return draw


@pytest.mark.parametrize("given", [lambda exact: exact, lambda exact: [2.0 * exact[1:]]])
def test_a_planted_leak_is_seen(monkeypatch, given):
    replace_everywhere(
        monkeypatch,
        spend.draw,
        leaking(lambda exact: monte_carlo_pvalue(np.float64(1.0), given(exact))),
    )
    outside = taint.followed(monkeypatch, COUNTS).outside()
    assert "hypotheses.nulls.monte_carlo_pvalue" in outside


def test_what_is_released_without_noise_is_seen(monkeypatch):
    replace_everywhere(monkeypatch, spend.draw, lambda part, exact, rng: 2 * exact)
    outside = taint.followed(monkeypatch, COUNTS).outside()
    assert "release.release.Release.__post_init__" in outside
    assert any(name.startswith("results.") for name in outside)


X = taint.traced(np.arange(6), True)


@pytest.mark.parametrize(
    "derived",
    [
        lambda np: X + 1,
        lambda np: 2.0 * X[::2],
        lambda np: X.reshape(2, 3).sum(axis=0),
        lambda np: X.astype(float).T,
        lambda np: np.eye(6) @ X,
        lambda np: np.asarray(X, dtype=float),
        lambda np: np.ascontiguousarray(X[::2]),
        lambda np: np.array([X, X]),
        lambda np: np.concatenate((np.zeros(2), X)),
        lambda np: np.bincount(X),
        lambda np: np.where(X > 2, 1, 0),
        lambda np: np.unique(X, return_counts=True)[1],
        lambda np: np.einsum("i,i->i", X, X),
        lambda np: stored(np.zeros(6), slice(None), X),
        lambda np: stored(np.zeros((2, 3)), (0, X[:3] % 3), 1.0),
        lambda np: viewed(np.zeros((2, 6))),
        lambda np: added(np.zeros(6)),
        lambda np: np.minimum(X, 3, out=np.zeros(6, dtype=int)),
    ],
)
def test_a_mark_goes_on(derived):
    assert taint.is_marked(derived(taint.MAKING))


def stored(array, place, value):
    array[place] = value
    return array


def viewed(array):
    array.T[:, 0] = X
    return array


def added(array):
    np.add.at(array, X, 1)
    return array


def test_what_has_no_data_has_no_mark():
    made = taint.MAKING.zeros(6)
    for array in (made, made + 1, np.concatenate((made, [1.0])), made.reshape(2, 3), np.arange(3)):
        assert not taint.is_marked(array)
