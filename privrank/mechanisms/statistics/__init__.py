"""Test statistics on integer lattices, each with its sensitivity and its law under the null."""
