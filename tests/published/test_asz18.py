"""The reduction of a given null to uniformity, as the page has it: private, and what it loses."""

import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import privrank as pr
from privrank.published.asz18 import sigmoid_bit
from privrank.util.arrays import orders_of

REPLICATES = 60
PAGE = Path(__file__).parents[2] / "docs" / "papers" / "asz18.md"


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bit_of_drawn_cells_is_as_private_as_that_of_answers(epsilon):
    cells, n = [[0, 1], [2], [3]], 3  # shares of .5, .25 and .25 in quarters
    bit = sigmoid_bit(n, 4, epsilon, 0.3)
    ones = {}
    for answers in product(range(3), repeat=n):
        draws = list(product(*(cells[answer] for answer in answers)))
        each = [bit.probability(np.bincount(draw, minlength=4), ()) for draw in draws]
        ones[answers] = np.mean(each)
    losses = [
        abs(math.log(of(here) / of(ones[(other, *answers[1:])])))
        for answers, here in ones.items()
        for other in range(3)
        for of in (float, lambda p: 1.0 - p)
    ]
    assert 0.3 * epsilon < max(losses) <= epsilon * (1 + 1e-12)


def test_the_code_of_the_page_tests_the_null_it_names():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    names = {}
    exec(compile(block, PAGE.name, "exec"), names)
    cells, listed, test = names["cells"], names["listed"], names["test"]
    assert len(listed) == sum(cells.values()) == len(set(listed))
    assert set(names["drawn"]) <= set(listed)
    result = test.fit(np.inf, draws=99)
    assert result.hypotheses[0] == "all categories are equally likely." and result.pvalue > 0.001
    # answers with other shares are as far from H0 in cells as they were
    other, sizes = np.array([0.2, 0.5, 0.3]), np.array(list(cells.values()))
    apart = np.abs(other - sizes / sizes.sum()).sum() / 2
    cellwise = np.repeat(other / sizes, sizes)
    assert np.abs(cellwise - 1 / sizes.sum()).sum() / 2 == pytest.approx(apart)
    with pytest.raises(ValueError, match="method must be one of"):
        pr.IdentityTest.from_counts([5, 3, 2], [0.5, 0.3, 0.2], list("abc")).fit(
            1.0, method="sigmoid", tolerance=0.2
        )


def reduced(p, q):
    """Probabilities of the 6 k cells of answers from q, for the null p: mix, round, spread.

    Half of the answers become uniform ones; an answer goes to one of its own cells, as many as are
    within 6 k times its share under the null, or else to one of the cells that are left.
    """
    k, size = len(p), 6 * len(p)
    mixed, now = (0.5 * np.asarray(shares) + 0.5 / k for shares in (p, q))
    whole = np.floor(size * mixed + 1e-9).astype(int)
    within = now * whole / (size * mixed)
    left = size - whole.sum()
    beyond = (1.0 - within.sum()) / max(left, 1)
    return np.concatenate([np.repeat(within / whole, whole), np.full(left, beyond)])


def test_the_reduction_keeps_three_eighths_of_the_distance():
    rng = np.random.default_rng(1)
    for p, q in rng.dirichlet(np.full(5, 0.5), (500, 2)):
        assert reduced(p, p) == pytest.approx(np.full(30, 1 / 30))
        kept, before = np.abs(reduced(p, q) - 1 / 30).sum(), np.abs(p - q).sum()
        assert 0.375 * before - 1e-12 <= kept <= 0.5 * before + 1e-12


def test_the_reduction_loses_most_of_the_power():
    null, other = (pr.Mallows(3, phi).pmf(orders_of(3)) for phi in (0.7, 0.5))
    rng, names = np.random.default_rng(5), [str(cell) for cell in range(36)]
    rejected = []
    for p, q in ((null, other), (np.full(36, 1 / 36), reduced(null, other))):
        tests = (
            pr.IdentityTest.from_counts(rng.multinomial(300, q), p, names[: len(p)])
            for _ in range(REPLICATES)
        )
        fits = [test.fit(0.5, method="tv", draws=999, rng=rng) for test in tests]
        rejected.append(np.mean([fit.reject for fit in fits]))
    assert rejected[0] > 0.85 and rejected[1] < 0.35, rejected
