"""Digest of what a poll reads, which decides whether the next poll reads every row."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from cdclake.plan import Plan, Table


def poll_definition(plan: Plan, table: Table) -> str:
    """Return the digest of the table's columns, query, rules and policy.

    After a new digest a poll reads every row: stored rows lack a new column's value, and rows that
    a rule or the policy refused may be accepted now. Defaults are left out, as in the digests of
    earlier versions.
    """
    columns = [(c.source, c.name, c.type, c.mask) for c in table.columns]
    read: list[object] = [columns, table.poll.by, table.poll.query]
    rules = [asdict(rule.limit) for rule in table.checks if rule.limit is not None]
    if rules:
        read.append(rules)
    if plan.not_representable != "quarantine":
        read.append(plan.not_representable)
    return hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]
