"""Keyed hashes of byte strings."""

import numpy as np
from numpy.typing import NDArray

from privrank.kernels import compiled
from privrank.util.arrays import IntArray, Words

# "somepseudorandomlygeneratedbytes"
_INITIAL = np.array(
    [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573], np.uint64
)


@compiled
def _rounds(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, number: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the four words of the state, mixed `number` times."""
    for _ in range(number):
        a = a + b
        c = c + d
        b = (b << np.uint64(13) | b >> np.uint64(51)) ^ a
        d = (d << np.uint64(16) | d >> np.uint64(48)) ^ c
        a = a << np.uint64(32) | a >> np.uint64(32)
        c = c + b
        a = a + d
        b = (b << np.uint64(17) | b >> np.uint64(47)) ^ c
        d = (d << np.uint64(21) | d >> np.uint64(43)) ^ a
        c = c << np.uint64(32) | c >> np.uint64(32)
    return a, b, c, d


@compiled
def _hash(text: NDArray[np.uint8], key: Words) -> np.uint64:
    """Return the hash of a byte string under a key."""
    a = _INITIAL[0] ^ key[0]
    b = _INITIAL[1] ^ key[1]
    c = _INITIAL[2] ^ key[0]
    d = _INITIAL[3] ^ key[1]
    size = len(text)
    for start in range(0, size + 1, 8):
        # eight bytes, lowest first; the last word ends with the length modulo 256
        word = np.uint64(size % 256) << np.uint64(56) if start + 8 > size else np.uint64(0)
        for j in range(start, min(start + 8, size)):
            word |= np.uint64(text[j]) << np.uint64(8 * (j - start))
        a, b, c, d = _rounds(a, b, c, d ^ word, 2)
        a ^= word
    a, b, c, d = _rounds(a, b, c ^ np.uint64(255), d, 4)
    return np.uint64(a ^ b ^ c ^ d)


@compiled
def siphash(text: NDArray[np.uint8], ends: IntArray, key: Words) -> Words:
    """Return the SipHash-2-4 of each byte string under a key of two words.

    See Aumasson and Bernstein (2012). `text` contains the strings one after the other; `ends` is
    the start of the first string followed by the end of each.
    """
    out = np.empty(len(ends) - 1, np.uint64)
    for i in range(len(out)):
        out[i] = _hash(text[ends[i] : ends[i + 1]], key)
    return out


@compiled
def distinct_numbers(words: Words, rows: IntArray, wanted: IntArray, key: Words) -> IntArray:
    """Return `wanted` distinct numbers below `rows` for each name.

    They are the hashes of the name's words and of 0, 1, 2, ... modulo `rows`, without repetitions.
    """
    out = np.empty(wanted.sum(), np.int64)
    text = np.empty(words.shape[1] + 1, np.uint64)
    place = 0
    for i in range(len(words)):
        text[:-1] = words[i]
        turn = 0
        met = {np.int64(-1)}
        while len(met) <= wanted[i]:
            text[-1] = turn
            number = np.int64(_hash(text.view(np.uint8), key) % np.uint64(rows[i]))
            if number not in met:
                met.add(number)
                out[place] = number
                place += 1
            turn += 1
    return out
