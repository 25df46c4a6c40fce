"""Tables of studies are what the present code finds: the first replicate of each is found again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "validation" / "fingerprints"
RECORDS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
SCRIPTS = sorted({record["script"] for record in RECORDS.values()})


def found(script, mode):
    return subprocess.run(
        [sys.executable, str(ROOT / "validation" / f"{script}.py")],
        env=os.environ | {"PRIVRANK_FINGERPRINTS": mode, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(ROOT / "validation"))
    import study

    yield study
    sys.path.remove(str(ROOT / "validation"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_first_cell_of_each_study_is_as_it_was(script, study):
    done = found(script, "first")
    made = {record["versions"] for record in RECORDS.values() if record["script"] == script}
    if made == {study.versions()}:  # on other versions numbers may differ
        assert done.returncode == 0, done.stderr[-500:]
    assert "Traceback" not in done.stderr


def test_every_table_of_a_study_has_a_fingerprint_or_says_that_it_is_stale():
    """But for times, and for faults that are searched for at random or by ending processes."""
    others = {"README", "fuzz", "ledger_kills", "local_yll_times", "mutants"}
    pages = {path.stem: path.read_text() for path in FOLDER.parent.glob("*.md")}
    fresh = {name for name, page in pages.items() if "**Stale**" not in page}
    assert fresh - others == set(RECORDS)


def test_a_fingerprint_belongs_to_a_table_and_its_page_does_not_say_stale(study):
    for name, record in RECORDS.items():
        page = (ROOT / "docs" / "validation" / f"{name}.md").read_text()
        assert f"validation/{record['script']}.py" in page and "**Stale**" not in page
        assert f", {record['date']}, " in page  # a page that was run again has a new fingerprint
        assert record["first"]


def test_a_difference_is_seen_and_a_missing_number_is_one(study):
    one = study.numbers({"a": np.array([1.0, np.nan]), "b": ("x", None, True)})
    assert one == ["a", 1.0, pytest.approx(np.nan, nan_ok=True), "b", "x", None, 1.0]
    assert study._alike(one, [*one])
    assert study._alike([1.0], [1.0 + 1e-8]) and not study._alike([1.0], [1.0 + 1e-5])
    assert not study._alike([1.0, 2.0], [1.0]) and not study._alike(["a"], ["b"])
    assert study.spaced([*range(85)])[:2] == [0, 3] and len(study.spaced([*range(85)])) == 29
    assert study.spaced([1.0]) == [1.0] and study.spaced([]) == []
    assert not study._alike([1.0], [np.nan]) and study._alike([np.inf], [np.inf])
