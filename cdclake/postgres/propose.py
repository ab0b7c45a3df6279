"""Proposals for the tables of a source's catalog: each alone, then with unique names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

from cdclake import naming
from cdclake.plan import Table
from cdclake.postgres.candidates import Key
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.proposal import Proposal, propose_table

_TABLES = frozenset("rpf")
_MAX_LAKE_NAME_CHARACTERS = 128


def is_proposable(table: SourceTable) -> bool:
    """Check that the relation is a table, neither a partition nor one of cdclake's own."""
    return (
        table.kind in _TABLES
        and table.partition_of is None
        and table.persistence != "t"
        and table.schema != naming.SOURCE_SCHEMA
    )


def propose(
    tables: Iterable[SourceTable],
    pipeline: str,
    guessed: Mapping[TableId, Key],
    version: int = 0,
    declared: Iterable[Table] = (),
) -> list[Proposal]:
    """Return a proposal for each table, with unique lake names and topics.

    `guessed` are keys for tables that `needs_candidate`; `version` is the server's, as a number.
    The tables that are `declared` keep their names and topics.
    """
    names = _Names()
    topics: dict[str, str] = {}
    for table in declared:
        names.reserve(table.name)
        topics[table.topic] = table.source
    proposals = []
    for found in tables:
        proposal = propose_table(found, pipeline, guessed.get(found.id), version)
        if proposal.declared is not None:
            topic = proposal.declared.topic
            other = topics.setdefault(topic, found.source)
            if other == found.source:
                name = names.take(found.schema, found.table)
                proposal = replace(proposal, declared=replace(proposal.declared, name=name))
            else:
                reason = f"its topic would be {topic}, which is that of {other}"
                remedy = "rename one of the two in the source, or declare it in another pipeline"
                proposal = Proposal(source=found, reason=reason, remedy=remedy)
        proposals.append(proposal)
    return proposals


class _Names:
    """Unique lake names, which do not collide with the derived names of other tables."""

    def __init__(self) -> None:
        self.taken = {naming.QUARANTINE}

    def reserve(self, name: str) -> None:
        """Reserve a name and the names derived from it."""
        self.taken |= _objects(name)

    def take(self, schema: str, table: str) -> str:
        """Reserve the table's own name if it is free, else one with its schema, else numbered."""
        base = naming.lake_name(f"{schema}_{table}")
        while base.endswith(naming.DERIVED_SUFFIXES):
            base += "_table"
        numbered = (f"{base}_{number}" for number in range(2, len(self.taken) + 3))
        for name in chain([naming.lake_name(table), base], numbered):
            if len(name) <= _MAX_LAKE_NAME_CHARACTERS and not _objects(name) & self.taken:
                self.reserve(name)
                return name
        raise AssertionError("there is always a free number")


def _objects(name: str) -> set[str]:
    return {name, *(name + suffix for suffix in naming.DERIVED_SUFFIXES)}
