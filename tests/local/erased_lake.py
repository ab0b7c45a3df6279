"""A lake whose rows are erased: with versions of rows, refused events and derived tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.forget.erase import leftovers
from cdclake.local.forget.local_erasure_backend import LocalErasureBackend
from cdclake.local.lake.lake import LocalLake, aws_environment, open_lake
from cdclake.local.process.home import Home
from tests.local.running import RunningLake, streamed_lake_in


@contextmanager
def changed_lake_in(
    folder: Path, pipeline: str, created: str, changed: str
) -> Iterator[RunningLake]:
    """Yield a lake that has the changes, or has refused them, and has derived tables of them."""
    with streamed_lake_in(folder, pipeline, created) as running:
        with running.connect() as connection:
            connection.execute(changed.encode())
        running.run("verify", expect=None)
        running.run("job", "refresh_derived")
        yield running


def left_in(opened: LocalLake, values: list[SoughtValue]) -> list[dict[str, Any]]:
    """Return where values of `people` are stored, by the command's search; others lack them."""
    lake, table = LocalErasureBackend(opened), opened.plan.table("people")
    found, elsewhere = leftovers(lake, table, SoughtValues(values))
    assert elsewhere == []
    return found


def erased_of(report: dict[str, Any], what: str) -> dict[str, int | None]:
    """Return the places that had such a part of the rows, with the report's count of each."""
    return {each["where"]: each["count"] for each in report["erased"] if each["what"] == what}


def with_versions(opened: LocalLake) -> LocalLake:
    """Keep all versions of objects from now on, as a deployment's buckets do."""
    versions = {"Status": "Enabled"}
    opened.client("s3").put_bucket_versioning(
        Bucket=opened.bucket, VersioningConfiguration=versions
    )
    return opened


def opened_lake(running: RunningLake, monkeypatch: pytest.MonkeyPatch) -> LocalLake:
    """Return the lake, whose S3 and Glue boto3's clients of this process then use."""
    for name, value in aws_environment(running.endpoints).items():
        monkeypatch.setenv(name, value)
    return open_lake(Home(running.home))
