"""What summaries of tests say about power: what a statistic declares, and no more."""

import importlib
import math
from dataclasses import replace
from functools import partial
from string import Formatter
from typing import get_args

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank import closeness, identity, uniformity
from privrank.hypotheses.nulls import (
    Blindness,
    NullModel,
    RandomBit,
    Statistic,
    multinomial,
    null_of,
    uniform,
)
from privrank.mechanisms import categories, ranknorms
from privrank.plans.samples import MAX_MATRIX
from privrank.published import asz18
from privrank.release.survey import Sample
from privrank.results import testnotes as notes
from privrank.results.claims import CLAIMS

CHOICES = {"a": 30, "b": 20, "c": 10}
ITEMS = tuple(f"i{k}" for k in range(300))


def seeded(seed=7):
    return np.random.default_rng(seed)


def said(result):
    return " ".join(str(result.summary()).split())


def sample(m, n=100, kind="rankings", groups=(), **facts):
    given = {"items": ITEMS[:m], "nobs": n, "unit": "row", "max_rows": 1, "kind": kind}
    return Sample(**given, groups=groups, **facts)


def compared(method, *sizes, m=4, kind="rankings", **facts):
    groups = tuple((f"g{k}", size) for k, size in enumerate(sizes))
    total = sizes[0] if facts.get("paired") else sum(sizes)
    return closeness.compare(method, sample(m, total, kind, groups, **facts))


def of_one_sample():
    """Yield every statistic and bit of a test of one sample, at sizes on both sides of a bound."""
    rankings, choices = uniformity._RANKINGS, uniformity._CHOICES
    for m, n in ((2, 30), (4, 30), (9, 30), (9, 3000)):
        names = set(rankings) - ({"omnibus"} if m > 6 else set())
        yield from (rankings[name](n, m, 1.0) for name in names)
        yield uniformity.bfz21.ramp_bit(n, m, 0.05, 0.5)
        yield uniformity.bfz21.bucket_bit(m, 0.05, 10)
        yield ranknorms.residual_norm(n, max(m, 3))
    for k in (2, 5):
        yield from (build(60, k, 1.0) for build in choices.values())
        yield from (categories.binomial(60, 0.3, side) for side in ("larger", "smaller"))
        yield from (asz18.paninski(60, k), asz18.sigmoid_bit(60, k, 1.0, 0.2))
        yield asz18.binary_bit(60, 0.3, 1.0, 0.2)
    yield categories.omnibus_of(60, (0.5, 0.5, 0.0), 1.0)
    for m in (2, 5, 201):
        null = NullModel(theta=0.2, center=tuple(range(1, m + 1)))
        for method in identity._methods(null, sample(m)):
            yield identity.identity_statistic(null, sample(m), method, xi=1.0)


def of_several_samples():
    for kind in ("rankings", "choices"):
        for m in (4, 8):
            for method in closeness._known(sample(m, 60, kind, (("x", 30), ("y", 30)))):
                yield compared(method, 30, 30, m=m, kind=kind)
                if method != "sigmoid":
                    yield compared(method, 30, 30, 30, m=m, kind=kind)


def docstring(name):
    module, _, attribute = name.rpartition(".")
    try:
        return importlib.import_module(name).__doc__
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), attribute).__doc__


def test_every_claim_names_the_docstring_that_proves_it():
    every = [*of_one_sample(), *of_several_samples()]
    proofs = {getattr(one, "consistent", None) for one in every} - {None}
    levels = {one.level for one in every if isinstance(one, RandomBit)} - {None}
    assert len(proofs) == 5 and len(levels) == 2
    for name in proofs:
        assert "**Consistency.**" in docstring(name), name
    for name in levels:
        assert "**Null.**" in docstring(name), name


def test_every_blindness_has_a_whole_sentence():
    assert set(notes.BLINDNESS) == set(get_args(Blindness))
    for sentence in notes.BLINDNESS.values():
        assert sentence.endswith(".") and sentence[0].isupper() or sentence.startswith("method=")
        fields = {name for _, name, _, _ in Formatter().parse(sentence) if name}
        assert fields <= {"items", "rankings"}


def test_a_statistic_of_one_category_is_not_praised(monkeypatch):
    """Planted fault: a new statistic under a name that no list of blind methods has."""

    def first(counts, order):
        return int(counts[0])

    def build(n, k, xi):
        null = partial(null_of, "first", (n, k), first, partial(multinomial, n, uniform(k)))
        declared = {"blind_to": ("single category",), "consistent": None}
        return Statistic("first count", 1.0, 1, first, null, **declared)

    monkeypatch.setitem(uniformity._CHOICES, "tv", build)
    test = pr.UniformityTest.from_counts(CHOICES, list(CHOICES))
    text = said(test.fit(1.0, method="tv", draws=99, rng=seeded()))
    assert "consistent" not in text and notes.BLINDNESS["single category"] in text
    silent = partial(replace, blind_to=())
    monkeypatch.setitem(uniformity._CHOICES, "tv", lambda *given: silent(build(*given)))
    text = said(test.fit(1.0, method="tv", draws=99, rng=seeded()))
    assert "consistent" not in text and "little power" not in text


def test_consistency_is_claimed_where_it_is_proved_alone():
    rankings = pr.Mallows(4, 0.8).rvs(40, seeded())
    proved = pr.UniformityTest(rankings).fit(1.0, draws=99, rng=seeded())
    assert CLAIMS["consistent"] in said(proved)
    assert CLAIMS["consistent"] in said(pr.UniformityTest.from_release(proved.release, draws=99))
    # beyond 6 items the third term of the residual norm is dropped as n grows
    long = pr.UniformityTest(pr.Mallows(7, 0.8).rvs(40, seeded()))
    assert "consistent" not in said(long.fit(1.0, draws=99, rng=seeded()))
    # no p-value of 19 draws is below .05
    few = pr.UniformityTest.from_release(proved.release, alpha=0.01, draws=19)
    assert few.threshold is None and CLAIMS["consistent"] not in said(few)


def test_answers_completed_from_the_null_are_not_promised_to_be_detected():
    rows = [[1.0, 2.0, 3.0], [1.0, np.nan, np.nan]] * 20
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    for build in (
        lambda **how: pr.UniformityTest(frame, **how),
        lambda **how: pr.ClosenessTest(frame[:20], frame[20:], **how),
    ):
        test = build(ties="complete", missing="complete")
        assert CLAIMS["consistent"] not in said(test.fit(1.0, rng=seeded()))
    whole = frame.fillna(2.0).assign(c=3.0)
    two = pr.ClosenessTest(whole[:20], whole[20:])
    assert CLAIMS["consistent, groups"] in said(two.fit(1.0, rng=seeded()))
    # no number of permutations reaches a level below the step of p-values
    for level, permutations in ((8e-5, 19_999), (1.5e-4, 6_999)):
        fit = two.fit(1.0, alpha=level, permutations=permutations, rng=seeded())
        assert "consistent" not in said(fit)
    # answers behind a null hypothesis are a fixed number
    counts, shares = {"x": 50, "y": 50}, {"x": 0.5, "y": 0.5}
    behind = pr.IdentityTest.from_counts(counts, shares, null_nobs=100)
    assert "consistent" not in said(behind.fit(1.0, rng=seeded()))


def test_a_bit_without_a_level_states_none():
    test = pr.IdentityTest.from_counts(CHOICES, "uniform", list(CHOICES))
    text = said(test.fit(1.0, method="sigmoid", tolerance=0.2, rng=seeded()))
    assert "Significance level: none stated" in text and CLAIMS["bit"] in text
    assert "5% level" not in text and "calibrated level" not in text
    two = pr.ClosenessTest.from_counts({"x": CHOICES, "y": CHOICES}, list(CHOICES))
    text = said(two.fit(1.0, method="sigmoid", rng=seeded()))
    assert "Significance level: none stated" in text and CLAIMS["bit"] in text
    bit = pr.UniformityTest(pr.Mallows(4, 0.8).rvs(600, seeded())).fit(
        1.0, method="bucket", rng=seeded()
    )
    assert "calibrated level" in said(bit) and "at the 5% level (fixed in ad" in said(bit)


@pytest.mark.parametrize(
    ("asked", "blind"),
    [
        (("auto", 30, 30), ()),
        (("kendall", 30, 30), ("equal pairwise fractions",)),
        (("mmd", 30, 30, 30), ("only a small group",)),
        (("pairs", 30, 30, 30), ("large groups",)),
        (("mmd", MAX_MATRIX, 1), ()),
    ],
)
def test_comparisons_of_rankings_declare_what_they_miss(asked, blind):
    assert compared(*asked).blind_to == blind


def test_comparisons_declare_what_sizes_and_pairing_hide():
    assert compared("mmd", MAX_MATRIX, 1, m=7).blind_to == ("beyond landmarks",)
    assert compared("mmd", MAX_MATRIX, 1, m=101).blind_to == ()
    assert compared("mmd", 30, 30, m=7).consistent is None
    paired = compared("mmd", 30, 30, paired=True)
    assert paired.blind_to == ("equal margins",) and paired.consistent is None
    several = compared("chi-square", 30, 30, 30, kind="choices")
    assert several.blind_to == ("large groups",)
    hidden = closeness.compare("auto", sample(8, 60, "choices", (("x", None), ("y", None))))
    assert hidden.blind_to == ("small group, private labels", "rare category, private labels")


def test_beyond_200_items_a_mallows_null_is_tested_by_the_distance_alone():
    null = NullModel(theta=0.2, center=tuple(range(1, 202)))
    assert identity.identity_statistic(null, sample(201), "auto", xi=1.0).blind_to == (
        "equal mean distance",
    )
    few = NullModel(theta=0.2, center=(1, 2, 3))
    assert identity.identity_statistic(few, sample(3), "auto", xi=1.0).blind_to == (
        "pairs and distance alone",
    )


def test_observations_that_h0_rules_out_are_declared_where_they_are_not_counted():
    null, three = NullModel((0.5, 0.5, 0.0)), sample(3, kind="choices")
    noisy = identity.identity_statistic(null, three, "tv", xi=1.0)
    assert noisy.blind_to == ("single category", "impossible observations")
    assert identity.identity_statistic(null, three, "tv", xi=math.inf).blind_to == (
        "single category",
    )
    assert identity.identity_statistic(null, three, "auto", xi=1.0).blind_to == ()
