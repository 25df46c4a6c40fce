"""LaTeX that fits a page, by its structure; `make tables` compiles every kind of table."""

import importlib.util
import re
from pathlib import Path

from privrank.results.tables import Table

ROOT = Path(__file__).parents[2]
FACTS = (("Mechanism:", "net wins, permutohedron"), ("Noise:", "secure"), ("Delta:", "0"))
ROW = ("London", "0.8673", "-0.125", "1-2")
HEADS = ("", "coef", "std err", "rank")


def tool():
    spec = importlib.util.spec_from_file_location("latextool", ROOT / "tools" / "latex.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = tool()


def table(**parts):
    given = {"title": "T", "header": FACTS, "columns": HEADS, "rows": (ROW,), "notes": ("A note.",)}
    return Table(**{**given, **parts})


def test_rows_are_scaled_to_a_line_and_a_page():
    text = table().as_latex()
    assert text.startswith("% in the preamble: \\usepackage{adjustbox,booktabs}\n")
    start = r"\begin{adjustbox}{max width=\linewidth,max totalheight="
    assert text.count(start) == 1 and text.count(r"\begin{tabular}{@{}lrrr@{}}") == 1
    # inside of it are the rows, and no sentence
    inside = text.split(start)[1].split(r"\end{adjustbox}")[0]
    assert "London & 0.8673" in inside and "A note." not in inside and "Mechanism" not in inside


def test_facts_are_the_first_note():
    notes = table().as_latex().split(r"\end{adjustbox}")[1]
    said = "Mechanism: net wins, permutohedron. Noise: secure. Delta: 0.\\par"
    assert said in notes and notes.index(said) < notes.index("A note.")
    assert "Mechanism" not in table(header=()).as_latex()


def test_rules_stand_between_heads_rows_and_parts():
    text = table(rows=(ROW, ROW), rule=1).as_latex()
    rules = re.findall(r"\\(top|mid|bottom)rule", text)
    assert rules == ["top", "mid", "mid", "bottom"]


def test_notes_are_paragraphs_below():
    after = table(notes=("One.", "Two.")).as_latex().split(r"\bottomrule")[1]
    assert (
        r"\footnotesize\raggedright" in after
        and "Notes:\\par\n[1] One.\\par\n[2] Two.\\par" in after
    )


def test_numbers_have_minus_signs_and_ranges_have_dashes():
    text = table(rows=(("a-b", "-0.125", "(-0.1)", "1-2"), ("2026-11-23", "-inf", "x-1", "-")))
    assert r"a-b & $-$0.125 & ($-$0.1) & 1--2 \\" in text.as_latex()
    assert r"2026-11-23 & $-$inf & x-1 & - \\" in text.as_latex()


def test_signs_of_comparison_and_bars_are_set_in_mathematics():
    text = table(rows=(("a<b|c>d", *ROW[1:]),)).as_latex()
    assert "a$<$b$|$c$>$d & " in text


def test_names_that_a_row_end_would_take_are_kept_from_it():
    made = table(rows=(("[1] x", *ROW[1:]), ("*star", *ROW[1:]))).as_latex()
    assert "\n{}[1] x & " in made and "\n{}*star & " in made


def test_there_is_every_kind_of_table():
    made = TOOL.tables()
    assert len(made) >= 35
    for one in made.values():
        rows = re.findall(r"^.* \\\\$", one.as_latex(), flags=re.M)
        assert len(rows) == len(one.rows) + 1
        assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(one.columns) - 1}


def test_the_tool_reads_a_log():
    log = "\n".join(
        (
            "Overfull \\hbox (3.0pt too wide) in paragraph at lines 1--2",
            f"{TOOL.MARK}one",
            "Overfull \\hbox (0.9pt too wide) in alignment at lines 5--6",
            "Underfull \\hbox (badness 10000) in paragraph at lines 5--6",
            f"{TOOL.MARK}two",
            "LaTeX Warning: Float too large for page by 20.5pt on input line 9.",
            "Overfull \\hbox (130.25pt too wide) in alignment at lines 9--9",
            "! Undefined control sequence.",
        )
    )
    assert TOOL.too_wide(log) == [("before the first table", 3.0), ("two", 130.25)]
    assert TOOL.too_high(log) == ["two"]
    assert TOOL.errors(log) == ["! Undefined control sequence."]


def test_the_tool_announces_each_table():
    text = TOOL.document({"a": table(), "b": table()})
    assert text.count(r"\typeout{" + TOOL.MARK) == 2
    assert text.count(table().as_latex()) == 2
    assert r"\documentclass[10pt]{article}" in text and "geometry" not in text
