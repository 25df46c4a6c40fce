"""What a protocol of the local model is: public, frozen, and the same on both sides.

A protocol says what a respondent may be asked (assignments), what can be answered (digits of so
many options), and which values a ranking favours. The answer itself is drawn by
:class:`privrank.local.responses.SubsetResponse`, which has the proof of privacy for all of them.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privrank.local.responses import Partial, SubsetResponse, below, identifier, read_ranking
from privrank.util import checks
from privrank.util.arrays import IntArray

VERSION = 1
"""Of the form of a protocol's JSON; it is part of the id."""

LARGEST_CODE = 2**63 - 1
"""Assignments and answers are numbers that every table can hold."""

LARGEST_EPSILON = 100.0
"""Beyond it an answer is hardly ever changed, and the weights get long."""

_HANDED = (
    "{} must be given with an adaptive protocol: it is that of the query which the curator has "
    "handed to this respondent."
)


@dataclass(frozen=True)
class Protocol(ABC):
    """Public facts of a protocol: what is asked, what is answered, and with which probabilities.

    Parameters
    ----------
    items : sequence of str
        The items that respondents rank.
    epsilon : float
        What one report may spend, positive and finite.
    partial : {"refuse", "complete"}
        What becomes of a ranking with ties or without some of the items asked about: it is refused,
        or ties are ordered at random and what is left out comes last, in random order.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.local import SubRanking
    >>> protocol = SubRanking(["tea", "coffee", "milk"], epsilon=1.0)
    >>> protocol
    SubRanking(items=('tea', 'coffee', 'milk'), epsilon=1.0, partial='refuse', size=2)
    """

    items: tuple[str, ...]
    epsilon: float
    partial: Partial = field(default="refuse", kw_only=True)

    kind: ClassVar[str]

    options = 2
    """How many values a digit has."""
    digits = 1
    """How many digits an answer has, each at an equal share of epsilon."""
    favoured = 1
    """How many values of a digit a ranking favours."""
    keeps_ties = False
    """Whether items of equal rank are an answer of their own."""
    adaptive = False
    """Whether what is asked depends on earlier answers, so that a curator has to hand it out."""

    def __post_init__(self) -> None:
        """Check what all protocols have; what is special to one it checks itself, afterwards."""
        self._set(
            items=tuple(
                checks.check_text("items", str(name)) for name in checks.check_items(self.items)
            ),
            epsilon=checks.check_number(
                "epsilon", self.epsilon, checks.SMALLEST_EPSILON, LARGEST_EPSILON
            ),
        )
        checks.check_choice("partial", self.partial, Partial)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    @abstractmethod
    def assignments(self) -> int:
        """How many assignments there are; one is drawn uniformly, before the ranking is read.

        Examples
        --------
        >>> protocol.assignments
        3
        """

    @property
    def answers(self) -> int:
        """How many answers there are: they are the numbers below it.

        Examples
        --------
        >>> protocol.answers
        2
        """
        return int(self.options**self.digits)

    @cached_property
    def response(self) -> SubsetResponse:
        """The response of one digit.

        Examples
        --------
        >>> round(protocol.response.favoured_probability, 3)
        0.731
        """
        return SubsetResponse.at(Fraction(self.epsilon) / self.digits, self.options, self.favoured)

    @property
    def gain(self) -> float:
        """What the expected answer keeps of the true one; estimators divide by it.

        Examples
        --------
        >>> round(protocol.gain, 3)
        0.462
        """
        return self.response.gain

    @cached_property
    def all_pairs(self) -> IntArray:
        """All pairs of items, the earlier one first, in lexicographic order: (pairs, 2).

        Examples
        --------
        >>> protocol.all_pairs.tolist()
        [[0, 1], [0, 2], [1, 2]]
        """
        return np.column_stack(np.triu_indices(len(self.items), 1))

    @abstractmethod
    def favoured_answers(self, ranks: NDArray[Any], assignments: NDArray[Any]) -> IntArray:
        """Return the sorted favoured values: (respondents, digits, favoured).

        Parameters
        ----------
        ranks : array of int, (respondents, items)
            Complete rankings; rank 1 is the best.
        assignments : array of int, (respondents,)
            What each is asked.
        """

    def question(self, assignment: int) -> list[tuple[str, ...]]:
        """Return the items that an assignment asks to be ordered, one tuple for each digit.

        Examples
        --------
        >>> from privrank.local import CapBorda
        >>> CapBorda(["tea", "coffee", "milk"], epsilon=1.0).question(0)
        [('tea', 'coffee', 'milk')]
        """
        del assignment
        return [self.items]

    # What a protocol says of itself.

    def _settings(self) -> dict[str, Any]:
        return {
            "privrank": "local protocol",
            "version": VERSION,
            "kind": self.kind,
            **{part.name: getattr(self, part.name) for part in fields(self)},
            "items": list(self.items),
        }

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits that stand for all settings of the protocol and its version.

        Examples
        --------
        >>> protocol.id
        '541c4b9373af1e1e'
        """
        text = json.dumps(self._settings(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the protocol as JSON, with its id, to be published and handed to clients.

        See Also
        --------
        privrank.local.protocol_from_json : Reads the text.
        privrank.local.Client.from_json : Reads it on a respondent's device.

        Examples
        --------
        >>> from privrank.local import protocol_from_json
        >>> protocol_from_json(protocol.to_json()) == protocol
        True
        """
        return json.dumps({**self._settings(), "id": self.id}, ensure_ascii=False)

    # The respondent's side.

    def draw_assignment(self) -> int:
        """Draw what one respondent is asked, from the operating system's random bits.

        Examples
        --------
        >>> protocol.draw_assignment() < protocol.assignments
        True
        """
        if self.adaptive:
            raise ValueError(_HANDED.format("assignment"))
        return below(self.assignments)

    def draw_id(self) -> str:
        """Draw the id of a report, 128 random bits of the operating system.

        Examples
        --------
        >>> len(protocol.draw_id())
        32
        """
        return identifier()

    def randomize(
        self, ranking: object, assignment: int | None = None, report_id: str | None = None
    ) -> dict[str, str | int]:
        """Randomise one respondent's ranking, on their device, and return the report.

        Parameters
        ----------
        ranking : sequence of str, or mapping of str to int
            Items, the best first, or the rank of each item, from 1. Where an `assignment` is given,
            a ranking of the items that it asks about is enough.
        assignment : int, optional
            What the respondent was asked; drawn here if it is left out. It must have been drawn
            without regard to the ranking.
        report_id : str, optional
            The id that the curator has handed to the respondent; drawn here if it is left out.

        Returns
        -------
        dict
            The report: ``protocol_id``, ``assignment``, ``answer`` and a random ``report_id``.

        See Also
        --------
        privrank.local.Client : One respondent, who answers once.

        Notes
        -----
        **Privacy.** The report is epsilon-private for any two rankings of its respondent (proof:
        :class:`privrank.local.responses.SubsetResponse`). The assignment is drawn before the
        ranking is read, the answer's digits are subset responses at epsilon / digits each, the id
        of the report is drawn without regard to it. A second report of the same ranking adds its
        own epsilon. It is one of rankings that answer what is asked, as all complete ones do.
        Whether a report is made at all is not protected, so with ``partial="refuse"`` one of a
        ranking that leaves items out shows that it was not asked about them.

        Examples
        --------
        >>> report = protocol.randomize(["coffee", "tea", "milk"])
        >>> list(report)
        ['protocol_id', 'assignment', 'answer', 'report_id']
        """
        # an assignment that is drawn here may be about any of the items, so the ranking needs all
        if assignment is None:
            code = self.draw_assignment()
            needed = list(range(len(self.items)))
        else:
            code = checks.check_count("assignment", assignment, low=0, high=self.assignments - 1)
            names = {name for names in self.question(code) for name in names}
            needed = [place for place, name in enumerate(self.items) if name in names]
        if report_id is not None and not (isinstance(report_id, str) and report_id):
            raise TypeError("report_id must be a text, that of the query which is answered.")
        if report_id is None and self.adaptive:
            raise ValueError(_HANDED.format("report_id"))
        name = self.draw_id() if report_id is None else report_id
        ranks = read_ranking(
            ranking, self.items, needed, ties=self.keeps_ties, partial=self.partial
        )
        # the ranking enters through the favoured answers alone: each digit is one of these with the
        # favoured probability, by the device's secure randomness
        favoured = self.favoured_answers(ranks[None], np.array([code]))[0]
        values = np.array([self.response.secure(digit) for digit in favoured.tolist()])
        return {
            "protocol_id": self.id,
            "assignment": code,
            "answer": int(self.packed(values)),
            "report_id": name,
        }

    # Studies, and the curator's side.

    def assign(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw assignments for `n` respondents, for studies.

        Examples
        --------
        >>> protocol.assign(4, np.random.default_rng(1)).tolist()
        [1, 1, 2, 2]
        """
        check_generator(rng)
        return rng.integers(0, self.assignments, checks.check_count("n", n, low=0))

    def simulate(
        self,
        ranks: object,
        rng: np.random.Generator,
        assignments: NDArray[Any] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return the reports of many respondents, for studies: seeded, so not for publication.

        Parameters
        ----------
        ranks : array of int, (respondents, items), or data frame
            Complete rankings; rank 1 is the best. Columns of an array are in the order of the
            protocol's items; those of a data frame are taken by their names.
        rng : numpy.random.Generator
            Draws assignments and answers.
        assignments : array of int, (respondents,), optional
            What a survey that chooses its questions asks each, instead of assignments drawn here.

        Returns
        -------
        dict of arrays
            The columns of the reports that `randomize` makes one by one.

        Examples
        --------
        >>> ranks = np.array([[1, 2, 3], [1, 3, 2]])
        >>> reports = protocol.simulate(ranks, np.random.default_rng(1))
        >>> reports["answer"].tolist()
        [1, 0]
        """
        check_generator(rng)
        rankings = check_rankings(ranks, self.items, ties=self.keeps_ties)
        n = len(rankings)
        codes = self.assign(n, rng) if assignments is None else self._given(assignments, n)
        values = self.response.simulated(self.favoured_answers(rankings, codes), rng)
        # 32 hexadecimal digits for each report, as devices draw them
        drawn = np.frombuffer(rng.bytes(16 * n).hex().encode(), dtype="S32").astype("U32")
        return {
            "protocol_id": np.full(n, self.id),
            "assignment": codes,
            "answer": self.packed(values),
            "report_id": drawn,
        }

    def _given(self, assignments: object, n: int) -> IntArray:
        """Return assignments of so many respondents as they were given, or refuse."""
        codes = checks.as_array(assignments)
        whole = codes.shape == (n,) and (codes.dtype.kind in "iu" or not n)
        if not whole or not ((codes >= 0) & (codes < self.assignments)).all():
            raise ValueError(
                f"assignments must be whole numbers, one for each of the {n} rankings, from 0 to "
                f"{self.assignments - 1}: leave them out to have them drawn."
            )
        return codes.astype(np.int64)

    def packed(self, values: NDArray[Any]) -> IntArray:
        """Return the answers that digits in the last axis stand for, the highest first.

        Examples
        --------
        >>> protocol.packed(np.array([[1], [0]])).tolist()
        [1, 0]
        """
        return np.asarray(values.astype(np.int64) @ self._powers)

    def unpacked(self, answers: NDArray[Any]) -> IntArray:
        """Return the digits of answers: (..., digits).

        Examples
        --------
        >>> protocol.unpacked(np.array([1, 0])).tolist()
        [[1], [0]]
        """
        return np.asarray(answers, dtype=np.int64)[..., None] // self._powers % self.options

    @property
    def _powers(self) -> IntArray:
        """What each digit of an answer stands for."""
        return self.options ** np.arange(self.digits, dtype=np.int64)[::-1]

    def tally(self, reports: Any) -> Any:
        """Count reports at the curator's: see :class:`privrank.local.Tally`.

        Clients have no need of the libraries that this loads.

        See Also
        --------
        privrank.PrivateRankAggregation.from_reports : Reads a tally as a consensus.

        Examples
        --------
        >>> ranks = np.array([[1, 2, 3], [1, 3, 2]])
        >>> protocol.tally(protocol.simulate(ranks, np.random.default_rng(1)))
        <Tally: sub-ranking, 2 reports accepted, rejected: none>
        """
        return import_module("privrank.local.tally").Tally.of(self, reports)


class Asking(Protocol):
    """A protocol that asks for the order of `width` items in each digit; of one pair by default.

    The favoured value is the place of the order among all of them in lexicographic order, so with
    two items 0 if the first is placed before the second, and 1 if after it.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.local import RandomPairs
    >>> protocol = RandomPairs(["tea", "coffee", "milk"], epsilon=1.0)
    >>> protocol.question(0)
    [('tea', 'milk')]
    """

    width = 2
    """How many items a digit orders."""

    @cached_property
    def table(self) -> IntArray:
        """What each assignment asks about, a pair of its own by default: (.., digits, width).

        Examples
        --------
        >>> protocol.table.shape
        (3, 1, 2)
        """
        return self.all_pairs[:, None]

    @property
    def assignments(self) -> int:
        """The rows of the table.

        Examples
        --------
        >>> protocol.assignments
        3
        """
        return len(self.table)

    def asked(self, assignments: NDArray[Any]) -> IntArray:
        """Return the items that assignments ask about: (respondents, digits, width).

        Examples
        --------
        >>> protocol.asked(np.array([0, 1])).tolist()
        [[[0, 2]], [[0, 1]]]
        """
        return np.asarray(self.table[np.asarray(assignments)])

    @cached_property
    def _orders(self) -> IntArray:
        """The orders of the asked items that values stand for: (orders, width)."""
        return np.array(list(permutations(range(self.width))))

    @cached_property
    def signs(self) -> NDArray[np.int8]:
        """What a value says of two of the asked items: (options, width, width).

        1 if it places the one of the row before that of the column, -1 if after it, 0 for a tie.

        Examples
        --------
        >>> protocol.signs[0].tolist()
        [[0, 1], [-1, 0]]
        """
        places = np.argsort(self._orders, axis=1)
        return np.asarray(np.sign(places[:, None, :] - places[:, :, None]), dtype=np.int8)

    def favoured_answers(self, ranks: NDArray[Any], assignments: NDArray[Any]) -> IntArray:
        """Return the value that stands for the order of the asked items.

        Examples
        --------
        >>> protocol.favoured_answers(np.array([[1, 2, 3], [3, 2, 1]]), np.array([0, 0])).ravel()
        array([0, 1])
        """
        rows = np.arange(len(ranks))[:, None, None]
        order = np.argsort(ranks[rows, self.asked(assignments)], axis=-1)
        # read as the digits of a number, orders ascend in lexicographic order
        powers = self.width ** np.arange(self.width)[::-1]
        return np.searchsorted(self._orders @ powers, order @ powers)[..., None]

    def question(self, assignment: int) -> list[tuple[str, ...]]:
        """Return the items that an assignment asks to be ordered, one tuple for each digit.

        Examples
        --------
        >>> protocol.question(2)
        [('coffee', 'milk')]
        """
        code = checks.check_count("assignment", assignment, low=0, high=self.assignments - 1)
        sets = self.asked(np.array([code]))[0].tolist()
        return [tuple(self.items[place] for place in places) for places in sets]


def pair_place(first: IntArray, second: IntArray, items: int) -> IntArray:
    """Return the places of pairs, the earlier item first, in the list of all pairs."""
    return np.asarray(first * (2 * items - first - 1) // 2 + second - first - 1)


def check_rankings(ranks: object, items: Sequence[str], *, ties: bool = False) -> NDArray[Any]:
    """Return an array of complete rankings, one in each row; any ranks from 1 where ties may be.

    What has names of columns has them read: a data frame need not have the order of the items.
    """
    if hasattr(type(ranks), "columns"):
        # of studies alone: the libraries that read a frame are none of a client's
        ranks = import_module("privrank.encode.samples").ranks_by_name(ranks, items)
    rankings = checks.as_array(ranks)
    m = len(items)
    if rankings.ndim != 2 or rankings.shape[1] != m or rankings.dtype.kind not in "iu":
        raise ValueError(
            f"ranks must be whole numbers, in a data frame with the protocol's items as columns, "
            f"or in an array with a column for each of the {m} items, in their order."
        )
    complete = rankings >= 1 if ties else np.sort(rankings, axis=1) == np.arange(1, m + 1)
    if not complete.all():
        raise ValueError(f"ranks must hold each of the ranks 1 to {m} once in every row.")
    return rankings


def check_kind(protocol: object, kind: type[Any]) -> None:
    """Refuse what is no protocol of a kind."""
    if not isinstance(protocol, kind):
        raise TypeError(
            f"protocol must be of the kind {kind.__name__}, got {type(protocol).__name__}. Make "
            f"one with a class of privrank.local, or read its JSON with Client.from_json(text)."
        )


def check_generator(rng: object) -> None:
    """Refuse what draws no random numbers of a study."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}.")
