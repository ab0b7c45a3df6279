"""The job `forget_rows` with its declared arguments: the local form of `forget --target aws`.

The stream, S3 with versions, Glue's catalog, Secrets Manager, Kafka and PostgreSQL are the local
lake's. Glue's runs are processes here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.config.aws_model import Aws
from cdclake.control_objects import FORGETS, PAUSE
from cdclake.deployed.erasure import erase
from cdclake.errors import CdcError, ComponentFailed, InputError, NotRunning
from cdclake.fail_points import FAIL_POINT_KEY
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.erasure.stored_objects import object_versions
from cdclake.jobs.forget.erase import leftovers
from cdclake.local.forget.local_erasure_backend import LocalErasureBackend
from cdclake.local.lake.lake import LocalLake
from tests.local.deployed_runs import local_arguments, started
from tests.local.erased_lake import changed_lake_in, erased_of, opened_lake, with_versions
from tests.local.running import RunningLake

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1500)]

ROWS = 40
GRACE = timedelta(seconds=2)
NAMES = ("mail", "name")
CREATED = """
create table people (mail text primary key, name text, city text, score numeric(5,2), note text);
insert into people select md5('mail' || i) || '@example.org', md5('name' || i), 'Springfield', 1.5,
  case when i % 9 = 0 then repeat(md5('note' || i), 90) end
  from generate_series(1, 40) i;
"""
CHANGED = """
update people set name = md5('second' || name) where mail < '8';
update people set score = 'NaN' where mail like '%f@%';
"""
FILE = """
version: 1
name: erased
source: {database: postgres}
stream: {trigger_seconds: 2}
tables:
  public.people:
    key: [mail]
    partition_by: [city]
    columns: {mail: text, name: text, city: text, score: "numeric(5,2)", note: text}
derived:
  names:
    sql: SELECT mail, name FROM people_current
    key: [mail]
  names_json:
    sql: SELECT mail, name, city FROM people_current
    key: [mail]
    format: json
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("forget")
    with changed_lake_in(folder, FILE, CREATED, CHANGED) as running:
        yield running


@pytest.fixture
def lake(running: RunningLake, monkeypatch: pytest.MonkeyPatch) -> LocalLake:
    return with_versions(opened_lake(running, monkeypatch))


@dataclass
class Runs:
    """Runs of the job, in place of those of Glue."""

    lake: LocalLake
    name: str = naming.FORGET_JOB

    @property
    def control_uri(self) -> str:
        return self.lake.control_uri

    @property
    def deployment(self) -> Any:
        return SimpleNamespace(plan=self.lake.plan, aws=Aws())

    def run(self, tables: list[str], **more: str) -> dict[str, Any]:
        given = {f"--{name}": value for name, value in more.items()} | {"--run": more["order"]}
        self.arguments = local_arguments(self.lake, self.name) | given
        self.arguments["--tables"] = ",".join(tables)
        job = started(self.lake, self.name, self.arguments)
        if job.process.wait(400) < 0:
            return {"error": {"code": "component_failed", "message": "killed", "remedy": ""}}
        return report_of(self.lake, more["order"])


def report_of(lake: LocalLake, run: str) -> dict[str, Any]:
    stored = lake.control.read(naming.report_name(run))
    assert stored is not None
    return stored.content


def forget(lake: LocalLake, *mails: str) -> dict[str, Any]:
    runs: Any = Runs(lake)
    try:
        return erase(runs, lake.plan.table("people"), [(mail,) for mail in mails], GRACE)
    finally:
        assert orders(lake) == []
        for mail in mails:
            assert mail not in json.dumps(runs.arguments)
            assert mail not in lake.home.log(naming.FORGET_JOB).read_text()


def orders(lake: LocalLake) -> list[str]:
    """Versions and delete markers of the objects with keys."""
    folder = f"{lake.control_uri.removeprefix(f's3://{lake.bucket}/')}/{FORGETS}/"
    return [version.key for version in object_versions(lake.client("s3"), lake.bucket, folder)]


def rows(running: RunningLake, first: int, last: int) -> list[tuple[str, str]]:
    """Mails and names as the source has computed them."""
    with running.connect() as connection:
        return connection.execute(
            "select md5('mail' || i) || '@example.org', md5('name' || i)"
            " from generate_series(%s::int, %s::int) i", (first, last),
        ).fetchall()  # fmt: skip


def delete(running: RunningLake, mails: list[str]) -> None:
    with running.connect() as connection:
        connection.execute("delete from people where mail = any(%s)", (mails,))
    running.run("verify", expect=None)


def left(lake: LocalLake, values: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Places of the values, found by the command's search, which includes the lake's logs."""
    table = lake.plan.table("people")
    sought = [SoughtValue(name, v) for row in values for name, v in zip(NAMES, row, strict=True)]
    found, _ = leftovers(LocalErasureBackend(lake), table, SoughtValues(sought))
    return found


def test_refusals_touch_nothing_and_name_no_key(running: RunningLake, lake: LocalLake) -> None:
    [[mail, _]] = rows(running, 1, 1)
    with pytest.raises(InputError, match="the source still has key number 1 in"):
        forget(lake, mail)
    lake.control.write(PAUSE, {})
    with pytest.raises(NotRunning, match="paused"):
        forget(lake, mail)
    lake.control.delete(PAUSE)
    assert running.sql(f"select count(*) from people_current where mail = '{mail}'") == [[1]]
    assert not [*lake.control.names("erasures")]


def test_a_run_without_an_order_erases_nothing(lake: LocalLake) -> None:
    given = {"--tables": "people", "--order": "none", "--grace": "0", "--run": "none"}
    job = started(lake, naming.FORGET_JOB, local_arguments(lake, naming.FORGET_JOB) | given)
    assert job.process.wait(300) == 1
    assert "no order" in report_of(lake, "none")["error"]["message"]


def test_rows_leave_everything_also_older_versions(running: RunningLake, lake: LocalLake) -> None:
    values = rows(running, 1, 20)
    mails = [mail for mail, _ in values]
    delete(running, mails)
    [folder, *_] = LocalErasureBackend(lake).objects.folders_of(lake.plan.table("people"))
    client, planted = lake.client("s3"), f"{folder}data/planted.txt"
    client.put_object(Bucket=lake.bucket, Key=planted, Body=mails[0].encode())
    client.delete_object(Bucket=lake.bucket, Key=planted)
    before = {place["where"] for place in left(lake, values)}
    assert any(f"{planted} (version " in where for where in before)
    report = forget(lake, *mails)
    assert (report["ok"], report["stored"], report["keys"]) == (True, [], 20)
    assert (erased_of(report, "rows"), report["redacted_files"]) == ({"people": 20}, [])
    assert sorted(erased_of(report, "derived table")) == ["names", "names_json"]
    assert any("CloudWatch" in place["where"] for place in report["remaining"])
    found = [place for place in left(lake, values) if place["where"].startswith("s3://")]
    assert found == []
    assert not [v for v in object_versions(client, lake.bucket, folder) if v.key == planted]
    assert running.sql("select count(*) from people_current") == [[ROWS - 20]]
    assert running.sql("select count(*) from names") == [[ROWS - 20]]


def test_nothing_comes_back_and_a_new_row_flows(running: RunningLake, lake: LocalLake) -> None:
    values = rows(running, 1, 20)
    with running.connect() as connection:
        connection.execute("update people set score = 3 where score = 'NaN'")
    running.run("verify", expect=None)
    running.run("replay")
    running.run("resync", "people")
    assert [place for place in left(lake, values) if place["where"].startswith("s3://")] == []
    with running.connect() as connection:
        connection.execute(
            "insert into people values (%s, 'new', 'Springfield', 1)", (values[0][0],)
        )
    running.run("verify", expect=None)
    query = f"select name from people_current where mail = '{values[0][0]}'"
    assert running.sql(query) == [["new"]]


def test_a_version_that_cannot_be_erased_fails_the_proof(
    running: RunningLake, lake: LocalLake
) -> None:
    [[mail, _]] = rows(running, 21, 21)
    client, key = lake.client("s3"), "plans/planted.json"
    client.put_object(Bucket=lake.bucket, Key=key, Body=json.dumps({"to": mail}).encode())
    client.put_object(Bucket=lake.bucket, Key=key, Body=b"{}")
    delete(running, [mail])
    report = forget(lake, mail)
    assert not report["ok"]
    [where] = {place["where"] for place in report["stored"]}
    assert where.startswith(f"s3://{lake.bucket}/{key} (version ")
    for version in object_versions(client, lake.bucket, key):
        client.delete_object(Bucket=lake.bucket, Key=key, **version.identity)
    again = forget(lake, mail)
    assert again["ok"] and erased_of(again, "rows") == {"people": 0}
    assert erased_of(again, "events") == {"people_changes": 0}


@pytest.mark.parametrize(
    ("point", "number"),
    [("between_request_and_register", 22), ("between_erasure_and_deletion", 23)],
)
def test_a_killed_run_is_completed_by_the_next(
    running: RunningLake, lake: LocalLake, monkeypatch: pytest.MonkeyPatch, point: str, number: int
) -> None:
    values = rows(running, number, number)
    [[mail, _]] = values
    delete(running, [mail])
    monkeypatch.setenv(FAIL_POINT_KEY, point)
    with pytest.raises(CdcError, match="killed"):
        forget(lake, mail)
    monkeypatch.delenv(FAIL_POINT_KEY)
    assert [place for place in left(lake, values) if place["where"].startswith("s3://")]
    assert forget(lake, mail)["ok"]
    assert [place for place in left(lake, values) if place["where"].startswith("s3://")] == []


def test_a_damaged_object_fails_the_proof_without_its_content(
    running: RunningLake, lake: LocalLake
) -> None:
    [[mail, _]] = rows(running, 24, 24)
    client, key = lake.client("s3"), "plans/damaged.parquet"
    client.put_object(Bucket=lake.bucket, Key=key, Body=b"PAR1" + mail.encode())
    delete(running, [mail])
    with pytest.raises(ComponentFailed, match=f"{key} cannot be searched: ") as caught:
        forget(lake, mail)
    assert mail not in str(caught.value)
    for version in object_versions(client, lake.bucket, key):
        client.delete_object(Bucket=lake.bucket, Key=key, **version.identity)
    assert forget(lake, mail)["ok"]
