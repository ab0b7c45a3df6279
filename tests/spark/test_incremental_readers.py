"""PyIceberg and DuckDB follow a changelog with the code of docs/how-to/stream-a-changelog.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.table import StaticTable
from pyspark.errors import UnsupportedOperationException

from cdclake.jobs.reader.duck import extension_file
from tests.spark.events import Engine, plan_of
from tests.spark.firehose_log import FirehoseLog
from tests.spark.test_changelog_readers import append, compact, expire_all_but_newest
from tests.spark.test_collapse import NOW, OLD, collapse, set_clock

pytestmark = pytest.mark.spark
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "stream-a-changelog.md"


@pytest.fixture(scope="module")
def shown() -> dict[str, Callable[..., Any]]:
    """The functions that the page defines."""
    code = re.findall(r"```python\n(def .*?)```", PAGE.read_text(), re.S)
    assert len(code) == 3
    names: dict[str, Callable[..., Any]] = {}
    exec("\n".join(code), names)
    return names


@pytest.fixture
def engine(spark: Any) -> Engine:
    return Engine(spark)


def metadata_of(engine: Engine) -> str:
    loaded = engine.lake.load(engine.table.changes)
    return str(loaded.operations().current().metadataFileLocation())


def table_of(engine: Engine) -> StaticTable:
    return StaticTable.from_metadata(metadata_of(engine))


def lsns(rows: Any) -> list[int]:
    return sorted(rows.column("cdc_lsn").to_pylist())


def test_pyiceberg_reads_each_row_once(engine, shown, monkeypatch):
    append(engine, 10, 20)
    first, last = shown["changes_since"](table_of(engine), None)
    append(engine, 30)
    engine.run(engine.event("u", 30, 30), apply_now=False)  # sent again by a restarted connector
    compact(engine, monkeypatch)
    append(engine, 40)
    second, last = shown["changes_since"](table_of(engine), last)
    third, _ = shown["changes_since"](table_of(engine), last)
    assert (lsns(first), lsns(second), third) == ([10, 20], [30, 40], None)


def test_pyiceberg_fails_at_thinned_snapshots_and_goes_on_by_time_of_ingestion(engine, shown):
    append(engine, 10)
    rows, last = shown["changes_since"](table_of(engine), None)
    append(engine, 20, 30)
    expire_all_but_newest(engine)
    with pytest.raises(ValueError):
        shown["changes_since"](table_of(engine), last)
    through = max(rows.column("cdc_ingested_at").to_pylist())
    assert lsns(shown["changes_after"](table_of(engine), through)) == [20, 30]


def queries() -> list[str]:
    """The page's statements of SQL: rows after a time, and the day before which some collapsed."""
    return re.findall(r"```sql\n(SELECT .*?)\n```", PAGE.read_text(), re.S)


def test_a_reader_behind_a_collapse_is_refused(engine, shown, monkeypatch):
    """It would lack a delete that has collapsed together with its key, without an error."""
    e = engine.event
    set_clock(monkeypatch, OLD)
    engine.run(e("c", 10, 10, id=5, v="a"), e("c", 11, 11, v="b"))
    old, _ = shown["changes_since"](table_of(engine), None)
    set_clock(monkeypatch, OLD + timedelta(days=1))
    engine.run(e("d", 20, 20, id=5))
    set_clock(monkeypatch, NOW)
    engine.run(e("u", 30, 30, v="c"))
    recent, _ = shown["changes_since"](table_of(engine), None)
    behind, current = (max(rows.column("cdc_ingested_at").to_pylist()) for rows in (old, recent))
    table = f"lake.cdc.{engine.table.changes}"
    assert lsns(shown["changes_after"](table_of(engine), behind)) == [20, 30]
    shown["check_not_collapsed"](engine.spark, table, behind)
    collapse(engine)
    assert lsns(shown["changes_since"](table_of(engine), None)[0]) == [11, 30]
    with pytest.raises(ValueError, match="read one snapshot whole"):
        shown["changes_after"](table_of(engine), behind)
    with pytest.raises(ValueError, match="read one snapshot whole"):
        shown["check_not_collapsed"](engine.spark, table, behind)
    shown["check_not_collapsed"](engine.spark, table, current)
    engine.run(e("u", 40, 40, v="d"), apply_now=False)
    assert lsns(shown["changes_after"](table_of(engine), current)) == [40]
    _, noted = queries()
    location = metadata_of(engine).removeprefix("file:")
    [(day,)] = duckdb.sql(noted.replace("METADATA_LOCATION", location)).fetchall()
    assert behind.date().isoformat() < day < current.date().isoformat()


def test_duckdb_reads_each_row_once_by_time_of_ingestion(engine, monkeypatch):
    query, _ = queries()
    append(engine, 10, 20)
    through = duckdb_rows(engine, "SELECT max(cdc_ingested_at)::VARCHAR FROM orders_changes")[0][0]
    append(engine, 30)
    compact(engine, monkeypatch)
    append(engine, 40)
    later = re.sub(r"'.*?'", f"'{through}'", query).replace("*", "cdc_lsn")
    assert sorted(duckdb_rows(engine, later)) == [(30,), (40,)]


def test_a_late_commit_of_firehose_is_found_by_snapshots_and_not_by_time(spark, shown):
    log = FirehoseLog(spark, plan_of())
    ingested = int(datetime.now(UTC).timestamp() * 1_000_000)

    def commit(lsn: int, at: int) -> None:
        row = dict.fromkeys(log.kinds) | {"id": lsn, "cdc_op": "c", "cdc_lsn": lsn}
        log.commit([row | {"cdc_position": str(lsn), "cdc_ingested_at": at}])

    commit(20, ingested)
    first, last = shown["changes_since"](table_of(log.engine), None)
    commit(10, ingested - 1)
    through = max(first.column("cdc_ingested_at").to_pylist())
    late, _ = shown["changes_since"](table_of(log.engine), last)
    assert (lsns(first), lsns(late)) == ([20], [10])
    # The page forbids `changes_after` here for this reason.
    assert lsns(shown["changes_after"](table_of(log.engine), through)) == []
    again, _ = shown["changes_since"](table_of(log.engine), None)
    assert lsns(again) == [10, 20]


def duckdb_rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    location = metadata_of(engine).removeprefix("file:")
    with duckdb.connect() as session:
        for extension in ("avro", "iceberg"):
            session.execute(f"LOAD '{extension_file(extension)}'")
        scan = f"iceberg_scan('{location}')"
        return session.execute(query.replace("orders_changes", scan)).fetchall()


def test_iceberg_has_a_changelog_view_of_the_changelog_and_none_of_the_state(engine):
    # Two commits of the state: the second one has deletes of the first one's rows.
    for lsn in (10, 20):
        engine.run(engine.event("u", 1, lsn, v=str(lsn)))
    changes = f"table => 'cdc.{engine.table.changes}', changelog_view => 'changes_view'"
    engine.spark.sql(f"CALL lake.system.create_changelog_view({changes})")
    rows = engine.spark.sql("SELECT cdc_lsn, _change_type FROM changes_view").collect()
    assert sorted(map(tuple, rows)) == [(10, "INSERT"), (20, "INSERT")]
    state = (
        f"table => 'cdc.{engine.table.name}', changelog_view => 'state_view',"
        " identifier_columns => array('id')"
    )
    engine.spark.sql(f"CALL lake.system.create_changelog_view({state})")
    with pytest.raises(UnsupportedOperationException, match="Delete files are currently not"):
        engine.spark.sql("SELECT * FROM state_view").collect()
