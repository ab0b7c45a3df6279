"""Files of the quarantine that another writer is about to commit outlive an erasure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.control_objects import FORGET, erased_name, outcome_name
from cdclake.jobs.forget.erase import Erasure
from cdclake.jobs.forget.lake_objects import LakeObjects
from cdclake.plan import Plan, Table
from tests.recorded.firehose import stream_of
from tests.unit.forget.bucket import BUCKET
from tests.unit.trace.test_explanation import POLLED, TABLE

STREAMED = replace(TABLE, name="people", table="people", topic="shop.public.people")
ALSO_STREAMED = replace(TABLE, name="parts", table="parts", topic="shop.public.parts")
ALSO_POLLED = replace(POLLED, name="units", table="units", topic="shop.public.units")
DELIVERED = replace(TABLE, delivery="firehose")


def location(name: str) -> str:
    return f"s3://{BUCKET}/wh/{name}/metadata/1.json"


def entry(name: str) -> dict[str, Any]:
    """Return a table as the catalog describes it."""
    return {"Name": name, "Parameters": {"metadata_location": location(name)}}


def removed(
    s3: Any,
    table: Table,
    *others: Table,
    noted: Mapping[str, str] | None = None,
    end: timedelta = timedelta(minutes=1),
) -> set[str]:
    """Return what an erasure in a pipeline of these tables removes, without the folder.

    `noted` are the metadata files with the old snapshots, where they are not the current ones.
    The erasure ends at `end` from the objects, and its outcome is written after an hour.
    """
    tables = (table, *others)
    plan = Plan(
        name="p", source_database="d", lake_database="l",
        tables=tuple(each for each in tables if each.polling is None),
        polled=tuple(each for each in tables if each.polling is not None),
        deliveries=tuple(stream_of(each) for each in tables if each.delivery == "firehose"),
    )  # fmt: skip
    names = (table.name, table.changes, naming.QUARANTINE)
    for name in names:
        s3.put_object(Bucket=BUCKET, Key=f"wh/{name}/metadata/1.json", Body=b'{"snapshots": []}')
        s3.put_object(Bucket=BUCKET, Key=f"wh/{name}/data/in_flight", Body=b"1")
    pages = SimpleNamespace(paginate=lambda **_: [{"TableList": [*map(entry, names)]}])
    now = datetime.now(UTC)
    outcome = outcome_name(table.name, FORGET)
    times = {erased_name(table.name): now + end, outcome: now + timedelta(hours=1)}
    lake: Any = SimpleNamespace(
        plan=plan,
        objects=LakeObjects(
            s3, SimpleNamespace(get_paginator=lambda _: pages), plan, f"s3://{BUCKET}/wh"
        ),
        control=SimpleNamespace(written_at=times.__getitem__),
    )
    erasure = Erasure(lake, table, [], timedelta())
    metadata = {name: location(name) for name in names} | dict(noted or {})
    found = erasure._removed({"derived": [], "metadata": metadata})
    return {version.key.removeprefix("wh/") for version in found}


QUARANTINED = f"{naming.QUARANTINE}/data/in_flight"


@pytest.mark.parametrize(
    "tables",
    [(POLLED, STREAMED), (STREAMED, POLLED), (POLLED, ALSO_POLLED), (STREAMED, DELIVERED)],
    ids=["stream", "poll", "another_poll", "firehose"],
)
def test_a_file_that_another_writer_may_commit_stays(s3: Any, tables: tuple[Table, ...]) -> None:
    gone = removed(s3, *tables)
    assert QUARANTINED not in gone
    assert f"{tables[0].changes}/data/in_flight" in gone


@pytest.mark.parametrize("tables", [(STREAMED, ALSO_STREAMED), (POLLED,)])
def test_the_only_writer_leaves_no_file(s3: Any, tables: tuple[Table, ...]) -> None:
    assert QUARANTINED in removed(s3, *tables)


def test_files_of_a_job_that_holds_the_lease_before_the_outcome_is_written_stay(s3: Any) -> None:
    """Requests that are repeated delay the outcome; a compaction may commit long after it."""
    assert removed(s3, STREAMED, end=timedelta(minutes=-1)) == set()


@pytest.mark.parametrize("keeps_versions", [True, False])
def test_a_noted_metadata_file_may_be_gone(s3: Any, keeps_versions: bool) -> None:
    """Fifty commits of another writer have followed: Iceberg deletes the older files."""
    if keeps_versions:
        enabled = {"Status": "Enabled"}
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration=enabled)
    key = f"wh/{naming.QUARANTINE}/metadata/0.json"
    known = [{"statistics-path": f"s3://{BUCKET}/wh/{QUARANTINED}"}]
    content = {"snapshots": [], "statistics": known}
    s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(content).encode())
    s3.delete_object(Bucket=BUCKET, Key=key)
    gone = removed(s3, STREAMED, POLLED, noted={naming.QUARANTINE: f"s3://{BUCKET}/{key}"})
    assert f"{STREAMED.changes}/data/in_flight" in gone
    # Without versions it is not known whether a snapshot had this file: it may be uncommitted.
    assert (QUARANTINED in gone) is keeps_versions
