"""Every example that users read runs: docstrings and the README."""

import doctest
import importlib
import inspect
import re
import shutil
import sys
from functools import cached_property
from operator import attrgetter
from pathlib import Path

import pytest
from matplotlib import pyplot

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import website  # noqa: E402

import privrank  # noqa: E402

PACKAGE = ROOT / "privrank"
# pages whose blocks build on each other
BUILT_ON = ("docs/scale.md", "docs/local.md")
EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), flags=re.M)
)


def examples_of(module):
    """The examples of a module's docstrings, those of a class before those of its members."""
    finder = doctest.DocTestFinder()
    tests = finder.find(module)
    for kind in vars(module).values():
        if inspect.isclass(kind) and kind.__module__ == module.__name__:
            # doctest looks for properties, but not for those that are kept
            for name, value in vars(kind).items():
                if isinstance(value, cached_property):
                    place = f"{module.__name__}.{kind.__qualname__}.{name}"
                    tests += finder.find(value, place, module, vars(module))
    return sorted(tests)


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_examples_run(name):
    # frames end the line of their index with spaces
    runner, defined = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), {}
    for test in examples_of(importlib.import_module(name)):
        # what a class's own example defines, those of its members go on with
        test.globs |= defined.get(test.name.rpartition(".")[0], {})
        runner.run(test, clear_globs=False)
        defined[test.name] = test.globs
    pyplot.close("all")
    assert runner.tries > 0 and runner.failures == 0


def members_of(kind):
    """The public methods and properties of a class by name, as the package defines them."""
    found = {}
    for base in kind.__mro__:
        if base.__module__.startswith("privrank"):
            for name, value in vars(base).items():
                inner = [getattr(value, of, None) for of in ("__func__", "fget", "func")]
                function = next(filter(None, inner), value)
                if not name.startswith("_") and inspect.isfunction(function):
                    found.setdefault(name, function)
    return found


def documented():
    """The docstrings of all that is public, by the place where it is defined."""
    shown = [value for objects in website.public().values() for value in objects.values()]
    classes = [value for value in shown if inspect.isclass(value)]
    objects = classes + [value for value in shown if inspect.isroutine(value)]
    objects += [member for kind in classes for member in members_of(kind).values()]
    return {f"{one.__module__}.{one.__qualname__}": inspect.getdoc(one) or "" for one in objects}


def test_every_public_object_has_an_example():
    parser, docstrings = doctest.DocTestParser(), documented()
    assert len(docstrings) > 320
    assert [name for name, text in docstrings.items() if not parser.get_examples(text)] == []


def test_what_a_docstring_leads_to_exists():
    led = set()
    for text in documented().values():
        for section in re.findall(r"^See Also\n-+\n(.*?)(?:\n\n|\Z)", text, flags=re.M | re.S):
            led |= set(re.findall(r"^privrank\.(\S+) : [A-Z]", section, flags=re.M))
            assert section.count("\n") + 1 == len(re.findall(r"^privrank\.\S+ :", section, re.M))
    assert len(led) > 40
    for name in led:
        assert attrgetter(name)(privrank) is not None


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
def test_code_of_the_first_pages_runs(capsys, monkeypatch, tmp_path):
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for page in (
        "README.md",
        "docs/index.md",
        "docs/quick-start.md",
        "docs/data-in.md",
        "docs/budget.md",
        "docs/designs.md",
        "docs/reports.md",
        "docs/pooling.md",
        "docs/scale.md",
        "docs/weights.md",
        "docs/coming-from.md",
        "docs/local.md",
    ):
        blocks = re.findall(
            r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S
        )
        assert blocks
        names: dict[str, object] = {}
        for block in blocks:
            exec(compile(block, page, "exec"), names if page in BUILT_ON else {})
    shown = capsys.readouterr().out
    assert "Private Bradley-Terry Results" in shown
    assert "Private Top-2 Results" in shown
    assert "Privacy budget" in shown
    assert "the same worths from 4 engines: True" in shown
    assert "Crime rate" in (tmp_path / "fears.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "number"),
    [("after-the-release", 2), ("weights", 2), ("contests", 2), ("assigned-sets", 5)],
)
def test_a_page_shows_what_its_code_prints(name, number, capsys):
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, flags=re.S)
    assert len(blocks) == page.count("```python") == number
    for code, shown in blocks:
        exec(compile(code, name, "exec"), {})
        printed = capsys.readouterr().out
        words = [re.findall(r"[A-Za-z_]\w*", text) for text in (shown, printed)]
        assert words[0] == words[1]
        numbers = [re.findall(r"\d+(?:\.\d+)?", text) for text in (shown, printed)]
        stated, found = ([float(number) for number in row] for row in numbers)
        assert stated == pytest.approx(found, rel=1e-3, abs=2e-3)


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_pages_name_files_that_exist(page):
    path = ROOT / page if (ROOT / page).exists() else ROOT / "docs" / page
    named = re.findall(
        r"`((?:privrank|tests|data|docs|tools|validation)/[\w./]+)`",
        path.read_text(encoding="utf-8"),
    )
    for name in named:
        assert (ROOT / name).exists(), name
