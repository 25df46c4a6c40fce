"""Archives: JSON texts with a check, and verification of archived releases.

Two kinds of texts are refused. A text that was changed does not match its check (`read_archive`). A
text with a new check is refused if its numbers are inconsistent (`verify`). Public facts must have
their types and ranges. Noise must have the scale that sensitivity and epsilon require. The values
must have the number and the type of their part.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from hashlib import sha256
from types import UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from privrank.privacy.accounting import integer_scale, lattice_scale, pure_epsilon
from privrank.privacy.knorm import SLACK, CubeNoise, PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace, NoiseSource
from privrank.privacy.sensitivity import NoiseName, RankingSensitivity
from privrank.release import names
from privrank.release.survey import (
    INTERCEPT,
    MAIN,
    PARTS,
    Design,
    Noise,
    NoiseRequest,
    PairCounts,
    PartPlan,
    Plan,
    Sample,
    plan_parts,
)
from privrank.release.weights import WEIGHT_STEPS
from privrank.util.arrays import IntArray
from privrank.util.checks import LARGEST_COUNT, check_delta, check_epsilon, check_items, is_number

ROOM = 1e-6
"""Relative room for other versions of the numerics that calibrated the noise."""

NOT_JSON = "text must be JSON that to_json() wrote. Pass the text itself, not the name of its file."
"""Message for a text that is not an archive."""


_OWN_RANDOMNESS = (names.PVALUE, names.DECISION)
"""Parts that are random by themselves and have no additional noise."""

_TESTED = (names.STATISTIC, names.PVALUE)
"""Parts of tests, which have no rho."""

_WHOLE_PARTS = (names.ORDER, names.PAIR_COUNTS, names.CONCERNED, names.QUERIES, names.FALLBACK)

_DISTRIBUTIONS: dict[type, NoiseName] = {
    DiscreteLaplace: "laplace",
    DiscreteGaussian: "gaussian",
    ZeroSumLaplace: "zero-sum-laplace",
    PermutohedronNoise: "permutohedron",
}


def archive(record: Mapping[str, Any]) -> str:
    """Return a record as JSON text with its check."""
    return json.dumps({**record, "check": _check(record)})


def read_archive(text: object) -> dict[str, Any]:
    """Return the record of a text that :func:`archive` wrote.

    A text that other software has parsed and written again is accepted if its numbers are
    unchanged. The check does not protect against deliberate changes: a new check can be computed as
    well.

    Raises
    ------
    ValueError
        If the text is none that :func:`archive` wrote, or was changed afterwards.
    """
    try:
        record = json.loads(text, parse_constant=_refuse)  # type: ignore[arg-type]
        stated = record.pop("check")
        computed = _check(record)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        raise ValueError(NOT_JSON) from None
    if stated != computed:
        raise ValueError(
            "text must be JSON as to_json() wrote it, but this one was changed. Pass the text as "
            "it was written."
        )
    return dict(record)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check(record: object) -> str:
    plain = json.loads(json.dumps(record), parse_float=_plain_number)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()


def _plain_number(text: str) -> float:
    """Return a number with one notation for whole numbers, because 1 and 1.0 are equal."""
    value = float(text)
    return int(value) if value.is_integer() else value


def verify(
    plan: Plan,
    survey: Design | Sample,
    source: str,
    values: Mapping[str, IntArray],
    tie_break: tuple[Any, ...],
    findings: Mapping[str, Any],
) -> None:
    """Refuse a release that no fit can produce.

    This check is not a signature. An archive of numbers that were drawn from the right
    distribution, without any data, passes the check. An archive does not show whether the noise was
    secret.

    Raises
    ------
    ValueError
        If the numbers cannot belong together.
    """
    try:
        _check_survey(survey, source)
        _check_guarantee(plan, source)
        # with reports, every answer that is not a win is a tie
        shown = names.TIES in values or (source == "respondents" and names.WINS in values)
        _require(
            (shown or isinstance(survey, Sample) or not survey.davidson)
            and (names.ANSWERED in values) == (isinstance(survey, Design) and survey.silent),
            "A release must have the number of ties or of answered tasks that its model needs.",
        )
        kemeny = plan.method in ("Kemeny", "EB-Kemeny")
        _require(
            source == "respondents"
            or isinstance(survey, Sample)
            or not {names.PAIRS, names.ORDER} & values.keys()
            or (
                _answer_of(survey) == "order"
                and kemeny == (names.PAIRS in values)
                and (kemeny or plan.method == "Borda")
            ),
            "A release must have votes of orders, and the rule of their consensus.",
        )
        for name in values:
            _check_numbers(plan.parts[name], source)
        again = _parts_again(plan, survey, source)
        for name, drawn in values.items():
            _check_part(name, plan, survey, source, again)
            _check_values(name, plan, drawn, survey, source)
        _check_rho(plan, survey, source, again)
        if source == "respondents" and names.ORDER in values:
            _check_reports(plan, survey, values)
        _require(
            sorted(tie_break) == list(range(len(survey.items)))
            and all(
                _finite(number) and number >= 0
                for number in findings.values()
                if not math.isnan(number)
            ),
            "A release must have an order of all items, and numbers found in it.",
        )
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        fault = error if isinstance(error, _Unfit) else "A release must have the right numbers."
        raise ValueError(
            f"text is not a release that a fit can produce. {fault} Pass the text as it was "
            "written."
        ) from None


class _Unfit(ValueError):
    """A required property of a release, as a sentence."""


def _require(fine: object, sentence: str) -> None:
    if not fine:
        raise _Unfit(sentence)


def _answer_of(survey: Design | Sample) -> str:
    """Return how offered sets are answered; an empty text if no sets are offered."""
    return getattr(getattr(survey, "offered", None), "answer", "")


def _whole(value: object, low: int) -> bool:
    # JSON of other software stores larger whole numbers inexactly
    return type(value) is int and low <= value < LARGEST_COUNT


def _finite(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value has the declared type of a public fact; numbers must be finite."""
    kind = get_origin(hint)
    arguments = get_args(hint)
    # from version 2.5 on NDArray is an alias
    kind = get_origin(getattr(kind, "__value__", None)) or kind
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return type(value) is hint and all(_is_of(getattr(value, n), hints[n]) for n in hints)
    if kind is Literal:
        return isinstance(value, str) and value in arguments
    if kind in (UnionType, Union):
        return any(_is_of(value, option) for option in arguments)
    if kind is np.ndarray:
        return isinstance(value, np.ndarray) and bool(np.isfinite(value).all())
    if kind is tuple and arguments[-1] is Ellipsis:
        return isinstance(value, tuple) and all(_is_of(entry, arguments[0]) for entry in value)
    if kind is tuple:
        return len(value) == len(arguments) and all(map(_is_of, value, arguments))
    return _finite(value) if hint is float else type(value) is hint


def _check_survey(survey: Design | Sample, source: str) -> None:
    """Check the public facts by themselves."""
    _require(_is_of(survey, type(survey)), "A release must have public facts of their types.")
    _require(check_items(list(survey.items)), "A release must have items.")
    _require(
        # all respondents may be nonrespondents
        _whole(survey.nobs, 0 if source == "respondents" else 1) and _whole(survey.max_rows, 1),
        "A release must have whole numbers of units.",
    )
    if isinstance(survey, Sample):
        known = survey.sizes
        total = {survey.nobs} == set(known) if survey.paired else sum(known) == survey.nobs
        _require(
            len(known) in (0, len(survey.groups))
            and all(size >= 0 for size in known)
            and (total or not known)
            and (len(survey.groups) == 2 or not survey.paired),
            "A release must have groups that add up to the number of units, two where paired.",
        )
        return
    if (facts := survey.covariates) is not None:
        ends = [0, *(stop for _, _, stop in facts.terms)]
        _require(
            ends[:-1] == [start for _, start, _ in facts.terms]
            and ends[-1] == len(facts.columns)
            and facts.weights.shape == (facts.rows, len(facts.columns))
            and facts.item_matrix.shape == (len(survey.items), len(facts.item_columns))
            and all(low < high for _, low, high in facts.bounds),
            "A release must have terms, weights and bounds of its covariates.",
        )
        _require(
            ((facts.cell >= 0) & (facts.cell < facts.cells)).all()
            and len(facts.cell) == len(facts.position) == len(facts.contests)
            and np.isfinite(facts.contests).all(),
            "A release must have patterns of its covariates.",
        )
    if (pairs := survey.pairs) is not None:
        patterns = max(1, (survey.covariates or INTERCEPT).patterns)
        ordered = (pairs.first >= 0) & (pairs.first < pairs.second)
        within = (pairs.second < len(survey.items) * patterns) & (pairs.count >= 0)
        _require((ordered & within).all(), "A release must have counts of pairs of its items.")
        _check_weights(survey, pairs)


def _check_weights(survey: Design, pairs: PairCounts) -> None:
    """Check the facts of design weights, and the sums of their squares by pair."""
    weights = survey.weights
    text = "A release must have weights of a public design, and sums of their squares by pair."
    if weights is None or pairs.squares is None:
        _require(weights is None and pairs.squares is None, text)
        return
    bounded = (pairs.count <= pairs.squares) & (pairs.squares <= WEIGHT_STEPS * pairs.count)
    sizes = 0.0 < weights.effective <= weights.kish * 1.001 <= survey.nobs * 1.01
    _require(
        survey.kind == "public"
        and survey.covariates is None
        and not survey.davidson
        and weights.by_row == (survey.unit == "row")
        and bounded.all()
        and sizes
        and weights.step > 0.0
        and 0.0 <= weights.moved <= 1.0
        and 0.999 <= weights.cubes <= WEIGHT_STEPS**2
        and weights.answers > 0,
        text,
    )


def _check_guarantee(plan: Plan, source: str) -> None:
    """Check the guarantee, and that the epsilons of the parts add up to it."""
    _require(
        check_epsilon(plan.epsilon) and check_delta(plan.delta) >= 0,
        "A release must have a guarantee.",
    )
    _require(
        _is_of(source, NoiseSource) and (source == "none") == math.isinf(plan.epsilon),
        "A release must have a known source of noise, and noise where epsilon is finite.",
    )
    _require(
        isinstance(plan.mechanism, str) and isinstance(plan.method, str),
        "A release must have a named mechanism.",
    )
    for name, value in plan.settings.items():
        _require(
            (isinstance(value, str | bool) or is_number(value)) and value == value,
            "A release must have settings that are plain.",
        )
        share = name in ("score share", "threshold level", "level")
        _require(
            not share or (_finite(value) and 0 < float(value) < 1),
            "A release must have levels below 1.",
        )
    if source == "respondents":
        _require(
            json.loads(str(plan.settings["protocol"]))["epsilon"] == plan.epsilon,
            "A release must have the epsilon of its protocol.",
        )
    if source in ("none", "respondents"):
        return
    # groups share the epsilon of their totals, and an order shares the epsilon of its queries
    spent = {
        names.DETAILS if name.startswith(names.DETAILS) else name: p
        for name, p in plan.parts.items()
    }
    if names.ORDER in spent and not {names.PAIRS, names.TOTALS, names.NET} & spent.keys():
        spent = {names.ORDER: spent[names.ORDER]}
    total = math.fsum(part.epsilon for part in spent.values())
    if "score share" in plan.settings:
        _require(
            _close(plan.number("score share") * total, spent[names.SCORE].epsilon),
            "A release must have a score with its share of epsilon.",
        )
    _require(
        plan.epsilon * (1.0 - ROOM)
        <= total
        <= pure_epsilon(plan.epsilon, plan.delta) * (1.0 + ROOM),
        "A release must have parts whose epsilons add up to the total.",
    )


def _check_numbers(part: PartPlan, source: str) -> None:
    """Check the sensitivity, step and epsilon of a part."""
    _require(
        _whole(part.sensitivity, 0)
        and part.step > 0
        and _finite(part.step)
        and is_number(part.epsilon)
        and part.epsilon >= 0,
        "A release must have a lattice and an epsilon of every part.",
    )
    _require(
        source != "respondents" or (part.epsilon == 0 and part.sensitivity == 0),
        "A release must have noise of the respondents alone.",
    )
    _require(
        source != "none" or part.noise is None or part.epsilon == math.inf,
        "A run without noise must have an infinite epsilon.",
    )


def _close(value: float, other: float) -> bool:
    """Return whether two numbers are equal but for other versions of the numerics."""
    return math.isclose(value, other, rel_tol=ROOM)


def _parts_again(plan: Plan, survey: Design | Sample, source: str) -> dict[str, PartPlan]:
    """Return the parts of comparisons as calibration gives them; none of other releases.

    Sensitivities are computed from the public facts, not taken from the archive. An archive that
    was changed and given a new check has other numbers than these.
    """
    if isinstance(survey, Sample) or source == "respondents":
        return {}
    epsilons = {name: part.epsilon for name, part in plan.parts.items()}
    main = next((part.noise for name, part in plan.parts.items() if name in MAIN), None)
    distribution = _DISTRIBUTIONS.get(type(main), "laplace")
    form: Any = plan.settings.get(names.DEPENDENCE, "none")
    return plan_parts(survey, NoiseRequest(epsilons, plan.delta, distribution, form))


def _step_of(
    name: str,
    plan: Plan,
    survey: Design | Sample,
    source: str,
    again: Mapping[str, PartPlan],
) -> float:
    """Return the step that a part must have; its own where only its maker knows it."""
    part = plan.parts[name]
    if name in again:
        return again[name].step
    if isinstance(survey, Design):
        return part.step if name in (names.WORTHS, *_TESTED) else 1.0
    if name in (names.PAIRS, names.SCORE) and source != "respondents":
        return 1.0 / plan.number("steps")
    if name == names.TOTALS:
        gaussian = isinstance(part.noise, DiscreteGaussian)
        return (len(survey.items) - 1 if gaussian else 1) / part.sensitivity
    return 1.0 if name in _WHOLE_PARTS else part.step


def _loss_per_step(noise: Noise | None) -> float:
    """Return the privacy loss of one lattice step; infinity where there is no noise."""
    if noise is None:
        return math.inf
    if isinstance(noise, CubeNoise | PermutohedronNoise):
        return noise.rate + SLACK
    return 1.0 / noise.scale if noise.scale else math.inf


def _check_part(
    name: str,
    plan: Plan,
    survey: Design | Sample,
    source: str,
    again: Mapping[str, PartPlan],
) -> None:
    """Check the step of a part, and its noise against its sensitivity and epsilon."""
    part = plan.parts[name]
    _require(
        _close(part.step, _step_of(name, plan, survey, source, again)),
        "A release must have steps of its parts.",
    )
    m = len(survey.items)
    if (noise := part.noise) is None:
        _require(
            part.sensitivity == 0 and (part.epsilon == 0 or name == names.ORDER),
            "A release must have noise in every part that spends, and only there a sensitivity.",
        )
        if "rate" in plan.settings:
            # the score of an order has the sensitivity pairs times steps, which enters twice: in
            # the probability and in the normalising constant
            moved = plan.number("rate") * m * (m - 1) * plan.number("steps")
            _require(
                _close(moved, part.epsilon),
                "A release must have the rate that its epsilon asks for.",
            )
        return
    if name.startswith(names.DETAILS):
        own_step = 1.0 / part.sensitivity if isinstance(noise, PermutohedronNoise) else 1.0
        _require(_close(part.step, own_step), "A release must have totals in their steps.")
    silent = math.isinf(_loss_per_step(noise))
    if source in ("none", "respondents") or name in _OWN_RANDOMNESS:
        _require(silent, "A release must have noise in private releases only.")
        _require(
            name not in _OWN_RANDOMNESS or part.sensitivity == 1,
            "A release must have one step of a decision.",
        )
        return
    _require(not silent, "A release must have noise in every part of a private release.")
    if name in again:
        _require(
            name != names.DEPENDENCE or plan.settings[name] in ("worst", "pairs"),
            "A release must have a known form of dependence.",
        )
        _require(
            # the type, the sensitivity and the scale that calibration gives
            type(again[name].noise) is type(noise)
            and again[name].sensitivity == part.sensitivity
            and getattr(again[name].noise, "items", 0) == getattr(noise, "items", 0)
            and _close(_loss_per_step(again[name].noise), _loss_per_step(noise)),
            "A release must have noise of the scale that sensitivity and epsilon ask for.",
        )
        return
    _check_scale(name, part, noise, plan, m)


def _check_scale(name: str, part: PartPlan, noise: Noise, plan: Plan, m: int) -> None:
    """Check the scale of noise on rankings, choices and worths."""
    _require(part.epsilon > 0, "A release must have noise in every part of a private release.")
    _require(getattr(noise, "items", m) == m, "A release must have noise of all items.")
    if isinstance(noise, DiscreteGaussian):  # of pair counts or Borda totals
        ranking = RankingSensitivity(m)
        steps = plan.number("steps")
        if name == names.PAIRS:
            scale = lattice_scale(part.epsilon, plan.delta, ranking.pairs_l1, part.sensitivity)
        else:
            scale, _ = integer_scale(part.epsilon, plan.delta, steps * ranking.borda_l2, m)
        _require(
            _close(noise.scale, scale) and (part.sensitivity == steps or name != names.PAIRS),
            "A release must have noise of the scale that sensitivity, epsilon and delta ask for.",
        )
        return
    # sensitivity in the norm of the noise; with noise in l1 a ranking may move all pair counts
    reach = part.sensitivity
    if name == names.QUERIES:
        reach *= int(plan.number("cap"))
    elif name == names.FALLBACK or (name == names.PAIRS and isinstance(noise, DiscreteLaplace)):
        reach *= m * (m - 1) // 2
    spent = _loss_per_step(noise) * reach
    # the perturbed objective uses the rest of the epsilon of the worths
    _require(
        0 < spent < part.epsilon if name == names.WORTHS else _close(spent, part.epsilon),
        "A release must have noise of the scale that sensitivity and epsilon ask for.",
    )


def _check_rho(
    plan: Plan, survey: Design | Sample, source: str, again: Mapping[str, PartPlan]
) -> None:
    """Check that the parts have the zero-concentrated privacy that the plan states, if it does."""
    if set(plan.parts) == {names.ORDER}:  # a sort, whose noise is not part of the release
        _require(
            plan.rho is None or (plan.delta > 0 and 0 < plan.rho < math.inf),
            "A release of an order must have a rho only with a delta.",
        )
        return
    noises = {name: part.noise for name, part in plan.parts.items()}
    scales = {n: noise.scale for n, noise in noises.items() if isinstance(noise, DiscreteGaussian)}
    # tests of choices from offered sets have a design, but pure noise like other tests
    model = isinstance(survey, Design) and plan.parts.keys().isdisjoint(_TESTED)
    stated = source != "respondents" and (model or bool(scales))
    _require(
        (plan.rho is not None) == stated, "A release must have a rho where its parts have one."
    )
    if plan.rho is None:
        return
    shares = {name: part.epsilon for name, part in plan.parts.items()}
    # a number of ties and its net wins are one part, and the worths of an objective are two
    shares[names.NET] = shares.get(names.NET, 0.0) + shares.pop(names.TIES, 0.0)
    if (noise := noises.get(names.WORTHS)) is not None and math.isfinite(plan.epsilon):
        shares["output"] = _loss_per_step(noise) * plan.parts[names.WORTHS].sensitivity
        shares[names.WORTHS] -= shares["output"]
    rhos = {name: 0.5 * share**2 for name, share in shares.items()}
    for name, scale in scales.items():
        known = again[name].rho if name in again else None
        if known is None:  # pair counts or Borda totals
            ranking = RankingSensitivity(len(survey.items))
            distance = ranking.pairs_l2 if name == names.PAIRS else ranking.borda_l2
            known = 0.5 * (distance / plan.parts[name].step / scale) ** 2
        rhos[name] = known
    _require(
        _close(plan.rho, math.fsum(rhos.values())),
        "A release must have the rho that its parts add up to.",
    )


def _check_values(
    name: str, plan: Plan, values: IntArray, survey: Design | Sample, source: str
) -> None:
    """Check the number and the range of the values of a part."""
    part = plan.parts[name]
    m = len(survey.items)
    sizes = {names.PAIRS: m * (m - 1) // 2, names.TOTALS: m, names.PVALUE: 1, names.DECISION: 1}
    if isinstance(survey, Design):
        form: Any = plan.settings.get(names.DEPENDENCE, "none")
        sizes = {part: spec.size(survey, form) for part, spec in PARTS.items()}
        if source in ("none", "respondents") and survey.pairs:
            sizes[names.WINS] = 2 * len(survey.pairs.first)  # of the pairs that were met
    _require(
        values.size == sizes.get(name, values.size) > 0
        and getattr(part.noise, "dimension", values.size) == values.size,
        "A release must have as many values as its parts have, and noise of as many.",
    )
    if name == names.ORDER:
        _require(
            sorted(values.tolist()) == list(range(m)), "A release must have an order of all items."
        )
    if name in _OWN_RANDOMNESS:
        _require(
            0 <= values.min() and values.max() * part.step <= 1.0,
            "A release must have p-values from 0 to 1.",
        )
    if name in (names.NET, names.SIDES):
        length = m if name == names.NET else 2 * m
        centred = source == "none" or isinstance(part.noise, ZeroSumLaplace)
        # totals of best or of worst items alone add up to the number of answers
        _require(
            _answer_of(survey) in ("best", "worst")
            or not (centred and values.reshape(-1, length).sum(axis=1).any()),
            "A release must have net wins that add up to 0.",
        )


def _check_reports(plan: Plan, survey: Design | Sample, values: Mapping[str, IntArray]) -> None:
    """Check the numbers and moments of reports of the local model."""
    m = len(survey.items)
    if names.SCORES in values:  # adaptive protocols have none
        about = values[names.CONCERNED]
        _require(
            [values[k].size for k in (names.SCORES, names.COVARIANCE, names.CONCERNED)]
            == [m, m * m, m * m]
            and (values[names.COVARIANCE][:: m + 1] >= 0).all()
            and ((about >= 0) & (about <= survey.nobs)).all(),
            "A release must have scores of all items with their covariance and numbers of reports.",
        )
    gain, square = (plan.settings[name] for name in ("gain", "square"))
    _require(
        _finite(gain) and float(gain) > 0 and _finite(square) and 0 < float(square) <= 1,
        "A release must have a gain, and votes of a mean square up to 1.",
    )
    if names.PAIRS in values:
        counts = values[names.PAIR_COUNTS]
        net = values[names.PAIRS] * plan.parts[names.PAIRS].step
        _require(
            counts.size == net.size and (np.abs(net) <= counts * (1.0 + ROOM)).all(),
            "A release must have numbers of reports by pair, and no more votes than reports.",
        )
