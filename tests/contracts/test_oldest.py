"""The oldest versions of all dependencies: one list, that of setup.cfg."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from setuptools.config.setupcfg import read_configuration

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "oldest.py"
LISTS = ["install_requires", "test", "docs"]


def constraints(root, *lists):
    """What the tool of a checkout prints under an interpreter that says it is the oldest."""
    code = (
        "import runpy, sys; sys.version_info = (3, 11); sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [sys.executable, "-c", code, root / "tools" / "oldest.py", *lists]
    return subprocess.run(command, capture_output=True, text=True)


def checkout(tmp_path, change):
    """A checkout with another setup.cfg."""
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOL, tmp_path / "tools")
    text = change((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    (tmp_path / "setup.cfg").write_text(text, encoding="utf-8")
    return tmp_path


def test_every_requirement_of_the_package_is_at_its_oldest_version():
    options = read_configuration(ROOT / "setup.cfg")["options"]
    extras = options["extras_require"]
    lines = [*options["install_requires"], *extras["test"], *extras["docs"], *extras["frames"]]
    required = [Requirement(line) for line in lines]
    told = dict(line.split("==") for line in constraints(ROOT, *LISTS).stdout.splitlines())
    assert told == {
        one.name: str(one.specifier).removeprefix(">=")
        for one in required
        if one.name != "privrank"
    }


def test_a_raised_floor_is_taken_up(tmp_path):
    tree = checkout(tmp_path, lambda text: text.replace("joblib>=1.3", "joblib>=1.4.2"))
    assert "joblib==1.4.2\n" in constraints(tree, *LISTS).stdout


@pytest.mark.parametrize("line", ["joblib", "joblib==1.3", "joblib>=1.3,<2", "joblib~=1.3"])
def test_a_requirement_without_an_oldest_version_is_refused(tmp_path, line):
    tree = checkout(tmp_path, lambda text: text.replace("joblib>=1.3", line))
    run = constraints(tree, *LISTS)
    assert run.returncode != 0 and f"must give '{line}' as package>=version" in run.stderr


def test_another_python_is_told_which_one_it_needs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 12, 1, "final", 0))
    monkeypatch.setattr(sys, "argv", [str(TOOL), *LISTS])
    with pytest.raises(SystemExit, match="for Python 3.11, and this is Python 3.12: make oldest P"):
        runpy.run_path(str(TOOL), run_name="__main__")
    assert capsys.readouterr().out == ""


def test_its_environment_is_ignored_and_cleaned():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    folder = re.search(r"^OLDEST = (\S+)$", makefile, flags=re.M)[1]
    assert f"/{folder}/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert re.search(r"^clean:\n\trm -rf .*\$\(OLDEST\)", makefile, flags=re.M)
