"""Voters with very unequal activity and sampled rows: bias, coverage and width by bound.

The number of votes of a voter has a Zipf distribution truncated at 1,000. Each vote is between two
random items, with repeats. Homogeneous voters share one order; in the other cells voters with more
than ten votes have the opposite worths. The target at a bound is the worths that fit the expected
answers with each voter weighted by the number of kept votes, which the bound and the distribution
of activity determine. Under `distinct_pairs` one vote of each pair is kept first.
"""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pandas as pd
import study
from scipy.optimize import minimize

import privrank as pr

ITEMS, VOTERS, MOST, POWER, ACTIVE = 10, 2000, 1000, 1.6, 10
BOUNDS = (1, 5, 20, 50)
WORTHS = np.linspace(0.8, -0.8, ITEMS)
NAMES = [f"item {k}" for k in range(ITEMS)]
FIRST, SECOND = np.triu_indices(ITEMS, 1)
VOTES = np.arange(1, MOST + 1)
SHARES = VOTES**-POWER / (VOTES**-POWER).sum()


def probability(difference: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-difference))


def active_share(bound: int) -> float:
    """Return the fraction of kept votes from active voters."""
    kept = SHARES * np.minimum(VOTES, bound)
    return float(kept[VOTES > ACTIVE].sum() / kept.sum())


@cache
def target(opposed: bool, bound: int) -> np.ndarray:
    """Return the worths that fit the expected answers at a bound, with equally frequent pairs."""
    share = active_share(bound) if opposed else 0.0
    apart = WORTHS[FIRST] - WORTHS[SECOND]
    wins = (1.0 - share) * probability(apart) + share * probability(-apart)

    def loss(worths: np.ndarray) -> float:
        t = worths[FIRST] - worths[SECOND]
        return float((np.logaddexp(0.0, t) - wins * t).sum() + 0.5 * worths.sum() ** 2)

    return np.asarray(minimize(loss, np.zeros(ITEMS), tol=1e-12).x)


def votes(rng: np.random.Generator, opposed: bool) -> pd.DataFrame:
    """Draw the votes of all voters."""
    activity = rng.choice(VOTES, VOTERS, p=SHARES)
    voter = np.repeat(np.arange(VOTERS), activity)
    pair = rng.integers(len(FIRST), size=len(voter))
    sign = np.where(opposed & (activity > ACTIVE), -1.0, 1.0)[voter]
    wins = probability(sign * (WORTHS[FIRST] - WORTHS[SECOND])[pair])
    return pd.DataFrame(
        {
            "item1": np.array(NAMES)[FIRST[pair]],
            "item2": np.array(NAMES)[SECOND[pair]],
            "outcome": np.where(rng.random(len(voter)) < wins, 1, -1),
            "voter": voter,
        }
    )


def one(
    rng: np.random.Generator, opposed: bool, bound: int, epsilon: float, distinct: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return estimates, coverage of each pair's interval, and widths; NaN if withheld."""
    fit = pr.PrivateBTL(
        votes(rng, opposed),
        items=NAMES,
        respondent="voter",
        max_rows=bound,
        excess="sample",
        distinct_pairs=distinct,
    ).fit(epsilon, allow_unidentified=True, rng=rng)
    table, true = fit.pairwise(), target(opposed, bound)
    wins = probability(true[FIRST] - true[SECOND])
    low, high = table["lower"].to_numpy(), table["upper"].to_numpy()
    with np.errstate(divide="ignore"):
        width = np.log(high / (1.0 - high)) - np.log(low / (1.0 - low))
    # pairs that released comparisons do not connect have no interval
    held = np.where(np.isnan(low), np.nan, (low <= wins) & (wins <= high))
    return fit.params.to_numpy(), held, width


def main() -> None:
    replicates = study.arguments(__doc__, 160)
    started, rows = time.time(), []
    cells = [(opposed, bound, 2.0, False) for opposed in (False, True) for bound in BOUNDS]
    cells += [(opposed, 20, np.inf, False) for opposed in (False, True)]
    cells += [(False, bound, 2.0, True) for bound in (5, 20)]
    for number, cell in enumerate(cells):
        opposed, bound, epsilon, distinct = cell
        out = study.replicate(one, replicates, *cell, cell=1100 + number)
        estimates, held, widths = (np.array(part) for part in zip(*out, strict=True))
        true = target(opposed, bound)
        # the largest difference, between the first item and the last
        errors = estimates[:, 0] - estimates[:, -1] - (true[0] - true[-1])
        bias, error = study.mean_and_error(errors[~np.isnan(errors)])
        _, floor = study.least(held == 1.0)
        rows.append(
            {
                "voters": "active ones opposed" if opposed else "homogeneous",
                "pairs": "distinct" if distinct else "repeated",
                "max_rows": bound,
                "epsilon": epsilon,
                "votes of active": f"{active_share(bound):.2f}",
                "target, first - last": f"{true[0] - true[-1]:.3f}",
                "bias": f"{bias:.3f}",
                "SE": f"{error:.3f}",
                "withheld": f"{np.isnan(held).mean():.3f}",
                "coverage": f"{np.nanmean(held):.3f}",
                "worst pair": f"{np.nanmean(held, axis=0).min():.3f}",
                "its floor": f"{floor:.3f}",
                "median width": f"{np.nanmedian(widths):.3f}",
            }
        )
        print(rows[-1], flush=True)
    study.write(
        "activity",
        "Worths from sampled rows of voters with unequal activity",
        "python validation/activity.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
