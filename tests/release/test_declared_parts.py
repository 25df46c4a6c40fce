"""Every statistic of comparisons is declared once, and measured by one function."""

from dataclasses import replace

import numpy as np
import pytest
from test_mutated import MAKERS

from privrank.mechanisms.choices import CHOICES
from privrank.mechanisms.comparisons import SECOND_STAGE
from privrank.mechanisms.tallies import STATISTICS
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import PARTS, Design


def test_each_declared_part_is_measured_by_one_function():
    measured = STATISTICS | CHOICES | SECOND_STAGE
    # net wins are measured for comparisons and for choices from sets
    assert STATISTICS.keys() & CHOICES.keys() == {names.NET}
    assert len(STATISTICS | CHOICES) + len(SECOND_STAGE) == len(measured)
    assert measured.keys() == PARTS.keys() == {spec.name for spec in PARTS.values()}
    words = [spec.words for spec in PARTS.values()]
    assert all(words) and len(set(words)) == len(words)


@pytest.mark.parametrize("case", MAKERS)
def test_releases_hold_declared_parts_alone(case):
    release = MAKERS[case]().release
    if not isinstance(release.survey, Design):
        return
    more = {names.WORTHS, names.BY_PAIR, *names.MOMENTS, *names.TIE_MOMENTS}
    declared = release.values.keys() - more
    assert declared <= PARTS.keys()
    form = release.plan.settings.get("dependence", "none")
    for name in declared if release.source != "none" else ():
        assert release.values[name].size == PARTS[name].size(release.design, form), name


def test_an_archive_with_another_sensitivity_is_refused():
    """Side parts, too: noise of another scale, and a sensitivity and epsilon that agree with it."""
    for case, name in (
        ("groups", "group_answers"),
        ("people", "dependence"),
        ("proportional", "opponents"),
        ("davidson", "ties"),
    ):
        release = MAKERS[case]().release
        part = release.plan.parts[name]
        halved = replace(
            part,
            sensitivity=part.sensitivity // 2,
            noise=replace(part.noise, scale=part.noise.scale / 2),
        )
        plan = replace(release.plan, parts={**release.plan.parts, name: halved})
        text = replace(release, plan=plan).to_json()
        with pytest.raises(ValueError, match="not a release that a fit can produce"):
            Release.from_json(text)
        assert np.array_equal(
            Release.from_json(release.to_json()).values[name], release.values[name]
        )
