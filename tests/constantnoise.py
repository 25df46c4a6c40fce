"""Noise replaced by constants: what a fit then shows is a function of public facts, or a leak.

Replaced is the smallest surface that makes every release a constant:

- ``draw`` of every distribution of noise, unless it has no variance: a statistic that is released
  without noise stays what it is, and is seen;
- the random sources of `privrank.privacy.noise` and `draws`, whose numbers do not depend on data:
  permutations, completions and re-labellings then are the same for all data of a shape;
- ``draw_bit``, unless the bit is certain: its probability is secret, one draw of it is not;
- `SECRET`: functions inside a mechanism whose arguments are secret and hold the noise already, and
  whose value is what is released. Each has its own proof and its own enumeration.

All else runs as it is: encoding, plans, budgets, inference, tables.
"""

import sys
from functools import partial

import numpy as np

from privrank.mechanisms import closeness
from privrank.privacy import draws, noise
from privrank.privacy.knorm import PermutohedronNoise, ZeroSumLaplace
from privrank.published import agkm22
from privrank.release import release

# in standard deviations of the noise
PATTERN = np.array([0.7, -1.3, 0.4, -0.2, 1.6, -1.1, 0.9, -2.1, 0.1, 1.2, -0.6])
CENTRED = (PermutohedronNoise, ZeroSumLaplace)

# The noise says nothing is there, or that counts are far beyond what answers can give.
VOLUMES = {"quiet": 1.0, "loud": 20.0}


def drawn(distribution, values, rng, *, exact, volume):
    """A vector of this distribution's shape and size, the same for all `values`."""
    if distribution.variance == 0.0:
        return exact(distribution, values, rng)
    steps = np.resize(PATTERN, np.shape(values)) * np.sqrt(distribution.variance) * volume
    if isinstance(distribution, CENTRED):
        steps -= steps.mean()
    whole = np.rint(np.clip(steps, -(2.0**50), 2.0**50)).astype(np.int64)
    if isinstance(distribution, CENTRED):
        whole[-1] -= whole.sum()
    return whole


def bit(probability, rng, *, volume):
    certain = probability in (0.0, 1.0)
    return int(probability) if certain else int(volume > 1.0)


def cells(scale, cell, size, rng):
    steps = np.floor(np.resize(PATTERN, size) * scale / cell)
    return (steps + 0.5) * cell


def nonzero(scale, size, rng):
    steps = np.rint(np.resize(PATTERN, size) * scale).astype(np.int64)
    return np.where(steps == 0, 1, steps)


def shuffled(rows, columns, rng, *, dtype=np.int64):
    keys = np.random.default_rng(20011998).random((rows, columns))
    return np.argsort(keys, axis=1).astype(dtype)


def uniforms(rows, columns, rng):
    return np.resize(np.linspace(0.02, 0.98, 37), (rows, columns))


def first_rows(group, size, most, names, key):
    before = np.array([size[:k][group[:k] == group[k]].sum() for k in range(len(size))], dtype=int)
    return np.clip(most - before, 0, size)


SOURCES = {
    "draw_below": lambda total, rng: total // 3,
    "draw_bit": bit,
    "draw_cells": cells,
    "draw_nonzero": nonzero,
    "draw_key": lambda rng: np.arange(2, dtype=np.uint64),
    "draw_one_each": lambda sizes, rng: np.zeros(len(sizes), dtype=np.int64),
    "draw_orders": shuffled,
    "draw_permutation": lambda size, rng: tuple(int(k) for k in np.roll(np.arange(size), 1)),
    "draw_rows": first_rows,
    "draw_shuffles": partial(shuffled, dtype=np.int32),
    "draw_uniforms": uniforms,
    "secret_generator": lambda: np.random.default_rng(20011998),
}


def smoothed(statistics, noisy, scale, *, exact, volume):
    """The smoothed p-value; `noisy` is one of the secret statistics plus noise of this scale."""
    return exact(statistics, noisy, scale) if scale == 0 else 0.31415 / volume


def mixed(pairs, rate, uniforms, *, exact, volume):
    """The order of the exponential mechanism, drawn by `uniforms`."""
    return np.roll(np.arange(len(pairs)), 2) if 0 <= rate < 10 else exact(pairs, rate, uniforms)


SECRET = {
    closeness.smoothed_pvalue: smoothed,
    agkm22.exponential_order: mixed,
}


def distributions():
    """The distributions of noise that a release can name."""
    return tuple(release._NOISES.values())


def replace_everywhere(patch, function, other):
    """Put `other` wherever a module of the package knows `function` by name."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "privrank":
            for attribute, value in list(vars(module).items()):
                if value is function:
                    patch.setattr(module, attribute, other)


def hold_still(patch, volume="quiet"):
    """Replace the noise of the package by constants until the monkeypatch is undone."""
    size = VOLUMES[volume]
    for distribution in distributions():

        def draw(self, values, rng, exact=distribution.draw):
            return drawn(self, np.asarray(values), rng, exact=exact, volume=size)

        patch.setattr(distribution, "draw", draw)
    for name, constant in SOURCES.items():
        chosen = partial(constant, volume=size) if constant is bit else constant
        replace_everywhere(patch, vars(draws).get(name) or vars(noise)[name], chosen)
    for function, constant in SECRET.items():
        replace_everywhere(patch, function, partial(constant, exact=function, volume=size))
