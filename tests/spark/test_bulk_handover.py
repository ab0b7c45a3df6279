"""Handover of a deployed load, with the slots of a real source and records that are only kept."""

from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest

from cdclake import naming
from cdclake.debezium.connect_offset import UNFINISHED, offset_key, offset_value
from cdclake.errors import CdcError, ComponentFailed, InputError
from cdclake.jobs.bulk_load.bulk_load import BulkLoad
from cdclake.jobs.bulk_load.connector_start import ConnectorStart, read_slot
from cdclake.jobs.bulk_load.load_source import LoadSource
from cdclake.jobs.control.leases import Leases
from tests.local.source_database import running_server
from tests.spark.bulk import BulkSource
from tests.spark.events import Engine, MemoryStore, plan_of

pytestmark = pytest.mark.spark

KEY = offset_key("shop-prod-source", "shop")
CREATE = "SELECT pg_create_logical_replication_slot('handed', 'pgoutput')"
CONFIRMED = """SELECT (confirmed_flush_lsn - '0/0'::pg_lsn)::bigint FROM pg_replication_slots
    WHERE slot_name = 'handed'"""


@dataclass
class KeptRecords:
    """The newest record of each key, in place of the topic; see tests/local/test_bulk_handover."""

    topic: str = "offsets"
    records: dict[str, str | None] = field(default_factory=dict)

    def newest(self) -> dict[str, str | None]:
        return self.records

    def write(self, key: str, value: str) -> None:
        self.records[key] = value


@pytest.fixture(scope="module")
def database(spark, tmp_path_factory):
    secrets = tmp_path_factory.mktemp("secrets") / "secrets.properties"
    with running_server() as server:
        dsn = f"{server}/postgres"
        secrets.write_text(f"password={psycopg.conninfo.conninfo_to_dict(dsn)['password']}\n")
        yield BulkSource(spark, dsn, secrets)


@pytest.fixture
def source(database):
    """The same, without a slot."""
    yield database
    database.run(
        "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE active",
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots",
    )


def handover(epoch: int = 1, record: str | None = None) -> ConnectorStart:
    offsets: Any = KeptRecords(records={KEY: record} if record else {})
    control: Any = MemoryStore()
    return ConnectorStart(offsets=offsets, key=KEY, slot="handed", epoch=epoch, control=control)


def of(source: BulkSource) -> LoadSource:
    return source.jdbc()


def refused(handing: ConnectorStart, source: BulkSource) -> str:
    """Why the load may not begin; nothing has changed."""
    before = dict(handing.offsets.newest()), source.run(CONFIRMED)
    with pytest.raises(InputError) as error:
        handing.begin(of(source))
    assert (dict(handing.offsets.newest()), source.run(CONFIRMED)) == before
    return str(error.value)


@pytest.mark.slow
def test_a_first_load_keeps_the_connector_from_starting(source):
    handing = handover()
    handing.begin(of(source))
    assert handing.offsets.newest() == {KEY: UNFINISHED}


def test_the_slot_of_a_load_that_was_killed_is_dropped(source):
    handing = handover(epoch=2)
    handing.control.write(naming.load_start(1), {"lsn": 1})
    handing.offsets.write(KEY, UNFINISHED)
    source.run(CREATE)
    handing.begin(of(source))
    assert read_slot(of(source), "handed") is None


def test_a_load_into_an_epoch_with_rows_is_refused(source):
    handing = handover(epoch=2)
    handing.control.write(naming.load_start(2), {"lsn": 1})
    handing.offsets.write(KEY, UNFINISHED)
    source.run(CREATE)
    assert "has rows of epoch 2; increase `aws: connect: epoch`" in refused(handing, source)


def test_a_connector_that_can_go_on_needs_no_load(source):
    handing = handover(epoch=2)
    source.run(CREATE)
    handing.offsets.write(KEY, offset_value(16))
    assert "can start at LSN 16" in refused(handing, source)
    source.run("SELECT pg_drop_replication_slot('handed')")
    handing.begin(of(source))
    assert handing.offsets.newest() == {KEY: UNFINISHED}


def test_a_load_next_to_a_deployed_stream_is_refused(source):
    handing = handover()
    handing.control.write(naming.STREAM_ORDER, {"deployment": "0a"})
    assert "the stream is running" in refused(handing, source)


def test_a_load_next_to_a_connector_is_refused(source):
    handing = handover()
    source.run(CREATE)
    with source.reading("handed"):
        assert "the connector is running" in refused(handing, source)


def test_the_connector_gets_the_lsn_of_an_intact_slot(source):
    source.run(CREATE)
    [[lsn]] = source.run(CONFIRMED)
    handing = handover(record=UNFINISHED)
    handing.complete(of(source), lsn)
    assert handing.offsets.newest() == {KEY: offset_value(lsn)}


@pytest.mark.parametrize(
    ("between", "message"),
    [
        ("SELECT pg_drop_replication_slot('handed')", "handed was lost"),
        ("SELECT pg_replication_slot_advance('handed', pg_current_wal_lsn())", "another client"),
    ],
)
def test_a_connector_that_would_miss_changes_gets_no_position(source, between, message):
    source.run(CREATE)
    [[lsn]] = source.run(CONFIRMED)
    source.run("SELECT pg_logical_emit_message(true, 'x', 'written during the load')", between)
    handing = handover(record=UNFINISHED)
    with pytest.raises(ComponentFailed, match=message) as error:
        handing.complete(of(source), lsn)
    assert "increase `aws: connect: epoch`" in error.value.remedy
    assert handing.offsets.newest() == {KEY: UNFINISHED}


def test_a_position_of_a_connector_is_not_overwritten(source):
    source.run(CREATE)
    [[lsn]] = source.run(CONFIRMED)
    handing = handover(record=offset_value(lsn + 1))
    with pytest.raises(ComponentFailed, match="stored a position"):
        handing.complete(of(source), lsn)
    assert handing.offsets.newest() == {KEY: offset_value(lsn + 1)}


class FullStore(MemoryStore):
    """Control objects that cannot be written any more once the slot exists."""

    def write(self, name: str, content: dict[str, Any]) -> None:
        if name == naming.load_start(1):
            raise ComponentFailed("no space", "make some", component="s3")
        super().write(name, content)


@pytest.mark.parametrize(
    "control", [pytest.param(MemoryStore(), marks=pytest.mark.slow), FullStore()]
)
def test_a_load_that_fails_leaves_no_slot(spark, source, control):
    engine = Engine(spark, plan_of())
    handing = replace(handover(), control=control)
    bulk = BulkLoad(engine.plan, engine.lake, control, Leases(control, naming.LOAD_JOB), 1, handing)
    source.run(f"CREATE TABLE {engine.table.name} (id bigint PRIMARY KEY)")  # columns are missing
    if isinstance(control, FullStore):
        with pytest.raises(ComponentFailed, match="no space"):
            bulk.run(of(source), "handed")
    else:
        assert [report.error is None for report in bulk.run(of(source), "handed")] == [False]
    assert read_slot(of(source), "handed") is None
    assert handing.offsets.newest() == {KEY: UNFINISHED}


def test_a_position_that_another_client_overwrites_is_no_position(source):
    class Overwritten(KeptRecords):
        def write(self, key: str, value: str) -> None:
            super().write(key, offset_value(1))

    offsets: Any = Overwritten()
    with pytest.raises(CdcError, match="another position"):
        replace(handover(), offsets=offsets).begin(of(source))
