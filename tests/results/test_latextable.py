"""LaTeX that fits a page, by its structure; `make tables` compiles every kind of table."""

import importlib.util
import re
from pathlib import Path

import pytest

from privrank.results.tables import Table

ROOT = Path(__file__).parents[2]
FACTS = (("Mechanism:", "net wins, permutohedron"), ("Noise source:", "secure"), ("Delta:", "0"))
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


def columns(text):
    """The specifications of the columns, table by table."""
    start = r"\\begin\{(?:longtable|tabularx\}\{\\linewidth)\}"
    return re.findall(start + r"\{@\{\}(.*)@\{\}\}", text)


def kinds(specification):
    """One letter per column: X for those whose cells break."""
    specification = re.sub(r"p\{0\.\d+\\linewidth\}", "X", specification)
    return re.sub(r">\{(?:[^{}]|\{[^{}]*\})*\}", "", specification)


def test_facts_and_rows_are_as_wide_as_a_line():
    text = table().as_latex()
    assert text.startswith("% in the preamble: \\usepackage{booktabs,longtable,tabularx}\n")
    facts, rows = columns(text)
    # names of facts keep their width, values and the names of rows take what is left and break
    assert kinds(facts) == "lXlX" and kinds(rows) == "Xrrr"
    assert text.count(r"\raggedright\arraybackslash") == 3
    assert "centering" not in text and "resizebox" not in text
    assert re.search(r"Mechanism: & net wins, permutohedron & Delta: & 0 \\\\", text)


def test_rules_stand_between_facts_heads_rows_and_parts():
    text = table(rows=(ROW, ROW), rule=1).as_latex()
    rules = re.findall(r"\\(top|mid|bottom)rule", text)
    assert rules == ["top", "mid", "mid", "mid", "bottom"]
    assert re.findall(r"\\(top|mid|bottom)rule", table(header=()).as_latex())[0] == "top"


def test_notes_are_paragraphs_below():
    after = table(notes=("One.", "Two.")).as_latex().split(r"\bottomrule")[1]
    assert r"\footnotesize\raggedright" in after and "One.\\par\nTwo.\\par" in after


def test_numbers_have_minus_signs_and_ranges_have_dashes():
    text = table(rows=(("a-b", "-0.125", "(-0.1)", "1-2"), ("2026-11-23", "-inf", "x-1", "-")))
    assert r"a-b & $-$0.125 & ($-$0.1) & 1--2 \\" in text.as_latex()
    assert r"2026-11-23 & $-$inf & x-1 & - \\" in text.as_latex()


def test_signs_of_comparison_and_bars_are_set_in_mathematics():
    text = table(rows=(("a<b|c>d", *ROW[1:]),)).as_latex()
    assert "a$<$b$|$c$>$d & " in text


def test_cells_of_several_words_break():
    words = ("mechanism", "pair counts, EB-Kemeny", "objective perturbation", "1")
    _, rows = columns(table(rows=(ROW, words)).as_latex())
    assert kinds(rows) == "XXXr"


def test_long_words_break_after_marks():
    text = table(rows=(("french[T.poor]:Stockholm", *ROW[1:]),)).as_latex()
    assert r"french[T.poor]:\allowbreak{}Stockholm" in text
    assert "allowbreak" not in table(rows=(("a:b, c", *ROW[1:]),)).as_latex()


@pytest.mark.parametrize(
    ("cells", "size"), [(3, "small"), (8, "footnotesize"), (9, "scriptsize"), (20, "scriptsize")]
)
def test_type_is_as_large_as_the_columns_allow(cells, size):
    row = ("Barcelona", *["0.8673"] * cells)
    made = table(columns=("", *["std err"] * cells), rows=(row,)).as_latex()
    assert re.search(r"\\(small|footnotesize|scriptsize)\\setlength", made)[1] == size


def test_tables_of_more_rows_than_a_page_go_on():
    rows = tuple((f"item {number}", *ROW[1:]) for number in range(100))
    made = table(rows=rows, rule=60).as_latex()
    start, body, end = re.split(r"\\(?:begin|end)\{longtable\}", made)
    assert "tabularx}{" not in made and r"\begin{table}" not in made
    assert body.count("item ") == 100 and body.count(r"\caption{T}") == 1
    # the heads are repeated on every page; facts are a note, as no table can stand in another
    assert body.split(r"\endhead")[0].splitlines()[-2:] == [
        r" & coef & std err & rank \\",
        r"\midrule",
    ]
    assert body.split("item 59")[1].splitlines()[1] == r"\midrule"
    assert "Mechanism: net wins, permutohedron. Noise source: secure. Delta: 0." in end
    assert end.index("Mechanism") < end.index("A note.")


def test_names_that_a_row_end_would_take_are_kept_from_it():
    made = table(rows=(("[1] x", *ROW[1:]), ("*star", *ROW[1:]))).as_latex()
    assert "\n{}[1] x & " in made and "\n{}*star & " in made


def widest(text):
    """Width in points of a table's rows, long words and columns that do not break, generously."""
    size = {"small": 4.65, "footnotesize": 4.25, "scriptsize": 3.9}
    each = size[re.search(r"\\(small|footnotesize|scriptsize)\\setlength", text)[1]]
    specification = columns(text)[-1]
    body = re.split(r"\\(?:begin|end)\{(?:tabularx|longtable)\}", text)[-2]
    lines = body.splitlines()[1:]
    cells = [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in lines if " & " in line]
    cells = [row for row in cells if "multicolumn" not in " ".join(row)]
    total = 0.0
    for kind, column in zip(kinds(specification), zip(*cells, strict=True), strict=True):
        plain = [re.sub(r"\\allowbreak\{\}", " ", cell).replace("$", "") for cell in column]
        pieces = [piece for cell in plain for piece in (cell.split() if kind == "X" else [cell])]
        total += 6.0 + each * max(map(len, pieces), default=0)
    return total - 6.0


def test_every_kind_of_table_fits_a_line():
    made = TOOL.tables()
    assert len(made) >= 35
    over = {name: widest(one.as_latex()) for name, one in made.items()}
    assert {name: width for name, width in over.items() if width > 345.0} == {}


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
