"""Reasons against a table or a server, collected so that all are reported at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdclake.errors import InputError


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason against a table or server; `remedy` is the statement to run or the line to write."""

    subject: str  # `schema.table`, or the part of the server
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


def as_warnings(refusals: Sequence[Refusal]) -> list[dict[str, str]]:
    """Return the reasons as the `warnings` of a command's answer."""
    return [{"message": str(refusal), "remedy": refusal.remedy} for refusal in refusals]


def refused(refusals: Sequence[Refusal]) -> InputError:
    """Return all refusals as one error, so that one run shows everything to fix."""
    if len(refusals) == 1:
        return InputError(str(refusals[0]), refusals[0].remedy)
    messages = [f"{number}. {refusal}" for number, refusal in enumerate(refusals, 1)]
    remedies = [f"{number}. {refusal.remedy}" for number, refusal in enumerate(refusals, 1)]
    return InputError(
        f"the source database has {len(refusals)} problems; nothing was changed\n"
        + "\n".join(messages),
        "\n".join(remedies),
    )
