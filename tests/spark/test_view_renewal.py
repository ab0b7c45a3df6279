"""Renewal of the literal bound in a stored `<t>_current`, on the local Glue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from pyspark.sql import SparkSession

from cdclake.firehose.redrive_stream import lateness_seconds
from cdclake.iceberg.athena_views import athena_views
from cdclake.iceberg.stored_view import bound_of
from cdclake.jobs.apply.view_renewal import (
    RENEW_EVERY,
    SETTLED_AFTER,
    ViewRenewal,
    settled_stamp,
)
from cdclake.jobs.iceberg.catalog_view import CatalogViews
from cdclake.jobs.iceberg.commit_metadata import state_stamp
from cdclake.jobs.stream.inline_views import InlineViewRenewal
from cdclake.local.aws.aws_server import DurableAws
from cdclake.plan import Plan
from tests.spark.events import Engine
from tests.spark.glue_catalog import CLIENT, glue_session, serving
from tests.unit.iceberg.test_stored_view import SLOW_STREAM, stored

pytestmark = pytest.mark.spark

LONG = RENEW_EVERY + SETTLED_AFTER
MUCH = 1 << 40


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(DurableAws(tmp_path_factory.mktemp("aws"))) as address:
        yield address


class ViewedTable:
    """A table with two applied batches, and its view in the catalog."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self.engine = Engine(glue_session(spark, url))
        self.plan, self.table = self.engine.plan, self.engine.table
        self.glue: Any = boto3.client("glue", endpoint_url=url, **CLIENT)
        self.name = f"{self.table.name}_current"
        self.stamps: list[int] = []
        self.commits: list[tuple[int, datetime]] = []  # snapshots of the state, and their times
        for key in (1, 2):
            self.apply(key)

    def apply(self, key: int) -> None:
        self.engine.run(self.engine.event("c", 10 * key, 10 * key, id=key, v="a"))
        stamp = self.engine.lake.stamped(self.table.name)
        assert stamp.stamp and stamp.snapshot_id and stamp.stamped_at_ms
        self.stamps.append(state_stamp(stamp.stamp).ingested)
        at = datetime.fromtimestamp(stamp.stamped_at_ms / 1000, UTC)
        self.commits.append((stamp.snapshot_id, at))

    def create_view(self, bound: int | None, plan: Plan | None = None) -> None:
        statement = athena_views(self.table, plan or self.plan, bound)[self.name]
        view = {
            "Name": self.name, "TableType": "VIRTUAL_VIEW",
            "Parameters": {"presto_view": "true"},
            "ViewOriginalText": stored(statement.partition(" AS\n")[2]),
        }  # fmt: skip
        self.glue.create_table(DatabaseName="cdc", TableInput=view)

    def view(self) -> dict[str, Any]:
        found: dict[str, Any] = self.glue.get_table(DatabaseName="cdc", Name=self.name)["Table"]
        return found

    def renew(self, after: timedelta = LONG, min_growth: int = 1) -> int | None:
        """Renew as if it were that much later; the bound that is stored then."""
        renewal = ViewRenewal(CatalogViews(), min_growth)
        now = datetime.now(UTC) + after
        renewal.renew(self.engine.lake, self.plan, self.table, now)
        return bound_of(self.view()["ViewOriginalText"])

    def settled(self, now: datetime) -> int | None:
        return settled_stamp(self.engine.lake.load(self.table.name), now)


@pytest.fixture
def viewed(spark: SparkSession, url: str, monkeypatch: pytest.MonkeyPatch) -> ViewedTable:
    for name, value in {
        "AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": CLIENT["region_name"],
        "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    return ViewedTable(spark, url)


def test_bound_is_renewed_once_in_ten_minutes_and_when_the_tail_has_grown(
    viewed: ViewedTable,
) -> None:
    viewed.create_view(-1)
    assert viewed.renew(RENEW_EVERY - timedelta(seconds=60)) == -1
    assert viewed.renew(min_growth=MUCH) == -1
    assert viewed.renew() == viewed.stamps[1]
    view = viewed.view()
    assert (view["TableType"], view["Parameters"]) == ("VIRTUAL_VIEW", {"presto_view": "true"})
    assert viewed.renew() == viewed.stamps[1]
    assert viewed.view()["VersionId"] == view["VersionId"], "nothing was new"


def test_bound_follows_a_state_that_was_set_back(viewed: ViewedTable) -> None:
    viewed.create_view(viewed.stamps[1])
    first, _ = viewed.commits[0]
    viewed.engine.spark.sql(
        f"CALL lake.system.rollback_to_snapshot('cdc.{viewed.table.name}', {first})"
    )
    assert viewed.renew(min_growth=MUCH) == viewed.stamps[0]
    viewed.apply(3)
    assert viewed.renew() == viewed.stamps[2], "which is no stamp of an abandoned snapshot"


@pytest.mark.slow
def test_expired_commits_count_as_growth(viewed: ViewedTable) -> None:
    viewed.create_view(-1)
    assert viewed.renew(min_growth=MUCH) == -1
    viewed.engine.spark.sql(
        f"CALL lake.system.expire_snapshots(table => 'cdc.{viewed.table.changes}',"
        " older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )
    assert viewed.renew(min_growth=MUCH) == viewed.stamps[1]


@pytest.mark.slow
def test_a_stamp_that_cannot_be_read_is_logged(
    viewed: ViewedTable, caplog: pytest.LogCaptureFixture
) -> None:
    viewed.create_view(-1)
    state = viewed.engine.lake.qualified(viewed.table.name)

    def commit() -> None:
        viewed.engine.spark.sql(f"INSERT INTO {state} SELECT * FROM {state} WHERE false")

    viewed.engine.lake.run_stamped("no stamp", commit)
    assert viewed.renew() == -1
    assert f"table {viewed.table.name}: cannot renew its view" in caplog.text


@pytest.mark.slow
def test_settled_stamp_is_never_newer_than_what_queries_look_up(viewed: ViewedTable) -> None:
    (_, first), (_, second) = viewed.commits
    instant = timedelta(milliseconds=1)
    assert viewed.settled(second + SETTLED_AFTER) == viewed.stamps[1]
    assert viewed.settled(second + SETTLED_AFTER - instant) == viewed.stamps[0]
    assert viewed.settled(first + SETTLED_AFTER - instant) is None, "a young table"
    viewed.engine.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => 'cdc.{viewed.table.name}',"
        " options => map('rewrite-all', 'true'))"
    )
    viewed.engine.spark.sql(
        f"CALL lake.system.expire_snapshots(table => 'cdc.{viewed.table.name}',"
        f" older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 2)"
    )
    assert viewed.settled(second + SETTLED_AFTER) == viewed.stamps[1], "below a compaction"
    assert viewed.settled(second + SETTLED_AFTER - instant) is None, "the others have expired"


@pytest.mark.slow
def test_bound_leaves_the_time_that_the_view_gives_firehose(viewed: ViewedTable) -> None:
    """Also after a deployment with a shorter one: queries subtract the view's from their stamp."""
    name = viewed.table.name
    before = replace(viewed.plan, deliveries=(replace(SLOW_STREAM, tables=(name,)),))
    late = lateness_seconds(before, viewed.table)
    assert late > SLOW_STREAM.retry_seconds and lateness_seconds(viewed.plan, viewed.table) == 0
    viewed.create_view(-1, before)
    assert viewed.renew() == viewed.stamps[1] - late * 1_000_000


@pytest.mark.slow
def test_a_view_that_another_writer_has_replaced_is_kept(
    viewed: ViewedTable, caplog: pytest.LogCaptureFixture
) -> None:
    viewed.create_view(-1)

    def replaced_meanwhile(*_: object) -> int:
        view = {"Name": viewed.name, "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "other"}
        viewed.glue.update_table(DatabaseName="cdc", TableInput=view)
        return 5

    assert CatalogViews().replace_bound("cdc", viewed.name, replaced_meanwhile) is None
    assert viewed.view()["ViewOriginalText"] == "other"
    assert "cannot renew the view's bound" in caplog.text


@pytest.mark.slow
def test_other_views_and_missing_ones_are_left_alone(
    viewed: ViewedTable, caplog: pytest.LogCaptureFixture
) -> None:
    renewal = ViewRenewal(CatalogViews(), 1)
    later = datetime.now(UTC) + LONG
    assert renewal.renew(viewed.engine.lake, viewed.plan, viewed.table, later) is None
    viewed.create_view(None)
    assert viewed.renew() is None
    assert viewed.view()["VersionId"] == "1"
    assert not caplog.records


@pytest.mark.slow
def test_stream_renews_states_with_commits_since_the_last_renewal(viewed: ViewedTable) -> None:
    views = InlineViewRenewal(ViewRenewal(CatalogViews(), 1))
    stream = viewed.engine.stream()
    assert views.chosen([stream]) == [stream], "its state may have commits from before a restart"
    views.renew(stream)
    views.note(stream)
    assert views.chosen([stream]) == [], "ten minutes have not passed"
    stream.schedule.view_checked_at -= RENEW_EVERY
    assert views.chosen([stream]) == [stream]
    stream.schedule.state_updated_at -= RENEW_EVERY + 2 * SETTLED_AFTER
    assert views.chosen([stream]) == [], "the last renewal could use the newest stamp"
    views.note(stream)
    stream.plan = replace(stream.plan, readers=("spark",))
    assert views.chosen([stream]) == []
