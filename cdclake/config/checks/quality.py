"""Checks of quality rules against the columns and keys of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from cdclake import naming
from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem, Refused
from cdclake.config.quality_model import RuleEntry
from cdclake.config.quality_sql import RuleTable, resolve_rule


def check_quality(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that each rule is about columns that flow, with values of their types."""
    keys = {t.name: [naming.lake_name(name) for _, name in t.key] for t in tables if t.name}
    for table in tables:
        rules = table.entry.get("checks")
        if not isinstance(rules, list) or table.name is None:
            continue
        flowing = [column for column in table.columns if not column.excluded]
        known = RuleTable(
            table.name,
            {column.source: column.name for column in flowing},
            {column.source: column.type for column in flowing},
        )
        for number, raw in enumerate(rules):
            try:
                resolve_rule(RuleEntry.model_validate(raw), known, keys)
            except ValidationError:
                continue  # the model reports it
            except Refused as refused:
                at = (*table.location, "checks", number)
                yield document.problem(at, refused.message, refused.remedy)
