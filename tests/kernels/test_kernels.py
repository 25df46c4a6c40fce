"""Compiled loops against plain NumPy and SciPy, compiled and interpreted."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from privrank.kernels import rankings as kernels

ROOT = Path(__file__).resolve().parents[2]


def plain_distance(a, b):
    """Discordant pairs by comparing all of them."""
    return int((((a[:, None] - a) * (b[:, None] - b)) < 0).sum()) // 2


def distance(a, b):
    """The distance of two rankings by the loop over several."""
    return int(kernels.kendall_to_center(a[None], b)[0])


def random_ranks(rng, n, m):
    return 1 + np.argsort(rng.random((n, m)), axis=1)


@pytest.mark.parametrize("m", [1, 2, 3, 7, 64, 65, 200])
def test_kendall_distance_counts_discordant_pairs(m):
    rng = np.random.default_rng(m)
    a, b = random_ranks(rng, 20, m), random_ranks(rng, 20, m)
    expected = [plain_distance(x, y) for x, y in zip(a, b, strict=True)]
    assert [distance(x, y) for x, y in zip(a, b, strict=True)] == expected
    center = [plain_distance(x, b[0]) for x in a]
    assert kernels.kendall_to_center(a, b[0]).tolist() == center


def test_kendall_distance_is_that_of_scipy():
    rng = np.random.default_rng(1)
    for m in (10, 1000):
        a, b = random_ranks(rng, 2, m)
        pairs = m * (m - 1) // 2
        tau = 1 - 2 * distance(a, b) / pairs
        assert tau == pytest.approx(kendalltau(a, b).statistic, abs=1e-14)


def test_kendall_distance_ends():
    m = 100_000
    up = np.arange(1, m + 1)
    assert distance(up, up) == 0
    assert distance(up, up[::-1].copy()) == m * (m - 1) // 2


@pytest.mark.parametrize("m", [1, 2, 3, 4, 6])
def test_places_are_those_in_the_list_of_all_orders(m):
    orders = np.array(list(itertools.permutations(range(1, m + 1))), dtype=np.int64)
    shuffled = np.random.default_rng(m).permutation(len(orders))
    np.testing.assert_array_equal(kernels.places_of(orders[shuffled]), shuffled)
    assert kernels.places_of(orders[:0]).tolist() == []


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_insertion_codes_are_a_bijection(m):
    codes = np.array(list(itertools.product(*(range(j + 1) for j in range(m)))), dtype=np.int64)
    ranks = kernels.insertion_ranks(codes)
    assert {tuple(row) for row in ranks.tolist()} == set(itertools.permutations(range(1, m + 1)))
    # code j: how many of the items 0..j-1 are ranked behind item j
    behind = [[(row[:j] > row[j]).sum() for j in range(m)] for row in ranks]
    np.testing.assert_array_equal(behind, codes)


@pytest.mark.parametrize("m", [2, 3, 8, 40])
def test_inversions_are_those_of_all_pairs(m):
    rng = np.random.default_rng(m)
    ranks, scores, weights = random_ranks(rng, 9, m), rng.integers(-9, 9, m), rng.integers(0, 9, 9)
    pairs = np.array(list(itertools.combinations(range(m), 2)))
    inverted = ranks[:, pairs[:, 1]] < ranks[:, pairs[:, 0]]
    expected = inverted @ scores[pairs[:, 1] - pairs[:, 0]]
    assert kernels.inversion_scores(ranks, scores).tolist() == expected.tolist()
    sums = np.zeros((m, m), dtype=np.int64)
    sums[pairs[:, 0], pairs[:, 1]] = weights @ inverted
    assert np.array_equal(kernels.inversion_sums(ranks, weights), sums)


def test_insertion_ranks_of_many_items():
    rng = np.random.default_rng(2)
    for m in (63, 64, 65, 1000):
        codes = (rng.random((3, m)) * np.arange(1, m + 1)).astype(np.int64)
        ranks = kernels.insertion_ranks(codes)
        np.testing.assert_array_equal(np.sort(ranks, axis=1), np.tile(np.arange(1, m + 1), (3, 1)))
        distances = kernels.kendall_to_center(ranks, np.arange(1, m + 1))
        np.testing.assert_array_equal(distances, codes.sum(axis=1))


SCRIPT = """
import warnings
import numpy as np
from privrank.kernels import rankings as kernels, search
rng = np.random.default_rng(3)
a, b = (1 + np.argsort(rng.random((5, 40)), axis=1) for _ in range(2))
print(kernels.kendall_to_center(a, b[0]).tolist())
print(kernels.kendall_to_center(a[:1], b[1]).tolist())
print(kernels.insertion_ranks((rng.random((2, 40)) * np.arange(1, 41)).astype(np.int64)).tolist())
print(kernels.inversion_scores(a, np.arange(40)).tolist())
print(kernels.inversion_sums(a, np.arange(5)).tolist())
shuffled, fair = kernels.shuffles(rng.integers(0, 2**32, (3, 9), dtype=np.uint32))
print(shuffled.tolist(), fair.tolist(), kernels.shuffles(np.zeros((1, 3), np.uint32))[1].tolist())
# interpreted, NumPy warns of what is meant to be taken modulo 2^64
warnings.filterwarnings("ignore", "overflow encountered in scalar multiply")
bits = kernels.packed_pairs(a)
print(bits.tolist(), kernels.differing_bits(bits, kernels.packed_pairs(b)).tolist())
counts = kernels.count_pairs(a)
print(counts.tolist(), search.pivot_sort(counts.astype(float), a[0] - 1).tolist())
margins = (counts - counts.T).astype(float)
print(search.insertion_search(b[0] - 1, margins, 0.5).tolist())
found = kernels.discordance_counts(bits.T.copy(), np.arange(1, len(bits) + 1), 780)
print(np.flatnonzero(found).tolist(), found[found > 0].tolist())
wide = np.argsort(rng.random((3, 70)), axis=1) + 1  # more items than run along the rankings
print((kernels.count_pairs(wide) @ np.arange(70)).tolist())
records = rng.standard_normal((30, 6)).astype(np.float32)
shape = np.array([1.0, 1.5, 3.0])
u = search.stationary_direction(records, np.eye(6)[0], shape, 100, 5, 1e-5)
print(u.round(6).tolist())
"""


def test_kernels_agree_with_and_without_compilation():
    outputs = []
    for disabled in ("0", "1"):
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]
