"""Archives that were changed field by field, and sealed again: refused, or what they say is true.

Whoever changes an archive can make a new check as well. What then cannot belong together is refused
in one sentence; what is left in HARMLESS are statements that nothing else in the archive speaks
against, and the result makes the same statement.
"""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from mutating import changed, with_check

import privrank as pr

ITEMS = ["a", "b", "c"]
RANKS = pd.DataFrame([[1, 2, 3], [3, 2, 1], [1, 3, 2]] * 20, columns=ITEMS)
PAIRS = pd.DataFrame(
    {"item1": list("aab") * 30, "item2": list("bcc") * 30, "outcome": [1, 1, -1, 1, -1, 1] * 15}
)
TIED = PAIRS.assign(outcome=[1, 0, -1] * 30)
TWELVE = pd.DataFrame([range(1, 13), range(12, 0, -1)] * 60, columns=list("abcdefghijkl"))
PEOPLE = PAIRS.assign(who=np.repeat(range(30), 3), g=np.repeat(["u", "v"], 45))
CHOICES = pd.DataFrame({"choice": list("aabc") * 20})
PERSON = {"items": ITEMS, "respondent": "who", "max_rows": 3}


def rng(seed=1):
    return np.random.default_rng(seed)


def of_people(**more):
    return pr.PrivateBTL(PEOPLE, **PERSON, **more)


def of_groups():
    return pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ g", PEOPLE, **PERSON, levels={"g": ["u", "v"]}
    )


def of_reports():
    protocol = pr.local.SubRanking(ITEMS, 1.0, 2)
    ranks = np.tile(RANKS.to_numpy(), (5, 1))
    return protocol.tally(pd.DataFrame(protocol.simulate(ranks, rng())))


MAKERS = {
    "proportional": lambda: pr.PrivateBTL(
        PAIRS, items=[*ITEMS, "d"], respondent=None, pair_counts="proportional"
    ).fit(1.0, rng=rng()),
    "davidson": lambda: pr.PrivateBTL(TIED, items=ITEMS, respondent=None, ties="davidson").fit(
        1.0, rng=rng()
    ),
    "Gaussian wins": lambda: pr.PrivateBTL(PAIRS, items=ITEMS, respondent=None).fit(
        1.0, 1e-6, noise="gaussian", rng=rng()
    ),
    "sums of squares": lambda: of_people(pair_counts="release").fit(
        2.0, dependence="pairs", rng=rng()
    ),
    "sums of squares with ties": lambda: of_people(ties="davidson", pair_counts="release").fit(
        2.0, dependence="pairs", rng=rng()
    ),
    "win matrix": lambda: pr.PrivateBTL(PAIRS, items=ITEMS, respondent=None).fit(1.0, rng=rng()),
    "people": lambda: of_people().fit(1.0, rng=rng()),
    "public": lambda: of_people(design="public").fit(2.0, 1e-6, noise="gaussian", rng=rng()),
    "objective": lambda: of_people().fit(4.0, method="objective", rng=rng()),
    "groups": lambda: of_groups().fit(2.0, rng=rng()),
    "non-private": lambda: of_people().fit(np.inf),
    "top": lambda: pr.PrivateTopK(PEOPLE, 1, **PERSON).fit(1.0, rng=rng()),
    "item counts": lambda: pr.PrivateTopK(PEOPLE, 1, **PERSON).fit(
        4.0, target="win rate", shares={"item_counts": 0.3}, rng=rng()
    ),
    "consensus": lambda: pr.PrivateRankAggregation(RANKS).fit(1.0, rng=rng()),
    "pairs": lambda: pr.PrivateRankAggregation(RANKS).fit(
        1.0, 1e-6, method="kemeny", score_share=0.2, rng=rng()
    ),
    "Gaussian pairs": lambda: pr.PrivateRankAggregation(TWELVE).fit(
        0.5, 1e-4, method="kemeny", score_share=0.2, rng=rng()
    ),
    "Gaussian totals": lambda: pr.PrivateRankAggregation(TWELVE).fit(
        0.5, 1e-4, method="borda", rng=rng()
    ),
    "uniformity": lambda: pr.UniformityTest(CHOICES["choice"], items=ITEMS).fit(
        1.0, method="tv", draws=99, rng=rng()
    ),
    "identity": lambda: pr.IdentityTest(
        CHOICES["choice"], dict.fromkeys(ITEMS, 1 / 3), items=ITEMS
    ).fit(1.0, method="tv", draws=99, rng=rng()),
    "closeness": lambda: pr.ClosenessTest(RANKS[:30], RANKS[30:]).fit(
        1.0, permutations=39, effect_epsilon=1.0, rng=rng()
    ),
    "reports": lambda: pr.PrivateRankAggregation.from_reports(of_reports()),
}

OTHERS = {
    **MAKERS,
    "exponential": lambda: pr.PrivateRankAggregation(RANKS).fit(
        1.0, method="exponential", rng=rng()
    ),
    "totals": lambda: pr.ClosenessTest(RANKS[:30], RANKS[30:]).fit(
        1.0, permutations=39, details_epsilon=2.0, rng=rng()
    ),
    "exact": lambda: pr.UniformityTest(CHOICES["choice"][1:] == "a", items=[False, True]).fit(
        1.0, method="tv", rng=rng()
    ),
    "simulated": lambda: pr.UniformityTest(RANKS).fit(1.0, draws=99, rng=rng()),
    "voters": lambda: pr.UniformityTest.from_reports(of_reports(), draws=99),
}
HARMLESS = re.compile(
    r"""privrank                                         # the version that wrote it
    # the survey is said to have been larger, to have other names or questions
    |release/design/(items(/\#)?|pairs(/each)?|nobs|max_rows|distinct_pairs|ties|completed|group_column
        |groups(/\#)*|covariates/(formula|factors/.*|terms/\#/\#|first/\#))
    # other noise was drawn, and other numbers were found in what it gave
    |release/(tie_break|found(/.*)?|parts/[^/]*/values(/\#)?)
    # nothing is protected in a non-private run, so no noise is calibrated to a sensitivity
    |release/parts/((answers|counts)\ by\ [a-z]*|net\ wins)/sensitivity
    # reports have no noise but their own, whether none is written as a scale of 0 or as null
    |release/parts/[^/]*/noise
    # estimates from reports have the step that holds the largest: other steps are other values
    |release/parts/(Borda\ scores|covariance\ of\ Borda\ scores|pairs)/step
    # a guarantee with a larger delta follows from the one that the noise gives
    |release/delta
    # the name of what was released, as a summary prints it
    |release/(method|mechanism)
    # public choices and counts from which no other number of the release is computed
    |release/settings/(rejected,.*|permutations|threshold\ level)
    # twice the steps at half the fineness are the same lattice, and the same noise, of totals
    |release/settings/steps
    # another level or ridge, a null distribution that is not simulated again, and the spread of a
    # null that is a table of probabilities
    |settings/(alpha|penalty|found/.*|null/theta)""",
    re.VERBOSE,
)


def places(value, path=()):
    """The path to everything that an archive holds, to the first two of a list."""
    if path:
        yield path
    if isinstance(value, list):
        value = dict(enumerate(value[:2]))
    for name, each in value.items() if isinstance(value, dict) else ():
        yield from places(each, (*path, name))


def mutations(value):
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int | float):
        return [-value - 5, 0, 2 * value, value + 1, 1.5, 1e300, "x"]
    if isinstance(value, str):
        return ["x", 0, None]
    if isinstance(value, list):
        return [[], value[:-1], value[::-1], [0] * len(value), None]
    return [{}, None] if isinstance(value, dict) else [1, "x"]


def near(new, value):
    numbers = isinstance(value, float) and isinstance(new, int | float)
    return numbers and math.isclose(new, value, abs_tol=1e-7)


def sentence(error):
    said = str(error)
    assert type(error) is ValueError and said.startswith(("text ", "link"))
    assert "\n" not in said and said.endswith(".") and said.count(". ") < 3
    return said


@pytest.mark.filterwarnings(
    "ignore::privrank.util.checks.PrivrankWarning",
    "ignore::RuntimeWarning",
    "ignore:The consensus may",
)
@pytest.mark.parametrize("name", MAKERS)
def test_each_field_is_refused_or_true(name):
    record = json.loads(MAKERS[name]().to_json())
    del record["check"]
    taken = set()
    for path in places(record):
        value = record
        for part in path:
            value = value[part]
        where = "/".join("#" if isinstance(part, int) else part for part in path)
        for new in mutations(value):
            if new == value or near(new, value):
                continue
            mutated = changed(record, path, new)
            try:
                result = pr.from_json(with_check(mutated))
            except ValueError as error:
                sentence(error)
                continue
            taken.add((where, repr(new)[:30]))
            assert json.loads(result.to_json())["release"] == mutated["release"]
    assert {where for where, _ in taken if not HARMLESS.fullmatch(where)} == set()


@pytest.mark.parametrize(
    ("name", "path", "new", "said"),
    [
        ("win matrix", "release/epsilon", 0.1, "parts whose epsilons add up to the total"),
        ("win matrix", "release/parts/win matrix/noise/scale", 0.0, "noise in every part"),
        ("win matrix", "release/parts/win matrix/noise/scale", 9.0, "noise of the scale that"),
        ("win matrix", "release/parts/win matrix/epsilon", 0.1, "add up to the total|of the scale"),
        ("win matrix", "release/parts/win matrix/values", [1.5] * 6, "must be JSON that to_json"),
        ("win matrix", "release/tie_break", [0, 0, 0], "an order of all items"),
        ("win matrix", "release/design/nobs", -5, "whole numbers of units"),
        ("win matrix", "settings/alpha", 5, "no BTLResult of its release and settings"),
        ("win matrix", "estimates/params/a", 3.0, "no BTLResult of its release and settings"),
        ("reports", "release/epsilon", 0.1, "the epsilon of its protocol"),
        ("closeness", "release/settings/scale", 0.01, "no ClosenessResult of its release"),
        ("closeness", "release/settings/permutations", 1.0, "no ClosenessResult of its release"),
        ("closeness", "release/settings/permutations", 2e5, "no ClosenessResult of its release"),
        ("totals", "release/parts/details 0/step", 0.7125, "totals in their steps"),
        ("totals", "release/parts/details 1/step", 1e30, "totals in their steps"),
        *(
            (test, f"settings/found/{name}", new, "of its release and settings")
            for test, changes in {
                "simulated": {
                    "pvalue": (0, 0.0099, 0.06, 1.1, None, "x"),
                    "threshold": (None, 5.0, 1e308, "x"),
                    "draws": (None, 99.5, 5, 10**30),
                },
                "exact": {"pvalue": (0.0, 0.9), "threshold": (None, 7.0), "draws": (99,)},
                "voters": {"pvalue": (0.5,), "threshold": (None, 1e6), "draws": (None, 199)},
            }.items()
            for name, values in changes.items()
            for new in values
        ),
        *(
            ("exponential", "release/settings/rate", new, "the rate that|the right numbers")
            for new in (-5, 0, 2.0, "x")
        ),
        *(
            (case, "release/rho", new, "rho")
            for case in MAKERS
            for new in (-5.0, 0.0, 1e-3, 0.7, 1e300)
        ),
        ("pairs", "release/settings/score share", 0.4, "a score with its share of epsilon"),
        ("reports", "release/parts/pairs/sensitivity", 1, "noise of the respondents alone"),
        *(
            (case, f"release/parts/{part}/step", 0.125, "steps of its parts")
            for case, part in (
                ("win matrix", "win matrix"),
                ("people", "net wins"),
                ("people", "pair_counts"),
                ("people", "dependence"),
                ("sums of squares", "dependence"),
                ("sums of squares with ties", "dependence"),
                ("proportional", "wins and losses"),
                ("item counts", "item_counts"),
                ("davidson", "ties"),
                ("groups", "group_answers"),
                ("non-private", "net wins"),
                ("pairs", "Kemeny score"),
                ("Gaussian pairs", "pairs"),
                ("Gaussian totals", "Borda totals"),
                ("consensus", "order"),
            )
        ),
        *(
            ("voters", "release/settings/df", new, "its release and settings")
            for new in (0, 1.5, 9)
        ),
        ("voters", "release/parts/statistic under H0/step", 0.5, "its release and settings"),
        ("reports", "release/design/nobs", -5, "whole numbers of units"),
        ("reports", "release/design/nobs", 5, "numbers of reports"),
        ("reports", "release/settings/square", -1.0, "a mean square up to 1"),
        ("reports", "release/settings/square", "inf", "a mean square up to 1"),
        ("reports", "release/parts/pair_counts/values", [-1, 9, 9], "numbers of reports by pair"),
        ("reports", "release/parts/pairs/values", [999, 9, 9], "no more votes than reports"),
        ("reports", "release/parts/reports about items/values", [-1] * 9, "numbers of reports"),
        (
            "reports",
            "release/parts/covariance of Borda scores/values",
            [-1] * 9,
            "numbers of reports",
        ),
    ],
)
@pytest.mark.filterwarnings(
    "ignore::privrank.util.checks.PrivrankWarning", "ignore:The consensus may"
)
def test_what_a_new_check_once_hid_is_refused(name, path, new, said):
    record = json.loads(OTHERS[name]().to_json())
    del record["check"]
    with pytest.raises(ValueError, match=said) as caught:
        pr.from_json(with_check(changed(record, path.split("/"), new)))
    sentence(caught.value)


def test_whether_noise_was_secret_cannot_be_read_from_a_text():
    """The docstring of `verify` says so: the check is no signature."""
    record = json.loads(MAKERS["win matrix"]().to_json())
    del record["check"]
    forged = pr.from_json(with_check(changed(record, ["release", "source"], "secure")))
    assert forged.release.source == "secure"


@pytest.mark.filterwarnings("ignore::privrank.util.checks.PrivrankWarning")
def test_what_a_release_does_not_tell_is_null_in_its_archive():
    few = PEOPLE[PEOPLE["who"] < 6]
    fit = pr.PrivateBTL(few, **PERSON).fit(0.5, rng=rng())
    text = fit.to_json()
    assert any(math.isnan(value) for value in fit.release.found.values())
    assert "NaN" not in text and pr.from_json(text).to_json() == text


def test_wins_of_some_pairs_are_archived():
    """Where a pair was not met, or nobody was asked about it, its wins are not there."""
    names = list("abcd")
    chain = pd.DataFrame({"item1": list("abc") * 20, "item2": list("bcd") * 20})
    probit = pr.PrivateBTL(
        chain.assign(outcome=[1, -1, 1, 1, -1, 1] * 10), items=names, respondent=None, link="probit"
    ).fit(np.inf)
    protocol = pr.local.Comparisons(names, 2.0)
    ranks = np.array([rng(k).permutation(4) + 1 for k in range(400)])
    reports = pd.DataFrame(protocol.simulate(ranks, rng()))
    asked = pr.PrivateBTL.from_reports(protocol.tally(reports[reports["assignment"] != 0]))
    for fit, wins in ((probit, 6), (asked, 10)):
        assert fit.release.values["win matrix"].size == wins
        text = fit.to_json()
        assert pr.from_json(text).to_json() == text


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [0.002, 0.013, 30.0])
@pytest.mark.filterwarnings(
    "ignore::privrank.util.checks.PrivrankWarning", "ignore:The consensus may"
)
def test_archives_of_small_and_large_epsilon_are_read(epsilon, noise):
    wins = pr.PrivateBTL(PAIRS, items=ITEMS, respondent=None)
    fits = [wins.fit(epsilon, 1e-6, noise=noise, rng=rng())]
    if noise == "gaussian":
        lists = pr.PrivateRankAggregation(TWELVE)
        fits += [lists.fit(epsilon, 1e-4, method=rule, rng=rng()) for rule in ("kemeny", "borda")]
    for fit in fits:
        assert pr.from_json(fit.to_json()).to_json() == fit.to_json()
