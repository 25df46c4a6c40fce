"""All outcomes of secret draws that are made unit by unit, one after the other."""

from itertools import combinations, permutations

import numpy as np

from privrank.mechanisms import permutation, samples, tallies
from privrank.published import asz18


class Outcomes:
    """All outcomes of secret draws: each run makes the choices of one path through their tree."""

    def __init__(self, patch):
        self.path, self.seen = [], []
        patch.setattr(samples, "draw_rows", self.rows)
        patch.setattr(samples, "draw_orders", self.orders)
        patch.setattr(permutation, "draw_shuffles", self.shuffles)
        patch.setattr(tallies, "draw_rows", self.rows)
        patch.setattr(samples, "draw_bit", self.bit)
        patch.setattr(asz18, "draw_bit", self.bit)

    def choose(self, options):
        if self.depth == len(self.path):
            self.path.append([0, options])
        self.depth += 1
        return self.path[self.depth - 1][0]

    def orders(self, rows, columns, rng):
        every = list(permutations(range(columns)))
        return np.array([every[self.choose(len(every))] for _ in range(rows)])

    def shuffles(self, rows, columns, rng):
        # independent and alike: what holds of one, and all others equal to it, holds of them all
        return np.repeat(self.orders(1, columns, rng), rows, axis=0)

    def rows(self, group, size, most, names, key):
        whose = np.repeat(np.arange(len(size)), size)
        kept = np.zeros(len(size), dtype=np.int64)
        for each in np.unique(group):
            own = [kind for kind in whose if group[kind] == each]
            every = list(combinations(own, min(most, len(own))))
            kept += np.bincount(every[self.choose(len(every))], minlength=len(size))
        return kept

    def bit(self, probability, rng):
        self.seen.append(probability)
        return 0

    def all(self, run):
        """Return what `run` returns and the probabilities of its bits, for every outcome."""
        found, self.path = [], []
        while True:
            self.depth, self.seen = 0, []
            found.append((run(), tuple(self.seen)))
            while self.path and self.path[-1][0] + 1 == self.path[-1][1]:
                self.path.pop()
            if not self.path:
                return found
            self.path[-1][0] += 1
