"""Links: their distributions and conditions, fits against R, what an archive keeps."""

import json
import math
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ownlinks import SECH
from pairfits import differences, fit_ridge, mean_scores
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import hypsecant, logistic, norm

import privrank as pr
from privrank.bradley_terry import fit as fits_module
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.fit import LOGISTIC_SCORE, EdgeLoss, ScoreFunction, loss_bounds
from privrank.distributions.links import BUILT_IN, LOGIT, PROBIT, find
from privrank.release.survey import PairCounts

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "links.json").read_text(encoding="utf-8")
)
SURVEYS = {
    "university": pr.datasets.load_university(),
    "university_1998": pr.datasets.load_university("1998"),
    "immigration": pr.datasets.load_immigration(),
}
ROWS = {"university": 15, "university_1998": 15, "immigration": 6}

by_survey = pytest.mark.parametrize("name", SURVEYS)
by_design = pytest.mark.parametrize("design", ["public", "private"])
by_other = pytest.mark.parametrize("link", ["probit", SECH], ids=["probit", "sech"])
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def logit_density(t):
    return expit(t) * expit(-t)


def logit_slope(t):
    return logit_density(t) * (expit(-t) - expit(t))


OWN = pr.Link("my logit", expit, logit_density, logit_slope, kappa1=1.0, kappa2=0.25)
ALL = [*BUILT_IN, SECH, OWN]
by_link = pytest.mark.parametrize("link", ALL, ids=lambda link: link.name)
LAWS = {"logit": logistic(), "probit": norm(), "sech": hypsecant(scale=2 / math.pi)}
LAWS["my logit"], LAWS[SECH] = logistic(), LAWS["sech"]


def seeded(seed=7):
    return np.random.default_rng(seed)


def model(name="university", *, unit="respondent", **arguments):
    survey = SURVEYS[name]
    if unit == "respondent":
        arguments = {"respondent": "respondent", "max_rows": ROWS[name]} | arguments
    return pr.PrivateBTL(
        survey.comparisons, **{"items": survey.items, "respondent": None, "ties": True} | arguments
    )


# --- the distributions ---


@by_link
def test_distributions_are_those_of_scipy(link):
    distribution, t = LAWS[link.name], np.linspace(-12, 12, 241)
    np.testing.assert_allclose(link.probability(t), distribution.cdf(t), atol=1e-14)
    np.testing.assert_allclose(link.density(t), distribution.pdf(t), rtol=1e-12)
    np.testing.assert_allclose(
        link.exact.variance(t), distribution.cdf(t) * distribution.sf(t), rtol=1e-11
    )
    log_cdf = np.where(t < 0, distribution.logcdf(t), np.log1p(-distribution.sf(np.maximum(t, 0))))
    np.testing.assert_allclose(link.exact.log_cdf(t), log_cdf, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(
        link.exact.ratio(t), distribution.pdf(t) / distribution.cdf(t), rtol=1e-11
    )
    assert float(distribution.sf(link.exact.far)) == pytest.approx(math.exp(-28), rel=1e-2)


@by_link
def test_integrals_and_derivatives(link):
    forms = link.exact
    for t in (0.0, 1e-6, 0.3, 2.0, 9.0, 40.0):
        area, _ = quad(link.excess, 0, t, epsabs=1e-13, limit=200)
        assert float(link.integral(t)) == pytest.approx(area, rel=1e-10, abs=1e-13)
        assert link.integral(-t) == link.integral(t)
        assert link.excess(-t) == -link.excess(t)
    t, e = np.linspace(-7, 7, 141), 1e-5
    slope = (forms.log_cdf(t + e) - forms.log_cdf(t - e)) / (2 * e)
    np.testing.assert_allclose(forms.ratio(t), slope, atol=1e-8)
    curvature = -(forms.ratio(t + e) - forms.ratio(t - e)) / (2 * e)
    np.testing.assert_allclose(forms.curvature(t), curvature, atol=1e-8)
    density = (link.pdf(t + e) - link.pdf(t - e)) / (2 * e)
    np.testing.assert_allclose(link.slope(t), density, atol=1e-8)


@by_link
def test_tails_are_stable(link):
    # no overflow, no 0 / 0, and the right limits however far out
    forms, far = link.exact, np.array([-1e300, -1e4, -800.0, 800.0, 1e4, 1e300])
    with np.errstate(divide="raise", invalid="raise"):
        values = [
            forms.ratio(far),
            forms.curvature(far),
            forms.log_cdf(far[1:-1]),
            link.integral(far),
        ]
        assert np.isfinite(forms.excess(far)).all()
    # the log of a light tail is out of reach at 1e300 only
    assert all(np.isfinite(v).all() for v in values)
    np.testing.assert_allclose(forms.ratio(far)[3:], 0, atol=1e-280)
    assert (forms.curvature(far) >= 0).all()
    np.testing.assert_allclose(forms.log_cdf(far[1:-1])[-2:], 0, atol=1e-280)
    if link is not PROBIT:
        rate = forms.ratio(np.array([-1e4]))[0]
        assert rate == pytest.approx(math.pi / 2 if link is SECH else 1.0, rel=1e-9)
        step = forms.log_cdf(np.array([-1e4, -1e4 - 1]))
        assert step[0] - step[1] == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("link", [LOGIT, SECH, OWN], ids=lambda link: link.name)
def test_declared_constants_hold_and_are_tight(link):
    t = np.linspace(-60, 60, 240_001)
    ratio, curvature = link.exact.ratio(t), link.exact.curvature(t)
    weight = ratio + ratio[::-1]
    assert weight.max() <= link.kappa1 * (1 + 1e-12)
    assert curvature.max() <= link.kappa2 and ratio.max() <= link.exact.steepest * (1 + 1e-12)
    assert (curvature - curvature[::-1]).max() <= max(link.exact.asymmetry, 1e-12)
    assert link.density(t).max() <= link.exact.peak
    assert weight.max() == pytest.approx(link.kappa1, rel=1e-6)
    assert curvature.max() == pytest.approx(link.kappa2, rel=1e-5)
    if link is SECH:
        assert ratio.max() == pytest.approx(math.pi / 2)
        # 1.02738, as is often quoted, is rounded down: no bound
        assert 1.02738 < curvature.max() < 1.02739


def test_probit_breaks_one_condition_only():
    t = np.linspace(-30, 30, 6001)
    ratio = PROBIT.exact.ratio(t)
    assert (ratio + ratio[::-1]).max() > 30
    assert (PROBIT.exact.curvature(t) <= PROBIT.kappa2).all()
    assert PROBIT.density(t).max() <= PROBIT.exact.peak


# --- links of one's own ---


def cauchy(t):
    return 0.5 + np.arctan(t) / np.pi


def gumbel(t):
    return np.exp(t - np.exp(t))


BROKEN = {
    "cauchit": (
        cauchy, lambda t: 1 / np.pi / (1 + t * t), lambda t: -2 * t / np.pi / (1 + t * t) ** 2,
        1.3, 2.0, "breaks A2.*log-concave",
    ),
    "cloglog": (
        lambda t: -np.expm1(-np.exp(t)), gumbel, lambda t: gumbel(t) * (1 - np.exp(t)),
        1.3, 2.0, r"breaks A0: F\(t\) \+ F\(-t\)",
    ),
    "my probit": (ndtr, norm.pdf, lambda t: -t * norm.pdf(t), 2.0, 1.0, "breaks A1.*reaches"),
    "small kappa1": (expit, logit_density, logit_slope, 0.99, 0.25, "breaks A1.*0.99"),
    "small kappa2": (expit, logit_density, logit_slope, 1.0, 0.2499, "breaks A2.*0.2499"),
    "no increase": (
        lambda t: 0.5 + 0 * t, lambda t: 0 * t, lambda t: 0 * t, 1.0, 0.25, "breaks A0.*increase",
    ),
    "another density": (
        expit, lambda t: 1.1 * logit_density(t), logit_slope, 1.2, 0.3, "pdf must be",
    ),
    "another slope": (expit, logit_density, logit_density, 1.0, 0.25, "slope must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_condition_is_named(name):
    cdf, pdf, slope, kappa1, kappa2, message = BROKEN[name]
    with pytest.raises(ValueError, match=message):
        pr.Link(name, cdf, pdf, slope, kappa1, kappa2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "probit"}, "name must be"),
        ({"name": ""}, "name must be"),
        ({"name": 3}, "name must be"),
        ({"kappa1": math.inf}, r"kappa1 must be a number in \(0, inf\)"),
        ({"kappa2": 0}, r"kappa2 must be a number in \(0, inf\)"),
        ({"kappa2": "1"}, r"kappa2 must be a number in \(0, inf\)"),
        ({"cdf": 3}, "must be functions"),
        ({"cdf": lambda t: 0.5}, "must be functions"),
        ({"slope": lambda t: t * math.nan}, "must be functions"),
    ],
)
def test_arguments_of_a_link(changed, message):
    right = {"name": "x", "cdf": expit, "pdf": logit_density, "slope": logit_slope}
    right |= {"kappa1": 1.0, "kappa2": 0.25}
    with pytest.raises((ValueError, TypeError), match=message):
        pr.Link(**right | changed)


@pytest.mark.parametrize("link", ["logistic", "cauchit", None, 3, [OWN], ["logit"]])
def test_an_unknown_link_is_refused(link):
    for build in (lambda: model(link=link), lambda: pr.simulate.bradley_terry([0, 1], link=link)):
        with pytest.raises(ValueError, match=r"link must be one of 'logit'.*privrank.Link"):
            build()


@quiet
@by_design
@pytest.mark.parametrize("epsilon", [np.inf, 1.0])
def test_a_users_logit_is_the_logit(design, epsilon):
    fits = [model(design=design, link=link).fit(epsilon, method="counts", penalty=1.0, rng=seeded())
            for link in ("logit", OWN)]  # fmt: skip
    np.testing.assert_allclose(fits[1].params, fits[0].params, atol=1e-9)
    np.testing.assert_allclose(fits[1].cov_params(), fits[0].cov_params(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fits[1].probabilities(), fits[0].probabilities(), atol=1e-9)
    one, other = (fit.test_homogeneity() for fit in fits)
    assert other.statistic == pytest.approx(one.statistic, rel=1e-5)


def test_links_and_results_can_be_pickled():
    for link in ALL:
        assert pickle.loads(pickle.dumps(link)) == link
    result = model(link=OWN, design="public").fit(np.inf)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)).params, result.params)


# --- against R ---


@by_survey
@by_design
@by_other
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_maximum_likelihood_equals_glm(name, design, link, solver):
    expected = REFERENCE[getattr(link, "name", link)][name]
    survey = model(name, design=design, link=link)
    for effect, errors in (("none", "model"), ("cluster", "cluster")):
        result = survey.fit(np.inf, penalty=0, dependence=effect, solver=solver)
        worths = [expected["params"][item] for item in result.items]
        np.testing.assert_allclose(result.params, worths, atol=1e-7)
        # the reference has no small-sample factor
        factor = result.nobs / (result.nobs - 1) if effect == "cluster" else 1.0
        bse = np.array([expected["bse"][errors][item] for item in result.items])
        np.testing.assert_allclose(result.bse, np.sqrt(factor) * bse, atol=1e-7)
    assert result.estimator == "maximum likelihood"
    # without respondents, and from the formula
    survey = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1", SURVEYS[name].comparisons, items=SURVEYS[name].items,
        respondent=None, ties=True, design=design, link=link,
    )  # fmt: skip
    np.testing.assert_allclose(survey.fit(np.inf, penalty=0).params, worths, atol=1e-7)


@by_survey
@by_other
def test_likelihood_equals_glm(name, link):
    result = model(name, link=link).fit(np.inf, penalty=0)
    pairs = result.release.design.pairs
    loss = EdgeLoss.likelihood(result.link, *score_equations(result.release).answers)
    value = loss.value(differences(result.params.to_numpy(), pairs))
    assert -value == pytest.approx(REFERENCE[getattr(link, "name", link)][name]["loglik"], abs=1e-6)


@by_survey
@by_other
def test_objective_without_noise_is_the_same_fit_where_it_is_the_likelihood(name, link):
    fits = [model(name, link=link).fit(np.inf, penalty=2.0, method=m)
            for m in ("counts", "objective")]  # fmt: skip
    near = np.abs(fits[0].params - fits[1].params).max()
    if link is SECH:
        assert near < 1e-8
        np.testing.assert_allclose(fits[1].bse, fits[0].bse, rtol=1e-6)
        assert fits[1].estimator == "maximum likelihood"
    else:
        # the matching loss of the probit is another estimator of the same worths
        assert 1e-8 < near < 0.02
        assert fits[1].estimator == "matching loss"


# --- the matching loss ---


@quiet
@by_design
@by_other
def test_counts_release_the_same_under_every_link(design, link):
    fits = [model("immigration", design=design, link=name).fit(1.0, method="counts", rng=seeded())
            for name in ("logit", link)]  # fmt: skip
    assert fits[0].release.parts.keys() == fits[1].release.parts.keys()
    for name, part in fits[0].release.parts.items():
        other = fits[1].release.parts[name]
        for field in ("distribution", "sensitivity", "epsilon", "step"):
            assert getattr(part, field) == getattr(other, field)
        if name != "dependence":  # measured along contrasts of the fitted worths
            assert part.to_record() == other.to_record()


@quiet
@by_other
def test_sandwich_of_the_matching_loss(link):
    survey = model(design="public", link=link)
    result = survey.fit(2.0, penalty=1.5, dependence="worst", rng=seeded())
    theta, pairs = result.params.to_numpy(), result.release.design.pairs
    distribution = LAWS[link]
    contrast = np.zeros((len(pairs.first), 6))
    contrast[np.arange(15), pairs.first], contrast[np.arange(15), pairs.second] = 1, -1
    t = contrast @ theta
    # score equations
    part = result.release.parts["net wins"]
    net = part.step * part.values
    score = contrast.T @ (pairs.count * (distribution.cdf(t) - 0.5)) + 1.5 * theta
    np.testing.assert_allclose(score, 0.5 * (net - net.mean()), atol=1e-6)
    centring = np.eye(6) - 1 / 6
    hessian = (
        contrast.T @ (contrast * (pairs.count * distribution.pdf(t))[:, None]) + 1.5 * centring
    )
    meat = contrast.T @ (
        contrast * (pairs.count * distribution.cdf(t) * distribution.sf(t))[:, None]
    )
    inverse = np.linalg.pinv(hessian)
    np.testing.assert_allclose(
        result.bse_sampling**2, np.diag(inverse @ meat @ inverse) * result.design_effect, rtol=1e-6
    )


@by_other
def test_both_losses_estimate_the_same_worths(link):
    # expected answers: the minimiser of either is the truth
    theta = np.array([0.9, 0.2, -0.3, -0.8])
    pairs, distribution = PairCounts.equal(4, 1000.0), find(link)
    chance = LAWS[link].cdf(differences(theta, pairs))
    won, lost = 1000 * chance, 1000 * (1 - chance)
    target = mean_scores(theta, pairs, ScoreFunction(distribution))
    matching = EdgeLoss.matching(ScoreFunction(distribution), pairs.count)
    for loss, right in (
        (matching, target),
        (EdgeLoss.likelihood(distribution, won, lost), 0 * target),
    ):
        fit = fit_ridge(right, pairs, 0.0, loss=loss)
        assert fit.finite
        np.testing.assert_allclose(fit.point, theta, atol=1e-9)


@by_link
def test_score_functions_belong_together(link):
    for function in (ScoreFunction(link), ScoreFunction(link, likelihood=True)):
        t, e = np.linspace(-5, 5, 81), 1e-5
        slope = (function.mean(t + e) - function.mean(t - e)) / (2 * e)
        np.testing.assert_allclose(function.curvature(t), slope, atol=1e-8)
        area = (function.integral(t + e) - function.integral(t - e)) / (2 * e)
        np.testing.assert_allclose(function.mean(t), area, atol=1e-8)
        variance = function.weight(t) ** 2 * link.exact.variance(t)
        np.testing.assert_allclose(function.variance(t), variance, rtol=1e-9)
        assert (function.mean(np.array([1e6])) <= function.most).all()
        assert 0 < function.mean_curvature <= function.curvature(np.zeros(1))[0] + 1e-9
    assert ScoreFunction(LOGIT) == LOGISTIC_SCORE
    # of the logit they are the same
    np.testing.assert_allclose(
        ScoreFunction(OWN, True).mean(t), ScoreFunction(LOGIT).mean(t), atol=1e-12
    )


@by_link
@pytest.mark.parametrize("gamma", [0.0, 1e-6, 1e-3, 3.0])
def test_fits_solve_their_score_equations(monkeypatch, link, gamma):
    rng = seeded(4)
    first, second = np.triu_indices(12, 1)
    pairs = PairCounts(first, second, rng.integers(5, 300, len(first)), "observed")
    won = np.floor(pairs.count * rng.uniform(0.1, 0.9, len(first)))
    net = np.zeros(12)
    np.add.at(net, pairs.first, won - 0.5 * pairs.count)
    np.subtract.at(net, pairs.second, won - 0.5 * pairs.count)
    cases = [(EdgeLoss.matching(ScoreFunction(link), pairs.count), net)]
    cases += [(EdgeLoss.likelihood(link, won, pairs.count - won), 0 * net)]
    if gamma > 0:
        # far beyond what any answers can give: curvatures of light tails underflow
        push = 3e5 * (net - net.mean())
        cases += [(cases[0][0], net + push)]
    for loss, target in cases:
        fits = []
        for limit, solver in ((500, "newton"), (1, "newton"), (500, "lbfgs")):
            monkeypatch.setattr(fits_module, "DENSE_LIMIT", limit)
            fits.append(fit_ridge(target, pairs, gamma, loss=loss, solver=solver))
        for fit in fits:
            assert fit.finite
            slope = loss.slope(differences(fit.point, pairs))
            left = np.bincount(pairs.first, slope, 12) - np.bincount(pairs.second, slope, 12)
            scale = 1e-9 * (1 + np.abs(target).max())
            np.testing.assert_allclose(left + gamma * fit.point, target, atol=max(scale, 1e-7))


@by_other
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_separable_data_fall_back_on_the_ridge(link, solver):
    rows = [("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 1.0)] * 20
    frame = pd.DataFrame(rows, columns=["item1", "item2", "outcome"])
    survey = pr.PrivateBTL(
        frame, items="a b c".split(), respondent=None, design="public", link=link
    )
    for epsilon in (np.inf, 1e6):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = survey.fit(epsilon, penalty=0, solver=solver)
        assert any("not finite" in str(w.message) for w in caught)
        assert result.corrected and result.penalty > 0
        assert (np.diff(result.params) < 0).all()


@by_other
def test_extreme_but_finite_worths_are_no_reason_to_fall_back(link):
    rows = [("a", "b", 1.0)] * 9_999 + [("a", "b", -1.0)]
    frame = pd.DataFrame(rows, columns=["item1", "item2", "outcome"])
    survey = pr.PrivateBTL(frame, items=["a", "b"], respondent=None, design="public", link=link)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pr.PrivrankWarning)
        result = survey.fit(np.inf, penalty=0)
    assert result.params["a"] - result.params["b"] == pytest.approx(LAWS[link].ppf(0.9999))


@quiet
@by_other
@by_design
@pytest.mark.parametrize("method", ["counts", "objective"])
def test_at_a_huge_epsilon_private_fits_are_near_the_non_private_one(link, design, method):
    pair_counts = None if design == "public" else "release"
    survey = model(design=design, link=link, pair_counts=pair_counts)
    # dependence apart, of which the non-private run has more
    private = survey.fit(1e6, penalty=1.0, method=method, dependence="none")
    plain = survey.fit(np.inf, penalty=1.0, method=method, dependence="none")
    # the matching loss is another estimator than maximum likelihood, if a close one
    same = private.estimator == plain.estimator
    np.testing.assert_allclose(private.params, plain.params, atol=1e-5 if same else 5e-3)
    np.testing.assert_allclose(private.bse, plain.bse, rtol=1e-3 if same else 0.05)


# --- refusals ---


@by_other
def test_cvxpy_is_refused_before_spending(link):
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    with pytest.raises(ValueError, match=r"solver='cvxpy' supports the logistic loss only"):
        model(link=link).fit(1.0, solver="cvxpy", budget=budget)
    assert budget.spendings == ()
    release = model(design="public").fit(np.inf).release
    with pytest.raises(ValueError, match="solver='cvxpy'"):
        pr.PrivateBTL.from_release(release, solver="cvxpy", link=link)


@by_other
def test_the_multiplicative_scale_is_that_of_the_logit(link):
    with pytest.raises(ValueError, match=r"worth\(\) is the multiplicative scale of the logit"):
        model(link=link).fit(np.inf).worth()


# --- archives ---


@quiet
@by_design
@pytest.mark.parametrize("link", ["probit", SECH, OWN], ids=["probit", "sech", "own"])
@pytest.mark.parametrize(("epsilon", "method"), [(1.0, "counts"), (2.0, "objective"),
                                                 (np.inf, "counts"),
                                                 (np.inf, "objective")])  # fmt: skip
def test_archives_rebuild_the_same_result(link, design, epsilon, method):
    result = model("immigration", design=design, link=link).fit(
        epsilon, method=method, rng=seeded()
    )
    text = result.to_json()
    again = {"link": link} if isinstance(link, pr.Link) else {}
    rebuilt = pr.from_json(text, **again)
    assert rebuilt.to_json() == text
    assert rebuilt.link == find(link)
    assert str(rebuilt.summary()) == str(result.summary())
    release = pr.Release.from_json(result.release.to_json(), **again)
    assert release.link == find(link)
    if link is OWN:
        for read, archived in (
            (pr.from_json, text),
            (pr.Release.from_json, result.release.to_json()),
        ):
            with pytest.raises(ValueError, match="link= must be given.*'my logit'"):
                read(archived)
            with pytest.raises(
                ValueError, match="link must be the link of the archive, 'my logit'"
            ):
                read(archived, link=PROBIT)
            with pytest.raises(ValueError, match="link must be one of"):
                read(archived, link=3)


def test_an_archive_of_the_logit_takes_no_other_link():
    result = model(design="public").fit(1.0, rng=seeded())
    assert json.loads(result.release.to_json())["link"] == "logit"
    assert pr.from_json(result.to_json()).link is LOGIT
    with pytest.raises(ValueError, match="link must be the link of the archive, 'logit'"):
        pr.from_json(result.to_json(), link=OWN)


@pytest.mark.parametrize("text", ["", "3", "[]", '{"link": "x"}', '{"release": 3, "settings": {}}'])
def test_what_is_no_archive_is_refused(text):
    for read in (pr.from_json, pr.Release.from_json):
        with pytest.raises(ValueError, match="text must be JSON that|link= must be given"):
            read(text)


@by_other
def test_a_release_of_counts_is_read_under_another_link(link):
    release = pr.PrivateTopK(
        SURVEYS["university"].comparisons, k=2, items=SURVEYS["university"].items,
        respondent=None, ties=True, design="public",
    ).fit(2.0, rng=seeded()).release  # fmt: skip
    direct = model(unit="row", design="public", link=link).fit(2.0, method="counts", rng=seeded())
    read = pr.PrivateBTL.from_release(release, link=link)
    np.testing.assert_allclose(read.params, direct.params, atol=1e-9)
    assert read.link == find(link)
    # and the wins of every pair back under the logit, or as win rates
    plain = model(link=link).fit(np.inf, penalty=0)
    back = pr.PrivateBTL.from_release(plain.release, link="logit", penalty=0)
    logit = model().fit(np.inf, penalty=0)
    np.testing.assert_allclose(back.params, logit.params, atol=1e-8)
    np.testing.assert_allclose(back.bse, logit.bse, atol=1e-8)
    rates = [pr.PrivateTopK.from_release(r, 2).params for r in (plain.release, logit.release)]
    np.testing.assert_allclose(rates[0], rates[1], atol=1e-12)
    objective = model(link=link).fit(2.0, method="objective", rng=seeded()).release
    with pytest.raises(ValueError, match="link must be"):
        pr.PrivateBTL.from_release(objective, link="logit")


# --- what is printed and drawn ---


@quiet
@pytest.mark.parametrize(
    ("link", "epsilon", "method", "model_line", "words"),
    [
        ("logit", 1.0, "counts", "Bradley-Terry (logit)", []),
        ("probit", 1.0, "counts", "Thurstone (probit)", ["Estimates are by matching loss"]),
        (
            "probit",
            2.0,
            "objective",
            "Thurstone (probit)",
            ["Estimates are by perturbed matching loss"],
        ),
        (
            "probit",
            np.inf,
            "counts",
            "Thurstone (probit)",
            ["Estimates are by maximum likelihood."],
        ),
        (SECH, 2.0, "objective", "Bradley-Terry (sech)", ["by perturbed maximum likelihood."]),
        (OWN, 2.0, "objective", "(my logit)", ["declared bounds of link 'my logit', kappa1 = 1"]),
    ],
)
def test_summaries_name_model_and_estimator(link, epsilon, method, model_line, words):
    result = model("immigration", design="public", link=link).fit(
        epsilon, method=method, rng=seeded()
    )
    text = " ".join(str(result.summary()).split())
    assert model_line in text and all(word in text for word in words)
    assert ("Estimates are by" in text) == (link != "logit")
    figure = result.plot_worth()
    scale = "log-odds" if link == "logit" else f"{result.link.name} scale"
    assert figure.axes[0].get_xlabel() == f"worth ({scale}, mean 0)"
    assert result.link.model in figure.axes[0].get_title()


@by_other
def test_probabilities_are_those_of_the_link(link):
    result = model(link=link).fit(np.inf, penalty=0)
    gap = result.params["London"] - result.params["Paris"]
    assert result.probabilities().loc["London", "Paris"] == pytest.approx(LAWS[link].cdf(gap))
    row = result.pairwise().iloc[0]
    assert row["preferred_plus_half_ties"] == pytest.approx(LAWS[link].cdf(gap))
    # limits are by scores, near those of the estimate and its error
    low = LAWS[link].cdf(gap - norm.isf(0.025) * row["std_err"])
    assert row["lower"] == pytest.approx(low, abs=0.002)


@by_link
def test_simulated_comparisons_follow_the_link(link):
    frame = pr.simulate.bradley_terry([0.6, 0.0], repeats=40_000, link=link, rng=seeded())
    rate = (frame["outcome"] == 1).mean()
    assert rate == pytest.approx(LAWS[link.name].cdf(0.6), abs=4 * 0.5 / 200)


def test_automatic_penalties_scale_with_the_worths():
    # equal surveys under distributions of other scales shrink by the same share
    logit = model(design="public").fit(np.inf)
    steep = pr.Link(
        "steep logit", lambda t: expit(2 * t), lambda t: 2 * logit_density(2 * t),
        lambda t: 4 * logit_slope(2 * t), kappa1=2.0, kappa2=1.0,
    )  # fmt: skip
    other = model(design="public", link=steep).fit(np.inf)
    assert loss_bounds(steep).slope == 2.0
    assert other.penalty == pytest.approx(4 * logit.penalty, rel=1e-6)
    np.testing.assert_allclose(2 * other.params, logit.params, atol=1e-8)
    np.testing.assert_allclose(2 * other.bse, logit.bse, rtol=1e-6)
