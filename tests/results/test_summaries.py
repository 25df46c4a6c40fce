"""A summary fits on a screen and says what protects whom; what an expert asks is one word away."""

import itertools

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.results import guarantee
from privrank.results.claims import CLAIMS

cems = pr.datasets.load_university()
rows = {"items": range(6), "respondent": None, "design": "public"}
people = {"respondent": "respondent", "max_rows": 15, "ties": True, "items": cems.items}
ranks = cems.rankings()


def fits():
    rng = np.random.default_rng(1)
    public = {"design": "public", **people}
    yield "worths", pr.PrivateBTL(cems.comparisons, **public).fit(1.0, rng=rng)
    yield "top-k", pr.PrivateTopK(cems.comparisons, 2, **public).fit(0.5, rng=rng)
    frame = pr.simulate.bradley_terry(np.linspace(-1, 1, 6), repeats=100, rng=rng)
    yield "worths of rows", pr.PrivateBTL(frame, **rows).fit(0.5, rng=rng)
    yield "top-k of rows", pr.PrivateTopK(frame, 2, max_rows=15, **rows).fit(0.5, rng=rng)
    yield "consensus of rows", pr.PrivateRankAggregation(ranks, items=cems.items).fit(1.0, rng=rng)
    consensus = pr.PrivateRankAggregation(ranks, respondent="respondent")
    yield "consensus", consensus.fit(1.0, rng=rng)
    yield "uniformity", pr.UniformityTest(ranks, respondent="respondent").fit(0.5, rng=rng)
    identity = pr.IdentityTest.from_counts([30, 20, 50], [0.3, 0.3, 0.4], list("abc"))
    yield "identity", identity.fit(1.0, draws=199, rng=rng)
    halves = ranks.iloc[:150], ranks.iloc[150:]
    closeness = pr.ClosenessTest(*halves, respondent="respondent")
    yield "closeness", closeness.fit(1.0, permutations=99, rng=rng)
    one, other = (half.reset_index(drop=True)[list(cems.items)] for half in halves)
    # beside itself a sample does not reject H0; beside another, turned round, it does
    for name, second in (("alike", one), ("apart", 7 - other)):
        groups = pr.ClosenessTest(one, second, items=cems.items)
        yield f"groups of rows, {name}", groups.fit(2.0, permutations=99, rng=rng)


FITS = dict(fits())


@pytest.mark.parametrize("name", FITS)
def test_six_items_fit_in_32_lines(name):
    text = str(FITS[name].summary())
    assert len(text.splitlines()) <= 32, text
    for words in ("Privacy unit:", "Mechanism:", "Noise:", "seeded", "Epsilon:", "Delta:"):
        assert words in text
    units = ("respondent", "row", "comparison")
    flat = " ".join(text.split())
    assert sum(flat.count(f"privacy for replacing one {unit}") for unit in units) == 1


def test_summaries_of_groups_are_of_both_decisions():
    assert not FITS["groups of rows, alike"].reject and FITS["groups of rows, apart"].reject


@pytest.mark.parametrize("name", FITS)
def test_details_are_added_when_they_are_asked_for(name):
    short, full = (str(FITS[name].summary(details=more)) for more in (False, True))
    assert "Noise scale:" in full and "Noise scale:" not in short
    if FITS[name].release.parts.keys() & {"dependence"}:
        assert "Epsilon includes " in full and "Epsilon includes" not in short


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("worths of rows", "a respondent with r comparisons has epsilon = r x 0.5."),
        ("top-k of rows", "a respondent with up to 15 comparisons has epsilon up to 7.5."),
        ("consensus of rows", "a respondent with r rows has epsilon = r x 1."),
        ("identity", "a respondent with r rows has epsilon = r x 1."),
        (
            "groups of rows, apart",
            "a respondent with r rows has epsilon = r x 2.",
        ),
    ],
)
def test_epsilon_per_row_is_converted_for_a_respondent(name, said):
    for details in (False, True):
        assert said in " ".join(str(FITS[name].summary(details=details)).split())


@pytest.mark.parametrize("name", ["uniformity", "closeness"])
def test_epsilon_of_respondents_is_not_converted(name):
    assert "Epsilon applies to" not in str(FITS[name].summary(details=True))


def test_a_local_table_says_whom_nobody_has_to_trust():
    protocol, rng = pr.local.Comparisons(list("abc"), epsilon=2.0), np.random.default_rng(1)
    tally = protocol.tally(protocol.simulate(pr.Mallows(3, 0.5).rvs(60, rng), rng))
    for result in (pr.PrivateBTL.from_reports(tally), pr.PrivateTopK.from_reports(tally, k=1)):
        said = " ".join(" ".join(result.summary().notes).split())
        assert CLAIMS["private reports"].format(epsilon=2.0) in said
        assert CLAIMS["pairs asked"] in said


def test_a_larger_delta_is_named():
    model = pr.PrivateTopK(cems.comparisons, 2, items=cems.items, respondent=None, ties=True)
    said = str(model.fit(1.0, 1e-6, noise="gaussian", rng=np.random.default_rng(1)).summary())
    assert CLAIMS["level, delta"] in " ".join(said.split())


@pytest.mark.parametrize("name", ["worths", "top-k", "consensus"])
def test_epsilon_per_respondent_needs_no_conversion(name):
    assert "Epsilon applies to" not in str(FITS[name].summary(details=True))


def noises():
    """Log probabilities of noise on a difference of wins and losses, with epsilon and delta."""
    values = np.arange(-400, 401)
    for epsilon in (0.1, 0.5, 1.0):
        yield -np.abs(values) * epsilon / 2, epsilon
        yield -(values**2) / (2 * (4 / epsilon) ** 2), epsilon


@pytest.mark.parametrize(("logs", "epsilon"), [*noises()])
def test_r_rows_are_protected_at_r_epsilon_and_a_larger_delta(logs, epsilon):
    # every two surveys of four comparisons of two items, as they differ in r of them
    weights = np.exp(logs - logs.max())

    def excess(move, level):
        one, other = weights[10:-10], np.roll(weights, move)[10:-10]
        return np.maximum(one - np.exp(level) * other, 0.0).sum() / weights.sum()

    delta = max(excess(move, epsilon) for move in (-2, 0, 2))
    surveys = list(itertools.product((-1, 1), repeat=4))
    for one, other in itertools.product(surveys, surveys):
        r = sum(a != b for a, b in zip(one, other, strict=True))
        allowed = delta * sum(np.exp(k * epsilon) for k in range(r))
        assert excess(sum(one) - sum(other), r * epsilon) <= allowed + 1e-12


TECHNICAL = {
    "worths": ["permutohedron noise, net wins", "Ridge penalty:", "permutohedra)"],
    "top-k": ["permutohedron noise, net wins"],
    "worths of rows": ["Noise scale:", "Ridge penalty:"],
    "consensus": ["permutohedron noise, Borda totals"],
    "uniformity": ["noise, mean ranks and residuals", "Method: auto"],
    "identity": ["Method: auto"],
    "closeness": ["smoothed p-value"],
}


@pytest.mark.parametrize(("name", "terms"), TECHNICAL.items())
def test_terms_of_the_mechanism_are_among_the_details(name, terms):
    short, full = (" ".join(str(FITS[name].summary(details=d)).split()) for d in (False, True))
    assert " noise" in dict(FITS[name].summary().header)["Mechanism:"]
    for term in terms:
        assert term in full and term not in short


@pytest.mark.parametrize("name", ["uniformity", "identity"])
def test_tables_of_tests_have_the_threshold(name):
    assert "threshold" in str(FITS[name].summary())


def test_summaries_and_ledgers_call_a_statistic_the_same(tmp_path):
    test, rng = pr.UniformityTest(ranks, respondent="respondent"), np.random.default_rng(1)
    said = {"auto": "mean ranks and residuals", "borda": "mean ranks"}
    facts = {"epsilon": 2.0, "unit": "respondent"}
    for budget in (pr.Budget(**facts), pr.Budget(tmp_path / "own.ledger", **facts)):
        for method, words in said.items():
            result = test.fit(0.5, method=method, draws=99, budget=budget, rng=rng)
            assert result.summary().rows[0][0] == words
            assert f"noise, {words}" in dict(result.summary(True).header)["Mechanism:"]
            assert words in str(budget.summary()) and words in str(pr.summary_col([result]))
        kept = [line.released for line in budget.spendings]  # what is stored stays as it was
        assert kept == ["Borda and residual norm", "Borda norm"]
        assert "norm" not in str(budget.summary())


def test_a_table_of_worths_says_what_its_p_values_test():
    said = " ".join(" ".join(FITS["worths"].summary().notes).split())
    assert said.count(f"{CLAIMS['worth tests']} Test that all worths are equal: ") == 1
    order = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1", cems.comparisons, contest="first", design="public", **people
    )
    said = " ".join(order.fit(1.0, rng=np.random.default_rng(1)).summary().notes)
    assert said.count(CLAIMS["coefficient tests"]) == 1


def test_a_ridge_that_shrinks_is_stated_and_one_that_is_corrected_is_a_detail():
    model = pr.PrivateBTL(cems.comparisons, design="public", **people)
    said = {
        penalty: dict(
            model.fit(2.0, penalty=penalty, rng=np.random.default_rng(1)).summary().header
        )
        for penalty in ("auto", 3.0, 0)
    }
    words = ["ridge, bias-corrected", "ridge, penalty 3", "unpenalised"]
    assert [header["Estimator:"] for header in said.values()] == words


@pytest.mark.parametrize(
    ("design", "max_rows", "effect", "noisy", "named"),
    [
        ("private", 15, 6.0, True, True),
        ("private", 15, 4.9, True, False),
        ("private", 15, 6.0, False, False),
        ("private", 3, 3.0, True, False),
        ("public", 15, 6.0, True, False),
    ],
)
def test_a_bound_that_costs_more_than_it_gives_is_named(design, max_rows, effect, noisy, named):
    options = people | {"design": design, "max_rows": max_rows, "excess": "sample"}
    if design == "public":
        del options["excess"]
    release = (
        pr.PrivateBTL(cems.comparisons, **options).fit(1.0, rng=np.random.default_rng(1)).release
    )
    said = guarantee.cost_notes(release, effect, noisy)
    assert len(said) == named
    if named:
        assert said == [
            "15 rows of one respondent count as 2.5 independent ones: see "
            "pr.contribution_tradeoff()."
        ]


def test_answers_that_are_alike_name_the_tradeoff_in_the_summary():
    # two camps of opposite orders: but for one answer in twenty, all of a respondent's follow from
    # one of them; if they all did, the release could not tell the effect from the largest there is
    for people, flipped, advised in ((800, 0.05, True), (400, 0.0, False)):
        rng = np.random.default_rng(1)
        pairs = np.array(list(itertools.combinations(range(6), 2)))
        frame = pd.DataFrame(np.tile(pairs, (people, 1)), columns=["item1", "item2"])
        frame.insert(0, "respondent", np.repeat(np.arange(people), len(pairs)))
        camp = np.where(frame["respondent"] % 2, -1, 1)
        frame["outcome"] = camp * np.where(rng.random(len(frame)) < flipped, -1, 1)
        facts = {"items": range(6), "respondent": "respondent", "max_rows": 15}
        fit = pr.PrivateBTL(frame, **facts).fit(0.5, rng=rng)
        assert fit.design_effect > 5 and guarantee.at_most(fit.release) != advised
        for result in (fit, pr.PrivateTopK.from_release(fit.release, 2)):
            assert ("contribution_tradeoff" in str(result.summary())) == advised
    assert "contribution_tradeoff" not in str(FITS["worths"].summary())
