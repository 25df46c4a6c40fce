"""Every example that users read runs: docstrings and the README."""

import doctest
import importlib
import re
import shutil
from pathlib import Path

import pytest

import privrank

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "privrank"
EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), flags=re.M)
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_examples_run(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0 and failures == 0


def test_public_classes_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    models = (privrank.PrivateBTL, privrank.PrivateTopK, privrank.Mallows, privrank.PlackettLuce)
    for public in (*models, privrank.Budget, privrank.as_comparisons, privrank.as_rankings):
        assert any(test.examples for test in finder.find(public)), public.__name__


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
def test_code_of_the_first_pages_runs(capsys, monkeypatch, tmp_path):
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for page in (
        "README.md",
        "docs/index.md",
        "docs/scale.md",
        "docs/weights.md",
        "docs/coming-from.md",
        "docs/after-the-release.md",
    ):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.S)
        assert blocks
        names: dict[str, object] = {}
        for block in blocks:
            # blocks of one page build on each other
            exec(compile(block, page, "exec"), names if page == "docs/scale.md" else {})
    shown = capsys.readouterr().out
    assert "Private Bradley-Terry Results" in shown
    assert "Private Top-2 Results" in shown
    assert "Privacy budget" in shown
    assert "the same worths from 4 engines: True" in shown
    assert "drawn from a fitted model, epsilon = 1 per respondent" in shown
    assert "Crime rate" in (tmp_path / "fears.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_pages_name_files_that_exist(page):
    path = ROOT / page if (ROOT / page).exists() else ROOT / "docs" / page
    named = re.findall(
        r"`((?:privrank|tests|data|docs|tools|validation)/[\w./]+)`", path.read_text()
    )
    for name in named:
        assert (ROOT / name).exists(), name
