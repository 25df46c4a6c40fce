"""One test for every surface of a fit, against a plain second implementation and its rules."""

import warnings

import numpy as np
import pandas as pd
import pytest
import referencecore as reference

import privrank as pr
from privrank.bradley_terry import dependence, scoretests
from privrank.bradley_terry.contrasts import joint_test

pytestmark = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def survey(seed, rows=False):
    """Answers of a few respondents who have tastes of their own, or independent rows."""
    rng = np.random.default_rng(seed)
    items, people, each = (int(rng.integers(*ends)) for ends in ((2, 6), (8, 30), (1, 5)))
    who = np.repeat(np.arange(people), each)
    first = rng.integers(0, items, len(who))
    second = (first + rng.integers(1, items, len(who))) % items
    worths = rng.choice([0.3, 2.0]) * rng.normal(size=items)
    own = rng.choice([0.0, 1.0]) * rng.normal(size=(people, items))
    apart = worths[first] - worths[second] + own[who, first] - own[who, second]
    won = np.where(rng.random(len(who)) < 1 / (1 + np.exp(-apart)), 1, -1)
    frame = pd.DataFrame({"item1": first, "item2": second, "outcome": won, "who": who})
    named = {"respondent": None}
    if not rows:
        named = {"respondent": "who", "max_rows": each, "distinct_pairs": False}
    result = pr.PrivateBTL(frame, items=range(items), design="public", **named).fit(np.inf)
    return result, reference.Answers(items, first, second, won, None if rows else who)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("seed", [2, 3, 4, 8])
def test_tests_without_noise_are_those_of_the_reference(seed, rows):
    result, data = survey(seed, rows)
    inference, b = result._inference(), result.estimate.coefficients
    contrast = np.eye(data.items)[0] - np.eye(data.items)[1]
    tests = scoretests.score_tests(inference, inference.score_errors, contrast[None])
    for value in (0.0, 0.7, -1.5):
        at = np.array([value])
        found = tests._pvalues(at, np.zeros(1, dtype=int), tests._shapes(at))[0]
        wanted = reference.pvalue(data, b, contrast, value)
        # a value on the other side of what the scores say is not spoken against
        assert found == pytest.approx(wanted, rel=1e-4) or found == 1.0
        printed = reference.printed(data, b, contrast, value, count=300)
        # the hull is of values on a coarser grid
        assert tests.pvalues(at)[0] == pytest.approx(printed, rel=0.2, abs=1e-9)
    limits = np.array(scoretests.intervals(inference, contrast[None], 0.05))[:, 0]
    wanted = reference.interval(data, b, contrast, 0.05, count=300)
    np.testing.assert_allclose(limits, wanted, atol=0.01)


@pytest.mark.parametrize("rows", [False, True])
def test_joint_statistics_without_noise_are_those_of_the_reference(rows):
    result, data = survey(3, rows)
    contrasts, values = np.eye(data.items)[:2] - np.eye(data.items)[2], np.array([0.2, -0.1])
    found = joint_test(result._inference(), contrasts, values).statistic
    wanted = reference.joint_statistic(data, result.estimate.coefficients, contrasts, values)
    assert found == pytest.approx(wanted, rel=1e-8)


def ten(unit="respondent", **options):
    frame = pd.DataFrame({"item1": "A", "item2": "B", "outcome": 1, "who": range(10)})
    named = {"respondent": "who"} if unit == "respondent" else {"respondent": None}
    return pr.PrivateBTL(frame, items=["A", "B"], design="public", **named).fit(np.inf, **options)


@pytest.mark.parametrize("unit", ["respondent", "row"])
def test_ten_to_nothing_is_one_statement_on_every_surface(unit):
    result = ten(unit)
    single, pair = result.t_test("A - B"), result.pairwise().iloc[0]
    pvalues = [
        float(single.pvalue),
        pair["pvalue"],
        result.pvalues["A"],
        result.test("A = B").pvalue,
        result.wald_test("A = B").pvalue,
        result.test_homogeneity().pvalue,
        result.tidy()["p_value"].iloc[0],
    ]
    assert pvalues == pytest.approx(7 * [0.001565], abs=2e-6)  # exact binomial: .00195
    (low, high), limits = single.conf_int()[0], result.conf_int().loc["A"]
    assert np.isinf(high) and np.isinf(limits["upper"]) and pair["upper"] == 1.0
    assert low == pytest.approx(2 * limits["lower"], abs=0.01)
    assert pair["lower"] == pytest.approx(0.722, abs=0.001)
    assert "no upper limit" in str(pr.summary_col([result]))
    assert float(single.tvalue[0]) == pytest.approx(result.test("A = B").zvalue)


def unbeaten(kind):
    """A fit without noise in which an item, or the first named, or a group, won everything."""
    rng = np.random.default_rng(1)
    first, second = np.tile([0, 0, 1], 30), np.tile([1, 2, 2], 30)
    outcome = np.where(first == 0, 1, rng.choice([-1, 1], 90))
    frame = pd.DataFrame({"item1": first, "item2": second, "outcome": outcome})
    frame["group"] = np.where(np.arange(90) < 45, "x", "y")
    facts = {"items": range(3), "design": "public", "respondent": None}
    if kind == "worths":
        return pr.PrivateBTL(frame, **facts).fit(np.inf)
    if kind == "davidson":
        frame.loc[::7, "outcome"] = np.where(frame.loc[::7, "item1"] == 0, 1, 0)
        return pr.PrivateBTL(frame, ties="davidson", **facts).fit(np.inf)
    if kind == "first":
        frame["outcome"] = 1
        swapped = frame.assign(item1=frame["item2"], item2=frame["item1"])
        frame = pd.concat([frame, swapped])
        facts["contest"] = "first"
    if kind == "group":
        facts["levels"] = {"group": ["x", "y"]}
    formula = "item1 + item2 + outcome ~ " + ("1" if kind == "first" else kind)
    return pr.PrivateBTL.from_formula(formula, frame, **facts).fit(np.inf)


@pytest.mark.parametrize(
    ("kind", "term"),
    [("worths", "0"), ("davidson", "0"), ("first", "first"), ("group", "0")],
)
def test_what_won_everything_has_no_upper_limit_for_rows(kind, term):
    result = unbeaten(kind)
    limits = result.conf_int()
    limits.index = limits.index.astype(str)
    assert np.isinf(limits.loc[term, "upper"]) and 0 < limits.loc[term, "lower"] < np.inf
    assert any("no limit" in text or "inf" in text for text in result.summary().notes)


def test_coverage_of_two_items_is_exact_to_the_last_loss():
    # twelve sizes; the least over all p is .9045, at six answers and p .983
    worst = 1.0
    for n in (6, 10, 20, 40):
        limits = [_limits(wins, n) for wins in range(n + 1)]
        for chance in np.linspace(0.5, 0.9995, 500):
            at = np.log(chance / (1 - chance))
            inside = np.array([low <= at <= high for low, high in limits])
            worst = min(worst, float(reference.binom.pmf(np.arange(n + 1), n, chance) @ inside))
    assert 0.9 < worst < 0.92


def _limits(wins, n):
    outcome = np.where(np.arange(n) < wins, 1, -1)
    frame = pd.DataFrame({"item1": "A", "item2": "B", "outcome": outcome})
    fit = pr.PrivateBTL(frame, items=["A", "B"], respondent=None, design="public").fit(np.inf)
    return 2 * fit.conf_int().loc["A"].to_numpy()


# faults, planted one by one: each moves a number that the rules of the test settle


def _agrees(inference, data, b, contrast):
    tests = scoretests.score_tests(inference, inference.score_errors, contrast[None])
    found, wanted = [], []
    for value in (-1.0, -0.5, 0.5, 1.5):
        at = np.array([value])
        found.append(tests._pvalues(at, np.zeros(1, dtype=int), tests._shapes(at))[0])
        wanted.append(reference.pvalue(data, b, contrast, value))
    return np.allclose(found, wanted, rtol=1e-4)


def _fit_only(effects):
    def planted(self, along, t, factor=1.0):
        return effects(self, along, t, factor) if factor != 1.0 else np.ones(len(along))

    return planted


def _no_ceiling(effects):
    def planted(self, along, t, factor=1.0):
        independent = np.maximum(self._variances(along, t).sum(axis=1), 1e-300)
        squares, own = self._squares(along, t)
        return np.maximum(1.0 + factor * (squares - own) / independent, 1.0)

    return planted


def _own_squares(effects):
    def planted(self, along, t, factor=1.0):
        independent = np.maximum(self._variances(along, t).sum(axis=1), 1e-300)
        return np.maximum(factor * self._squares(along, t)[0] / independent, 1.0)

    return planted


@pytest.mark.parametrize("fault", [_fit_only, _no_ceiling, _own_squares])
def test_a_fault_in_design_effects_is_found(fault, monkeypatch):
    surveys = [_camps(), _camps(alike=10)]
    assert all(_agrees(*facts) for facts in surveys)
    monkeypatch.setattr(dependence.Clusters, "effects", fault(dependence.Clusters.effects))
    assert not all(_agrees(*facts) for facts in surveys)


def _camps(alike=20):
    """Two camps of 20 who answer three questions alike, or of whom so many do."""
    who, outcome = np.repeat(np.arange(20), 3), np.repeat([1] * 13 + [-1] * 7, 3)
    outcome[3 * alike :] = np.resize([1, 1, -1, 1, -1], 60 - 3 * alike)
    frame = pd.DataFrame({"item1": 0, "item2": 1, "outcome": outcome, "who": who})
    facts = {"respondent": "who", "max_rows": 3, "distinct_pairs": False, "design": "public"}
    result = pr.PrivateBTL(frame, items=[0, 1], **facts).fit(np.inf)
    zero = np.zeros(60, dtype=int)
    data = reference.Answers(2, zero, zero + 1, outcome, who)
    return result._inference(), data, result.estimate.coefficients, np.array([1.0, -1.0])


def test_skewness_without_the_design_effect_is_found(monkeypatch):
    facts = _camps()
    exact = scoretests.error_pvalues

    def planted(size, variance, noise, share, skewness, df):
        return exact(size, variance, noise, share, skewness / 3**0.5, df)

    assert _agrees(*facts)
    monkeypatch.setattr(scoretests, "error_pvalues", planted)
    assert not _agrees(*facts)


def test_noise_of_a_design_effect_widens_plain_contrasts(monkeypatch):
    rng = np.random.default_rng(3)
    pairs = np.tile([[0, 1], [0, 2], [1, 2]], (150, 1))
    frame = pd.DataFrame(pairs, columns=["item1", "item2"])
    frame["outcome"] = rng.choice([1, -1], 450)
    frame["who"] = np.repeat(np.arange(150), 3)
    facts = {"respondent": "who", "max_rows": 3, "distinct_pairs": False, "design": "public"}
    model = pr.PrivateBTL(frame, items=range(3), **facts)
    result = model.fit(2.0, dependence="worst", rng=np.random.default_rng(1))
    inference, contrast = result._inference(), np.array([[1.0, -1.0, 0.0]])
    error, most = inference.effect
    assert 0.0 < error and most > 1.0
    low, high = scoretests.intervals(inference, contrast, 0.05)
    monkeypatch.setattr(type(inference), "effect", property(lambda self: (0.0, 1.0)))
    plain = pr.PrivateBTL.from_release(result.release)._inference()
    narrow = scoretests.intervals(plain, contrast, 0.05)
    assert high - low > 1.005 * (narrow[1] - narrow[0])


@pytest.mark.parametrize("people", [5, 8])
def test_few_respondents_are_warned_of(people):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(people), 3),
            "item1": ["a", "a", "b"] * people,
            "item2": ["b", "c", "c"] * people,
            "outcome": rng.choice([1, -1], 3 * people),
        }
    )
    given = {"items": list("abc"), "respondent": "respondent", "max_rows": 3, "design": "public"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        fit = pr.PrivateBTL(frame, **given).fit(np.inf)
    assert any("fewer than 8 respondents" in said for said in fit.warnings) == (people < 8)


def test_few_respondents_with_repeated_questions_are_warned_of():
    rows = [(who, "a", "b", 1 if who > 2 else -1) for who in range(40) for _ in range(3)]
    frame = pd.DataFrame(rows, columns=["who", "item1", "item2", "outcome"])
    options = {"items": ["a", "b"], "respondent": "who", "max_rows": 3}
    repeated = pr.PrivateBTL(frame, distinct_pairs=False, **options)
    once = pr.PrivateBTL(frame.drop_duplicates(), **options)
    message = "who may answer a question repeatedly"
    with pytest.warns(pr.PrivrankWarning, match=message):
        result = repeated.fit(np.inf)
    assert message in " ".join(str(result.summary()).split())
    # neither with noise, where no test uses the measured dependence, nor where nobody repeats
    for fit in (repeated.fit(4.0, rng=np.random.default_rng(1)), once.fit(np.inf)):
        assert message not in " ".join(str(fit.summary()).split())
