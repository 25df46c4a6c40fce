"""Exact discrete Laplace and Gaussian variables from random bits, many at a time.

**Exactness.** Every random decision is a coin: heads where U < p, with U uniform on [0, 1] and p
known to any number of binary digits. The digits of U are random bits. They are taken until they
differ from those of p, which settles the coin: 16 or 32 of them at first, in vectors, and 64 more
at a time for the few coins that these leave open. All probabilities are 1 / (e^x + c) with a
rational x >= 0 and c = 0 or 1. Their digits come from `digits`, whole numbers with a proved error,
so each coin has the probability p exactly. What is drawn has no largest value: numbers beyond
2^62 are Python integers, in arrays of objects.

Given random bits that are independent and fair, the distributions hold exactly. The bits are an
argument; `noise` passes those of the operating system.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = Callable[[int], bytes]
"""Returns so many random bytes."""

Integers = NDArray[Any]
"""int64, or Python integers where one does not fit."""

LARGEST = 2**62
"""Numbers below it are int64, so that the sum of two still is."""

_SLACK = 2.0**-24
"""Distance from the float of a probability beyond which it decides; its error is below 2^-45."""


@lru_cache(maxsize=4096)
def digits(x: Fraction, bits: int, one: int) -> int:
    """Return floor(2^bits / (e^x + one)) for a rational x >= 0 and one = 0 or 1.

    Notes
    -----
    **Privacy.** No probability is rounded, so the losses that are proved of a distribution are
    those of what is drawn. Let y = e^-x, so that p = y / (1 + one y). The quotient x, its
    exponential, the sum and the last quotient are each rounded correctly to P decimal digits, by a
    relative 10^(1-P) / 2 at most. As x e^-x < 1/2 the first two move y by less than 10^(1-P), and p
    changes by no more than y does; the others move p by less than 10^(1-P). Cutting p after P
    decimals adds 10^-P. So the whole number n below is off by less than 50 of 10^P p, and where
    both ends of that interval have the same floor it is the one wanted. e^x is irrational but at x
    = 0, so a larger P always ends the search. From x = bits on the floor is 0, as e > 2.
    """
    if x == 0:
        return (1 << bits) // (1 + one)
    if x >= bits:
        return 0
    places = 12 + bits // 3
    while True:
        context = Context(prec=places, Emax=MAX_EMAX, Emin=MIN_EMIN)
        y = context.exp(-context.divide(Decimal(x.numerator), Decimal(x.denominator)))
        p = context.divide(y, context.add(y, 1)) if one else y
        n, whole = int(p.scaleb(places, context)), int(10**places)
        low, high = ((n - 50) << bits) // whole, ((n + 50) << bits) // whole
        if low == high:
            return low
        places *= 2


def _settle(word: int, known: int, x: Fraction, one: int, bits: Bits) -> bool:
    """Return whether U < 1 / (e^x + one), given the first `known` binary digits of U."""
    while word == (level := digits(x, known, one)):
        word = word << 64 | int.from_bytes(bits(8), "little")
        known += 64
    return bool(word < level)


def _heads(x: Fraction, one: int, size: int, bits: Bits) -> NDArray[np.bool_]:
    """Return independent coins that fall heads with probability 1 / (e^x + one), x > 0."""
    level = digits(x, 16, one)
    words = np.frombuffer(bits(2 * size), dtype="<u2")
    heads = words < level
    for place in np.flatnonzero(words == level):
        heads[place] = _settle(level, 16, x, one, bits)
    return heads


def geometric(scale: float, size: int, bits: Bits) -> Integers:
    """Return independent whole numbers k >= 0 with P(k) proportional to exp(-k / scale).

    The positive scale is taken as the rational number it is. Python integers where one of them is
    2^62 or more.

    Notes
    -----
    **Statistic.** With k = b_0 + 2 b_1 + ... + 2^J h the probability is a product: the binary
    digits b_j below 2^J and h are independent. b_j is 1 with probability q / (1 + q) for
    q = exp(-2^j / scale), that is 1 / (e^(2^j / scale) + 1), and h is geometric with ratio
    exp(-2^J / scale): it counts heads before the first tails. J is the least with 2^J > scale.
    """
    rate = 1 / Fraction(scale)
    low = max(0, math.frexp(scale)[1])
    number = np.zeros(size, dtype=np.int64)
    for place in range(low):
        number |= _heads(rate * 2**place, 1, size, bits).astype(np.int64) << place
    above, todo = np.zeros(size, dtype=np.int64), np.arange(size)
    while todo.size:
        todo = todo[_heads(rate * 2**low, 0, todo.size, bits)]
        above[todo] += 1
    if size and int(above.max()) + 1 >= LARGEST >> low:
        return np.asarray(number.astype(object) + above.astype(object) * 2**low)
    return number + (above << low)


def laplace(scale: float, size: int, bits: Bits) -> Integers:
    """Return independent integers k with P(k) proportional to exp(-|k| / scale).

    The difference of two independent geometric variables: at k it is the sum over j of
    (1 - q)^2 q^(2 j + |k|), which is (1 - q) / (1 + q) q^|k|.
    """
    both = geometric(scale, 2 * size, bits)
    return np.asarray(both[:size] - both[size:])


def gaussian(scale: float, size: int, bits: Bits) -> Integers:
    """Return independent integers k with P(k) proportional to exp(-k^2 / (2 scale^2)).

    Notes
    -----
    **Statistic.** A discrete Laplace variable k of scale t = floor(scale) + 1 is kept with
    probability exp(-g), g = (|k| - scale^2 / t)^2 / (2 scale^2): the product of the two is
    proportional to exp(-k^2 / (2 scale^2)). The coin looks at 32 binary digits of U and at exp(-g)
    in double precision. That is off by less than 2^-45: as scale^2 / t < scale, rounding moves
    z = (|k| - scale^2 / t) / scale by a few units of 2^-53 (|z| + 1), hence exp(-z^2 / 2) by a few
    of them as well, and the exponential function adds few more. Where U is within 2^-24 of it the
    exact coin decides.

    References
    ----------
    Canonne, Kamath and Steinke (2020), Algorithm 3, https://doi.org/10.29012/jpc.784.
    """
    square, wide = Fraction(scale) ** 2, math.floor(scale) + 1
    out: Integers = np.zeros(size, dtype=np.int64)
    todo = np.arange(size)
    while todo.size:
        k = laplace(float(wide), todo.size, bits)
        words = np.frombuffer(bits(4 * todo.size), dtype="<u4")
        deviation = (np.abs(k).astype(np.float64) - scale * (scale / wide)) / scale
        gap = words * 2.0**-32 - np.exp(-0.5 * deviation**2)
        kept = gap < 0
        for place in np.flatnonzero(np.abs(gap) <= _SLACK):
            g = (abs(int(k[place])) - square / wide) ** 2 / (2 * square)
            kept[place] = _settle(int(words[place]), 32, g, 0, bits)
        if k.dtype == object:
            out = out.astype(object)
        out[todo[kept]] = k[kept]
        todo = todo[~kept]
    return out
