"""The documentation site leaves nothing out, and its pages lead to each other; Sphinx does not run.

`make docs` builds it, and follows every link of what was built.
"""

import inspect
import os
import posixpath
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import privrank

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import figures  # noqa: E402
import website  # noqa: E402

import vignettes  # noqa: E402

TREE = re.compile(r"(?:```\{toctree\}|\.\. toctree::)\n(.*?)(?:```|\Z)", flags=re.S)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All that Sphinx reads, tutorials not run: texts by name of the page."""
    folder = tmp_path_factory.mktemp("site") / "source"
    website.assemble(folder)
    pages = [path for path in folder.rglob("*") if path.suffix in (".md", ".rst")]
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in pages
    }


def test_every_page_vignette_and_public_name_is_on_the_site(site):
    docs = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.with_suffix("").as_posix() for path in docs} <= set(site)
    assert {f"tutorials/{path.stem}" for path in (ROOT / "vignettes").glob("*.py")} <= set(site)
    shown = [value for objects in website.public().values() for value in objects.values()]
    for name in privrank.__all__:
        value = getattr(privrank, name)
        inner = getattr(value, "__all__", None)
        for one in [getattr(value, other) for other in inner] if inner else [value]:
            assert any(one is known for known in shown), name
    assert all(f"api/{name}" in site for objects in website.public().values() for name in objects)


def test_every_page_is_in_the_side_bar_once(site):
    named = []
    for text in site.values():
        for tree in TREE.findall(text):
            lines = [line.strip() for line in tree.splitlines()]
            named += [website.named_in(line) for line in lines if line and line[0] != ":"]
    assert len(named) == len(set(named))
    assert set(named) == set(site) - {"index"}


def test_every_link_between_pages_leads_somewhere(site):
    for name, text in site.items():
        for _, target in website.LINK.findall(website.FENCED.sub("", text)):
            path = target.partition("#")[0]
            if path and not re.match(r"\w+:", path):
                place = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), path))
                known = re.sub(r"^/|\.(md|rst)$", "", place) in site
                # what is no page is copied with the folder and handed out as it is
                known |= place.endswith(".json") and (ROOT / "docs" / place[1:]).is_file()
                assert known, f"{name}: {target}"


def test_a_tutorial_that_fails_leaves_no_page_and_no_link(tmp_path, monkeypatch):
    def execute(script):
        if script.stem == "leaderboard":
            raise vignettes.Failure(f"{script}: a cell raised ValueError: no bread")
        return SimpleNamespace(cells=[])

    monkeypatch.setattr(website, "execute", execute)
    made = tmp_path / "made"
    made.mkdir()
    for old in ("leaderboard", "gone"):
        (made / f"{old}.md").write_text("of an earlier run")
        os.utime(made / f"{old}.md", (0, 0))
    (line,) = website.tutorials(made)
    assert line.endswith("vignettes/leaderboard.py: a cell raised ValueError: no bread")
    count = len(list((ROOT / "vignettes").glob("*.py")))
    assert len(list(made.glob("*.md"))) == count - 1 and not (made / "gone.md").exists()
    website.assemble(tmp_path / "source", made)
    for path in (tmp_path / "source").rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\(\S*tutorials/leaderboard|^/tutorials/leaderboard$", text, re.M), (
            path
        )
    assert "/tutorials/local" in (tmp_path / "source/tutorials/index.md").read_text(
        encoding="utf-8"
    )


def test_without_sphinx_no_page_and_no_link_is_claimed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(website.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="needs Sphinx"):
        website.main(["--out", str(tmp_path / "site")])
    assert "links" not in capsys.readouterr().out and not (tmp_path / "site").exists()


def test_the_side_bar_has_eight_groups_and_about_twenty_lines(site):
    captions = re.findall(r"^:caption: (.+)$", site["index"], flags=re.M)
    assert captions == list(website.GROUPS) and len(captions) == 8
    assert sum(len(lines) for lines in website.GROUPS.values()) <= 25


def test_a_class_has_a_table_of_its_methods(site):
    page = site["api/privrank.BTLResult"]
    table, _, directive = page.partition(".. autoclass::")
    assert directive and table.index("BTLResult.params`") < table.index("BTLResult.pairwise`")
    assert "   * - :obj:`~privrank.BTLResult.predict`\n     - " in table
    assert not any(website.MEMBER.search(text.partition(".. auto")[0]) for text in site.values())


def test_every_public_name_has_a_task():
    assert "Other" not in website.public()


def test_the_page_of_a_protocol_leads_to_what_it_inherits(site):
    page = site["api/privrank.local.Comparisons"]
    # examples of a base are of another protocol
    assert ":inherited-members: Protocol,Asking,Power\n" in page
    assert "`~privrank.local.protocols.Protocol.tally`" in page
    assert "`~privrank.local.protocols.Asking.table`" in page
    assert "Protocol.question" not in page, "Asking has its own"
    assert "api/privrank.local.protocols.Protocol" in site
    assert ":inherited-members:\n" in site["api/privrank.PrivateBTL"]


@pytest.mark.parametrize("name", [one for one in privrank.power.__all__ if one.endswith("Power")])
def test_the_page_of_a_plan_has_examples_of_no_other(site, name):
    page = site[f"api/privrank.power.{name}"]
    assert ":inherited-members: Protocol,Asking,Power\n" in page
    for method in ("power", "solve_power", "plot_power"):
        assert f"`~privrank.power.base.Power.{method}`" in page
    assert ">>> design = pr.power.UniformityPower" in inspect.getdoc(website.Power)
    assert "api/privrank.power.base.Power" in site


def test_names_of_files_become_links():
    pages = website.sources()
    text = "`docs/models.md` and `vignettes/local.py`, [files](../CONTRIBUTING.md), `setup.cfg`"
    assert website.relinked(text, "validation/README", pages) == (
        "[`docs/models.md`](../models.md) and [`vignettes/local.py`](../tutorials/local.md), "
        "[files](../CONTRIBUTING.md), `setup.cfg`"
    )
    for code in ("```python\nrows[0](`docs/models.md`)\n```", "`````text\nrows[0](1)\n`````"):
        assert website.relinked(code, "tutorials/local", pages) == code
    assert "[files](contributing.md)" in website.relinked(text, "privacy", pages)


def test_columns_of_numbers_are_aligned_and_empty_ones_are_left_out():
    table = "| fit | n | note | of `a\\|b` |\n| --- | --- | --- | --- |\n"
    table += "| one | 1,200 |  | x |\n| two | .5 |  |  |\n"
    assert website.aligned(f"Text.\n\n{table}\nMore.\n") == (
        "Text.\n\n| fit | n | of `a\\|b` |\n| --- | ---: | --- |\n"
        "| one | 1,200 | x |\n| two | .5 |  |\n\nMore.\n"
    )
    assert website.aligned(f"```text\n{table}```\n") == f"```text\n{table}```\n"


def test_every_figure_of_a_tutorial_has_a_caption_of_its_own():
    scripts = sorted((ROOT / "vignettes").glob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in scripts]
    drawn = sum(len(re.findall(r"^figure = ", text, flags=re.M)) for text in texts)
    captions = [caption for text in texts for caption in website.CAPTION.findall(text)]
    assert drawn == len(captions) == len(set(captions)) > 15


def code_of(path):
    """Lines of code of a tutorial, or of the blocks of Python of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blocks = re.findall(r"^( *)```py\w*\n(.*?)^\1```", text, flags=re.S | re.M)
        return [line for _, block in blocks for line in block.splitlines()]
    cells = re.split(r"^(?=# %%)", text, flags=re.M)
    return [line for cell in cells if "[markdown]" not in cell for line in cell.splitlines()]


def test_code_of_tutorials_and_pages_fits_their_columns():
    pages = [*(ROOT / "vignettes").glob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    code = {path.relative_to(ROOT): code_of(path) for path in pages}
    assert sum(map(len, code.values())) > 1000
    assert [(path, line) for path, lines in code.items() for line in lines if len(line) > 79] == []


def test_the_gallery_leads_to_the_section_of_a_figure(tmp_path):
    code = "`````python\n# # No heading\n`````\n"
    text = f"# A page\n\n{code}\n## The fit: first\n\n{code}\n![Six worths](page-1.png)\n"
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    grid = website.gallery(tmp_path)
    assert ":::{figure} tutorials/page-1.png\n:alt: Six worths\n" in grid
    assert ":target: tutorials/page.html#the-fit-first\n\nSix worths\n:::" in grid


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="gone.html">x</a>', "no file"),
        ('<a href="#gone">x</a>', "no place"),
        ('<script src="https://a.net/x.js"></script>', "loads"),
        ('<img src="gone.png">', "no file"),
    ],
)
def test_a_bad_link_is_found(tmp_path, page, fault):
    good = '<p id="here"><a href="#here">x</a><a href="https://a.net">y</a></p>'
    assert website.faults(tmp_path) == [f"{tmp_path / 'index.html'} was not built"]
    (tmp_path / "index.html").write_text(good, encoding="utf-8")
    assert website.faults(tmp_path) == []
    (tmp_path / "index.html").write_text(good + page, encoding="utf-8")
    (found,) = website.faults(tmp_path)
    assert fault in found


def test_the_table_of_the_readme_is_what_a_summary_prints():
    table = (figures.FIGURES / "worths.txt").read_text(encoding="utf-8")
    shown = figures.BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown is not None and shown[0] == table, "run python tools/figures.py"
    words = [re.findall(r"[A-Za-z']+", text) for text in (table, str(figures.fitted().summary()))]
    assert words[0] == words[1], "run python tools/figures.py"
    assert (figures.FIGURES / "worths.png").stat().st_size < 100_000
