"""`cdclake forget` of rows that Firehose delivers: they leave also its failed records, for good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from cdclake import naming
from cdclake.debezium.changelog_rows import Place
from cdclake.firehose.rows import DeliveredRows, encode
from cdclake.jobs.erasure.sought_values import SoughtValue
from cdclake.jobs.erasure.stored_objects import object_versions
from cdclake.local.firehose.iceberg_tables import LogTables
from cdclake.local.firehose.rows import read_row
from cdclake.local.firehose.topic import TopicSource
from cdclake.local.lake.lake import LocalLake
from cdclake.redrive.service import now_us
from tests.local.deployed_runs import local_arguments, started
from tests.local.erased_lake import erased_of, left_in, opened_lake, with_versions
from tests.local.running import RunningLake, streamed_lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1500)]

ROWS, ERASED = 60, 40
CREATED = """
create table people (id bigint primary key, mail text, name text, score numeric(5,2));
create table visits (id bigint primary key, person bigint, page text);
insert into people select i, md5('mail' || i) || '@example.org', md5('name' || i), 1.5
  from generate_series(1, 60) i;
insert into visits select i, i, md5('page' || i) from generate_series(1, 60) i;
"""
FILE = """
version: 1
name: erased
source: {database: postgres}
stream: {trigger_seconds: 2}
firehose:
  buffer: {seconds: 2, mib: 64}
  function: {seconds: 1, mib: 1}
  domains: {web: {}}
tables:
  public.people:
    key: [id]
    delivery: firehose
    domain: web
    columns: {id: bigint, mail: text, name: text, score: "numeric(5,2)"}
  public.visits:
    key: [id]
    delivery: firehose
    domain: web
    columns: {id: bigint, person: bigint, page: text}
derived:
  mails:
    sql: SELECT id, mail FROM people_current
    key: [id]
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with streamed_lake_in(tmp_path_factory.mktemp("forget"), FILE, CREATED) as running:
        yield running


@pytest.fixture
def opened(lake: RunningLake, monkeypatch: pytest.MonkeyPatch) -> LocalLake:
    return with_versions(opened_lake(lake, monkeypatch))


def execute(lake: RunningLake, statement: str) -> None:
    with lake.connect() as connection:
        connection.execute(statement.encode())


def texts(lake: RunningLake, first: int, last: int) -> list[SoughtValue]:
    """Return mails and names of these rows, as PostgreSQL computes them."""
    with lake.connect() as connection:
        rows = connection.execute(
            "select md5('mail' || i) || '@example.org', md5('name' || i)"
            " from generate_series(%s::int, %s::int) i", (first, last),
        ).fetchall()  # fmt: skip
    return [SoughtValue(n, v) for row in rows for n, v in zip(("mail", "name"), row, strict=True)]


def failed(lake: RunningLake) -> int:
    return int(next(t["failed"] for t in lake.run("status")["tables"] if t["table"] == "people"))


def fail(lake: RunningLake, first: int, last: int) -> None:
    """Give rows a value that their type cannot hold: their events fail in Firehose's function."""
    before = failed(lake)
    execute(lake, f"update people set score = 'NaN' where id between {first} and {last}")
    lake.eventually(lambda: failed(lake) == before + last - first + 1)


def test_rows_leave_changelog_failed_records_and_quarantine(
    lake: RunningLake, opened: LocalLake
) -> None:
    fail(lake, 31, 42)
    lake.run("redrive")
    quarantined = 'select count(distinct "offset") from cdclake_quarantine'
    lake.eventually(lambda: lake.sql(quarantined) == [[12]])
    fail(lake, 36, 45)
    lake.run("job", "apply_changes")
    lake.run("job", "refresh_derived")
    execute(lake, f"delete from people where id <= {ERASED}")
    values = texts(lake, 1, ERASED)
    assert {"JSON", "values of column mail"} <= {place["part"] for place in left_in(opened, values)}
    keys = lake.home.parent / "keys.txt"
    keys.write_text("".join(f"{number}\n" for number in range(1, ERASED + 1)))
    report = lake.run("forget", "people", "--keys", str(keys), "--yes", "--grace", "1s")
    assert (report["stored"], report["elsewhere"], report["keys"]) == ([], [], ERASED)
    assert erased_of(report, "records") == {"cdclake_quarantine": 10}
    assert erased_of(report, "failed records") == {"firehose": 10 + 5}
    assert erased_of(report, "derived table") == {"mails": None}
    assert left_in(opened, values) == []
    assert failed(lake) == 5  # those of the rows 41 to 45
    assert lake.sql(quarantined) == [[2]]
    assert lake.sql("select count(*) from people_current") == [[ROWS - ERASED]]
    assert lake.sql("select count(*) from people") == [[ROWS - ERASED]]
    assert lake.sql("select count(*) from visits_current") == [[ROWS]]


def test_a_second_reading_of_kafka_and_a_redrive_bring_nothing_back(
    lake: RunningLake, opened: LocalLake
) -> None:
    visits = "select count(*) from visits_changes"
    [[before]] = lake.sql(visits)
    lake.run("pause")
    group = naming.delivery_group(opened.plan.name, "web")
    delete_group(opened, group)
    lake.run("resume")
    lake.eventually(lambda: lake.sql(visits) == [[2 * before]], 60)
    lake.run("redrive")
    execute(lake, "insert into people values (5, 'comes back', 'new@example.org', 1)")
    name = "select mail from people_current where id = 5"
    lake.eventually(lambda: lake.sql(name) == [["comes back"]])
    assert left_in(opened, texts(lake, 1, ERASED)) == []
    lake.run("job", "apply_changes")
    assert lake.sql(f"select id from people where id <= {ERASED}") == [[5]]


def delete_group(opened: LocalLake, group: str) -> None:
    """Make the stream of this group read its topic from the beginning."""
    admin = AdminClient({**opened.kafka.settings})  # answers as long as it is referred to
    for future in admin.delete_consumer_groups([group], request_timeout=20).values():
        future.result()


def test_an_event_that_arrives_late_is_erased_by_the_next_run(
    lake: RunningLake, opened: LocalLake
) -> None:
    """As one that the function had decoded before the key was registered."""
    late = decoded_event(opened, 7)
    keys, database = opened.endpoints.keys, opened.plan.lake_database
    tables = LogTables(opened.glue, opened.s3, keys, database)
    row = read_row(encode(late).encode(), tables.schema("people_changes"))
    tables.append("people_changes", [row])
    mine = "select (select count(*) from people_changes where id = 7)"
    assert lake.sql(mine) == [[1]]
    lake.run("job", "apply_changes")
    assert lake.sql(mine) == [[0]]
    assert lake.sql("select count(*) from people where id = 7") == [[0]]


def decoded_event(opened: LocalLake, number: int) -> Mapping[str, Any]:
    """Decode the creation of a row, which Kafka still has."""
    table = opened.plan.table("people")
    source, rows = TopicSource(opened.kafka, "late", table.topic), DeliveredRows(opened.plan)
    while records := source.read(1000):
        for record in records:
            place = Place(record.partition, record.offset)
            decoded = rows.decode(record.value or b"", place, now_us(), {})
            if decoded and (decoded[0], decoded[1]["id"]) == (table, number):
                return decoded[1]
    raise AssertionError(f"Kafka has no event of {number}")


def test_another_erasure_finds_nothing_of_those_before(
    lake: RunningLake, opened: LocalLake
) -> None:
    fail(lake, 41, 41)
    execute(lake, "delete from people where id = 41")
    report = lake.run("forget", "people", "41", "--yes", "--grace", "1s")
    [failed_records] = erased_of(report, "failed records").values()
    assert report["stored"] == [] and failed_records is not None and failed_records >= 1
    names = [v.key for v in object_versions(opened.client("s3"), opened.bucket, "firehose/")]
    assert names


def test_deployed_comparison_does_not_await_erased_records(
    lake: RunningLake, opened: LocalLake
) -> None:
    """The topic's last event was the deletion of the row that is erased now."""
    given = {"--run": "erased", "--wait": "60", "--runs": ""}
    arguments = local_arguments(opened, naming.VERIFY_JOB) | given
    started(opened, naming.VERIFY_JOB, arguments).process.wait(300)
    report = opened.control.read(naming.report_name("erased"))
    assert report is not None
    assert {each["table"]: each["error"] for each in report.content["tables"]} == {
        "people": None, "visits": None
    }  # fmt: skip
