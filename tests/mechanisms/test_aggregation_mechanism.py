"""Rank aggregation is private for rows and respondents, and lets out only the release."""

import math
import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare
from searching import CANARY, ODD, has_canary, reachable

import privrank as pr
from privrank.consensus.orders import weight_against
from privrank.encode.encoded import EncodedSample
from privrank.encode.samples import encode_rankings
from privrank.mechanisms import samples as mechanism
from privrank.mechanisms.spend import draw
from privrank.plans import aggregation as rankplan
from privrank.plans.aggregation import plan_aggregation as planned
from privrank.plans.aggregation import totals_scale, unit_steps
from privrank.privacy.accounting import gaussian_delta, integer_delta, lattice_delta
from privrank.privacy.knorm import SLACK, CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.published import agkm22
from privrank.release.names import FALLBACK, ORDER, PAIRS, QUERIES, SCORE, TOTALS
from privrank.release.survey import PartPlan, Sample

PRIVATE = ["auto", "kemeny", "borda", "pairs-laplace", "kwiksort", "kwiksort-hay", "exponential"]
WITHOUT_DELTA = ("pairs-laplace", "exponential")
CASES = [(method, 0.0) for method in PRIVATE]
CASES += [(method, 1e-6) for method in PRIVATE if method not in WITHOUT_DELTA]


def sample(m=4, n=50, max_rows=1):
    unit = "respondent" if max_rows > 1 else "row"
    return Sample("rankings", tuple("abcdefghijklmnopqrstuvwxyz"[:m]), n, unit, max_rows)


def people(m, max_rows):
    """All respondents: every sequence of at most so many rankings."""
    orders = list(permutations(range(1, m + 1)))
    return [rows for k in range(1, max_rows + 1) for rows in product(orders, repeat=k)]


def votes_of(person, max_rows):
    """The votes of one respondent, beside one other whose votes are known."""
    m = len(person[0])
    other = tuple(range(1, m + 1))
    rows = np.array([*person, other])
    frame = pd.DataFrame(rows, columns=list("abcd"[:m]))
    frame["who"] = [0] * len(person) + [1]
    encoded = encode_rankings(frame, respondent="who", max_rows=max_rows)
    steps = unit_steps(encoded.sample)
    return mechanism._votes(encoded, steps) - steps * np.triu(np.ones((m, m), int), 1)


@pytest.mark.parametrize(("m", "max_rows", "steps"), [(3, 1, 1), (3, 2, 2), (2, 3, 6), (4, 1, 1)])
def test_what_a_respondent_can_move(m, max_rows, steps):
    assert math.lcm(*range(1, max_rows + 1)) == steps
    votes = {person: votes_of(person, max_rows) for person in people(m, max_rows)}
    upper, pairs = np.triu_indices(m, 1), m * (m - 1) // 2
    for table in votes.values():
        off = ~np.eye(m, dtype=bool)
        assert (table.diagonal() == 0).all() and (table + table.T == steps)[off].all()
    cells = np.array([table[upper] for table in votes.values()])
    moved = np.abs(cells[:, None] - cells[None])
    assert moved.max() == steps and moved.sum(axis=2).max() == steps * pairs
    totals = np.array([table.sum(axis=0) for table in votes.values()])
    gaps = totals[:, None] - totals[None]
    assert (gaps.sum(axis=2) == 0).all()
    for j in range(1, m):
        # within `steps` times K: no j items together gain more than j (m - j) steps
        worst = max(gaps[..., list(group)].sum(axis=2).max() for group in combinations(range(m), j))
        assert worst == steps * j * (m - j)
    for order in permutations(range(m)):
        scores = [weight_against(np.array(order), table) for table in votes.values()]
        assert max(scores) - min(scores) == steps * pairs


def spent(plan, m, epsilon, delta):
    """Upper bound on the privacy loss of a plan, from the sensitivities tested above."""
    steps, pairs = int(plan.settings["steps"]), m * (m - 1) // 2
    if plan.method == "exponential mechanism":
        return 2 * plan.settings["rate"] * pairs * steps
    loss = sum(
        Fraction(pairs * steps) / Fraction(plan.parts[name].noise.scale)
        for name in (SCORE, FALLBACK)
        if name in plan.parts
    )
    part = main_part(plan)
    distribution = part.noise
    if isinstance(distribution, DiscreteGaussian):
        if TOTALS not in plan.parts:
            asked = int(plan.settings.get("cap", pairs))
            assert lattice_delta(distribution.scale, part.epsilon, asked, steps) <= delta
        else:
            reach = steps * math.sqrt(m * (m * m - 1) / 3)
            found = integer_delta(distribution.scale, part.epsilon, reach, m, part.fineness)
            assert 0.99 * delta < found <= delta
        return float(Fraction(part.epsilon) + loss)
    if isinstance(distribution, CubeNoise):
        loss += Fraction(steps) * Fraction(distribution.rate + SLACK)
    elif isinstance(distribution, PermutohedronNoise):
        loss += Fraction(steps * distribution.fineness) * Fraction(distribution.rate + SLACK)
    else:
        loss += (
            Fraction(int(plan.settings.get("cap", pairs))) * steps / Fraction(distribution.scale)
        )
    return float(loss)


def main_part(plan):
    """What a plan draws its order from."""
    return next(plan.parts[name] for name in (PAIRS, TOTALS, QUERIES) if name in plan.parts)


@pytest.mark.parametrize("max_rows", [1, 2, 5, 10])
@pytest.mark.parametrize(("m", "epsilon"), [(2, 1.0), (4, 0.3), (10, 0.5), (10, 3.0), (16, 1.0)])
def test_the_parts_of_every_plan_spend_no_more_than_epsilon(m, epsilon, max_rows):
    for method, delta in CASES:
        share = 0.0 if method in rankplan_order() else 0.2
        plan = planned(sample(m, 50, max_rows), epsilon, delta, method, share)
        xi = epsilon - math.log1p(-delta)
        loss = spent(plan, m, epsilon, delta)
        assert 0.93 * epsilon < loss <= xi, (method, delta, plan)
        assert plan.settings.get("score share", 0.0) == share


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("method", ["kemeny", "borda"])
def test_gaussian_plans_spend_no_more_than_epsilon_and_delta(method, max_rows, share):
    where = sample(26, 50, max_rows)
    for epsilon in (0.3, 1.0):
        plan = planned(where, epsilon, 1e-6, method, share)
        assert isinstance(main_part(plan).noise, DiscreteGaussian)
        assert (1 - 1e-9) * epsilon < spent(plan, 26, epsilon, 1e-6) <= epsilon


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("method", ["kwiksort", "kwiksort-hay"])
def test_gaussian_sorts_spend_no_more_than_epsilon_and_delta(method, max_rows):
    where = sample(26, 50, max_rows)
    for epsilon in (0.3, 1.0):
        plan = planned(where, epsilon, 1e-6, method)
        queries, steps = plan.parts[QUERIES], plan.settings["steps"]
        assert (1 - 1e-9) * epsilon < spent(plan, 26, epsilon, 1e-6) <= epsilon
        assert (FALLBACK in plan.parts) == (method == "kwiksort")
        # the curve of continuous noise at the l2 sensitivity of so many counts is all but attained
        moved = steps * math.sqrt(plan.settings["cap"])
        found = gaussian_delta(queries.noise.scale, queries.epsilon, moved)
        assert found == pytest.approx(1e-6, rel=0.1)


def test_a_delta_takes_most_of_the_noise_of_a_sort():
    plans = [planned(sample(26), 1.0, delta, "kwiksort") for delta in (0.0, 1e-6)]
    laplace, gaussian = (math.sqrt(plan.parts[QUERIES].noise.variance) for plan in plans)
    # 212 queries: q 2^(1/2) / .95 against q^(1/2) 4.22 / .95, nearly
    assert laplace == pytest.approx(212 * math.sqrt(2) / 0.95, rel=1e-3)
    assert gaussian == pytest.approx(math.sqrt(212) * 4.22 / 0.95, rel=0.02)
    # of few items the noise without delta is less, and is kept
    for m in (3, 4):
        assert isinstance(
            planned(sample(m), 1.0, 1e-6, "kwiksort").parts[QUERIES].noise, DiscreteLaplace
        )


def sorted_transcripts(counts, n, pivots, m):
    """Every way in which a sort may go: the counts that it asks for, and the answers' signs."""
    pairs, found = m * (m - 1) // 2, {}
    for signs in product((False, True), repeat=pairs):
        asked, given = [], iter(signs)

        def noisy(values, asked=asked, given=given):
            asked.extend(values.tolist())
            return np.array([n if next(given) else -1 for _ in values])

        queries = agkm22.noisy_kwiksort(counts, n, pivots, pairs, noisy)[1]
        found[signs[:queries]] = asked
    return found


def worst_delta(scale, epsilon, m=3, n=3):
    """The largest delta of all transcripts of a sort of 3 items, summed up over their answers."""
    orders, worst, k = list(permutations(range(1, m + 1))), 0.0, np.arange(-8 * n, 9 * n + 1)
    mass = {count: np.exp(-0.5 * ((k - count) / scale) ** 2) for count in range(n + 1)}
    mass = {count: weights / weights.sum() for count, weights in mass.items()}
    tables = [mechanism.pair_count_values(np.array([order, *orders[: n - 1]])) for order in orders]
    for pivots in ((0, 1, 2), (1, 0, 2)):
        runs = [sorted_transcripts(table, n, np.array(pivots), m) for table in tables]
        for one, other in permutations(runs, 2):
            total = 0.0
            for signs, asked in one.items():
                p, q = np.ones(1), np.ones(1)
                for ahead, count, moved in zip(signs, asked, other[signs], strict=True):
                    answers = (2 * k > n) == ahead
                    p = np.multiply.outer(p, mass[count][answers])
                    q = np.multiply.outer(q, mass[moved][answers])
                total += np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
            worst = max(worst, total)
    return worst


def test_no_transcript_of_a_gaussian_sort_exceeds_delta():
    epsilon, delta = 0.7, 0.01
    scale = planned(sample(3), epsilon, delta, "kwiksort").parts[QUERIES].noise.scale
    worst = worst_delta(scale, epsilon)
    assert 0.5 * delta < worst <= delta
    assert worst_delta(scale / 1.5, epsilon) > delta


@pytest.mark.parametrize("method", WITHOUT_DELTA)
def test_a_delta_that_buys_nothing_is_refused_before_it_is_spent(method):
    model = pr.PrivateRankAggregation(np.array([[1, 2], [2, 1]]))
    budget = pr.Budget(epsilon=2.0, delta=1e-5)
    with pytest.raises(ValueError, match="does not benefit from a delta. Leave delta out, or"):
        model.fit(1.0, 1e-6, method=method, budget=budget)
    assert budget.spent == (0.0, 0.0)


def rankplan_order():
    return ("kwiksort", "kwiksort-hay", "exponential")


def test_planted_faults_are_noticed(monkeypatch):
    # the sensitivity of a row for a respondent, and a score whose share was not set aside
    where = sample(5, 50, 3)
    assert spent(planned(where, 1.0, 0.0, "kemeny", 0.1), 5, 1.0, 0.0) <= 1.0
    with monkeypatch.context() as patch:
        honest = CubeNoise.calibrate
        patch.setattr(rankplan.CubeNoise, "calibrate", lambda d, s, e: honest(d, 1, e))
        fault = planned(where, 1.0, 0.0, "kemeny", 0.1)
        assert spent(fault, 5, 1.0, 0.0) > 5
    with monkeypatch.context() as patch:
        patch.setattr(rankplan, "split", lambda e, shares, main: {main: e, SCORE: 0.1 * e})
        fault = planned(where, 1.0, 0.0, "kemeny", 0.1)
        assert spent(fault, 5, 1.0, 0.0) > 1.05


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize(
    "method", ["kemeny", "pairs-laplace", "borda", "gaussian", "gaussian totals"]
)
def test_released_numbers_have_the_noise_that_is_stated(monkeypatch, method, fault):
    distributions = (CubeNoise, DiscreteLaplace, PermutohedronNoise, DiscreteGaussian)
    if fault:  # half the noise
        for distribution in distributions:
            patch_half(monkeypatch, distribution)
    rng = np.random.default_rng(3)
    ranks = pr.Mallows(4, 0.9).rvs(40, rng)
    model = pr.PrivateRankAggregation(ranks)
    exact = model.fit(np.inf)
    delta = 0.1 if method.startswith("gaussian") else 0.0
    found, name = [], TOTALS if method in ("borda", "gaussian totals") else PAIRS
    for _ in range(600):
        word = {"gaussian": "kemeny", "gaussian totals": "borda"}.get(method, method)
        share = 0.1 if word == "kemeny" else 0.0
        fit = model.fit(0.8, delta, method=word, score_share=share, rng=rng)
        part = fit.release.parts[name]
        clean = exact.release.parts[PAIRS].values
        if name == TOTALS:
            clean = np.rint(exact.fractions.sum(axis=0) * 40 + 20) / part.step
        found.append(part.values - clean)
        score = fit.release.parts.get(SCORE)
        if score is not None:
            true = weight_against(fit.places, exact.fractions) * 40
            found[-1] = np.append(
                found[-1], (score.values[0] - true) / math.sqrt(score.distribution.variance)
            )
    if method.startswith("gaussian"):
        assert isinstance(part.distribution, DiscreteGaussian)
    spread = np.array(found, dtype=float)
    ratios = [spread[:, : len(clean)].var() / part.distribution.variance]
    if score is not None:
        ratios.append(spread[:, -1].var())
        # the score's noise has nothing to do with that of the pairs: no winner's curse
        assert fault or abs(spread[:, -1].mean()) < 0.2
    assert all(0.8 < ratio < 1.25 for ratio in ratios) != fault


def patch_half(monkeypatch, distribution):
    honest = distribution.draw

    def draw(self, values, rng):
        clean = getattr(self, "fineness", 1) * np.asarray(values)
        return clean + (honest(self, values, rng) - clean) // 2

    monkeypatch.setattr(distribution, "draw", draw)


@pytest.mark.parametrize("max_rows", [1, 2])
def test_every_ratio_of_the_exponential_mechanism_is_within_epsilon(max_rows):
    epsilon, m = 0.9, 3
    plan = planned(sample(m, 2, max_rows), epsilon, 0.0, "exponential")
    everybody = people(m, max_rows)
    tables = {person: votes_of(person, max_rows) for person in everybody}
    orders = [np.array(order) for order in permutations(range(m))]
    other = tables[everybody[0]]

    def distribution(person):
        weights = np.exp(
            [-plan.settings["rate"] * weight_against(o, tables[person] + other) for o in orders]
        )
        return weights / weights.sum()

    distributions = np.log([distribution(person) for person in everybody])
    worst = float(np.abs(distributions[:, None] - distributions[None]).max())
    assert 0.4 * epsilon < worst <= epsilon
    # and this is what a fit draws
    rows = np.array([everybody[0][0], everybody[1][0]])
    model, rng = pr.PrivateRankAggregation(rows), np.random.default_rng(1)
    plan = planned(sample(m, 2), epsilon, 0.0, "exponential")
    counts = mechanism._votes(model._encoded, 1)
    expected = np.exp([-plan.settings["rate"] * weight_against(o, counts) for o in orders])
    place = {tuple(o): k for k, o in enumerate(orders)}
    seen = np.zeros(6)
    for _ in range(1500):
        fit = model.fit(epsilon, method="exponential", rng=rng)
        seen[place[tuple(fit.places.tolist())]] += 1
    assert chisquare(seen, 1500 * expected / expected.sum()).pvalue > 1e-4


def test_what_replaces_an_unfinished_sort_has_noise_of_its_own():
    """Two items and no query: the order is that of one noisy count, whose distribution is known."""
    fallback = DiscreteLaplace(1.5)
    plan = planned(sample(2, 3), 1.0, 0.0, "kwiksort")
    parts = plan.parts | {FALLBACK: PartPlan(fallback, 1, 0.5)}
    plan = replace(plan, parts=parts, settings=plan.settings | {"cap": 0})
    rng, counts = np.random.default_rng(6), np.array([[0, 2], [1, 0]])
    orders = [agkm22.order_in(plan, counts, 3, (0, 1), rng)[0][ORDER] for _ in range(3000)]
    k = np.arange(-100, 101)
    expected = fallback.pmf(k)[2 * (2 + k) > 3].sum()
    assert 0.6 < expected < 0.8
    assert np.mean([order[0] == 0 for order in orders]) == pytest.approx(expected, abs=0.035)


@pytest.mark.parametrize("method", ["kwiksort", "kwiksort-hay"])
def test_sorts_are_drawn_by_the_distribution_of_their_plan(method):
    """Two items again: of three rankings two place the first item first."""
    epsilon, rng = 0.7, np.random.default_rng(8)
    distribution = main_part(planned(sample(2, 3), epsilon, 0.0, method)).noise
    k = np.arange(-200, 201)
    expected = distribution.pmf(k)[2 * (2 + k) > 3].sum()  # whichever of the two is asked about
    model = pr.PrivateRankAggregation(np.array([[1, 2], [1, 2], [2, 1]]))
    fits = [model.fit(epsilon, method=method, rng=rng) for _ in range(3000)]
    assert 0.6 < expected < 0.8
    assert np.mean([fit.places[0] == 0 for fit in fits]) == pytest.approx(expected, abs=0.035)


def test_small_sorts_fit_within_epsilon_exactly(monkeypatch):
    """Two items: the order of KwikSort is one noisy count, whose distribution is known."""
    epsilon = 0.7
    for method in ("kwiksort", "kwiksort-hay"):
        plan = planned(sample(2, 3), epsilon, 0.0, method)
        k = np.arange(-400, 401)
        mass = main_part(plan).noise.pmf(k)
        ahead = [mass[2 * (count + k) > 3].sum() for count in range(4)]
        losses = [math.log(b / a) for a, b in zip(ahead, ahead[1:], strict=False)]
        assert 0.5 * epsilon < max(losses) <= epsilon


def test_a_mean_of_rankings_counts_as_one_vote():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 5, 40)
    rows = pr.Mallows(4, 0.8).rvs(int(sizes.sum()), rng)
    frame = pd.DataFrame(rows, columns=list("abcd"))
    frame["who"] = np.repeat(np.arange(40), sizes)
    shuffled = frame.sample(frac=1, random_state=1)
    model = pr.PrivateRankAggregation(shuffled, respondent="who", max_rows=4)
    fit = model.fit(np.inf)
    before = (rows[:, :, None] < rows[:, None, :]).astype(float)
    means = [before[frame["who"] == k].mean(axis=0) for k in range(40)]
    expected = np.mean(means, axis=0) + 0.5 * np.eye(4)
    np.testing.assert_allclose(fit.fractions, expected, atol=1e-12)
    assert fit.nobs == 40 and fit.release.parts[PAIRS].step == pytest.approx(1 / 12)


PEOPLE = 60


def frame_with_canaries():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.permuted(np.tile([1, 2, 3, 4], (2 * PEOPLE, 1)), axis=1))
    frame.columns = list("abcd")
    frame["who"] = np.repeat([f"{CANARY}-{k}" for k in range(PEOPLE)], 2)
    frame["remark"], frame["number"] = f"{CANARY}-remark", ODD
    frame.index = pd.Index([f"{CANARY}-row-{k}" for k in range(len(frame))], name="secret_index")
    return frame


def fitted(method, delta=0.0, frame=None, *, seed=ODD, **options):
    frame = frame_with_canaries() if frame is None else frame
    model = pr.PrivateRankAggregation.from_formula(
        "a + b + c + d ~ 1", frame, respondent="who", max_rows=2
    )
    rng = None if seed is None else np.random.default_rng(seed)
    return model, model.fit(2.0, delta, method=method, rng=rng, **options)


@pytest.mark.parametrize(("method", "delta"), CASES)
def test_no_canary_anywhere_and_no_way_to_the_data(method, delta):
    frame = frame_with_canaries()
    model, result = fitted(method, delta, frame)
    summary, release = result.summary(), result.release
    texts = [repr(result), repr(model), repr(release), release.to_json(), result.to_json()]
    texts += [summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_markdown()]
    texts += [result.to_frame().to_csv(), pr.summary_col([result]).as_text()]
    texts.append(pickle.dumps(result).decode("latin-1"))
    for text in texts:
        assert CANARY not in text and "secret_index" not in text and str(ODD) not in text
        assert "PCG64" not in text
    for root in (model, result):
        objects = reachable(root)
        assert not [item for item in objects if item is frame or has_canary(item)]
        kinds = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)
        assert not [item for item in objects if isinstance(item, (*kinds, pd.DataFrame))]
    for item in reachable(result):
        assert not isinstance(item, EncodedSample | pr.Budget | pr.PrivateRankAggregation)
        if isinstance(item, np.ndarray) and item.size > 1000:
            assert not np.issubdtype(item.dtype, np.integer) or item is weights_of(result)


def weights_of(result):
    """The table of radii, the only long array of a release: a function of the distribution."""
    for part in result.release.parts.values():
        radius = getattr(part.distribution, "radius", None)
        if radius is not None:
            return radius.weights
    return None


@pytest.mark.parametrize(("method", "delta"), CASES)
def test_replay_gives_the_same_result_without_data(method, delta, monkeypatch):
    _, result = fitted(method, delta)
    text = result.to_json()
    monkeypatch.setattr(mechanism, "_votes", None)
    for again in (pr.from_json(text), pickle.loads(pickle.dumps(result))):
        assert again.to_json() == text and str(again.summary()) == str(result.summary())
        pd.testing.assert_frame_equal(again.to_frame(), result.to_frame(), check_exact=True)
    release = pr.Release.from_json(result.release.to_json())
    assert release.to_json() == result.release.to_json()
    for name, part in result.release.parts.items():
        assert release.parts[name].distribution == part.distribution
        assert release.parts[name].noise_variance == part.noise_variance


@pytest.mark.parametrize(("method", "delta"), [c for c in CASES if c[0] in PRIVATE[:4]])
def test_two_data_sets_with_one_release_give_one_result(monkeypatch, method, delta):
    one = frame_with_canaries()
    other = one.assign(a=one["b"], b=one["a"])
    for distribution in (CubeNoise, DiscreteLaplace, DiscreteGaussian, PermutohedronNoise):
        monkeypatch.setattr(
            distribution, "draw", lambda self, values, rng: 70 + 9 * np.arange(len(values))
        )
    results = [fitted(method, delta, frame)[1] for frame in (one, other)]
    assert len({result.to_json() for result in results}) == 1
    assert len({str(result.summary()) for result in results}) == 1


def test_seeded_noise_says_so_and_secure_noise_differs():
    for delta in (0.0, 1e-6):
        seeded, again = (fitted("auto", delta)[1] for _ in range(2))
        secure, other = (fitted("auto", delta, seed=None)[1] for _ in range(2))
        assert seeded.to_json() == again.to_json()
        assert "do not publish" in str(seeded.summary())
        assert secure.to_json() != other.to_json() and "seeded" not in secure.to_json()
        assert "do not publish" not in str(secure.summary())


def test_nothing_is_read_before_the_budget_allows(monkeypatch):
    model = pr.PrivateRankAggregation(pr.Mallows(4, 0.8).rvs(30, np.random.default_rng(1)))
    monkeypatch.setattr(mechanism, "_votes", None)
    budget = pr.Budget(epsilon=0.1, unit="row")
    with pytest.raises(pr.BudgetExceeded):
        model.fit(epsilon=1.0, budget=budget)
    with pytest.raises(ValueError, match="protects one respondent"):
        model.fit(epsilon=0.05, budget=pr.Budget(epsilon=1.0, unit="respondent"))
    assert budget.spent == (0.0, 0.0)


def test_a_part_without_noise_releases_no_statistic():
    with pytest.raises(AssertionError, match="without noise"):
        draw(PartPlan(None, 0, 1.0), np.array([3]), None)


def test_an_order_has_no_noise_of_its_own():
    with pytest.raises(ValueError, match="discrete Laplace"):
        _ = fitted("auto", 1e-6)[1].release.parts[ORDER].laplace


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("method", ["kemeny", "borda"])
def test_the_ledger_hears_the_concentrated_privacy_of_gaussian_noise(method, share):
    rng = np.random.default_rng(0)
    model = pr.PrivateRankAggregation(pr.Mallows(30, 0.7).rvs(2000, rng))
    for epsilon in (0.5, 1.0):
        budget = pr.Budget(epsilon=2.0, delta=1e-5)
        fit = model.fit(epsilon, 1e-6, method=method, score_share=share, budget=budget, rng=rng)
        (line,) = budget.spendings
        part = fit.release.parts[PAIRS if method == "kemeny" else TOTALS]
        assert isinstance(part.distribution, DiscreteGaussian)
        moved = math.sqrt(435) if method == "kemeny" else math.sqrt(30 * 899 / 3)
        rho = 0.5 * (moved / (part.distribution.scale * part.step)) ** 2
        assert line.rho == pytest.approx(rho + 0.5 * (share * epsilon) ** 2)
        # and rho is what the analytic guarantee comes from, to some percent
        found = gaussian_delta(part.distribution.scale * part.step, (1 - share) * epsilon, moved)
        assert 0.9e-6 < found <= 1e-6


@pytest.mark.parametrize(("m", "max_rows"), [(2, 3), (3, 1), (3, 2), (4, 1)])
def test_no_respondent_moves_totals_farther_than_two_opposite_rankings(m, max_rows):
    totals = [votes_of(person, max_rows).sum(axis=0) for person in people(m, max_rows)]
    gaps = np.unique(np.array(totals)[:, None] - np.array(totals)[None], axis=0)
    steps = math.lcm(*range(1, max_rows + 1))
    assert np.square(gaps).sum(axis=-1).max() == steps**2 * m * (m * m - 1) // 3


def test_every_ratio_of_gaussian_totals_is_within_epsilon_and_delta():
    """Two items: the noisy totals of neighbours, the loss at every point summed up."""
    epsilon, delta = 0.5, 0.05
    scale, fineness = totals_scale(2, epsilon, delta, 1)
    coarse = scale / fineness  # the distribution is nearly normal: a grid of it is enough
    k = np.arange(-400, 401) / 20
    one = np.exp(-0.5 * ((k[:, None] - 0.5) ** 2 + (k + 0.5) ** 2) / coarse**2)
    other = np.exp(-0.5 * ((k[:, None] + 0.5) ** 2 + (k - 0.5) ** 2) / coarse**2)
    one, other = one / one.sum(), other / other.sum()
    found = np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
    assert found == pytest.approx(delta, rel=0.01)
