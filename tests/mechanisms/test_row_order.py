"""The order of rows says nothing: no release depends on it, and no guarantee is lost by it.

Secret draws that are made unit by unit (which row of a respondent, which place, which sample) are
replaced by all their outcomes, one after the other, and the noise by that of one seed. What a fit
releases is then counted over all outcomes, exactly.
"""

import math
from collections import Counter
from itertools import combinations, permutations, product
from types import MappingProxyType
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from outcomes import Outcomes

import privrank as pr
from privrank.closeness import ClosenessMethod
from privrank.encode.samples import encode_rankings
from privrank.hypotheses.nulls import NullModel
from privrank.identity import IdentityMethod
from privrank.mechanisms import samples
from privrank.mechanisms.capped import capped_norm
from privrank.plans.aggregation import AggregationMethod
from privrank.plans.comparisons import Method, Noise
from privrank.plans.samples import plan_sample
from privrank.uniformity import UniformityMethod, uniformity_statistic

ITEMS = list("abc")


@pytest.fixture
def outcomes(monkeypatch):
    return Outcomes(monkeypatch)


# Frames of four or five respondents, the third with two rows that the others' rows come between.

WHO = [0, 1, 2, 3, 2]
RANKINGS = pd.DataFrame(
    [[1, 2, 3], [1, 3, 2], [2, 1, 3], [3, 2, 1], [3, 1, 2]], columns=ITEMS
).assign(who=WHO)
PAIRS = pd.DataFrame({"a": [1, 2, 1, 2, 2], "b": [2, 1, 2, 1, 1], "who": WHO})
SAME = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
TWELVE = pd.DataFrame([SAME, SAME[::-1], SAME[3:] + SAME[:3]], columns=list("abcdefghijkl"))
CHOICES = pd.DataFrame({"choice": list("xxyzy"), "who": WHO})
SIDES = pd.DataFrame({"choice": list("xxyxy"), "who": WHO})
COMPARED = pd.DataFrame(
    {
        "item1": list("abcabca"),
        "item2": list("bcabaac"),
        "outcome": [1, -1, 1, 0, 1, 1, -1],
        "who": [0, 1, 2, 3, 2, 0, 1],
    }
)
# the third respondent answers one pair twice, in both ways
BUSY = pd.concat((COMPARED, COMPARED[4:5].assign(outcome=[-1])), ignore_index=True)
MALLOWS = pr.Mallows(ITEMS, phi=0.7)
TABLE = pd.DataFrame(list(permutations([1, 2, 3])), columns=ITEMS).assign(
    probability=np.array([1, 2, 3, 4, 5, 6]) / 21
)
SHARES = {"x": 0.5, "y": 0.25, "z": 0.25}
LOUD = {"epsilon": 3.0, "alpha": 0.9}


def sample_test(make, formula, **extra):
    def build(frame, people, options):
        unit = {"respondent": "who", "max_rows": 2} if people else {}
        options |= {"draws": 19}
        return make.from_formula(formula, frame, **extra, **unit)

    return build


def closeness_test(formula, **extra):
    def build(frame, people, options):
        most = int(frame["who"].value_counts().max())
        unit = {"respondent": "who", "max_rows": most} if people else {}
        options |= {"permutations": 19}
        frame = frame.assign(group=np.where(frame["who"] % 2 == 1, "odd", "even"))
        extra["levels"] = ["even", "odd"]
        return pr.ClosenessTest.from_formula(formula, frame, **extra, **unit)

    return build


def consensus(frame, people, options):
    unit = {"respondent": "who", "max_rows": 2} if people else {}
    return pr.PrivateRankAggregation(frame, items=ITEMS, **unit)


def partial_consensus(frame, people, options):
    unit = {"respondent": "who", "max_rows": 2} if people else {}
    return pr.PrivateRankAggregation(frame, items=ITEMS, ties=True, missing="half", **unit)


def compared(make, given=MappingProxyType({}), **extra):
    def build(frame, people, options):
        unit = {"respondent": "who", "max_rows": 2} if people else {"respondent": None}
        declared = {"items": ITEMS, "ties": True, "distinct_pairs": False}
        return make(frame, **{**unit, **declared, **(given if people else {})}, **extra)

    return build


uniformity = sample_test(pr.UniformityTest, "a + b + c ~ 1")
uniformity_two = sample_test(pr.UniformityTest, "a + b ~ 1")
uniformity_twelve = sample_test(pr.UniformityTest, " + ".join("abcdefghijkl") + " ~ 1")
uniformity_choices = sample_test(pr.UniformityTest, "choice ~ 1", categories=list("xyz"))
identity = sample_test(pr.IdentityTest, "choice ~ 1", null=SHARES)
identity_uniform = sample_test(
    pr.IdentityTest, "choice ~ 1", null="uniform", categories=list("xyz")
)
identity_sides = sample_test(pr.IdentityTest, "choice ~ 1", null={"x": 0.25, "y": 0.75})
identity_mallows = sample_test(pr.IdentityTest, "a + b + c ~ 1", null=MALLOWS)
identity_rankings = sample_test(pr.IdentityTest, "a + b + c ~ 1", null="uniform")
identity_table = sample_test(pr.IdentityTest, "a + b + c ~ 1", null=TABLE)
closeness_choices = closeness_test("choice ~ group", categories=list("xyz"))
closeness_rankings = closeness_test("a + b + c ~ group")
bradley_terry = compared(pr.PrivateBTL)
sampled = compared(pr.PrivateBTL, {"max_rows": 1, "excess": "sample"})
sampled_pairs = compared(pr.PrivateBTL, {"max_rows": 1, "excess": "sample", "distinct_pairs": True})
top = compared(pr.PrivateTopK, k=1)
top_sampled = compared(pr.PrivateTopK, {"max_rows": 1, "excess": "sample"}, k=1)

SAMPLED = (sampled, sampled_pairs, top_sampled)
NOISES = [{"noise": name, "delta": 1e-3 * (name == "gaussian")} for name in get_args(Noise)]
CASES = {
    "uniformity": [
        (uniformity, RANKINGS, "auto", {}),
        (uniformity, RANKINGS, "auto", {"epsilon": math.inf}),
        (uniformity, RANKINGS, "borda", {}),
        (uniformity, RANKINGS, "laplace", {}),
        (uniformity, RANKINGS, "mallows", {}),
        (uniformity, RANKINGS, "omnibus", {}),
        (uniformity_two, PAIRS, "truncated", LOUD),
        (uniformity_two, PAIRS, "bucket", {"epsilon": 1.0, "alpha": 0.5}),
        (uniformity_choices, CHOICES, "auto", {}),
        (uniformity_choices, CHOICES, "tv", {}),
        (uniformity_twelve, TWELVE.assign(who=[0, 1, 0]), "two-sample", {"alpha": 0.99}),
    ],
    "identity": [
        (identity, CHOICES, "auto", {}),
        (identity, CHOICES, "tv", {"epsilon": math.inf}),
        (identity, CHOICES, "omnibus", {}),
        (identity_uniform, CHOICES, "paninski", {}),
        (identity_uniform, CHOICES, "sigmoid", {"tolerance": 0.2}),
        (identity_sides, SIDES, "sigmoid", {"tolerance": 0.2}),
        (identity_sides, SIDES, "binary", {"alternative": "larger"}),
        (identity_mallows, RANKINGS, "auto", {}),
        (identity_mallows, RANKINGS, "kernel", {}),
        (identity_mallows, RANKINGS, "distance", {}),
        (identity_table, RANKINGS, "auto", {}),
        (identity_rankings, RANKINGS, "borda", {}),
        (identity_table, RANKINGS, "tv", {}),
    ],
    "closeness": [
        (closeness_choices, CHOICES, "permutation", {"effect_epsilon": 1.0}),
        (closeness_choices, CHOICES, "permutation", {"epsilon": math.inf}),
        (closeness_choices, CHOICES, "auto", {}),
        (closeness_choices, CHOICES, "table", {"epsilon": math.inf}),
        (closeness_choices, CHOICES, "tv", {}),
        (closeness_choices, CHOICES, "pairs", {}),
        (closeness_rankings, RANKINGS, "auto", {"details_epsilon": 1.0}),
        (closeness_choices, CHOICES, "chi-square", {}),
        (closeness_choices, CHOICES, "sigmoid", {}),
        (closeness_rankings, RANKINGS, "mmd", {"effect_epsilon": 1.0}),
        (closeness_rankings, RANKINGS, "kendall", {}),
    ],
    "aggregation": [
        *((consensus, RANKINGS, method, {}) for method in get_args(AggregationMethod)[:7]),
        (consensus, RANKINGS, "auto", {"delta": 1e-3}),
        (partial_consensus, RANKINGS.replace({"b": {1: np.nan}}), "auto", {}),
        *(
            (consensus, RANKINGS, method, {"epsilon": math.inf})
            for method in get_args(AggregationMethod)
            if method not in ("pairs-laplace", "kwiksort-hay", "exponential")
        ),
    ],
    "bradley-terry": [
        *((bradley_terry, COMPARED, "counts", noise) for noise in NOISES),
        (bradley_terry, COMPARED, "objective", {}),
        (bradley_terry, COMPARED, "auto", {"epsilon": math.inf}),
        (sampled, COMPARED, "counts", {}),
        (sampled, COMPARED, "objective", {}),
        (sampled_pairs, BUSY, "counts", {}),
    ],
    "top-k": [
        *((top, COMPARED, None, noise) for noise in NOISES),
        (top_sampled, COMPARED, None, {}),
    ],
}
KNOWN = {
    "uniformity": UniformityMethod,
    "identity": IdentityMethod,
    "closeness": ClosenessMethod,
    "aggregation": AggregationMethod,
    "bradley-terry": Method,
}
FLAT = [
    pytest.param(name, case, id=f"{name} {case[2]} {k}")
    for name, cases in CASES.items()
    for k, case in enumerate(cases)
]


def releases(outcomes, case, frame, people):
    """How often each release and probability of a bit occurs, over all outcomes."""
    build, _, method, options = case
    chosen = {"epsilon": 2.0} | options | ({} if method is None else {"method": method})
    test = build(frame, people, chosen)

    def run():
        return test.fit(**chosen, rng=np.random.default_rng(3)).release.to_json()

    return Counter(outcomes.all(run))


def orders_of(frame):
    """Orders of the rows that put the first row, the last, and another respondent first."""
    rows = len(frame)
    yield list(range(rows))[::-1]
    yield [*range(1, rows), 0]
    yield [rows - 1, *range(rows - 1)]


@pytest.mark.parametrize("people", [False, True], ids=["rows", "respondents"])
@pytest.mark.parametrize(("name", "case"), FLAT)
@pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")
def test_releases_have_the_same_distribution_in_every_order(outcomes, name, case, people):
    _, frame, method, _ = case
    if method == "two-sample" and not people:
        frame = frame.head(2)
    if method in ("chi-square", "sigmoid") and name == "closeness":
        frame = frame.head(4)  # one row each, and two samples of the same size
    expected = releases(outcomes, case, frame, people)
    assert sum(expected.values()) > 1 or not secret_by_unit(name, case, people)
    for order in orders_of(frame):
        assert releases(outcomes, case, frame.iloc[order], people) == expected


def secret_by_unit(name, case, people):
    tabled = case[0] is closeness_choices and case[2] in ("auto", "table")
    return (
        (name == "closeness" and not tabled)
        or case[2] == "bucket"
        or (people and (name in ("uniformity", "identity", "closeness") or case[0] in SAMPLED))
    )


def test_every_method_is_among_the_cases():
    for name, known in KNOWN.items():
        assert {method for _, _, method, _ in CASES[name]} == set(get_args(known)), name


def test_the_capped_norm_of_opposite_rankings_starts_from_no_particular_row():
    # their sum vanishes, so that the search has to start from one of them
    rng = np.random.default_rng(0)
    half = np.array([rng.permutation(40) + 1 for _ in range(10)])
    ranks, norm = np.concatenate((half, 41 - half)), capped_norm(20, 40)
    found = [norm.fast(rng.permutation(ranks)) for _ in range(5)]
    assert max(found) - min(found) < 1e-8


# A neighbour may move a respondent's first row, and with it the numbers of all others.


def neighbourhoods():
    """Lists of frames that differ in one respondent's rows: their number, content and places."""
    for others in ("abb", "bab", "bba", "aaa"):
        found = []
        for rows in (1, 2):
            for places in combinations(range(3 + rows), rows):
                for contents in product("ab", repeat=rows):
                    left, own = iter(zip("xyz", others, strict=True)), iter(contents)
                    cells = [
                        ("moved", next(own)) if k in places else next(left) for k in range(3 + rows)
                    ]
                    frame = pd.DataFrame(cells, columns=["who", "first"])
                    a = np.where(frame["first"] == "a", 1, 2)
                    found.append(frame.assign(a=a, b=3 - a)[["who", "a", "b"]])
        yield found


def test_buckets_are_private_whoever_moves(outcomes):
    epsilon, worst = math.log(2), 0.0
    for frames in neighbourhoods():
        probabilities = []
        for frame in frames:
            encoded = encode_rankings(frame, respondent="who", max_rows=2)
            asked, _ = uniformity_statistic(
                "bucket", encoded.sample, xi=epsilon, alpha=0.5, tolerance=None
            )

            def run(encoded=encoded, asked=asked):
                how = {"by": "test", "method": "bucket", "effect": None, "settings": {}}
                plan = plan_sample(asked, epsilon, 0.0, **how)
                rng = np.random.default_rng(0)
                samples.release_sample(encoded, asked, plan, null=NullModel(), budget=None, rng=rng)

            probabilities.append(np.mean([seen for _, seen in outcomes.all(run)]))
        low, high = min(probabilities), max(probabilities)
        worst = max(worst, math.log(high / low), math.log((1 - low) / (1 - high)))
    assert 0.2 * epsilon < worst <= epsilon


def test_a_moved_first_row_does_not_turn_the_bucket_test(monkeypatch):
    # dealt in order of appearance, buckets are mixed while the respondent in the middle answers
    # twice, and of one kind each once that respondent answers at the end only: .041 against .975
    found = []
    monkeypatch.setattr(samples, "draw_bit", lambda chance, rng: found.append(chance) or 0)
    count, n = 59, 1180
    late = [*range(590), *range(591, n), 590]
    once = pd.DataFrame({"who": late, "a": 1 + np.arange(n) % count % 2}).assign(
        b=lambda d: 3 - d.a
    )
    twice = pd.concat((once.iloc[:590], once.iloc[[-1]], once.iloc[590:]))
    for frame in (once, twice):
        encoded = encode_rankings(frame, respondent="who", max_rows=2)
        asked, _ = uniformity_statistic(
            "bucket", encoded.sample, xi=0.5, alpha=0.05, tolerance=None
        )
        for seed in range(20):
            how = {"by": "test", "method": "bucket", "effect": None, "settings": {}}
            plan = plan_sample(asked, 0.5, 0.0, **how)
            rng = np.random.default_rng(seed)
            samples.release_sample(encoded, asked, plan, null=NullModel(), budget=None, rng=rng)
    assert max(found) - min(found) < 0.2
