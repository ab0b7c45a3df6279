"""Topics and tables in the role of a sink on AWS: each by name, or a pattern of all of them.

IAM limits the inline policies of a role to 10,240 characters. A pattern takes the place of a list
that is too long, and only if it matches nothing but what the sink is declared to use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from cdclake import naming
from cdclake.connectors.declared import DeclaredConnector
from cdclake.plan import Plan

_MAX_CHARACTERS = 10_240
# The lengths are those of the longest partition and region, and of names at their limits: 63
# characters of a bucket, 64 of a cluster, with the UUID that follows it.
_OTHER_STATEMENTS = 4_200
_TOPIC_ARN_OVERHEAD = 164
_TABLE_ARNS_OVERHEAD = 151  # two ARNs: the table in Glue, and its files in S3
_SECRET_ARN_OVERHEAD = 86


@dataclass(frozen=True, slots=True)
class RoleNames:
    """Topics that a sink reads and tables that it appends to; either may be one pattern."""

    topics: tuple[str, ...]
    tables: tuple[str, ...]

    def characters(self, plan: Plan, connector: DeclaredConnector) -> int:
        """Return the maximum length of the role's policy, without whitespace."""
        return (
            _OTHER_STATEMENTS
            + sum(_TOPIC_ARN_OVERHEAD + len(topic) for topic in self.topics)
            + sum(
                _TABLE_ARNS_OVERHEAD + 2 * len(f"{plan.lake_database}{table}")
                for table in self.tables
            )
            + sum(_SECRET_ARN_OVERHEAD + len(secret) for secret in connector.secrets)
        )


def role_names(plan: Plan, connector: DeclaredConnector) -> RoleNames | None:
    """Return the names, with as few patterns as possible; None if the role is too long."""
    for topics, tables in product(_topics(plan, connector), _tables(plan, connector)):
        names = RoleNames(topics, tables)
        if names.characters(plan, connector) <= _MAX_CHARACTERS:
            return names
    return None


def _topics(plan: Plan, connector: DeclaredConnector) -> Iterator[tuple[str, ...]]:
    """Yield the topics, then their pattern if the sink reads every topic of the pipeline."""
    topics = tuple(dict.fromkeys(plan.table(name).topic for name in connector.tables))
    yield topics
    if {*topics} == {table.topic for table in plan.tables}:
        yield (f"{plan.name}.*",)


def _tables(plan: Plan, connector: DeclaredConnector) -> Iterator[tuple[str, ...]]:
    """Yield the tables, then their pattern if no other table of the lake matches it."""
    if not connector.is_iceberg_sink:
        yield ()
        return
    tables = tuple(map(naming.sink_name, connector.tables))
    yield tables
    pattern = naming.sink_name("*")
    others = {*_lake_tables(plan), *plan.sink_tables} - {*tables}
    if not any(name.endswith(pattern.removeprefix("*")) for name in others):
        yield (pattern,)


def _lake_tables(plan: Plan) -> Iterator[str]:
    """Yield the tables of the lake, except for those of sinks."""
    for table in plan.all_tables:
        yield from naming.lake_objects(table.name)
    for stream in plan.put_streams:
        yield from stream.tables
    yield from (each.name for each in plan.derived)
    yield from (each.name for each in plan.copies)
