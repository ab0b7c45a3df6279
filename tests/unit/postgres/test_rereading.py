"""Changed relations of tables whose names signals cannot have: reported, and not read again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdclake.jobs.stream.topic_check import needs_resync
from cdclake.plan import Delivery
from cdclake.postgres.deployed_remedies import deployed_remedy
from cdclake.postgres.relation_check import merged_records
from cdclake.postgres.relation_record import RelationRecord
from cdclake.postgres.source_names import repair_lacking
from tests.unit.postgres.tables import declared
from tests.unit.postgres.test_relations import PUBLISHED, ROOT, TABLE, source

NAME = "Order Lines"


@pytest.mark.parametrize("delivery", ["stream", "firehose"])
def test_a_name_that_signals_cannot_have_is_not_read_again(delivery: Delivery) -> None:
    """`up` goes on with the other tables, and the difference is reported until it is repaired."""
    table, root = declared(table=NAME, delivery=delivery), replace(ROOT, table=NAME)
    narrowed = replace(PUBLISHED, right=False)
    fewer = source(replace(root, leaves=()), publication=narrowed)
    records = {table.source: RelationRecord.of(table, root, settled=True)}
    changes = list(fewer.compare(table, records[table.source]))
    kinds = [(change.kind, change.resync) for change in changes]
    assert kinds == [("unpublished", False), ("detached", False)]
    for remedy in (each for c in changes for each in (c.remedy, deployed_remedy(table, c))):
        assert 'ALTER TABLE "public"."Order Lines"' in remedy and "another `name:`" in remedy
        assert "its name has a blank" in remedy and "poll it" in remedy
        assert "resync" not in remedy
    noted = {table.source: replace(records[table.source], omitted=True)}
    assert merged_records(fewer, [table], records) == noted


def test_a_renamed_table_that_cannot_be_read_again_needs_another_name() -> None:
    table, before = declared(table=NAME), replace(TABLE, table=NAME)
    record = RelationRecord.of(table, before, settled=True)
    [change] = source(names={1: ("public", "lines")}).compare(table, record)
    remedy = deployed_remedy(table, change)
    assert remedy.startswith("declare the new name under another `name:`")


def test_lost_records_and_values_of_such_a_table_need_another_name() -> None:
    table = declared(table=NAME)
    for remedy in (repair_lacking(table), needs_resync(table, "records are lost").remedy):
        assert "another `name:`" in remedy and "cdclake resync" not in remedy
    assert "cdclake resync" in needs_resync(declared(), "records are lost").remedy
