"""Several results side by side: labels, chosen rows, several kinds, what is public."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import privrank as pr
from privrank.results.base import _printed

CEMS = pr.datasets.load_university()
PEOPLE = {"items": CEMS.items, "respondent": "respondent", "max_rows": 15, "ties": True}
PEOPLE["design"] = "public"
SAID = ["epsilon", "delta", "unit", "mechanism", "noise", "N"]
LABELS = {"London": "LSE", "StGallen": "St. Gallen"}


def seeded():
    return {"rng": np.random.default_rng(1)}


@pytest.fixture(scope="module")
def plain():
    return pr.PrivateBTL(CEMS.comparisons, **PEOPLE).fit(0.5, **seeded())


@pytest.fixture(scope="module")
def free():
    return pr.PrivateBTL(CEMS.comparisons, **PEOPLE).fit(np.inf)


@pytest.fixture(scope="module")
def by_french():
    frame = CEMS.comparisons.merge(CEMS.students.reset_index(), on="respondent")
    model = pr.PrivateBTL.from_formula("item1 + item2 + outcome ~ french", frame, **PEOPLE)
    return model.fit(1.0, **seeded())


@pytest.fixture(scope="module")
def top():
    return pr.PrivateTopK(CEMS.comparisons, 2, **PEOPLE).fit(0.5, **seeded())


@pytest.fixture(scope="module")
def consensus():
    model = pr.PrivateRankAggregation(CEMS.rankings(), respondent="respondent")
    return model.fit(1.0, **seeded())


@pytest.fixture(scope="module")
def order():
    model = pr.PrivateRankAggregation(CEMS.rankings(), respondent="respondent")
    return model.fit(1.0, method="exponential", **seeded())


@pytest.fixture(scope="module")
def identity():
    model = pr.IdentityTest.from_counts([30, 20, 50], [0.3, 0.3, 0.4], list("abc"))
    return model.fit(1.0, draws=199, effect_epsilon=1.0, **seeded())


@pytest.fixture(scope="module")
def closeness():
    frame = CEMS.rankings().join(CEMS.students)
    formula = f"{' + '.join(CEMS.items)} ~ gender"
    model = pr.ClosenessTest.from_formula(formula, frame, respondent="respondent")
    return model.fit(1.0, permutations=99, details_epsilon=1.0, **seeded())


ALL = ["plain", "free", "by_french", "top", "consensus", "order", "identity", "closeness"]


@pytest.fixture(params=ALL)
def result(request):
    return request.getfixturevalue(request.param)


def rows(table):
    return {row[0]: row[1:] for row in table.rows if row[0]}


def test_results_side_by_side(plain, free):
    table = pr.summary_col([plain, free])
    assert table.columns == ("", "eps=0.5", "eps=inf")
    found = rows(table)
    for item in CEMS.items:
        assert found[item] == tuple(f"{result.params[item]:.4f}" for result in (plain, free))
        below = table.rows[[row[0] for row in table.rows].index(item) + 1]
        assert below == ("", *(f"({result.bse[item]:.4f})" for result in (plain, free)))
    assert found["epsilon"] == ("0.5", "inf") and found["noise"] == ("seeded", "none")
    assert list(found)[len(CEMS.items) :] == ["epsilon", "delta", "unit", "design", *SAID[3:]]
    assert table.rule == 2 * len(CEMS.items)
    assert any("do not publish" in note for note in table.notes)
    assert "do not publish" not in " ".join(pr.summary_col([free]).notes)


def test_a_plain_fit_stands_beside_one_with_covariates(plain, by_french):
    found = rows(pr.summary_col([plain, by_french]))
    assert found["estimate"] == ("worth", "coef")
    assert found["Paris"] == (f"{plain.params['Paris']:.4f}", f"{by_french.params['Paris']:.4f}")
    assert found["french[T.poor]:Paris"][0] == ""


def test_results_of_several_kinds_stand_beside_each_other(plain, top, consensus):
    table = pr.summary_col([plain, top, consensus])
    found = rows(table)
    assert found["estimate"] == ("worth", "win rate", "Borda score")
    assert found["London"][2] == f"{consensus.borda().loc['London', 'score']:.4f}"
    assert found["rank of London"] == ("", "", "1") and found["p-value of separation"][0] == ""
    assert table.title == "Results side by side"


def test_tests_of_several_kinds_stand_beside_each_other(identity, closeness):
    found = rows(pr.summary_col([identity, closeness], digits=2))
    assert found["p-value"] == (f"{identity.pvalue:.2f}", f"{closeness.pvalue:.2f}")
    assert found["statistic"] == (f"{identity.statistic:.2f}", "")


def test_effects_of_tests_of_one_sample_are_shown():
    test = pr.UniformityTest.from_counts([30, 50, 20], list("abc"))
    found = test.fit(1.0, effect_epsilon=0.5, draws=199, rng=np.random.default_rng(1))
    assert rows(pr.summary_col([found]))["effect"] == (f"{found.effect:.4f}",)
    assert "H1: some are more likely than others." in found.summary().notes[1]


def test_a_row_that_nothing_fills_is_left_out(closeness):
    assert "effect" not in rows(pr.summary_col([closeness]))


def test_labels_digits_rows_and_title(plain, free, by_french):
    french = by_french.with_labels(LABELS | {"french[T.poor]": "Poor French"})
    table = pr.summary_col(
        [plain.with_labels(LABELS), free.with_labels(LABELS), french],
        names=["a", "b", "c"],
        rows=["Paris", "LSE", "Poor French:St. Gallen", "LSE"],
        digits=2,
        title="T",
    )
    terms = [row[0] for row in table.rows[: table.rule] if row[0]]
    assert terms == ["estimate", "Paris", "LSE", "Poor French:St. Gallen", "LSE"]
    assert rows(table)["LSE"][0] == f"{plain.params['London']:.2f}"
    assert table.title == "T"
    assert set(SAID) <= set(rows(table))
    assert table.to_frame().loc["epsilon", "c"] == "1"
    assert table.as_csv().splitlines()[0] == ",a,b,c"


def test_chosen_rows_choose_ranks_too(plain, order, consensus):
    found = rows(pr.summary_col([consensus, plain], rows=["London"]))
    assert "rank of London" in found and "rank of Paris" not in found and "Paris" not in found
    found = rows(pr.summary_col([order.with_labels({"Paris": "HEC"})], rows=["HEC"]))
    assert list(found) == ["rank of HEC", "epsilon", "delta", "unit", "data", *SAID[3:]]


@pytest.mark.parametrize(
    ("error", "words", "bad"),
    [
        (ValueError, "rows must be among London", {"rows": ["Oslo"]}),
        (ValueError, "digits must be", {"digits": 13}),
        (TypeError, "digits must be", {"digits": "3"}),
        (ValueError, "names must give one heading per result, got 1", {"names": ["a"]}),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(plain, free, error, words, bad):
    with pytest.raises(error, match=words) as caught:
        pr.summary_col([plain, free], **bad)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [[], ["worths"], [1.0], "worths", None])
def test_what_is_no_result_is_refused(bad):
    with pytest.raises(TypeError, match="results must be"):
        pr.summary_col(bad)


def test_results_without_a_row_in_common_leave_gaps(plain, identity):
    found = rows(pr.summary_col([plain, identity]))
    assert found["London"][1] == "" and found["p-value"][0] == ""


def test_columns_with_different_items_leave_gaps(plain):
    immigration = pr.datasets.load_immigration()
    facts = {"items": immigration.items, "respondent": None, "ties": True, "design": "public"}
    other = pr.PrivateBTL(immigration.comparisons, **facts).fit(1.0, **seeded())
    found = rows(pr.summary_col([plain, other]))
    assert found["London"][1] == "" and found["culture"][0] == ""


WORDS = ["term", "estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]


def test_tidy_has_the_words_of_broom(result):
    frame, tidy = result.to_frame(), result.tidy()
    assert list(tidy.columns) == WORDS
    assert list(tidy["term"]) == list(map(str, frame.index))
    assert (tidy.dtypes.iloc[1:] == np.float64).all()
    pairs = {"lower": "conf_low", "pvalue": "p_value", "std_err": "std_error"}
    for name, word in pairs.items():
        if name in frame:
            np.testing.assert_array_equal(tidy[word], frame[name].astype(float))


def test_tidy_of_worths_is_params_and_what_belongs_to_it(by_french, top):
    for result in (by_french, top):
        tidy = result.tidy().set_index("term")
        np.testing.assert_allclose(tidy["estimate"], result.params[tidy.index])
        np.testing.assert_allclose(tidy["p_value"], result.pvalues[tidy.index])
        # a statistic is there where the p-value is of it
        if "z" in result.to_frame():
            normal = 2 * norm.sf(abs(tidy["statistic"]))
            np.testing.assert_allclose(tidy["p_value"], normal, rtol=1e-6)
        assert tidy["statistic"].notna().all() == ("z" in result.to_frame())


def test_tidies_of_all_results_go_below_each_other(plain, closeness, consensus):
    frame = pd.concat([one.tidy() for one in (plain, closeness, consensus)])
    assert list(frame.columns) == WORDS and len(frame) == 13


def shown(result):
    """Everything that a reader sees of a result."""
    table = result.summary(details=True)
    formats = (table.as_text(), table.as_html(), table.as_markdown(), table.as_csv())
    texts = [*formats, result.to_frame().to_csv(), result.to_json()]
    return "\n".join(texts)


def test_labels_are_everywhere_and_codes_nowhere(result):
    survey = result.release.survey
    labels = {code: f"The {n}. name" for n, code in enumerate(survey.items)}
    labelled = result.with_labels(labels)
    before, after = shown(result), shown(labelled)
    for code, label in labels.items():
        assert not re.search(rf"\b{code}\b(?!\.)", after) or len(code) == 1
        assert (code in before) == (label in after)
    assert labelled.items == tuple(labels.values())
    assert result.items == tuple(labels)
    again = pr.from_json(labelled.to_json())
    assert again.summary().as_text() == labelled.summary().as_text()


def test_labels_change_no_number(result):
    labelled = result.with_labels({code: f"{code}!" for code in result.items})
    numbers = result.tidy().select_dtypes("number").columns
    pd.testing.assert_frame_equal(result.tidy()[numbers], labelled.tidy()[numbers])


def test_labels_reach_figures(plain, closeness):
    (axes,) = plain.with_labels(LABELS).plot().axes
    assert "LSE" in [text.get_text() for text in axes.get_yticklabels()]
    named = closeness.with_labels({"female": "Women", "male": "Men"} | LABELS)
    assert list(named.groups.index) == ["Women", "Men"]
    assert "Women (n = 152), Men (n = 151)" in str(named.summary())
    assert {"St. Gallen", "Women"} <= set(named.details().to_numpy(dtype=object).ravel())
    assert "Women vs. Men" in named.plot_details().axes[0].get_title()


def test_figures_look_for_no_formula_in_names(plain):
    figure = plain.with_labels({"London": "$5 to $9", "Paris": r"cost $\frac$ x"}).plot()
    figure.canvas.draw()
    labels = figure.axes[0].get_yticklabels()
    assert "$5 to $9" in [label.get_text() for label in labels]
    assert not any(label.get_parse_math() for label in labels)


def test_labels_of_covariates(by_french):
    named = by_french.with_labels({"french[T.poor]": "Poor French", "London": "LSE"})
    assert "Poor French:LSE" in named.params.index and "LSE" in named.params.index
    np.testing.assert_array_equal(named.params, by_french.params)
    assert list(named.worths({"french": "poor"})["item"])[0] == "LSE"


def test_terms_with_colons_have_labels(plain):
    named = plain.with_labels({"London": "Tea: hot"})
    found = rows(pr.summary_col([named], rows=["Tea: hot"]))
    assert "Tea: hot" in found


def test_methods_take_labels(plain):
    named = plain.with_labels(LABELS)
    frame = pd.DataFrame({"item1": ["LSE"], "item2": ["Paris"]})
    codes = frame.replace("LSE", "London")
    pd.testing.assert_frame_equal(named.predict(frame), plain.predict(codes))


def test_labels_may_be_exchanged(plain):
    swapped = plain.with_labels({"London": "Paris", "Paris": "London"})
    assert swapped.params["Paris"] == plain.params["London"]
    assert plain.with_labels({}).items == plain.items


@pytest.mark.parametrize(
    ("error", "words", "labels"),
    [
        (ValueError, "'Oslo' is none of them", {"Oslo": "BI"}),
        (ValueError, "'Paris' is there twice", {"London": "Paris"}),
        (ValueError, "'X' is there twice", {"London": "X", "Paris": "X"}),
        (ValueError, "'Paris' is there twice", {"London": " Paris\n"}),
        (ValueError, "label of 'London' is empty", {"London": " "}),
        (TypeError, "labels must map codes to texts", {"London": 1}),
        (TypeError, "labels must map codes to texts", [("London", "LSE")]),
        (TypeError, "labels must map codes to texts", None),
    ],
)
def test_labels_that_cannot_be_used_are_refused(plain, error, words, labels):
    with pytest.raises(error, match=words) as caught:
        plain.with_labels(labels)
    assert str(caught.value).endswith(".")


def test_small_p_values_are_bounded():
    assert _printed("p-value", 1e-6, 4) == "<0.0001" and _printed("p-value", 0.2, 2) == "0.20"
    assert _printed("statistic", 1e-6, 4) == "0.0000"
