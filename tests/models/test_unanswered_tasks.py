"""Best and worst items of tasks that respondents may leave unanswered."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from mutating import with_check
from planting import planted
from scipy.optimize import root

import privrank as pr
from privrank.bradley_terry import dependence
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.paircounts import released_tasks
from privrank.release import names

ITEMS = tuple("abcde")
SETS = ((0, 1, 2), (0, 1, 3, 4), (1, 2, 4), (2, 3, 4), (0, 2, 3))
WORTHS = np.array([0.9, 0.3, 0.0, -0.4, -0.8])
SHOWN = ["s1", "s2", "s3", "s4"]


ANSWERS = ("best-worst", "best", "worst")


def answers_to(shown, worths, answer="best-worst"):
    """All answers to a set, as position scores, and their probabilities under the model."""
    unit = np.eye(5)
    if answer == "best-worst":
        scores = np.array([unit[b] - unit[w] for b, w in itertools.permutations(shown, 2)])
    else:
        scores = unit[list(shown)] * (1 if answer == "best" else -1)
    weights = np.exp(scores @ worths)
    return scores, weights / weights.sum()


def survey(respondents=80, silence=0.25, seed=1, answer="best-worst"):
    """One row per task; each is unanswered with the probability `silence`."""
    rng = np.random.default_rng(seed)
    rows = []
    for person, shown in itertools.product(range(respondents), SETS):
        scores, chances = answers_to(shown, WORTHS, answer)
        given = scores[rng.choice(len(scores), p=chances)]
        ends = [ITEMS[given.argmax()], ITEMS[given.argmin()]]
        named = [None, None] if rng.random() < silence else ends
        sets = [ITEMS[k] for k in shown] + [None] * (4 - len(shown))
        rows.append([person, *sets, *named])
    return pd.DataFrame(rows, columns=["id", *SHOWN, "best", "worst"])


def convert(frame, unanswered="private", answer="best-worst", **options):
    columns = {"offered": SHOWN, "respondent": "id"} | {end: end for end in answer.split("-")}
    return pr.as_choices(frame, items=ITEMS, unanswered=unanswered, **columns | options)


def model(frame):
    return pr.PrivateBTL(frame, respondent="id", max_rows=5, design="public")


def expected_totals(worths, answer="best-worst"):
    """The sum over the sets of the expected scores of an answer."""
    return sum(p @ scores for scores, p in (answers_to(shown, worths, answer) for shown in SETS))


@pytest.mark.parametrize("answer", ANSWERS)
def test_worths_solve_the_equations_of_the_answered_share(answer):
    frame = survey(answer=answer)
    fit = model(convert(frame, answer=answer)).fit(np.inf, penalty=0)
    named = frame.dropna(subset="best")
    totals = np.zeros(5)
    for end in answer.split("-"):
        counts = named[end].value_counts().reindex(list(ITEMS), fill_value=0).to_numpy()
        totals += counts if end == "best" else -counts

    def off(free):
        worths = np.append(free, -free.sum())
        share = len(named) / len(frame)
        return (80 * share * expected_totals(worths, answer) - totals)[:-1]

    solved = root(off, np.zeros(4), tol=1e-12).x
    assert fit.params.to_numpy() == pytest.approx(np.append(solved, -solved.sum()), abs=1e-7)
    assert f"400 (about {len(named)} answered)" in fit.summary().as_text()


@pytest.mark.parametrize("answer", ANSWERS)
def test_without_silence_worths_and_errors_are_those_of_answered_tasks(answer):
    frame = survey(silence=0.0, answer=answer)
    own, usual = (model(convert(frame, how, answer)).fit(np.inf) for how in ("private", "refuse"))
    pd.testing.assert_series_equal(own.params, usual.params, rtol=1e-9)
    pd.testing.assert_series_equal(own.bse, usual.bse, rtol=1e-6)


def test_a_task_with_one_answer_counts_as_unanswered():
    frame = survey()
    half = frame.copy()
    half.loc[half["best"].isna(), "worst"] = half["s1"]
    pd.testing.assert_frame_equal(convert(half), convert(frame))


def test_respondents_who_answer_nothing_stay():
    frame = survey()
    frame.loc[frame["id"] < 3, ["best", "worst"]] = None
    design = model(convert(frame)).fit(np.inf).release.design
    assert design.nobs == 80 and design.tasks == 400


def test_rows_can_be_units():
    tasks = convert(survey(), respondent=None).drop(columns="id")
    fit = pr.PrivateBTL(tasks, respondent=None, design="public").fit(np.inf)
    assert fit.release.design.tasks == 400
    assert fit.params.to_numpy() == pytest.approx(model(convert(survey())).fit(np.inf).params)


def test_silence_is_a_public_fact_of_the_frame_and_not_of_the_answers():
    frame = convert(survey(silence=0.0))
    assert model(frame).fit(np.inf).release.design.silent
    lost = frame.drop(columns="offered, may be unanswered")
    with pytest.raises(ValueError, match="must have the columns"):
        model(lost)
    renamed = convert(survey()).rename(columns={"offered, may be unanswered": "offered"})
    with pytest.raises(ValueError, match="at least one task lacks"):
        model(renamed)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (
            lambda: pr.as_choices(
                pd.DataFrame([list("abba")], columns=["s1", "s2", "first", "second"]),
                offered=["s1", "s2"],
                places=["first", "second"],
                items=ITEMS,
                unanswered="private",
            ),
            "needs the best or the worst",
        ),
        (
            lambda: model(convert(survey(answer="best"), answer="best")).fit(
                1.0, noise="zero-sum-laplace"
            ),
            "has no proof",
        ),
        (
            lambda: pr.PrivateBTL.from_formula(
                "best + worst ~ group",
                convert(survey().assign(group="x")),
                respondent="id",
                max_rows=5,
                design="public",
                levels={"group": ["x", "y"]},
            ),
            "must not have covariates",
        ),
        (
            lambda: model(convert(survey()).assign(best="a")),
            "have both answers of a task or none|same item",
        ),
        (
            lambda: model(convert(survey()).assign(**{"offered, may be unanswered": 3})),
            "column 'offered, may be unanswered' must give the number",
        ),
        (lambda: model(convert(survey())).fit(1.0, noise="permutohedron"), "has no proof"),
        (lambda: pr.as_comparisons(convert(survey())), "Pass the choices to"),
        (
            lambda: pr.UniformityTest(convert(survey()), respondent="id", max_rows=5),
            "must be given to PrivateBTL",
        ),
        (
            lambda: pr.IdentityTest.from_formula(
                "best + worst ~ 1", convert(survey()), "uniform", respondent="id", max_rows=5
            ),
            "must be given to PrivateBTL",
        ),
    ],
)
def test_what_silence_does_not_allow_is_refused(refused, message):
    with pytest.raises(ValueError, match=message):
        refused()


def scores_of_a_respondent(mean, share, worths, answer):
    """The covariance of the scores T - U k of a respondent, over all answers and silences."""
    total = np.zeros((5, 5))
    for shown in SETS:
        scores, chances = answers_to(shown, worths, answer)
        off = scores - mean
        first = share * chances @ off
        total += share * (off.T * chances) @ off - np.outer(first, first)
    return total


def covariances(answer):
    """The covariance that inference uses if tasks are independent, and the exact one."""
    frame = convert(survey(answer=answer), answer=answer)
    release = model(frame).fit(np.inf, dependence="none").release
    equations = score_equations(release)
    used = dependence.independent_scores(equations, release, WORTHS)
    mean = expected_totals(WORTHS, answer) / len(SETS)
    answered = released_tasks(release) / release.design.tasks
    exact = 80 * scores_of_a_respondent(mean, answered, WORTHS, answer)
    return used, exact


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_covariance_of_scores_is_that_of_all_answers_and_silences(answer):
    used, exact = covariances(answer)
    centre = np.eye(5) - 0.2
    assert centre @ used @ centre == pytest.approx(centre @ exact @ centre, rel=1e-9)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_covariance_without_the_sets_is_found(monkeypatch, answer):
    planted(monkeypatch, dependence, "_of_silence", "asarray((1.0 - share) *", "asarray(0.0 *")
    used, exact = covariances(answer)
    assert np.trace(used) < 0.99 * np.trace(exact)


@pytest.mark.parametrize("answer", ANSWERS)
def test_noise_in_the_number_of_answered_tasks_moves_the_scores_as_stated(answer):
    """The released number enters expected scores and, for one named item, the totals."""
    frame = convert(survey(answer=answer), answer=answer)
    release = model(frame).fit(np.inf, dependence="none").release
    part = release.values[names.ANSWERED]

    def scores(more):
        values = {**release.values, names.ANSWERED: part + more}
        equations = score_equations(replace(release, values=values))
        t = equations.linear.predict(WORTHS)
        return equations.score - equations.linear.scores(equations.count * equations.fitted.mean(t))

    moved = (scores(7) - scores(0)) / 7.0
    expected = -expected_totals(WORTHS, answer) / len(SETS)
    assert moved - moved.mean() == pytest.approx(expected - expected.mean(), rel=1e-9)
    term = score_equations(release).terms[names.ANSWERED]
    stated = np.zeros((5, 1)) if term.scores is None else term.scores
    even = expected_totals(np.zeros(5), answer) / len(SETS)
    assert stated.ravel() == pytest.approx(even.mean() - even, abs=1e-12)


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_archive_gives_the_same_result_and_needs_the_number_of_answered_tasks(answer):
    frame = convert(survey(answer=answer), answer=answer)
    fit = model(frame).fit(2.0, rng=np.random.default_rng(4))
    text = fit.to_json()
    again = pr.from_json(text)
    assert again.summary().as_text() == fit.summary().as_text()
    assert "Protected: the answers, and which tasks were answered." in " ".join(
        fit.summary().as_text().split()
    )
    for change in (
        lambda record: record["parts"].pop(names.ANSWERED),
        lambda record: record["design"]["offered"].__setitem__("unanswered", None),
        lambda record: record["design"]["offered"].__setitem__(
            "answer", "best" if answer == "best-worst" else "best-worst"
        ),
    ):
        record = json.loads(text)
        release = record["release"] if "release" in record else record
        change(release)
        with pytest.raises(ValueError, match="text is not|does not belong|must"):
            pr.from_json(with_check(record))
