"""Loops, most of them compiled: arrays in, arrays out; no generators, no frames.

They keep nothing of their arrays, so that un-noised data may pass through some of them. Imported
only where a loop is about to run. Every function also runs uncompiled
(``NUMBA_DISABLE_JIT=1``) with the same results. Callers validate: ranks are int64, 1..m without
ties in every row.
"""
