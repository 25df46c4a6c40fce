"""The respondent's device: make one small local report from one ranking.

This module needs only NumPy and the standard library, and starts in a fraction of a second.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NoReturn

from privrank.local.kinds import protocol_from_json
from privrank.local.protocols import Protocol, check_kind
from privrank.util.checks import check_number


class Client:
    """Client that makes one local report for one respondent.

    Parameters
    ----------
    protocol : Protocol
        The protocol as published by the curator. A device that received JSON text should read it
        with `from_json`, which refuses a large epsilon.

    See Also
    --------
    privrank.local.Comparisons : A protocol; its ``tally`` counts reports.

    Notes
    -----
    **Privacy.** One report is epsilon-differentially private
    (:class:`privrank.local.protocols.SubsetResponse`). A second report of the same respondent adds
    its epsilon, and the mean of many reports would reveal the answer itself, for any epsilon.
    Therefore `randomize` makes one report, and a client can be neither copied nor pickled. A client
    cannot do more: a survey that distributes another client asks again, and respondents who answer
    both are protected at the sum of the epsilons. The question is drawn once, before the ranking is
    read, and kept. A survey that chooses its questions passes the assignment, which must not depend
    on the ranking.

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
        """Return a string that shows the protocol."""
        return (
            f"<Client of {type(self.protocol).__name__}: {len(self.protocol.items)} items, "
            f"epsilon {self.protocol.epsilon:g}>"
        )

    def __reduce_ex__(self, version: object) -> NoReturn:
        """Refuse to be copied or pickled, because a copy could answer again."""
        raise TypeError(
            "a client answers once, so it can be neither copied nor pickled. Create a client on "
            "the respondent's device with Client.from_json(text)."
        )

    @classmethod
    def from_json(cls, text: str, *, max_epsilon: float = 8.0) -> Client:
        """Return a client for the protocol that ``to_json`` wrote.

        Parameters
        ----------
        text : str
            The protocol as published.
        max_epsilon : float, default 8.0
            The largest epsilon at which this device answers. At 8, a report may be 3,000 times as
            probable under one ranking as under another, and often reveals the ranking.

        Examples
        --------
        >>> Client.from_json(text, max_epsilon=2.0).protocol.epsilon
        1.0
        """
        check_number("max_epsilon", max_epsilon, 0, math.inf, "()")
        protocol = protocol_from_json(text)
        if protocol.epsilon > max_epsilon:
            raise ValueError(
                f"text asks for reports at epsilon {protocol.epsilon:g}, more than this device "
                f"allows, max_epsilon={max_epsilon:g}. Ask for a protocol with a smaller epsilon."
            )
        return cls(protocol)

    def explain(self) -> str:
        """Return a short text for the respondent about what a report may reveal.

        Examples
        --------
        >>> print(client.explain().split(".")[0])
        Your ranking does not leave this device
        """
        part = "it" if self.protocol.digits == 1 else f"each of its {self.protocol.digits} parts"
        return (
            f"Your ranking does not leave this device. One report does, drawn at random: with "
            f"probability {self.protocol.response.favoured_probability:.2f} {part} agrees with "
            f"your ranking. No report is more than {math.exp(self.protocol.epsilon):.3g} times as "
            f"probable under your ranking as under any other (epsilon {self.protocol.epsilon:g}). "
            f"A second report would add as much again, so this client makes one. Others may see "
            f"that you answered."
        )

    @cached_property
    def assignment(self) -> int:
        """The assignment of this respondent, as a number.

        Examples
        --------
        >>> client.assignment
        0
        """
        return self.protocol.draw_assignment()

    @property
    def question(self) -> list[tuple[str, ...]]:
        """The items to put in order, one tuple for each digit of the answer.

        Examples
        --------
        >>> client.question
        [('tea', 'milk')]
        """
        return self.protocol.question(self.assignment)

    def randomize(
        self, ranking: object, assignment: int | None = None, report_id: str | None = None
    ) -> dict[str, str | int]:
        """Return the randomised report of the ranking; can be called once.

        Parameters
        ----------
        ranking : sequence of str, or mapping of str to int
            All items, or the items of the question: in order, best first, or each with its rank,
            from 1.
        assignment : int, optional
            The assignment of this respondent in a survey that chooses its questions. By default the
            client draws it. Adaptive protocols require it.
        report_id : str, optional
            The id that such a survey has issued with the assignment.

        Returns
        -------
        dict
            ``protocol_id``, ``assignment``, ``answer`` and ``report_id``. Send it unchanged.

        Examples
        --------
        >>> report = Client.from_json(text).randomize(["milk", "tea"])
        >>> sorted(report)
        ['answer', 'assignment', 'protocol_id', 'report_id']
        """
        if self._reported:
            raise RuntimeError(
                "This client has made its report. Another report of the same respondent would "
                "spend epsilon again, and the average of several reports reveals the answer."
            )
        report = self.protocol.randomize(
            ranking, self.assignment if assignment is None else assignment, report_id
        )
        self._reported = True
        return report
