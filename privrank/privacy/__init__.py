"""Noise distributions, sensitivities, accounting and the privacy budget."""
