"""What limits a result is said in every format, once: warnings, bounds, and limits at infinity.

The sentences have one source, a method of the result. Here every fit of the catalogue is printed in
all formats, and each of its sentences is counted in each of them.
"""

import warnings
from html import unescape

import numpy as np
import pandas as pd
import pytest
from catalogue import CATALOGUE

import privrank as pr
from privrank.reporting import document
from privrank.results import guarantee, tables
from privrank.results.base import Result

pytestmark = pytest.mark.filterwarnings("ignore::privrank.util.checks.PrivrankWarning")

FEARS = pr.datasets.load_immigration()
PEOPLE = {"items": FEARS.items, "respondent": "respondent", "max_rows": 6, "ties": True}
BOUND = "Design effect: at most 6.00; the release cannot show whether it is smaller."
WITHOUT_END = "Some intervals are unbounded (inf)"


def fitted(epsilon, seed=1, **more):
    return pr.PrivateBTL(FEARS.comparisons, **PEOPLE, **more).fit(
        epsilon, rng=np.random.default_rng(seed)
    )


def squeezed(text):
    """Text without spaces and ends of lines, which formats put where they need them."""
    return "".join(text.split())


def as_it_is(text):
    return text


def formats(result, folder):
    """All there is to read of a result, with what a format does to the letters of a sentence."""
    table, together = result.summary(), pr.summary_col([result])
    page = pr.report(result, folder / "page.html").read_text(encoding="utf-8")
    frames = {"frame": result.to_frame(), "tidy": result.tidy(), "cells": table.to_frame()}
    return {
        "text": (table.as_text(), as_it_is),
        "HTML": (unescape(table.as_html()), as_it_is),
        "LaTeX": (table.as_latex(), tables._latex),
        "Markdown": (table.as_markdown(), tables._markdown),
        "CSV": (table.as_csv().replace('""', '"'), as_it_is),
        "columns": (together.as_text(), as_it_is),
        "columns in CSV": (together.as_csv().replace('""', '"'), as_it_is),
        "page": (unescape(page), as_it_is),
    } | {
        name: ("\n".join(frame.attrs["warnings"]), as_it_is) for name, frame in frames.items()
    }  # fmt: skip


def faults(result, folder):
    """The formats that have a sentence not once, and the infinite limits that they hide."""
    said, found = result._cautions(), []
    for note in result.summary().notes:
        if note.startswith("Warning") and note not in said:
            found.append(("elsewhere", note))
    for name, (text, escaped) in formats(result, folder).items():
        for sentence in said:
            if squeezed(text).count(squeezed(escaped(sentence))) != 1:
                found.append((name, sentence))
    frame, tidy = result.to_frame(), result.tidy()
    if "lower" not in frame:
        return found
    ends = frame[["lower", "upper"]].astype(float)
    # what is not identified says so, and has the whole line
    infinite = np.isinf(ends).any(axis=1) & frame.iloc[:, 0].notna()
    if not np.array_equal(tidy[["conf_low", "conf_high"]], ends, equal_nan=True):
        found.append(("tidy", "limits"))
    cells = [row[1] for row in pr.summary_col([result]).rows]
    if sum("limit)" in cell for cell in cells) != infinite.sum():
        found.append(("columns", "limits"))
    if infinite.any() and not any(sentence.startswith(WITHOUT_END) for sentence in said):
        found.append(("summary", "limits"))
    return found


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    monkeypatch.setattr(document, "_figures", lambda entry: [])


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_format_has_every_sentence_once(name, tmp_path):
    case = CATALOGUE[name]
    result = case.fit(case.build(next(iter(case.frames))), rng=np.random.default_rng(1))
    assert faults(result, tmp_path) == []


def pooled():
    fits = [fitted(0.2, design="public"), fitted(2.0, 2, design="public")]
    assert np.isinf(fits[0].conf_int()).any(axis=None)
    return pr.pool(fits, survey="different", names=["north", "south"])


def test_pooled_results_say_it_of_whom_it_is(tmp_path):
    result = pooled()
    assert faults(result, tmp_path) == []
    said = result.to_frame().attrs["warnings"]
    # that a limit of one of them is infinite says nothing about the pooled interval
    assert not any(WITHOUT_END in sentence for sentence in said)
    assert f"north: {BOUND}" in " ".join(said)
    assert any("Respondents may count twice: north and south have" in each for each in said)
    assert "sampling, at most" in result.summary().columns


def test_several_kinds_say_everything(tmp_path):
    top = pr.PrivateTopK.from_release(fitted(0.5).release, 2)
    few = pr.PrivateRankAggregation(FEARS.rankings()[:8], respondent=None)
    order = few.fit(0.1, rng=np.random.default_rng(1))
    rows = pr.PrivateBTL(FEARS.comparisons, **PEOPLE | {"ties": "davidson"}, design="public")
    ties = rows.fit(0.02, rng=np.random.default_rng(1))
    large = pr.PrivateTopK(FEARS.comparisons, 2, **PEOPLE, design="public").fit(
        1.0, 0.1, noise="gaussian", rng=np.random.default_rng(1)
    )
    starts = {
        "Warning: The numbers of comparisons",
        "Design effect",
        "Warning: Too few",
        "Warning: Delta 0.1",
    }
    starts |= {"With this much noise it cannot be ruled out that", WITHOUT_END}
    for result in (top, order, ties, large):
        assert faults(result, tmp_path) == []
        said = result.to_frame().attrs["warnings"]
        starts -= {start for start in starts for each in said if start in each}
    assert not starts


# Each takes the sentences from one place, or puts them there twice.
PLANTED = {
    "columns": lambda patch: patch.setattr(tables, "joined", lambda cautions: []),
    "frame": lambda patch: patch.setattr(Result, "_cautioned", _bare),
    "CSV": lambda patch: patch.setattr(tables.Table, "as_csv", _rows_alone),
    "page": lambda patch: patch.setattr(tables, "render", _without_notes),
    "text": lambda patch: patch.setattr(guarantee, "cost_notes", lambda *given: [BOUND_AGAIN]),
}
BOUND_AGAIN = guarantee.effect_notes(fitted(0.5).release)[0]
_render = tables.render


def _bare(result, frame):
    frame.attrs["warnings"] = []
    return frame


def _rows_alone(table):
    rows = pd.DataFrame(list(table.rows), columns=list(table.columns))
    return rows.to_csv(index=False)


def _without_notes(template, **values):
    for chapter in values.get("chapters", ()):
        chapter["table"] = ""
    return _render(template, **values)


@pytest.mark.parametrize("place", PLANTED)
def test_a_sentence_that_is_missing_or_there_twice_is_found(place, tmp_path, monkeypatch):
    result = fitted(0.5)
    assert faults(result, tmp_path) == []
    PLANTED[place](monkeypatch)
    assert place in {name for name, _ in faults(result, tmp_path)}


def test_a_limit_that_is_hidden_is_found(tmp_path, monkeypatch):
    result = fitted(0.5)
    assert np.isinf(result.tidy()["conf_high"]).any()
    monkeypatch.setattr(type(result), "_unlimited", lambda self: {})
    assert ("columns", "limits") in faults(result, tmp_path)


def test_columns_name_whose_a_sentence_is():
    results = [fitted(0.5), fitted(5.0)]
    for named, whose in ((None, "eps=0.5: "), (["few", "many"], "few: ")):
        notes = pr.summary_col(results, names=named).notes
        assert sum(note.startswith(whose + BOUND) for note in notes) == 1
    twice = pr.summary_col([results[0], results[1], results[0]]).notes
    assert sum(note.startswith("column 1, column 3: " + BOUND) for note in twice) == 1
    alike = pr.summary_col([results[0], results[0]]).notes
    assert sum(note.startswith(BOUND) for note in alike) == 1


def test_an_interval_without_a_limit_is_marked_beside_its_error():
    result = fitted(0.5)
    column = [row[1] for row in pr.summary_col([result]).rows]
    assert f"({result.bse['crimRate']:.4f}, no upper limit)" in column
    few = pd.DataFrame({"item1": list("aab") * 6, "item2": list("bcc") * 6, "outcome": 1})
    model = pr.PrivateBTL(few, items=["a", "b", "c"], respondent=None, design="public")
    column = str(pr.summary_col([model.fit(0.05, rng=np.random.default_rng(1))]))
    assert ", no limit)" in column


def kinds(epsilon):
    fit = fitted(epsilon)
    return fit, pr.PrivateTopK.from_release(fit.release, 2)


def test_a_design_effect_beyond_its_noise_is_stated_as_a_bound(tmp_path):
    for result in kinds(0.5):
        header = dict(result.summary().header)
        assert header["Covariance:"] == "design effect at most 6.00"
        for name, (text, escaped) in formats(result, tmp_path).items():
            assert squeezed(escaped(BOUND)) in squeezed(text), name
        assert "contribution_tradeoff" not in str(result.summary())
    fit, _ = kinds(0.5)
    table = fit.summary()
    for text in (
        table.as_html(),
        table.as_latex(),
        table.as_markdown(),
        table.as_csv(),
        str(table),
    ):
        assert "sampling, at most" in text
    assert "sampling" in fit.to_frame() and BOUND in " ".join(fit.to_frame().attrs["warnings"])


def test_a_design_effect_that_is_known_is_stated_as_before():
    for result in kinds(1.0):
        table = result.summary()
        assert dict(table.header)["Covariance:"] == f"design effect {result.design_effect:.2f}"
        assert "sampling, at most" not in table.columns
        assert "cannot show" not in str(table)
    assert "sampling" in kinds(1.0)[0].summary().columns


def test_what_is_warned_of_is_also_said():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fitted(0.1)
    said = " ".join(result.to_frame().attrs["warnings"])
    messages = [str(one.message) for one in caught]
    messages = [message for message in messages if "No differences are identified" in message]
    assert messages and all(message in said for message in messages)
