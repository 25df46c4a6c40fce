"""Choices from publicly offered sets: which items each task showed, and how it was answered.

A *task* shows a set S of items to a unit, which answers it in one way:

- ``"best"``: names the best item of S, position score (1, 0, ..., 0);
- ``"worst"``: names the worst, (0, ..., 0, -1);
- ``"best-worst"``: names both, (1, 0, ..., 0, -1);
- ``"order"``: orders S, (s - 1, s - 3, ..., 1 - s) for s items.

Released is the item vector T, the sum over all tasks of the position scores that the items have in
the answer. Which set was shown in which task is public and fixed before any answer. Neighbours
replace all answers of one unit, and their sets stay. Respondents may decide for themselves to leave
tasks unanswered. This is then part of the answer, and the number U of answered tasks is released
together with T.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from privrank.privacy.sensitivity import NoiseName, PartNoise, UnitSensitivity, least_noise
from privrank.util.arrays import IntArray, immutable, orders_of

Answer = Literal["best", "worst", "best-worst", "order"]

_CUTS = 2**24
"""Numbers up to which maxima over sets of items are enumerated, in less than a second."""


def position_scores(answer: Answer, size: int) -> IntArray:
    """Return the position scores of an answer to a set of `size` items, descending."""
    if answer == "order":
        return np.arange(size - 1, -size, -2)
    scores = np.zeros(size, dtype=np.int64)
    scores[0] = answer != "worst"
    scores[-1] -= answer in ("worst", "best-worst")
    return scores


@immutable
@dataclass(frozen=True, slots=True)
class Offered:
    """The sets that were offered, by questionnaire.

    Parameters
    ----------
    answer : {"best", "worst", "best-worst", "order"}
        How each task is answered.
    sets : tuple of tuple of int
        The distinct sets, each as ascending positions of items; sorted by size, then by items.
    versions : tuple of tuple of int
        The distinct questionnaires, each as ascending positions in `sets`; a set that was shown
        twice occurs twice. If a row is a unit, each questionnaire is a single set.
    units : tuple of int
        Number of units with each questionnaire.
    patterns : tuple of int
        Pattern of covariates of these units; 0 without covariates.
    unanswered : "private" or None
        ``"private"`` if units may leave tasks unanswered, which is part of their answers.
    """

    answer: Answer
    sets: tuple[tuple[int, ...], ...]
    versions: tuple[tuple[int, ...], ...]
    units: tuple[int, ...]
    patterns: tuple[int, ...]
    unanswered: Literal["private"] | None = None

    def describes(self, items: int, units: int) -> bool:
        """Return whether these can be the sets of a survey with so many items and units."""
        places = range(len(self.sets))
        return (
            list(self.sets) == sorted({*self.sets}, key=lambda shown: (len(shown), shown))
            and all(
                len(shown) >= 2 and list(shown) == sorted({*shown}) and {*shown} <= {*range(items)}
                for shown in self.sets
            )
            and all({*version} <= {*places} for version in self.versions)
            and any(self.versions)
            and len(self.versions) == len(self.units) == len(self.patterns)
            and min(self.units) > 0
            and sum(self.units) == units
            and (self.unanswered is None or self.answer != "order")
        )

    @property
    def named(self) -> int:
        """Number of items that an answer names: the best, the worst or both."""
        return 2 if self.answer == "best-worst" else 1

    @property
    def tasks(self) -> int:
        """Number of tasks of all units."""
        return sum(
            len(version) * units for version, units in zip(self.versions, self.units, strict=True)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The pairs of items in each offered set, sorted by their first items.

    With covariates, item i with pattern s has the number s m + i.

    Parameters
    ----------
    first, second : ndarray of int64, shape (edges,)
        The two items.
    count : ndarray of int64, shape (edges,)
        Tasks that offered the set.
    groups : tuple of ndarray of int64
        Positions of the edges of each set, one array for each size s of sets, shape
        (sets, s (s - 1) / 2), in the order of ``np.triu_indices``.
    """

    first: IntArray
    second: IntArray
    count: IntArray
    groups: tuple[IntArray, ...]


@lru_cache(maxsize=8)
def offered_edges(offered: Offered, items: int) -> Edges:
    """Return the pairs of items in each offered set."""
    shown: Counter[tuple[int, int, int]] = Counter()
    for version, units, pattern in zip(
        offered.versions, offered.units, offered.patterns, strict=True
    ):
        for k in version:
            shown[len(offered.sets[k]), pattern, k] += units
    sizes, patterns, numbers = np.array(sorted(shown), dtype=np.int64).reshape(-1, 3).T
    tasks = np.array([shown[key] for key in sorted(shown)])
    ends = []
    counts = []
    for size in np.unique(sizes):
        here = sizes == size
        members = np.array([offered.sets[k] for k in numbers[here]]) + items * patterns[here, None]
        ends.append(members[:, np.array(np.triu_indices(size, 1))])
        counts.append(np.repeat(tasks[here, None], size * (size - 1) // 2, axis=1))
    first, second = (np.concatenate([pair[:, k].ravel() for pair in ends]) for k in (0, 1))
    order = np.argsort(first, kind="stable")
    place = np.argsort(order, kind="stable")
    cuts = np.cumsum([count.size for count in counts])[:-1]
    groups = tuple(
        part.reshape(count.shape) for part, count in zip(np.split(place, cuts), counts, strict=True)
    )
    count = np.concatenate([count.ravel() for count in counts])
    return Edges(first[order], second[order], count[order], groups)


def split_changes(answer: Answer, size: int) -> IntArray:
    """Return the largest change of the total score of a of a task's items, for a = 0 to `size`.

    It is the sum of the a largest position scores minus the sum of the a smallest. For 0 < a < s it
    is 1 for "best" and "worst", 2 for "best-worst" and 2 a (s - a) for "order". It is 0 for a = 0
    and a = s.
    """
    scores = position_scores(answer, size)
    return np.append(0, np.cumsum(scores - scores[::-1]))


@immutable
@dataclass(frozen=True, slots=True)
class OfferedSensitivity(UnitSensitivity):
    """Sensitivities of the item vector T of answers to publicly offered sets.

    `rows` is the largest number of tasks of a unit. Properties of :class:`UnitSensitivity` that are
    not overridden here are for statistics of pairs, such as win matrices, ties and gradients. They
    do not apply to offered sets.

    Parameters
    ----------
    half : int
        The largest change of the sum of T over a set of items, or an upper bound.
    joint : int
        Half the l1 sensitivity of (T, k U) if units may leave tasks unanswered, where an answer
        names k items; 0 if not.
    single : int
        The largest change of one item.
    square : int
        The largest squared length of a change, or an upper bound.
    body : Fraction
        The smallest multiple of the permutohedron that contains all changes, or an upper bound.

    Notes
    -----
    **Privacy.** A unit is all tasks of one respondent, or one task if a row is a unit. The sets of
    its tasks are public, and neighbours replace all its answers. An answer to a task with the set S
    is an assignment of the position scores g to the items of S. Let F(a) be the sum of the a
    largest scores minus the sum of the a smallest (:func:`split_changes`), and f(A) the sum of
    F(number of items of A in S) over the tasks of a unit. Let x be a change of T.

    *Sums.* In one task the sum over a items of S is at most the sum of the a largest scores, and at
    least the sum of the a smallest. So the sum of x over any set A of items, x(A), is at most f(A).
    This bound is attained for every A: the tasks are answered independently of each other, so in
    each of them the items of A can be first in one answer and last in the other. The sum over all
    items is constant, so x sums to 0. F(a) = F(s - a), because the sum of the a largest scores and
    the s - a smallest is constant. So f has the same value for a set and its complement.

    *Body.* F is concave, because its increments are the scores minus the scores in reverse order,
    which do not increase. So f is submodular, and the points x that sum to 0 and have x(A) <= f(A)
    for all A are its base polytope. For each order of the items this polytope has a vertex, which
    gives an item the increase of f when the item joins the items before it (Edmonds 1970). A
    vertex is the change between two sets of answers: all tasks are answered by the order in one of
    them, and by its reverse in the other. The first items of the order then have the sum f. So the
    convex hull of all changes is the base polytope.

    *Silence and ties.* Every task is answered, or it is public that it is not, or the answer is
    "best-worst" and silence is part of it. Ties in an order are means of answers. A private missing
    answer to a "best-worst" task adds 0 to T, the mean of all answers. Means lie in the convex hull
    of the answers, and all properties bound a convex function of x or of T, so they hold. For
    "best" and "worst" a private missing answer changes the total of T. Only the joint bound of T
    and U holds then, and T must not have noise that adds up to 0.

    *T and U together, "best-worst".* Let x be the change of T, and u the change of the number U of
    answered tasks. |x|_1 + 2 |u| is the largest value, over sets A and signs d, of x(A) - x(not A)
    + 2 d u. Tasks do not restrict each other, so the maximum is a sum over tasks. A task that A
    splits adds at most 4: twice the score of each side if both answers are given, and 2 + 2 if one
    is given. Any other task adds at most 2, if one answer is given. So the l1 sensitivity of (T, 2
    U) is the maximum over A of 4 split + 2 (c - split) for c tasks, of which A splits f(A) / 2.
    This is 2 c + max f. It is at most 4 c, the l1 sensitivity of T alone if some A splits all
    tasks. Zero-sum Laplace noise of scale (2 c + max f) / epsilon on T and discrete Laplace noise
    of half this scale on U therefore cost epsilon together
    (:func:`privrank.privacy.sensitivity.answered_noise`).

    *T and U together, "best" and "worst".* A task that is answered before and after moves T by at
    most 2 in l1 and U by 0. If one of its answers is silence, it moves T by 1 and U by 1. So the l1
    sensitivity of (T, U) is 2 c for c tasks, attained if all tasks become silent. T and U have
    discrete Laplace noise of scale 2 c / epsilon each.

    *Versions.* The questionnaire of a unit is public, and neighbours keep it. The noise must
    protect every unit, so each bound is the maximum over the distinct questionnaires.

    *Groups.* Public covariates are part of the design: a unit remains in its group, and its
    neighbour changes the vector of this group alone. So the vectors of all groups together spend as
    much as one vector.

    Tests compare all properties with all neighbours of small plans:
    ``tests/privacy/test_offered.py``.

    References
    ----------
    Edmonds (1970), Submodular functions, matroids, and certain polyhedra.
    """

    half: int
    joint: int
    single: int
    square: int
    body: Fraction

    @property
    def net_l1(self) -> int:
        """l1 sensitivity of T: twice the maximum of f. With private silence that of (T, k U).

        |x|_1 = x(A) - x(B), where A are the items with positive x and B all others. Because x sums
        to 0, this is 2 x(A), at most 2 f(A). Every A attains 2 f(A), as the proof above shows, so
        the l1 sensitivity is exactly 2 max f(A). It is even.
        """
        return 2 * (self.joint or self.half)

    @property
    def noises(self) -> tuple[NoiseName, ...]:
        """The distributions of noise that protect T, and U with it under private silence.

        Silence changes the total of T if an answer names one item, so this total must have noise.
        """
        if not self.joint:
            return get_args(NoiseName)
        return ("laplace",) if self.joint == self.rows else ("laplace", "zero-sum-laplace")

    @property
    def net_linf(self) -> int:
        """Largest change of one item, rounded up to an even number.

        The largest change is the maximum of f over single items: |x_i| <= f({i}), which is
        attained. :func:`privrank.privacy.sensitivity.net_noise` requires an even number. Only
        "best" and "worst" have odd changes.
        """
        return self.single + self.single % 2

    @property
    def net_l2(self) -> float:
        """l2 sensitivity of T.

        The squared length is convex, so it is largest at a vertex of the base polytope, which is a
        change. If this maximum is not enumerated, the bound |x|_2^2 <= max |x_i| |x|_1 replaces it.
        """
        return math.sqrt(self.square)

    @property
    def net_permutohedra(self) -> Fraction:
        """Multiple of the permutohedron K that contains all changes of T.

        K contains the points with total 0 whose sum over any set A of items is at most
        |A| (m - |A|). So a body that contains all changes is lambda K with lambda the maximum of
        f(A) / (|A| (m - |A|)), and no smaller multiple does, because f(A) is attained. Single items
        are not enough: their ratios are f({i}) / (m - 1). Two items that are never shown together
        have f equal to the sum of both, but |A| (m - |A|) = 2 (m - 2) is less than 2 (m - 1).
        """
        return self.body

    @property
    def longest(self) -> int:
        """Upper bound of the largest |T|^2 of one unit: |T|^2 is at most max |T_i| |T|_1.

        For "best" every entry of T is at least 0 and at most `single`, and they add up to the
        number of tasks. The same holds for "worst" and -T. The scores of "best-worst" and "order"
        are symmetric, so reversing all answers of a unit changes its T by -2 T. So max |T_i| is at
        most `single` / 2, and |T|_1 is at most `half`.
        """
        return self.single * max(self.rows, self.half)


@lru_cache(maxsize=32)
def offered_sensitivity(items: int, offered: Offered) -> OfferedSensitivity:
    """Return the sensitivities of the item vector of offered sets.

    Parameters
    ----------
    items : int
        Number of items m, at least 2.
    offered : Offered
        The offered sets. At least one unit has a task, and every set has at least two items.

    Notes
    -----
    **Privacy.** :class:`OfferedSensitivity` has the proofs for one questionnaire, and the
    sensitivity is the maximum over questionnaires. Questionnaires that differ only in the names of
    their items have the same sensitivity, which is computed once.

    *Enumeration.* Suppose that a questionnaire shows k items and has c tasks. Its maxima over all
    sets A are exact if 2^k (k + c), times the number of questionnaires, is at most 2^24. Only sets
    B of shown items are needed. Let A be any set with the shown items B, and C the shown items that
    are not in A. Then f(A) = f(B) = f(C), |A| >= |B| and m - |A| >= |C|. The function a (m - a) is
    concave, so its minimum over |B| <= a <= m - |C| is |B| (m - |B|) or |C| (m - |C|), the values
    of B and C.

    The longest vertex is computed exactly by dynamic programming over sets. Let q(B) be the largest
    sum of squared increases of f over the orders of B. It is the maximum over the last item i in B
    of q(B without i) + (f(B) - f(B without i))^2.

    *Bounds.* All other questionnaires have upper bounds. f(A) is at most the sum over tasks of the
    maximum of F. This is the maximum of f if some A splits every set of a "best", "worst" or
    "best-worst" questionnaire. Such an A exists if the sum of 2^(1 - s) over the tasks is below 1,
    because a random A leaves a set of s items whole with probability 2^(1 - s). f(A) is also at
    most the sum over tasks of the largest F(a) with a <= |A|. It is at most the sum of f over the
    single items of A, because f is submodular, so at most the sum of the |A| largest of these. For
    each size of at most m / 2 (complements have the same f), the smaller of the two sums is divided
    by |A| (m - |A|). For a single task the largest ratio is that of one item, so the multiple is
    exact. The squared length is at most twice the product of the bounds of |x_i| and f(A).
    """
    plans = {_renumbered([offered.sets[k] for k in version]) for version in offered.versions}
    parts = [_sensitivity(items, offered, plan, _CUTS // len(plans)) for plan in plans if plan]
    return OfferedSensitivity(
        items,
        max(part.rows for part in parts),
        False,
        "outcome",
        max(part.half for part in parts),
        max(part.joint for part in parts),
        max(part.single for part in parts),
        max(part.square for part in parts),
        max(part.body for part in parts),
    )


def _renumbered(sets: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return the sets in ascending order, with the items that they show numbered from 0."""
    places = {item: place for place, item in enumerate(sorted(set().union(*sets)))}
    return tuple(sorted(tuple(places[item] for item in task) for task in sets))


def _sensitivity(
    items: int, offered: Offered, plan: tuple[tuple[int, ...], ...], room: int
) -> OfferedSensitivity:
    """Return the sensitivities of one questionnaire, whose items are numbered from 0.

    They are exact if at most `room` numbers are enumerated. In all other cases they are bounds.
    """
    changes = [split_changes(offered.answer, len(task)) for task in plan]
    shown = 1 + max(max(task) for task in plan)
    shows = np.array([[item in task for item in range(shown)] for task in plan], dtype=np.int64)
    # f of the single items, descending
    alone = np.sort(np.array([change[1] for change in changes]) @ shows)[::-1]
    if 2**shown * (shown + len(plan)) <= room:
        sums, sizes = _enumerated(shows, changes)
        most = [int(sums[sizes == a].max()) for a in range(1, shown // 2 + 1)]
        half = max(most)
        square = _longest_vertex(sums, sizes)
    else:
        most = [
            min(int(alone[:a].sum()), sum(int(change[: a + 1].max()) for change in changes))
            for a in range(1, items // 2 + 1)
        ]
        half = sum(int(change.max()) for change in changes)
        square = 2 * int(alone[0]) * half
    body = max(Fraction(value, a * (items - a)) for a, value in enumerate(most, 1))
    # a task that is not split moves (T, k U) less than one that is, if an answer names k = 2 items
    joint = 0 if offered.unanswered is None else len(plan) + (offered.named - 1) * (half // 2)
    return OfferedSensitivity(
        items, len(plan), False, "outcome", half, joint, int(alone[0]), square, body
    )


def _enumerated(shows: IntArray, changes: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Return f of all subsets and their sizes; subset k contains item i if bit i of k is 1."""
    powers = 1 << np.arange(shows.shape[1])
    subsets = np.arange(2 ** len(powers))
    sizes = sum((subsets & power > 0 for power in powers), start=np.zeros_like(subsets))
    sums = np.zeros_like(subsets)
    for task, change in zip(shows @ powers, changes, strict=True):
        sums += change[sizes[subsets & task]]
    return sums, sizes


def _longest_vertex(sums: IntArray, sizes: IntArray) -> int:
    """Return the largest squared length of a vertex of the base polytope of f."""
    squares = np.zeros_like(sums)
    for size in range(1, sizes[-1] + 1):
        subsets = np.flatnonzero(sizes == size)[:, None]
        # without one item; an item that is not in the subset adds the value 0
        smaller = subsets & ~(1 << np.arange(sizes[-1]))
        steps = sums[subsets] - sums[smaller]
        squares[subsets[:, 0]] = (squares[smaller] + steps**2).max(axis=1)
    return int(squares[-1])


def vote_noise(items: int, offered: Offered, epsilon: float) -> PartNoise:
    """Return the noise of the votes on all pairs, with the smallest variance.

    Parameters
    ----------
    items : int
        Number of items m.
    offered : Offered
        The offered sets, of which complete orders are given.
    epsilon : float
        Epsilon of the votes.

    Notes
    -----
    **Privacy.** A unit is all orders of one respondent, or one order if a row is a unit. Its sets
    are public, and neighbours replace its orders. The vote of a pair i < j is the number of orders
    that place i before j. An order of the set S moves the votes of the pairs in S by at most 1
    each, and no other vote. So a unit that was shown both items r_ij times moves the vote by at
    most r_ij. The votes move by at most the sum of all r_ij in l1, which is the sum of s (s - 1) /
    2 over its sets, and by at most the largest r_ij in the maximum norm. Both are attained: one
    order of the items answers all tasks, and its reverse moves every vote by r_ij. The
    sensitivities are the maxima over the questionnaires, to which
    :func:`privrank.privacy.sensitivity.least_noise` is calibrated.
    """
    shown = [
        Counter(pair for k in version for pair in combinations(offered.sets[k], 2))
        for version in offered.versions
        if version
    ]
    return least_noise(
        items * (items - 1) // 2,
        max(repeats.total() for repeats in shown),
        max(max(repeats.values()) for repeats in shown),
        epsilon,
    )


def largest_square(items: int, offered: Offered, weights: IntArray) -> int:
    """Return the largest squared length of V x over all changes x of T, or an upper bound.

    Parameters
    ----------
    items : int
        Number of items m.
    offered : Offered
        The offered sets.
    weights : ndarray of int64, shape (rows, items)
        The matrix V, whose entries have at most 20 bits.

    Notes
    -----
    **Privacy.** Unit, neighbours and changes: :class:`OfferedSensitivity`. The length of V x is a
    convex function of x, so its maximum over the base polytope of f is attained at a vertex. A
    vertex is the change between the answers by an order of the items and the answers by its
    reverse, so it is a change, and the maximum over the vertices is exact. Items that a
    questionnaire does not show do not change. The sensitivity is the maximum over the
    questionnaires.

    *Enumeration.* A questionnaire that shows k items has k! orders. All vertices are enumerated if
    k! times the sizes of its sets, added up over all questionnaires, is at most 2^24.

    *Bound.* In all other cases the product of the largest |x|^2 and the squared norm of V replaces
    the maximum.

    *Rounding.* Either number is computed in floating-point arithmetic, with a relative error far
    below 1e-6. It is rounded to six digits, which lowers it by a factor of at least 1 - 5e-6, and
    multiplied by 1 + 1e-5. So the result is an upper bound, and the same on all machines.
    """
    plans = {tuple(offered.sets[k] for k in version) for version in offered.versions if version}
    if sum(math.factorial(len(_shown(plan))) * sum(map(len, plan)) for plan in plans) <= _CUTS:
        images = (_vertices(offered.answer, plan) @ weights[:, _shown(plan)].T for plan in plans)
        largest = max(np.square(image, dtype=np.float64).sum(axis=1).max() for image in images)
    else:
        largest = offered_sensitivity(items, offered).square * np.linalg.norm(weights, 2) ** 2
    return math.ceil(float(f"{largest:.6g}") * (1.0 + 1e-5))


def _shown(plan: tuple[tuple[int, ...], ...]) -> list[int]:
    """Return the items that a questionnaire shows, ascending."""
    return sorted(set().union(*plan))


def _vertices(answer: Answer, plan: tuple[tuple[int, ...], ...]) -> IntArray:
    """Return the vertices of a questionnaire by the orders of its k items, shape (k!, k)."""
    ranks = orders_of(len(_shown(plan)))
    vertices = np.zeros_like(ranks)
    for task in plan:
        places = np.searchsorted(_shown(plan), task)
        scores = position_scores(answer, len(task))
        within = ranks[:, places].argsort(axis=1).argsort(axis=1)
        vertices[:, places] += (scores - scores[::-1])[within]
    return vertices
