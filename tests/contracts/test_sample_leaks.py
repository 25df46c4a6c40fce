"""Tests of samples let out nothing but the release, and the release is private."""

import copy
import math
import pickle
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from searching import CANARY, ODD, has_canary, reachable

import privrank as pr
from privrank.encode.encoded import EncodedSample
from privrank.hypotheses.nulls import Statistic
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import Sample
from privrank.uniformity import uniformity_statistic

PEOPLE = 60
RANKINGS = ["auto", "borda", "laplace", "mallows", "omnibus", "bucket"]
CHOICES = ["auto", "tv", "omnibus"]
CASES = [("rankings", method) for method in RANKINGS] + [("choices", method) for method in CHOICES]


def frame_with_canaries():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.permuted(np.tile([1, 2, 3, 4], (2 * PEOPLE, 1)), axis=1))
    frame.columns = list("abcd")
    frame["who"] = np.repeat([f"{CANARY}-{k}" for k in range(PEOPLE)], 2)
    frame["choice"] = rng.choice(list("wxyz"), len(frame))
    frame["remark"], frame["number"] = f"{CANARY}-remark", ODD
    frame.index = pd.Index([f"{CANARY}-row-{k}" for k in range(len(frame))], name="secret_index")
    frame.attrs["note"] = f"{CANARY}-attribute"
    return frame


def fitted(kind, method, frame=None, *, rng=True, epsilon=2.0, **options):
    frame = frame_with_canaries() if frame is None else frame
    formula, listed = "a + b + c + d ~ 1", {}
    if kind != "rankings":
        formula, listed = "choice ~ 1", {"categories": list("wxyz")}
    test = pr.UniformityTest.from_formula(formula, frame, respondent="who", max_rows=2, **listed)
    if rng:
        options["rng"] = np.random.default_rng(ODD)
    return test, test.fit(epsilon, 1e-6, method=method, **options)


def texts(result):
    summary, release = result.summary(), result.release
    yield from (repr(result), str(result), repr(release), release.to_json(), result.to_json())
    yield from (summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_markdown())
    yield result.to_frame().to_csv()
    yield pr.summary_col([result, result]).as_text()
    yield pickle.dumps(result).decode("latin-1")


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_no_canary_in_any_output(kind, method):
    _, result = fitted(kind, method)
    for text in texts(result):
        assert CANARY not in text and "secret_index" not in text
        assert str(ODD) not in text and ODD.to_bytes(4, "little").decode("latin-1") not in text
        assert "MT19937" not in text and "PCG64" not in text


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_object_graph_leads_to_no_data(kind, method):
    frame = frame_with_canaries()
    test, result = fitted(kind, method, frame)
    result.summary()
    for root in (test, result):
        objects = reachable(root)
        assert not [item for item in objects if item is frame or has_canary(item)]
        assert not [item for item in objects if isinstance(item, pd.DataFrame | pd.Series)]
        kinds = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)
        assert not [item for item in objects if isinstance(item, kinds)]
    for item in reachable(result):
        assert not isinstance(item, EncodedSample | pr.Budget | pr.UniformityTest)
        if isinstance(item, np.ndarray):
            assert item.base is None and not item.flags.writeable and item.size < PEOPLE


@pytest.mark.parametrize(("kind", "method"), CASES)
def test_replay_and_pickle_give_the_same_result(kind, method):
    _, result = fitted(kind, method)
    for again in (pr.from_json(result.to_json()), pickle.loads(pickle.dumps(result))):
        assert again.to_json() == result.to_json()
        assert str(again.summary()) == str(result.summary())
        pd.testing.assert_frame_equal(again.to_frame(), result.to_frame(), check_exact=True)
    assert pr.Release.from_json(result.release.to_json()).to_json() == result.release.to_json()


def test_seeded_noise_says_so_and_secure_noise_differs():
    seeded, again = (fitted("rankings", "auto")[1] for _ in range(2))
    secure, other = (fitted("rankings", "auto", rng=False)[1] for _ in range(2))
    assert seeded.to_json() == again.to_json() and "do not publish" in str(seeded.summary())
    assert secure.to_json() != other.to_json() and "seeded" not in secure.to_json()
    assert "do not publish" not in str(secure.summary())


def test_encoded_rows_cannot_be_copied():
    test, _ = fitted("rankings", "auto")
    for act in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="sensitive"):
            act(test)


def orders(m):
    return list(permutations(range(1, m + 1)))


def output(asked, data, order, distribution, span):
    """Exact distribution of what is released, given the data and the order of the items."""
    if isinstance(asked, Statistic):
        return distribution.pmf(span - asked.value(data, order))
    p = asked.probability(data, order)
    return np.array([p, 1 - p])


def worst_ratio(asked, samples, epsilon, order):
    """Largest log ratio of output probabilities over all pairs of neighbouring samples."""
    distribution, span = DiscreteLaplace(0.0), None
    if isinstance(asked, Statistic):
        distribution = DiscreteLaplace.calibrate(asked.sensitivity, epsilon)
        values = [asked.value(data, order) for _, data in samples]
        # far beyond the data the ratio is constant: its extremes are met within and beside them
        span = np.unique([v + d for v in values for d in (-1, 0, 1)])
    distributions = {key: output(asked, data, order, distribution, span) for key, data in samples}
    worst = 0.0
    for one, other in product(distributions, distributions):
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            worst = max(worst, float(np.log(distributions[one] / distributions[other]).max()))
    return worst


@pytest.mark.parametrize("method", ["auto", "laplace", "mallows", "omnibus"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 2), (4, 2)])
def test_every_ratio_of_rankings_is_within_epsilon(method, epsilon, n, m):
    sample = Sample("rankings", tuple("abc"[:m]), n, "row", 1)
    asked, _ = uniformity_statistic(method, sample, xi=epsilon, alpha=0.05, tolerance=None)
    samples = [(key, np.array(key)) for key in product(orders(m), repeat=n)]
    for order in permutations(range(m)):
        assert worst_ratio(asked, samples, epsilon, order) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("method", ["auto", "tv", "omnibus"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize(("n", "k"), [(2, 3), (3, 3), (5, 2)])
def test_every_ratio_of_choices_is_within_epsilon(method, epsilon, n, k):
    sample = Sample("choices", tuple("abc"[:k]), n, "row", 1)
    asked, _ = uniformity_statistic(method, sample, xi=epsilon, alpha=0.05, tolerance=None)
    samples = [(key, np.bincount(key, minlength=k)) for key in product(range(k), repeat=n)]
    assert worst_ratio(asked, samples, epsilon, ()) <= epsilon * (1 + 1e-9)


def test_a_respondent_with_several_rows_is_protected_as_one():
    # respondents hold one or two rankings of two items; one of theirs is drawn by a secret coin
    epsilon, m = 0.7, 2
    sample = Sample("rankings", ("a", "b"), 2, "respondent", 2)
    asked, _ = uniformity_statistic("auto", sample, xi=epsilon, alpha=0.05, tolerance=None)
    distribution = DiscreteLaplace.calibrate(asked.sensitivity, epsilon)
    people = [(row,) for row in orders(m)] + list(product(orders(m), repeat=2))
    reach = math.ceil(50 * distribution.scale)
    span = np.arange(-reach, reach + 1)
    distributions = {}
    for pair in product(people, repeat=2):
        drawn = [
            distribution.pmf(span - asked.value(np.array(rows), ())) for rows in product(*pair)
        ]
        distributions[pair] = np.mean(drawn, axis=0)
    worst = max(
        float(np.log(distributions[one] / distributions[other]).max())
        for one, other in product(distributions, distributions)
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    )
    assert 0.9 * epsilon < worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "method"), [case for case in CASES if case[1] != "bucket"])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_the_noise_is_as_wide_as_epsilon_asks(kind, method, epsilon):
    frame = frame_with_canaries()
    formula, listed = "a + b + c + d ~ 1", {}
    if kind != "rankings":
        formula, listed = "choice ~ 1", {"categories": list("wxyz")}
    test = pr.UniformityTest.from_formula(formula, frame, respondent="who", max_rows=2, **listed)
    part = test.fit(epsilon, method=method, draws=99).release.parts["statistic"]
    assert epsilon * 0.999 < part.sensitivity / part.distribution.scale <= epsilon


def test_the_noise_is_drawn_from_the_stated_distribution():
    test, result = fitted("rankings", "laplace", epsilon=0.1)
    part = result.release.parts["statistic"]
    values = [
        test.fit(0.1, method="laplace", rng=np.random.default_rng(k)).release.parts["statistic"]
        for k in range(200)
    ]
    spread = np.var([int(one.values[0]) for one in values], ddof=1)
    assert 0.6 < spread / part.distribution.variance < 1.7
