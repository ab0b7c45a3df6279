"""One SQL statement and why it is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL text without parameters; safe to run again.

    `blocks_writers` marks a lock that conflicts with writing (ACCESS EXCLUSIVE). Whoever waits
    for such a lock holds up every writer that comes after it, so these run alone, with a short
    `lock_timeout`, and are tried again.
    """

    purpose: str
    sql: str
    blocks_writers: bool = False
