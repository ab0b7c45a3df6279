"""Each check of the probe: passed where the jobs run, and failed where something is missing."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake import naming
from cdclake.errors import ComponentFailed
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.members import MEMBERS
from cdclake.jobs.probing import checks
from cdclake.jobs.probing.java_members import missing_members
from tests.spark.events import MemoryStore

pytestmark = pytest.mark.spark


def store(kind: type[MemoryStore] = MemoryStore) -> Any:
    """Stand in for the object store of leases."""
    return kind()


@pytest.fixture(scope="module")
def lake(spark):
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {naming.CATALOG}.probed")
    return LakeTables(spark, "probed")


def test_a_place_where_the_jobs_run_passes(spark, lake, tmp_path):
    found = checks.probe(
        spark, database=lake.database, control=store(), checkpoint=tmp_path.as_uri()
    )
    assert {check.name: check.state for check in found} == dict.fromkeys(
        ("versions", "java", "packages", "tasks", "checkpoint", "conditional writes", "tables"),
        "ok",
    ), found
    assert list(tmp_path.iterdir()) == []
    assert tables_of(lake) == []


def test_what_another_build_lacks_is_named(spark):
    lacking = {"org.apache.iceberg.Schema": ("columns", "melted"), "org.apache.iceberg.Gone": ()}
    assert list(missing_members(spark, {**MEMBERS, **lacking})) == [
        "org.apache.iceberg.Schema.melted",
        "org.apache.iceberg.Gone (ClassNotFoundException)",
    ]


def failing(spark, lake, tmp_path, *names: str) -> dict[str, Any]:
    found = checks.probe(
        spark, database=lake.database, control=store(Careless), checkpoint=tmp_path.as_uri()
    )
    failed = {check.name: check for check in found if check.state == "failed"}
    assert set(failed) == {"conditional writes", *names}
    assert all(check.remedy for check in failed.values())
    return failed


def test_another_build_fails(spark, lake, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "_ICEBERG", "org.apache.iceberg.BuildOfAnother")
    monkeypatch.setattr(checks, "MEMBERS", {"org.apache.iceberg.Gone": ("melted",)})
    failed = failing(spark, lake, tmp_path, "versions", "java")
    assert "org.apache.iceberg.Gone" in failed["java"].detail


def test_a_package_that_tasks_lack_fails(spark, lake, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "PACKAGES", ("msgspec", "not_on_glue"))
    failed = failing(spark, lake, tmp_path, "packages", "tasks")
    assert "not_on_glue" in failed["packages"].detail


def tables_of(lake: LakeTables) -> list[str]:
    return [row["tableName"] for row in lake.spark.sql("SHOW TABLES IN lake.probed").collect()]


def test_the_others_are_checked_after_a_failure(spark, lake, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(naming, "PROBE_TABLE", "t" * 300)  # longer than a folder's name may be
    found = checks.probe(
        spark,
        database=lake.database,
        control=store(),
        checkpoint=(tmp_path / "file" / "probe").as_uri(),
    )
    wrong = {check.name: check for check in found if check.state == "failed"}
    assert set(wrong) == {"checkpoint", "tables"}
    assert wrong["tables"].detail
    assert "Lake Formation" in wrong["tables"].remedy


class Careless(MemoryStore):
    """A store that writes whatever the condition says."""

    def write_if(self, name, content, etag):
        del etag
        self.write(name, content)
        return self.stored[name].etag


def test_a_store_without_conditions_fails_and_is_left_clean():
    careless = store(Careless)
    with pytest.raises(ComponentFailed, match="whose condition does not hold"):
        checks.conditional_writes(careless)
    assert careless.stored == {}
