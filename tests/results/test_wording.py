"""The words of summaries are those of one file, which a script renews."""

import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))

import make_wording  # noqa: E402


@pytest.mark.filterwarnings("ignore::privrank.util.checks.PrivrankWarning")
def test_the_words_are_those_of_the_file():
    expected = (GOLDEN / "wording.txt").read_text(encoding="utf-8")
    assert make_wording.wording() == expected, "run tests/golden/make_wording.py and read the diff"
