"""Plackett-Luce maximum likelihood of one sample of rankings, complete and of the leading three.

By choix, whose prior is set aside; errors are from its Hessian at the maximum. Prints JSON.
"""

import json
import platform
import sys
from importlib.metadata import version

import choix
import numpy as np
from choix.opt import Top1Fcts
from scipy.stats import gumbel_r

ITEMS, NOBS, LISTED = 5, 300, 3


def fit(stages, result):
    """The maximum, and the standard errors of all differences of two worths."""
    hessian = Top1Fcts(stages, 0.0).hessian(result)
    covariance = np.linalg.pinv(hessian, rcond=1e-9, hermitian=True)
    first, second = np.triu_indices(ITEMS, 1)
    own = np.diag(covariance)
    errors = np.sqrt(own[first] + own[second] - 2.0 * covariance[first, second])
    return {"worths": (result - result.mean()).tolist(), "errors": errors.tolist()}


def main():
    rng = np.random.default_rng(1975)
    utility = np.linspace(0.8, -0.8, ITEMS) + gumbel_r.rvs(size=(NOBS, ITEMS), random_state=rng)
    orders = np.argsort(-utility, axis=1)
    settings = {"alpha": 0.0, "tol": 1e-10}
    every = [tuple(order) for order in orders.tolist()]
    complete = [(order[k], order[k + 1 :]) for order in every for k in range(ITEMS - 1)]
    leading = [(order[k], order[k + 1 :]) for order in every for k in range(LISTED)]
    found = {
        "meta": {
            "made by": "plackett_luce_reference.py",
            "python": platform.python_version(),
            "choix": version("choix"),
            "orders": "items by rank, best first, one text per ranking",
            "worths": "maximum likelihood, sum zero",
            "errors": "standard errors of differences of items i < j, row by row",
        },
        "orders": ["".join(map(str, order)) for order in every],
        "complete": fit(complete, choix.opt_rankings(ITEMS, every, **settings)),
        "leading three": fit(leading, choix.opt_top1(ITEMS, leading, **settings)),
    }
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
