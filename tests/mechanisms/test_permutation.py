"""Permuted samples: the distribution of the tables, exact sensitivities, kernels by brute force."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from privrank.kernels import rankings as kernels
from privrank.mechanisms import permutation as permutation_module
from privrank.mechanisms.permutation import (
    chi_square,
    deal,
    gram_blocks,
    kernel_distance,
    largest_distance,
    permuted_statistics,
)
from privrank.plans.samples import (
    DIAMETER,
    LARGEST_DEAL,
    chi_square_sensitivity,
    comparison_of,
    mean_sensitivity,
    plan_comparison,
)
from privrank.privacy import noise
from privrank.privacy.draws import LARGEST_SHUFFLE, draw_shuffles, secret_generator
from privrank.release.survey import Sample

# Seeded tests give the same answer every time; secure ones fail by chance this often.
FALSE_ALARM = {"seeded": 1e-4, "secure": 1e-7}
S3 = np.array(list(itertools.permutations((1, 2, 3))), dtype=np.int64)


def source(kind, seed=0):
    return np.random.default_rng(seed) if kind == "seeded" else None


def random_ranks(rng, n, m):
    return 1 + np.argsort(rng.random((n, m)), axis=1)


def plain_gram(ranks, kernel):
    """tau or exp(tau - 1) from Kendall distances, one by one."""
    pairs = ranks.shape[1] * (ranks.shape[1] - 1) / 2
    tau = np.array([1 - 2 * kernels.kendall_to_center(ranks, row) / pairs for row in ranks])
    return tau if kernel == "kendall" else np.exp(tau - 1)


# --- shuffles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_shuffles_are_uniform(kind):
    drawn = draw_shuffles(24_000, 4, source(kind))
    seen = Counter(map(tuple, drawn.tolist()))
    assert set(seen) == set(itertools.permutations(range(4)))
    assert chisquare(list(seen.values())).pvalue > FALSE_ALARM[kind]


def test_shuffles_are_exactly_fair():
    # among the words that are kept, every place of element j has equally many
    for places in (1, 2, 3, 5, 6, 7, 1000, 65_535):
        chosen = sorted({*range(min(places, 7)), places - 2, places - 1} - {-1})
        starts = [-(-place * 2**32 // places) for place in chosen]
        ends = [-(-(place + 1) * 2**32 // places) for place in chosen]
        # only the first word of a place can be unfair; the largest word is fair for all others
        words = np.full((len(chosen), places), 2**32 - 1, dtype=np.uint32)
        words[:, -1] = starts
        _, fair = kernels.shuffles(words)
        kept = [end - start - (not ok) for start, end, ok in zip(starts, ends, fair, strict=True)]
        assert set(kept) == {2**32 // places}


def test_unfair_shuffles_are_drawn_again(monkeypatch):
    words = [np.zeros(6, np.uint32), np.full(3, 2**32 - 1, np.uint32)]
    words[0][3:] = 2**32 - 1
    bits = iter(w.tobytes() for w in words)
    monkeypatch.setattr(noise.os, "urandom", lambda size: next(bits))
    # word 0 would favour place 0 of three; the largest words leave every element where it is
    assert draw_shuffles(2, 3, None).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert next(bits, None) is None


def test_shuffles_have_a_limit():
    assert draw_shuffles(2, 0, None).shape == (2, 0)
    with pytest.raises(ValueError, match="65,536"):
        draw_shuffles(1, LARGEST_SHUFFLE + 1, None)


def test_secret_generators_differ():
    first, second = (secret_generator().integers(0, 2**63, 4).tolist() for _ in range(2))
    assert first != second


# --- dealt tables ---------------------------------------------------------------------------------

LAWS = [
    np.array([[3, 0, 1], [1, 2, 1]]),
    np.array([[1, 2], [2, 0], [0, 2]]),
    np.array([[1, 0, 0, 1], [0, 1, 1, 0]]),
]


def exact_distribution(counts):
    """P(table) by permuting the row indices in every way."""
    kind = np.repeat(np.arange(counts.shape[1]), counts.sum(axis=0))
    ends = np.cumsum(counts.sum(axis=1))[:-1]
    distribution = Counter()
    for order in itertools.permutations(range(len(kind))):
        parts = np.split(kind[list(order)], ends)
        distribution[
            tuple(int((part == k).sum()) for part in parts for k in range(counts.shape[1]))
        ] += 1
    return distribution


@pytest.mark.parametrize("counts", LAWS, ids=str)
@pytest.mark.parametrize("way", ["shuffled", "dealt"])
@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_tables_have_the_distribution_of_permuted_rows(monkeypatch, counts, way, kind):
    if way == "dealt":
        monkeypatch.setattr(permutation_module, "LARGEST_SHUFFLE", 0)
    tables = deal(counts, 20_000, source(kind, 1))
    assert tables.shape == (20_000, *counts.shape)
    np.testing.assert_array_equal(tables.sum(axis=2), np.tile(counts.sum(axis=1), (20_000, 1)))
    np.testing.assert_array_equal(tables.sum(axis=1), np.tile(counts.sum(axis=0), (20_000, 1)))
    distribution = exact_distribution(counts)
    seen = Counter(map(tuple, tables.reshape(len(tables), -1).tolist()))
    assert seen.keys() <= distribution.keys()
    expected = np.array(list(distribution.values())) * 20_000 / distribution.total()
    assert chisquare([seen[table] for table in distribution], expected).pvalue > FALSE_ALARM[kind]


def test_many_respondents_are_dealt_with_the_right_moments():
    counts = np.array([[400_000, 100_000, 0], [300_000, 150_000, 50_000]])
    tables = deal(counts, 2000, np.random.default_rng(5))
    assert (tables >= 0).all()
    assert (tables.sum(axis=2) == 500_000).all() and (tables.sum(axis=1) == counts.sum(0)).all()
    share = counts.sum(axis=0) / 10**6
    sd = np.sqrt(500_000 * share * (1 - share) * 500_000 / (10**6 - 1))
    z = (tables[:, 0] - 500_000 * share) / sd
    assert np.abs(z.mean(axis=0)).max() < 4 / math.sqrt(2000)
    assert np.abs(z.std(axis=0) - 1).max() < 4 / math.sqrt(4000)


def test_no_more_respondents_than_can_be_dealt():
    def plan(n):
        sample = Sample("choices", ("x", "y"), n, "row", 1, groups=(("a", 2), ("b", n - 2)))
        test = {"method": "auto", "alpha": 0.05, "permutations": 99}
        return plan_comparison(sample, comparison_of("auto", sample), 1.0, 0.0, **test)

    with pytest.raises(ValueError, match="at most 999,999,999 units"):
        plan(LARGEST_DEAL)
    plan(LARGEST_DEAL - 1)


def test_batches_do_not_change_the_statistics(monkeypatch):
    counts = np.array([[3, 0, 4], [1, 2, 1]])
    whole = permuted_statistics(counts, largest_distance, 99, np.random.default_rng(2))
    assert whole[0] == largest_distance(counts[None])[0] and len(whole) == 100
    assert permuted_statistics(counts, largest_distance, 0, None).tolist() == [whole[0]]
    monkeypatch.setattr(permutation_module, "_CELLS", 60)
    monkeypatch.setattr(permutation_module, "_FEW", 44)
    monkeypatch.setattr(permutation_module, "_PER_KIND", 10)
    parts = permuted_statistics(counts, largest_distance, 99, np.random.default_rng(2))
    assert len(parts) == 100 and parts[0] == whole[0]
    np.testing.assert_allclose(parts, whole)  # the words of the generator in the same order


# --- sensitivities --------------------------------------------------------------------------------


def largest_change(statistic, sizes, kinds):
    """Largest change over all data, all neighbours and so all assignments to the samples.

    A permuted data set is a data set: enumerating all of them, with the replaced row in any
    sample, covers every assignment.
    """
    total, sample = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    data = np.array(list(itertools.product(range(kinds), repeat=total)))
    tables = np.zeros((len(data), len(sizes), kinds), dtype=np.int32)
    for place in range(total):
        tables[np.arange(len(data)), sample[place], data[:, place]] += 1
    cube = np.asarray(statistic(tables)).reshape((kinds,) * total)
    return max(float(np.ptp(cube, axis=axis).max()) for axis in range(total))


SIZES = [(1, 1), (1, 4), (2, 2), (3, 2), (2, 4), (3, 3), (1, 2, 3), (2, 2, 2)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_total_variation_sensitivity_is_exact(sizes):
    reach = mean_sensitivity(np.array(sizes), 1.0)
    assert largest_change(largest_distance, sizes, 3) == pytest.approx(reach, rel=1e-12)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_chi_square_sensitivity_is_exact(sizes):
    reach = chi_square_sensitivity(np.array(sizes))
    change = largest_change(chi_square, sizes, 3)
    assert change <= reach * (1 + 1e-12)
    if len(sizes) == 2:
        assert change == pytest.approx(reach, rel=1e-12)


@pytest.mark.parametrize("kernel", ["kendall", "mallows"])
@pytest.mark.parametrize("sizes", [(1, 3), (2, 2), (3, 2), (1, 1, 2)], ids=str)
def test_kernel_distance_sensitivity_is_exact(kernel, sizes):
    gram = list(gram_blocks(S3, kernel))
    reach = mean_sensitivity(np.array(sizes), DIAMETER[kernel])
    change = largest_change(lambda tables: kernel_distance(tables, gram), sizes, 6)
    assert change <= reach * (1 + 1e-12)
    assert change == pytest.approx(reach, abs=2e-6)  # 1e-12 stands under the root


def test_diameters_are_those_of_reversed_rankings():
    for kernel, diameter in DIAMETER.items():
        gram = plain_gram(random_ranks(np.random.default_rng(0), 1, 9).repeat(2, axis=0), kernel)
        assert gram[0, 1] == 1
        reversed_pair = plain_gram(np.array([np.arange(1, 10), np.arange(9, 0, -1)]), kernel)
        assert diameter == pytest.approx(math.sqrt(2 - 2 * reversed_pair[0, 1]))
    assert DIAMETER["mallows"] == pytest.approx(1.31504, abs=5e-6)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_reach_of_the_statistic_of_acharya_sun_and_zhang(n):
    def statistic(tables):
        both = tables.sum(axis=1)
        square = (tables[:, 0] - tables[:, 1]) ** 2
        return ((square - both) / np.maximum(both, 1)).sum(axis=1)

    change = largest_change(statistic, (n, n), 3)
    assert change <= chi_square_sensitivity(np.array([n, n])) == pytest.approx(4 * n / (n + 1))
    if n > 1:
        assert change == pytest.approx(4 * n / (n + 1))  # 14 in the paper
    # the two differ by the number of kinds that occur
    tables = deal(np.array([[n, 0, 0], [0, n, 0]]), 50, np.random.default_rng(n))
    occur = (tables.sum(axis=1) > 0).sum(axis=1)
    np.testing.assert_allclose(chi_square(tables), statistic(tables) + occur)


def test_faults_in_the_sensitivity_show():
    # the size of the first sample in place of the smaller one
    assert largest_change(largest_distance, (3, 1), 3) > 2.9 * 1 / 3
    gram = list(gram_blocks(S3, "mallows"))
    assert (
        largest_change(lambda t: kernel_distance(t, gram), (3, 1), 6)
        > 2.9 * DIAMETER["mallows"] / 3
    )
    # the square of a kernel distance with the sensitivity of its root
    square = largest_change(lambda t: kernel_distance(t, gram) ** 2, (2, 2), 6)
    assert square > 1.9 * mean_sensitivity(np.array([2, 2]), DIAMETER["mallows"])
    # four in place of (n1 + n2)^2 / (n1 n2) for samples of unequal sizes
    assert largest_change(chi_square, (1, 4), 3) > 4


# --- kernels and features -------------------------------------------------------------------------


@pytest.mark.parametrize("m", [2, 3, 12, 40])
def test_packed_pairs_differ_in_the_kendall_distance(m):
    ranks = random_ranks(np.random.default_rng(m), 30, m)
    bits = kernels.packed_pairs(ranks)
    assert bits.shape == (30, -(-m * (m - 1) // 128))
    expected = [kernels.kendall_to_center(ranks, row) for row in ranks]
    np.testing.assert_array_equal(kernels.differing_bits(bits, bits), expected)


def filled(blocks, size):
    """The whole matrix of a kernel from its upper blocks."""
    out = np.zeros((size, size))
    for first, block in blocks:
        out[first : first + len(block), first:] = block
        out[first:, first : first + len(block)] = block.T
    return out


@pytest.mark.parametrize("kernel", ["kendall", "mallows"])
@pytest.mark.parametrize("rows", [1, 4, 256])
@pytest.mark.parametrize("bits", [0, 2**33])
def test_gram_blocks_fill_the_kernel_matrix(monkeypatch, kernel, rows, bits):
    monkeypatch.setattr(permutation_module, "_ROWS", rows)
    monkeypatch.setattr(permutation_module, "_BITS", bits)
    monkeypatch.setattr(permutation_module, "_WORDS", 1)
    ranks = random_ranks(np.random.default_rng(3), 23, 17)  # three words each
    expected = plain_gram(ranks, kernel)
    np.testing.assert_allclose(filled(gram_blocks(ranks, kernel), 23), expected, atol=1e-15)


@pytest.mark.parametrize("sizes", [(9, 14), (4, 6, 13), (3, 5, 7, 8)], ids=str)
def test_kernel_distance_is_that_of_the_means(monkeypatch, sizes):
    monkeypatch.setattr(permutation_module, "_ROWS", 5)
    total = sum(sizes)
    ranks = random_ranks(np.random.default_rng(4), total, 5)
    counts = np.zeros((len(sizes), total), dtype=np.int64)
    counts[np.repeat(np.arange(len(sizes)), sizes), np.arange(total)] = 1
    tables = np.concatenate((counts[None], deal(counts, 30, np.random.default_rng(5))))
    assert set(tables.ravel().tolist()) == {0, 1}
    for kernel in DIAMETER:
        gram = plain_gram(ranks, kernel)
        expected = [
            max(
                math.sqrt(max((p - q) @ gram @ (p - q), 0))
                for p, q in itertools.combinations(table / np.array(sizes)[:, None], 2)
            )
            for table in tables
        ]
        found = kernel_distance(tables, gram_blocks(ranks, kernel))
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(kernel_distance(tables, [(0, gram)]), expected, atol=1e-9)


def test_kernel_distance_of_equal_samples_is_nearly_none():
    ranks = random_ranks(np.random.default_rng(6), 500, 20)
    tables = np.full((1, 2, 500), 1, dtype=np.int32)
    assert kernel_distance(tables, gram_blocks(ranks, "mallows"))[0] == pytest.approx(
        1e-6, rel=1e-3
    )


def test_large_counts_do_not_overflow():
    n = 400_000_000
    tables = np.array([[[n, 0], [0, n]], [[n // 2, n // 2], [n // 2, n // 2]]], dtype=np.int32)
    assert largest_distance(tables).tolist() == [1.0, 0.0]
    np.testing.assert_allclose(chi_square(tables), [2 * n, 0])


def test_chi_square_is_that_of_pearson():
    from scipy.stats import chi2_contingency

    rng = np.random.default_rng(8)
    for sizes in ((30, 30), (12, 80)):
        table = np.array([rng.multinomial(n, [0.2, 0.3, 0.5]) for n in sizes])
        expected = chi2_contingency(table, correction=False).statistic
        assert chi_square(table[None].astype(np.int32))[0] == pytest.approx(expected)
