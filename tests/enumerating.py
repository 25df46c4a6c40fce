"""Exact distributions of what the secure source of the local model decides, by trying all draws."""

from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import permutations

import pytest

from privrank.local.protocols import SubsetResponse, secrets


class Source:
    """Gives the draws it was told, then zeros, and notes what else could have been drawn."""

    def __init__(self, told):
        self.drawn, self.told, self.others = [], told, []
        self.probability = Fraction(1)

    def below(self, total):
        place = len(self.drawn)
        if place >= len(self.told):
            self.others += [(*self.drawn, other) for other in range(1, total)]
        self.drawn.append(self.told[place] if place < len(self.told) else 0)
        self.probability /= total
        return self.drawn[-1]


def distribution(run):
    """The probability of each outcome of `run`, a function that draws by `secrets.randbelow`."""
    found, waiting = Counter(), [()]
    while waiting:
        source = Source(waiting.pop())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(secrets, "randbelow", source.below)
            patch.setattr(secrets, "token_hex", lambda size: "")
            outcome = run()
        found[outcome] += source.probability
        waiting += source.others
    assert sum(found.values()) == 1
    return found


def light(protocol, favoured_weight=3, other_weight=1):
    """The protocol with weights so small that all draws can be tried: 3 to 1, for log 3 a digit."""
    response = SubsetResponse(protocol.options, protocol.favoured, favoured_weight, other_weight)
    protocol.__dict__["response"] = response
    return protocol


def rankings(items):
    return list(permutations(items))


def reports(protocol, assignment=None, held=None):
    """For each ranking the distribution of (assignment, answer), by the client's own code."""

    def run(ranking):
        report = protocol.randomize(ranking, assignment, "an id")
        return report["assignment"], report["answer"]

    held = rankings(protocol.items) if held is None else held
    return {ranking: distribution(partial(run, ranking)) for ranking in held}


def loss(distributions):
    """The largest ratio of the probabilities of one outcome; None if one of them is zero."""
    outcomes = set().union(*distributions.values())
    found = Fraction(1)
    for outcome in outcomes:
        probabilities = [table[outcome] for table in distributions.values()]
        if min(probabilities) == 0:
            return None
        found = max(found, max(probabilities) / min(probabilities))
    return found


def exp(epsilon):
    """exp(epsilon) to 80 digits, as a fraction."""
    context = Context(prec=80)
    exact = Fraction(epsilon)
    return Fraction(context.exp(context.divide(Decimal(exact.numerator), exact.denominator)))
