"""What a report says first: true whenever its rank sets and tests are, and in plain words."""

import dataclasses
import itertools
import re

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.hypotheses.interval import rank_sets
from privrank.reporting import document as module
from privrank.reporting.document import findings, settled_ranks
from privrank.results.claims import CLAIMS

CEMS = pr.datasets.load_university()
PEOPLE = {"items": CEMS.items, "respondent": "respondent", "max_rows": 15, "ties": True}
RANKS = CEMS.rankings(np.random.default_rng(1))


def rng():
    return np.random.default_rng(1)


def sets(m, known):
    """Rank sets of items, the first the best, of which these pairs are known to be in order."""
    sure = np.zeros((m, m), dtype=bool)
    for better, worse in known:
        sure[better, worse] = sure[worse, better] = True
    low, high = rank_sets(-np.arange(m), ~np.eye(m, dtype=bool), lambda _: sure)
    return low.tolist(), high.tolist()


@pytest.mark.parametrize("known", [*itertools.product((False, True), repeat=6)])
def test_blocks_are_true_of_every_order_that_the_known_pairs_allow(known):
    pairs = list(itertools.combinations(range(4), 2))
    sure = [pair for pair, told in zip(pairs, known, strict=True) if told]
    made = settled_ranks(sets(4, sure)[1])
    assert sorted(sum((places for _, _, places in made), [])) == [0, 1, 2, 3]
    for order in itertools.permutations(range(4)):
        if any(order.index(better) > order.index(worse) for better, worse in sure):
            continue
        for first, last, places in made:
            assert sorted(order[first - 1 : last]) == sorted(places)
    assert (len(made) == 4) == all(known)


def ranked(m, known, alpha=0.05):
    low, high = sets(m, known)
    frame = pd.DataFrame({"rank_lower": low, "rank_upper": high}, index=list("ABCDEFGHIJKL")[:m])
    return module._ranked(frame, "Ranking by worth", alpha)


EVERY = list(itertools.combinations(range(4), 2))


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (EVERY, "Ranking by worth (simultaneous 95% confidence): A ranks first and D last. B has "
         "rank 2. C has rank 3."),
        ([], "Ranking by worth (simultaneous 95% confidence): no differences between A, B, C and "
         "D are established."),
        (EVERY[:3], "A ranks first. B, C and D occupy ranks 2 to 4; their order is not "
         "established."),
        (EVERY[1:5], "A and B occupy ranks 1 and 2; their order is not established. C and D "
         "occupy ranks 3 and 4; their order is not established."),
        ([(0, 3)], "(simultaneous 95% confidence; possible ranks in parentheses): A (1-3), "
         "B (1-4), C (1-4) and D (2-4) occupy ranks 1 to 4; their order is only partly "
         "established. The leading item is not established."),
    ],
)  # fmt: skip
def test_words_say_who_leads_and_what_is_not_told_apart(known, words):
    assert words in ranked(4, known)


def test_many_items_are_not_all_named():
    said = ranked(12, [])
    assert "A, B, C, D and 8 more" in said and "L" not in said
    every = list(itertools.combinations(range(12), 2))
    assert ranked(12, every, 0.1).endswith("D has rank 4. The table lists the other ranks.")
    assert "(simultaneous 90% confidence)" in ranked(12, every, 0.1)


@pytest.fixture(scope="module")
def worths():
    return pr.PrivateBTL(CEMS.comparisons, design="public", **PEOPLE).fit(1.0, rng=rng())


def test_worths_pooled_and_consensus_are_read_off_their_rank_sets(worths):
    assert findings(worths) == module._ranked(worths.to_frame(), "Ranking by worth", 0.05)
    assert "London ranks first" in findings(worths)
    labelled = findings(worths.with_labels({"London": "LSE"}))
    assert labelled == findings(worths).replace("London", "LSE")
    other = pr.PrivateBTL(CEMS.comparisons, design="public", **PEOPLE).fit(
        1.0, rng=np.random.default_rng(2)
    )
    pooled = pr.pool([worths, other], survey="same")
    words = "Ranking by worth (simultaneous 95% confidence): London ranks first"
    assert findings(pooled).startswith(words)
    model = pr.PrivateRankAggregation(RANKS, respondent="respondent")
    consensus = model.fit(1.0, rng=rng())
    assert findings(consensus).startswith("Ranking by mean rank (simultaneous 95% confidence")
    order = model.fit(1.0, method="exponential", rng=rng())
    assert findings(order).startswith(f"The estimated order is {order.order[0]}, ")
    assert "No simultaneous confidence statement is available" in findings(order)


def test_nothing_is_said_of_a_table_or_a_ledger(worths):
    assert findings(pr.summary_col([worths])) == ""
    assert findings(pr.Budget(epsilon=1.0)) == ""


def test_items_that_nothing_connects_are_said_to_be_unknown():
    rows = [("a", "b"), ("a", "c"), ("b", "c")] * 400
    frame = pd.DataFrame(rows, columns=["item1", "item2"]).assign(outcome=1.0)
    model = pr.PrivateBTL(frame, items=list("abcde"), respondent=None)
    fit = model.fit(2.0, rng=rng())
    assert fit.components[0] == ("a", "b", "c")
    assert findings(fit).startswith(
        "Ranking of a, b and c by worth (simultaneous 95% confidence): a ranks first"
    )
    assert findings(fit).endswith("No ranks are stated for d and e.")


@pytest.mark.parametrize("k", [1, 2])
def test_a_top_k_is_tested_first_and_ranks_follow_only_then(k):
    model = pr.PrivateTopK(CEMS.comparisons, k, design="public", **PEOPLE)
    for seed, epsilon in enumerate([0.3, 0.6, 0.6, 2.0]):
        top = model.fit(epsilon, rng=np.random.default_rng(seed))
        said = findings(top)
        if top.pvalue > top.alpha:
            assert "is not significantly separated from the rest (p = " in said
            assert "simultaneous" not in said
            continue
        assert "by win rate" in said and "(simultaneous 95% confidence" in said
        # what is selected is said to be above the rest, whatever the rank sets alone leave open
        frame = top.to_frame()
        beyond = frame["rank_upper"][frame["selected"]] > k
        note = CLAIMS["wider ranks"].format(k=k)
        assert (note in str(" ".join(top.summary().notes))) == beyond.any()
        if k == 1:
            assert f"{top.selected[0]} ranks first" in said
        else:
            last = [item for item in CEMS.items if item not in top.selected]
            early = "ranks first|has rank 2|occupy ranks 1 and 2"
            first = re.findall(rf"([^.:]+) (?:{early})", said)
            assert first and not any(item in "".join(first) for item in last)


def test_terms_are_adjusted_for_their_number():
    data = CEMS.comparisons.merge(CEMS.students, left_on="respondent", right_index=True)
    formula = "item1 + item2 + outcome ~ french + gender"
    fit = pr.PrivateBTL.from_formula(formula, data, design="public", **PEOPLE).fit(2.0, rng=rng())
    pvalues = fit.wald_test_terms()["pvalue"].sort_values()
    said = findings(fit)
    assert "(score tests, Holm-adjusted, 5% level)" in said
    # at a level just below twice the second p-value Holm stops there
    stop = dataclasses.replace(fit, alpha=float(min(2 * pvalues.iloc[1] * 0.99, 0.9)))
    assert str(pvalues.index[2]) not in findings(stop).split("not significant")[0]
    one = dataclasses.replace(fit, alpha=2e-4)
    assert findings(one).startswith("No term is significant (score tests, ")


def test_tests_say_what_they_decide():
    uniform = pr.UniformityTest(RANKS, respondent="respondent").fit(1.0, draws=999, rng=rng())
    assert findings(uniform) == (
        "The hypothesis that all orders of the 6 items are equally likely is rejected at the 5% "
        "level (p = 0.001)."
    )
    none = pr.UniformityTest(np.array([[1, 2], [2, 1]] * 20), items=["a", "b"]).fit(1.0, rng=rng())
    assert findings(none).startswith(
        "The hypothesis that all orders of the 2 items are equally likely is not rejected at the 5%"
    )
    assert findings(none).endswith("). This is not evidence for the hypothesis.")
    identity = pr.IdentityTest.from_counts([30, 20, 500], [0.3, 0.3, 0.4], list("abc"))
    said = findings(identity.fit(1.0, draws=199, rng=rng()))
    assert said.startswith("The hypothesis that ") and "is rejected at the 5% level" in said
    two = pr.IdentityTest.from_counts({"a": 90, "b": 10}, {"a": 0.3, "b": 0.7})
    said = findings(two.fit(1.0, method="sigmoid", tolerance=0.2, rng=rng()))
    assert said.endswith("rejected by the released decision.") and "p =" not in said


@pytest.mark.parametrize("differ", [True, False])
def test_clear_differences_follow_a_rejection_alone(differ):
    one = np.tile([[1, 2, 3]], (200, 1))
    other = np.tile([[3, 2, 1]], (200, 1)) if differ else one
    model = pr.ClosenessTest(one, other, items=list("abc"))
    result = model.fit(1.0, permutations=99, details_epsilon=2.0, rng=rng())
    said = findings(result)
    assert result.reject == differ
    if differ:
        assert said.startswith("The hypothesis that the rankings of all groups have the same")
        assert len(re.findall("ranks [ac] (higher|lower) than", said)) == 2
        assert said.endswith("These statements hold simultaneously at the 5% level.")
    else:
        assert "is not rejected at the 5% level" in said and "higher" not in said


def test_opposite_camps_are_no_consensus():
    camps = np.repeat([[1, 2, 3, 4], [4, 3, 2, 1]], 200, axis=0)
    result = pr.UniformityTest(camps).fit(np.inf, draws=99)
    assert result.reject and "equally likely is rejected" in findings(result)
