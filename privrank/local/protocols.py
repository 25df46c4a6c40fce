"""Base classes of the protocols of the local model, and the response that draws their answers.

A protocol is public, immutable, and the same for respondents and curator. It defines the possible
questions (assignments), the possible answers (digits with a number of options each), and the values
that a ranking favours. Which values are favoured depends on the ranking and on the assignment.

The subset response draws the answers of all protocols, and contains the privacy proof for all. An
answer consists of digits. Each digit has `options` values, and exactly `favoured` of them are
favoured by the respondent's ranking. The reported value is drawn from all values, with a larger
weight for favoured values.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from itertools import permutations
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.privacy import noise
from privrank.util import checks
from privrank.util.arrays import IntArray

Partial = Literal["refuse", "complete"]

VERSION = 1
"""Version of the JSON format of a protocol; it is part of the id."""

LARGEST_CODE = 2**63 - 1
"""Largest assignment or answer: a 64-bit integer, which every table format can store."""

LARGEST_EPSILON = 100.0
"""Largest epsilon. Above it answers are almost never changed, and the weights become long."""

_PRECISION = 52
"""Number of binary digits of the smaller weight, up to rounding."""

_HANDED = (
    "{} must be given with an adaptive protocol. Take it from the query that the curator issued to "
    "this respondent."
)


def shuffled(size: int) -> list[int]:
    """Return a uniform permutation of 0 to `size` - 1, by the system's bits."""
    left = list(range(size))
    return [left.pop(secrets.randbelow(len(left))) for _ in range(size)]


@dataclass(frozen=True, slots=True)
class SubsetResponse:
    """Response of one digit: favoured values have the larger of two weights.

    Notes
    -----
    **Privacy.** The unit is one report of one respondent; neighbours are any two possible rankings
    of the respondent, so all pairs of rankings. Let N be the number of values, k the number of
    favoured values, and V and W <= V the weights. The set F of favoured values has exactly k
    elements for every ranking. So a value a is reported with probability V / (k V + (N - k) W) if a
    is in F and W / (k V + (N - k) W) if not. The total does not depend on the ranking. For two
    rankings the probabilities of one value differ by a factor of at most V / W, and a value that
    only the first ranking favours attains this ratio. The digits of a report are drawn
    independently given the ranking, so the ratios multiply: a report of d digits at epsilon / d
    each is epsilon-differentially private. The assignment is drawn before the ranking is read, so
    it has the same probability for all rankings. The proof uses no other property of F. The claim
    holds for any map from rankings to sets of k values. This includes maps computed in floating
    point, and random maps, over which both probabilities are averaged.

    The weights are integers, and a uniform integer below their total determines the draw. So the
    probabilities above are exact, without rounding. `at` chooses the weights such that
    V / W < exp(epsilon), with a relative difference of at most 2^-51.

    References
    ----------
    With k = 1 this is randomised response of N values: Warner (1965) for two values; Kairouz,
    Bonawitz and Ramage (2016), Discrete distribution estimation under local privacy, for more.
    """

    options: int
    favoured: int
    favoured_weight: int
    other_weight: int

    @classmethod
    def at(cls, epsilon: Fraction, options: int, favoured: int = 1) -> SubsetResponse:
        """Return the response with the largest ratio of weights that epsilon allows.

        V = 2^b and W = floor(2^b exp(-epsilon)) + 1 > 2^b exp(-epsilon), where `noise.digits`
        computes the floor exactly. Because b is at least 52 + epsilon / log 2, W is at least 2^52.
        """
        bits = _PRECISION + math.ceil(float(epsilon) / math.log(2))
        return cls(options, favoured, 1 << bits, noise.digits(epsilon, bits, 0) + 1)

    @classmethod
    def thresholded_laplace(cls, epsilon: Fraction) -> SubsetResponse:
        """Return Laplace noise of scale 1 / epsilon on a bit, cut at one half.

        The bit is reported wrongly with a probability between exp(-epsilon / 2) / 2 and 2^-52 more.
        This is a binary response at log(2 exp(epsilon / 2) - 1) < epsilon.
        """
        bits = _PRECISION + math.ceil(float(epsilon) / math.log(4))
        wrong = noise.digits(epsilon / 2, bits, 0) + 1
        return cls(2, 1, (2 << bits) - wrong, wrong)

    @property
    def total(self) -> int:
        """The sum of the weights of all values, the same for all rankings."""
        rest = self.options - self.favoured
        return self.favoured * self.favoured_weight + rest * self.other_weight

    @property
    def favoured_probability(self) -> float:
        """Probability that one of the favoured values is reported."""
        return self.favoured * self.favoured_weight / self.total

    @property
    def gain(self) -> float:
        """Difference between the probabilities of a favoured and another value."""
        return (self.favoured_weight - self.other_weight) / self.total

    @property
    def epsilon(self) -> float:
        """The privacy loss of one digit: the logarithm of the ratio of the weights."""
        return math.log1p((self.favoured_weight - self.other_weight) / self.other_weight)

    def secure(self, favoured: Sequence[int]) -> int:
        """Draw one value, given the sorted favoured values, by the system's bits."""
        number = secrets.randbelow(self.total)
        edge = self.favoured * self.favoured_weight
        agrees = number < edge
        place = number // self.favoured_weight if agrees else (number - edge) // self.other_weight
        # always compute both values, so the run time does not reveal which one is reported
        other = place + sum(value - i <= place for i, value in enumerate(favoured))
        one = int(favoured[min(place, self.favoured - 1)])
        return one if agrees else other

    def simulated(self, favoured: NDArray[Any], rng: np.random.Generator) -> IntArray:
        """Draw values for sorted sets of favoured values (last axis), by `rng`."""
        agrees = rng.random(favoured.shape[:-1]) < self.favoured_probability
        place = rng.integers(0, np.where(agrees, self.favoured, self.options - self.favoured))
        # position among the values that are not favoured: each favoured value before it adds one
        other = place + (favoured - np.arange(self.favoured) <= place[..., None]).sum(axis=-1)
        inside = np.take_along_axis(favoured, np.minimum(place, self.favoured - 1)[..., None], -1)
        return np.where(agrees, inside[..., 0], other)


def read_ranking(
    ranking: object,
    items: Sequence[str],
    needed: Set[int],
    *,
    ties: bool,
    partial: Partial,
) -> NDArray[np.int64]:
    """Return the rank of every item; only the `needed` items must be ranked.

    A ranking is a sequence of names, best first, or a mapping from names to ranks 1, 2, ... With
    ``partial="complete"`` items that share a rank are put in random order, unless `ties` are
    separate answers. Needed items that are left out come below all others in random order.
    """
    places = {name: place for place, name in enumerate(items)}
    levels: dict[int, int] = {}
    for name, level in _named(ranking):
        if name not in places:
            raise ValueError(
                "ranking contains a name that is not one of the protocol's items. Write the items "
                "as in the protocol."
            )
        if places[name] in levels:
            raise ValueError("ranking names an item twice. Name each item once.")
        levels[places[name]] = level
    if partial == "refuse":
        checks.refuse_if(
            (
                not levels.keys() >= needed,
                f"ranking leaves out items of the question, which has {len(needed)}. Rank all of "
                f"them, or use a protocol with partial='complete'.",
            ),
            (
                not ties and len(set(levels.values())) < len(levels),
                "ranking gives two items the same rank. Order them, or use a protocol with "
                "partial='complete' or Comparisons with ties=True.",
            ),
            (
                not ties and len(levels) == len(items) and max(levels.values()) != len(items),
                f"ranking has a gap. Give the {len(items)} items the ranks 1 to {len(items)}.",
            ),
        )
    size = len(items)
    last = max(levels.values(), default=0) + 1
    # random numbers order equal levels, and items without a level, which come last
    lots = shuffled(size) if partial == "complete" else range(size)
    keys = [
        (levels.get(place, last), 0 if ties and place in levels else lots[place])
        for place in range(size)
    ]
    rank = {key: number for number, key in enumerate(sorted(set(keys)), 1)}
    return np.array([rank[key] for key in keys], dtype=np.int64)


def _named(ranking: object) -> list[tuple[str, int]]:
    """Return the names and ranks of a mapping or a sequence."""
    if isinstance(ranking, Mapping):
        if any(
            isinstance(level, bool) or not isinstance(level, Integral) or level < 1
            for level in ranking.values()
        ):
            raise ValueError(
                "ranking must map items to whole numbers from 1 (best). Leave out items "
                "without a rank."
            )
        return [(str(name), int(level)) for name, level in ranking.items()]
    listed = isinstance(ranking, Sequence) and not isinstance(ranking, str | bytes)
    if not listed and not (isinstance(ranking, np.ndarray) and ranking.ndim == 1):
        raise TypeError(
            f"ranking must be a sequence of items, best first, or a mapping from items to ranks, "
            f"got {type(ranking).__name__}."
        )
    return [(str(name), place) for place, name in enumerate(ranking, 1)]  # type: ignore[arg-type, var-annotated]


@dataclass(frozen=True)
class Protocol(ABC):
    """Public description of a protocol: questions, answers and probabilities.

    Parameters
    ----------
    items : sequence of str
        The items that respondents rank.
    epsilon : float
        The privacy loss of one report, positive and finite.
    partial : {"refuse", "complete"}
        How a ranking with ties, or without some of the items asked, is treated. ``"refuse"``: it is
        refused. ``"complete"``: ties are ordered at random, and missing items come last in random
        order.

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
    """Number of values of a digit."""
    digits = 1
    """Number of digits of an answer, each with an equal share of epsilon."""
    favoured = 1
    """Number of values of a digit that a ranking favours."""
    keeps_ties = False
    """Whether a tie is a separate answer."""
    adaptive = False
    """Whether questions depend on earlier answers and must be issued by a curator."""

    def __post_init__(self) -> None:
        """Check the common arguments; subclasses check their own afterwards."""
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
        """Number of assignments; one is drawn uniformly before the ranking is read.

        Examples
        --------
        >>> protocol.assignments
        3
        """

    @property
    def answers(self) -> int:
        """Number of answers; an answer is a nonnegative integer below this number.

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
        """Attenuation of the expected answer; estimators divide by this factor.

        Examples
        --------
        >>> round(protocol.gain, 3)
        0.462
        """
        return self.response.gain

    @cached_property
    def all_pairs(self) -> IntArray:
        """All pairs of items, earlier item first, in lexicographic order, (pairs, 2).

        Examples
        --------
        >>> protocol.all_pairs.tolist()
        [[0, 1], [0, 2], [1, 2]]
        """
        return np.column_stack(np.triu_indices(len(self.items), 1))

    @abstractmethod
    def favoured_answers(self, ranks: NDArray[Any], assignments: NDArray[Any]) -> IntArray:
        """Return the sorted favoured values, shape (respondents, digits, favoured).

        Parameters
        ----------
        ranks : array of int, (respondents, items)
            Complete rankings; rank 1 is the best.
        assignments : array of int, (respondents,)
            The assignment of each respondent.
        """

    def question(self, assignment: int) -> list[tuple[str, ...]]:
        """Return the items to order in an assignment, one tuple for each digit.

        Examples
        --------
        >>> from privrank.local import CapBorda
        >>> CapBorda(["tea", "coffee", "milk"], epsilon=1.0).question(0)
        [('tea', 'coffee', 'milk')]
        """
        return [self.items]

    # Description of the protocol.

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
        """Hash of the protocol's settings and version (16 hexadecimal digits).

        Examples
        --------
        >>> protocol.id
        '541c4b9373af1e1e'
        """
        text = json.dumps(self._settings(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the protocol as JSON text with its id, for publication and clients.

        See Also
        --------
        privrank.local.protocol_from_json : Read the text.
        privrank.local.Client.from_json : Read the text on a respondent's device.

        Examples
        --------
        >>> from privrank.local import protocol_from_json
        >>> protocol_from_json(protocol.to_json()) == protocol
        True
        """
        return json.dumps({**self._settings(), "id": self.id}, ensure_ascii=False)

    # The respondent's methods.

    def draw_assignment(self) -> int:
        """Draw the assignment of a respondent by the operating system's bits.

        Examples
        --------
        >>> protocol.draw_assignment() < protocol.assignments
        True
        """
        if self.adaptive:
            raise ValueError(_HANDED.format("assignment"))
        return secrets.randbelow(self.assignments)

    def draw_id(self) -> str:
        """Draw the id of a report: 128 random bits of the operating system.

        Examples
        --------
        >>> len(protocol.draw_id())
        32
        """
        return secrets.token_hex(16)

    def randomize(
        self, ranking: object, assignment: int | None = None, report_id: str | None = None
    ) -> dict[str, str | int]:
        """Randomise a respondent's ranking on their device and return the report.

        Parameters
        ----------
        ranking : sequence of str, or mapping of str to int
            Items, best first, or the rank of each item, from 1. If `assignment` is given, a ranking
            of the items in its question is enough.
        assignment : int, optional
            The assignment of the respondent, which must have been drawn independently of the
            ranking. By default it is drawn in this call.
        report_id : str, optional
            The id that the curator issued to the respondent. By default it is drawn in this call.

        Returns
        -------
        dict
            The report: ``protocol_id``, ``assignment``, ``answer`` and a random ``report_id``.

        See Also
        --------
        privrank.local.Client : Client that makes one local report for one respondent.

        Notes
        -----
        **Privacy.** The report is epsilon-differentially private for any two rankings of its
        respondent (proof: :class:`privrank.local.protocols.SubsetResponse`). The assignment is
        drawn before the ranking is read; the answer's digits are subset responses at
        epsilon / digits each; and the id of the report is drawn independently of the ranking. A
        second report of the same ranking adds its own epsilon. The guarantee covers rankings that
        contain the items asked, as all complete rankings do. Whether a report is made at all is not
        protected. So with ``partial="refuse"``, a report from a ranking that leaves items out
        reveals that the question did not concern these items.

        Examples
        --------
        >>> report = protocol.randomize(["coffee", "tea", "milk"])
        >>> list(report)
        ['protocol_id', 'assignment', 'answer', 'report_id']
        """
        # an assignment drawn here may concern any of the items, so the ranking needs all of them
        if assignment is None:
            code = self.draw_assignment()
            needed = set(range(len(self.items)))
        else:
            code = checks.check_count("assignment", assignment, low=0, high=self.assignments - 1)
            needed = {self.items.index(name) for names in self.question(code) for name in names}
        if report_id is not None and not (isinstance(report_id, str) and report_id):
            raise TypeError("report_id must be a text: the id of the query that is answered.")
        if report_id is None and self.adaptive:
            raise ValueError(_HANDED.format("report_id"))
        name = self.draw_id() if report_id is None else report_id
        ranks = read_ranking(
            ranking, self.items, needed, ties=self.keeps_ties, partial=self.partial
        )
        # the ranking enters only through the favoured values: each digit is one of these with the
        # favoured probability, drawn with the device's secure randomness
        favoured = self.favoured_answers(ranks[None], np.array([code]))[0]
        values = np.array([self.response.secure(digit) for digit in favoured.tolist()])
        return {
            "protocol_id": self.id,
            "assignment": code,
            "answer": int(self.packed(values)),
            "report_id": name,
        }

    # Studies, and the curator's methods.

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
        """Simulate the reports of many respondents (seeded; do not publish).

        Parameters
        ----------
        ranks : array of int, (respondents, items), or data frame
            Complete rankings; rank 1 is the best. Columns of an array are in the order of the
            protocol's items; columns of a data frame are found by name.
        rng : numpy.random.Generator
            Draws assignments and answers.
        assignments : array of int, (respondents,), optional
            The assignments of the respondents. By default they are drawn in this call.

        Returns
        -------
        dict of arrays
            Columns with the same reports as returned one by one by `randomize`.

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
        codes = self.assign(n, rng) if assignments is None else checks.as_array(assignments)
        whole = codes.shape == (n,) and (codes.dtype.kind in "iu" or not n)
        if not whole or not ((codes >= 0) & (codes < self.assignments)).all():
            raise ValueError(
                f"assignments must be whole numbers, one for each of the {n} rankings, from 0 to "
                f"{self.assignments - 1}. Leave assignments= out to draw them at random."
            )
        codes = codes.astype(np.int64)
        values = self.response.simulated(self.favoured_answers(rankings, codes), rng)
        return {
            "protocol_id": np.full(n, self.id),
            "assignment": codes,
            "answer": self.packed(values),
            # 32 hexadecimal digits for each report, like the ids drawn by devices
            "report_id": np.frombuffer(rng.bytes(16 * n).hex().encode(), dtype="S32").astype("U32"),
        }

    def packed(self, values: NDArray[Any]) -> IntArray:
        """Return the answers encoded by digits in the last axis, highest digit first.

        Examples
        --------
        >>> protocol.packed(np.array([[1], [0]])).tolist()
        [1, 0]
        """
        return np.asarray(values.astype(np.int64) @ self._powers)

    def unpacked(self, answers: NDArray[Any]) -> IntArray:
        """Return the digits of answers, shape (..., digits).

        Examples
        --------
        >>> protocol.unpacked(np.array([1, 0])).tolist()
        [[1], [0]]
        """
        return np.asarray(answers, dtype=np.int64)[..., None] // self._powers % self.options

    @property
    def _powers(self) -> IntArray:
        """The place value of each digit of an answer."""
        return self.options ** np.arange(self.digits, dtype=np.int64)[::-1]

    def tally(self, reports: Any) -> Any:
        """Count reports (for the curator); see :class:`privrank.local.Tally`.

        This method loads libraries that clients do not need.

        See Also
        --------
        privrank.PrivateRankAggregation.from_reports : Consensus ranking from a tally.

        Examples
        --------
        >>> ranks = np.array([[1, 2, 3], [1, 3, 2]])
        >>> protocol.tally(protocol.simulate(ranks, np.random.default_rng(1)))
        <Tally: sub-ranking, 2 reports accepted, rejected: none>
        """
        return import_module("privrank.local.tally").Tally.of(self, reports)


class Asking(Protocol):
    """Protocol that asks for the order of `width` items in each digit.

    The favoured value is the position of the order among all orders in lexicographic order. For two
    items it is 0 if the first item is placed before the second, and 1 if after it.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.local import RandomPairs
    >>> protocol = RandomPairs(["tea", "coffee", "milk"], epsilon=1.0)
    >>> protocol.question(0)
    [('tea', 'milk')]
    """

    width = 2
    """Number of items that a digit orders."""

    @cached_property
    def table(self) -> IntArray:
        """The items of each assignment, by default one pair, (.., digits, width).

        Examples
        --------
        >>> protocol.table.shape
        (3, 1, 2)
        """
        return self.all_pairs[:, None]

    @property
    def assignments(self) -> int:
        """Number of rows of the table.

        Examples
        --------
        >>> protocol.assignments
        3
        """
        return len(self.table)

    def asked(self, assignments: NDArray[Any]) -> IntArray:
        """Return the items of assignments, shape (respondents, digits, width).

        Examples
        --------
        >>> protocol.asked(np.array([0, 1])).tolist()
        [[[0, 2]], [[0, 1]]]
        """
        return np.asarray(self.table[np.asarray(assignments)])

    @cached_property
    def _orders(self) -> IntArray:
        """The order of the asked items for each value, shape (orders, width)."""
        return np.array(list(permutations(range(self.width))))

    @cached_property
    def signs(self) -> NDArray[np.int8]:
        """The order of two asked items by value, shape (options, width, width).

        1 if the row's item is placed before the column's item, -1 if after it, 0 for a tie.

        Examples
        --------
        >>> protocol.signs[0].tolist()
        [[0, 1], [-1, 0]]
        """
        places = np.argsort(self._orders, axis=1)
        return np.asarray(np.sign(places[:, None, :] - places[:, :, None]), dtype=np.int8)

    def favoured_answers(self, ranks: NDArray[Any], assignments: NDArray[Any]) -> IntArray:
        """Return the value of the order of the asked items.

        Examples
        --------
        >>> protocol.favoured_answers(np.array([[1, 2, 3], [3, 2, 1]]), np.array([0, 0])).ravel()
        array([0, 1])
        """
        rows = np.arange(len(ranks))[:, None, None]
        order = np.argsort(ranks[rows, self.asked(assignments)], axis=-1)
        # as digits of a number, orders are sorted in lexicographic order
        powers = self.width ** np.arange(self.width)[::-1]
        return np.searchsorted(self._orders @ powers, order @ powers)[..., None]

    def question(self, assignment: int) -> list[tuple[str, ...]]:
        """Return the items to order in an assignment, one tuple for each digit.

        Examples
        --------
        >>> protocol.question(2)
        [('coffee', 'milk')]
        """
        code = checks.check_count("assignment", assignment, low=0, high=self.assignments - 1)
        sets = self.asked(np.array([code]))[0].tolist()
        return [tuple(self.items[place] for place in places) for places in sets]


def pair_place(first: IntArray, second: IntArray, items: int) -> IntArray:
    """Return the positions of pairs (earlier item first) among all pairs."""
    return np.asarray(first * (2 * items - first - 1) // 2 + second - first - 1)


def check_rankings(ranks: object, items: Sequence[str], *, ties: bool = False) -> NDArray[Any]:
    """Return an array of complete rankings, one per row.

    With `ties`, any ranks of at least 1 are valid. Columns of a data frame are found by name, in
    any order.
    """
    if hasattr(type(ranks), "columns"):
        # only in studies: clients do not load the libraries that read a frame
        ranks = import_module("privrank.encode.samples").ranks_by_name(ranks, items)
    rankings = checks.as_array(ranks)
    m = len(items)
    if rankings.ndim != 2 or rankings.shape[1] != m or rankings.dtype.kind not in "iu":
        raise ValueError(
            f"ranks must be whole numbers in a data frame with the protocol's items as columns, or "
            f"in an array with a column for each of the {m} items in their order."
        )
    complete = rankings >= 1 if ties else np.sort(rankings, axis=1) == np.arange(1, m + 1)
    if not complete.all():
        raise ValueError(f"ranks must hold each of the ranks 1 to {m} once in every row.")
    return rankings


def check_kind(protocol: object, kind: type[Any]) -> None:
    """Refuse an object that is not a protocol of this kind."""
    if not isinstance(protocol, kind):
        raise TypeError(
            f"protocol must be of the kind {kind.__name__}, got {type(protocol).__name__}. Make "
            f"one with a class of privrank.local, or read its JSON with Client.from_json(text)."
        )


def check_generator(rng: object) -> None:
    """Refuse an object that is not a random generator."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}.")
