"""The respondent's device: one ranking in, one small report out.

Needs NumPy and the standard library only, and starts in a fraction of a second.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields
from functools import cached_property
from typing import NoReturn

from privrank.local.protocols import VERSION, Protocol, check_kind
from privrank.local.protocols_orders import (
    AdaptiveKwikSort,
    Comparisons,
    PairBits,
    RandomPairs,
    SubRanking,
)
from privrank.local.protocols_vectors import CapBorda, DuchiBall
from privrank.util.checks import check_number

_ORDERS = (SubRanking, RandomPairs, PairBits, Comparisons, AdaptiveKwikSort)
KINDS: dict[str, type[Protocol]] = {kind.kind: kind for kind in (*_ORDERS, DuchiBall, CapBorda)}

_TEXT_OR_SPACE = re.compile(r'"(?:[^"\\]|\\.)*"|\s+')
"""Parts of JSON that can be written in several ways: texts, and white space outside of texts."""


def protocol_from_json(text: str) -> Protocol:
    """Return the protocol that ``to_json`` wrote, after a check of its id and of its writing.

    Members may be in another order. White space and escaped characters make no difference. Texts
    in which a member is repeated are refused, because readers of JSON disagree on which one counts.

    Examples
    --------
    >>> from privrank.local import Comparisons, protocol_from_json
    >>> text = Comparisons(["tea", "milk"], epsilon=1.0).to_json()
    >>> protocol_from_json(text)
    Comparisons(items=('tea', 'milk'), epsilon=1.0, partial='refuse', ties=False)
    """
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        content = None
    published = isinstance(text, str) and isinstance(content, dict)
    if not published or content.get("privrank") != "local protocol":
        raise ValueError("text must be the JSON of a protocol: write it with to_json().")
    if type(version := content.get("version")) is not int or version != VERSION:
        raise ValueError(
            f"text is a protocol of another version than {VERSION}: use the version of privrank "
            f"that wrote it."
        )
    kind = KINDS.get(str(content.get("kind")))
    settings = {k: v for k, v in content.items() if k not in ("privrank", "version", "kind", "id")}
    if kind is None or settings.keys() != {part.name for part in fields(kind)}:
        raise ValueError(
            "text must hold the kind and the settings of a protocol, no more and no fewer: write "
            "it with to_json()."
        )
    # the id is a hash of all settings, so that a text with another epsilon is found out
    protocol = kind(**settings)
    if protocol.id != content.get("id"):
        raise ValueError(
            "text has settings that its id does not stand for, such as another epsilon: take the "
            "protocol as it was published."
        )
    # all members once, and numbers as to_json() writes them, as another reader may take the first
    # of two members, or the digits for the number
    facts = {**protocol._settings(), "id": protocol.id}
    again = json.dumps({name: facts[name] for name in content}, separators=(",", ":"))
    if _TEXT_OR_SPACE.sub(_plainly, text) != again:
        raise ValueError(
            "text repeats a member of the protocol, or writes a number in another way than "
            "to_json(). Take the protocol as it was published."
        )
    return protocol


def _plainly(match: re.Match[str]) -> str:
    """Return a text of JSON as it is written with ASCII characters alone, and no white space."""
    return json.dumps(json.loads(match[0])) if match[0].startswith('"') else ""


class Client:
    """One respondent, who answers once.

    Parameters
    ----------
    protocol : Protocol
        As the curator published it. A device that was handed a text reads it with `from_json`,
        which refuses a large epsilon.

    See Also
    --------
    privrank.local.Comparisons : A protocol; its ``tally`` counts reports.

    Notes
    -----
    **Privacy.** One report is epsilon-private (:class:`privrank.local.responses.SubsetResponse`).
    A second one of the same respondent adds its epsilon, and the mean of many would show the answer
    itself, whatever epsilon is: `randomize` makes one report, and a client can be neither copied
    nor pickled. That is all it can do: a survey that hands out another client asks again, and
    respondents who answer that are protected at the sum. What is asked is drawn once, before a
    ranking is read, and kept; a survey that chooses its questions hands in what it asks, which must
    not depend on the ranking.

    Examples
    --------
    >>> from privrank.local import Client, Comparisons
    >>> text = Comparisons(["tea", "milk"], epsilon=1.0).to_json()  # as the curator publishes it
    >>> client = Client.from_json(text)
    >>> client.question
    [('tea', 'milk')]
    """

    def __init__(self, protocol: Protocol) -> None:
        check_kind(protocol, Protocol)
        self.protocol = protocol
        self._reported = False

    def __repr__(self) -> str:
        """Show the protocol."""
        protocol = self.protocol
        return (
            f"<Client of {type(protocol).__name__}: {len(protocol.items)} items, "
            f"epsilon {protocol.epsilon:g}>"
        )

    def __reduce_ex__(self, version: object) -> NoReturn:
        """Refuse to be copied or pickled: a copy would answer once more."""
        raise TypeError(
            "a client answers once, so it can be neither copied nor pickled: make one where the "
            "respondent answers, with Client.from_json(text)."
        )

    @classmethod
    def from_json(cls, text: str, *, max_epsilon: float = 8.0) -> Client:
        """Return a client for the protocol that ``to_json`` wrote.

        Parameters
        ----------
        text : str
            The protocol as it was published.
        max_epsilon : float, default 8.0
            The largest epsilon at which this device answers. At 8 a report may be 3,000 times as
            probable under one ranking as under another, and often shows it.

        Examples
        --------
        >>> Client.from_json(text, max_epsilon=2.0).protocol.epsilon
        1.0
        """
        check_number("max_epsilon", max_epsilon, 0, math.inf, "()")
        protocol = protocol_from_json(text)
        if protocol.epsilon > max_epsilon:
            raise ValueError(
                f"text asks for reports at epsilon {protocol.epsilon:g}, which protect less than "
                f"this device allows, max_epsilon={max_epsilon:g}: ask for a protocol with a "
                f"smaller epsilon."
            )
        return cls(protocol)

    def explain(self) -> str:
        """Return in a few sentences, for the respondent, what a report may show.

        Examples
        --------
        >>> print(client.explain().split(".")[0])
        Your ranking does not leave this device
        """
        response = self.protocol.response
        digits = self.protocol.digits
        part = "it" if digits == 1 else f"each of its {digits} parts"
        return (
            f"Your ranking does not leave this device. One report does, drawn at random: with "
            f"probability {response.favoured_probability:.2f} {part} agrees with your ranking. No "
            f"report is more than {math.exp(self.protocol.epsilon):.3g} times as probable under "
            f"your ranking as under any other (epsilon {self.protocol.epsilon:g}). A second report "
            f"would add as much again, so this client makes one. Others may see that you answered."
        )

    @cached_property
    def assignment(self) -> int:
        """What this respondent is asked, as a number.

        Examples
        --------
        >>> client.assignment
        0
        """
        return self.protocol.draw_assignment()

    @property
    def question(self) -> list[tuple[str, ...]]:
        """The items to put in order, in as many sets as the answer has digits.

        Examples
        --------
        >>> client.question
        [('tea', 'milk')]
        """
        return self.protocol.question(self.assignment)

    def randomize(
        self, ranking: object, assignment: int | None = None, report_id: str | None = None
    ) -> dict[str, str | int]:
        """Return the report of the ranking, once.

        Parameters
        ----------
        ranking : sequence of str, or mapping of str to int
            All items or those of the question: the best first, or the rank of each, from 1.
        assignment : int, optional
            What a survey that chooses its questions asks this respondent, instead of one drawn
            here; an adaptive one has to say it.
        report_id : str, optional
            The id that such a survey has handed out with it.

        Returns
        -------
        dict
            ``protocol_id``, ``assignment``, ``answer`` and ``report_id``, to be sent as they are.

        Examples
        --------
        >>> report = Client.from_json(text).randomize(["milk", "tea"])
        >>> sorted(report)
        ['answer', 'assignment', 'protocol_id', 'report_id']
        """
        if self._reported:
            raise RuntimeError(
                "This client has made its report: another one of the same respondent would spend "
                "epsilon again, and reports that are averaged show the answer."
            )
        question = self.assignment if assignment is None else assignment
        report = self.protocol.randomize(ranking, question, report_id)
        self._reported = True
        return report
