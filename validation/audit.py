"""Privacy losses of every class, method, unit and noise on neighbours, against what is claimed.

Losses are computed if the distribution of the release is known, and measured if it is not
(`audit_losses.py`). A computed loss, or a lower bound at 99%, must not exceed the claim. The last
rows have deliberate faults, each of which must be detected.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations, product
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import study
from audit_losses import EPSILON, Claim, bound_of, computed, observed, reported

import privrank as pr
from privrank.plans import choice as calibration
from privrank.plans import comparisons as plans
from privrank.privacy import sensitivity
from privrank.privacy.noise import DiscreteLaplace
from privrank.release import survey as declared

DELTA = 1e-3
ROOM = 1e-6
"""Relative tolerance for the rounding of a loss, and for the 2^-26 of K-norm noise."""

ITEMS = ["a", "b", "c"]
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


# --- neighbours: data sets in which one unit, the first, has this or that ---


def compared(answers: Sequence[int], others: int = 7) -> pd.DataFrame:
    """Comparisons of respondents on all pairs; answers of the first are given, missing as None."""
    rows = [(0, *pair, answer) for pair, answer in zip(PAIRS, answers, strict=True)]
    rows += [
        (who, *pair, 1 if (who + place) % 2 else -1)
        for who in range(1, others + 1)
        for place, pair in enumerate(PAIRS)
    ]
    return pd.DataFrame(rows, columns=["who", "item1", "item2", "outcome"])


def single(answer: tuple[tuple[str, str], int], others: int = 12) -> pd.DataFrame:
    """Comparisons as units; the first is given."""
    rows = [(*answer[0], answer[1])]
    rows += [(*PAIRS[k % 3], 1 if k % 2 else -1) for k in range(others)]
    return pd.DataFrame(rows, columns=["item1", "item2", "outcome"])


def grouped(answers: tuple[Sequence[int], str]) -> pd.DataFrame:
    """Comparisons of respondents in two groups; the first one's answers and group are given."""
    frame = compared(answers[0])
    names = {who: "uv"[who % 2] for who in frame["who"]} | {0: answers[1]}
    return frame.assign(group=frame["who"].map(names))


def ranked(ranks: Sequence[int], others: int = 9) -> pd.DataFrame:
    """Rankings, the first of which is given."""
    orders = list(permutations(range(1, len(ranks) + 1)))
    rows = [ranks, *(orders[k % len(orders)] for k in range(others))]
    return pd.DataFrame(rows, columns=list("abcd")[: len(ranks)])


def equal(ranks: Sequence[int], others: int = 9) -> pd.DataFrame:
    """Rankings that are all equal, except the first."""
    first = list(range(1, len(ranks) + 1))
    return pd.DataFrame([ranks, *[first] * others], columns=list("abcd")[: len(ranks)])


def chosen(choice: str, others: int = 11) -> pd.Series:
    """Choices, the first of which is given; most of the others are equal."""
    return pd.Series([choice, *(["a"] * 8 + ["b", "c", "b"])[:others]])


ANSWERS = list(product((1, -1), repeat=3))
SILENT = list(product((1, None, -1), repeat=3))
ONE = [(pair, answer) for pair in PAIRS for answer in (1, -1)]
RANKS = list(permutations((1, 2, 3)))
THREE = list(product((1, 0, -1), repeat=3))
LONG = [(1, 2, 3, 4), (4, 3, 2, 1), (2, 1, 4, 3), (3, 4, 1, 2)]


# --- what is claimed ---

PERSON = {"items": ITEMS, "respondent": "who", "max_rows": 3}
TIED = {"ties": "davidson"}
ROW = {"items": ITEMS, "respondent": None, "distinct_pairs": False}
PUBLIC, FORMULA = {"design": "public"}, "item1 + item2 + outcome ~ group"
LEVELS = {"levels": {"group": ["u", "v"]}}


def worths(answers: Any, make: Callable[[Any], Any] = compared, **more: Any) -> Any:
    return pr.PrivateBTL(make(answers), **{**PERSON, **more})


FOUR = list(combinations("abcd", 2))
WON = [
    (0, 1, 1, 1, 1, 0),  # across a cut, and reversed
    (0, -1, -1, -1, -1, 0),
    (1,) * 6,
    (0,) * 6,
    (None,) * 6,
    (1, None, None, None, None, -1),
    (-1, 1, -1, 0, 1, None),
    (None, 0, 0, 0, 0, None),
]


def matched(answers: Any, others: int = 9, **more: Any) -> Any:
    """Worths of four items, the pairs of which are asserted to be met at random, with ties."""
    rows = [(0, *pair, answer) for pair, answer in zip(FOUR, answers, strict=True)]
    rows += [
        (who, *pair, 1 if (who + place) % 2 else -1)
        for who in range(1, others + 1)
        for place, pair in enumerate(FOUR)
    ]
    frame = pd.DataFrame(rows, columns=["who", "item1", "item2", "outcome"])
    whole = {"respondent": "who", "max_rows": 6, "ties": True, "pair_counts": "proportional"}
    return pr.PrivateBTL(frame, items=list("abcd"), **whole, **more)


def by_group(answers: Any) -> Any:
    return pr.PrivateBTL.from_formula(FORMULA, grouped(answers), **PERSON, **LEVELS)


def top(answers: Any) -> Any:
    return pr.PrivateTopK(compared(answers), 1, **PERSON)


def consensus(ranks: Any) -> Any:
    return pr.PrivateRankAggregation(ranked(ranks))


def uniformity(ranks: Any, make: Callable[[Any], Any] = equal) -> Any:
    return pr.UniformityTest(make(ranks))


def crowd(ranks: Any, alike: int = 60) -> Any:
    """Rankings in the number that the bits of a paper need, some of them equal."""
    frame = ranked(ranks, 1999)
    frame.iloc[1 : 1 + alike] = [1, 2, 3, 4]
    return pr.UniformityTest(frame)


def shares(choice: str) -> Any:
    return pr.UniformityTest(chosen(choice), items=ITEMS)


def skewed(choice: str) -> Any:
    return pr.IdentityTest(chosen(choice), [0.6, 0.3, 0.1], categories=ITEMS)


def coin(choice: str) -> Any:
    pair = pd.Series([choice, *"aab" * 4])
    return pr.IdentityTest(pair, [0.5, 0.5], categories=["a", "b"])


def identity(ranks: Any) -> Any:
    return pr.IdentityTest(equal(ranks), pr.Mallows(list("abcd"), 0.5), items=list("abcd"))


def groups(ranks: Any) -> Any:
    frame = equal(ranks, 19)
    frame.iloc[10:] = frame.iloc[10:, ::-1].to_numpy()
    return pr.ClosenessTest(frame[:10], frame[10:])


def shared(choice: tuple[str, str], **more: Any) -> Any:
    """A test of choices in two groups; the choice and the group of the first are given."""
    frame = pd.DataFrame({"choice": [choice[0]] + ["a"] * 9 + ["b"] * 10})
    frame["group"] = [choice[1]] + ["u"] * 9 + ["v"] * 10
    more = {"categories": ["a", "b"], "levels": ["u", "v"], **more}
    return pr.ClosenessTest.from_formula("choice ~ group", frame, **more)


def tabled(name: str, **more: Any) -> Claim:
    """A claim of the table of counts by group and category."""
    three = partial(shared, categories=["a", "b", "c"])
    answers = [(choice, "u") for choice in "abc"]
    return Claim(name, "row", "auto", three, answers, {"method": "table"}, **more)


NOISES = ("laplace", "zero-sum-laplace", "permutohedron")
FEW = {"draws": 99}


def known() -> list[Claim]:
    """Claims about statistics with additive noise, and about bits, whose losses are computed."""
    made = []
    for noise, (design, more) in product(NOISES, {"private": {}, "public": PUBLIC}.items()):
        options = {"method": "counts", "noise": noise}
        name = f"PrivateBTL, {design} design"
        people, rows = partial(worths, **more), partial(worths, make=single, **ROW, **more)
        ones = ONE if design == "private" else [(PAIRS[0], 1), (PAIRS[0], -1)]
        made.append(
            Claim(
                name,
                "respondent",
                noise,
                people,
                SILENT if design == "private" else ANSWERS,
                options,
            )
        )
        made.append(Claim(name, "row", noise, rows, ones, options))
    for noise, design in product(NOISES, ("private", "public")):
        options = {"method": "counts", "noise": noise, "dependence": "none"}
        people = partial(worths, design=design, **TIED)
        made.append(
            Claim(f"PrivateBTL, ties, {design}", "respondent", noise, people, THREE, options)
        )
    made += [
        Claim("PrivateBTL, proportional", "respondent", noise, matched, WON,
              {"method": "counts", "noise": noise, "dependence": "none"})
        for noise in NOISES[:2]
    ]  # fmt: skip
    gaussian = {"method": "counts", "noise": "gaussian"}
    fit = partial(Claim, delta=DELTA)
    people = partial(worths, **PUBLIC)
    made += [
        fit("PrivateBTL, public design", "respondent", "gaussian", people, ANSWERS, gaussian),
        Claim("PrivateBTL, default", "respondent", "auto", worths, SILENT),
        Claim("PrivateBTL, covariate", "respondent", "auto", by_group,
              list(product(ANSWERS[::7], "uv"))),
        Claim("PrivateTopK", "respondent", "auto", top, SILENT),
    ]  # fmt: skip
    made += [
        Claim(f"PrivateRankAggregation, {method}", "row", "auto", consensus, RANKS,
              {"method": method})
        for method in ("auto", "kemeny", "borda", "pairs-laplace", "kwiksort")
    ]  # fmt: skip
    scored = {"method": "kemeny", "score_share": 0.2}
    made += [
        Claim("PrivateRankAggregation, score", "row", "auto", consensus, RANKS, scored),
        *(
            fit(f"PrivateRankAggregation, {method}", "row", "gaussian", consensus, RANKS,
                {"method": method})
            for method in ("kemeny", "borda")
        ),
    ]  # fmt: skip
    made += [
        Claim(f"UniformityTest, {method}", "row", "auto", uniformity, LONG,
              {"method": method, **FEW})
        for method in ("auto", "borda", "laplace", "mallows", "omnibus")
    ]  # fmt: skip
    made += [
        Claim(f"UniformityTest of choices, {method}", "row", "auto", shares, ITEMS,
              {"method": method, **FEW})
        for method in ("auto", "omnibus", "tv")
    ]  # fmt: skip
    made += [
        Claim("UniformityTest, truncated", "row", "bit", crowd, LONG, {"method": "truncated"}),
        *(
            Claim(f"IdentityTest of choices, {method}", "row", "auto", skewed, ITEMS,
                  {"method": method, **FEW})
            for method in ("auto", "tv", "omnibus")
        ),
        Claim("IdentityTest of two choices, binary", "row", "auto", coin, "ab",
              {"method": "binary", **FEW}),
        Claim("IdentityTest of two choices, sigmoid", "row", "bit", coin, "ab",
              {"method": "sigmoid", "tolerance": 0.3}),
    ]  # fmt: skip
    made += [
        Claim(f"IdentityTest, {method}", "row", "auto", identity, LONG, {"method": method, **FEW})
        for method in ("auto", "omnibus", "kernel", "distance")
    ]
    made.append(tabled("ClosenessTest, table"))
    return made


def unknown() -> list[Claim]:
    """Claims without a known distribution; two neighbours are released many times."""
    few, ends = {"permutations": 39}, [LONG[0], LONG[1]]
    swapped = [("a", "u"), ("b", "u")]
    moved, private = [("b", "u"), ("b", "v")], partial(shared, labels="private")
    apart = [ANSWERS[0], ANSWERS[-1]]
    order = {"method": "exponential"}
    drawn = partial(worths, max_rows=1, excess="sample", distinct_pairs=False)
    return [
        Claim("PrivateBTL, objective", "respondent", "continuous", worths, apart,
              {"method": "objective"}),
        Claim("PrivateBTL, rows drawn", "respondent", "auto", drawn, apart),
        Claim("PrivateBTL, default", "respondent", "auto", worths, apart),
        Claim("PrivateRankAggregation, exponential", "row", "order", consensus,
              [RANKS[0], RANKS[-1]], order),
        Claim("UniformityTest, bucket", "row", "bit", crowd, ends, {"method": "bucket"}),
        Claim("ClosenessTest, mmd", "row", "p-value", groups, ends, {"method": "mmd", **few}),
        Claim("ClosenessTest, kendall", "row", "p-value", groups, ends,
              {"method": "kendall", **few}),
        Claim("ClosenessTest of choices, tv", "row", "p-value", shared, swapped,
              {"method": "tv", **few}),
        Claim("ClosenessTest of choices, chi-square", "row", "p-value", shared, swapped,
              {"method": "chi-square", **few}),
        Claim("ClosenessTest, private labels", "row", "p-value", private, moved,
              {"method": "tv", **few}),
    ]  # fmt: skip


LOCAL = (
    pr.local.SubRanking(ITEMS, EPSILON, 3),
    pr.local.RandomPairs(ITEMS, EPSILON, 2),
    pr.local.PairBits(ITEMS, EPSILON),
    pr.local.Comparisons(ITEMS, EPSILON),
    pr.local.AdaptiveKwikSort(ITEMS, EPSILON),
    pr.local.DuchiBall(ITEMS, EPSILON),
    pr.local.CapBorda(ITEMS, EPSILON),
)


# --- faults ---


def half_the_noise() -> Any:
    exact = DiscreteLaplace.draw

    def draw(noise: Any, values: Any, rng: Any) -> Any:
        return exact(replace(noise, scale=noise.scale / 2), values, rng)

    return mock.patch.object(DiscreteLaplace, "draw", draw)


def half_the_scale() -> Any:
    calibrate = DiscreteLaplace.calibrate
    half = classmethod(lambda cls, s, epsilon: cls(calibrate(s, epsilon).scale / 2))
    return mock.patch.object(DiscreteLaplace, "calibrate", half)


def _unpaid(epsilon: float, shares: dict[str, float], main: str) -> dict[str, float]:
    return {main: epsilon} | {name: epsilon * share for name, share in shares.items()}


def unpaid() -> Any:
    """All of epsilon is used for the main part, in addition to the shares of the others."""
    whole = mock.Mock(side_effect=_unpaid)
    return mock.patch.object(calibration, "split", whole)


def printed_scale() -> Any:
    """Objective perturbation with the noise of the paper, epsilon / 16 for its inverse."""
    printed = mock.Mock(side_effect=lambda reach, gamma, epsilon, bounds: epsilon / 16)
    return mock.patch.object(calibration, "objective_scale", printed)


def ties_for_free() -> Any:
    """The number of ties with the noise that net wins pay for, as if no tie were left over."""
    stack = ExitStack()
    for module in (sensitivity, declared, plans):
        none = mock.Mock(side_effect=lambda sensitivity, name: 0)
        stack.enter_context(mock.patch.object(module, "ties_left", none))
    return stack


def halves_as_wins() -> Any:
    """Half wins are released with noise that hides whole wins."""
    side_noise = sensitivity.side_noise
    wins = mock.Mock(side_effect=lambda *given, ties: side_noise(*given, ties=False))
    return mock.patch.object(declared, "side_noise", wins)


def faults() -> list[tuple[bool, Claim]]:
    """False claims, and whether their losses are measured."""
    laplace = {"method": "counts", "noise": "laplace"}
    apart, public = [ANSWERS[0], ANSWERS[-1]], partial(worths, **PUBLIC)
    rows = partial(worths, **ROW, max_rows=1)
    half = Claim("half the noise", "row", "laplace", uniformity, LONG[:2],
                 {"method": "laplace", **FEW}, 1.5)  # fmt: skip
    plant = partial(Claim, unit="respondent", noise="laplace", options=laplace, epsilon=2.0)
    return [
        (True, replace(half, fault=half_the_noise)),
        (False, plant("half the scale", build=public, variants=apart, fault=half_the_scale)),
        (False, tabled("half the scale of a table", fault=half_the_scale)),
        (False, plant("sensitivity of a row", build=rows, variants=apart)),
        (False, plant("a part left unpaid", build=worths, variants=SILENT, fault=unpaid)),
        (False, plant("ties for free", build=partial(worths, **TIED, **PUBLIC), variants=THREE,
                      options={**laplace, "dependence": "none"}, fault=ties_for_free)),
        (False, plant("half wins as wins", build=matched, variants=WON, fault=halves_as_wins)),
        (False, plant("a share used twice", build=public, variants=apart, twice=True)),
        (True, Claim("printed constant", "respondent", "continuous", worths, apart,
                     {"method": "objective"}, 2.0, fault=printed_scale)),
    ]  # fmt: skip


# --- the table ---


def row_of(claim: Claim, kind: str, loss: float, runs: int, planted: bool = False) -> dict:
    """A row of the table; a deliberate fault must be refuted."""
    above = loss > claim.epsilon * (1 + ROOM)
    verdict = ("caught" if above else "missed") if planted else ("above" if above else "holds")
    return {
        "release": ("fault: " if planted else "") + claim.name,
        "unit": claim.unit,
        "noise": claim.noise,
        "claimed epsilon": f"{claim.epsilon:g}",
        "delta": f"{claim.delta:g}",
        "loss": kind,
        "found": f"{loss:.4f}",
        "runs of each neighbour": runs or "",
        "verdict": verdict,
    }


def measured(claim: Claim, runs: int, cell: int) -> float:
    """The bound from a number of runs."""
    pairs = study.replicate(observed, runs, claim, cell=cell)
    one, other = (np.array(side) for side in zip(*pairs, strict=True))
    return bound_of(one, other, claim.delta)


def exact_rows() -> list[dict[str, Any]]:
    """Rows of losses that are computed."""
    rows = []
    for claim in known():
        loss, noise = computed(claim)
        rows.append(row_of(replace(claim, noise=noise), "computed", loss, 0))
    for protocol in LOCAL:
        claim = Claim(f"local, {type(protocol).__name__}", "report", "response", pr.Budget, ())
        rows.append(row_of(claim, "computed", reported(protocol), 0))
    return rows


def fault_rows(runs: int) -> list[dict[str, Any]]:
    """Rows of faults; measured ones use the same number of runs."""
    rows = []
    for number, (often, claim) in enumerate(faults()):
        loss = measured(claim, runs, 1000 + number) if often else computed(claim)[0]
        kind = "measured" if often else "computed"
        rows.append(row_of(claim, kind, loss, runs if often else 0, planted=True))
    return rows


def main() -> None:
    runs, started = study.arguments(__doc__, 4000), time.time()
    rows = exact_rows()
    for number, claim in enumerate(unknown()):
        rows.append(row_of(claim, "measured", measured(claim, runs, number), runs))
        print(rows[-1], flush=True)
    rows += fault_rows(runs)
    wrong = [row["release"] for row in rows if row["verdict"] in ("above", "missed")]
    verdict = (
        f"Not as claimed: {', '.join(wrong)}."
        if wrong
        else "No loss is above its claim, and every planted fault is caught."
    )
    command = "python validation/audit.py"
    study.write("audit", "Claimed and measured privacy losses", command, rows, started, verdict)
    if not study.MODE:  # one run of each neighbour decides nothing
        sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
