"""Tables in four formats, tables of several results, and figures."""

import csv
import io
import re
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.results import plots
from privrank.results.tables import Table

# names that break a format which does not escape them
NASTY = ("A&B_<i>%", r"C\D{x}~^", "$5 #1", "Übü")
CEMS = pr.datasets.load_university()


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(2)
    rows = [(i, j, o) for i, j in combinations(NASTY, 2) for o in rng.choice([1.0, -1.0], 40)]
    return pd.DataFrame(rows, columns=["item1", "item2", "outcome"])


@pytest.fixture(scope="module")
def worths(frame):
    return pr.PrivateBTL(frame, items=NASTY, respondent=None, design="public").fit(
        1.0, rng=np.random.default_rng(3)
    )


@pytest.fixture(scope="module")
def selection(frame):
    return pr.PrivateTopK(frame, 2, items=NASTY, respondent=None, design="public").fit(
        1.0, rng=np.random.default_rng(3)
    )


@pytest.fixture(params=["worths", "selection"])
def result(request):
    return request.getfixturevalue(request.param)


def university(epsilon, **options):
    model = pr.PrivateBTL(
        CEMS.comparisons,
        items=CEMS.items,
        respondent="respondent",
        max_rows=15,
        ties=True,
        design="public",
    )
    return model.fit(epsilon, rng=np.random.default_rng(1), **options)


def all_tables():
    cems = university(0.5)
    top = pr.PrivateTopK(CEMS.comparisons, 2, items=CEMS.items, respondent=None, ties=True).fit(
        0.5, rng=np.random.default_rng(1)
    )
    budget = pr.Budget(epsilon=2.0, delta=1e-6, unit="respondent")
    budget.reserve("a fit with a long name", 0.5, 0.0, unit="respondent")
    return {
        "worths": cems.summary(),
        "non-private": university(np.inf).summary(),
        "top k": top.summary(),
        "columns": pr.summary_col([cems, university(np.inf)]),
        "budget": budget.summary(),
        "one column": Table("T", (), ("", "x"), (("a", "1"),)),
        "wide header": Table(
            "T", (("A long label:", "a value " * 5),) * 3, ("", "x"), (("a", "1"),)
        ),
        "long title": Table("A title longer than the rows " * 2, (), ("", "x"), (("a", "1"),)),
    }


TABLES = all_tables()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_text_lines_up(table):
    lines = table.as_text().splitlines()
    rules = [line for line in lines if line and set(line) <= {"=", "-"}]
    assert len(rules) >= 3
    assert len({len(rule) for rule in rules}) == 1, "rules of different length"
    last = max(k for k, line in enumerate(lines) if line in rules)
    width = len(rules[0])
    # rows fill the rules; the title and the notes stay inside them
    assert all(len(line) <= max(width, len(table.title)) for line in lines[: last + 1])
    notes = lines[last + 1 :]
    assert all(len(line) <= max(width, len(table.title.strip())) for line in notes)
    assert " ".join(" ".join(notes).split()) == " ".join(" ".join(table._numbered()).split())


@pytest.mark.parametrize("table", [TABLES["worths"], TABLES["top k"], TABLES["columns"]])
def test_cells_stand_under_their_headings(table):
    lines = table.as_text().splitlines()
    heading = next(k for k, line in enumerate(lines) if table.columns[-1] in line.split())
    first_row = lines[heading + 2]
    # right aligned: the last heading and the last cell end in the same column
    assert len(lines[heading].rstrip()) == len(first_row.rstrip())
    for cell in table.rows[0]:
        assert cell in first_row


def test_text_holds_every_name_as_it_is(result):
    text = str(result.summary())
    assert all(name in text for name in NASTY)
    assert repr(result.summary()) == text


class Cells(HTMLParser):
    """Tags met and the text of the cells, entities resolved."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells, self.inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


def test_html_escapes_names(result):
    html = result.summary().as_html()
    assert result._repr_html_() == html
    assert "<i>" not in html and "A&B" not in html
    page = Cells(html)
    assert "i" not in page.tags
    cells = [cell.strip() for cell in page.cells]
    assert set(NASTY) <= set(cells), "escaped twice or not at all"


def test_html_escapes_title_facts_and_notes():
    table = Table(
        "a < b", (("x & y", "<b>1</b>"),), ("", "<u>"), (("r", "<s>"),), ("note <em> & more",)
    )
    page = Cells(table.as_html())
    assert not {"b", "u", "s", "em"} & set(page.tags)
    assert {"x & y", "<b>1</b>", "<u>", "<s>"} <= {cell.strip() for cell in page.cells}
    assert "note &lt;em&gt; &amp; more" in table.as_html()


def plain_latex(text):
    """The text of a LaTeX fragment without its commands: what is left must not be special."""
    commands = (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}")
    for command in commands:
        text = text.replace(command, "")
    text = re.sub(r"\\(textless|textgreater|textbar)({})?", "", text)
    text = re.sub(r"\\[&%$#_{}]", "", text)
    return re.sub(r"\$[<>|~\s]+\$", "", text).replace("$-$", "-")


def body_cells(latex):
    """The cells of the rows."""
    return [re.split(r"(?<!\\)&", row) for row in re.findall(r"^(.*?) *\\\\$", latex, flags=re.M)]


def test_latex_escapes_names(result):
    rows = body_cells(result.summary().as_latex())
    assert len(rows) == 5
    # a bare & in a name would bring a column of its own
    assert len({len(row) for row in rows}) == 1
    for cell in (cell for row in rows for cell in row):
        assert not set(plain_latex(cell)) & set("\\&%$#_{}~^"), cell
    stubs = " ".join(row[0] for row in rows)
    for piece in (r"A\&B\_", r"\%", r"\$5 \#1", "Übü", r"\{x\}"):
        assert piece in stubs, piece
    assert r"C\D" not in stubs, "the backslash of a name became a command"


def test_latex_escapes_notes():
    note = r"50% of A&B_c #1 {x} $5 ~ ^ \section"
    latex = Table("T", (), ("", "x"), (("a", "1"),), (note,)).as_latex()
    tail = latex.split(r"\raggedright")[-1].removesuffix(r"\end{table}").replace(r"\par", "")
    assert r"50\% of A\&B\_c \#1 \{x\} \$5" in tail
    assert not set(plain_latex(tail)) & set("\\&%$#_{}~^"), tail


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_table_has_every_format(table):
    rows = [row[1] for row in table.rows]
    for text in (str(table), table.as_html(), table.as_csv(), table.as_markdown()):
        assert all(cell in text for cell in rows)
    assert all(cell in plain_latex(table.as_latex()) for cell in rows)
    assert len({len(row) for row in body_cells(table.as_latex())}) == 1


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_facts_are_cells_in_html(table):
    # text inside a row but outside a cell is moved in front of the table by browsers
    cells = [cell.strip() for cell in Cells(table.as_html()).cells]
    for label, value in table.header:
        assert label in cells and value.strip() in cells


def test_csv_can_be_read_back(result):
    table = result.summary()
    rows = list(csv.reader(io.StringIO(table.as_csv())))
    assert rows == [list(table.columns), *(list(row) for row in table.rows)]
    table = Table("T", (), ("", 'a "b"'), (("x, y", "1\n2"),))
    assert list(csv.reader(io.StringIO(table.as_csv()))) == [["", 'a "b"'], ["x, y", "1\n2"]]


def test_rows_are_the_numbers_of_the_frame(worths, selection):
    for result, column in ((worths, "worth"), (selection, "win_rate")):
        frame, table = result.to_frame(), result.summary()
        assert [row[0] for row in table.rows] == list(frame.index)
        place = 1 if column == "worth" else 2
        np.testing.assert_allclose(
            [float(row[place]) for row in table.rows], frame[column], atol=5e-5
        )
        sets = [
            f"{low}-{high}" for low, high in zip(frame.rank_lower, frame.rank_upper, strict=True)
        ]
        assert [row[-1] for row in table.rows] == sets


def test_summary_states_the_guarantee():
    text = " ".join(str(university(0.5).summary(details=True)).split())
    for words in (
        "303",
        "respondent (replace one)",
        "permutohedron noise, net wins",
        "sensitivity 2 permutohedra",
        "seeded (do not publish)",
        "Epsilon: 0.5",
        "exp(0.5) = 1.65 times as likely",
        "10% for the dependence of answers",
    ):
        assert words in text, words
    assert "non-private" in " ".join(str(TABLES["non-private"]).split()[:60])


def test_row_level_epsilon_is_converted_for_respondents():
    model = pr.PrivateBTL(
        CEMS.comparisons, items=CEMS.items, respondent=None, max_rows=15, ties=True, design="public"
    )
    result = model.fit(0.5, rng=np.random.default_rng(1))
    text = " ".join(str(result.summary()).split())
    assert "a respondent with up to 15 comparisons has epsilon up to 7.5." in text


def test_a_table_keeps_nothing_but_text(worths):
    table = worths.summary()
    cells = [table.title, *table.columns, *table.notes]
    cells += [cell for row in (*table.rows, *table.header) for cell in row]
    assert all(type(cell) is str for cell in cells)
    with pytest.raises(AttributeError):
        table.title = "changed"


# --- figures: what is drawn, not how it looks ---


def test_plot_worth_draws_every_item(worths):
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.figure import Figure

    figure = worths.plot()
    assert isinstance(figure, Figure)
    (ax,) = figure.axes
    narrow, wide = [c for c in ax.collections if isinstance(c, LineCollection)]
    (points,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    # sampling-only and full intervals, one of each per item
    assert [len(line.get_segments()) for line in (narrow, wide)] == [4, 4]
    drawn = worths.to_frame()
    np.testing.assert_allclose(points.get_offsets()[:, 0], drawn["worth"])
    wide, narrow = (np.array(line.get_segments())[:, :, 0] for line in (wide, narrow))
    np.testing.assert_allclose(wide, drawn[["lower", "upper"]])
    assert (np.ptp(narrow, axis=1) < np.ptp(wide, axis=1)).all()
    assert [t.get_text() for t in ax.get_yticklabels()] == list(drawn.index)
    # a rank set per item, their heading, and the note on the noise
    assert [text.get_text() for text in ax.texts[4:]] == ["rank set", "seeded noise"]
    assert ax.get_title() == "Bradley-Terry worths (epsilon = 1 per row)"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["95% interval: sampling only", "sampling + privacy noise"]


@pytest.mark.parametrize("m", [2, 6, 300])
def test_the_heading_of_ranks_stands_above_the_first_one(m):
    best = np.linspace(1.0, -1.0, m)
    columns = {"worth": best, "sampling": 0.1, "lower": best - 0.3, "upper": best + 0.3}
    columns["std_err"] = 0.15
    drawn = pd.DataFrame(columns | {"rank_lower": 1.0, "rank_upper": float(m)})
    figure = plots.worth(drawn, 0.05, "Worths", "logit")
    figure.canvas.draw()
    first, heading = (figure.axes[0].texts[k].get_window_extent() for k in (0, -1))
    assert first.y1 < heading.y0 < first.y1 + first.height


def test_plot_win_rates_marks_the_selected(selection):
    from matplotlib.collections import PathCollection

    (ax,) = selection.plot().axes
    chosen, others = (c for c in ax.collections if isinstance(c, PathCollection))
    assert len(chosen.get_offsets()) == len(others.get_offsets()) == 2
    assert (chosen.get_facecolor() != others.get_facecolor()).any()
    assert [chosen.get_label(), others.get_label()] == ["selected (top 2)", "not selected"]
    assert ax.get_title().startswith("Top 2 by win rate (epsilon = ")


def test_plot_pairwise_writes_every_cell(worths):
    figure = worths.plot_pairwise()
    ax, bar = figure.axes
    # a number in every cell but the diagonal, and the note on the noise
    assert len(ax.images) == 1 and len(ax.texts) == 13
    order = list(worths.to_frame().index)
    values = ax.images[0].get_array()
    np.testing.assert_array_equal(np.diag(values), 0.5)
    np.testing.assert_allclose(values[0, 1], worths.probabilities().loc[order[0], order[1]])
    assert "row preferred" in bar.get_ylabel()
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("preferred item (row)", "compared with (column)")


def test_cells_of_which_nothing_is_known_are_grey_and_have_a_dash():
    values = np.array([[np.nan, 0.7, np.nan], [0.3, np.nan, 0.6], [np.nan, 0.4, np.nan]])
    frame = pd.DataFrame(values, index=list("abc"), columns=list("abc"))
    ax, bar = plots.pairwise(frame, "Fractions", "fraction").axes
    assert sorted(text.get_text() for text in ax.texts) == [
        "0.30", "0.40", "0.60", "0.70", "–", "–",
    ]  # fmt: skip
    assert bar.get_ylabel() == "fraction\n(grey: not available)"


def test_a_consensus_has_a_cell_for_each_rank_of_a_set():
    columns = {"rank": [1, 2, 3], "rank_lower": [1, 1, 3], "rank_upper": [2, 2, 3]}
    frame = pd.DataFrame(columns, index=["tea", "milk", "juice"])
    (ax,) = plots.consensus(frame, 0.05, "Consensus").axes
    edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    assert edges == [(0.5, 2.5), (0.5, 2.5), (2.5, 3.5)]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(names) == ["95% rank set", "consensus rank"]


def test_lines_have_contrast_on_white_and_groups_differ_without_colour():
    from matplotlib.colors import to_rgb

    for color in (*plots._COLOURS, *plots._GREYS, plots._AREA, plots._CHOSEN):
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)
        ]
        assert 1.05 / (np.dot(linear, [0.2126, 0.7152, 0.0722]) + 0.05) >= 3.0, color
    styles = [plots._style(number) for number in range(35)]
    assert len(set(styles)) == 35 and len({marker for _, marker in styles[:5]}) == 5


@pytest.mark.parametrize("kind", ["plot", "plot_worth", "plot_pairwise"])
def test_plots_draw_into_a_given_axes(worths, kind):
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert getattr(worths, kind)(ax=right) is figure
    assert not left.has_data() and right.has_data()
    part = Figure().subfigures(1, 2)[0]
    assert getattr(worths, kind)(ax=part.subplots()) is part.figure


NO_PYPLOT = """
import sys
import numpy as np
import privrank as pr
cems = pr.datasets.load_university()
model = pr.PrivateBTL(cems.comparisons, items=cems.items, respondent=None, ties=True,
                      design="public")
fit = model.fit(np.inf)
fit.summary().as_html()
assert not any(name.startswith("matplotlib") for name in sys.modules)
from matplotlib.figure import Figure
fit.plot(ax=Figure().subplots())
fit.plot_pairwise(ax=Figure().subplots())
print("matplotlib.pyplot" in sys.modules)
"""


def test_drawing_into_axes_leaves_pyplot_alone():
    # without axes a figure is made by pyplot, as statsmodels does, so that it shows by itself
    run = subprocess.run([sys.executable, "-c", NO_PYPLOT], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "False"


def test_markdown_shows_all_text_as_it_is():
    table = Table(
        "A *title*", (("Items:", "2"),), ("", "a|b"), (("x_1", "1\n2"),), ("One <note>.",)
    )
    assert table.as_markdown() == (
        "**A \\*title\\***\n\n|  |  |\n| --- | --- |\n| Items: | 2 |\n\n"
        "|  | a\\|b |\n| --- | ---: |\n| x\\_1 | 1 2 |\n\nNotes:\n\n\\[1\\] One \\<note\\>.\n"
    )


def test_columns_stand_below_each_other_whatever_the_letters():
    names = ("咖啡很好喝", "🍕", "Gru\u0308ße", "two\nlines", "plain")
    made = Table("T", (), ("", "coef"), tuple((name, "0.5") for name in names)).as_text()
    lines = [line for line in made.splitlines() if line.endswith("0.5")]
    assert len(lines) == len(names)
    wide = [sum(unicodedata.east_asian_width(c) in "WF" for c in line) for line in lines]
    none = [sum(unicodedata.combining(c) > 0 for c in line) for line in lines]
    assert len({len(line) + w - n for line, w, n in zip(lines, wide, none, strict=True)}) == 1


def test_titles_and_labels_end_where_half_width_axes_do():
    from matplotlib import pyplot

    fits = [university(epsilon) for epsilon in (0.5, 1.0)]
    figure, axes = pyplot.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained")
    for ax, drawn in zip(axes, (fits[0], pr.pool(fits, survey="same"), fits[1]), strict=True):
        drawn.plot(ax=ax)
    axes[2].set_title("Mine")
    figure.canvas.draw()
    for ax in axes:
        width = ax.get_window_extent().width
        for text in (ax.title, ax.xaxis.label):
            assert text.get_window_extent().width < 1.25 * width, text.get_text()
    # a user's title takes the place of ours, and stays where it was set before
    assert [axes[2].get_title(loc=loc) for loc in ("left", "center", "right")] == ["", "Mine", ""]
    fits[0].plot(ax=axes[2])
    assert axes[2].get_title() == "Mine"
    pyplot.close(figure)
