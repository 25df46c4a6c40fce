"""Without privacy worths of choices are those of maximum likelihood, and the page states them.

The R packages on the page were not run. statsmodels fits conditional logit models, and explicit
likelihoods are maximised with SciPy.
"""

import re
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from statsmodels.discrete.conditional_models import ConditionalLogit

import privrank as pr

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## bwsTools")[2].partition("\n## ")[0]


@cache
def example():
    """The names that the code of the page defines."""
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, flags=re.S)
    names: dict[str, object] = {}
    exec(compile(code, "coming-from", "exec"), names)
    return names


def fit(answer):
    frame = example()["choices"][answer]
    return pr.PrivateBTL(frame, respondent=None, design="public").fit(np.inf, penalty=0)


def tasks():
    """The set of each task, and its items from first to last, as positions."""
    survey, items = example()["survey"], example()["items"]
    orders = [
        [items.index(item) for item in row]
        for row in survey[["1st", "2nd", "3rd"]].itertuples(index=False)
    ]
    return [(sorted(order), order) for order in orders]


def conditional_logit(answer):
    """Centred worths by statsmodels: one row per possible answer of a task, a stratum per task."""
    m, rows = len(example()["items"]), []
    for number, (shown, order) in enumerate(tasks()):
        if answer == "best":
            alternatives = [(item, None) for item in shown]
            chosen = (order[0], None)
        else:
            alternatives = list(permutations(shown, 2))
            chosen = (order[0], order[-1])
        for best, worst in alternatives:
            x = np.zeros(m)
            x[best] += 1
            if worst is not None:
                x[worst] -= 1
            rows.append((number, (best, worst) == chosen, *x))
    table = pd.DataFrame(rows)
    model = ConditionalLogit(table[1].astype(float), table.iloc[:, 2 : m + 1], groups=table[0])
    # BFGS, the default, stops about 1e-4 before the maximum
    fitted = model.fit(method="newton", disp=False)
    worths = np.append(fitted.params.to_numpy(), 0.0)
    return worths - worths.mean(), fitted.bse.to_numpy()


def log_likelihood(worths, answer):
    """The sum over tasks of the log-probability of their answers."""
    total = 0.0
    for shown, order in tasks():
        value = worths[order]
        if answer == "best":
            total += value[0] - np.log(np.exp(worths[shown]).sum())
        elif answer == "best-worst":
            pairs = [np.exp(worths[b] - worths[w]) for b, w in permutations(shown, 2)]
            total += value[0] - value[-1] - np.log(sum(pairs))
        else:
            total += sum(value[k] - np.log(np.exp(value[k:]).sum()) for k in range(len(value)))
    return total


def maximum_likelihood(answer):
    """Centred worths that maximise the explicit likelihood."""
    m = len(example()["items"])

    def loss(free):
        worths = np.append(free, -np.sum(free))
        return -log_likelihood(worths, answer) / len(tasks())

    free = minimize(loss, np.zeros(m - 1), method="BFGS", options={"gtol": 1e-9}).x
    return np.append(free, -free.sum())


def by_item(result):
    return result.params.loc[example()["items"]].to_numpy()


@pytest.mark.parametrize("answer", ["best", "best-worst"])
def test_worths_are_those_of_a_conditional_logit(answer):
    worths, errors = conditional_logit(answer)
    result = fit(answer)
    assert np.abs(by_item(result) - worths).max() < 1e-6
    pairs = result.pairwise()
    last = example()["items"][-1]
    stated = []
    for item in example()["items"][:-1]:
        here = pairs[["item1", "item2"]].isin([item, last]).all(axis=1)
        stated.append(pairs.loc[here, "std_err"].item())
    assert stated == pytest.approx(errors, rel=1e-4)


@pytest.mark.parametrize("answer", ["best", "best-worst"])
def test_worths_maximise_the_likelihood(answer):
    assert np.abs(by_item(fit(answer)) - maximum_likelihood(answer)).max() < 1e-6


def test_the_page_states_these_worths():
    stated = dict(re.findall(r"^\| (.+?) \| .+? \| (tea .+?) \|$", SECTION, flags=re.M))
    found = {
        "first choice": by_item(fit("best")),
        "MaxDiff": by_item(fit("best-worst")),
        "orders, pairs": by_item(fit("order")),
        "orders, likelihood": maximum_likelihood("order"),
    }
    assert stated.keys() == found.keys()
    for name, worths in found.items():
        numbers = dict(re.findall(r"(\w+) (-?\d\.\d{4})", stated[name]))
        assert list(numbers) == example()["items"]
        assert [float(one) for one in numbers.values()] == pytest.approx(worths, abs=5.1e-5)
    apart = np.abs(found["orders, pairs"] - found["orders, likelihood"]).max()
    (distance, error) = re.findall(
        r"differ by (\d\.\d+) .+? standard error of (\d\.\d+)", " ".join(SECTION.split())
    )[0]
    assert float(distance) == pytest.approx(apart, abs=5.1e-4)
    assert float(error) == pytest.approx(fit("order").bse.min(), abs=5.1e-4)
