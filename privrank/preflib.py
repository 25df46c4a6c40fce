"""Rankings from PrefLib's text files. Public data in, a rankings frame out; nothing is released."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["read_preflib"]

ENDINGS = (".soc", ".soi", ".toc", ".toi")

_FACT = re.compile(r"#\s*([A-Z][A-Z ]*?)\s*(\d+)?\s*:\s*(.*)")
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
        the same rank (1, 2, 2, 4); one that a voter leaves out has NaN. Complete strict orders are
        int64, others float64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        In one sentence that names the line, for a file of another kind or one that contradicts
        itself.

    Notes
    -----
    Rankings with ties or missing items go to `PrivateRankAggregation` with ``partial=True``, or
    through `as_rankings` to be completed at random.

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
    file = Path(path)
    if file.suffix not in ENDINGS:
        raise ValueError(
            f"path must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}: other PrefLib files "
            f"hold no orders."
        )
    facts: dict[str, str] = {}
    names: dict[int, str] = {}
    counts: list[int] = []
    orders: list[NDArray[np.float64]] = []
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), start=1):
        text = line.strip()
        if text.startswith("#"):
            found = _FACT.fullmatch(text)
            if found and found[1] == "ALTERNATIVE NAME" and found[2]:
                names[int(found[2])] = found[3].strip()
            elif found and not found[2]:
                facts[found[1]] = found[3].strip()
        elif text:
            items = _items(facts, names)
            count, colon, order = text.partition(":")
            if not colon or not count.strip().isdecimal() or int(count) < 1:
                raise ValueError(
                    f"line {number} of path must be a number of voters, a colon and an order, as "
                    f"in '12: 2,1,3'; PrefLib files from before 2022 have to be downloaded anew."
                )
            counts.append(int(count))
            orders.append(_ranks(order.strip(), len(items), number))
    items = _items(facts, names)
    if not counts:
        raise ValueError("path must hold at least one order, and has a header only.")
    voters = facts.get("NUMBER VOTERS")
    if voters is not None and voters != str(sum(counts)):
        raise ValueError(
            "path must hold as many orders as its header says voters: it seems to be cut off."
        )
    ranks = np.repeat(np.array(orders), counts, axis=0)
    complete = not np.isnan(ranks).any() and (np.sort(orders) == np.arange(1, len(items) + 1)).all()
    if file.suffix in (".soc", ".toc") and np.isnan(ranks).any():
        raise ValueError(
            f"path ends in {file.suffix} and must hold complete orders: some leave alternatives "
            f"out, as only .soi and .toi files may."
        )
    return pd.DataFrame(ranks.astype(np.int64) if complete else ranks, columns=pd.Index(items))


def _items(facts: dict[str, str], names: dict[int, str]) -> list[str]:
    """Return the names of the alternatives, in the order of their numbers."""
    stated = facts.get("NUMBER ALTERNATIVES", "")
    if not stated.isdecimal() or sorted(names) != list(range(1, int(stated) + 1)):
        raise ValueError(
            "path must begin with lines '# NUMBER ALTERNATIVES: m' and '# ALTERNATIVE NAME i: "
            "name' for i from 1 to m, as PrefLib's files since 2022 do."
        )
    items = [names[i] for i in sorted(names)]
    if "" in items or len(set(items)) < len(items):
        raise ValueError(
            "path must name every alternative, each differently, as the names become columns."
        )
    return items


def _ranks(order: str, m: int, number: int) -> NDArray[np.float64]:
    """Return the rank of each alternative in an order such as '2,{1,3}'."""
    if not _ORDER.fullmatch(order):
        raise ValueError(
            f"line {number} of path must list alternatives by number, best first, those that share "
            f"a place in braces, as in '2,{{1,3}}'."
        )
    ranks, place = np.full(m, np.nan), 1
    for found in _GROUP.finditer(order):
        group = [int(word) for word in (found[1] or found[2]).split(",")]
        for item in group:
            if not 1 <= item <= m or not np.isnan(ranks[item - 1]):
                raise ValueError(
                    f"line {number} of path must have numbers of alternatives from 1 to {m}, each "
                    f"at most once."
                )
            ranks[item - 1] = place
        place += len(group)
    return ranks
