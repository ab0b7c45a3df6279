"""The checks of this machine, each with a passing and a failing answer."""

from __future__ import annotations

import json
import platform
import shutil
import socket
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from psycopg.conninfo import conninfo_to_dict

from cdclake.check import Check, summary
from cdclake.errors import InputError
from cdclake.extras import LOCAL, install_remedy
from cdclake.local import doctor
from cdclake.local.lake import source, stack
from cdclake.local.lake.source_tls import secured
from cdclake.local.process.home import Home
from cdclake.local.stream_checks import check_publication, check_slot, check_wal_limit
from cdclake.plan import Delivery
from cdclake.postgres.ownership import Owner
from cdclake.postgres.prepare import PublicationState
from tests.unit.postgres.tables import declared, plan, server

Usage = namedtuple("Usage", "total used free")


def check(home: Home, name: str) -> Check:
    [found] = [each for each in doctor.check_machine(home) if each.name == name]
    return found


def program(folder: Path, version: str) -> None:
    """Make a `java` that prints this version, as JAVA_HOME."""
    file = folder / "bin" / "java"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("system", "machine", "state", "remedy"),
    [
        ("Linux", "x86_64", "ok", ""),
        ("Linux", "aarch64", "warning", "linux-amd64"),
        ("Linux", "s390x", "failed", "use linux-amd64 or linux-arm64, or an existing database"),
        ("Darwin", "arm64", "failed", "use Linux on amd64"),
    ],
)
def test_platform(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    machine: str,
    state: str,
    remedy: str,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    found = check(Home(tmp_path), "platform")
    assert (found.state, remedy in found.remedy) == (state, True), found


def test_no_component_starts_on_another_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(stack, "_components", None)  # the next that a start would call
    with pytest.raises(InputError, match="does not start on Darwin"):
        stack.bring_up(Home(tmp_path / "home"))
    assert not (tmp_path / "home").exists()


def test_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "node").touch(0o755)
    monkeypatch.delenv("JSII_NODE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [each.state for each in doctor._node()] == ["ok"]
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    [found] = doctor._node()
    assert (found.state, found.remedy) == ("warning", "install Node.js 22 or 24")
    monkeypatch.setattr(doctor, "missing_modules", lambda _: ["aws_cdk"])
    assert [each.state for each in doctor._node()] == ["skipped"]


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("17.0.9", "ok"),
        ("11.0.2", "failed"),
        ("22.0.2", "warning"),
        ("23", "failed"),
        ("25", "failed"),
    ],
)
def test_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, state: str) -> None:
    program(tmp_path / "java", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    found = check(Home(tmp_path / "home"), "java")
    assert found.state == state
    assert bool(found.remedy) == (state != "ok")


def test_another_java_is_found_after_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    for version, state in (("11.0.2", "failed"), ("17.0.1", "ok")):
        program(tmp_path / version, version)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / version))
        assert check(home, "java").state == state
    assert not home.path.exists()


def test_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = check(Home(tmp_path / "home"), "java")
    assert (found.state, found.remedy) == ("failed", "apt-get install openjdk-17-jdk-headless")


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(Home(tmp_path), "python").state == "ok"
    monkeypatch.setattr(sys, "version_info", (3, 13, 1))
    assert check(Home(tmp_path), "python").state == "warning"


def test_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(Home(tmp_path), "jars").state == "ok"
    monkeypatch.setattr("cdclake.local.components.installed.JARS", tmp_path)
    assert check(Home(tmp_path), "jars").remedy == "run `make setup` in the project's folder"


def test_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(Home(tmp_path), "packages").state == "ok"
    monkeypatch.setattr(doctor, "missing_modules", lambda _: ["pyspark"])
    found = check(Home(tmp_path), "packages")
    assert (found.state, found.remedy) == ("failed", install_remedy(LOCAL))
    assert check(Home(tmp_path), "ports").state == "skipped"


@pytest.mark.parametrize(("free", "state"), [(1, "failed"), (5, "warning"), (50, "ok")])
def test_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, free * 1024**3))
    assert check(Home(tmp_path / "not" / "there"), "disk").state == state


def test_rights_are_checked_and_repaired(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.create()
    assert check(home, "rights").state == "ok"
    home.secrets_file.chmod(0o644)
    assert check(home, "rights").state == "failed"
    assert doctor.repair(home) == [f"{home.secrets_file} is private again"]
    assert check(home, "rights").state == "ok"


def test_ports_that_another_process_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        home.ports_file.write_text(json.dumps({"kafka": taken.getsockname()[1]}))
        assert check(home, "ports").state == "ok"  # nothing runs: `up` chooses another
        running = [{"name": "aws", "state": "running"}]
        monkeypatch.setattr(stack, "components", lambda _: running)
        assert "kafka" in check(home, "ports").detail
        assert check(home, "ports").state == "failed"


def test_without_a_lake_its_check_is_skipped(tmp_path: Path) -> None:
    [found] = doctor.check_lake(Home(tmp_path))
    assert (found.state, str(tmp_path) in found.detail) == ("skipped", True)


@pytest.mark.parametrize(
    ("slot", "state"),
    [
        ({"slot_active": True}, "ok"),
        ({"slot_active": False}, "warning"),
        ({"slot_wal_status": "lost"}, "failed"),
        ({"publication_exists": False}, "failed"),
        ({"slot_exists": False}, "failed"),
    ],
)
def test_slot(slot: dict[str, Any], state: str) -> None:
    exists = {"slot_exists": True, "slot_active": True, "publication_exists": True}
    found = check_slot(server(**{**exists, **slot}), "cdclake_shop")
    assert (found.state, bool(found.remedy)) == (state, state != "ok")
    assert "cdclake_shop" in found.detail


@pytest.mark.parametrize("delivery", ["stream", "firehose"])
def test_a_narrowed_publication(delivery: Delivery) -> None:
    streamed = replace(plan(), tables=(declared(delivery=delivery),))
    name = (streamed.tables[0].schema, streamed.tables[0].table)
    narrowed = PublicationState(True, False, False, {name: None})
    found = check_publication(narrowed, streamed)
    assert (found.state, "public.orders" in found.detail) == ("failed", True)
    assert ("for public.orders do" in found.remedy) == (delivery == "firehose")
    assert check_publication(replace(narrowed, right=True), streamed).state == "ok"


def test_the_limit_of_a_slots_wal() -> None:
    found = check_wal_limit(server(slot_wal_mb=65536))
    assert (found.state, found.detail) == ("ok", "a slot retains at most 65536 MB")
    found = check_wal_limit(server(slot_wal_mb=-1))
    assert (found.state, "unlimited" in found.detail) == ("warning", True)
    assert "max_slot_wal_keep_size" in found.remedy


def test_a_source_that_does_not_answer(tmp_path: Path) -> None:
    dsn = "postgresql://u:secret@127.0.0.1:1/d"
    found = doctor.check_database(dsn, None, Owner("local:a1", "a lake"))
    assert {each.state for each in found} == {"failed"}
    assert "secret" not in str(summary(found))
    assert not summary(found)["ok"]


@pytest.mark.parametrize(
    ("dsn", "message"),
    [
        ("postgresql://u:hidden@a.example.org,b.example.org/d", "several hosts"),
        ("service=shop", "libpq service"),
        ("host=db.example.org sslpassword=hidden", "sslpassword"),
    ],
)
def test_a_source_that_up_refuses_fails(dsn: str, message: str) -> None:
    [found] = doctor.check_database(dsn, None, Owner("local:a1", "a lake"))
    assert (found.name, found.state, message in found.detail) == ("source", "failed", True)
    assert found.remedy and "hidden" not in str(summary([found]))


@pytest.mark.parametrize("is_planned", [False, True])
def test_a_source_is_checked_over_the_connection_of_up(
    monkeypatch: pytest.MonkeyPatch, is_planned: bool
) -> None:
    given: list[str] = []

    def connect(dsn: str) -> NoReturn:
        given.append(dsn)
        raise InputError("it does not answer", "start it")

    for module in (doctor, source):
        monkeypatch.setattr(module, "connect", connect)
    monkeypatch.delenv("PGSSLMODE", raising=False)
    monkeypatch.setenv("PGHOSTADDR", "10.0.0.6")
    dsn, wanted = "postgresql://u@db.example.org/d", plan() if is_planned else None
    doctor.check_database(dsn, wanted, Owner("local:a1", "a lake"))
    assert len(given) == 3 and set(given) == {secured(dsn)}
    parts = conninfo_to_dict(given[0])
    assert (parts["sslmode"], parts["hostaddr"]) == ("require", "")
