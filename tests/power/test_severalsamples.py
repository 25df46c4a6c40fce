"""Plans of comparisons: what they say is what fits do."""

import math

import numpy as np
import pytest

import privrank as pr
from privrank.closeness import rejection_probability
from privrank.mechanisms.closeness import round_up, smoothed_pvalue

GROUPS = pr.power.ClosenessPower


def test_the_probability_of_rejection_is_that_over_the_noise():
    rng = np.random.default_rng(1)
    share = (np.arange(4000) + 0.5) / 4000
    laplace = np.where(share < 0.5, np.log(2 * share), -np.log(2 * (1 - share)))
    for scale, first in ((0.3, 0.5), (0.05, 2.0), (2.0, 3.0)):
        statistics = np.append(first, rng.standard_normal(99))
        pvalues = [
            round_up(smoothed_pvalue(statistics, first + scale * noise, scale)) for noise in laplace
        ]
        for alpha in (0.05, 0.2):
            found = rejection_probability(statistics, scale, alpha)
            assert found == pytest.approx(np.mean(np.array(pvalues) <= alpha), abs=1e-3)
    assert rejection_probability(np.append(9.0, rng.standard_normal(99)), 0.0, 0.05) == 1.0


def test_a_plan_says_what_fits_do():
    design = GROUPS(3, kind="choices", shares=(2, 1), permutations=99, replicates=60)
    n = int(design.solve_power(total_variation=0.2, epsilon=1.0, power=0.7))
    planned = design.power(nobs=n, total_variation=0.2, epsilon=1.0)
    assert abs(planned - 0.7) < 3 * planned.error
    rng, (many, few) = np.random.default_rng(2), design.sizes(n)
    tilted = [1 / 3 + 0.2, 1 / 3 - 0.1, 1 / 3 - 0.1]
    rejected = []
    for _ in range(120):
        drawn = (rng.multinomial(many, [1 / 3] * 3), rng.multinomial(few, tilted))
        counts = {
            group: dict(zip("abc", each.tolist(), strict=True))
            for group, each in zip("xy", drawn, strict=True)
        }
        test = pr.ClosenessTest.from_counts(counts, list("abc"))
        rejected.append(test.fit(1.0, permutations=99, rng=rng).reject)
    assert abs(np.mean(rejected) - planned) < 3 * math.hypot(planned.error, 0.046)


def test_rankings_of_three_groups():
    design = GROUPS(4, shares=(60, 40, 20), permutations=99, replicates=40)
    assert design.sizes(120) == (60, 40, 20) and sum(design.sizes(121)) == 121
    weak, strong = (design.power(nobs=240, phi=phi, epsilon=2.0) for phi in (0.9, 0.3))
    assert weak < 0.5 < 0.9 < strong
    assert 0.3 < design.solve_power(nobs=240, epsilon=2.0, power=0.7) < 0.9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shares": (1,)}, "shares must be at least two positive numbers"),
        ({"shares": (1, 0)}, "shares must be at least two positive numbers"),
        ({"method": "chi-square"}, "method must be one of"),
        ({"permutations": 5}, "permutations must be between 19"),
    ],
)
def test_bad_designs_get_one_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        GROUPS(4, **options)


def test_groups_are_of_two_at_least():
    with pytest.raises(ValueError, match="at least 2 respondents per group"):
        GROUPS(4).power(nobs=3, phi=0.5, epsilon=1.0)
    with pytest.raises(ValueError, match="is H0 itself"):
        GROUPS(4).solve_power(phi=1.0, epsilon=1.0, power=0.8)
