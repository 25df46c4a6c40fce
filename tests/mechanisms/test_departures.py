"""How far groups are from all together: exact sensitivities, private labels, public quantiles."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from privrank.hypotheses.nulls import public_generator
from privrank.mechanisms import closeness
from privrank.mechanisms.closeness import (
    cell_parts,
    kernel_departures,
    omnibus_values,
    parts_of_departures,
    quantiles,
    share_departures,
)
from privrank.mechanisms.permutation import deal, gram_blocks, largest_distance
from privrank.plans.samples import DIAMETER, private_label_sensitivity, sum_sensitivity
from privrank.util.arrays import orders_of

SIZES = [(1, 2), (3, 3), (2, 4), (2, 2, 2), (1, 2, 4), (1, 1, 2, 2)]


def largest_changes(statistic, sizes, kinds):
    """Largest change of each column over all data and all replacements of one unit.

    A permuted data set is a data set: with the replaced unit in any group, every re-labelling of
    every data set is among them.
    """
    total, group = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    data = np.array(list(itertools.product(range(kinds), repeat=total)))
    tables = np.zeros((len(data), len(sizes), kinds), dtype=np.int32)
    for place in range(total):
        tables[np.arange(len(data)), group[place], data[:, place]] += 1
    cube = np.asarray(statistic(tables)).reshape((kinds,) * total + (-1,))
    return np.max([np.ptp(cube, axis=axis).reshape(-1, cube.shape[-1]).max(axis=0)
                   for axis in range(total)], axis=0)  # fmt: skip


def parts(tables, sizes):
    return parts_of_departures(share_departures(tables), np.array(sizes), 1.0)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_departures_of_choices_have_their_sensitivities(sizes):
    found = largest_changes(lambda tables: parts(tables, sizes), sizes, 3)
    np.testing.assert_allclose(found, 1.0)  # attained by each


@pytest.mark.parametrize("kernel", ["mallows", "kendall"])
@pytest.mark.parametrize("sizes", [(1, 3), (2, 2), (1, 1, 2)], ids=str)
def test_departures_of_rankings_have_their_sensitivities(kernel, sizes):
    gram = list(gram_blocks(orders_of(3), kernel))

    def statistic(tables):
        each = kernel_departures(tables, gram)
        return parts_of_departures(each, np.array(sizes), DIAMETER[kernel])

    found = largest_changes(statistic, sizes, 6)
    assert (found <= 1 + 1e-12).all()
    np.testing.assert_allclose(found, 1.0, atol=5e-6)  # 1e-12 stands under the roots


@pytest.mark.parametrize(("sizes", "k"), [*((s, 3) for s in SIZES), ((3, 5), 2), ((2, 5), 2)])
def test_parts_for_cells_keep_their_sensitivities(sizes, k):
    found = largest_changes(cell_parts, sizes, k)
    assert found.shape == (2,) if len(sizes) == 2 else (1 + 2 * len(sizes),)
    assert (found <= 1 + 1e-12).all() and (found > 0.4).all()
    if sizes == (3, 3):
        assert found[0] == pytest.approx(1)  # R is attained


@pytest.mark.parametrize("sizes", [(2, 4), (2, 2, 2)], ids=str)
def test_an_omnibus_moves_by_at_most_one(sizes):
    for values, columns in ((lambda t: parts(t, sizes), 1 + len(sizes)), (cell_parts, None)):
        columns = columns or (2 if len(sizes) == 2 else 1 + 2 * len(sizes))
        for seed in range(5):
            public = np.random.default_rng(seed).uniform(0, 2, columns)
            change = largest_changes(lambda t: omnibus_values(values(t), public), sizes, 3)  # noqa: B023
            assert change <= 1 + 1e-12


def test_faults_in_the_sensitivities_show():
    # noise by the largest share in place of the smallest, and half of what a move does
    sizes = np.array([1, 2, 4])
    total = largest_changes(lambda t: share_departures(t).sum(axis=1), (1, 2, 4), 3)[0]
    assert total == pytest.approx(sum_sensitivity(sizes, 1.0))
    assert total > 1.9 * 2 * (1 - 4 / 7) / 7 and total > 1.9 * (1 - 1 / 7) / 7
    # what pooled counts make expect taken as fixed: 2 v for 2 v + b, and v for 9 v / 8
    each, cell = largest_changes(cell_parts, (3, 3), 3)
    assert each * (2 * 0.5 + 0.25) > 1.2 * 2 * 0.5 and cell * 9 / 8 > 1.1


# --- private labels -------------------------------------------------------------------------------


def cube_of_sums(units, kinds, groups, sum_of):
    """T of all data of so many units: axes are the kind and the group of each unit in turn."""
    data = np.array(list(itertools.product(range(kinds), range(groups), repeat=units)))
    kind, group = data[:, 0::2], data[:, 1::2]
    tables = np.zeros((len(data), groups, kinds), dtype=np.int32)
    for place in range(units):
        tables[np.arange(len(data)), group[:, place], kind[:, place]] += 1
    found = np.zeros(len(data))
    sizes = tables.sum(axis=2)
    for pattern in np.unique(sizes, axis=0):
        same = (sizes == pattern).all(axis=1)
        found[same] = sum_of(tables[same][:, pattern > 0])
    return found.reshape((kinds, groups) * units)


def change_of_labels(cube):
    """Largest change where unit 1 gets another kind, and unit 1 or unit 2 another group."""
    return max(float(np.ptp(cube, axis=axes).max()) for axes in ((0, 1), (0, 3)))


@pytest.mark.parametrize(("units", "kinds", "groups"), [(2, 3, 3), (4, 3, 3), (5, 3, 3), (6, 2, 3)])
def test_private_labels_of_choices_stay_within_four(units, kinds, groups):
    cube = cube_of_sums(units, kinds, groups, lambda t: share_departures(t).sum(axis=1))
    assert change_of_labels(cube) <= private_label_sensitivity(units, 1.0)
    if kinds > 2:
        assert change_of_labels(cube) >= 4 / units - 8 / units**2 - 1e-12


@pytest.mark.parametrize(("units", "groups"), [(3, 3), (4, 2)])
def test_private_labels_of_rankings_stay_within_four(units, groups):
    gram = list(gram_blocks(orders_of(3), "mallows"))
    cube = cube_of_sums(units, 6, groups, lambda t: kernel_departures(t, gram).sum(axis=1))
    assert change_of_labels(cube) <= private_label_sensitivity(units, DIAMETER["mallows"])


@pytest.mark.parametrize("units", [3, 5, 12, 100])
def test_the_sensitivity_of_private_labels_is_nearly_attained(units):
    # (a, x), (b, z) and all others (c, y), then (a, y), (c, z) and the others
    first, second = (np.zeros((3, 3), dtype=np.int32) for _ in range(2))
    first[0, 0] = first[1, 2] = second[0, 1] = second[2, 2] = 1
    first[2, 1] = second[2, 1] = units - 2
    kept = [table[table.sum(axis=1) > 0][None] for table in (first, second)]
    change = abs(np.subtract(*[float(share_departures(table).sum()) for table in kept]))
    assert change == pytest.approx(4 / units - 8 / units**2)


# --- values ---------------------------------------------------------------------------------------


def test_the_sum_is_the_distance_from_independence():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, (3, 7)).astype(np.int32)
    joint = counts / counts.sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    expected = 0.5 * np.abs(joint - product).sum()
    assert share_departures(counts[None]).sum() == pytest.approx(expected)
    two = counts[:2][None]
    share = two[0].sum(axis=1) / two.sum()
    twice = 2 * share.prod() * largest_distance(two)[0]
    assert share_departures(two).sum() == pytest.approx(twice)


@pytest.mark.parametrize("sizes", [(9, 14), (4, 6, 13)], ids=str)
def test_kernel_departures_are_those_of_the_means(sizes):
    rng = np.random.default_rng(2)
    ranks = orders_of(4)[rng.integers(0, 24, sum(sizes))]
    counts = np.zeros((len(sizes), len(ranks)), dtype=np.int64)
    counts[np.repeat(np.arange(len(sizes)), sizes), np.arange(len(ranks))] = 1
    tables = deal(counts, 20, rng)
    blocks = list(gram_blocks(ranks, "mallows"))
    gram = np.array(blocks[0][1])
    found = kernel_departures(tables, blocks)
    for table, each in zip(tables, found, strict=True):
        away = table / table.sum(axis=1, keepdims=True) - 1 / len(ranks)
        norm = np.sqrt(np.einsum("gk,kl,gl->g", away, gram, away))
        np.testing.assert_allclose(each, norm * np.array(sizes) / len(ranks), atol=1e-6)


def test_batches_and_large_counts_do_no_harm(monkeypatch):
    rng = np.random.default_rng(3)
    tables = np.stack([rng.multinomial(n, np.ones(9) / 9, 40) for n in (30, 50, 9)], axis=1)
    tables = tables.astype(np.int32)
    whole = cell_parts(tables), share_departures(tables)
    monkeypatch.setattr(closeness, "_CELLS", 60)
    np.testing.assert_array_equal(cell_parts(tables), whole[0])
    np.testing.assert_array_equal(share_departures(tables), whole[1])
    n = 400_000_000
    large = np.array([[[n, 0], [0, n]], [[n // 2, n // 2], [n // 2, n // 2]]], dtype=np.int32)
    np.testing.assert_allclose(share_departures(large).sum(axis=1), [0.5, 0.0])
    assert np.isfinite(cell_parts(large)).all()


@pytest.mark.parametrize(("size", "total"), [(1, 2), (1, 7), (3, 5), (300, 600), (10, 1010)])
def test_expectations_rise_slowly_and_are_near_the_deviations(monkeypatch, size, total):
    monkeypatch.setattr(closeness, "_TABULATED", 400)
    closeness._expected_table.cache_clear()
    share, counts = size / total, np.arange(1200)
    found = closeness._expected(counts, size, total)
    rises = np.diff(found)
    assert found[0] == 0 and (rises >= -1e-12).all()
    assert (rises <= share * (1 - share) * (1 + 1e-9)).all()
    table = closeness._expected_table(size, total)
    exact = [np.abs(np.arange(c + 1) - c * share) @ binom.pmf(np.arange(c + 1), c, share)
             for c in range(len(table))]  # fmt: skip
    assert (table <= np.array(exact) * (1 + 1e-9) + 1e-12).all()
    if len(table) > 60 and share > 0.05:
        np.testing.assert_allclose(table[60:], exact[60:], rtol=1e-6)
    closeness._expected_table.cache_clear()
    spread = closeness._spread(counts, share)
    assert spread[0] == 0 and (np.diff(spread) >= 0).all()
    assert np.diff(spread).max() <= max(share, 1 - share) / 8


# --- public quantiles -----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.0, 2.25, 9.0])
def test_quantiles_share_the_level(scale):
    drawn = closeness.choice_parts((40, 60, 30), 9, cells=True)
    public = quantiles(drawn, 3, scale)
    assert drawn.shape == (1000, 7) and np.isfinite(public).all()
    steps = drawn - public
    if scale == 0:
        beyond = (steps > 0).mean(axis=0)
    else:
        tail = 0.5 * np.exp(-np.abs(steps) / scale)
        beyond = np.where(steps < 0, tail, 1 - tail).mean(axis=0)
        np.testing.assert_allclose(beyond, [0.02, *[0.005] * 6], rtol=1e-6)
    assert (beyond <= np.array([0.02, *[0.005] * 6]) + 1e-9).all()


def test_groups_that_choose_uniformly_are_drawn_in_units_of_the_sensitivity():
    drawn = closeness.choice_parts((40, 60), 3, cells=False)
    rng = public_generator("closeness of choices", 3, 40, 60)
    tables = closeness._multinomial(rng, (40, 60), 3, len(drawn))
    np.testing.assert_allclose(drawn, parts(tables, (40, 60)))


def test_references_are_public_and_near_what_they_stand_for():
    module_draws = closeness.choice_parts((40, 60), 9, cells=True)
    closeness.choice_parts.cache_clear()
    np.testing.assert_array_equal(closeness.choice_parts((40, 60), 9, cells=True), module_draws)
    # up to six items all groups are drawn; of more, one public sample is re-labelled
    for m in (4, 7):
        rng = np.random.default_rng(m)
        kinds = np.array([rng.integers(0, math.factorial(m), 130) for _ in range(100)])
        gram = list(gram_blocks(orders_of(m)[kinds.ravel()[:1300]], "mallows"))
        drawn = closeness.ranking_parts((40, 60, 30), m, "mallows")
        assert drawn.shape == (1000, 4)
        tables = np.zeros((10, 3, 1300), dtype=np.int32)
        group = np.repeat([0, 1, 2], (40, 60, 30))
        for t in range(10):
            tables[t, group, 130 * t + np.arange(130)] = 1
        each = kernel_departures(tables, gram)
        other = parts_of_departures(each, np.array((40, 60, 30)), DIAMETER["mallows"])
        error = drawn.std(axis=0) / math.sqrt(10)
        assert (np.abs(other.mean(axis=0) - drawn.mean(axis=0)) < 4 * error).all()


@pytest.mark.parametrize(("sizes", "m"), [((6, 5, 4), 7), ((3, 3), 8), ((2,) * 30, 3)])
def test_reference_draws_are_held_a_few_at_a_time(sizes, m, monkeypatch):
    found = closeness.ranking_parts.__wrapped__(sizes, m, "mallows")
    held = []

    def watched(tables, gram):
        held.append(len(tables) * len(sizes) * max(tables.shape[1:]))
        return kernel_departures(tables, gram)

    monkeypatch.setattr(closeness, "kernel_departures", watched)
    monkeypatch.setattr(closeness, "_HELD", 10_000)
    again = closeness.ranking_parts.__wrapped__(sizes, m, "mallows")
    assert len(held) > 1 and max(held) <= 10_000
    if m > 6:  # the same re-labellings of the same sample
        np.testing.assert_allclose(again, found, rtol=0, atol=1e-9)
    np.testing.assert_allclose(again.mean(axis=0), found.mean(axis=0), rtol=0.1)
