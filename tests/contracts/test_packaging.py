"""What is shipped, and whether the instructions in the README are true."""

import ast
import configparser
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import privrank

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SOURCES = ["LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.cfg"]

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def blocks(language):
    """Fenced blocks of the README in one language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.S | re.M)
    assert found, f"the README has no {language} block"
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from a copy of the tree, so that nothing is written into the tree itself."""
    tree = tmp_path_factory.mktemp("tree")
    for name in SOURCES:
        shutil.copy(ROOT / name, tree)
    for name in ("privrank", "data", "LICENSES"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run = subprocess.run(
        [*command, "--disable-pip-version-check", "--wheel-dir", tree / "dist", tree],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (path,) = (tree / "dist").glob("privrank-*.whl")
    return path


def test_every_package_of_the_tree_is_listed():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = config["options"]["packages"].split()
    code = [p.parent.relative_to(ROOT) for p in (ROOT / "privrank").rglob("__init__.py")]
    in_tree = {".".join(folder.parts) for folder in code} | {"privrank.data"}
    assert len(listed) == len(set(listed))
    assert set(listed) == in_tree


def imported(code):
    """The packages that a script imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"privrank"}


def declared(extra):
    """The packages that are declared for an extra, those of the package itself included."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = config["options.extras_require"]
    lines = config["options"]["install_requires"] + extras[extra]
    for other in re.findall(r"^privrank\[(\w+)\]", extras[extra], flags=re.M):
        lines += extras[other]
    names = re.findall(r"^([A-Za-z][\w-]*)(?=[\[>])", lines, flags=re.M)
    return {name.replace("-", "_") for name in names} - {"privrank"}


ALONG = {"jupyter_client": "nbclient", "pygments": "nbconvert", "docutils": "sphinx"}
"""What a declared package brings along."""


@pytest.mark.parametrize(
    ("extra", "pattern"),
    [
        ("docs", "vignettes/*.py"),
        ("docs", "tools/vignettes.py"),
        ("docs", "tools/latex.py"),
        ("bench", "validation/*.py"),
        ("site", "tools/website.py"),
        ("site", "docs/conf.py"),
    ],
)
def test_every_import_of_a_page_and_its_builder_is_in_its_extra(extra, pattern):
    scripts = sorted(ROOT.glob(pattern))
    assert scripts
    for script in scripts:
        beside = {path.stem for path in script.parent.glob("*.py")}
        wanted = imported(script.read_text(encoding="utf-8")) - beside
        lacking = {ALONG.get(name, name) for name in wanted} - declared(extra)
        assert not lacking, f"{script.name} imports them: add them to [{extra}]"


def test_code_of_the_pages_imports_what_the_package_needs():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = page.read_text("utf-8")
        # a page that needs another extra names it
        extras = declared("docs") | (declared("frames") if "privrank[frames]" in text else set())
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M):
            assert imported(block) <= extras, page


def test_every_module_is_in_a_package():
    folders = {path.parent for path in (ROOT / "privrank").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_wheel_holds_every_module_and_every_survey(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "privrank").rglob("*.py")}
    data = {f"privrank/data/{p.name}" for p in (ROOT / "data").iterdir() if p.is_file()}
    assert "privrank/data/university.csv" in data
    assert modules | data | {"privrank/py.typed"} <= names
    templates = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "privrank/templates").iterdir()
    }
    assert templates and templates <= names
    folders = {name.split("/")[0] for name in names}
    assert folders == {"privrank", f"privrank-{privrank.__version__}.dist-info"}


def test_wheel_names_every_licence_and_holds_its_text(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    (expression,) = re.findall(
        r"^License-Expression: (.+)$", archive.read(metadata).decode(), flags=re.M
    )
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    assert expression in page and "Home-page" not in archive.read(metadata).decode()
    texts = [ROOT / "LICENSE", *(ROOT / "LICENSES").glob("*.txt")]
    assert len(texts) == 3
    for path in texts:
        place = metadata.replace("METADATA", f"licenses/{path.relative_to(ROOT).as_posix()}")
        assert archive.read(place) == path.read_bytes()


def test_wheel_loads_a_survey_away_from_the_checkout(wheel, tmp_path):
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    empty = tmp_path / "empty"
    empty.mkdir()
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import privrank.datasets\n"
        "print(privrank.__file__, len(privrank.datasets.load_university().students), sep='\\n')"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, site], cwd=empty, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    origin, students = run.stdout.split("\n")[:2]
    assert Path(origin).is_relative_to(site)
    assert students == "303"


def test_version_is_said_once():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, flags=re.M) == [privrank.__version__]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, flags=re.M)
    assert newest is not None and newest[1] == privrank.__version__


def test_a_version_that_is_not_out_has_no_date():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = "(unreleased)" in re.search(r"^## .+$", changelog, flags=re.M)[0]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert unreleased != bool(re.search(r"^date-released:", citation, flags=re.M))


def test_hooks_run_what_exists():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"^ +entry: (.+)$", hooks, flags=re.M)
    assert {entry.split()[0] for entry in entries} == {"ruff", "mypy", "python"}
    files = re.findall(r"\S+\.py\b(?!\$)", " ".join(entries))
    assert len(files) > 1 and all((ROOT / name).exists() for name in files)


def test_the_source_archive_holds_what_a_contributor_reads():
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split()
    for path in ROOT.glob("*.md"):
        assert path.name in manifest, path.name
    assert {"paper", "docs", "tests"} <= set(manifest)


def test_the_suite_finds_what_it_reads_in_the_source_archive():
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split()
    shipped = {*manifest, "privrank", "setup.cfg", "pyproject.toml", "MANIFEST.in"}
    read = set()
    for path in (ROOT / "tests").rglob("*.py"):
        read |= set(re.findall(r'\bROOT / "([\w.-]+)', path.read_text(encoding="utf-8")))
    assert {"docs", ".gitignore", ".pre-commit-config.yaml"} <= read
    assert read <= shipped, "add them to MANIFEST.in"


def test_the_versions_of_python_are_those_of_the_matrix():
    workflow = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    tried = re.findall(r'"(3\.\d+)"', re.search(r"^ +python: \[(.+)\]$", workflow, flags=re.M)[1])
    config = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    assert re.findall(r"Language :: Python :: (3\.\d+)$", config, flags=re.M) == tried
    assert f"python_requires = >={tried[0]}" in config


def test_no_address_is_a_placeholder():
    for path in ("setup.cfg", "pyproject.toml", "CITATION.cff", "README.md", "docs/conf.py"):
        assert not re.search(r"https?://(\w+\.)?example", (ROOT / path).read_text("utf-8")), path


def test_every_version_in_the_changelog_starts_with_privacy():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for entry in re.split(r"^## ", changelog, flags=re.M)[1:]:
        headings = re.findall(r"^### (.+)$", entry, flags=re.M)
        assert "Privacy" not in headings[1:], f"Privacy comes first in {entry.split()[0]}"


def test_readme_python_is_valid_and_uses_public_names():
    for block in blocks("python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.value.id != "pr" or hasattr(privrank, node.attr), node.attr


def test_links_of_the_readme_lead_to_files_and_every_vignette_has_one():
    links = re.findall(r"\]\(([^)\s#]+)(?:#[\w-]+)?\)", README)
    assert [link for link in links if not (ROOT / link).is_file()] == []
    scripts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "vignettes").glob("*.py")}
    assert scripts | {"docs/compared.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md"} <= set(links)


def test_readme_commands_are_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE, flags=re.M))
    commands = set(re.findall(r"^make ([a-z]+)", "\n".join(blocks("sh")), flags=re.M))
    assert commands == {"report", "test"}
    assert set(re.findall(r"`make ([a-z]+)", README)) <= targets


def test_readme_lines_without_make_are_what_make_does():
    lines = "\n".join(blocks("sh"))
    for command in ("tools/report.py --out report", '".[docs]"'):
        assert command in lines and command in MAKEFILE


@needs_make
def test_help_names_every_target():
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, flags=re.M)
    assert phony is not None
    run = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(re.findall(r"^make ([\w-]+)", run.stdout, flags=re.M)) == set(phony[1].split()) - {
        "help"
    }


NO_VENV = 'case "$*" in *ensurepip*) exit 1;; esac'
OLD = 'case "$*" in *version_info*) exit 1;; --version) echo Python 3.9.18;; esac'


@needs_make
@pytest.mark.parametrize(
    ("interpreter", "sentence"),
    [
        (None, "there is no ./python3 here"),
        (OLD, "but ./python3 is Python 3.9.18"),
        (NO_VENV, "sudo apt install python3-venv"),
    ],
)
@pytest.mark.parametrize("target", ["report", "test"])
def test_make_says_in_one_line_what_python_it_needs(tmp_path, interpreter, sentence, target):
    for name in ("Makefile", "setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    if interpreter is not None:
        fake = tmp_path / "python3"
        fake.write_text(f"#!/bin/sh\n{interpreter}\nexit 0\n", encoding="utf-8")
        fake.chmod(0o755)
    run = subprocess.run(
        ["make", "-s", target, "PYTHON=./python3"], cwd=tmp_path, capture_output=True, text=True
    )
    said = [line for line in run.stderr.splitlines() if not line.startswith("make")]
    assert run.returncode != 0 and run.stdout == ""
    assert len(said) == 1 and sentence in said[0]
    assert not (tmp_path / ".venv").exists()
