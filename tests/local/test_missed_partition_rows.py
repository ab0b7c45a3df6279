"""Rows of partitions that are in no event: written while UNLOGGED, or before the attachment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.jobs.operations.source_relations import read_relations
from cdclake.local.lake.source import prepare_source
from cdclake.postgres.relation_check import compare_relations, merged_records
from cdclake.postgres.relation_record import RelationRecord
from tests.local.source_database import OWNER, PASSWORD, proposed, role_dsn, run

pytestmark = pytest.mark.local

CREATED = (
    "CREATE TABLE parts (id bigint PRIMARY KEY, n int, secret text) PARTITION BY RANGE (id)",
    "CREATE INDEX ON parts (n)",
    "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (10)",
    "INSERT INTO parts VALUES (1, 1)",
)
SECRET = "secret: {exclude: true}"
LIKE = "CREATE TABLE p (LIKE parts INCLUDING ALL)"
ATTACH = "ALTER TABLE parts ATTACH PARTITION p FOR VALUES FROM (50) TO (60)"
IN_PLACE = "CREATE TABLE p PARTITION OF parts FOR VALUES FROM (50) TO (60)"
UNLOGGED = "CREATE UNLOGGED TABLE p PARTITION OF parts FOR VALUES FROM (50) TO (60)"
INSERT = "INSERT INTO parts VALUES (50, 1)"
FILL = "INSERT INTO p VALUES (50, 1)"
BLOCK = f"BEGIN {FILL}; EXCEPTION WHEN OTHERS THEN NULL; END"
DEEP = (
    "CREATE TABLE p (LIKE parts INCLUDING ALL) PARTITION BY RANGE (id)",
    "CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (50) TO (60)",
)


class Comparisons:
    """Comparisons of the partitioned table by the connector's role, as those of `SourceCheck`."""

    def __init__(self, database: str, file: Path) -> None:
        run(database, *CREATED)
        self.plan = proposed(database, file, lambda text: text.replace("secret: text", SECRET))
        prepare_source(database, self.plan, embedded=True, owner=OWNER, role_password=PASSWORD)
        self.dsn = role_dsn(database, self.plan)
        self.records: Mapping[str, RelationRecord] = {}
        assert self.compare() == []

    def compare(self) -> list[str]:
        source = replace(read_relations(self.dsn, self.plan, self.records), streams=True)
        [changes] = compare_relations(source, self.plan.tables, self.records).values()
        self.records = merged_records(source, self.plan.tables, self.records)
        return [change.kind for change in changes]


@pytest.fixture
def comparisons(database: str, tmp_path: Path) -> Comparisons:
    return Comparisons(database, tmp_path / "p.yaml")


def test_an_unlogged_partition_is_reported_after_it_is_logged(
    database: str, comparisons: Comparisons
) -> None:
    run(database, "ALTER TABLE parts_1 SET UNLOGGED", "INSERT INTO parts VALUES (2, 2)")
    assert comparisons.compare() == ["unlogged"]
    run(database, "ALTER TABLE parts_1 SET LOGGED")
    assert comparisons.compare() == ["unlogged"]


@pytest.mark.parametrize("is_compared", [True, False])
def test_a_partition_created_unlogged_is_reported(
    database: str, comparisons: Comparisons, is_compared: bool
) -> None:
    run(database, UNLOGGED, INSERT)
    if is_compared:
        assert comparisons.compare() == ["unlogged"]
    run(database, "ALTER TABLE p SET LOGGED")
    assert comparisons.compare() == ["attached"]


@pytest.mark.parametrize(
    "statements",
    [
        ("BEGIN", LIKE, FILL, ATTACH, "COMMIT"),
        ("BEGIN", LIKE, "SAVEPOINT s", FILL, "RELEASE s", ATTACH, "COMMIT"),
        ("BEGIN", "SAVEPOINT r", LIKE, "SAVEPOINT s", FILL, "RELEASE s", ATTACH, "COMMIT"),
        ("BEGIN", *DEEP, "SAVEPOINT s", FILL, "RELEASE s", ATTACH, "COMMIT"),
        (f"DO $$ BEGIN {LIKE}; {BLOCK}; {ATTACH}; END $$",),
        (LIKE, FILL, ATTACH),
    ],
)
def test_a_partition_that_was_filled_before_it_was_attached_is_reported(
    database: str, comparisons: Comparisons, statements: tuple[str, ...]
) -> None:
    run(database, *statements)
    assert comparisons.compare() == ["attached"]


@pytest.mark.parametrize(
    "statements",
    [
        ("BEGIN", LIKE, ATTACH, "COMMIT", INSERT),
        ("BEGIN", LIKE, "SAVEPOINT s", "SELECT 1", "RELEASE s", ATTACH, "COMMIT", INSERT),
        ("BEGIN", *DEEP, ATTACH, "COMMIT", INSERT),
        (IN_PLACE, INSERT),
        (IN_PLACE, "BEGIN", "UPDATE parts SET n = 2", "UPDATE parts SET n = 3", INSERT, "COMMIT"),
    ],
)
def test_a_partition_that_was_attached_empty_is_not_reported(
    database: str, comparisons: Comparisons, statements: tuple[str, ...]
) -> None:
    run(database, *statements)
    assert run(database, "SELECT id FROM p") == [(50,)]
    assert comparisons.compare() == []
