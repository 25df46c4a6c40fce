"""Public facts of groups that are compared."""

import numpy as np

from privrank.release.survey import Design, Sample
from privrank.util.arrays import IntArray


def compared_groups(survey: Design | Sample) -> Sample:
    """Return the public facts of compared groups; of choices from sets, by their one factor.

    Raises
    ------
    ValueError
        If the choices are not by group.
    """
    if isinstance(survey, Sample):
        return survey
    facts = survey.covariates
    if survey.offered is None or facts is None or len(facts.factors) != 1:
        raise ValueError("release must be of a ClosenessTest, but this one is not of groups.")
    [(column, levels)] = facts.factors
    group = facts.cell[list(survey.offered.patterns)]
    sizes = np.bincount(group, survey.offered.units, facts.cells).astype(np.int64).tolist()
    groups = tuple((name, size) for name, size in zip(levels, sizes, strict=True) if size)
    return Sample(
        "choices",
        survey.items,
        survey.nobs,
        survey.unit,
        survey.max_rows,
        groups,
        group_column=column,
    )


def questionnaires_by_group(design: Design) -> tuple[IntArray, IntArray, IntArray]:
    """Return the questionnaire and the group of each version, and the units that are compared.

    Choices from sets have as many groups as there are cells of their covariates. The entries of
    ``design.offered.versions`` differ by questionnaire and pattern of covariates. Questionnaires
    are numbered in the order in which they occur there. The units have the shape
    (questionnaires, groups). Units without a task, and units whose questionnaire no other group
    has, are not compared and do not count.
    """
    offered = design.offered
    facts = design.covariates
    assert offered is not None and facts is not None
    number = {version: k for k, version in enumerate(dict.fromkeys(offered.versions))}
    place = np.array([number[version] for version in offered.versions])
    group = facts.cell[list(offered.patterns)]
    units = np.zeros((len(number), facts.cells), dtype=np.int64)
    np.add.at(units, (place, group), offered.units)
    alone = (units > 0).sum(axis=1) < 2
    units[alone | np.array([not version for version in number])] = 0
    return place, group, units
