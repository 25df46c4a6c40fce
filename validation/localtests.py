"""The local model's test of uniformity and its worths: size, power and coverage.

The sizes of Figure 3 of Busa-Fekete, Fotakis and Zampetakis (2021), local curve: their scheme, in
which each respondent reports a bit for each of m / 2 pairs of the m items, is compared with bits
for a single pair out of a few public ones. Only the pairs asked are simulated, with the
probabilities of the Mallows model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import chi2
from study import asked, least, mean_and_error, most, table

import privrank as pr
from privrank.local.kinds import Comparisons, PairBits, RandomPairs, SubRanking
from privrank.local.protocols import Protocol
from privrank.local.tally import Tally

ALPHA, FEW = 0.05, (1, 2, 5, 8, 16)
PRINTED = "m / 2 pairs, printed threshold"
EXACT = "m / 2 pairs, exact threshold"


def names(m: int) -> list[str]:
    return [str(k + 1) for k in range(m)]


@cache
def by_gap(m: int, phi: float) -> np.ndarray:
    """Probability that the better of two items is ranked first, by their gap in the centre."""
    model = pr.Mallows(m, phi)
    ahead = [model.pair_probability(model.items[0], item) for item in model.items[1:]]
    return np.array([0.5, *ahead])


def chances(rng: np.random.Generator, m: int, phi: float, pairs: np.ndarray) -> np.ndarray:
    """Probability that each pair's first item is ranked first, for a random centre."""
    place = rng.permutation(m)
    gap = place[pairs[:, 1]] - place[pairs[:, 0]]
    better = by_gap(m, phi)[np.abs(gap)]
    return np.where(gap > 0, better, 1.0 - better)


def counted(protocol: Protocol, won: np.ndarray, count: np.ndarray) -> Tally:
    """Return the tally of these numbers of reports for the first item of each assignment."""
    counts = np.column_stack((won, count - won))
    cells = np.argwhere(counts)
    return Tally(protocol, *cells.T, counts[tuple(cells.T)], {}, None, None)


@cache
def few_pairs(m: int, epsilon: float, pairs: int) -> PairBits:
    return PairBits(names(m), epsilon, pairs=pairs)


@dataclass(frozen=True)
class Bits:
    """Bits about pairs, at one of the paper's sizes."""

    m: int
    n: int
    phi: float
    epsilon: float = 1 / 3

    def replicates(self, wanted: int) -> int:
        return wanted


@dataclass(frozen=True)
class Rankings:
    """Uniformity from completely simulated rankings, by protocol."""

    kind: Callable[..., Protocol]
    m: int
    n: int
    phi: float
    epsilon: float = 1.0

    def replicates(self, wanted: int) -> int:
        return wanted

    def __str__(self) -> str:
        return f"{self.kind.__name__} m={self.m} n={self.n} phi={self.phi} eps={self.epsilon:g}"


@dataclass(frozen=True)
class Worths:
    """Randomised comparisons of items with these worths."""

    worths: tuple[float, ...]
    n: int
    epsilon: float
    ties: float = 0.0
    kind: Callable[..., Protocol] = Comparisons

    def replicates(self, wanted: int) -> int:
        return wanted

    def __str__(self) -> str:
        return f"worths m={len(self.worths)} n={self.n} eps={self.epsilon:g} ties={self.ties:g}"


def bits_found(rng: np.random.Generator, cell: Bits) -> dict[str, bool]:
    found = {}
    for pairs in FEW:
        if 2 * pairs <= cell.m:
            protocol = few_pairs(cell.m, cell.epsilon, pairs)
            ahead = chances(rng, cell.m, cell.phi, protocol.asked(np.arange(pairs))[:, 0])
            count = rng.multinomial(cell.n, np.full(pairs, 1 / pairs))
            won = rng.binomial(count, 0.5 + protocol.gain * (ahead - 0.5))
            tally = counted(protocol, won, count)
            found[f"one of {pairs}"] = pr.UniformityTest.from_reports(tally, draws=999).reject
    half = cell.m // 2
    ahead = chances(rng, cell.m, cell.phi, rng.permutation(cell.m)[: 2 * half].reshape(-1, 2))
    gain = math.tanh(cell.epsilon / half / 2)
    net = 2 * rng.binomial(cell.n, 0.5 + gain * (ahead - 0.5)) - cell.n
    squares = (net**2 / cell.n).sum()
    found[EXACT] = squares >= chi2.isf(ALPHA, half)
    found[PRINTED] = squares >= cell.m / 2 + 2 * math.sqrt(cell.m * math.log(1 / ALPHA))
    return found


def pvalue_found(rng: np.random.Generator, cell: Rankings) -> float:
    protocol = cell.kind(names(cell.m), cell.epsilon)
    # the centre is unknown to the protocol
    ranks = pr.Mallows(cell.m, cell.phi).rvs(cell.n, rng)[:, rng.permutation(cell.m)]
    tally = protocol.tally(protocol.simulate(ranks, rng))
    found = pr.UniformityTest.from_reports(tally, draws=199).pvalue
    assert found is not None
    return found


def tally_of(cell: Worths, rng: np.random.Generator, worths: np.ndarray) -> Tally:
    protocol = Comparisons(names(len(worths)), cell.epsilon, ties=cell.ties > 0)
    first, second = protocol.all_pairs.T
    share = 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
    tie = cell.ties * 4.0 * share * (1.0 - share)
    true = np.column_stack((share - tie / 2, 1.0 - share - tie / 2, tie))[:, : protocol.options]
    low = protocol.response.other_weight / protocol.response.total
    count = rng.multinomial(cell.n, np.full(len(first), 1 / len(first)))
    counts = rng.multinomial(count, low + protocol.gain * true)
    cells = np.argwhere(counts)
    return Tally(protocol, *cells.T, counts[tuple(cells.T)], {}, None, None)


def worths_found(rng: np.random.Generator, cell: Worths) -> dict[str, Any]:
    worths = np.array(cell.worths) - np.mean(cell.worths)
    tally = tally_of(cell, rng, worths)
    fit, top = pr.PrivateBTL.from_reports(tally), pr.PrivateTopK.from_reports(tally, 1)
    pairs, sides = fit.pairwise(), fit.conf_int()
    first, second = np.triu_indices(len(worths), 1)
    share = 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
    design = fit.release.design
    assert design.pairs is not None
    away = worths[design.pairs.first] - worths[design.pairs.second]
    won = design.pairs.count / (1.0 + np.exp(-away))
    rates = np.bincount(design.pairs.first, won, len(worths))
    rates += np.bincount(design.pairs.second, design.pairs.count - won, len(worths))
    met = np.concatenate((design.pairs.first, design.pairs.second))
    rates /= np.bincount(met, np.tile(design.pairs.count, 2), len(worths))
    limits, ranks = top.conf_int(), fit.rank_conf_int()
    place = np.argsort(np.argsort(-worths)) + 1
    level = tally_of(cell, rng, 0.0 * worths)
    return {
        "pairs": (pairs["lower"] <= share) & (share <= pairs["upper"]),
        "worths": (sides["lower"] <= worths) & (worths <= sides["upper"]),
        "rates": (limits["lower"] <= rates) & (rates <= limits["upper"]),
        "ranks": bool(((ranks["lower"] <= place) & (place <= ranks["upper"])).all()),
        "level": pr.PrivateBTL.from_reports(level).test_homogeneity().pvalue <= ALPHA,
        "separated": pr.PrivateTopK.from_reports(level, 1).pvalue <= ALPHA,
    }


FIGURE = {
    (10, 20_000): (1.0, 0.97, 0.95, 0.9),
    (100, 200_000): (1.0, 0.997, 0.995, 0.99),
    (500, 300_000): (1.0, 0.9995, 0.999, 0.998),
    (1000, 300_000): (1.0, 0.9997, 0.9995, 0.999, 0.99),
}
BITS = [Bits(m, n, phi) for (m, n), phis in FIGURE.items() for phi in phis]
KINDS = (PairBits, SubRanking, RandomPairs)
RANKINGS = [Rankings(kind, 10, 2000, phi) for kind in KINDS for phi in (1.0, 0.95, 0.9)]
RANKINGS += [Rankings(kind, 4, 40, 1.0, 2.0) for kind in KINDS]
SPREAD = (1.0, 0.5, 0.0, -0.3, -0.5, -0.7)
WORTHS = [
    Worths(SPREAD[:3], 60, 2.0),
    Worths(SPREAD[:4], 300, 0.5),
    Worths(SPREAD, 600, 1.0),
    Worths(SPREAD, 2000, 1.0),
    Worths(SPREAD, 2000, 3.0),
    Worths(tuple(2.5 * w for w in SPREAD), 2000, 2.0),
    Worths(SPREAD, 600, 1.0, ties=0.6),
    Worths(SPREAD, 2000, 3.0, ties=0.6),
    Worths(tuple(np.linspace(-1, 1, 15)), 3000, 2.0),
]


def bits_row(cell: Bits, found: list[dict[str, bool]]) -> dict[str, Any]:
    power = {name: f"{np.mean([hit[name] for hit in found]):.3f}" for name in found[0]}
    few = {f"one of {pairs}": power.get(f"one of {pairs}", "") for pairs in FEW}
    facts = {"items": cell.m, "respondents": cell.n, "phi": f"{cell.phi:g}"}
    return {**facts, **few, EXACT: power[EXACT], PRINTED: power[PRINTED]}


def rankings_row(cell: Rankings, found: list[float]) -> dict[str, Any]:
    pvalues = np.array(found)
    power, error = mean_and_error((pvalues <= ALPHA).tolist())
    return {
        "protocol": cell.kind.__name__,
        "items": cell.m,
        "respondents": cell.n,
        "epsilon": f"{cell.epsilon:g}",
        "phi": f"{cell.phi:g}",
        "rejected at .05": f"{power:.3f}",
        "std err": f"{error:.3f}",
        "at .2": f"{np.mean(pvalues <= 0.2):.3f}",
        "at .5": f"{np.mean(pvalues <= 0.5):.3f}",
    }


def worths_row(cell: Worths, found: list[dict[str, Any]]) -> dict[str, Any]:
    row = {
        "items": len(cell.worths),
        "respondents": cell.n,
        "epsilon": f"{cell.epsilon:g}",
        "ties": f"{cell.ties:g}",
    }
    for name in ("pairs", "worths", "rates"):
        inside = np.array([np.asarray(one[name]) for one in found])
        low, floor = least(inside)
        high, ceiling = most(inside)
        row[name] = f"{inside.mean():.3f}"
        row[f"worst of {name} (floor)"] = f"{low:.3f} ({floor:.3f})"
        row[f"most of {name} (ceiling)"] = f"{high:.3f} ({ceiling:.3f})"
    for name in ("ranks", "level", "separated"):
        row[name] = f"{np.mean([one[name] for one in found]):.3f}"
    return row


def main() -> None:
    wanted = asked(__doc__ or "", 400)
    command = "python validation/localtests.py"
    parts = (
        (
            "localtests_bits",
            "Local test of uniformity: power in the settings of Figure 3",
            BITS,
            bits_found,
            bits_row,
        ),
        (
            "localtests_rankings",
            "Local test of uniformity: rejection rates by protocol",
            RANKINGS,
            pvalue_found,
            rankings_row,
        ),
        (
            "localtests_worths",
            "Worths from randomised comparisons",
            WORTHS,
            worths_found,
            worths_row,
        ),
    )
    for number, (name, title, cells, run, row) in enumerate(parts):
        table(name, title, command, cells, run, row, wanted, 7000 + 100 * number)


if __name__ == "__main__":
    main()
