"""Every statement says what it rests on, in the words of one catalogue."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.results.claims import ASSUMPTIONS, assumed

ROOT = Path(__file__).parents[2]
ITEMS = ["a", "b", "c", "d"]
PEOPLE = {"items": ITEMS, "respondent": "who", "max_rows": 6, "design": "public"}
pytestmark = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")

USUAL = {"respondents", "answering"}
LOCAL = {"devices", "reporting"}

# The words for each assumption in the docstrings of models and tests.
DOCUMENTED = {
    "respondents": "Independent respondents",
    "answering": "ignorable nonresponse",
    "tasks": "a task is answered with the same probability whatever its set",
    "model": "preference probabilities that follow the model",
    "linear": "worths that deviate independently from the covariate model",
    "null": "null distribution that is known without error",
    "surveys": "all surveys share the same parameters",
    "assigned": "pairs were assigned, not chosen",
    "reporting": "whether a local report arrives does not depend on its content",
}


def answers(rng, people=60):
    """Everybody compares all pairs of four items."""
    pairs = list(itertools.combinations(ITEMS, 2)) * people
    first, second = zip(*pairs, strict=True)
    worth = dict(zip(ITEMS, (0.9, 0.3, -0.3, -0.9), strict=True))
    gap = np.array([worth[a] - worth[b] for a, b in pairs])
    outcome = np.where(gap + rng.logistic(size=len(pairs)) > 0, 1, -1)
    who = np.repeat(np.arange(people), 6)
    return pd.DataFrame({"item1": first, "item2": second, "outcome": outcome, "who": who})


def fits():
    """Every kind of result, and the words of the catalogue that its summary has to say."""
    rng = np.random.default_rng(1)
    votes = answers(rng)
    worths = [pr.PrivateBTL(answers(rng), **PEOPLE).fit(4.0, rng=rng) for _ in range(2)]
    yield "worths", worths[0], USUAL | {"model"}
    rows = pr.PrivateBTL(votes, **(PEOPLE | {"respondent": None}))
    yield "worths of rows", rows.fit(1.0, rng=rng), {"rows", "answering", "model"}
    shown = pd.DataFrame([[k, *"abc", "a", "b"] for k in range(40)], columns=[*"n123", "b", "w"])
    columns = {"offered": list("123"), "best": "b", "worst": "w", "respondent": "n"}
    tasks = pr.as_choices(shown, items=list("abc"), unanswered="private", **columns)
    answered = pr.PrivateBTL(tasks, respondent="n", design="public").fit(1.0, rng=rng)
    yield "answered tasks", answered, USUAL | {"model", "tasks"}
    weighted = pr.PrivateBTL(votes.assign(w=1.0 + votes["who"] % 2), weights="w", **PEOPLE)
    yield "weights", weighted.fit(1.0, rng=rng), USUAL | {"model", "weights"}
    named = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1", votes, contest="first", **PEOPLE
    )
    yield "contests", named.fit(1.0, rng=rng), USUAL | {"model", "contests"}
    prices = pd.DataFrame({"price": [1.0, 2.0, 3.0, 4.0]}, index=pd.Index(ITEMS, name="item"))
    formula = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1", votes, item_formula="price", item_data=prices, **PEOPLE
    )
    yield "covariates", formula.fit(4.0, rng=rng), USUAL | {"model", "linear"}
    yield "top", pr.PrivateTopK(votes, 2, **PEOPLE).fit(1.0, rng=rng), USUAL
    yield "pooled", pr.pool(worths, survey="different"), USUAL | {"model", "surveys"}
    differing = pr.pool(worths, survey="different", effects="random")
    yield "random effects", differing, USUAL | {"model", "drawn"}
    ranks = pd.DataFrame(pr.Mallows(4, 0.7).rvs(80, rng), columns=ITEMS)
    ranks["who"] = range(80)
    model = pr.PrivateRankAggregation(ranks, respondent="who")
    yield "consensus", model.fit(1.0, rng=rng), USUAL
    yield "of the sample", model.fit(1.0, target="sample", rng=rng), {"sample"}
    uniform = pr.UniformityTest(ranks, respondent="who")
    yield "uniformity", uniform.fit(1.0, draws=199, rng=rng), USUAL
    identity = pr.IdentityTest.from_counts([30, 20, 50], [0.3, 0.3, 0.4], list("abc"))
    yield "identity", identity.fit(1.0, draws=199, rng=rng), {"rows", "answering", "null"}
    tasks = pd.DataFrame([ITEMS[:3], ITEMS[1:]] * 30, columns=["x", "y", "z"])
    tasks = tasks.assign(best=tasks["x"], who=range(60))
    sets = pr.as_choices(tasks, offered=["x", "y", "z"], best="best", items=ITEMS, respondent="who")
    known = pr.IdentityTest(sets, [0.5, 0.0, 0.0, -0.5], respondent="who")
    yield "null worths", known.fit(1.0, draws=199, rng=rng), USUAL | {"null worths"}
    halves = pr.ClosenessTest(ranks[:40], ranks[40:], respondent="who")
    yield "closeness", halves.fit(1.0, permutations=99, rng=rng), USUAL
    single = pr.local.Comparisons(ITEMS, epsilon=4.0)
    reports = single.tally(single.simulate(ranks[ITEMS], rng))
    yield "local worths", pr.PrivateBTL.from_reports(reports), LOCAL | {"model", "assigned"}
    compared = pr.PrivateRankAggregation.from_reports(reports)
    yield "consensus of comparisons", compared, LOCAL | {"assigned"}
    asked = pr.local.SubRanking(ITEMS, epsilon=2.0)
    reports = asked.tally(asked.simulate(ranks[ITEMS], rng))
    yield "local consensus", pr.PrivateRankAggregation.from_reports(reports), LOCAL


@pytest.fixture(scope="module")
def said():
    """The summaries, and what they have to say."""
    return {name: (" ".join(str(result.summary()).split()), keys) for name, result, keys in fits()}


def test_every_summary_says_what_it_rests_on_once(said):
    for name, (text, keys) in said.items():
        (sentence,) = assumed(keys, "MaxDiff" if "tasks" in keys else "Bradley-Terry")
        assert text.count(sentence) == text.count("Assumptions: ") == 1, name


def test_every_sentence_of_the_catalogue_is_seen_in_a_summary(said):
    assert set().union(*(keys for _, keys in said.values())) == set(ASSUMPTIONS)


@pytest.mark.parametrize(
    ("documented", "keys"),
    [
        (pr.PrivateBTL, USUAL | {"model", "linear", "tasks"}),
        (pr.PrivateTopK, USUAL),
        (pr.PrivateRankAggregation, USUAL),
        (pr.UniformityTest, USUAL),
        (pr.IdentityTest, USUAL | {"null"}),
        (pr.ClosenessTest, USUAL),
        (pr.pool, {"surveys"}),
        (pr.local.Comparisons, {"assigned", "reporting"}),
    ],
)
def test_every_docstring_says_it_too(documented, keys):
    """The paragraph Assumptions names each assumption, and the page on violations."""
    text = " ".join(documented.__doc__.split())
    (_, paragraph) = text.split("**Assumptions.** ")
    paragraph, _ = paragraph.split(":doc:`assumptions </assumptions>`.")
    for key in keys:
        assert DOCUMENTED[key] in paragraph, key


def test_the_page_has_the_numbers_of_the_study():
    """The breach of each assumption, unless another study has it or nothing is assumed."""
    studied = pd.read_csv(ROOT / "docs" / "validation" / "assumptions.csv", keep_default_na=False)
    assert set(studied["assumption"]) <= set(ASSUMPTIONS)
    page = (ROOT / "docs" / "assumptions.md").read_text(encoding="utf-8")
    assert {"respondents", "answering", "reporting", "assigned", "model", "linear", "null"} <= set(
        studied["assumption"]
    )
    for row in studied[(studied["found"] > 0) & (studied["assumption"] != "null")].itertuples():
        assert f" {row.found:.2f}" in page.replace("\n", " "), row


def classes(rng, number=30, size=30, shared=0.13):
    """Choices of three categories, of classes whose pupils copy one of them now and then."""
    taste = np.repeat(rng.integers(3, size=number), size)
    own = rng.integers(3, size=number * size)
    choice = np.where(rng.random(number * size) < np.sqrt(shared), taste, own)
    return pd.DataFrame(
        {"choice": np.array(list("abc"))[choice], "class": np.arange(len(own)) // 30}
    )


def test_the_remedy_for_classes_is_the_class_as_respondent():
    rng, rejected = np.random.default_rng(1), np.zeros(2)
    for _ in range(40):
        data = classes(rng)
        for k, unit in enumerate(({}, {"respondent": "class", "max_rows": 30})):
            test = pr.UniformityTest.from_formula(
                "choice ~ 1", data, categories=["a", "b", "c"], **unit
            )
            rejected[k] += test.fit(2.0, draws=999, rng=rng).reject
    # at level .05 two of 40 are expected
    assert rejected[0] >= 12 and rejected[1] <= 6
