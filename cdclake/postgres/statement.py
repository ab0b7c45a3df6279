"""SQL statement with its purpose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """Idempotent SQL text without parameters.

    `blocks_writers` marks a lock that conflicts with writing (ACCESS EXCLUSIVE). While a statement
    waits for such a lock, later writers wait behind it, so these statements run alone, with a short
    `lock_timeout`, and are retried.
    """

    purpose: str
    sql: str
    blocks_writers: bool = False
