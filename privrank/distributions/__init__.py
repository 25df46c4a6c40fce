"""Distributions: Mallows, Plackett-Luce, Kendall distance, links."""
