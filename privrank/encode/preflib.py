"""Rankings from PrefLib's text files. Public data in, a rankings frame out; nothing is released."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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

    See Also
    --------
    privrank.as_rankings : Reads rankings of other forms.

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
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").split("\n")]
    except UnicodeDecodeError:
        raise ValueError("path must be a text file in UTF-8, as PrefLib's files are.") from None
    facts: dict[str, str] = {}
    for line in lines:
        if line.startswith("#"):
            head, _, value = line[1:].partition(":")
            facts[" ".join(head.split())] = value.strip()
    items = _items(facts)
    counts, orders = [], []
    for number, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            count, _, order = line.partition(":")
            ranks = _ranks(order.strip(), len(items))
            if _number(count) < 1 or ranks is None:
                raise ValueError(
                    f"line {number} of path must be a number of voters, a colon and an order of "
                    f"numbers from 1 to {len(items)}, each at most once, those that share a place "
                    f"in braces, as in '12: 2,{{1,3}}': download anew a file from before 2022."
                )
            tied = ending in (".soc", ".soi") and "{" in order
            if tied or (ending in (".soc", ".toc") and np.isnan(ranks).any()):
                raise ValueError(
                    f"line {number} of path must be a strict order in .soc and .soi files and a "
                    f"complete order in .soc and .toc files, and path ends in {ending}."
                )
            counts.append(_number(count))
            orders.append(ranks)
    if not 0 < sum(counts) <= MOST_VOTERS:
        raise ValueError(f"path must hold at least one order and at most {MOST_VOTERS:,} orders.")
    if sum(counts) != _number(facts.get("NUMBER VOTERS", str(sum(counts)))):
        raise ValueError(
            "path must hold as many orders as its header says voters: it seems to be cut off."
        )
    ranks = np.repeat(np.array(orders), counts, axis=0)
    # only complete strict orders have ranks that are whole numbers throughout
    whole = ranks.astype(np.int64) if ending == ".soc" else ranks
    return pd.DataFrame(whole, columns=pd.Index(items))


def _number(text: str) -> int:
    """Return a whole number of at most nine digits, or -1 for anything else."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else -1


def _items(facts: dict[str, str]) -> list[str]:
    """Return the names of the alternatives, in the order of their numbers."""
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
    return items


def _ranks(order: str, m: int) -> NDArray[np.float64] | None:
    """Return the rank of each alternative in an order such as '2,{1,3}', None if it is none."""
    if not _ORDER.fullmatch(order):
        return None
    ranks, rank = np.full(m, np.nan), 1
    for match in _GROUP.finditer(order):
        group = [_number(word) for word in (match[1] or match[2]).split(",")]
        for item in group:
            if not 1 <= item <= m or not np.isnan(ranks[item - 1]):
                return None
            ranks[item - 1] = rank
        # those who share a place have the rank of the first, and the next one theirs
        rank += len(group)
    return ranks
