"""Proof that no rule withholds an event, for the fast decoder.

An event that may break a rule is left to the slow decoder, which decides by the same conditions and
writes the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.row_rules import RowRule, RowRules
from cdclake.jobs.stream.block_arrays import Flags
from cdclake.plan import Table


class RuleProofs:
    """The rules of one table, over the decoded columns of a block."""

    def __init__(self, table: Table) -> None:
        self._rules = [(table.columns.index(rule.column), rule) for rule in RowRules(table).rules]

    def broken(
        self, columns: Sequence[pa.Array], unsent: Mapping[str, Flags], events: Sequence[Any]
    ) -> Flags | None:
        """Return which events break a rule; None if no event does."""
        found = None
        for index, rule in self._rules:
            flags = broken_values(columns[index], rule)
            if flags is None:
                continue
            if rule.column.name in unsent:
                flags &= ~unsent[rule.column.name]
            found = flags if found is None else found | flags
        if found is not None:
            found &= np.fromiter((event.op != "d" for event in events), bool, len(events))
        return found


def broken_values(values: pa.Array, rule: RowRule) -> Flags | None:
    """Return which values break the rule; nearly always the distinct ones show that none does."""
    if not any(map(rule.breaks, pc.unique(values).to_pylist())):
        return None
    return np.fromiter(map(rule.breaks, values.to_pylist()), bool, len(values))
