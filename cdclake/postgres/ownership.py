"""Ownership of a source's slot, publication and role, whose names several lakes may share.

The mark is a comment on the role: like the slot, and unlike the publication, a role belongs to the
whole server (decision 73).
"""

from __future__ import annotations

from dataclasses import dataclass

from cdclake.postgres.quoting import identifier, literal

_PREFIX = "cdclake "


@dataclass(frozen=True, slots=True)
class Owner:
    """Lake that prepares or leaves a source."""

    id: str  # without spaces
    name: str  # for messages
    made_unmarked: bool = False  # it made objects without a mark, as earlier versions did

    @property
    def mark(self) -> str:
        """Text of the mark."""
        return f"{_PREFIX}{self.id} {self.name}"

    def owns(self, comment: str) -> bool:
        """Check whether the comment on a role is this lake's mark; its name may have changed."""
        words = comment.split(" ", 2)
        return is_mark(comment) and words[1] == self.id


def is_mark(comment: str) -> bool:
    """Check whether the comment on a role is a mark, not a text of the database's users."""
    return comment.startswith(_PREFIX)


def name_in(mark: str) -> str:
    """Return the name of the lake in the mark."""
    return mark.removeprefix(_PREFIX).partition(" ")[2] or mark


def mark_statement(role: str, mark: str) -> str:
    """Return the statement that marks the role."""
    return f"COMMENT ON ROLE {identifier(role)} IS {literal(mark)}"
