"""Links that a user could have written, as the tests of several modules ask for them."""

import numpy as np
from scipy.special import expit

import privrank as pr


def sech_cdf(t):
    lower = 2 / np.pi * np.arctan(np.exp(-0.5 * np.pi * np.abs(t)))
    return np.where(t < 0, lower, 1 - lower)


def sech_density(t):
    tail = np.exp(-0.5 * np.pi * np.abs(t))
    return tail / (1 + tail**2)


def sech_slope(t):
    return -0.5 * np.pi * np.tanh(0.5 * np.pi * t) * sech_density(t)


def steep_density(t):
    return 2 * expit(2 * t) * expit(-2 * t)


def steep_slope(t):
    return 2 * steep_density(t) * (expit(-2 * t) - expit(2 * t))


SECH = pr.Link("sech", sech_cdf, sech_density, sech_slope, kappa1=2.0, kappa2=1.02739)
"""The hyperbolic secant, F' = sech(pi t / 2) / 2."""

STEEP = pr.Link("steep logit", lambda t: expit(2 * t), steep_density, steep_slope, 2.0, 1.0)
