"""Two paired-comparison surveys of students; each loader's docstring is its codebook."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

import numpy as np
import pandas as pd

from privrank.distributions.simulate import generator
from privrank.util.arrays import immutable
from privrank.util.checks import check_choice

__all__ = ["Survey", "UniversityVersion", "load_immigration", "load_university"]

UniversityVersion = Literal["2001", "1998"]

_UNIVERSITY_ITEMS = ("London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm")
_UNIVERSITY_LEVELS = {
    "study": ("commerce", "other"),
    "english": ("good", "poor"),
    "french": ("good", "poor"),
    "spanish": ("good", "poor"),
    "italian": ("good", "poor"),
    "work": ("no", "yes"),
    "gender": ("female", "male"),
    "intdegree": ("no", "yes"),
}
_IMMIGRATION_ITEMS = ("crimRate", "position", "socBurd", "culture")
_IMMIGRATION_LEVELS = {"sex": ("female", "male")}


@immutable
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Survey:
    """A paired-comparison survey.

    Attributes
    ----------
    name : str
        Short name of the survey.
    comparisons : pandas.DataFrame
        One row per respondent and pair: ``respondent`` (int64), ``item1`` and ``item2``
        (categoricals of `items`, in that order) and ``outcome``
        (float64: 1 if item1 was preferred, 0 if undecided, -1 if item2 was preferred,
        NaN if the respondent did not answer).
    students : pandas.DataFrame
        One row per respondent, indexed by ``respondent``; every covariate is a
        categorical.
    items : tuple of str
        The items that were compared, in the order of the questionnaire.
    levels : mapping of str to tuple of str
        The levels of each covariate as declared in the codebook, for ``levels=`` and
        ``categories=``. (A column's own categories may be only those that occur.)
    source : str
        The source of the data and its licence.

    See Also
    --------
    privrank.datasets.load_university : A survey of 303 students.
    privrank.datasets.load_immigration : A survey of 98 students.

    Examples
    --------
    >>> from privrank.datasets import load_immigration
    >>> survey = load_immigration()
    >>> survey.items
    ('crimRate', 'position', 'socBurd', 'culture')
    >>> survey.comparisons.head(2)
       respondent     item1     item2  outcome
    0           1  crimRate  position      1.0
    1           1  crimRate   socBurd      1.0
    """

    name: str
    comparisons: pd.DataFrame
    students: pd.DataFrame
    items: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]
    source: str

    def __repr__(self) -> str:
        return f"<Survey {self.name}: {len(self.students)} respondents, {len(self.items)} items>"

    def rankings(
        self,
        rng: np.random.Generator | None = None,
        *,
        ties: Literal["random", "shared"] = "random",
    ) -> pd.DataFrame:
        """Rank the items for each respondent by net wins.

        Parameters
        ----------
        rng : numpy.random.Generator, optional
            Generator that breaks ties between items; by default, fresh entropy of the operating
            system.
        ties : {"random", "shared"}, default "random"
            Whether items with equal net wins are put in a random order or share the mean of their
            ranks (partial rankings).

        Returns
        -------
        pandas.DataFrame
            One row per respondent (the index is named ``respondent``) and one column per
            item, holding the ranks 1 (best) to the number of items: whole numbers as
            int64, shared ranks as float64.

        Raises
        ------
        ValueError, TypeError
            If `ties` is another value, or `rng` is neither None nor a numpy.random.Generator.

        Notes
        -----
        The net wins of an item are the respondent's comparisons that it won minus those that it
        lost; undecided and missing answers count 0. Items with equal net wins are put in an order
        drawn uniformly at random, so a ranking with such ties is partly random. The rankings of 163
        of the 303 University students (242 in the version of 1998) and of 67 of the 98 Immigration
        students have at least one such tie.

        The order is drawn once, in this call, and all fits of the returned frame share it. With
        ``ties="shared"`` rankings and ``UniformityTest(..., ties="complete")`` a test instead draws
        an order in each fit, in secret, from the null hypothesis.

        A test of uniformity keeps its size with random ties. If every pair was answered and no item
        differs from another, relabelling the items does not change the distribution of the answers,
        so the rankings are uniform. In all other cases the random order attenuates preferences. A
        test against a null that is not uniform does not keep its level: use shared ranks and
        ``ties="complete"``.

        Pairs without an answer also affect the rankings. An item with fewer answers has less
        extreme net wins. Students 1 to 91 of University have no answer to Paris against Milano. If
        they had tossed a coin for every other answer, each of their rankings would put Paris first
        with probability 0.156 and London with 0.172, not 1/6.

        Examples
        --------
        >>> import numpy as np
        >>> from privrank.datasets import load_university
        >>> rankings = load_university().rankings(np.random.default_rng(2001))
        >>> rankings.shape
        (303, 6)
        >>> int(rankings["London"].median()), int(rankings["Stockholm"].median())
        (2, 5)
        """
        source = generator(rng)
        check_choice("ties", ties, Literal["random", "shared"])
        outcome = self.comparisons["outcome"].fillna(0.0).to_numpy(dtype=np.int64)
        row = self.students.index.get_indexer(pd.Index(self.comparisons["respondent"]))
        net = np.zeros((len(self.students), len(self.items)), dtype=np.int64)
        np.add.at(net, (row, self.comparisons["item1"].cat.codes.to_numpy()), outcome)
        np.subtract.at(net, (row, self.comparisons["item2"].cat.codes.to_numpy()), outcome)
        shared = pd.DataFrame(-net, self.students.index, list(self.items)).rank(axis=1)
        if ties == "shared":
            return shared
        tie_break = source.permuted(np.broadcast_to(np.arange(len(self.items)), net.shape), axis=1)
        # distinct ranks differ by at least a half, so smaller terms only decide between equal ranks
        return (shared + tie_break / (2 * len(self.items))).rank(axis=1).astype(np.int64)


def load_university(version: UniversityVersion = "2001") -> Survey:
    """Load the preferences of 303 students among six European universities.

    Students of the Wirtschaftsuniversitaet Wien could spend time abroad at a university
    of the CEMS network (Community of European Management Schools). For each of the 15
    pairs of six of these universities they stated which one they would prefer.

    Parameters
    ----------
    version : {"2001", "1998"}, default "2001"
        "2001" is the correct version. In "1998" every answer to Barcelona against
        Stockholm is reversed, the mistake in the analysis of the 1998 article;
        the corrigendum of 2001 corrected it. Use "1998" only to reproduce work that was
        based on this version.

    Returns
    -------
    Survey
        4545 comparisons and 303 students with eight covariates.

    Raises
    ------
    ValueError
        If `version` is neither "2001" nor "1998".

    See Also
    --------
    privrank.datasets.load_immigration : A smaller survey.

    Notes
    -----
    **Items.** London (London School of Economics), Paris (HEC), Milano (Bocconi),
    StGallen (Universitaet St. Gallen), Barcelona (ESADE), Stockholm (Handelshoegskolan).

    **Outcome.** 1: item1 preferred, 0: undecided, -1: item2 preferred, NaN: no answer.
    The 4545 answers: 3967 are decided, 487 undecided (160 students were undecided at
    least once) and 91 missing. Each student has 15 rows, in the questionnaire's order.

    **Missing.** The 91 missing answers are the answers of respondents 1 to 91 to Paris against
    Milano; a block like this suggests that the pair was absent from their
    questionnaires. Paris and Milano have 1424 answers each, the other universities 1515,
    so their win counts are not directly comparable with the others'.

    **Covariates.** No value is missing.

    ============= ============================================ ========================
    name          meaning                                      levels (students)
    ============= ============================================ ========================
    ``study``     main discipline; other is economics,         commerce 111, other 192
                  business administration or business
                  education
    ``english``   knowledge of English                         good 222, poor 81
    ``french``    knowledge of French                          good 193, poor 110
    ``spanish``   knowledge of Spanish                         good 40, poor 263
    ``italian``   knowledge of Italian                         good 49, poor 254
    ``work``      full-time work while studying                no 290, yes 13
    ``gender``    gender                                       female 152, male 151
    ``intdegree`` intends to take an international degree      no 193, yes 110
    ============= ============================================ ========================

    **Source.** Data set CEMSChoice of the R package psychotree (GPL-2 | GPL-3), from the
    data pages of the Royal Statistical Society.

    References
    ----------
    Dittrich, R., Hatzinger, R. and Katzenbeisser, W. (1998). Modelling the effect of
    subject-specific covariates in paired comparison studies with an application to university
    rankings. Applied Statistics 47, 511-525. Corrigendum: (2001) Applied Statistics 50, 247-249.

    Examples
    --------
    >>> from privrank.datasets import load_university
    >>> cems = load_university()
    >>> cems
    <Survey university: 303 respondents, 6 items>
    >>> list(cems.comparisons.columns)
    ['respondent', 'item1', 'item2', 'outcome']
    >>> int(cems.comparisons["outcome"].isna().sum())
    91
    >>> cems.students["french"].value_counts().to_dict()
    {'good': 193, 'poor': 110}
    """
    check_choice("version", version, UniversityVersion)
    comparisons = _read("university.csv", item1=_UNIVERSITY_ITEMS, item2=_UNIVERSITY_ITEMS)
    if version == "1998":
        reversed_pair = comparisons["item1"].eq("Barcelona") & comparisons["item2"].eq("Stockholm")
        # subtracting from zero keeps a tie at 0.0; negation would make it -0.0
        comparisons.loc[reversed_pair, "outcome"] = 0.0 - comparisons["outcome"]
    return Survey(
        name="university" if version == "2001" else "university_1998",
        comparisons=comparisons,
        students=_read("university_students.csv", **_UNIVERSITY_LEVELS).set_index("respondent"),
        items=_UNIVERSITY_ITEMS,
        levels=dict(_UNIVERSITY_LEVELS),
        source="R package psychotree 0.16-0, data set CEMSChoice (GPL-2 | GPL-3)",
    )


def load_immigration() -> Survey:
    """Load the attitudes of 98 students towards foreigners.

    The students compared four negative statements about foreigners, pair by pair, and
    stated which of the two they found more acceptable.

    Returns
    -------
    Survey
        588 comparisons and 98 students with one covariate.

    See Also
    --------
    privrank.datasets.load_university : A larger survey, with more covariates.

    Notes
    -----
    **Items.** Foreigners ... crimRate: increase crime rates; position: take training
    positions; socBurd: are a burden on the social welfare system; culture: threaten our
    culture. A larger worth means that the statement is more acceptable to the students.

    **Outcome.** 1: item1 is more acceptable, 0: undecided, -1: item2 is more
    acceptable, NaN: no answer. The 588 answers: 379 are decided, 124 undecided (54
    students were undecided at least once) and 85 missing. Each student has six rows, in
    the questionnaire's order.

    **Missing.** 65 students answered all six pairs; 9, 5, 13, 3 and 3 students omitted
    1, 2, 3, 4 and 5 of them. Each pair lacks 10 to 18 answers. Whether an answer is
    missing may depend on what it would have been, which is the subject of the article
    below.

    **Covariates.** ``sex``: female 43, male 55; no value is missing. Age and nationality
    were asked as well and are omitted on purpose: among 98 students they are
    quasi-identifiers (several nationalities occur once), and no analysis here needs them.

    **Respondents.** The data are from a table of the number of students by sex and
    combination of answers. The respondents are numbered in the order of that table, so
    their numbers contain no information about the order in which they answered.

    **Source.** Data set immig of the R package prefmod (GPL (>= 2)), counted into this
    table.

    References
    ----------
    Weber, D. and Hatzinger, R. (2011). A novel approach for modelling paired comparisons data with
    non-ignorable missing values on students' attitudes towards foreigners. Data Analysis Bulletin
    12, 11-22.

    Examples
    --------
    >>> from privrank.datasets import load_immigration
    >>> immigration = load_immigration()
    >>> immigration
    <Survey immigration: 98 respondents, 4 items>
    >>> immigration.items
    ('crimRate', 'position', 'socBurd', 'culture')
    >>> int(immigration.comparisons["outcome"].isna().sum())
    85
    """
    return Survey(
        name="immigration",
        comparisons=_read("immigration.csv", item1=_IMMIGRATION_ITEMS, item2=_IMMIGRATION_ITEMS),
        students=_read("immigration_students.csv", **_IMMIGRATION_LEVELS).set_index("respondent"),
        items=_IMMIGRATION_ITEMS,
        levels=dict(_IMMIGRATION_LEVELS),
        source="R package prefmod 0.8-36, data set immig (GPL (>= 2)), counted",
    )


def _read(name: str, **levels: tuple[str, ...]) -> pd.DataFrame:
    categorical = {column: pd.CategoricalDtype(list(values)) for column, values in levels.items()}
    own = files("privrank") / "data"
    # in a checkout it is next to the package
    folder = own if own.is_dir() else files("privrank") / ".." / "data"
    with (folder / name).open("r", encoding="utf-8") as stream:
        return pd.read_csv(stream, dtype=categorical)


def __dir__() -> list[str]:
    return __all__
