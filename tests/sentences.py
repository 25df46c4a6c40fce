"""What a refusal has to be: at most three short sentences that name argument, rule and remedy."""

import linecache
import re
import traceback
from pathlib import Path

import pytest

import privrank as pr

HOME = str(Path(pr.__file__).parent)


def refused_in_one_sentence(call, kinds, words):
    """Check that a call raises one of these kinds, with such a message; return what it raised."""
    with pytest.raises(kinds) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    assert len(re.findall(r"[.?!](?=\s+[A-Z])", message)) <= 2
    for word in words:
        assert word in message
    return caught.value


def fault(error):
    """Say what is wrong with a refusal, None if nothing is."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(last.filename, last.lineno).strip()
    text = str(error)
    if not last.filename.startswith(HOME) or not line.startswith("raise"):
        return f"{type(error).__name__} of {last.filename}: {text}"
    return None if "\n" not in text and text.endswith(".") else text
