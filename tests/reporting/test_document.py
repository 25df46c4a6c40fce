"""A page on a user's own results: what it holds, what it escapes, what is refused."""

import base64
import os
import re
from datetime import date
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import privrank as pr
from privrank.reporting.document import findings

CEMS = pr.datasets.load_university()
PEOPLE = {"items": CEMS.items, "respondent": "respondent", "max_rows": 15, "ties": True}
PEOPLE["design"] = "public"


class Page(HTMLParser):
    """Tags met, and the texts of headings."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.headings, self.inside, self.attributes = [], [], False, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag in ("h1", "h2"):
            self.headings.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("h1", "h2")

    def handle_data(self, data):
        if self.inside:
            self.headings[-1] += data


@pytest.fixture(scope="module")
def budget():
    return pr.Budget(epsilon=4.0, unit="respondent")


@pytest.fixture(scope="module")
def worths(budget):
    return pr.PrivateBTL(CEMS.comparisons, **PEOPLE).fit(epsilon=1.0, budget=budget)


@pytest.fixture(scope="module")
def consensus(budget):
    model = pr.PrivateRankAggregation(CEMS.rankings(), respondent="respondent")
    return model.fit(epsilon=1.0, releases="pairs", budget=budget)


@pytest.fixture(scope="module")
def decision():
    model = pr.ClosenessTest(CEMS.rankings()[:150], CEMS.rankings()[150:], respondent="respondent")
    return model.fit(epsilon=1.0, permutations=99, rng=np.random.default_rng(1))


def written(tmp_path, results, **more):
    path = pr.report(results, tmp_path / "folder" / "page.html", **more)
    assert path == tmp_path / "folder" / "page.html"
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def html(tmp_path_factory, worths, consensus, budget):
    labels = {"London": "LSE <i>", "StGallen": "St. Gallen"}
    results = {
        "Worths & <b>": worths.with_labels(labels), "Consensus": consensus.with_labels(labels)
    }  # fmt: skip
    title = "A <survey>"
    return written(tmp_path_factory.mktemp("page"), results, title=title, budget=budget)


def test_page_has_every_result_the_guarantee_and_the_ledger(html, worths, consensus, budget):
    assert Page(html).headings == [
        "A <survey>", "Worths & <b>", "Consensus", "Privacy guarantee", "Ledger",
    ]  # fmt: skip
    for note in (*worths.summary().notes, *consensus.summary().notes):
        assert note in unescape(html)
    assert budget.summary().as_html() in html
    # worths and win probabilities, the consensus and its pairs
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert len(pictures) == 4
    assert all(base64.b64decode(data).startswith(b"<?xml") for data in pictures)
    assert "secure (system RNG)" in html


def test_page_loads_nothing_and_escapes_everything(html):
    page = Page(html)
    assert not re.search(r"https?://|<script|<link|@import|url\(", html)
    assert not {"b", "i", "survey"} & set(page.tags)
    assert "LSE &lt;i&gt;" in html and ">StGallen<" not in html


def test_page_is_for_telephones_and_for_the_dark(html):
    page = Page(html)
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in (
        page.attributes
    )
    # colours change in the dark, and figures lose their white
    assert html.count("prefers-color-scheme: dark") == 2 and "img { filter: invert(1)" in html
    # every table scrolls in a box of its own
    assert len(re.findall(r'<div class="box" style="overflow-x:auto"><table', html)) == (
        page.tags.count("table")
    )


def test_seeded_and_bare_results_are_said_to_be(tmp_path, decision):
    html = written(tmp_path, decision)
    assert "<strong>Not for publication.</strong>" in html and "Not private" not in html
    bare = pr.PrivateBTL(CEMS.comparisons, **PEOPLE).fit(np.inf)
    html = written(tmp_path, [bare, pr.summary_col([bare])])
    words = "Ranking by worth (simultaneous 95% confidence): London ranks first"
    assert html.count(words) == 1
    assert "<strong>Not private.</strong>" in html and "Not for publication" not in html
    assert Page(html).headings[1:3] == [
        "Bradley-Terry Results (non-private)", "Bradley-Terry worths",
    ]  # fmt: skip


def test_results_without_a_figure_have_a_table(tmp_path, decision):
    html = written(tmp_path, [decision, decision])
    assert "<img" not in html
    assert Page(html).headings[1:3] == [
        "Private Test of Closeness", "Private Test of Closeness",
    ]  # fmt: skip


def test_page_begins_with_findings_and_ends_with_ledgers(tmp_path, worths, decision, budget):
    results = {"Ledger 1": budget, "Worths": worths, "Halves?": decision}
    text = "Asked in <spring>.\n \nAnswered in summer."
    html = written(tmp_path, results, author="A. <b>", text=text, budget=budget)
    ways = ["Worths", "Halves?", "Privacy guarantee", "Ledger 1", "Ledger"]
    order = [
        "<h1>", f"A. &lt;b&gt;, {date.today().isoformat()}", 'id="findings"', findings(worths),
        findings(decision), "<p>Asked in &lt;spring&gt;.</p>", "<p>Answered in summer.</p>",
        *(f">{way}</a>" for way in ways), 'id="result-1"', 'id="protected"', 'id="ledger-1"',
        'id="ledger-2"',
    ]  # fmt: skip
    places = [html.index(words) for words in order]
    assert places == sorted(places)
    assert Page(html).headings[1:] == ways
    targets = re.findall(r'href="#([^"]+)"', html)
    assert targets and all(f'id="{target}"' in html for target in targets)


def test_findings_point_to_warnings(tmp_path):
    few = pr.PrivateBTL(CEMS.comparisons, **PEOPLE).fit(0.02, rng=np.random.default_rng(1))
    assert any(note.startswith("Warning") for note in few.summary().notes)
    assert 'See <a href="#result-1">the warning below the table</a>.' in written(tmp_path, few)
    # the number is that of the result, even if results without findings come first
    html = written(tmp_path, [pr.summary_col([few]), few])
    assert 'See <a href="#result-2">the warning below the table</a>.' in html


def test_a_page_is_replaced_whole(tmp_path, decision):
    written(tmp_path, decision)
    written(tmp_path, decision, title="Second")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("error", "words", "results", "more"),
    [
        (ValueError, "results must hold at least one", [], {}),
        (ValueError, "results must hold at least one", {}, {}),
        (TypeError, "results must be a result", "worths", {}),
        (TypeError, "got type", pr.PrivateBTL, {}),
        (TypeError, r"results\['a'\] must be a result", {"a": 3}, {}),
        (TypeError, "budget must be a privrank.Budget", None, {"budget": 3.0}),
        (TypeError, "title must be a text", None, {"title": 3}),
        (TypeError, "author must be a text", None, {"author": 3}),
        (TypeError, "text must be a text", None, {"text": ["a"]}),
        (TypeError, "path must name a file", None, {"path": 3}),
        (TypeError, "path must name a file", None, {"path": ""}),
        (ValueError, "is a folder", None, {"path": "."}),
        (ValueError, "can name none", None, {"path": "a\0b"}),
        (ValueError, "can name none", None, {"path": "long" * 300}),
        (OSError, "path must be a file that can be written", None, {"path": "/dev/null/x.html"}),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path, worths, error, words, results, more):
    path = more.pop("path", tmp_path / "page.html")
    with pytest.raises(error, match=words) as caught:
        pr.report(worths if results is None else results, path, **more)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_what_is_no_file_is_not_replaced(tmp_path, decision):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"is a device\.$"):
        pr.report(decision, tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_the_ledger_says_what_was_spent(tmp_path, decision):
    budget = pr.Budget(epsilon=3.0)
    budget.reserve("a test", 1.25, 0.0, unit="row")
    assert "1.25 of epsilon 3." in written(tmp_path, decision, budget=budget)
