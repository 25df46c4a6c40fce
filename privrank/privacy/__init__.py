"""Noise distributions, sensitivities and the budget: the only room that draws privacy noise."""
