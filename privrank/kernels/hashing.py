"""Hashes of whole numbers under a secret key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privrank.kernels import compiled

Words = NDArray[np.uint64]

# "somepseudorandomlygeneratedbytes"
_INITIAL = np.array(
    [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573], np.uint64
)


@compiled
def _rounds(v: Words, number: int) -> None:
    """Mix the four words of the state so many times."""
    a, b, c, d = v[0], v[1], v[2], v[3]
    for _ in range(number):
        a, c = a + b, c + d
        b = (b << np.uint64(13) | b >> np.uint64(51)) ^ a
        d = (d << np.uint64(16) | d >> np.uint64(48)) ^ c
        a = a << np.uint64(32) | a >> np.uint64(32)
        c, a = c + b, a + d
        b = (b << np.uint64(17) | b >> np.uint64(47)) ^ c
        d = (d << np.uint64(21) | d >> np.uint64(43)) ^ a
        c = c << np.uint64(32) | c >> np.uint64(32)
    v[0], v[1], v[2], v[3] = a, b, c, d


@compiled
def siphash(words: Words, key: Words) -> Words:
    """Return the hash of each row of 64-bit words, shape (n, k), under a key of two words.

    SipHash-2-4 (Aumasson and Bernstein 2012) of the row's bytes, the lowest of each word first.
    """
    n, k = words.shape
    out, v = np.empty(n, np.uint64), np.empty(4, np.uint64)
    # what ends a message: its length in bytes, modulo 256, in the highest byte
    last = np.uint64(8 * k % 256) << np.uint64(56)
    for row in range(n):
        for i in range(4):
            v[i] = _INITIAL[i] ^ key[i % 2]
        for i in range(k + 1):
            word = words[row, i] if i < k else last
            v[3] ^= word
            _rounds(v, 2)
            v[0] ^= word
        v[2] ^= np.uint64(255)
        _rounds(v, 4)
        out[row] = v[0] ^ v[1] ^ v[2] ^ v[3]
    return out
