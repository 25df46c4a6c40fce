"""The changes of `make mutants`: they are Python, one of them is found, reasons are of changes."""

import json
import os
import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import mutations  # noqa: E402

TOOL = (ROOT / "tools" / "mutants.py").read_text(encoding="utf-8")
FILES = sorted(
    path
    for subpackage in ("privacy", "encode", "mechanisms")
    for path in (ROOT / "privrank" / subpackage).glob("[a-z]*.py")
)
MUTANTS = [one for path in FILES for one in mutations.mutants_of(path, path.parent.name)]


def changes(text, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(text, encoding="utf-8")
    return {one.text() for one in mutations.mutants_of(path, "noise")}


def test_every_file_of_the_trusted_subpackages_is_in_an_area_of_the_tool():
    lacking = [path for path in FILES if f"{path.parent.name}/{path.stem}" not in TOOL]
    assert lacking == [] and len(MUTANTS) > 5_000


def test_changes_are_python_on_as_many_lines():
    for one in random.Random(1).sample(MUTANTS, 60):
        text = one.text()
        compile(text, str(one.path), "exec")
        assert text.count("\n") == one.path.read_text(encoding="utf-8").count("\n")
        assert text != one.path.read_text(encoding="utf-8") and one.lines[0] <= one.line


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("x = a < b\n", {"x = a <= b\n", "x = a >= b\n"}),
        ("x = a + 2\n", {"x = a - 2\n", "x = a + 3\n", "x = a + 1\n"}),
        ("if not a:\n    raise E(3)\n", {"if a:\n    raise E(3)\n", "if not a:\n    pass\n",
                                         "if (not (not a)):\n    raise E(3)\n"}),
        ("x = min(a, b)\n", {"x = max(a, b)\n"}),
        ("x = a and b\n", {"x = a or b\n"}),
        ("f(a)\n", {"pass\n"}),
        ("x = f'{a + 1}'\nassert a > 1\n", set()),
    ],
)  # fmt: skip
def test_what_is_changed(text, changed, tmp_path):
    assert changes(text, tmp_path) == changed


def test_reasons_are_of_changes_that_there_are():
    reasons = json.loads((ROOT / "tools" / "mutants.json").read_text(encoding="utf-8"))
    assert reasons.keys() <= {one.key for one in MUTANTS}
    assert all(len(reason) > 20 and reason.endswith(".") for reason in reasons.values())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_change_is_exchanged_while_the_tests_run():
    """The code of a function that was imported long ago is another one, in another process."""
    import mutants

    from privrank.privacy.sensitivity import UnitSensitivity

    (change,) = (
        one
        for one in MUTANTS
        if one.code == "return 4 * sensitivity * self.weight" and one.change == "4 -> 3"
    )
    if (child := os.fork()) == 0:
        done = mutants.exchanged(change) and UnitSensitivity(3, 2, True, "replace").net_l1 == 6
        os._exit(not done)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert UnitSensitivity(3, 2, True, "replace").net_l1 == 8
