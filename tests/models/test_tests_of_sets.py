"""Tests of uniformity and identity of choices from publicly offered sets."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

import privrank as pr

ITEMS = ["tea", "milk", "juice", "water", "soda"]
PERSON = {"respondent": "id", "max_rows": 2}
SEEDED = 1


def survey(people=60, tasks=2, worths=None, answer="best-worst", seed=1, size=3, items=ITEMS):
    """Orders of random sets by worths, of which the asked answers are kept."""
    rng = np.random.default_rng(seed)
    n = people * tasks
    m = len(items)
    worths = np.zeros(m) if worths is None else np.asarray(worths)
    shown = np.argsort(rng.random((n, m)), axis=1)[:, :size]
    liked = worths[shown] + rng.gumbel(size=shown.shape)
    order = np.take_along_axis(shown, np.argsort(-liked, axis=1), axis=1)
    return as_frame(shown, order, np.repeat(np.arange(people), tasks), answer, items)


def as_frame(shown, order, person, answer="best-worst", items=ITEMS):
    size = shown.shape[1]
    names = np.array(items)
    frame = pd.DataFrame(names[shown], columns=[f"show {k}" for k in range(size)])
    frame = frame.assign(**{f"p {k}": names[order[:, k]] for k in range(size)}, id=person)
    roles = {"places": [f"p {k}" for k in range(size)]}
    if answer != "order":
        named = {"best": "p 0", "worst": f"p {size - 1}"}
        roles = {role: named[role] for role in answer.split("-")}
    offered = [f"show {k}" for k in range(size)]
    return pr.as_choices(frame, offered=offered, items=items, respondent="id", **roles)


def uniformity(frame, **arguments):
    return pr.UniformityTest(frame, **{**PERSON, **arguments})


def generator(seed=SEEDED):
    return np.random.default_rng(seed)


def fitted(test, epsilon=1.0, seed=SEEDED, **options):
    return test.fit(epsilon, draws=499, rng=generator(seed), **options)


NULL = dict(zip(ITEMS, (0.6, 0.3, 0.0, -0.3, -0.6), strict=True))


@pytest.mark.parametrize("answer", ["best", "worst", "best-worst", "order"])
def test_without_noise_statistic_and_pvalue_are_those_of_a_direct_computation(answer):
    frame = survey(answer=answer, worths=(0.5, 0.2, 0.0, 0.0, -0.3))
    for null in (None, NULL):
        worths = np.zeros(5) if null is None else np.array(list(null.values()))
        test = uniformity(frame) if null is None else pr.IdentityTest(frame, null, **PERSON)
        result = test.fit(np.inf, draws=1_999)
        statistic, drawn = by_hand(frame, answer, worths)
        assert result.statistic == pytest.approx(statistic, abs=2e-3)
        pvalue = (1 + np.count_nonzero(drawn >= statistic)) / (1 + len(drawn))
        error = math.sqrt(0.25 / len(drawn) + 0.25 / 1_999)
        assert abs(result.pvalue - pvalue) < 4 * error


def by_hand(frame, answer, worths, draws=2_000):
    """The statistic of a survey, and draws of it under H0, from all answers to each task."""
    scores = {"best": (1, 0, 0), "worst": (0, 0, -1), "best-worst": (1, 0, -1), "order": (2, 0, -2)}
    shown = frame[["offered 1", "offered 2", "offered 3"]].map(ITEMS.index).to_numpy(dtype=int)
    orders = np.array(list(itertools.permutations(range(3))))
    rng = generator(9)
    observed = np.zeros(5)
    totals = np.zeros((draws, 5))
    mean, covariance = np.zeros(5), np.zeros((5, 5))
    for row, task in enumerate(shown):
        every = np.zeros((6, 5))
        for answered, order in zip(every, orders, strict=True):
            answered[task[order]] = scores[answer]
        v = worths[task][orders]
        p = np.exp(v[:, 0] - v[:, 2])  # by the best and the worst
        if answer == "order":
            p = np.exp(v[:, 0] + v[:, 1]) / (np.exp(v[:, 1]) + np.exp(v[:, 2]))
        elif answer != "best-worst":
            p = np.exp(v[:, 0] if answer == "best" else -v[:, 2])
        p = p / p.sum()
        mean += p @ every
        covariance += ((every - p @ every).T * p) @ (every - p @ every)
        totals += every[rng.choice(6, draws, p=p)]
        places = ["place 1", "place 2", "place 3"] if answer == "order" else answer.split("-")
        given = [ITEMS.index(item) for item in frame.loc[row, places]]
        observed[given] += scores[answer] if answer == "order" else [s for s in scores[answer] if s]
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
    apart = totals - mean
    drawn = np.sqrt(np.einsum("ni,ij,nj->n", apart, inverse, apart))
    return math.sqrt((observed - mean) @ inverse @ (observed - mean)), drawn


def test_worths_are_detected_and_true_null_worths_are_not():
    frame = survey(400, answer="order", worths=list(NULL.values()))
    assert fitted(uniformity(frame)).reject
    assert fitted(pr.IdentityTest(frame, NULL, **PERSON)).pvalue > 0.01
    turned = {item: -worth for item, worth in NULL.items()}
    assert fitted(pr.IdentityTest(frame, turned, **PERSON)).reject


def test_a_null_may_be_a_series_or_a_sequence():
    frame = survey()
    pvalues = {
        fitted(pr.IdentityTest(frame, null, **PERSON)).pvalue
        for null in (NULL, pd.Series(NULL).iloc[::-1], list(NULL.values()))
    }
    assert len(pvalues) == 1


def test_equal_worths_are_the_test_of_uniformity():
    frame = survey()
    one = fitted(uniformity(frame))
    two = fitted(pr.IdentityTest(frame, "uniform", **PERSON))
    assert one.pvalue == two.pvalue
    assert one.hypotheses == two.hypotheses


def test_a_row_may_be_a_unit():
    frame = survey()
    rows = fitted(pr.UniformityTest(frame, respondent=None), np.inf)
    people = fitted(uniformity(frame), np.inf)
    assert rows.statistic == pytest.approx(people.statistic, abs=2e-3)
    assert rows.release.design.unit == "row"
    # a task moves less than two tasks
    parts = [each.release.parts["statistic"] for each in (rows, people)]
    assert parts[0].step < 0.6 * parts[1].step


def test_a_formula_names_the_answers():
    for answer, left in (("best-worst", "best + worst"), ("order", "order"), ("best", "best")):
        frame = survey(answer=answer)
        whole = fitted(uniformity(frame))
        test = pr.UniformityTest.from_formula(f"{left} ~ 1", frame, **PERSON)
        assert fitted(test).pvalue == whole.pvalue
    test = pr.IdentityTest.from_formula("best ~ 1", frame, NULL, design="public", **PERSON)
    assert fitted(test).pvalue == fitted(pr.IdentityTest(frame, NULL, **PERSON)).pvalue


def test_releases_and_archives_are_read_again():
    frame = survey()
    for result, read in (
        (fitted(uniformity(frame)), pr.UniformityTest.from_release),
        (
            fitted(pr.IdentityTest(frame, NULL, **PERSON)),
            lambda release, **how: pr.IdentityTest.from_release(release, NULL, **how),
        ),
    ):
        again = pr.from_json(result.to_json())
        assert (again.pvalue, again.hypotheses) == (result.pvalue, result.hypotheses)
        assert str(again.summary()) == str(result.summary())
        release = pr.Release.from_json(result.release.to_json())
        assert read(release, draws=499).pvalue == result.pvalue
        assert "design effect" not in str(result.summary())


def test_other_releases_are_refused():
    frame = survey(answer="order")
    worths = pr.PrivateBTL(frame, design="public", **PERSON).fit(
        1.0, allow_unidentified=True, rng=generator()
    )
    with pytest.raises(ValueError, match="must be of a UniformityTest"):
        pr.UniformityTest.from_release(worths.release)
    with pytest.raises(ValueError, match="must be of an IdentityTest"):
        pr.IdentityTest.from_release(worths.release, NULL)
    release = fitted(uniformity(frame)).release
    with pytest.raises(ValueError, match="must have the sensitivity"):
        pr.IdentityTest.from_release(release, {**NULL, "tea": 3.0})


def test_an_archive_with_another_sensitivity_is_refused():
    record = fitted(uniformity(survey())).release.to_record()
    part = record["parts"]["statistic"]
    part["step"] /= 2
    with pytest.raises(ValueError, match="must have the sensitivity"):
        pr.UniformityTest.from_release(pr.Release.from_record(json.loads(json.dumps(record))))


def test_the_summary_states_hypotheses_plan_and_guarantee():
    frame = survey()
    for result in (fitted(uniformity(frame)), fitted(pr.IdentityTest(frame, NULL, **PERSON))):
        text = " ".join(str(result.summary()).split())
        assert "No. Tasks: 120" in text
        assert "Design: public (offered sets known)" in text
        assert "respondent (up to 2 tasks)" in text
        assert "do not depend on other answers. H1: some answers have other" in text
        assert "opposite camps" in text
        assert "Public: which sets were offered to whom" in text
        assert "detectable_effect" not in text
        assert "null_nobs" not in text
        assert "draw" not in text.replace("draws", "").replace("noise draw", "")


def test_a_report_states_the_decision(tmp_path):
    path = tmp_path / "report.html"
    pr.report([fitted(uniformity(survey()))], path)
    html = " ".join(path.read_text(encoding="utf-8").split())
    assert "The hypothesis that answers to an offered set are equally likely" in html


@pytest.mark.parametrize("test", [pr.UniformityTest, pr.IdentityTest])
def test_wrong_arguments_are_refused(test):
    frame = survey()
    null = () if test is pr.UniformityTest else ("uniform",)
    with pytest.raises(TypeError, match="respondent= must be stated"):
        test(frame, *null)
    with pytest.raises(ValueError, match="max_rows"):
        test(frame, *null, respondent="id")
    for wrong in ({"ties": "complete"}, {"missing": "bottom"}, {"categories": ITEMS}):
        with pytest.raises(ValueError, match="must be left out for choices from offered sets"):
            test(frame, *null, **PERSON, **wrong)
    with pytest.raises(ValueError, match="~ 1"):
        test.from_formula("best + worst ~ id", frame, *null, **PERSON)
    with pytest.raises(ValueError, match="on its left, here 'best"):
        test.from_formula("best ~ 1", frame, *null, **PERSON)
    with pytest.raises(ValueError, match="design must be 'public'"):
        test.from_formula("best + worst ~ 1", frame, *null, design="private", **PERSON)
    with pytest.raises(ValueError, match="takes only"):
        test.from_formula("best + worst ~ 1", frame, *null, categories=ITEMS, **PERSON)
    with pytest.raises(TypeError, match="respondent= must be stated"):
        test.from_formula("best + worst ~ 1", frame, *null)


def test_a_wrong_null_is_refused():
    frame = survey()
    wrong = (
        {"tea": 0.5},
        {**NULL, "beer": 0.1},
        {**NULL, "tea": math.inf},
        {**NULL, "tea": math.nan},
        {**NULL, "tea": "0.5"},
        {**NULL, "tea": 30.0},
        [0.1, 0.2],
        "equal",
        pr.Mallows(ITEMS, 0.5),
        0.5,
        None,
    )
    for null in wrong:
        with pytest.raises(ValueError, match="the worth of each item"):
            pr.IdentityTest(frame, null, **PERSON)
    for more in ({"null_nobs": 100}, {"null_nobs": 100, "null_noise": 1.0}):
        with pytest.raises(ValueError, match="must be known exactly"):
            pr.IdentityTest(frame, NULL, **PERSON, **more)


def test_fits_refuse_what_choices_from_sets_do_not_have():
    ledger = pr.Budget(epsilon=1.0, unit="respondent")
    test = uniformity(survey())
    for wrong, match in (
        ({"method": "borda"}, "'auto' for choices from offered sets"),
        ({"tolerance": 0.1}, "tolerance"),
        ({"effect_epsilon": 0.5}, "of choices from offered sets. Leave it out"),
    ):
        with pytest.raises(ValueError, match=match):
            fitted(test, budget=ledger, **wrong)
    identity = pr.IdentityTest(survey(), NULL, **PERSON)
    with pytest.raises(ValueError, match="alternative"):
        fitted(identity, budget=ledger, alternative="larger")
    assert ledger.spent == (0.0, 0.0)
    result = fitted(test, budget=ledger)
    assert ledger.spent == (1.0, 0.0)
    with pytest.raises(ValueError, match="simulate answers by worths"):
        result.detectable_effect()
    with pytest.raises(ValueError, match="no distance was released"):
        result.conf_int()
    assert result.effect is None


def test_reprs_show_the_shape_only():
    assert repr(uniformity(survey())) == (
        "<UniformityTest of choices from offered sets: 5 items, 60 respondents>"
    )


@pytest.mark.slow
def test_size_and_power_are_those_of_the_plan():
    items = [f"variety {k}" for k in range(10)]
    worths = np.linspace(0.3, -0.3, 10)

    def rejections(worths, fits=200):
        found = 0
        for seed in range(fits):
            # the plan stays the same, as the cached null distribution belongs to it
            rng = np.random.default_rng(5)
            shown = np.argsort(rng.random((300, 10)), axis=1)[:, :3]
            rng = np.random.default_rng(1000 + seed)
            liked = worths[shown] + rng.gumbel(size=shown.shape)
            order = np.take_along_axis(shown, np.argsort(-liked, axis=1), axis=1)
            frame = as_frame(shown, order, np.arange(300), "order", items)
            found += pr.UniformityTest(frame, respondent="id").fit(1.0, rng=rng).reject
        return found / fits

    assert rejections(np.zeros(10)) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)
    assert 0.45 <= rejections(worths) <= 0.72


@pytest.mark.slow
def test_opposite_camps_reject():
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shown = np.argsort(rng.random((400, 5)), axis=1)[:, :3]
        person = np.repeat(np.arange(50), 8)
        camp = rng.integers(0, 2, 50)[person, None] * 2 - 1
        liked = camp * np.linspace(2, -2, 5)[shown] + rng.gumbel(size=shown.shape)
        order = np.take_along_axis(shown, np.argsort(-liked, axis=1), axis=1)
        test = pr.UniformityTest(as_frame(shown, order, person), respondent="id", max_rows=8)
        found += fitted(test, np.inf).reject
    assert found > 8


# Groups that chose from offered sets


def towns(sizes=(40, 20), tasks=2, apart=0.0, seed=1, share=(0.5, 0.5)):
    """Choices of towns, whose last town has other worths; towns have shares of questionnaire 0."""
    rng = np.random.default_rng(seed)
    town = np.repeat(range(len(sizes)), sizes)
    version = (rng.random(len(town)) > np.array(share)[np.minimum(town, 1)]).astype(int)
    plan = np.array([[(0, 1, 2), (1, 2, 3)], [(2, 3, 4), (0, 3, 4)]])[:, :tasks]
    person = np.repeat(np.arange(len(town)), tasks)
    shown = plan[version].reshape(-1, 3)
    worths = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    moved = worths + (town[person] == len(sizes) - 1)[:, None] * apart * worths[::-1]
    liked = np.take_along_axis(moved, shown, axis=1) + rng.gumbel(size=shown.shape)
    order = np.take_along_axis(shown, np.argsort(-liked, axis=1), axis=1)
    return as_frame(shown, order, person).assign(town=np.array(["n", "s", "w"])[town[person]])


def closeness(frame, levels=("n", "s"), **arguments):
    options = {**PERSON, "levels": levels, **arguments}
    return pr.ClosenessTest.from_formula("best + worst ~ town", frame, **options)


def test_groups_with_other_worths_are_detected():
    for levels, sizes in ((("n", "s"), (200, 100)), (("n", "s", "w"), (100, 100, 100))):
        result = closeness(towns(sizes, apart=1.0), levels).fit(1.0, rng=generator())
        assert result.reject
        assert result.groups.to_list() == list(sizes)


def test_groups_with_other_questionnaires_may_answer_alike():
    pvalues = [
        closeness(towns((60, 60), share=(0.9, 0.1), seed=seed))
        .fit(np.inf, permutations=199, rng=generator(seed))
        .pvalue
        for seed in range(40)
    ]
    # a test across questionnaires rejects nearly always here
    assert sum(pvalue <= 0.05 for pvalue in pvalues) <= 7
    assert 0.3 < np.mean(pvalues) < 0.7


def test_a_comparison_of_groups_is_read_again_from_its_archive():
    result = closeness(towns()).fit(1.0, rng=generator())
    again = pr.from_json(result.to_json())
    assert str(again.summary()) == str(result.summary())
    release = pr.Release.from_json(result.release.to_json())
    assert pr.ClosenessTest.from_release(release, alpha=0.2).pvalue == result.pvalue
    record = result.release.to_record()
    record["settings"]["scale"] /= 2
    with pytest.raises(ValueError, match="the noise of its statistic"):
        pr.ClosenessTest.from_release(pr.Release.from_record(json.loads(json.dumps(record))))
    with pytest.raises(ValueError, match="ClosenessTest"):
        pr.ClosenessTest.from_release(fitted(uniformity(survey())).release)


def test_the_summary_of_groups_states_hypotheses_and_guarantee():
    text = " ".join(str(closeness(towns()).fit(1.0, rng=generator()).summary()).split())
    assert "H0: respondents with the same offered sets answer alike in all groups" in text
    assert "Groups by town: n (n = 40), s (n = 20)" in text
    assert "No. Tasks: 120" in text
    assert "Public: the group and the offered sets of each respondent." in text
    assert "opposite camps" in text


def test_a_comparison_of_groups_shows_the_shape_only():
    assert repr(closeness(towns())) == (
        "<ClosenessTest of choices from offered sets: 5 items, groups n 40, s 20>"
    )


def test_wrong_comparisons_of_groups_are_refused():
    frame = towns()
    ledger = pr.Budget(epsilon=1.0, unit="respondent")
    for wrong, match in (
        ({"respondent": None}, "respondent= must name the column"),
        ({"levels": None}, "levels must be declared"),
        ({"levels": ["n", "w"]}, "not listed"),
        ({"labels": "private"}, "labels= must be left out"),
        ({"paired": True}, "paired= must be left out"),
        ({"categories": ITEMS}, "takes only"),
        ({"bounds": {"town": (0, 1)}}, "bounds"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            closeness(frame, **wrong)
    for right in ("1", "town + id", "town:id", "0 + town"):
        with pytest.raises(ValueError, match="one column of groups|levels"):
            pr.ClosenessTest.from_formula(
                f"best + worst ~ {right}", frame, levels=["n", "s"], **PERSON
            )
    with pytest.raises(TypeError, match="use a formula of ClosenessTest or PrivateBTL"):
        pr.ClosenessTest(frame[:60], frame[60:], respondent="id", max_rows=2)
    with pytest.raises(ValueError, match="shown to respondents of several groups"):
        closeness(towns(share=(1.1, -0.1))).fit(1.0, budget=ledger)
    for wrong, match in (
        ({"method": "tv"}, "'auto' for choices from offered sets"),
        ({"effect_epsilon": 1.0}, "are not for choices from offered sets"),
        ({"details_epsilon": 1.0}, "are not for choices from offered sets"),
    ):
        with pytest.raises(ValueError, match=match):
            closeness(frame).fit(1.0, budget=ledger, **wrong)
    assert ledger.spent == (0.0, 0.0)
    result = closeness(frame).fit(1.0, budget=ledger, rng=generator())
    with pytest.raises(ValueError, match="simulate answers by worths"):
        result.detectable_effect()
    for lacking in (result.conf_int, result.details, result.shares, result.plot_details):
        with pytest.raises(ValueError, match="no effect and no totals are released for choices"):
            lacking()


def test_other_methods_refuse_choices_from_sets():
    frame = survey()
    with pytest.raises(ValueError, match="PrivateRankAggregation needs orders"):
        pr.PrivateRankAggregation(frame, items=ITEMS, respondent="id", max_rows=2)
    with pytest.raises(TypeError, match="PrivateBTL, UniformityTest or IdentityTest"):
        pr.local.PairBits(ITEMS, 1.0).simulate(frame, generator())
