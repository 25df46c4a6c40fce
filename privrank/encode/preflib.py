"""Rankings from PrefLib's text files. Public data in, a rankings frame out; nothing is released."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode.rankingforms import ranks_of

__all__ = ["read_preflib"]

ENDINGS = (".soc", ".soi", ".toc", ".toi")

MOST_VOTERS = 10**8
"""More rankings than that are no survey, and would not fit into memory"""

_GROUP = re.compile(r"\{([\d,\s]*)\}|(\d+)")
_ORDER = re.compile(r"(?:(?:\{\s*\d+(?:\s*,\s*\d+)*\s*\}|\d+)(?:\s*,\s*(?!$)|$))*")


def read_preflib(path: str | Path) -> pd.DataFrame:
    r"""Read a file of rankings in PrefLib's text format.

    Parameters
    ----------
    path : str or Path
        A file that ends in ``.soc`` or ``.toc`` (complete orders, strict or with ties) or ``.soi``
        or ``.toi`` (incomplete ones), in the format with a header of lines that begin with ``#``.

    Returns
    -------
    pandas.DataFrame
        One row per voter, those of one order next to each other as in the file, and one column per
        alternative, named as in the file, holding its rank. Alternatives that share a place have
        the same rank (1, 2, 2, 4); one that a voter leaves out has NaN. The ranks of ``.soc`` files
        are int64, others float64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    TypeError, ValueError
        In one sentence, for a path that is none, a file of another kind, or one that contradicts
        itself.

    Notes
    -----
    Rankings with ties or missing items go to `PrivateRankAggregation` with ``ties=True`` and
    ``missing=``, or through `as_rankings`, whose notes say which tests allow it, to be completed at
    random.

    References
    ----------
    Mattei and Walsh (2013), PrefLib: a library for preferences.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import privrank as pr
    >>> lines = ["# NUMBER ALTERNATIVES: 3", "# NUMBER VOTERS: 3", "# ALTERNATIVE NAME 1: tea"]
    >>> lines += ["# ALTERNATIVE NAME 2: coffee", "# ALTERNATIVE NAME 3: milk"]
    >>> lines += ["2: 2,{1,3}", "1: 3"]
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "drinks.toi")
    ...     _ = file.write_text("\n".join(lines))
    ...     print(pr.read_preflib(file))
       tea  coffee  milk
    0  2.0     1.0   2.0
    1  2.0     1.0   2.0
    2  NaN     NaN   1.0
    """
    if not isinstance(path, str | Path):
        raise TypeError("path must be a str or a pathlib.Path.")
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"path must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}: these are PrefLib's "
            f"files of orders."
        )
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise ValueError("path must be a text file in UTF-8, as PrefLib's files are.") from None
    size = next(
        (k for k, line in enumerate(lines) if line.strip()[:1] not in ("", "#")), len(lines)
    )
    items, voters = _header(lines[:size])
    counts, orders = [], []
    for number, line in enumerate(lines[size:], start=size + 1):
        text = line.strip()
        if text and not text.startswith("#"):
            count, colon, order = text.partition(":")
            if not colon or _number(count) < 1:
                raise ValueError(
                    f"line {number} of path must be a number of voters, a colon and an order, as "
                    f"in '12: 2,1,3'; PrefLib files from before 2022 have to be downloaded anew."
                )
            counts.append(_number(count))
            orders.append(_ranks(order.strip(), len(items), number))
            if ending in (".soc", ".soi") and "{" in order:
                raise ValueError(
                    f"line {number} of path must be a strict order, as path ends in {ending}: only "
                    f".toc and .toi files have alternatives that share a place."
                )
            if ending in (".soc", ".toc") and np.isnan(orders[-1]).any():
                raise ValueError(
                    f"line {number} of path must be a complete order, as path ends in {ending}: "
                    f"only .soi and .toi files leave alternatives out."
                )
    if not counts:
        raise ValueError("path must hold at least one order, and has a header only.")
    if voters is not None and voters != sum(counts):
        raise ValueError(
            "path must hold as many orders as its header says voters: it seems to be cut off."
        )
    if sum(counts) > MOST_VOTERS:
        raise ValueError(f"path must hold at most {MOST_VOTERS:,} orders.")
    ranks = np.repeat(np.array(orders), counts, axis=0)
    return pd.DataFrame(
        ranks.astype(np.int64) if ending == ".soc" else ranks, columns=pd.Index(items)
    )


def _number(text: str) -> int:
    """Return a whole number of at most nine digits, or -1 for anything else."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else -1


def _header(lines: list[str]) -> tuple[list[str], int | None]:
    """Return the names of the alternatives, in the order of their numbers, and how many voted."""
    facts: dict[str, str] = {}
    for line in lines:
        head, colon, value = line.strip()[1:].partition(":")
        if colon and facts.setdefault(" ".join(head.split()), value.strip()) != value.strip():
            raise ValueError("path must say everything in its header once.")
    m = _number(facts.get("NUMBER ALTERNATIVES", ""))
    start = "ALTERNATIVE NAME "
    names = {_number(fact[len(start) :]): facts[fact] for fact in facts if fact.startswith(start)}
    if m < 1 or len(names) != m or min(names) != 1 or max(names) != m:
        raise ValueError(
            "path must begin with lines '# NUMBER ALTERNATIVES: m' and '# ALTERNATIVE NAME i: "
            "name' for i from 1 to m, as PrefLib's files since 2022 do."
        )
    items = [names[i] for i in range(1, m + 1)]
    if "" in items or len(set(items)) < m:
        raise ValueError(
            "path must name every alternative, each differently, as the names become columns."
        )
    if "NUMBER VOTERS" not in facts:
        return items, None
    voters = _number(facts["NUMBER VOTERS"])
    if voters < 1:
        raise ValueError("path must say a whole number of voters in its header.")
    return items, voters


def _ranks(order: str, m: int, number: int) -> NDArray[np.float64]:
    """Return the rank of each alternative in an order such as '2,{1,3}'."""
    if not _ORDER.fullmatch(order):
        raise ValueError(
            f"line {number} of path must list alternatives by number, best first, those that share "
            f"a place in braces, as in '2,{{1,3}}'."
        )
    groups = [(found[1] or found[2]).split(",") for found in _GROUP.finditer(order)]
    ranks = ranks_of([[_number(word) - 1 for word in group] for group in groups], m)
    if ranks is None:
        raise ValueError(
            f"line {number} of path must have numbers of alternatives from 1 to {m}, each at most "
            f"once."
        )
    return ranks
