"""Each sentence of a summary is whole, is under one key, and is said somewhere."""

import ast
from pathlib import Path

import pytest

import privrank
from privrank.results.claims import CLAIMS, LIMITS, WARNINGS, said, warned

ROOM = Path(privrank.__file__).parent / "results"
TEXTS = CLAIMS | LIMITS | WARNINGS


def written():
    """All texts that the modules of results are written with, but for the sentences themselves."""
    trees = [ast.parse(path.read_text()) for path in ROOM.glob("*.py") if path.stem != "claims"]
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {node.value for node in nodes if isinstance(node, ast.Constant)}


# Keys that are put together: how, and of what.
JOINED = {
    *(f"{key}, rows" for key in ("no item identified", "rough counts")),
    *(f"equal worths{among}" for among in (", components", ", identified")),
    *(f"{key} and lot" for key in ("noise", "responses")),
    *(f"bit {decided}" for decided in ("rejected", "not rejected")),
    *(f"{which} {what}" for which in ("pooled", "mean") for what in ("worths", "scores")),
    "assumptions",
}


def test_every_key_is_used():
    assert len(CLAIMS) > 40
    assert JOINED <= TEXTS.keys()
    assert TEXTS.keys() - JOINED - written() == set()


def test_a_key_is_in_one_store():
    assert len(TEXTS) == len(CLAIMS) + len(LIMITS) + len(WARNINGS)


@pytest.mark.parametrize("key", TEXTS)
def test_a_sentence_is_whole(key):
    sentence = TEXTS[key]
    assert sentence[0] in "{1" or sentence[0].isupper() or sentence.startswith("pair_counts=")
    assert sentence.endswith((".", "{alternative}")) and "  " not in sentence


def test_a_sentence_is_said_if_it_holds():
    assert warned("large delta", delta=0.1, nobs=20)[0].startswith("Warning: Delta 0.1 is not")
    assert warned("large delta", False, delta=0.1) == warned("large delta", "", delta=0.1) == []
    assert said("bit", None) == said("no limit", 0) == []
