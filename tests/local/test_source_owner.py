"""Two lakes that stream the same file from one database: neither destroys what the other has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake.errors import InputError
from cdclake.local import shutdown
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.lake.refused_sources import refuse_another_source
from cdclake.local.lake.source import identity_of, prepare_source
from cdclake.local.lake.source_owner import owner_of
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process import ports
from cdclake.local.process.home import Home
from cdclake.local.streaming_start import _drop_forgotten_slot
from cdclake.plan import Plan
from tests.local.source_database import PASSWORD, proposed, run, running_server

pytestmark = pytest.mark.local


class Lake:
    """Home whose state is that of a lake with an external source; no process runs."""

    def __init__(self, folder: Path, dsn: str, plan: Plan) -> None:
        self.home, self.dsn, self.plan = Home(folder), dsn, plan
        self.home.create()
        ports.assign(self.home, set())

    @property
    def state(self) -> LakeState:
        return LakeState.load(self.home)

    def start(self, password: str = PASSWORD) -> None:
        """Prepare the source as `up` does, and create the slot as its connector does."""
        owner = owner_of(self.home, self.state)
        prepare_source(self.dsn, self.plan, embedded=False, owner=owner, role_password=password)
        slot = self.plan.source_object
        run(
            self.dsn,
            f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"
            f" WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '{slot}')",
        )
        self.home.remember("source_dsn", self.dsn)
        self.save(left_source=False)

    def save(self, left_source: bool = False) -> None:
        state = LakeState(plan=self.plan.to_json(), external=True, epoch=1)
        replace(state, source_id=identity_of(self.dsn), left_source=left_source).save(self.home)


@pytest.fixture
def plan(database: str, tmp_path: Path) -> Plan:
    run(database, "CREATE TABLE t (id int PRIMARY KEY)")
    return proposed(database, tmp_path / "p.yaml")


@pytest.fixture
def a(database: str, tmp_path: Path, plan: Plan) -> Lake:
    return Lake(tmp_path / "a", database, plan)


@pytest.fixture
def b(database: str, tmp_path: Path, plan: Plan) -> Iterator[Lake]:
    lake = Lake(tmp_path / "b", database, plan)
    yield lake
    if run(database, f"SELECT 1 FROM pg_roles WHERE rolname = '{plan.source_object}'"):
        mark = owner_of(lake.home, lake.state).mark
        run(database, f"""COMMENT ON ROLE "{plan.source_object}" IS '{mark}'""")
    lake.home.remember("source_dsn", database)
    lake.save()  # its slot and role belong to the whole server, which the next test uses
    shutdown.down(lake.home, purge=True)


def objects(lake: Lake) -> tuple[int, int, int]:
    """Count slots, publications and roles of the pipeline's name."""
    name = lake.plan.source_object
    [counted] = run(
        lake.dsn,
        f"SELECT (SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{name}'),"
        f" (SELECT count(*) FROM pg_publication WHERE pubname = '{name}'),"
        f" (SELECT count(*) FROM pg_roles WHERE rolname = '{name}')",
    )
    return counted[0], counted[1], counted[2]


def logs_in(lake: Lake, password: str) -> bool:
    dsn = make_conninfo(lake.dsn, user=lake.plan.source_object, password=password)
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_purge_after_down_leaves_the_next_lake_alone(a: Lake, b: Lake) -> None:
    a.start()
    assert len(shutdown.down(a.home, purge=False)["dropped"]) == 4
    b.start("of-b")
    assert shutdown.down(a.home, purge=True)["dropped"] == []
    assert objects(b) == (1, 1, 1)
    assert logs_in(b, "of-b")


def test_leaving_refuses_the_objects_of_another_lake_and_names_it(a: Lake, b: Lake) -> None:
    a.start()
    shutdown.down(a.home, purge=False)
    b.start("of-b")
    a.save(left_source=False)  # as the state of an earlier version, which does not say it
    with pytest.raises(InputError, match="belong to another lake") as refused:
        shutdown.down(a.home, purge=True)
    assert str(b.home.path) in refused.value.message
    for statement in ("pg_drop_replication_slot", "DROP PUBLICATION", "DROP ROLE", "--keep-slot"):
        assert statement in refused.value.remedy
    assert objects(b) == (1, 1, 1)
    assert shutdown.down(a.home, purge=True, keep_slot=True)["purged"]
    assert objects(b) == (1, 1, 1)


def test_an_unread_slot_of_another_lake_is_not_dropped(a: Lake, b: Lake) -> None:
    b.start("of-b")
    first = LakeState(plan=a.plan.to_json(), external=True)
    fake = LocalLake(
        home=a.home, state=first, plan=a.plan, endpoints=cast("Endpoints", None), dsn=a.dsn
    )
    with pytest.raises(InputError, match="belong to another lake"):
        _drop_forgotten_slot(fake)
    assert objects(b) == (1, 1, 1)
    _drop_forgotten_slot(replace(fake, home=b.home))
    assert objects(b) == (0, 1, 1)


def test_another_lake_keeps_its_password(a: Lake, b: Lake) -> None:
    a.start()
    shutdown.down(a.home, purge=False)
    b.start("of-b")
    with pytest.raises(InputError, match="belong to another lake"):
        a.start()
    assert logs_in(b, "of-b")


@pytest.mark.parametrize("made", [True, False])
def test_objects_of_an_earlier_version_belong_to_the_lake_that_made_them(
    a: Lake, b: Lake, made: bool
) -> None:
    b.start("of-b")
    run(b.dsn, f'COMMENT ON ROLE "{a.plan.source_object}" IS NULL')
    a.home.remember("source_dsn", a.dsn)
    a.save(left_source=not made)
    if made:
        a.start()
        assert logs_in(a, PASSWORD)
        assert owner_of_a_is_marked(a)
        return
    with pytest.raises(InputError, match="not made by this lake"):
        a.start()
    assert logs_in(b, "of-b")


def owner_of_a_is_marked(lake: Lake) -> bool:
    query = "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = "
    [[comment]] = run(lake.dsn, f"{query}'{lake.plan.source_object}'")
    return bool(comment == owner_of(lake.home, lake.state).mark)


@pytest.fixture(scope="module")
def another_server() -> Iterator[str]:
    with running_server() as server:
        yield server


def test_another_server_is_refused_until_the_lake_has_left(
    a: Lake, another_server: str, database: str
) -> None:
    a.start()
    name = conninfo_to_dict(database)["dbname"]
    run(f"{another_server}/postgres", f"CREATE DATABASE {name}")
    other = f"{another_server}/{name}"
    for dsn in (other, make_conninfo(database, dbname="postgres")):
        with pytest.raises(InputError, match="is another one") as refused:
            refuse_another_source(a.home, a.state, dsn)
        assert "cdclake down" in refused.value.remedy
    shutdown.down(a.home, purge=False)
    refuse_another_source(a.home, a.state, other)


def test_the_same_server_by_another_name_or_login_is_not_another(a: Lake, database: str) -> None:
    a.start()
    run(database, "CREATE ROLE again SUPERUSER LOGIN PASSWORD 'again'")
    for changes in ({}, {"user": "again", "password": "again"}):
        refuse_another_source(a.home, a.state, make_conninfo(database, host="localhost", **changes))
    refuse_another_source(a.home, a.state, make_conninfo(database, user="again", password="again"))
    run(database, "DROP ROLE again")
    shutdown.down(a.home, purge=True)


def test_a_user_without_the_right_still_names_the_database(database: str) -> None:
    run(database, "CREATE ROLE plain LOGIN PASSWORD 'plain'")
    plain = make_conninfo(database, user="plain", password="plain")
    assert identity_of(plain) == identity_of(database)
    run(database, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    assert identity_of(plain) == "/" + identity_of(database).partition("/")[2]
    run(database, "DROP ROLE plain")
