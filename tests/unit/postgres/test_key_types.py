"""New types of a key's column: a key that the lake has as text may get another text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdclake.postgres.relation_record import RelationRecord
from tests.unit.postgres.tables import actual, column, declared
from tests.unit.postgres.test_relations import source


@pytest.mark.parametrize(
    ("before", "now", "declared_as", "kind"),
    [
        ("numeric(40,2)", "numeric(40,4)", "numeric(40,2)", "converted"),
        ("numeric(40)", "numeric(40,1)", "numeric", "converted"),
        ("numeric(40,4)", "numeric(40,2)", "numeric(40,4)", "converted"),
        ("numeric", "numeric(40,2)", "numeric", "converted"),
        ("numeric(40,2)", "numeric", "numeric", "rewritten"),  # no value gets other digits
        ("numeric(40,2)", "numeric(50,2)", "numeric", "rewritten"),
        # The lake compares these as decimals and as points in time.
        ("numeric(10,2)", "numeric(10,4)", "numeric(10,2)", "rewritten"),
        ("timestamptz(3)", "timestamptz", "timestamptz(3)", "rewritten"),
    ],
)
def test_a_new_text_of_a_key_is_read_again(
    before: str, now: str, declared_as: str, kind: str
) -> None:
    old, new = (actual(oid=1, columns=(column("id", each),)) for each in (before, now))
    table = declared(("id", declared_as))
    record = RelationRecord.of(table, old, settled=True)
    [change] = source(replace(new, file=11)).compare(table, record)
    assert (change.kind, change.resync) == (kind, kind == "converted")
