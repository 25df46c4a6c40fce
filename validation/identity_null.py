"""Size and power of tests of identity whose null consists of the shares of earlier answers.

Both years' answers follow one distribution, or this year's differ by a total variation distance of
0.1. "taken as exact": the shares of the earlier answers are the null. "null_nobs": their number is
given, so the test compares two samples. Or the earlier counts were released with discrete Laplace
noise of standard deviation 5.6 (epsilon 0.5), and counts below 1 were replaced by 1: "noise untold"
gives the number of answers alone, "null_noise" the noise as well. "most" is 0.05 plus two standard
errors.
"""

from __future__ import annotations

import time

import numpy as np
from study import arguments, replicate, write

import privrank as pr

ALPHA, APART = 0.05, 0.1
RATIO = np.exp(-0.5 / 2.0)  # l1 sensitivity 2 if one answer is replaced
SHARES = {"4 choices": (0.4, 0.3, 0.2, 0.1), "12 choices": tuple(np.arange(12, 0, -1) / 78)}
CELLS = tuple((data, (500, 500), 2.0) for data in SHARES)


def rejects(
    rng: np.random.Generator, data: str, sizes: tuple[int, int], epsilon: float
) -> list[bool]:
    """Return rejections of each null, and of nulls with null_nobs if H0 is false."""
    p, (n, before) = np.array(SHARES[data]), sizes
    earlier = rng.multinomial(before, p)
    half = np.cumsum(p) <= 0.5 + 1e-9
    away = p * np.where(half, 1 + APART / p[half].sum(), 1 - APART / p[~half].sum())
    found = []
    noise = rng.geometric(1.0 - RATIO, (2, len(p)))
    noisy = np.maximum(earlier + noise[0] - noise[1], 1)
    deviation = np.sqrt(2.0 * RATIO) / (1.0 - RATIO)
    known = {"null_nobs": before}
    settings = [(p, earlier, {}), (p, earlier, known), (away, earlier, known), (p, noisy, known)]
    settings += [(shares, noisy, known | {"null_noise": deviation}) for shares in (p, away)]
    for shares, behind, told in settings:
        counts = rng.multinomial(n, shares)
        null = dict(zip(map(str, range(len(p))), behind / behind.sum(), strict=True))
        test = pr.IdentityTest.from_counts(counts, null, list(null), **told)
        found.append(bool(test.fit(epsilon, rng=rng, **({} if told else {"draws": 999})).reject))
    return found


def main() -> None:
    started, rows = time.time(), []
    replicates = arguments(__doc__, 400)
    for cell, setting in enumerate(CELLS, 7300):
        found = np.array(replicate(rejects, replicates, *setting, cell=cell))
        data, (n, before), epsilon = setting
        exact, estimated, power, untold, noisy, noisy_power = found.mean(axis=0)
        rows.append(
            {
                "data": data,
                "n": n,
                "answers behind the null": before,
                "epsilon": f"{epsilon:g}",
                "replicates": len(found),
                "level, taken as exact": f"{exact:.4f}",
                "level, null_nobs": f"{estimated:.4f}",
                "most": f"{ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / len(found)):.4f}",
                "power, null_nobs": f"{power:.4f}",
                "level, noise untold": f"{untold:.4f}",
                "level, null_noise": f"{noisy:.4f}",
                "power, null_noise": f"{noisy_power:.4f}",
            }
        )
        print(rows[-1], f"{time.time() - started:.0f} s", flush=True)
    title = "Size and power of tests of identity with a null estimated from earlier answers"
    write("identity_null", title, "python validation/identity_null.py", rows, started)


if __name__ == "__main__":
    main()
