"""A catalogue of fits: every public class with every choice that a user can make.

A case is a model of one survey, in variants with the same public facts (:mod:`surveys`), and the
arguments of a fit. `contracts/test_visible.py` checks that every option is among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import surveys

import privrank as pr

ITEMS, CATEGORIES, PAIRS = surveys.ITEMS, surveys.CATEGORIES, surveys.PAIRS
ROWS, PEOPLE = surveys.ROWS, surveys.PEOPLE

DELTA = 1e-6
FEW_DRAWS = {"draws": 199}
COMPLETE = {"ties": "complete", "missing": "complete"}
LISTS = {"ties": "complete", "missing": "bottom"}


@dataclass(frozen=True, eq=False)
class Case:
    """One model of a survey in variants, and one fit of it; the `first` of its model or another."""

    name: str
    model: type
    frames: Mapping[str, Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    formula: str | None = None
    counted: bool = False
    first: bool = True

    def build(self, variant):
        """The model of one variant."""
        frame = self.frames[variant]
        if self.formula is not None:
            return self.model.from_formula(self.formula, frame, **self.arguments)
        if self.counted:
            return self.model.from_counts(frame, **self.arguments)
        frames = frame if isinstance(frame, tuple) else (frame,)
        return self.model(*frames, **self.arguments)

    def fit(self, model, **more):
        """The result of a fit at epsilon 1, if `options` ask for nothing else."""
        # surveys of tests are small, and few of their fits would identify all worths
        small = {"allow_unidentified": True} if isinstance(model, pr.PrivateBTL) else {}
        return model.fit(**{"epsilon": 1.0, **small, **self.options, **more})


def fits(name, model, frames, arguments, options, **how):
    """One case for each set of options."""
    return [
        Case(f"{name}, {_words(chosen)}", model, frames, arguments, chosen, first=k == 0, **how)
        for k, chosen in enumerate(options)
    ]


def _words(options):
    return ", ".join(f"{key} {value}" for key, value in options.items()) or "defaults"


ROW = {"items": ITEMS, "respondent": None, "ties": False}
PERSON = {"items": ITEMS, "respondent": "respondent", "max_rows": 6, "ties": False}
COUNTED = {"counts": "times", "distinct_pairs": False}
SAMPLED = {"excess": "sample", "max_rows": 3}
REPEATS = {"distinct_pairs": False}
TIED = {"ties": True}
DAVIDSON = {"ties": "davidson"}
PUBLIC = {"design": "public"}
RELEASED = {"pair_counts": "release"}
DECLARED = {"pair_counts": dict.fromkeys(PAIRS, 7)}
MATCHED = {"pair_counts": "proportional"}
NOISES = ("laplace", "zero-sum-laplace", "permutohedron")
COUNTS = [{"method": "counts", "noise": noise} for noise in NOISES]
GAUSSIAN = {"method": "counts", "noise": "gaussian", "delta": DELTA}
OBJECTIVE = {"method": "objective"}


def bradley_terry():
    """PrivateBTL without covariates."""
    rows, tied = surveys.private_rows(), surveys.private_rows(ties=True)
    people = surveys.private_respondents()
    tied_people = surveys.private_respondents(ties=True)
    repeats = surveys.private_respondents(distinct=False)
    all_public, public_people = surveys.public(ties=True), surveys.public(people=6, ties=True)
    btl = pr.PrivateBTL
    some = [{}, {"method": "counts"}, OBJECTIVE]
    private = [*some, *COUNTS, GAUSSIAN, {"penalty": 0.5}, {"method": "counts", "penalty": 0}]
    shares = {"shares": {"dependence": 0.2}, "alpha": 0.2}
    effects = [{"dependence": effect} for effect in ("none", "worst", "pairs")]
    matched = [{}, {"noise": "laplace"}, {"shares": {"opponents": 0}}]
    return [
        *fits("BTL of rows", btl, rows, ROW, private),
        *fits("BTL of rows", btl, rows, ROW, [{**OBJECTIVE, "solver": "lbfgs"}]),
        *fits("BTL of rows", btl, rows, ROW, [{**OBJECTIVE, "solver": "cvxpy"}]),
        *fits("BTL of rows with ties", btl, tied, ROW | TIED, some),
        *fits("BTL of rows, counts released", btl, rows, ROW | RELEASED, [*some, COUNTS[1]]),
        *fits("BTL of tied rows, counts released", btl, tied, ROW | TIED | RELEASED, some),
        *fits("BTL of rows, counts released", btl, rows, ROW | RELEASED, [GAUSSIAN]),
        *fits("BTL of rows", btl, rows, ROW, [{"allow_unidentified": True}]),
        *fits("BTL of rows, counts declared", btl, rows, ROW | DECLARED, some),
        *fits("BTL of rows, counts equal", btl, rows, ROW | {"pair_counts": "equal"}, some[:1]),
        *fits("BTL of rows, counts proportional", btl, tied, ROW | TIED | MATCHED, matched),
        *fits("BTL of people, counts proportional", btl, people, PERSON | MATCHED, [{}]),
        *fits("BTL of people", btl, people, PERSON, [*some, *COUNTS, GAUSSIAN, *effects, shares]),
        *fits("BTL of people with ties", btl, tied_people, PERSON | TIED, some),
        *fits("BTL of people, counts released", btl, tied_people, PERSON | TIED | RELEASED, some),
        *fits("BTL of people, counts declared", btl, people, PERSON | DECLARED, some),
        *fits("BTL of repeats", btl, repeats, PERSON | REPEATS, some),
        *fits("BTL of drawn rows", btl, repeats, PERSON | SAMPLED, some),
        *fits("BTL of drawn repeats", btl, repeats, PERSON | SAMPLED | REPEATS, some),
        *fits(
            "BTL of drawn rows, counts declared", btl, repeats, PERSON | SAMPLED | DECLARED, [{}]
        ),
        *fits("BTL of counted rows", btl, surveys.counted(), ROW | COUNTED, some),
        *fits("BTL of counted people", btl, surveys.counted(True), PERSON | COUNTED, some),
        *fits("BTL of drawn counts", btl, surveys.counted(True), PERSON | COUNTED | SAMPLED, [{}]),
        *fits("BTL of Enums", btl, surveys.enums(rows), {"respondent": None}, some),
        *fits("BTL of public rows", btl, all_public, ROW | PUBLIC | TIED, [{}, *COUNTS, OBJECTIVE]),
        *fits("BTL of public people", btl, public_people, PERSON | PUBLIC | TIED, [{}, OBJECTIVE]),
        *fits("BTL of public people", btl, public_people, PERSON | PUBLIC | TIED, [GAUSSIAN]),
        *weighted(),
        *with_tie_parameter(tied, tied_people, public_people),
        *links(people, public_people),
        *winners(),
    ]


def weighted():
    """PrivateBTL and PrivateTopK with design weights, which are public."""
    people = surveys.public(people=6, ties=True, w=np.linspace(0.5, 4.0, PEOPLE))
    rows = surveys.public(ties=True, w=np.linspace(0.5, 4.0, ROWS))
    by_weight = {"weights": "w", "max_weight": 3.0} | PUBLIC | TIED
    formula = {"formula": "item1 + item2 + outcome ~ 1"}
    btl, topk = pr.PrivateBTL, pr.PrivateTopK
    some = [{}, GAUSSIAN, COUNTS[2], {"dependence": "none"}]
    return [
        *fits("BTL of weighted people", btl, people, PERSON | by_weight, some),
        *fits("BTL of weighted rows", btl, rows, ROW | by_weight, [{}]),
        *fits("BTL of weights by formula", btl, people, PERSON | by_weight, [{}], **formula),
        *fits("top of weighted people", topk, people, PERSON | by_weight | {"k": 2}, [{}]),
        *fits("top of weighted rows", topk, rows, ROW | by_weight | {"k": 2}, [{}]),
    ]


def with_tie_parameter(rows, people, public_people):
    """PrivateBTL with a parameter for ties."""
    btl, effects, moments = pr.PrivateBTL, {"dependence": "none"}, {"dependence": "pairs"}
    of_people = [{}, *COUNTS, moments]
    return [
        *fits("BTL of rows, tie parameter", btl, rows, ROW | DAVIDSON, [{}]),
        *fits("BTL of people, tie parameter", btl, people, PERSON | DAVIDSON, of_people),
        *fits("BTL of drawn rows, tie parameter", btl, people, PERSON | SAMPLED | DAVIDSON, [{}]),
        *fits(
            "BTL of public people, tie parameter",
            btl,
            public_people,
            PERSON | PUBLIC | DAVIDSON,
            [{}, effects, moments],
        ),
    ]


def links(people, public_people):
    """PrivateBTL with other links than the logit."""
    found = []
    for link in ("logit", "probit"):
        given = PERSON | {"link": link}
        options = [{"method": "counts", "noise": "laplace"}, OBJECTIVE]
        found += fits(f"BTL, {link}", pr.PrivateBTL, people, given, options)
        public = given | PUBLIC | TIED
        found += fits(f"BTL, {link}, public", pr.PrivateBTL, public_people, public, [{}])
    return found


def winners():
    """Formulas with 1 on their right."""
    long, short = {"formula": "item1 + item2 + outcome ~ 1"}, {"formula": "winner + loser ~ 1"}
    row = {"items": ITEMS, "respondent": None}
    person = {"items": ITEMS, "respondent": "respondent", "max_rows": 6}
    btl, decided = pr.PrivateBTL, surveys.decided
    people = surveys.private_respondents()
    return [
        *fits("BTL by formula", btl, people, person | {"ties": False}, [{}], **long),
        *fits("winners", btl, decided(), row, [{}, OBJECTIVE], **short),
        *fits("winners of people", btl, decided(people=True), person, [{}], **short),
        *fits("winners, public", btl, decided(fixed=True), row | PUBLIC, [{}], **short),
        *fits("winners of public people", btl, decided(True, True), person | PUBLIC, [{}], **short),
    ]


def covariates():
    """PrivateBTL with covariates of units, of items, and of the order of naming."""
    btl, answers = pr.PrivateBTL, "item1 + item2 + outcome ~ "
    declared = {"levels": surveys.LEVELS}
    ages = {"bounds": {"age": (18, 65)}}
    row, person = {**ROW, **declared}, {**PERSON, **declared}
    groups, people = surveys.grouped(), surveys.grouped(people=True)
    fixed, fixed_people = surveys.described(), surveys.described(people=6)
    both, one = {"formula": f"{answers}gender + study"}, {"formula": f"{answers}gender * study"}
    gender = {"levels": {"gender": surveys.LEVELS["gender"]}}
    first = PUBLIC | {"contest": "first"}
    lengths = PUBLIC | {"contest": "age + first"}
    by_gender = {"formula": f"{answers}gender"}
    aged = {"formula": f"{answers}gender + age"}
    table = pd.DataFrame({"far": [1.0, 2.0, 4.0, 7.0], "cold": [1, 0, 0, 1]}, index=list(ITEMS))
    items = {"item_formula": "far + cold", "item_data": table}
    noisy = [{}, *COUNTS[:3], GAUSSIAN]
    enums = {"respondent": "respondent", "max_rows": 6}
    return [
        *fits("groups of rows", btl, groups, row, [*noisy, {"penalty": 0.5}], **both),
        *fits("groups of rows, crossed", btl, groups, row, [{}], **one),
        *fits("groups of people", btl, people, person, [*noisy, {"alpha": 0.2}], **both),
        *fits("groups of people, drawn", btl, people, person | SAMPLED, [{}], **both),
        *fits("groups of people, declared", btl, people, person | DECLARED, [{}], **both),
        *fits("groups of Enums", btl, surveys.enums(people), enums, [{}], **both),
        *fits("items' covariates", btl, groups, ROW | gender | items, [{}], **by_gender),
        *fits("groups of public rows", btl, fixed, row | PUBLIC, noisy, **both),
        *fits("groups of public people", btl, fixed_people, person | PUBLIC, noisy, **both),
        *fits("named first", btl, fixed, ROW | gender | first, [{}], **by_gender),
        *fits(
            "named first by people", btl, fixed_people, PERSON | gender | first, [{}], **by_gender
        ),
        *fits("contests", btl, fixed, ROW | lengths, [*noisy], formula=f"{answers}1"),
        *fits(
            "contests by people", btl, fixed_people, PERSON | lengths, [{}], formula=f"{answers}1"
        ),
        *fits("ages", btl, fixed, ROW | gender | ages | PUBLIC, [{}], **aged),
        *fits("ages of people", btl, fixed_people, PERSON | gender | ages | PUBLIC, [{}], **aged),
        *tied_covariates(both, aged),
    ]


def offered_sets():
    """PrivateBTL of choices from publicly offered sets, with covariates of respondents, too."""
    btl, people = pr.PrivateBTL, surveys.offered()
    person = {"items": ITEMS, "respondent": "respondent", "max_rows": 3, **PUBLIC}
    row = {"items": ITEMS, "respondent": None, **PUBLIC}
    gender = {"levels": {"gender": surveys.LEVELS["gender"]}}
    ages = gender | {"bounds": {"age": (18, 65)}}
    orders, rows = surveys.offered(places=True), surveys.offered(people=False, places=True)
    by_gender, aged = ({"formula": f"best + worst ~ {x}"} for x in ("gender", "gender + age"))
    effect = [{"dependence": "none"}, {"shares": {"dependence": 0.2}}]
    noises = [*COUNTS, GAUSSIAN]
    return [
        *fits("choices of people", btl, people, person, [{}, *noises, *effect]),
        *fits("unanswered tasks", btl, surveys.offered(silent=True), person, [{}, COUNTS[0]]),
        *fits("choices of rows", btl, surveys.offered(people=False), row, [{}, GAUSSIAN]),
        *fits("orders of people", btl, orders, person, [{}, COUNTS[2]]),
        *fits("orders of rows", btl, rows, row, [{}]),
        *fits("choices by groups", btl, people, person | gender, [{}, *noises], **by_gender),
        *fits("choices by ages", btl, people, person | ages, [{}], **aged),
    ]


def tied_covariates(groups, numbers):
    """PrivateBTL with covariates of units and a parameter for ties, given two formulas."""
    btl, declared = pr.PrivateBTL, {"levels": surveys.LEVELS}
    row, person = {**ROW, **declared, **DAVIDSON}, {**PERSON, **declared, **DAVIDSON}
    rows, people = (surveys.grouped(people=p, ties=True) for p in (None, True))
    fixed, fixed_people = surveys.described(), surveys.described(people=6)
    ages = {"levels": {"gender": surveys.LEVELS["gender"]}, "bounds": {"age": (18, 65)}} | PUBLIC
    return [
        *fits("groups of rows, tie parameter", btl, rows, row, [{}, *COUNTS], **groups),
        *fits("groups of people, tie parameter", btl, people, person, [{}], **groups),
        *fits("drawn groups, tie parameter", btl, people, person | SAMPLED, [{}], **groups),
        *fits("public groups, tie parameter", btl, fixed, row | PUBLIC, [{}], **groups),
        *fits("ages, tie parameter", btl, fixed_people, person | ages, [{}], **numbers),
    ]


def top():
    """PrivateTopK."""
    rows, tied = surveys.private_rows(), surveys.private_rows(ties=True)
    people, fixed = surveys.private_respondents(), surveys.public(people=6, ties=True)
    topk, two = pr.PrivateTopK, {"k": 2}
    noises = [{"noise": noise} for noise in NOISES]
    gaussian = {"noise": "gaussian", "delta": DELTA}
    rates = {"target": "win rate"}
    counts = [
        rates | more
        for more in ({"shares": {"item_counts": 0.3}}, {"noise": "permutohedron"}, gaussian)
    ]
    effects = [{"dependence": "none"}, {"shares": {"dependence": 0.2}} | rates]
    some = [{}, *noises, gaussian]
    repeats = surveys.private_respondents(distinct=False)
    twice = {"k": 2, "distinct_pairs": False}
    person, formula = {"k": 2, "items": ITEMS}, "item1 + item2 + outcome ~ 1"
    person |= {"respondent": "respondent", "max_rows": 6, "ties": False}
    winner, row = {"formula": "winner + loser ~ 1"}, {"k": 1, "items": ITEMS, "respondent": None}
    return [
        *fits("top of rows", topk, rows, ROW | two, some),
        *fits("top of tied rows", topk, tied, ROW | TIED | two, [rates, {"target": "net wins"}]),
        *fits("top of rows, declared", topk, rows, ROW | DECLARED | two, [{}]),
        *fits("top of counted rows", topk, surveys.counted(), ROW | COUNTED | two, [{}]),
        *fits("top of people", topk, people, PERSON | two, [*some, *effects]),
        *fits("top of repeats", topk, repeats, PERSON | twice, [{}]),
        *fits("top of drawn rows", topk, repeats, PERSON | SAMPLED | two, [{}]),
        *fits(
            "top of people", topk, people, PERSON | two, [rates, rates | {"dependence": "pairs"}]
        ),
        *fits("top of people", topk, people, PERSON | two, counts),
        *fits("top of public people", topk, fixed, PERSON | PUBLIC | TIED | two, some),
        *fits("top by formula", topk, people, person, [{}], formula=formula),
        *fits("top of winners", topk, surveys.decided(), row, [{}], **winner),
    ]


def aggregations():
    """PrivateRankAggregation."""
    rows, people = surveys.rankings(), surveys.ranking_respondents()
    model, many = pr.PrivateRankAggregation, surveys.rankings(n=600)
    person = {"items": ITEMS, "respondent": "respondent", "max_rows": 3}
    half, bottom = ({"ties": True, "missing": missing} for missing in ("half", "bottom"))
    torn, gaps = surveys.ranking_respondents(partial=True), surveys.partial_rankings()
    methods = ("auto", "kemeny", "borda", "pairs-laplace", "kwiksort", "kwiksort-hay")
    every = [{"method": method} for method in (*methods, "exponential")]
    scored = [{"method": "borda", "score_share": 0.2}, {"method": "kemeny", "score_share": 0}]
    gaussian = [{"delta": DELTA}, {"delta": DELTA, "target": "sample"}]
    sort = {"method": "kwiksort", "delta": 0.05}  # Gaussian noise, of four items too
    formula = {"formula": " + ".join(ITEMS) + " ~ 1"}
    row = {"items": ITEMS}
    orders, single = surveys.offered(places=True), surveys.offered(people=False, places=True)
    by_sets = [{"method": "borda"}, {"method": "kemeny"}, {"releases": "pairs"}]
    alone = {"items": ITEMS, "respondent": None}
    return [
        *fits("consensus of rows", model, rows, row, [*every, *scored, *gaussian]),
        *fits("consensus of many rows", model, many, row, [{}, {"delta": DELTA}, sort]),
        *fits("consensus of people", model, people, person, [*every, *scored, *gaussian]),
        *fits("consensus of people, partial", model, torn, person | half, [*every, *gaussian]),
        *fits("partial consensus", model, gaps, row | half, every),
        *fits(
            "consensus of lists",
            model,
            surveys.leading_lists(),
            row | bottom,
            [{}, {"releases": "pairs"}],
        ),
        *fits("consensus by formula", model, rows, {}, [{}], **formula),
        *fits("consensus of orders of sets", model, orders, person, by_sets),
        *fits("consensus of rows of sets", model, single, alone, [{}], formula="order ~ 1"),
    ]


def uniformities():
    """UniformityTest."""
    test, row = pr.UniformityTest, {"items": ITEMS}
    person = {"respondent": "respondent", "max_rows": 3}
    rows, people = surveys.rankings(), surveys.ranking_respondents()
    two, many = surveys.rankings(n=2, m=60), surveys.rankings(n=400)
    long = {"items": list(two["mixed"].columns)}
    ten = surveys.rankings(n=5, m=10)
    capped = {"items": list(ten["mixed"].columns)}
    ranked = ("auto", "borda", "laplace", "mallows", "omnibus")
    by_rank = [{"method": method, **FEW_DRAWS} for method in ranked]
    chosen = [{"method": method, **FEW_DRAWS} for method in ("auto", "omnibus", "tv")]
    bits = [{"method": "bucket", "epsilon": 4.0}, {"method": "truncated", "epsilon": 4.0}]
    bits += [{**bits[1], "tolerance": 0.9}]
    listed = {"categories": CATEGORIES}
    rankings, choice = {"formula": " + ".join(ITEMS) + " ~ 1"}, {"formula": "choice ~ 1"}
    crowd, picked = surveys.choices(people=20), surveys.choices()
    gaps, torn = surveys.partial_rankings(), surveys.ranking_respondents(partial=True)
    effect = [{"method": "omnibus", **FEW_DRAWS, "effect_epsilon": 0.5}]
    pair = {"categories": CATEGORIES[:2]}
    sets, asked = surveys.offered(), {"formula": "best + worst ~ 1"}
    orders, tasks = surveys.offered(people=False, places=True), {"respondent": None}
    return [
        *fits("uniform choices from sets", test, sets, person, [FEW_DRAWS]),
        *fits("uniform choices from sets by formula", test, sets, person, [FEW_DRAWS], **asked),
        *fits("uniform orders of sets", test, orders, tasks, [FEW_DRAWS]),
        *fits("completed rankings", test, gaps, row | COMPLETE, by_rank[:1]),
        *fits("completed lists", test, surveys.leading_lists(), row | LISTS, by_rank[:1]),
        *fits("completed rankings of people", test, torn, row | person | COMPLETE, by_rank[:1]),
        *fits("uniform choices, effect", test, picked, listed, effect, **choice),
        *fits("two uniform choices", test, surveys.choices(k=2), pair, chosen[:1], **choice),
        *fits("uniform rankings", test, rows, row, by_rank),
        *fits("uniform rankings of people", test, people, row | person, by_rank),
        *fits("uniform rankings, bits", test, many, row, bits),
        *fits("uniform rankings of people, bits", test, people, row | person, bits[:1]),
        *fits("uniform Enums", test, surveys.enums(picked), {}, chosen[:1], **choice),
        *fits("two uniform rankings", test, two, long, [{"method": "two-sample", **FEW_DRAWS}]),
        *fits("uniform rankings, capped", test, ten, capped, by_rank[:2]),
        *fits("uniform rankings by formula", test, people, person, by_rank[:1], **rankings),
        *fits("uniform choices", test, picked, listed, chosen, **choice),
        *fits("uniform choices of people", test, crowd, listed | person, chosen, **choice),
        *fits("uniform counts", test, surveys.counts(), listed, chosen, counted=True),
    ]


def identities():
    """IdentityTest."""
    test, listed = pr.IdentityTest, {"categories": CATEGORIES}
    person = {"respondent": "respondent", "max_rows": 3}
    given = {"items": ITEMS, "null": pr.Mallows(list(ITEMS), 0.6)}
    rows, people = surveys.rankings(), surveys.ranking_respondents()
    picked, crowd = surveys.choices(), surveys.choices(people=20)
    pair, coin = surveys.choices(k=2), {"categories": CATEGORIES[:2]}
    skewed = {"null": {"red": 0.4, "green": 0.3, "blue": 0.2, "none": 0.1}}
    orders = pd.DataFrame({"north": [1, 2], "east": [2, 1], "south": [3, 3], "west": [4, 4]})
    orders["probability"] = [0.7, 0.3]
    choice = {"formula": "choice ~ 1"}

    def by(*methods, **more):
        return [{"method": method, **FEW_DRAWS, **more} for method in methods]

    shares = by("auto", "tv", "omnibus")
    null = by("auto", "omnibus", "kernel", "distance")
    uniform, fair = {"null": "uniform"}, {"null": [0.6, 0.4]}
    sides = [*by("binary"), *by("sigmoid", tolerance=0.2)]
    sides += [*by("binary", alternative="larger"), *by("binary", alternative="smaller")]
    default = [*by("auto"), *by("auto", alternative="larger")]
    even = pd.DataFrame({"north": [1, 2], "east": [2, 1], "probability": [0.6, 0.4]})
    couple = {"items": ITEMS[:2], "null": even}
    ask = [*by("paninski"), *by("sigmoid", tolerance=0.2)]
    gaps, torn = surveys.partial_rankings(), surveys.ranking_respondents(partial=True)
    beside = by("omnibus", effect_epsilon=0.5)
    listing = {"items": ITEMS, "null": orders}
    noisy = {"null_nobs": 40, "null_noise": 1.0}
    worths = {"null": dict(zip(ITEMS, (0.4, 0.2, -0.1, -0.5), strict=True))}
    before, two = {"null_nobs": 40}, [{"method": "auto"}, {"method": "tv", "effect_epsilon": 0.5}]
    return [
        *fits("null worths", test, surveys.offered(), person | worths, by("auto")),
        *fits("Mallows null, completed", test, gaps, given | COMPLETE, null[:1]),
        *fits("Mallows null, lists", test, surveys.leading_lists(), given | LISTS, null[:1]),
        *fits("Mallows null, people, completed", test, torn, given | person | COMPLETE, null[:1]),
        *fits("listed null, completed", test, gaps, listing | COMPLETE, by("auto")),
        *fits("shares, effect", test, picked, listed | skewed, beside, **choice),
        *fits("two shares, default", test, pair, coin | fair, default, **choice),
        *fits("listed null, two items", test, surveys.rankings(m=2), couple, by("auto")),
        *fits("Mallows null", test, rows, given, null),
        *fits("Mallows null, people", test, people, given | person, null),
        *fits(
            "uniform null", test, rows, {"items": ITEMS} | uniform, by("auto", "borda", "omnibus")
        ),
        *fits("listed null", test, rows, {"items": ITEMS, "null": orders}, by("auto", "tv")),
        *fits("shares", test, picked, listed | skewed, shares, **choice),
        *fits("shares of people", test, crowd, listed | person | skewed, shares, **choice),
        *fits("shares of the null's categories", test, picked, skewed, shares[:1], **choice),
        *fits("uniform shares", test, picked, listed | uniform, ask, **choice),
        *fits("two shares", test, pair, coin | fair, sides, **choice),
        *fits("counts", test, surveys.counts(), listed | skewed, shares, counted=True),
        *fits("last year's shares", test, picked, listed | skewed | before, two, **choice),
        *fits("last year's, noisy", test, picked, listed | skewed | noisy, two[:1], **choice),
        *fits("last year's, people", test, crowd, listed | person | skewed | before, two, **choice),
        *fits(
            "last year's counts",
            test,
            surveys.counts(),
            listed | skewed | before,
            two[:1],
            counted=True,
        ),
        *fits("last year's orders", test, rows, listing | before, two[:1]),
    ]


def closenesses():
    """ClosenessTest."""
    test, few = pr.ClosenessTest, {"permutations": 39}
    person = {"respondent": "respondent", "max_rows": 3}
    ranked = surveys.rankings()
    crowd = surveys.in_groups(surveys.ranking_respondents(), (8, 12), True)
    levels, three = {"levels": ["group 0", "group 1"]}, {"levels": [f"group {k}" for k in range(3)]}
    ranking = {"formula": " + ".join(ITEMS) + " ~ group"}
    choice, listed = {"formula": "choice ~ group"}, {"categories": CATEGORIES}
    picked = surveys.in_groups(surveys.choices(), (20, 20))
    eaters = surveys.in_groups(surveys.choices(people=20), (9, 11), True)
    effect, details = {"effect_epsilon": 0.5}, {"details_epsilon": 0.5}
    pairs, waves = surveys.paired(), surveys.paired(chosen=True)
    paired = {"respondent": "respondent", "paired": True}
    samples = {
        name: (undressed.iloc[:12], undressed.iloc[12:])
        for name, undressed in ((name, surveys.undressed(f)) for name, f in ranked.items())
    }
    counted = {
        name: {"a": one, "b": two}
        for (name, one), two in zip(
            surveys.counts().items(), reversed(surveys.counts(total=60).values()), strict=True
        )
    }
    private = {"labels": "private"}
    secret = private | three
    hidden, shuffled = (surveys.secret_groups(made) for made in (surveys.choices(), ranked))
    unseen = surveys.secret_groups(surveys.choices(people=20), True)
    triples = surveys.in_groups(surveys.choices(), (20, 12, 8))
    trios = surveys.in_groups(surveys.choices(people=20), (9, 8, 3), True)
    many = {
        name: {group: dict.fromkeys("abcdefg", 4) | {most: 16, "h": 0} for group in ("x", "y")}
        for name, most in zip(("first", "other", "third"), "afg", strict=True)
    }

    letters = {"categories": list("abcdefgh")}

    def by(*methods, **more):
        return [{"method": method, **few, **more} for method in methods]

    kernels = [*by("auto", "mmd", "kendall"), *by("mmd", **effect)]
    shares = [
        *by("auto", "permutation", "tv", "chi-square", "sigmoid"),
        *by("tv", **effect),
    ]
    several = by("auto", "permutation", "pairs", "tv")
    some = [*by("auto", "tv"), *by("tv", **effect)]
    grouped = surveys.in_groups(ranked, (15, 15))
    thirds = surveys.in_groups(ranked, (10, 12, 8))
    torn = surveys.in_groups(surveys.partial_rankings(), (15, 15))
    leading = surveys.in_groups(surveys.leading_lists(), (15, 15))
    sets, genders = surveys.offered(), {"items": ITEMS, "levels": surveys.LEVELS["gender"]}
    by_gender = {"formula": "best + worst ~ gender"}
    return [
        *fits("groups of sets", test, sets, person | genders, [few], **by_gender),
        *fits("two samples", test, samples, {"items": ITEMS}, kernels),
        *fits("groups, completed", test, torn, levels | COMPLETE, kernels[:1], **ranking),
        *fits("groups, lists", test, leading, levels | LISTS, kernels[:1], **ranking),
        *fits("groups of rankings", test, grouped, levels, kernels[:3], **ranking),
        *fits("three groups", test, thirds, three, by("auto", "pairs", "kendall"), **ranking),
        *fits("groups of rankers", test, crowd, levels | person, kernels, **ranking),
        *fits("groups of choices", test, picked, levels | listed, shares, **choice),
        *fits("groups of choosers", test, eaters, levels | listed | person, some, **choice),
        *fits("counts of groups", test, counted, listed, by("tv", "chi-square"), counted=True),
        *fits("three groups of choices", test, triples, three | listed, several, **choice),
        *fits("three groups of choosers", test, trios, three | listed | person, several, **choice),
        *fits("counts of many", test, many, letters, by("permutation", **effect), counted=True),
        *fits("counts of many", test, many, letters, by("table"), counted=True),
        *fits("groups of choices", test, picked, levels | listed, by("tv", **details), **choice),
        *fits(
            "groups of choosers",
            test,
            eaters,
            levels | listed | person,
            by("tv", **details),
            **choice,
        ),
        *fits("groups of rankers", test, crowd, levels | person, by("mmd", **details), **ranking),
        *fits("three groups", test, thirds, three, by("pairs", **details), **ranking),
        *fits("paired rankings", test, pairs, {"items": ITEMS} | paired, by("mmd")),
        *fits("paired choices", test, waves, levels | listed | paired, by("tv", "auto"), **choice),
        *fits("secret groups", test, hidden, secret | listed, by("tv", "auto"), **choice),
        *fits("secret Enums", test, surveys.enums(hidden), private, by("auto"), **choice),
        *fits("secret choosers", test, unseen, secret | listed | person, by("auto"), **choice),
        *fits("secret rankings", test, shuffled, secret, by("auto", "kendall"), **ranking),
    ]


CATALOGUE = {
    case.name: case
    for make in (
        bradley_terry,
        covariates,
        offered_sets,
        top,
        aggregations,
        uniformities,
        identities,
        closenesses,
    )
    for case in make()
}
