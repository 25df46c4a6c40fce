"""Each sentence of a summary is whole, is under one key, and is said somewhere."""

import ast
from pathlib import Path

import pytest

import privrank
from privrank.results.claims import CLAIMS, said

ROOM = Path(privrank.__file__).parent / "results"


def written():
    """All texts that the modules of results are written with, but for the sentences themselves."""
    trees = [ast.parse(path.read_text()) for path in ROOM.glob("*.py") if path.stem != "claims"]
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {node.value for node in nodes if isinstance(node, ast.Constant)}


def test_every_key_is_used():
    assert len(CLAIMS) > 40
    assert CLAIMS.keys() - written() == set()


@pytest.mark.parametrize("key", CLAIMS)
def test_a_sentence_is_whole(key):
    sentence = CLAIMS[key]
    assert sentence[0] in "{" or sentence[0].isupper()
    assert sentence.endswith(".") and "  " not in sentence
    assert list(CLAIMS.values()).count(sentence) == 1


def test_a_sentence_is_said_if_it_holds():
    assert said("large delta", delta=0.1)[0].startswith("Warning: delta 0.1 is no smaller")
    assert said("large delta", False, delta=0.1) == said("large delta", "", delta=0.1) == []
