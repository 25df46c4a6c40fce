"""Public facts of groups that are compared."""

import numpy as np

from privrank.privacy.offered import questionnaire_places
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
    sizes = questionnaires_by_group(survey).sum(axis=0).tolist()
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


def questionnaires_by_group(design: Design) -> IntArray:
    """Return the units with each questionnaire, shape (questionnaires, groups).

    Choices from sets have as many groups as there are cells of their covariates. Questionnaires are
    in the order in which they first occur in ``design.offered.versions``.
    """
    assert design.offered is not None and design.covariates is not None
    place = questionnaire_places(design.offered)
    group = design.covariates.cell[list(design.offered.patterns)]
    sizes = np.zeros((place.max() + 1, design.covariates.cells), dtype=np.int64)
    sizes[place, group] = design.offered.units
    return sizes
