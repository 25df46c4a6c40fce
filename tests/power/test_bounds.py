"""What no private method can reach, beside the best private methods: linear programmes find them.

The bounds of tests are set beside the best of all private tests of Bernoulli samples and of all
private rules for the orders of few rankings, and beside the power of the tests that there are.
"""

import math
from itertools import permutations, product

import matplotlib
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

import privrank as pr
from privrank.distributions.kendall import pair_probability
from privrank.hypotheses.effects import least_errors
from privrank.power.base import DesignPoint

matplotlib.use("Agg")

UNIFORM = pr.power.UniformityPower(2, kind="choices")


def best_test(n, null, share, epsilon, delta, alpha):
    """Most power of a private test of n Bernoulli answers, as a function of how many are 1."""
    count, grown = np.arange(n + 1), math.exp(epsilon)
    rows = []
    for here, there in [(k, k + 1) for k in range(n)] + [(k + 1, k) for k in range(n)]:
        for sign in (1, -1):  # of a rejection, and of none: 1 - a <= e^eps (1 - b) + delta
            row = np.zeros(n + 1)
            row[here], row[there] = sign, -sign * grown
            rows.append((row, delta if sign == 1 else delta + grown - 1))
    found = linprog(
        -binom.pmf(count, n, share),
        A_ub=np.array([row for row, _ in rows]),
        b_ub=[right for _, right in rows],
        A_eq=binom.pmf(count, n, null)[None],
        b_eq=[alpha],
        bounds=(0, 1),
    )
    return -found.fun


CASES = list(
    product((1, 3, 12), ((0.5, 0.7), (0.0, 0.3), (0.0, 1.0)), (0.1, 1.0), (0.0, 0.03), (0.05, 0.4))
)


def bounded(alpha, n, distance, epsilon, delta=0.0):
    """Most power by the bound, at odds where its lines turn if delta is 0."""
    odds = np.exp(epsilon * np.arange(-n, n + 1))
    errors = least_errors(odds[:, None], n, distance, epsilon, delta)
    return min((odds * alpha + 1 - errors).min(), 1.0)


def test_no_private_test_of_answers_is_above_the_bound():
    for n, (null, share), epsilon, delta, alpha in CASES:
        best = best_test(n, null, share, epsilon, delta, alpha)
        bound = bounded(alpha, n, share - null, epsilon, delta)
        assert best <= bound + 1e-7
        if share - null == 1.0:  # all answers are others, and the best test has the bound
            assert best >= bound - 1e-7
        # the simple form: beyond k differences anything may happen
        if not delta:
            for k in range(n + 1):
                simple = alpha * math.exp(k * epsilon) + binom.sf(k, n, share - null)
                assert bound <= simple + 1e-9


@pytest.mark.parametrize("delta", [0.0, 0.2])
def test_the_bound_of_one_answer_is_that_of_randomised_response(delta):
    # with a factor of 3 the levels and powers are corners at (0, delta), (f, 1 - f)
    f = (1.0 - delta) / 4.0
    for level, power in ((0.0, delta), (f / 2, delta + 1.5 * f), (f, 1.0 - f), (1.0, 1.0)):
        assert bounded(level, 1, 1.0, math.log(3.0), delta) == pytest.approx(power)


def test_errors_fall_in_the_units_the_distance_and_epsilon():
    points = [(40, 0.2, 0.3, 0.0), (60, 0.2, 0.3, 0.0), (60, 0.3, 0.3, 0.0), (60, 0.3, 0.4, 0.0)]
    points += [(60, 0.3, 0.4, 0.01), (10**7, 0.3, 0.4, 0.01), (10**7, 1.0, np.inf, 0.5)]
    odds, last = np.geomspace(0.01, 100, 9), 1.0
    for point in points:
        errors = least_errors(odds[:, None], *point)
        assert (errors <= np.minimum(last, np.minimum(odds, 1)) + 1e-12).all() and (
            errors >= 0
        ).all()
        last = errors
    np.testing.assert_allclose(least_errors(odds[:, None], 9, 0.0, 1.0, 0.0), np.minimum(odds, 1))


def limit(plan, nobs, effect, epsilon, delta=0.0):
    bound, error = plan._limit(DesignPoint(nobs, effect, epsilon, delta, 0.05), 0)
    assert error == 0.0
    return bound


def test_tests_stay_below_the_bound():
    for n, epsilon, distance in product((10, 60), (0.05, 0.3, 2.0), (0.02, 0.3, 0.5)):
        bound = limit(UNIFORM, n, distance, epsilon)
        assert UNIFORM.power(n, epsilon, total_variation=distance) <= bound + 1e-12
        assert bounded(0.05, n, distance, epsilon) - 1e-12 <= bound
        assert bound <= bounded(0.05, n, distance, epsilon) * 1.01
    rankings = pr.power.UniformityPower(3, replicates=20)
    distance = pr.Mallows(3, 0.4).total_variation("uniform")
    assert limit(rankings, 30, -math.log(0.4), 0.1) == limit(UNIFORM, 30, distance, 0.1)
    private = pr.power.IdentityPower([0.5, 0.3, 0.2], replicates=20)
    assert private.power(60, 0.1, 0.3, delta=1e-3) <= limit(private, 60, 0.3, 0.1, 1e-3)


def test_of_groups_the_smallest_one_differs():
    groups = pr.power.ClosenessPower(3, kind="choices", shares=(2, 1), replicates=20)
    assert groups.sizes(62) == (41, 21)
    assert limit(groups, 62, 0.3, 0.2) == limit(UNIFORM, 21, 0.3, 0.2)
    assert groups.power(62, 0.2, total_variation=0.3) <= limit(groups, 62, 0.3, 0.2)
    # the size of a group in the middle falls now and then as respondents are added: no bound does
    middle = pr.power.ClosenessPower(3, kind="choices", shares=(3, 1, 3), replicates=20)
    numbers = range(24, 45)
    smallest = [min(middle.sizes(n)) for n in numbers]
    bounds = [limit(middle, n, 0.3, 0.2) for n in numbers]
    assert min(np.diff(smallest)) < 0 <= min(np.diff(bounds))
    sizes = [limit(UNIFORM, n, 0.3, 0.2) for n in smallest]
    assert (np.array(sizes) <= bounds).all()


def inversions(order, centre):
    place = {item: k for k, item in enumerate(order)}
    return sum(
        place[centre[i]] > place[centre[j]]
        for i in range(len(centre))
        for j in range(i + 1, len(centre))
    )


def mallows(m, phi):
    """Probabilities of all orders (columns) under all centres (rows), and the orders."""
    orders = list(permutations(range(m)))
    weight = np.array([[phi ** inversions(order, centre) for order in orders] for centre in orders])
    return weight / weight.sum(axis=1, keepdims=True), orders


def test_centres_with_two_items_exchanged_are_as_far_apart_as_these_items():
    model, orders = mallows(5, 0.6)
    for a, b in ((0, 1), (1, 4), (0, 4)):
        centre = list(orders[0])
        centre[a], centre[b] = centre[b], centre[a]
        apart = 0.5 * np.abs(model[0] - model[orders.index(tuple(centre))]).sum()
        assert apart == pytest.approx(2 * pair_probability(b - a, -math.log(0.6)) - 1)


def best_order(m, n, phi, epsilon, delta):
    """Least mean excess, over all centres, of a private rule that orders n rankings."""
    model, orders = mallows(m, phi)
    samples = list(product(range(len(orders)), repeat=n))
    # probability of a sample under a centre, and the excess of each order there
    likely = np.array([[np.prod(row[list(sample)]) for sample in samples] for row in model])
    ahead = [[pair_probability(b - a, -math.log(phi)) for b in range(m) if b > a] for a in range(m)]
    excess = np.zeros((len(orders), len(orders)))
    for (c, centre), (o, order) in product(enumerate(orders), repeat=2):
        for a in range(m):
            for b in range(a + 1, m):
                wrong = order.index(centre[a]) > order.index(centre[b])
                excess[c, o] += wrong * (2 * ahead[a][b - a - 1] - 1) / math.comb(m, 2)
    cost = (likely.T @ excess / len(orders)).ravel()
    size, place = len(orders), {sample: k for k, sample in enumerate(samples)}
    neighbours = [
        (place[one], place[(*one[:j], other, *one[j + 1 :])])
        for one in samples
        for j in range(n)
        for other in range(size)
        if other != one[j]
    ]
    # pure privacy holds for all sets if it does for single orders; delta wants every set
    sets = [[o] for o in range(size)] if not delta else _subsets(size)
    rows = np.zeros((len(neighbours) * len(sets), cost.size))
    for row, ((here, there), some) in zip(rows, product(neighbours, sets), strict=True):
        row[[here * size + o for o in some]] = 1.0
        row[[there * size + o for o in some]] = -math.exp(epsilon)
    once = np.kron(np.eye(len(samples)), np.ones(size))
    found = linprog(
        cost,
        A_ub=rows,
        b_ub=np.full(len(rows), delta),
        A_eq=once,
        b_eq=np.ones(len(samples)),
        bounds=(0, 1),
    )
    return found.fun


def _subsets(size):
    return [[o for o in range(size) if mask >> o & 1] for mask in range(1, 2**size)]


@pytest.mark.parametrize(
    ("m", "n", "phi", "epsilon", "delta"),
    [
        (2, 1, 0.3, 1.0, 0.0),
        (2, 1, 0.3, 1.0, 0.1),
        (2, 5, 0.6, 0.5, 0.0),
        (2, 4, 1e-9, 0.4, 0.0),
        (3, 1, 0.3, 0.5, 0.0),
        (3, 1, 0.3, 0.5, 0.1),
        (3, 2, 0.5, 1.0, 0.0),
    ],
)
def test_no_private_order_is_below_the_bound(m, n, phi, epsilon, delta):
    plan = pr.power.AggregationPower(items=m, replicates=20)
    bound = limit(plan, n, -math.log(phi), epsilon, delta)
    best = best_order(m, n, phi, epsilon, delta)
    assert 0 < bound <= best + 1e-9
    # of two items an exchange is all there is: sharp for one ranking, and for unanimous ones
    if m == 2 and n != 5:
        assert bound == pytest.approx(best, rel=1e-6)


def test_consensus_orders_stay_above_the_bound():
    plan = pr.power.AggregationPower(items=4, replicates=60)
    for n, epsilon in ((20, 0.05), (60, 0.2)):
        excess = plan.power(n, epsilon, phi=0.6)
        assert limit(plan, n, -math.log(0.6), epsilon) <= excess + 3 * excess.error


def region(figure, number=0):
    """Corners and label of a shaded region of a figure."""
    regions = [drawn for drawn in figure.axes[0].collections if drawn.get_hatch()]
    return regions[number].get_paths()[0].vertices, regions[number].get_label()


def holds(corners, x, y):
    return np.isclose(corners, [x, y], atol=1e-9).all(axis=1).any()


def test_the_region_is_drawn_with_its_entry():
    numbers = [20, 60, 200]
    figure = UNIFORM.plot_power(nobs=numbers, epsilon=0.1, total_variation=0.1)
    corners, label = region(figure)
    assert label == "beyond any private method"
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [label]
    for n in numbers:  # from the bound up to 1
        assert holds(corners, n, limit(UNIFORM, n, 0.1, 0.1)) and holds(corners, n, 1.0)
    figure = UNIFORM.plot_power(nobs=numbers, epsilon=[np.inf, 0.1], total_variation=0.1)
    assert region(figure)[1] == label
    figure = UNIFORM.plot_power(nobs=numbers, epsilon=[0.1, 0.2], total_variation=0.1)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts == ["epsilon = 0.1", label, "epsilon = 0.2"]  # one entry for the regions of both
    figure = UNIFORM.plot_power(nobs=numbers, epsilon=[np.inf, 0.1], total_variation=0.1)
    assert len([drawn for drawn in figure.axes[0].collections if drawn.get_hatch()]) == 1


def test_the_region_of_sizes_ends_where_the_bound_has_the_power():
    epsilons = [0.1, 0.4, np.inf]
    figure = UNIFORM.plot_power("epsilon", epsilon=epsilons, power=0.8, total_variation=0.2)
    corners, _ = region(figure)
    for epsilon in epsilons[:-1]:
        first = next(n for n in range(2, 1000) if limit(UNIFORM, n, 0.2, epsilon) >= 0.8)
        assert holds(corners, epsilon, first) and holds(corners, epsilon, 0.0)
    # of rankings a smaller phi is easier to find: the region is that of phi up to 1
    plan = pr.power.UniformityPower(3, replicates=20)
    corners, _ = region(plan.plot_power(nobs=[60], epsilon=0.5, power=0.3))
    assert holds(corners, 60, 1.0) and corners[:, 1].min() > 0.5


def test_the_region_of_an_excess_is_at_the_bottom_and_others_have_none():
    plan = pr.power.AggregationPower(items=3, replicates=20)
    corners, _ = region(plan.plot_power(nobs=[20, 40], epsilon=0.1, phi=0.5))
    assert holds(corners, 40, limit(plan, 40, math.log(2.0), 0.1)) and holds(corners, 40, 0.0)
    wide = pr.power.AggregationPower(items=3, loss="width", replicates=20)
    worths = pr.power.BTLPower(items=3, max_rows=3, design="public", replicates=20)
    for other, effect in ((wide, {"phi": 0.5}), (worths, {"contrast": 0.5})):
        drawn = other.plot_power(nobs=[40, 60], epsilon=0.5, **effect).axes[0]
        assert not any(part.get_hatch() for part in drawn.collections)
        entries = [text.get_text() for text in drawn.get_legend().get_texts()]
        assert entries == ["2 Monte Carlo standard errors"]
