"""Consensus orders of a pair matrix: sorting, searching, exact, and shrunk where it is noisy."""
