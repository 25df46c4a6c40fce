"""Null distributions, thresholds, p-values and confidence sets of released statistics."""
