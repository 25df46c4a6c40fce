"""Comparisons of a few respondents, encoded as the tests of several mechanisms enumerate them."""

import pandas as pd

from privrank.encode.comparisons import ComparisonColumns, encode_comparisons


def frame_of(units):
    """A frame of respondents, each a sequence of ((item, item), outcome)."""
    rows = [(who, *pair, y) for who, unit in enumerate(units) for pair, y in unit]
    return pd.DataFrame(rows, columns=["who", "item1", "item2", "outcome"])


def encode(units, *, respondent="who", **facts):
    """The counts of a private survey of three items."""
    columns = ComparisonColumns("item1", "item2", "outcome", respondent)
    return encode_comparisons(
        frame_of(units), columns, items=["a", "b", "c"], design="private", **facts
    )
