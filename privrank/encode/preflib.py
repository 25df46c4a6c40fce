"""Rankings from PrefLib's text files. Public data in, a rankings frame out; nothing is released."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ENDINGS = (".soc", ".soi", ".toc", ".toi", ".cat")

MAX_VOTERS = 10**8
"""More rankings than that are no survey, and would not fit into memory"""

_GROUP = re.compile(r"\{([\d,\s]*)\}|(\d+)")
_ORDER = re.compile(r"(?:(?:\{\s*(?:\d+(?:\s*,\s*\d+)*\s*)?\}|\d+)(?:\s*,\s*(?!$)|$))*")


def read_preflib(path: str | Path) -> pd.DataFrame:
    r"""Read a file of rankings or categories in PrefLib's text format.

    Parameters
    ----------
    path : str or Path
        A file that ends in ``.soc`` or ``.toc`` (complete orders, strict or with ties), ``.soi``
        or ``.toi`` (incomplete orders) or ``.cat`` (alternatives by category, such as *yes* and
        *no*), in the format with a header of lines that begin with ``#``.

    Returns
    -------
    pandas.DataFrame
        One row per voter, those of one order next to each other as in the file, and one column per
        alternative, named as in the file, holding its rank. Alternatives that share a place have
        the same rank (1, 2, 2, 4), and so do those in one category; one that a voter leaves out
        has NaN. The ranks of ``.soc`` files are int64, others float64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    TypeError, ValueError
        For a path that is none, a file of another kind, or one that contradicts itself. The
        message names the file and the line.

    See Also
    --------
    privrank.as_rankings : Reads rankings of other forms.

    Notes
    -----
    Categories are ranked in the order of their numbers in the header, the first one best, as
    PrefLib lists them. Their names are not part of the frame.

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
    name = repr(file.name)
    if ending not in ENDINGS:
        raise ValueError(
            f"{name} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, as PrefLib's files of "
            f"orders and categories do."
        )
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").split("\n")]
    except ValueError:
        raise ValueError(f"{name} must be a text file in UTF-8, as PrefLib's files are.") from None
    facts: dict[str, str] = {}
    for line in lines:
        if line.startswith("#"):
            head, _, value = line[1:].partition(":")
            facts[" ".join(head.split())] = value.strip()
    items = _items(facts, name)
    categories = _categories(facts, name) if ending == ".cat" else None
    counts = []
    orders = []
    for number, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            count, _, order = line.partition(":")
            ranks = _ranks(order.strip(), len(items), categories)
            if _number(count) < 1 or ranks is None:
                raise _malformed(number, name, len(items), categories)
            tied = ending in (".soc", ".soi") and "{" in order
            if tied or (ending in (".soc", ".toc") and np.isnan(ranks).any()):
                raise ValueError(
                    f"line {number} of {name} must be a strict order in .soc and .soi files and a "
                    f"complete order in .soc and .toc files."
                )
            counts.append(_number(count))
            orders.append(ranks)
    if not 0 < sum(counts) <= MAX_VOTERS:
        raise ValueError(f"{name} must hold at least one order and at most {MAX_VOTERS:,} orders.")
    if sum(counts) != _number(facts.get("NUMBER VOTERS", str(sum(counts)))):
        raise ValueError(
            f"{name} must hold as many orders as its header says voters. It seems to be cut off: "
            f"download it anew."
        )
    ranks = np.repeat(np.array(orders), counts, axis=0)
    # only complete strict orders have ranks that are whole numbers throughout
    return pd.DataFrame(
        ranks.astype(np.int64) if ending == ".soc" else ranks, columns=pd.Index(items)
    )


def _malformed(number: int, name: str, m: int, categories: int | None) -> ValueError:
    """Return the refusal of a line that is no order, or no list of categories."""
    if categories is not None:
        return ValueError(
            f"line {number} of {name} must be a number of voters, a colon and {categories} "
            f"categories of numbers from 1 to {m}, each at most once. Categories are in braces, "
            f"as in '12: {{1,3}},{{}}'."
        )
    return ValueError(
        f"line {number} of {name} must be a number of voters, a colon and an order of numbers "
        f"from 1 to {m}, each at most once. Those that share a place are in braces, as in "
        f"'12: 2,{{1,3}}'. Files from before 2022 have another form: download them anew."
    )


def _number(text: str) -> int:
    """Return a whole number of at most nine digits, or -1 for anything else."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else -1


def _categories(facts: dict[str, str], name: str) -> int:
    """Return the number of categories."""
    number = _number(facts.get("NUMBER CATEGORIES", ""))
    if number < 1:
        raise ValueError(f"{name} must have a line '# NUMBER CATEGORIES: k' in its header.")
    return number


def _items(facts: dict[str, str], name: str) -> list[str]:
    """Return the names of the alternatives, in the order of their numbers."""
    m = _number(facts.get("NUMBER ALTERNATIVES", ""))
    start = "ALTERNATIVE NAME "
    names = {_number(fact[len(start) :]): facts[fact] for fact in facts if fact.startswith(start)}
    if m < 1 or len(names) != m or min(names) != 1 or max(names) != m:
        raise ValueError(
            f"{name} must begin with lines '# NUMBER ALTERNATIVES: m' and '# ALTERNATIVE NAME i: "
            f"name' for i from 1 to m, as PrefLib's files since 2022 do."
        )
    items = [names[i] for i in range(1, m + 1)]
    if "" in items or len(set(items)) < m:
        raise ValueError(
            f"{name} must name every alternative, each differently, as the names become columns."
        )
    return items


def _ranks(order: str, m: int, categories: int | None) -> NDArray[np.float64] | None:
    """Return the rank of each alternative in an order such as '2,{1,3}', None if it is none.

    Given a number of categories, one that has so many groups, some of which may be empty.
    """
    if not _ORDER.fullmatch(order):
        return None
    groups = [(braces or item).split(",") for braces, item in _GROUP.findall(order)]
    if categories not in (None, len(groups)):
        return None
    ranks = np.full(m, np.nan)
    rank = 1
    for words in groups:
        group = [] if categories and not words[0].strip() else [_number(word) for word in words]
        for item in group:
            if not 1 <= item <= m or not np.isnan(ranks[item - 1]):
                return None
            ranks[item - 1] = rank
        # those who share a place have the rank of the first, and the next one theirs
        rank += len(group)
    return ranks
