"""Every version of an object is searched, and delete markers by their names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cdclake.jobs.erasure.removed_objects import OtherWriter, delete_objects, removed_objects
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.erasure.stored_objects import newest_content, object_versions, search_bucket

MAIL = "ada.lovelace@example.org"
SOUGHT = SoughtValues([SoughtValue("mail", MAIL), SoughtValue("id", "7")])


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="lake")
        yield client


def found(s3: Any) -> dict[str, tuple[str, ...]]:
    """Where values are stored, with the columns."""
    return {each.where: each.columns for each in search_bucket(s3, "lake", SOUGHT, ("people/",))}


def versioned(s3: Any) -> None:
    """Keep all versions from now on."""
    s3.put_bucket_versioning(Bucket="lake", VersioningConfiguration={"Status": "Enabled"})


def test_an_overwritten_and_a_deleted_object_are_still_stored(s3: Any) -> None:
    versioned(s3)
    first = s3.put_object(Bucket="lake", Key="control/a.json", Body=f'["{MAIL}"]')["VersionId"]
    s3.put_object(Bucket="lake", Key="control/a.json", Body="{}")
    second = s3.put_object(Bucket="lake", Key=f"mail={MAIL}/b", Body="")["VersionId"]
    marker = s3.delete_object(Bucket="lake", Key=f"mail={MAIL}/b")["VersionId"]
    assert found(s3) == {
        f"s3://lake/control/a.json (version {first})": ("mail",),
        f"s3://lake/mail={MAIL}/b (version {second})": ("mail",),
        f"s3://lake/mail={MAIL}/b (delete marker {marker})": ("mail",),
    }
    for version in list(object_versions(s3, "lake")):
        if not version.is_newest or version.is_marker:
            s3.delete_object(Bucket="lake", Key=version.key, VersionId=version.version)
    assert found(s3) == {}
    assert [version.key for version in object_versions(s3, "lake")] == ["control/a.json"]


def test_more_objects_than_a_page_without_versions(s3: Any) -> None:
    for number in range(1001):
        s3.put_object(Bucket="lake", Key=f"k/{number:04}", Body=b"{}")
    s3.put_object(Bucket="lake", Key="k/9999", Body=MAIL.encode())
    assert found(s3) == {"s3://lake/k/9999": ("mail",)}


def test_short_values_count_in_the_tables_own_files_only(s3: Any) -> None:
    for key in ("people/a.json", "orders/a.json"):
        s3.put_object(Bucket="lake", Key=key, Body=b'{"id": 7}')
    assert found(s3) == {"s3://lake/people/a.json": ("id",)}


def test_only_old_versions_that_no_reader_reaches_are_deleted(s3: Any) -> None:
    versioned(s3)
    for key in ("people/data/gone", "people/data/kept", "orders/data/other"):
        s3.put_object(Bucket="lake", Key=key, Body=MAIL)
    s3.delete_object(Bucket="lake", Key="people/data/gone")
    now = datetime.now(UTC)
    kept = {"s3://lake/people/data/kept"}
    found = list(removed_objects(s3, "lake", "people/", kept, now + timedelta(seconds=5)))
    assert [(each.key, each.is_marker) for each in found] == [
        ("people/data/gone", False), ("people/data/gone", True),
    ]  # fmt: skip
    early = now - timedelta(minutes=1)
    assert list(removed_objects(s3, "lake", "people/", kept, early)) == []
    assert delete_objects(s3, "lake", found) == 2
    left = [version.key for version in object_versions(s3, "lake")]
    assert left == ["orders/data/other", "people/data/kept"]


def test_objects_without_versions_are_deleted(s3: Any) -> None:
    s3.put_object(Bucket="lake", Key="people/a", Body=MAIL)
    later = datetime.now(UTC) + timedelta(seconds=5)
    delete_objects(s3, "lake", list(removed_objects(s3, "lake", "people/", (), later)))
    assert list(object_versions(s3, "lake")) == []


def test_new_objects_that_another_writer_may_commit_stay(s3: Any) -> None:
    for key in ("t/replaced", "t/in_flight", "t/current"):
        s3.put_object(Bucket="lake", Key=key, Body=b"1")
    versioned(s3)
    s3.put_object(Bucket="lake", Key="t/gone", Body=b"1")
    s3.delete_object(Bucket="lake", Key="t/gone")
    now = datetime.now(UTC)
    reachable, soon = {"s3://lake/t/current"}, now + timedelta(seconds=60)

    def removed(other: OtherWriter | None) -> set[tuple[str, bool]]:
        versions = removed_objects(s3, "lake", "t/", reachable, soon, other=other)
        return {(each.key, each.is_marker) for each in versions}

    others = {("t/replaced", False), ("t/gone", False), ("t/gone", True)}
    known = {"s3://lake/t/replaced"}
    assert removed(OtherWriter(known, now - timedelta(hours=1))) == others
    assert removed(OtherWriter(known, soon)) == {*others, ("t/in_flight", False)}
    assert removed(None) == {*others, ("t/in_flight", False)}


def test_a_deleted_object_has_the_content_of_its_newest_version(s3: Any) -> None:
    s3.put_object(Bucket="lake", Key="m", Body=b"unversioned")
    s3.put_object(Bucket="lake", Key="m2", Body=b"another")
    assert newest_content(s3, "lake", "m") == b"unversioned"
    versioned(s3)
    s3.put_object(Bucket="lake", Key="m", Body=b"last")
    s3.delete_object(Bucket="lake", Key="m")
    assert newest_content(s3, "lake", "m") == b"last"
    assert newest_content(s3, "lake", "m3") is None
