"""What stands in one line of a table belongs together: statistics, p-values, names and codes."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import privrank as pr
from privrank.results.claims import CLAIMS

CEMS = pr.datasets.load_university()
TIED = {"items": CEMS.items, "respondent": "respondent", "max_rows": 15, "ties": True}


def worths(epsilon=1.0, formula="1", **arguments):
    rows = CEMS.comparisons.join(CEMS.students, on="respondent")
    columns = f"item1 + item2 + outcome ~ {formula}"
    levels = {"levels": {"gender": ["female", "male"]}} if formula != "1" else {}
    more = TIED | {"design": "public"} | levels | arguments
    model = pr.PrivateBTL.from_formula(columns, rows, **more)
    return model.fit(epsilon, rng=np.random.default_rng(3))


@pytest.fixture(scope="module")
def private():
    return worths()


@pytest.fixture(scope="module")
def results(private):
    exact = worths(np.inf)
    return {
        "worths": private,
        "coefficients": worths(formula="gender"),
        "exact": exact,
        "top": pr.PrivateTopK.from_release(private.release, k=2),
        "pooled": pr.pool([private, worths(2.0)], survey="same"),
    }


def formats(table):
    for name in ("as_text", "as_html", "as_latex", "as_markdown", "as_csv"):
        yield name, getattr(table, name)()


def test_a_table_never_prints_a_pvalue_of_zero(results, private):
    tables = [result.summary() for result in results.values()]
    tables.append(private.t_test("London = Paris, London = Stockholm").summary())
    tables.append(pr.summary_col([results["worths"], results["exact"]]))
    small = 0
    for table in tables:
        for name, text in formats(table):
            head = re.search(r"p-value|P\W+.?[tz]|statistic", text)
            assert head or "eps=" in text or "selected" in text, name
            small += bool(re.search(r"(<|&lt;|\\<|\$<\$)0\.001", text))
        heads = [head for head in table.columns if head.startswith(("P>", "p-value"))]
        for head in heads:
            place = table.columns.index(head)
            assert all(re.fullmatch(r"<0\.001|0\.\d*[1-9]\d*|1\.000", r[place]) for r in table.rows)
    assert small >= 25


def test_no_table_sets_a_statistic_beside_the_pvalue_of_another(results):
    for name, result in results.items():
        columns, frame = result.summary().columns, result.to_frame()
        assert not {"t", "P>|t|"} & set(columns), name
        assert ("z" in columns) == ("P>|z|" in columns) == ("z" in frame), name
        if "z" in frame:
            normal = 2 * norm.sf(abs(frame["z"]))
            np.testing.assert_allclose(frame["pvalue"], normal, rtol=1e-6)


def test_tests_of_contrasts_are_named_and_print_one_statistic_with_its_pvalue(private):
    test = private.t_test("London = Paris, 0.5*London + 0.5*Paris - Milano = 1, Milano = 0")
    rows = ["London - Paris", "0.5 London + 0.5 Paris - Milano = 1", "Milano"]
    table = test.summary()
    assert [row[0] for row in table.rows] == rows == list(test.summary_frame().index)
    assert table.columns == ("", "coef", "std err", "z", "P>|z|", "[0.025", "0.975]")
    np.testing.assert_allclose(test.pvalue, 2 * norm.sf(abs(test.tvalue)), rtol=1e-6)
    exact = results_of_rows()
    table = exact.t_test("a = b").summary()
    assert table.columns[3:5] == ("z", "P>|z|")
    frame = exact.t_test("a = b").summary_frame()
    np.testing.assert_allclose(frame["pvalue"], 2 * norm.sf(abs(frame["z"])))
    assert "a - b" in str(exact.t_test("a = b")) and "c0" not in str(exact.t_test("a = b"))


def results_of_rows():
    frame = pd.DataFrame({"item1": "a", "item2": "b", "outcome": [1.0, 1.0, -1.0] * 20})
    return pr.PrivateBTL(frame, items=["a", "b"], respondent=None, design="public").fit(np.inf)


def test_every_summary_with_ties_says_how_codes_were_read(results):
    said = CLAIMS["outcomes"]
    for result in results.values():
        assert said in " ".join(str(result.summary()).split())
    assert "0 (tie" not in str(results_of_rows().summary())


def test_the_docstring_of_ties_asks_for_the_recoding_first():
    first = re.search(r"ties : bool.*\n\s+(.*)", pr.PrivateBTL.__doc__)
    assert first is not None and first[1].startswith("Recode a 0/1 column")


def test_half_the_ties_are_in_the_name_of_what_counts_them(results):
    """A pair with .45 of preferences, .36 of ties and .19 of the opposite is no .63 preferred."""
    outcome = np.repeat([1.0, 0.0, -1.0], [45, 36, 19])
    frame = pd.DataFrame({"item1": "a", "item2": "b", "outcome": outcome})
    unit = {"items": ["a", "b"], "respondent": None, "design": "public"}
    fit = pr.PrivateBTL(frame, ties=True, **unit).fit(np.inf, penalty=0)
    assert "probability" not in fit.pairwise()
    assert fit.pairwise()["preferred_plus_half_ties"][0] == pytest.approx(0.63)
    asked = pd.DataFrame({"item1": ["a"], "item2": ["b"]})
    assert fit.predict(asked)["preferred_plus_half_ties"][0] == pytest.approx(0.63)
    assert "P(tie)/2" in fit.plot_pairwise().axes[-1].get_ylabel()
    assert "preferred_plus_half_ties" in results["pooled"].pairwise()
    decided = results_of_rows()
    assert "probability" in decided.pairwise() and "probability" in decided.predict(asked)
