"""Test statistics on integer lattices, each with its sensitivity and null distribution."""
