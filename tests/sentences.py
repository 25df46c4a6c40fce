"""What a refusal has to be: one sentence, with the words that name argument, rule and remedy."""

import re

import pytest


def refused_in_one_sentence(call, kinds, words):
    """Check that a call raises one of these kinds, with such a message; return what it raised."""
    with pytest.raises(kinds) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    assert len(re.findall(r"[.?!](?=\s+[A-Z])", message)) == 0
    for word in words:
        assert word in message
    return caught.value
