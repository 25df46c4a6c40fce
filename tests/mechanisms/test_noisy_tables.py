"""Closeness of choices by one noisy table: privacy by enumeration, null tables, statements."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

import privrank as pr
from privrank.hypotheses import noisytables
from privrank.hypotheses.noisytables import (
    NoisyTable,
    pooled_counts,
    rank_pvalue,
    table_statistics,
)
from privrank.hypotheses.nulls import dealt_tables
from privrank.plans.samples import plan_table
from privrank.privacy.knorm import ZeroSumLaplace
from privrank.release.survey import Sample

NAMES = list("abcdefgh")


def counted(*rows):
    table = {f"g{g}": dict(zip(NAMES, row, strict=False)) for g, row in enumerate(rows)}
    return pr.ClosenessTest.from_counts(table, NAMES[: len(rows[0])])


def fitted(rows, epsilon=1.0, seed=0, **more):
    return counted(*rows).fit(epsilon, method="table", rng=np.random.default_rng(seed), **more)


def loss(scale, k, free=False):
    """The largest loss of one row of a table, over all outputs near it, and replaced units.

    `free` draws all cells but the last and sets that to fit, which is not what is done.
    """
    near = np.array(list(itertools.product(range(-3, 4), repeat=k - 1)))
    output = np.column_stack((near, -near.sum(axis=1)))
    worst = 0.0
    for down, up in itertools.permutations(range(k), 2):
        moved = output.copy()
        moved[:, down] += 1
        moved[:, up] -= 1
        seen = slice(k - 1) if free else slice(None)
        change = np.abs(output[:, seen]).sum(axis=1) - np.abs(moved[:, seen]).sum(axis=1)
        worst = max(worst, float(np.abs(change).max()) / scale)
    return worst


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_a_table_spends_epsilon_once_and_all_of_it(k, epsilon):
    groups = (("x", 30), ("y", 20), ("z", 4))
    plan = plan_table(Sample("choices", tuple(NAMES[:k]), 54, "row", 1, groups), epsilon)
    assert list(plan) == ["details 0", "details 1", "details 2"]  # one row for each group
    for part in plan.values():
        assert part.noise.items == k and part.epsilon == epsilon
        assert loss(part.noise.scale, k) == pytest.approx(epsilon, rel=1e-12)
    # the two faults that are easily made: half the scale, and a last cell that is set to fit
    assert loss(1.0 / epsilon, k) == pytest.approx(2.0 * epsilon)
    assert k == 2 or loss(1.0 / epsilon, k, free=True) == pytest.approx(2.0 * epsilon)


def noise_of(rows, fits, **more):
    """The noise of every cell in a number of releases of one table, shape (fits, groups, k)."""
    released = [counted(*rows).fit(1.0, method="table", **more).release.values for _ in range(fits)]
    tables = [[each[f"details {g}"] for g in range(len(rows))] for each in released]
    return np.array(tables) - np.array(rows)


def test_noise_is_secret_and_each_group_has_its_own():
    rows = [(12, 5, 3), (30, 20, 10)]
    secret = noise_of(rows, 40)
    assert len({each.tobytes() for each in secret}) > 30  # noise of a public seed would repeat
    assert (secret.sum(axis=2) == 0).all()
    drawn = noise_of(rows, 300, rng=np.random.default_rng(4))
    between = np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1]
    assert abs(between) < 4.0 / math.sqrt(300)  # 1 if the groups shared their noise


def test_a_respondent_counts_once_and_the_rule_reads_no_answers():
    people = pd.DataFrame(
        {
            "who": [0, 0, 0, 1, 2, 2, 3, 4, 5],
            "group": list("uuuuuuvvv"),
            "choice": list("aabbabaab"),
        }
    )
    facts = {"respondent": "who", "max_rows": 3, "levels": ["u", "v"], "categories": ["a", "b"]}
    for answers in (people["choice"], "a", "b"):
        frame = people.assign(choice=answers)
        test = pr.ClosenessTest.from_formula("choice ~ group", frame, **facts)
        release = test.fit(1.0, rng=np.random.default_rng(2)).release
        assert release.plan.method == "table"
        assert [release.values[f"details {g}"].sum() for g in (0, 1)] == [3, 3]


@pytest.mark.parametrize(("k", "scale"), [(2, 1.0), (3, 0.4), (3, 4.0), (6, 2.0)])
def test_simulated_noise_has_the_distribution_of_the_released_one(k, scale):
    noise, rng = ZeroSumLaplace(k, scale), np.random.default_rng(3)
    draws = noise.simulate(40_000, rng)
    assert not draws.sum(axis=1).any()
    np.testing.assert_allclose(draws.var(axis=0), noise.variance, rtol=0.06)
    ratio = (draws == 0).all(axis=1).mean() / (
        (draws[:, 0] == 1) & (draws[:, 1] == -1) & (draws[:, 2:] == 0).all(axis=1)
    ).mean()
    assert ratio == pytest.approx(math.exp(2.0 / scale), rel=0.35)
    assert not ZeroSumLaplace(k, 0.0).simulate(5, rng).any()


def test_dealt_tables_have_their_margins_and_distribution():
    rng = np.random.default_rng(1)
    tables = dealt_tables(np.array([4, 7, 2]), np.array([5, 0, 8]), 500, rng)
    assert (tables.sum(axis=2) == [4, 7, 2]).all() and (tables.sum(axis=1) == [5, 0, 8]).all()
    two = dealt_tables(np.array([5, 9]), np.array([6, 8]), 40_000, rng)[:, 0, 0]
    found = np.bincount(two, minlength=6) / len(two)
    np.testing.assert_allclose(found, hypergeom(14, 6, 5).pmf(range(6)), atol=0.012)


def test_without_noise_it_is_an_exact_permutation_test():
    # two groups of one size, two categories: each statistic rises with the distance of the shares
    table = NoisyTable(np.array([[9, 3], [4, 8]]), ZeroSumLaplace(2, 0.0))
    null = hypergeom(24, 13, 12)
    exact = sum(null.pmf(x) for x in range(1, 13) if abs(x - 6.5) >= 2.5)
    assert table.pvalue(9_999) == pytest.approx(exact, abs=4 * math.sqrt(exact / 9_999))


def test_statistics_by_hand():
    table = np.array([[[6.0, 4.0], [2.0, 8.0]]])
    ratio, largest, _ = table_statistics(table, 0.0)[0]
    by_hand = 2 * sum(n * math.log(n / e) for n, e in ((6, 4), (4, 6), (2, 4), (8, 6)))
    assert ratio == pytest.approx(by_hand)
    assert largest == pytest.approx(0.4 / math.sqrt(0.4 * 0.6 * 0.2))
    # noise adds to the error of a share; nobody at all is no difference
    assert table_statistics(table, 3.0)[0, 1] == pytest.approx(
        0.4 / math.sqrt(0.4 * 0.6 * 0.2 + 3.0 * 0.02)
    )
    alone = table_statistics(np.array([[[5.0, 0.0], [9.0, 0.0]]] * 3), 0.0)
    assert np.isfinite(alone).all() and not alone[:, 1:].any()


def test_the_smallest_of_three_ranks_is_ranked_again():
    statistics = np.array([[9.0, 0.0, 1.0], [1.0, 2.0, 3.0], [2.0, 1.0, 2.0], [3.0, 3.0, 0.0]])
    # the first has rank 1 of statistic 1; so have the second (statistic 3) and the fourth
    assert rank_pvalue(statistics) == 0.75
    assert rank_pvalue(np.zeros((4, 3))) == 1.0


def test_pooled_counts_are_whole_numbers_with_the_total():
    noisy = np.array([[12, -3, 1], [21, 0, 9]])
    assert pooled_counts(noisy, 0.0).tolist() == [31, 0, 9]
    assert pooled_counts(noisy, 4.0).sum() == 40
    assert pooled_counts(noisy, 4.0)[1] == 0
    assert pooled_counts(np.array([[1, 1, 0], [1, 0, 1]]), 9.0).tolist() == [2, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "p"), [((20, 200), (0.9, 0.05, 0.05)), ((30, 30, 90), (1, 0))])
def test_the_level_holds_and_null_tables_without_noise_do_not(sizes, p):
    rng, fits = np.random.default_rng(8), 300
    noise = ZeroSumLaplace.calibrate(len(p), 2, 0.5)
    silent = ZeroSumLaplace(len(p), 0.0)
    rejected = without = 0
    for _ in range(fits):
        rows = np.array([rng.multinomial(n, p) for n in sizes])
        rows += noise.simulate(len(rows), rng)
        rejected += NoisyTable(rows, noise).pvalue(199) <= 0.05
        # the fault: null tables that leave out the noise
        without += NoisyTable(np.maximum(rows, 0), silent).pvalue(199) <= 0.05
    assert rejected <= fits * 0.05 + 3 * math.sqrt(fits * 0.05)
    assert without > fits * 0.12


@pytest.mark.slow
def test_one_estimate_of_the_pooled_counts_would_not_keep_the_level(monkeypatch):
    rng, fits = np.random.default_rng(12), 2000
    noise = ZeroSumLaplace.calibrate(3, 2, 2.0)
    unanimous = np.array([[250, 0, 0], [5000, 0, 0]])
    tables = [NoisyTable(unanimous + noise.simulate(2, rng), noise) for _ in range(fits)]
    both = np.mean([table.pvalue(499) <= 0.05 for table in tables])
    # the fault: the sums of the noisy rows alone, which give counts to empty categories
    monkeypatch.setattr(noisytables, "pooled_counts", lambda rows, less: pooled_counts(rows, 0.0))
    alone = np.mean([table.pvalue(499) <= 0.05 for table in tables])
    assert both <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / fits)
    assert alone > both + 0.01 and alone > 0.06


@pytest.mark.parametrize("seed", range(6))
def test_neither_the_order_of_groups_nor_of_categories_matters(seed):
    rng = np.random.default_rng(seed)
    rows = np.array([[30, 9, 4, 0], [41, 30, 20, 3], [22, 20, 2, 2]])
    noise = ZeroSumLaplace(4, 2.0)
    rows += noise.simulate(3, rng)
    one = NoisyTable(rows, noise).pvalue(1_999)
    other = NoisyTable(rows[rng.permutation(3)][:, rng.permutation(4)], noise).pvalue(1_999)
    assert abs(one - other) < 5 * math.sqrt(max(one, 1e-3) / 1_999)


def test_categories_without_answers_change_no_p_value_without_noise():
    """But for the Monte Carlo error of null tables; with noise they cost power (a study)."""
    rng = np.random.default_rng(3)
    changes = []
    for k in (2, 3, 4, 5) * 4:
        counts = np.array([rng.multinomial(n, rng.dirichlet(np.full(k, 20.0))) for n in (40, 150)])
        alone, padded = (
            NoisyTable(np.pad(counts, ((0, 0), (0, empty))), ZeroSumLaplace(k + empty, 0.0))
            for empty in (0, 8)
        )
        changes.append(padded.pvalue(999) - alone.pvalue(999))
    assert np.abs(changes).max() < 0.1 and np.abs(changes).mean() < 0.03


@pytest.mark.parametrize("epsilon", [0.5, 2.0, math.inf])
@pytest.mark.parametrize("seed", range(4))
def test_test_interval_and_differences_agree(epsilon, seed):
    result = fitted([[40, 12, 8], [90, 70, 40]], epsilon, seed)
    for alpha in (0.2, 0.05, 0.01):
        low, high = result.conf_int(alpha)
        assert (low > 0) == (result.pvalue <= alpha) and low <= high <= 1
        assert low <= result.effect <= high
        details = result.details(alpha)
        assert not details["clear"].any() or result.pvalue <= alpha
    assert result.reject == (result.pvalue <= 0.05)


def test_the_interval_covers_a_distance():
    rng, fits = np.random.default_rng(5), 150
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.35, 0.3, 0.35])
    true = 0.5 * np.abs(p - q).sum()
    missed = np.zeros(2)
    for seed in range(fits):
        rows = [rng.multinomial(80, p), rng.multinomial(200, q)]
        low, high = fitted(rows, 1.0, seed, permutations=99).conf_int()
        missed += [true < low, true > high]
    assert (missed <= 0.025 * fits + 3 * math.sqrt(0.025 * fits)).all()


def test_everything_is_in_one_release():
    result = fitted([[40, 12, 8], [90, 70, 40]])
    assert set(result.release.parts) == {"details 0", "details 1"}
    assert result.epsilon == 1.0
    again = pr.from_json(result.to_json())
    assert again.pvalue == result.pvalue and again.conf_int() == result.conf_int()
    pd.testing.assert_frame_equal(again.shares(), result.shares())
    other = pr.ClosenessTest.from_release(result.release, alpha=0.5)
    assert other.pvalue == result.pvalue and other.alpha == 0.5
    shares = result.shares().pivot(index="group", columns="item", values="share")
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    frame = result.shares()
    assert ((frame["lower"] <= frame["share"]) & (frame["share"] <= frame["upper"])).all()
    assert frame["lower"].min() >= 0 and frame["upper"].max() <= 1


def test_an_archive_with_other_noise_is_refused():
    release = fitted([[40, 12], [90, 70]]).release
    parts = {name: replace(part, epsilon=0.5) for name, part in release.plan.parts.items()}
    forged = replace(release, plan=replace(release.plan, parts=parts))
    with pytest.raises(ValueError, match=r"must have (the )?noise|epsilons|parts"):
        pr.ClosenessTest.from_release(forged)


REFUSED = {
    "an effect that is free": (
        lambda: fitted([[4, 5], [6, 7]], effect_epsilon=0.5),
        ["effect_epsilon=", "no further cost"],
    ),
    "details that are free": (
        lambda: fitted([[4, 5], [6, 7]], details_epsilon=0.5),
        ["details_epsilon=", "Leave both out"],
    ),
    "rankings": (
        lambda: pr.ClosenessTest(
            pr.Mallows(3, 0.5).rvs(9, np.random.default_rng(1)),
            pr.Mallows(3, 0.5).rvs(9, np.random.default_rng(2)),
        ).fit(1.0, method="table"),
        ["method must be one of", "rankings"],
    ),
    "too many categories": (
        lambda: pr.ClosenessTest.from_counts(
            {g: {f"c{x}": 1 for x in range(201)} for g in "ab"}, [f"c{x}" for x in range(201)]
        ).fit(1.0, method="table"),
        ["method must be one of"],
    ),
    "shares of a p-value alone": (
        lambda: counted([4, 5], [6, 7]).fit(1.0, method="tv").shares(),
        ["method='table'", "details_epsilon"],
    ),
    "a distance of three groups": (
        lambda: fitted([[4, 5], [6, 7], [8, 9]]).conf_int(),
        ["two groups"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_calls_are_refused_briefly(case):
    call, words = REFUSED[case]
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words)
    assert len(re.findall(r"[.?!](?=\s+[A-Z])", message)) < 3


def test_the_summary_shows_shares_and_the_test():
    text = str(fitted([[40, 12, 8], [90, 70, 40]]).summary())
    for words in ("P-value:", "Decision:", "Distance:", "Null tables:", "g0 %", "difference"):
        assert words in text
    three = str(fitted([[40, 12], [90, 70], [10, 10]]).summary())
    assert "g2 %" in three and "Distance:" not in three and "difference" not in three[:900]


def test_a_small_group_and_a_large_survey():
    assert 0 < fitted([[2, 0], [300, 20]], 0.1).pvalue <= 1
    large = fitted([[250_000, 250_000], [251_500, 248_500]], 0.5)
    assert large.pvalue < 0.05 and large.effect == pytest.approx(0.003, abs=0.0005)


def test_power_of_a_planned_table():
    power = pr.power.ClosenessPower(
        items=3, kind="choices", method="table", permutations=99, replicates=60
    )
    none, some = (
        power.power(nobs=300, total_variation=effect, epsilon=1.0) for effect in (0.01, 0.3)
    )
    assert none < 0.2 < 0.8 < some
