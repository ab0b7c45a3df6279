"""Check of `puts:` for a deployment: the role of each stream, which names its tables, fits IAM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.checks.puts import put_entries
from cdclake.config.document import Document
from cdclake.config.model import Lake
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem

_MAX_CHARACTERS = 10_240  # of the inline policies of a role
# The lengths are those of the longest region, and of names at their limits: 63 characters of a
# bucket and 64 of a stream.
_OTHER_STATEMENTS = 2_200
_TABLE_ARNS_OVERHEAD = 137  # two ARNs: the table in Glue, and its files in S3


def check_put_roles(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that IAM accepts the role of each stream of put tables."""
    del tables
    database = document.get("lake", "database") or Lake().database
    for stream, entry in put_entries(document).items():
        size, fitting = _OTHER_STATEMENTS, 0
        for table in entry.tables or ():
            size += _TABLE_ARNS_OVERHEAD + 2 * len(f"{database}{table}")
            fitting += size <= _MAX_CHARACTERS
        if size > _MAX_CHARACTERS:
            yield document.problem(
                ("puts", stream, "tables"),
                "IAM limits a role to 10,240 characters, which the names of these"
                f" {len(entry.tables or ())} tables and of the database exceed",
                f"list at most the first {fitting}, and the others in another entry of `puts:`",
            )
