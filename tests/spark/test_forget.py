"""Erasure in the engine: nothing of an erased key is left or comes back, and others stay."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.control_objects import ForgetRequest, erased_name
from cdclake.debezium.position import Position
from cdclake.derived_table import DerivedTable
from cdclake.erasures import ErasedKeys, Erasures, KeyHash
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.erasure.content_search import search_content
from cdclake.jobs.erasure.reachable_files import reachable_files
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.operations import erasure
from cdclake.jobs.operations.erasure import erase_rows
from cdclake.plan import Column
from tests.spark.events import Engine, MemoryStore, plan_of
from tests.spark.test_changelog_readers import Reader

pytestmark = pytest.mark.spark

ERASED, KEPT = "Aaliyah Erased", "Bartholomew Kept"
SALT = "salt"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in a folder need no margin between their times."""
    monkeypatch.setattr(erasure, "CLOCK_MARGIN_S", 0.0)


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


def register(engine: Engine, key: object, prev: int) -> str:
    """Register the key as erased by the transaction after the commit `prev`."""
    hashed = KeyHash.of(engine.table.name, SALT)
    digest = hashed.digest([key])
    position = str(Position(1, prev, 1, 0, 0))
    erasures = Erasures(hashed.fingerprint).added([digest], position)
    engine.erased = ErasedKeys.of(engine.table.name, SALT, erasures)
    return digest


def erase(engine: Engine, digest: str, position: str = "") -> dict[str, object] | None:
    """Erase, and return the counts; the older metadata files had the old snapshots."""
    request, store = ForgetRequest("r", (digest,), position), MemoryStore()
    done = erase_rows(request, engine.place, engine.stream(), store)  # type: ignore[arg-type]
    if done is not None:
        assert done.pop("metadata").keys() == {*tables(engine)}
    return done


def tables(engine: Engine) -> tuple[str, ...]:
    return (engine.table.name, engine.table.changes, naming.QUARANTINE)


def stored(engine: Engine, text: str) -> Iterator[str]:
    """Parts of reachable files that have the text."""
    sought = SoughtValues([SoughtValue("v", text)])
    for name in tables(engine):
        metadata = engine.lake.load(name).operations().current().metadataFileLocation()
        for location in reachable_files(_read, metadata):
            found = search_content(location, _read(location), sought)
            yield from (f"{name}: {part}" for part, _ in found)


def _read(location: str) -> bytes:
    return Path(urlparse(location).path).read_bytes()


def fill(engine: Engine) -> None:
    """Both rows in every place: changelog, state behind a delete, quarantine, old snapshots."""
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v=ERASED), e("c", 20, 20, id=2, v=KEPT))
    refused = [(b'{"id": %d}' % n, b'{"op": "u", "v": "%s"}' % v.encode())
               for n, v in ((1, ERASED), (2, KEPT))]  # fmt: skip
    engine.run(e("u", 30, 30, id=1, v=ERASED, big="x"), e("u", 40, 40, id=2, v=KEPT), *refused)
    engine.place.quarantined = 2
    one_manifest(engine, e("u", 42, 42, id=2, v=KEPT), e("u", 44, 44, id=1, v=ERASED))
    engine.run(e("d", 50, 50, id=1))


def one_manifest(engine: Engine, *events: dict[str, Any]) -> None:
    """One commit with a file for each event, from different partitions of the topic."""
    offset, records, ranges = engine.next_offset, [], {}
    for partition, event in enumerate(events):
        first = offset if partition == 0 else 0
        topic, _, *rest = engine.record(first, event)
        records.append((topic, partition, *rest))
        ranges[partition] = (first, first + 1)
    engine.run_records(records, ranges)
    engine.next_offset += 1


def test_an_erased_row_is_stored_nowhere_and_the_others_stay(engine: Engine) -> None:
    fill(engine)
    assert {part.split(": ")[0] for part in stored(engine, ERASED)} == set(tables(engine))
    stamp, state = engine.lake.stamped(engine.table.changes).stamp, engine.state()
    applied = applied_through(engine.lake, engine.table)
    done = erase(engine, register(engine, 1, 60))
    assert done == {"events": 4, "keys": 1, "records": 1, "derived": []}
    assert list(stored(engine, ERASED)) == []
    assert {part.split(": ")[0] for part in stored(engine, KEPT)} == set(tables(engine))
    assert [row["id"] for row in engine.log()] == [2, 2, 2]
    assert engine.state() == state == {2: (KEPT, None)}
    assert [row["offset"] for row in engine.quarantined()] == [5]
    assert engine.place.quarantined == 1
    for name in tables(engine):
        assert len(list(engine.lake.load(name).snapshots())) == 1
    after = engine.lake.stamped(engine.table.changes)
    assert after.is_current and after.stamp is not None and stamp is not None
    offsets = '"offsets": {"0": 8, "1": 1}'
    assert offsets in after.stamp and offsets in stamp
    assert applied_through(engine.lake, engine.table) == applied


def test_a_stream_that_had_read_everything_has_to_start_again(
    engine: Engine, tmp_path: Path
) -> None:
    reader = Reader(engine.spark, f"lake.cdc.{engine.table.changes}", tmp_path)
    engine.run(engine.event("c", 10, 10, id=1, v=ERASED))
    reader.run()
    assert erase(engine, register(engine, 1, 60)) is not None
    with pytest.raises(StreamingQueryException, match="expired"):
        reader.run()


def test_events_before_the_erasure_do_not_come_back_and_a_new_row_flows(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "cdclake.stream")
    fill(engine)
    digest = register(engine, 1, 60)
    erase(engine, digest)
    e = engine.event
    engine.run(
        e("c", 10, 10, id=1, v=ERASED),
        e("u", 30, 35, id=1, v=ERASED),
        e("u", 55, 56, id=2, v="changed"),
        (b'{"id": 1}', b'{"op": "u", "cdc_epoch": "1", "v": "%s", "source":'
         b' {"lsn": 35, "sequence": "[\\"30\\",\\"35\\"]"}}' % ERASED.encode()),
        e("d", 50, 50, id=1),
    )  # fmt: skip
    assert "dropped 4 older events of erased rows" in caplog.text
    assert engine.state() == {2: ("changed", None)} and list(stored(engine, ERASED)) == []
    assert [row["offset"] for row in engine.quarantined()] == [5]
    engine.run(e("c", 60, 61, id=1, v="comes back"))
    assert engine.state() == {1: ("comes back", None), 2: ("changed", None)}
    assert erase(engine, digest) == {"events": 0, "keys": 0, "records": 0, "derived": []}
    assert engine.state() == {1: ("comes back", None), 2: ("changed", None)}


@pytest.mark.slow
def test_an_erasure_that_dies_in_between_is_done_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(engine)
    digest = register(engine, 1, 60)
    for name in ("rewrite_without_deleted", "keep_current_snapshot"):
        with monkeypatch.context() as patched:
            patched.setattr(erasure, name, lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                erase(engine, digest)
        assert list(stored(engine, ERASED)) != []
    assert erase(engine, digest) == {"events": 0, "keys": 0, "records": 0, "derived": []}
    assert list(stored(engine, ERASED)) == []
    assert engine.state() == {2: (KEPT, None)}
    engine.run(engine.event("u", 70, 70, id=2, v="goes on"))
    assert engine.state() == {2: ("goes on", None)}


@pytest.mark.slow
def test_a_key_that_the_state_spells_otherwise_and_format_3(spark: SparkSession) -> None:
    columns = tuple(
        Column(source=name, name=name, type=kind)
        for name, kind in (("id", "numeric(9,2)"), ("v", "text"), ("big", "text"))
    )
    engine = Engine(spark, replace(plan_of(columns=columns), format_version=3))
    e = engine.event
    engine.run(e("c", 10, 10, id="1.50", v=ERASED), e("c", 20, 20, id="2.50", v=KEPT))  # type: ignore[arg-type]
    engine.run(e("u", 30, 30, id="1.50", v=f"{ERASED} again"))  # type: ignore[arg-type]
    engine.run(e("d", 50, 50, id="1.50"))  # type: ignore[arg-type]
    done = erase(engine, register(engine, "1.5", 60))
    assert done == {"events": 3, "keys": 1, "records": 0, "derived": []}
    assert list(stored(engine, ERASED)) == []
    assert [str(row["id"]) for row in engine.lake.read(engine.table.name).collect()] == ["2.50"]


@pytest.mark.slow
def test_an_erasure_waits_for_a_batch_that_knows_the_key_and_for_the_leases(
    engine: Engine,
) -> None:
    fill(engine)
    assert erase(engine, "unknown") is None
    digest = register(engine, 1, 60)
    assert erase(engine, "unknown") is None
    assert erase(engine, digest, str(Position(1, 61, 1, 0, 0))) is None  # an earlier erasure's
    first_refresh = DerivedTable(
        name="names",
        sql=f"SELECT id, v FROM {engine.table.name}_current",
        key=("id",),
        schedule="rate(1 hour)",
        sources=(engine.table.name,),
        format="parquet",
    )
    engine.plan = replace(engine.plan, derived=(first_refresh,))
    for name in (engine.table.changes, first_refresh.name):
        with engine.leases.hold(name):
            assert erase(engine, digest) is None
    assert len(engine.log()) == 7
    assert isinstance(engine.place, TableProgress) and erase(engine, digest) is not None


@pytest.mark.slow
def test_a_record_that_has_an_erased_ones_place_stays(engine: Engine) -> None:
    """The topic was created again, so another record has the offset."""
    erased = (b'{"id": 1}', b'{"op": "u", "v": "%s"}' % ERASED.encode())
    kept = (b'{"id": 2}', b'{"op": "u", "v": "%s"}' % KEPT.encode())
    engine.run(erased, offset=0)
    engine.run(kept, offset=0, epoch=2)
    assert erase(engine, register(engine, 1, 60)) == {
        "events": 0, "keys": 0, "records": 1, "derived": [],
    }  # fmt: skip
    assert [bytes(row["key"]) for row in engine.quarantined()] == [b'{"id": 2}']


def test_a_record_of_a_former_name_is_erased(engine: Engine) -> None:
    broken = b'{"op": "u", "v": "%s"}' % ERASED.encode()
    engine.run((b'{"id": 1}', broken), (b'{"id": 2}', broken))
    quarantine = engine.lake.qualified(naming.QUARANTINE)
    first, other = engine.quarantined()
    spelled = f"UPDATE {quarantine} SET `table` = 'former' WHERE offset = {first['offset']}"
    engine.lake.spark.sql(spelled)
    engine.place.quarantined = 1  # of the present name
    done = erase(engine, register(engine, 1, 60))
    assert done is not None and done["records"] == 1
    left = [row["offset"] for row in engine.quarantined()]
    assert (left, engine.place.quarantined) == ([other["offset"]], 1)


def test_an_erasure_ends_before_another_job_may_write(engine: Engine) -> None:
    """Unreachable files from before its end are deleted, also if the outcome is late."""
    engine.run(engine.event("c", 10, 10, id=1, v=ERASED))
    digest, held = register(engine, 1, 60), dict[str, bool]()

    class Noting(MemoryStore):
        def write(self, name: str, content: dict[str, Any]) -> None:
            super().write(name, content)
            for table in tables(engine) if name == erased_name(engine.table.name) else ():
                with engine.leases.try_hold(table) as is_free:
                    held[table] = not is_free

    store: Any = Noting()
    assert erase_rows(ForgetRequest("r", (digest,)), engine.place, engine.stream(), store)
    assert held == dict.fromkeys(tables(engine), True)
