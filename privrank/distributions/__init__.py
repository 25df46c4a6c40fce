"""Distributions of rankings and comparisons: Mallows, Plackett-Luce, Kendall distance, links."""
