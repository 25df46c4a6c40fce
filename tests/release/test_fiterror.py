"""What fails after the release is raised with it, and the release gives the result for nothing."""

import pickle
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank import aggregation, btl, closeness, identity, topk, uniformity
from privrank.mechanisms import comparisons

ITEMS = ["a", "b", "c"]
ROWS = [("a", "b", 1), ("b", "c", 1), ("a", "c", 1), ("a", "b", -1)]
COMPARISONS = pd.DataFrame(ROWS * 5, columns=["item1", "item2", "outcome"])
RANKS = pd.DataFrame([[1, 2, 3], [2, 1, 3], [3, 1, 2], [1, 3, 2]] * 10, columns=ITEMS)
MODEL = {"items": ITEMS, "respondent": None, "ties": False, "design": "public"}
NULL, COUNTS = pr.Mallows(3, 0.8), {"x": 30, "y": 10, "z": 20}
SHARES = {"x": 0.4, "y": 0.3, "z": 0.3}

FITS = {
    "btl": (btl, lambda: pr.PrivateBTL(COMPARISONS, **MODEL)),
    "topk": (topk, lambda: pr.PrivateTopK(COMPARISONS, 2, **MODEL)),
    "uniformity": (uniformity, lambda: pr.UniformityTest(RANKS)),
    "identity": (identity, lambda: pr.IdentityTest(RANKS, NULL)),
    "closeness": (
        closeness,
        lambda: pr.ClosenessTest.from_formula(
            "a + b + c ~ group",
            RANKS.assign(group=["x", "y"] * 20),
            levels=["x", "y"],
        ),
    ),
    "two samples": (
        closeness,
        lambda: pr.IdentityTest.from_counts(COUNTS, SHARES, null_nobs=100),
    ),
    "aggregation": (aggregation, lambda: pr.PrivateRankAggregation(RANKS)),
}


READS = dict.fromkeys([module for module, _ in FITS.values()], "infer")
"""What a fit calls of its module once the release is there."""

READS |= {topk: "infer_topk", uniformity: "infer_uniformity", identity: "infer_identity"}
READS |= {closeness: "ClosenessResult", aggregation: "AggregationResult"}


def fitted(model, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(epsilon=1.0, budget=budget, rng=np.random.default_rng(5))


def fails(*_, **__):
    raise np.linalg.LinAlgError("did not converge")


@pytest.mark.parametrize("case", FITS)
def test_a_release_is_not_lost(case, monkeypatch):
    module, build = FITS[case]
    plain = fitted(build(), pr.Budget(epsilon=1.0))
    budget = pr.Budget(epsilon=1.0)
    with monkeypatch.context() as patch:
        patch.setattr(module, READS[module], fails)
        with pytest.raises(pr.FitError, match=r"A later step failed with LinAlgError\.$") as raised:
            fitted(build(), budget)
    error = raised.value
    assert budget.left[0] == 0.0 and "spends nothing" in str(error)
    # nothing of the first error is left that a traceback would print
    assert error.__cause__ is None and error.__context__ is None
    assert "converge" not in "".join(traceback.format_exception(error))
    assert error.release.to_json() == plain.release.to_json()
    # the call that the message names
    assert f"privrank.{error.reader} reads again" in str(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = eval(f"pr.{error.reader}", {"pr": pr, "error": error, "null": NULL})
    assert again.to_json() == plain.to_json()
    kept = pickle.loads(pickle.dumps(error))
    assert kept.release.to_json() == plain.release.to_json() and kept.reader == error.reader


def test_a_failure_before_the_release_says_that_nothing_was_released(monkeypatch):
    def quoting(*_, **__):
        raise ValueError("an answer: Milano")

    budget = pr.Budget(epsilon=1.0)
    monkeypatch.setattr("privrank.mechanisms.samples.tabulated", quoting)
    with pytest.raises(pr.FitError, match=r"nothing was released\. A later step failed") as raised:
        fitted(FITS["uniformity"][1](), budget)
    assert raised.value.release is None and budget.left[0] == 0.0
    assert "Milano" not in "".join(traceback.format_exception(raised.value))


def test_a_warning_that_is_an_error_keeps_the_release(monkeypatch):
    monkeypatch.setattr(btl, "fit_warnings", lambda *_: ("read with care.",))
    with warnings.catch_warnings():
        warnings.simplefilter("error", pr.PrivrankWarning)
        with pytest.raises(pr.FitError, match="PrivrankWarning") as raised:
            FITS["btl"][1]().fit(epsilon=1.0, rng=np.random.default_rng(5))
    assert pr.Release.from_json(raised.value.release.to_json())


def test_what_is_refused_before_the_spending_is_no_lost_release():
    with pytest.raises(ValueError, match="epsilon must be positive"):
        FITS["btl"][1]().fit(epsilon=-1.0)


def test_an_interruption_passes(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(btl, "infer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        FITS["btl"][1]().fit(epsilon=1.0, rng=np.random.default_rng(5))


def test_identity_is_read_from_its_release_and_null():
    result = fitted(pr.IdentityTest(RANKS, NULL), None)
    again = pr.IdentityTest.from_release(result.release, NULL, alpha=0.1, draws=999)
    assert again.alpha == 0.1 and again.statistic == result.statistic
    with pytest.raises(ValueError, match="release must be of an IdentityTest"):
        pr.IdentityTest.from_release(fitted(pr.UniformityTest(RANKS), None).release, NULL)
    with pytest.raises(TypeError, match="null must"):
        pr.IdentityTest.from_release(result.release, {"a": 1.0})


ANSWERS = pd.DataFrame(
    [(f"p{k}", *pair, 1 if k % 3 else -1) for k in range(60) for pair in ("ab", "bc", "ac")],
    columns=["respondent", "item1", "item2", "outcome"],
)
STAGES = {
    "worst, public": (
        {"design": "public", "dependence": "worst"},
        ("score_equations", "estimate", "round_expected", "contrast_directions", "response")
        + ("round_directions", "largest_design_effect"),
    ),
    "pairs, public": ({"design": "public", "dependence": "pairs"}, ("pair_moments",)),
    "pairs, private": (
        {"design": "private", "dependence": "pairs"},
        ("score_equations", "estimate", "expected_answers", "round_expected", "pair_moments"),
    ),
}
SECOND = [
    (stage, name, model)
    for stage, (_, names) in STAGES.items()
    for name in names
    for model in ("PrivateBTL", "PrivateTopK")
    # of the win rates of a private design second moments are of nets as they are
    if model == "PrivateBTL" or stage != "pairs, private" or name == "pair_moments"
]


@pytest.mark.parametrize(("stage", "routine", "model"), SECOND)
def test_the_first_stage_is_not_lost(stage, routine, model, monkeypatch):
    design, dependence = STAGES[stage][0].values()
    columns = {"items": list("abc"), "respondent": "respondent", "max_rows": 3, "ties": False}
    options = {"epsilon": 2.0, "delta": 1e-5, "dependence": dependence}
    options |= {"target": "win rate"} if model == "PrivateTopK" else {}

    def fit(budget):
        where = {"k": 1} if model == "PrivateTopK" else {}
        survey = getattr(pr, model)(ANSWERS, **where, **columns, design=design)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return survey.fit(**options, budget=budget, rng=np.random.default_rng(7))

    unit = {"unit": "respondent"}
    whole, budget = fit(None).release, pr.Budget(epsilon=2.0, delta=1e-5, **unit)
    monkeypatch.setattr(f"privrank.mechanisms.comparisons.{routine}", fails)
    with pytest.raises(pr.FitError, match=r"A later step failed with LinAlgError\.$") as raised:
        fit(budget)
    monkeypatch.undo()
    error, spent = raised.value, whole.parts["dependence"].epsilon
    first = error.release
    assert budget.left[0] == 0.0
    # what was drawn before is kept as it was, at the epsilon of these parts
    assert first.parts.keys() == whole.parts.keys() - {"dependence"}
    for name, part in first.parts.items():
        assert np.array_equal(part.values, whole.parts[name].values)
    assert (first.epsilon, first.delta) == (whole.epsilon - spent, whole.delta)
    assert first.plan.rho == whole.plan.rho - 0.5 * spent**2
    # and it is read, from its archive too, as a fit without a release of dependence
    assert pr.Release.from_json(first.to_json()).to_json() == first.to_json()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = eval(f"pr.{error.reader}", {"pr": pr, "error": error})
    assert "independent" in str(again.summary(details=True))


def test_the_first_stage_of_choices_from_sets_is_not_lost(monkeypatch):
    rows = [(k, *"abc", "abc"[k % 3], "abc"[(k + 1) % 3]) for k in range(30)]
    frame = pd.DataFrame(rows, columns=["id", "one", "two", "three", "best", "worst"])
    offered = ["one", "two", "three"]
    tasks = pr.as_choices(
        frame, offered=offered, best="best", worst="worst", items=list("abc"), respondent="id"
    )
    model = pr.PrivateBTL(tasks, respondent="id", design="public")

    monkeypatch.setattr(comparisons, "largest_choice_effect", fails)
    with pytest.raises(pr.FitError) as error:
        model.fit(1.0, rng=np.random.default_rng(1))
    first = error.value.release
    assert first.epsilon == pytest.approx(0.9)
    assert "independent" in str(pr.PrivateBTL.from_release(first).summary(details=True))


def test_no_routine_of_the_second_stage_is_left_out():
    names = [*(name for _, name, _ in SECOND), "largest_choice_effect"]
    code = comparisons._dependence.__code__
    free = {"dict", "float", "np", "array", "replace", "draw", "release", "round", "getattr"}
    free |= {"EncodedChoices", "isinstance"}
    called = {name for name in code.co_names if callable(getattr(comparisons, name, None))} - free
    assert called and called <= set(names)
