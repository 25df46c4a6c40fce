"""Find the columns of a frame by the arguments that name them.

A role is an argument and the columns that it names: one for ``item1=``, several for ``places=``.
Messages name arguments, columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from privrank.encode import coding, frames
from privrank.encode.encoded import check_owned, refuse_unused
from privrank.util.arrays import IntArray
from privrank.util.checks import check_name, first_absent

Names = tuple[Any, ...]


class OpenedFrame:
    """A frame opened by the names of its columns, before any cell is read.

    Parameters
    ----------
    frame : data frame
        Any frame narwhals supports.
    items : sequence or None
        The items declared in the call.
    owners : str or None
        Columns, or levels of a pandas index, that identify the owner of a row, by their roles
        ``respondent`` and ``ranking``.
    """

    def __init__(self, frame: object, items: object, **owners: str | None) -> None:
        self.items = items
        self.owners = {role: name for role, name in owners.items() if name is not None}
        for role, name in self.owners.items():
            check_name(name, role)
            frame = frames.with_respondent_column(frame, name)
        self.frame = frame
        self.view = frames.open_frame(frame, "frame")
        self.names = frames.column_names(self.view)
        for name in self.owners.values():
            if name in self.names:
                frames.check_respondents(self.view, name)

    @property
    def others(self) -> list[Any]:
        """The columns that do not identify respondents or rankings."""
        return [name for name in self.names if name not in self.owners.values()]

    def require(self, roles: Mapping[str, Sequence[Any]]) -> None:
        """Refuse columns that do not exist or are named twice."""
        for role, names in roles.items():
            absent = first_absent(names, self.names)
            if absent is not None:
                raise ValueError(
                    f"frame has no column {absent!r}. Name the right column with {role}=, or the "
                    f"form of the data with form=."
                )
        used = [name for names in roles.values() for name in names]
        twice = [name for name, times in Counter(used).items() if times > 1]
        if twice:
            raise ValueError(
                f"{'=, '.join(roles)}= must name different columns, and {twice[0]!r} is named "
                f"twice. Leave one of them out, or name another column."
            )

    def person(self, table: pd.DataFrame) -> pd.Series[Any] | None:
        """Return the respondent of each row of a table, None if not declared."""
        return table[self.owners["respondent"]] if self.owners else None

    def collect(self, roles: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
        """Return the columns that arguments name, including the owners."""
        roles = {**roles, **{role: [name] for role, name in self.owners.items()}}
        self.require(roles)
        table = frames.collect(self.view, [name for names in roles.values() for name in names])
        frames.check_rows(len(table))
        for role, name in self.owners.items():
            check_owned(coding.key_of(table[name]), name, role)
        return table

    def collect_wide(
        self, role: str, columns: Sequence[Any], *, declared: bool = True
    ) -> tuple[pd.DataFrame, pd.Index]:
        """Return columns of a frame with a row per respondent, and the respondents.

        `role` is the argument that names the columns, and `declared` is whether the call gave it. A
        column of row counts is refused unless it is a declared column, because each row belongs to
        one respondent.
        """
        refuse_unused(self.names, [*self.owners.values(), *(columns if declared else ())])
        table = self.collect({role: columns})
        person = self.person(table)
        return table, table.index if person is None else pd.Index(person)

    def collect_rows(
        self,
        named: Mapping[str, str],
        others: Mapping[str, str | None],
    ) -> tuple[pd.DataFrame, Names, list[IntArray]]:
        """Return rows that name items, all items, and the codes of the rows' items.

        `named` are the columns of items and `others` are further columns, by the arguments that
        name them; None is an argument that was left out.
        """
        given = {**named, **{role: name for role, name in others.items() if name is not None}}
        for role, name in given.items():
            check_name(name, role)
        roles = {role: [name] for role, name in given.items()}
        self.require(roles)
        # items are declared before any cell is read
        labels = frames.declared_items(self.frame, list(named.values()), self.items)
        table = self.collect(roles).reset_index(drop=True)
        codes = [item_codes(table[name], labels) for name in named.values()]
        for name, code in zip(named.values(), codes, strict=True):
            if (code < 0).any():
                raise ValueError(
                    f"column {name!r} must name an item in every row, and at least one name is "
                    f"missing. Fill in the missing names. In form='long' an unanswered question "
                    f"has a missing outcome or rank, not a missing item."
                )
        return table, labels, codes


def item_codes(names: pd.Series[Any], labels: Names) -> IntArray:
    """Return the position of each name in `labels`, -1 where it is missing."""
    key = coding.key_of(names)
    places = key.among(labels)
    if (places[key.codes >= 0] < 0).any():
        raise ValueError(
            f"column {names.name!r} contains a name that is not listed in items, or an entry with "
            f"several names. Compare the distinct values of the column with items, and add or "
            f"correct names. Split entries with several names."
        )
    return places


def check_ranks_are_numbers(
    view: frames.Frame, table: pd.DataFrame, columns: Sequence[Any], argument: str
) -> None:
    """Refuse non-numeric columns of ranks, by their type and by the rows read.

    `argument` is the argument that names the columns.
    """
    typed = frames.numeric_columns(view, columns)
    others = [name for name in columns if name not in typed]
    text = frames.check_numeric(frames.open_frame(table[others], "frame"), others)
    if text is not None:
        raise TypeError(
            f"column {text!r} must hold ranks as numbers, and missing values (empty cells, NaN), "
            f"never text, for items that are not ranked. Name the columns of ranks with "
            f"{argument}=, and the respondent column with respondent=. Convert numbers stored as "
            f"objects with pandas.to_numeric."
        )


def only_for(form: str, arguments: Mapping[str, tuple[object, Sequence[str]]]) -> None:
    """Refuse arguments that belong to other forms.

    `arguments` gives by name the value (None if not given) and the forms to which it belongs.
    """
    for name, (value, homes) in arguments.items():
        if value is not None and form not in homes:
            raise ValueError(
                f"{name}= belongs to form={' or '.join(map(repr, homes))}. Leave it out, or use "
                f"that form."
            )
