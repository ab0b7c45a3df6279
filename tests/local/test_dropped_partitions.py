"""Partitions that come and go while their table has another lasting difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.jobs.operations.source_relations import read_relations
from cdclake.local.lake.source import prepare_source
from cdclake.postgres.relation_check import compare_relations, merged_records
from cdclake.postgres.relation_record import RelationRecord
from tests.local.source_database import OWNER, PASSWORD, proposed, run

pytestmark = pytest.mark.local


def test_a_partition_of_a_rewritten_table_is_noticed_when_it_goes(
    database: str, tmp_path: Path
) -> None:
    run(
        database,
        "CREATE TABLE parts (id bigint PRIMARY KEY, n int) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (10)",
        "INSERT INTO parts VALUES (1, 1)",
    )
    plan = proposed(database, tmp_path / "p.yaml")
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)

    def compared(
        records: Mapping[str, RelationRecord],
    ) -> tuple[list[str], Mapping[str, RelationRecord]]:
        source = replace(read_relations(database, plan, records), streams=True)
        [changes] = compare_relations(source, plan.tables, records).values()
        return [change.kind for change in changes], merged_records(source, plan.tables, records)

    kinds, records = compared({})
    assert kinds == []
    run(database, "ALTER TABLE parts ALTER n TYPE bigint")
    assert compared(records) == (["rewritten"], records)
    run(
        database,
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20)",
        "INSERT INTO parts VALUES (11, 1)",
    )
    kinds, records = compared(records)
    assert kinds == ["rewritten"]
    run(database, "DROP TABLE parts_2")
    assert compared(records)[0] == ["detached", "rewritten"]
