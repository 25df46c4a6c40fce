"""Read rankings from PrefLib's text files.

The data are public; a rankings frame is returned, and nothing is released.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ENDINGS = (".soc", ".soi", ".toc", ".toi", ".cat")

MAX_VOTERS = 10**8
"""Largest number of rankings in a file; more would not fit into memory."""

_GROUP = re.compile(r"\{([\d,\s]*)\}|(\d+)")
_ORDER = re.compile(r"(?:(?:\{\s*(?:\d+(?:\s*,\s*\d+)*\s*)?\}|\d+)(?:\s*,\s*(?!$)|$))*")


def read_preflib(path: str | Path) -> pd.DataFrame:
    r"""Read a file of rankings or categories in PrefLib's text format.

    Parameters
    ----------
    path : str or Path
        A file with the ending ``.soc`` or ``.toc`` (complete orders, strict or with ties),
        ``.soi`` or ``.toi`` (incomplete orders) or ``.cat`` (alternatives by category, such as
        *yes* and *no*), in the format whose header lines begin with ``#``.

    Returns
    -------
    pandas.DataFrame
        One row per voter and one column per alternative with its rank. Columns are named as in the
        file, and voters with the same order are adjacent as in the file. Tied alternatives have the
        same rank (1, 2, 2, 4), and so do alternatives in the same category. An alternative that a
        voter leaves out has NaN. The ranks of ``.soc`` files are int64, all others float64.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    TypeError, ValueError
        If `path` is not a path, or the file has another format or contradicts itself. The message
        names the file and the line.

    See Also
    --------
    privrank.as_rankings : Convert rankings of other forms.

    Notes
    -----
    Categories are ranked in the order of their numbers in the header, the first one best, as
    PrefLib lists them. Their names are not part of the frame.

    Pass rankings with ties or missing items to `PrivateRankAggregation` with ``ties=True`` and
    ``missing=``. Alternatively, `as_rankings` completes them at random; its notes list the tests
    for which this is valid.

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
            f"{name} must be a PrefLib file of orders or categories, with the ending "
            f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}."
        )
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").split("\n")]
    except ValueError:
        raise ValueError(f"{name} must be a text file in UTF-8, like all PrefLib files.") from None
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
                    f"line {number} of {name} must be a strict order in .soc and .soi files, and a "
                    f"complete order in .soc and .toc files."
                )
            counts.append(_number(count))
            orders.append(ranks)
    if not 0 < sum(counts) <= MAX_VOTERS:
        raise ValueError(f"{name} must hold at least one order and at most {MAX_VOTERS:,} orders.")
    if sum(counts) != _number(facts.get("NUMBER VOTERS", str(sum(counts)))):
        raise ValueError(
            f"{name} must hold as many orders as the number of voters in its header. The file may "
            f"be truncated; download it again."
        )
    ranks = np.repeat(np.array(orders), counts, axis=0)
    # only files of complete strict orders never contain NaN
    return pd.DataFrame(
        ranks.astype(np.int64) if ending == ".soc" else ranks, columns=pd.Index(items)
    )


def _malformed(number: int, name: str, m: int, categories: int | None) -> ValueError:
    """Return the error for a line that is not an order or list of categories."""
    if categories is not None:
        return ValueError(
            f"line {number} of {name} must be a number of voters, a colon and {categories} "
            f"categories of numbers from 1 to {m}, each at most once. Put categories in braces, "
            f"for example '12: {{1,3}},{{}}'."
        )
    return ValueError(
        f"line {number} of {name} must be a number of voters, a colon and an order of numbers "
        f"from 1 to {m}, each at most once. Put tied numbers in braces, for example "
        f"'12: 2,{{1,3}}'. Files from before 2022 have another format; download them again."
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
            f"name' for i from 1 to m. Download files from before 2022 again in the new format."
        )
    items = [names[i] for i in range(1, m + 1)]
    if "" in items or len(set(items)) < m:
        raise ValueError(
            f"{name} must have a distinct name for every alternative, because the names become "
            f"columns."
        )
    return items


def _ranks(order: str, m: int, categories: int | None) -> NDArray[np.float64] | None:
    """Return the rank of each alternative in an order such as '2,{1,3}'.

    Returns None if the text is not an order. With `categories`, the order must have that many
    groups, some of which may be empty.
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
        # tied alternatives share the smallest rank, and the next group continues after them
        rank += len(group)
    return ranks
