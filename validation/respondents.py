"""Respondents with dependent answers, for studies: their preferences and their answers.

A population is a mixture of types of respondents, each with its own worths; respondents with
personal worths around common ones; or the respondents of a survey, drawn with replacement. The true
worths fit the expected answers, with each pair weighted by its answers. With several types of
respondents no single worths are true for all; these are the worths that all respondents together
would give. They are computed from exact expectations.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas as pd

import privrank as pr
from privrank.plans.choice import noise_choices
from privrank.privacy.sensitivity import UnitSensitivity
from privrank.release.survey import equivalent_variance

STRENGTH, CAMPS, PERSONAL, NEAR = 2.0, 1.2, 0.8, 0.1
ASKED = 49
"""Questions in the questionnaire with a few random pairs, or half of the pairs if fewer."""

MANY = 40_000
"""Number of respondents from which the covariance of scores is computed, to 1% or better."""


def chance(t: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-t))


def logit(probability: pd.Series) -> np.ndarray:
    inside = np.clip(probability.to_numpy(float), 1e-9, 1.0 - 1e-9)
    return np.log(inside / (1.0 - inside))


@dataclass(frozen=True, eq=False)
class Population:
    """Types of respondents: fractions, worths and standard deviations of personal worths.

    Or the answers of a survey by respondent and pair, missing as NaN.
    """

    items: int
    shares: np.ndarray
    worths: np.ndarray
    spread: float = 0.0
    survey: np.ndarray | None = None

    @property
    def ties(self) -> bool:
        return self.survey is not None and bool((self.survey == 0).any())

    def answers(self, rng: np.random.Generator, nobs: int) -> np.ndarray:
        """Return the answers of respondents to every pair, shape (respondents, pairs)."""
        if self.survey is not None:
            return self.survey[rng.integers(len(self.survey), size=nobs)]
        first, second = np.triu_indices(self.items, 1)
        kind = rng.choice(len(self.shares), nobs, p=self.shares)
        if self.spread:
            own = self.worths[kind] + self.spread * rng.standard_normal((nobs, self.items))
            wins = chance(own[:, first] - own[:, second])
        else:
            wins = chance(self.worths[:, first] - self.worths[:, second])[kind]
        return np.where(rng.random(wins.shape) < wins, 1.0, -1.0)

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the fraction of respondents with an answer to a pair, and its expectation."""
        if self.survey is not None:
            return (~np.isnan(self.survey)).mean(axis=0), np.nanmean(self.survey, axis=0)
        first, second = np.triu_indices(self.items, 1)
        apart = self.worths[:, first] - self.worths[:, second]
        # differences of personal worths are normal: Gauss and Hermite's rule for its mean
        node, weight = np.polynomial.hermite_e.hermegauss(60)
        around = apart[:, :, None] + self.spread * np.sqrt(2.0) * node
        wins = self.shares @ (chance(around) @ (weight / weight.sum()))
        return np.ones(len(first)), 2.0 * wins - 1.0


@cache
def population(name: str, items: int, base: str = "spread") -> Population:
    """Return a population by its name.

    Common worths are evenly spread over 1.2, or all equal if `base` is "equal"; "tied" has three
    levels 1.2 apart; the middle level has the two items on which respondents are divided.
    "polarised copies" has two more items slightly below, each preferred with one of these two.
    """
    if name in SURVEYS:
        return Population(items, np.ones(1), np.zeros((1, items)), survey=survey(name))
    split = np.zeros(items)
    middle = (items - 1) // 2 if base == "tied" else 0
    divided = {"polarised pair": 2, "polarised item": 1, "polarised copies": 4}.get(name, 0)
    split[middle : middle + divided] = STRENGTH * (-1.0) ** np.arange(divided)
    if "camps" in name:
        split = np.linspace(CAMPS, -CAMPS, items)
    if name == "block camps":
        split = CAMPS * np.sign(split)
    common = np.zeros(items)
    if base == "tied":
        last = middle + max(divided, 2)
        common[:middle], common[middle + 2 : last], common[last:] = 1.2, -NEAR, -1.2
    elif base == "spread":
        common[divided:] = np.linspace(0.6, -0.6, items - divided)
    if not split.any():
        spread = PERSONAL if name == "exchangeable" else 0.0
        return Population(items, np.ones(1), common[None], spread)
    larger = 0.7 if "70/30" in name else 0.5
    return Population(items, np.array([larger, 1 - larger]), common + np.array([split, -split]))


SURVEYS = {
    "University": 6,
    "Immigration": 4,
    "turk_dots_3": 4,
    "turk_puzzle_5": 4,
    "sushi": 10,
}


def folder() -> Path | None:
    """Return the folder of surveys that are not in the package, if one was named."""
    named = os.environ.get("PRIVRANK_SURVEYS")
    return Path(named) if named else None


def available(name: str) -> bool:
    """Return whether a population is available: external surveys need their folder."""
    if name not in SURVEYS or name in ("University", "Immigration"):
        return True
    return folder() is not None and (folder() / f"{name}.csv").exists()


def survey(name: str) -> np.ndarray:
    """Return the answers of a survey by respondent and pair; rankings answer all pairs."""
    first, second = np.triu_indices(SURVEYS[name], 1)
    if name not in ("University", "Immigration"):
        ranks = pd.read_csv(folder() / f"{name}.csv").to_numpy(float)
        return np.sign(ranks[:, second] - ranks[:, first])
    load = pr.datasets.load_university if name == "University" else pr.datasets.load_immigration
    data = load()
    place = {item: number for number, item in enumerate(data.items)}
    frame = data.comparisons
    one, other = (frame[side].map(place).to_numpy(int) for side in ("item1", "item2"))
    pair = np.zeros((len(place), len(place)), dtype=int)
    pair[first, second] = pair[second, first] = np.arange(len(first))
    person = pd.factorize(frame["respondent"])[0]
    table = np.full((person.max() + 1, len(first)), np.nan)
    table[person, pair[one, other]] = frame["outcome"] * np.where(one < other, 1.0, -1.0)
    return table


@dataclass(frozen=True)
class Questions:
    """The pairs asked of each respondent, by the name of the questionnaire, and missing answers.

    "all" pairs; "few" at random; "hub": all pairs with the first item, and a few others at random;
    "chain": neighbours only; "2:1": every other pair in all questionnaires, the rest in half of
    them. A fraction `missing` of the questions is not answered, at random. With `by_pair`, every
    n-th pair loses nine tenths of its answers, with n such that the total is about this fraction.
    """

    name: str = "all"
    missing: float = 0.0
    by_pair: bool = False

    def shares(self, items: int) -> np.ndarray:
        """Return the fraction of questionnaires that contain each pair."""
        first, second = np.triu_indices(items, 1)
        always, others = self._drawn(items)
        return np.where(always, 1.0, others / max(1, (~always).sum()))

    def _drawn(self, items: int) -> tuple[np.ndarray, int]:
        """Return the pairs in all questionnaires, and how many of the rest are drawn for each."""
        first, second = np.triu_indices(items, 1)
        if self.name == "all":
            return np.ones(len(first), dtype=bool), 0
        if self.name == "few":
            return np.zeros(len(first), dtype=bool), min(ASKED, len(first) // 2)
        if self.name == "hub":
            return first == 0, items // 3
        if self.name == "chain":
            return second == first + 1, 0
        always = np.arange(len(first)) % 2 == 0
        return always, int((~always).sum()) // 2

    def rows(self, items: int) -> int:
        """Return the length of a questionnaire."""
        always, others = self._drawn(items)
        return int(always.sum()) + others

    def asked(self, rng: np.random.Generator, nobs: int, items: int) -> np.ndarray:
        """Return whether a respondent is asked a pair, shape (respondents, pairs)."""
        always, others = self._drawn(items)
        asked = np.tile(always, (nobs, 1))
        if others:
            rest = np.flatnonzero(~always)
            lots = rng.random((nobs, len(rest))).argpartition(others - 1, axis=1)[:, :others]
            asked[np.arange(nobs)[:, None], rest[lots]] = True
        return asked

    def lost(self, items: int) -> np.ndarray:
        """Return how often an answer to each pair is missing."""
        pairs = items * (items - 1) // 2
        if not self.by_pair:
            return np.full(pairs, self.missing)
        every = 3 if self.missing > 0.3 else 9
        rest = max(0.0, (self.missing - 0.9 / every) / (1 - 1 / every))
        return np.where(np.arange(pairs) % every == 0, 0.9, rest)

    def __str__(self) -> str:
        if not self.missing:
            return self.name
        return (
            f"{self.name}, {self.missing:.0%} missing {'by pair' if self.by_pair else 'at random'}"
        )


@dataclass(frozen=True, eq=False)
class Truth:
    """The true values for a population and a questionnaire.

    These are the centred worths; and the information of one respondent about them, which is also
    the covariance of the score of independent answers, shape (items, items).
    """

    people: Population
    questions: Questions
    worths: np.ndarray
    information: np.ndarray

    @cached_property
    def scores(self) -> np.ndarray:
        """The covariance of one respondent's score, from the answers of many."""
        incidence = differences(self.people.items)
        many = min(MANY, 200 * MANY // len(incidence))
        answers = observed(self.people, self.questions, np.random.default_rng(0), many)[0]
        off = 0.5 * answers - (chance(incidence @ self.worths) - 0.5)
        scores = np.nan_to_num(off) @ incidence
        return scores.T @ scores / many

    @cached_property
    def response(self) -> np.ndarray:
        """The map from scores to differences of worths, for one respondent."""
        return differences(self.people.items) @ np.linalg.pinv(self.information)

    def effects(self) -> np.ndarray:
        """Return the design effect of each difference of two worths."""
        by = self.response
        return np.diag(by @ self.scores @ by.T) / np.diag(by @ self.information @ by.T)

    def errors(self, nobs: int, noise: float) -> np.ndarray:
        """Return the standard errors of differences, given the noise variance of scores."""
        by = self.response / nobs
        total = nobs * self.scores + noise * np.eye(len(self.worths))
        return np.sqrt(np.diag(by @ total @ by.T))


def score_noise(
    reach: UnitSensitivity, epsilon: float, delta: float = 0.0, name: str = ""
) -> float:
    """Return the variance of the noise of scores with all of epsilon used for net wins.

    For a named noise distribution, or for the best one.
    """
    if np.isinf(epsilon):
        return 0.0
    choices = noise_choices(reach, epsilon, delta)
    best = next(choice for choice in choices if name in ("", choice.name))
    return 0.25 * equivalent_variance(best.distribution, reach.items) / best.fineness**2


def differences(items: int) -> np.ndarray:
    """Return the map from worths to their differences, shape (pairs, items)."""
    first, second = np.triu_indices(items, 1)
    return np.eye(items)[first] - np.eye(items)[second]


@cache
def truth(people: Population, questions: Questions) -> Truth:
    """Return the true values, by Newton's method on the expected score equations."""
    m = people.items
    known, mean = people.expected()
    weight = questions.shares(m) * (1 - questions.lost(m)) * known
    incidence, worths = differences(m), np.zeros(m)
    for _ in range(100):
        wins = chance(incidence @ worths)
        slope = incidence.T @ ((weight * wins * (1 - wins))[:, None] * incidence)
        step = np.linalg.pinv(slope) @ (incidence.T @ (weight * (0.5 * (mean + 1) - wins)))
        worths = worths + step
        if np.abs(step).max() < 1e-12:
            break
    return Truth(people, questions, worths - worths.mean(), slope)


def observed(
    people: Population, questions: Questions, rng: np.random.Generator, nobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the answers of a sample, missing or not asked as NaN, and what was asked."""
    answers = people.answers(rng, nobs)
    asked = questions.asked(rng, nobs, people.items)
    lost = questions.lost(people.items)
    gone = rng.random(answers.shape) < lost if lost.any() else ~asked
    return np.where(asked & ~gone, answers, np.nan), asked


def frame(
    people: Population, questions: Questions, rng: np.random.Generator, nobs: int
) -> pd.DataFrame:
    """Return a sample as long comparisons, a row for each question asked."""
    answers, asked = observed(people, questions, rng, nobs)
    first, second = np.triu_indices(people.items, 1)
    person, pair = np.nonzero(asked)
    return pd.DataFrame(
        {
            "respondent": person,
            "item1": first[pair],
            "item2": second[pair],
            "outcome": answers[asked],
        }
    )
