"""Plans that would abandon waiting or failed records are refused."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.local.firehose.journal import Journal, journal_file
from cdclake.local.firehose.shards import KinesisSource, checkpoints_file
from cdclake.local.lake import lake as local_lake
from cdclake.local.lake.lake import BUCKET, LakeState
from cdclake.local.process import ports
from cdclake.local.process.home import Home
from cdclake.local.puts.abandoned_records import refuse_to_abandon, refuse_to_leave
from cdclake.plan import Plan
from tests.unit.config.test_firehose import file as delivered

FILE = """\
version: 1
name: site
puts:
  clicks: {columns: {id: int}}
"""
VISITS = "  visits: {source: kinesis, columns: {id: int}}\n"


def plan_of(folder: Path, text: str) -> Plan:
    path = folder / "site.yaml"
    path.write_text(text)
    return load_plan(path)


def state_of(plan: Plan) -> LakeState:
    return LakeState(plan=plan.to_json(), pipeline_file="site.yaml")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home whose AWS is moto."""
    home = Home(tmp_path / "home")
    home.create()
    ports.assign(home, frozenset())
    monkeypatch.setattr(local_lake, "use_local_aws", lambda _: None)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield home


def test_redriven_rows_keep_the_last_delivered_table(home: Home, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, delivered())
    streamed = replace(plan, deliveries=())
    journal = Journal(journal_file(home))
    [offset] = journal.append("shop-cdclake.redrive", [b"{}"])
    refuse_to_leave(home, state_of(plan), plan)
    with pytest.raises(InputError, match=r"1 records of the stream shop-cdclake\.redrive"):
        refuse_to_leave(home, state_of(plan), streamed)
    journal.forget("shop-cdclake.redrive", offset + 1)
    refuse_to_leave(home, state_of(plan), streamed)


@pytest.mark.parametrize("after", ["", VISITS.replace("kinesis", "direct_put")])
def test_a_kinesis_stream_leaves_only_when_nothing_waits_in_it(
    home: Home, tmp_path: Path, after: str
) -> None:
    before, left = plan_of(tmp_path, FILE + VISITS), plan_of(tmp_path, FILE + after)
    kinesis: Any = boto3.client("kinesis")
    kinesis.create_stream(StreamName="site-visits", ShardCount=2)
    refuse_to_abandon(home, state_of(before), left)
    kinesis.put_record(StreamName="site-visits", Data=b"{}", PartitionKey="k")
    refuse_to_abandon(home, state_of(before), before)
    with pytest.raises(InputError, match="1 records of the stream site-visits") as refused:
        refuse_to_abandon(home, state_of(before), left)
    assert "cdclake up site.yaml" in refused.value.remedy
    file = checkpoints_file(home, "site-visits")
    source = KinesisSource(kinesis, "site-visits", file, lambda _: None)
    [record] = source.read(10)
    source.commit({record.partition: record.offset + 1})
    refuse_to_abandon(home, state_of(before), left)


@pytest.mark.parametrize("kind", ["processing-failed", "iceberg-failed", "redriven"])
def test_an_error_prefix_with_records_stays(home: Home, tmp_path: Path, kind: str) -> None:
    before = plan_of(tmp_path, FILE)
    after = plan_of(tmp_path, FILE + "firehose: {error_prefix: failed-eu}\n")
    refuse_to_abandon(home, state_of(before), after)
    boto3.client("s3").put_object(Bucket=BUCKET, Key=f"firehose/{kind}/2026/x", Body=b"{}")
    for same in (before, replace(before, puts=())):
        refuse_to_abandon(home, state_of(before), same)
    with pytest.raises(InputError, match="'firehose' to 'failed-eu'") as refused:
        refuse_to_abandon(home, state_of(before), after)
    assert refused.value.remedy == "restore `error_prefix: firehose`"


def test_a_first_plan_abandons_nothing(home: Home, tmp_path: Path) -> None:
    refuse_to_abandon(home, LakeState(), plan_of(tmp_path, FILE))
