"""Argument checks, arrays, numerics that cannot fail, progress; knows nothing of the rest."""
