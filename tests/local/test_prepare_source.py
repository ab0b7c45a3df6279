"""The function that prepares the source, run for real: PostgreSQL over TLS, secrets by moto."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import boto3
import psycopg
import pytest
from moto import mock_aws
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake import naming
from cdclake.config.resolve import load_plan
from cdclake.plan import Plan
from tests.certificates import certified
from tests.given_folders import given_folder, needs_files
from tests.load_function import load
from tests.local.source_database import run

pytestmark = pytest.mark.local

STACK = "arn:aws:cloudformation:eu-west-1:123456789012:stack/shop-cdc/0a1b2c3d"
CONTEXT = SimpleNamespace(log_stream_name="2026/11/22/[1]abc")
ADMIN, ADMIN_PASSWORD, ROLE_PASSWORD = "keeper", "admin-tiger-1", "role-tiger-2"
TABLES = """
CREATE ROLE keeper LOGIN CREATEROLE REPLICATION PASSWORD 'admin-tiger-1';
CREATE TABLE orders (id int PRIMARY KEY, note text); ALTER TABLE orders OWNER TO keeper;
CREATE TABLE items (id int PRIMARY KEY); ALTER TABLE items OWNER TO keeper;
"""
PIPELINE = """
version: 1
name: {name}
source: {{database: {name}}}
tables:
  public.orders: {{key: [id], columns: {{id: integer, note: text}}}}
"""
ITEMS = "  public.items: {key: [id], columns: {id: integer}}\n"
NOWHERE = "  public.nowhere: {key: [id], columns: {id: integer}}\n"


def speak_tls(dsn: str, certificate: str, key: str) -> None:
    """Have the server identify itself so from the next connection on."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, text in (("server.crt", certificate), ("server.key", key)):
            lines = ", ".join(f"('{line}')" for line in text.splitlines())
            connection.execute(
                f"COPY (VALUES {lines}) TO PROGRAM 'cat > {name} && chmod 600 {name}'".encode()
            )
        connection.execute("ALTER SYSTEM SET ssl = on")
        connection.execute("SELECT pg_reload_conf(), pg_sleep(0.5)")


@pytest.fixture
def authority(server: str, tmp_path: Path) -> Path:
    certificate, key = certified("127.0.0.1")
    speak_tls(f"{server}/postgres", certificate, key)
    file = tmp_path / "ca.pem"
    file.write_text(certificate)
    return file


class Deployment:
    """The function on one database, in CloudFormation's hands."""

    def __init__(self, module: ModuleType, folder: Path, dsn: str, url: str, told: Any) -> None:
        self.module, self.folder, self.dsn, self.url, self.told = module, folder, dsn, url, told
        self.name = str(conninfo_to_dict(dsn)["dbname"])
        self.plan = self.declare()

    def declare(self, more: str = "") -> Plan:
        """The pipeline file with these lines, in the function's package."""
        file = self.folder / "pipeline.yaml"
        file.write_text(PIPELINE.format(name=self.name) + more)
        self.plan = load_plan(file)
        (self.folder / "plan.json").write_text(self.plan.to_json(), encoding="utf-8")
        return self.plan

    def ask(self, request: str, **more: Any) -> dict[str, Any]:
        """What CloudFormation is answered."""
        event = {
            "RequestType": request,
            "ResponseURL": self.url,
            "StackId": STACK,
            "RequestId": "request",
            "LogicalResourceId": "Preparation",
            **({} if request == "Create" else {"PhysicalResourceId": "Preparation"}),
            **more,
        }
        self.module.handler(event, CONTEXT)
        return dict(self.told.pop())

    def published(self) -> set[str]:
        query = f"SELECT tablename FROM pg_publication_tables WHERE pubname = '{self.slot}'"
        return {row[0] for row in run(self.dsn, query)}

    @property
    def slot(self) -> str:
        return self.plan.source_object

    def slots(self) -> list[tuple[Any, ...]]:
        query = "SELECT active FROM pg_replication_slots WHERE slot_name = "
        return run(self.dsn, f"{query}'{self.slot}'")


@pytest.fixture
def deployed(
    database: str, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployment]:
    parts = conninfo_to_dict(database)
    run(database, TABLES, f"GRANT CREATE ON DATABASE {parts['dbname']} TO keeper")
    told: list[dict[str, Any]] = []
    listening = HTTPServer(("127.0.0.1", 0), taking(told))
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    module = load("prepare_source")
    monkeypatch.setattr(module, "PLAN", tmp_path / "plan.json")
    monkeypatch.setattr(module, "AUTHORITIES", authority)
    for name, value in (
        ("HOST", parts["host"]),
        ("PORT", parts["port"]),
        ("DATABASE", parts["dbname"]),
        ("ADMIN_SECRET", "admin"),
        ("LOGIN_SECRET", "login"),
        ("BUCKET", "state"),
        ("AWS_ACCESS_KEY_ID", "moto"),
        ("AWS_SECRET_ACCESS_KEY", "moto"),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
    ):
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws(config={"core": {"passthrough": {"urls": [".*127.0.0.1.*"]}}}):
        where = {"LocationConstraint": "eu-west-1"}
        boto3.client("s3").create_bucket(Bucket="state", CreateBucketConfiguration=where)
        secrets = boto3.client("secretsmanager")
        for name, user, password in (
            ("admin", ADMIN, ADMIN_PASSWORD),
            ("login", "unused", ROLE_PASSWORD),
        ):
            login = json.dumps({"username": user, "password": password})
            secrets.create_secret(Name=name, SecretString=login)
        url = f"http://127.0.0.1:{listening.server_port}/answer"
        yield Deployment(module, tmp_path, database, url, told)
    listening.shutdown()
    run(database, f"DROP OWNED BY {ADMIN} CASCADE", f"DROP ROLE {ADMIN}")


def taking(told: list[dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Taking(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == ""
            told.append(json.loads(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Not to the tests' output."""

    return Taking


def test_a_source_is_prepared_again_and_again_and_left_at_the_end(deployed, caplog):
    caplog.set_level(logging.INFO)  # the level of the function; botocore would show more below it
    for request in ("Create", "Update", "Update"):
        told = deployed.ask(request)
        assert (told["Status"], told["PhysicalResourceId"]) == ("SUCCESS", "Preparation"), told
    assert deployed.published() == {"orders", "heartbeat", "signal"}
    role = make_conninfo(deployed.dsn, user=deployed.slot, password=ROLE_PASSWORD)
    assert run(role, "TABLE public.orders") == []
    run(role, f"SELECT pg_create_logical_replication_slot('{deployed.slot}', 'pgoutput')")

    deployed.declare(ITEMS)
    assert deployed.ask("Update")["Status"] == "SUCCESS"
    assert deployed.published() == {"orders", "items", "heartbeat", "signal"}
    assert deployed.slots() == [(False,)]  # an update never drops it

    assert deployed.ask("Delete")["Status"] == "SUCCESS"
    assert deployed.slots() == []
    assert deployed.published() == set()
    assert run(deployed.dsn, f"SELECT 1 FROM pg_roles WHERE rolname = '{deployed.slot}'") == []
    assert run(deployed.dsn, "SELECT count(*) FROM orders") == [(0,)]  # the user's stay
    assert deployed.ask("Delete")["Status"] == "SUCCESS"  # as after an answer that was lost
    for password in (ADMIN_PASSWORD, ROLE_PASSWORD):
        assert password not in caplog.text


def test_a_new_password_leaves_sessions_of_the_old_one_alone(deployed):
    """As in docs/runbooks/rotate-passwords.md: new value, then a deployment."""
    assert deployed.ask("Create")["Status"] == "SUCCESS"
    old = make_conninfo(deployed.dsn, user=deployed.slot, password=ROLE_PASSWORD)
    with psycopg.connect(old, autocommit=True) as running:
        value = json.dumps({"username": deployed.slot, "password": "rotated"})
        boto3.client("secretsmanager").put_secret_value(SecretId="login", SecretString=value)
        assert run(old, "SELECT 1") == [(1,)]  # until the deployment
        assert deployed.ask("Update")["Status"] == "SUCCESS"
        assert running.execute("SELECT 2").fetchall() == [(2,)]
    new = make_conninfo(deployed.dsn, user=deployed.slot, password="rotated")
    assert run(new, "SELECT 3") == [(3,)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(old)


def test_the_administrators_new_password_is_read_at_the_next_call(deployed):
    """RDS rotates it without a deployment."""
    assert deployed.ask("Create")["Status"] == "SUCCESS"
    run(deployed.dsn, f"ALTER ROLE {ADMIN} PASSWORD 'rotated'")
    value = json.dumps({"username": ADMIN, "password": "rotated"})
    boto3.client("secretsmanager").put_secret_value(SecretId="admin", SecretString=value)
    assert deployed.ask("Update")["Status"] == "SUCCESS"


@pytest.fixture
def scheduled(deployed: Deployment, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """The prepared source, and what the scheduled check is given."""
    assert deployed.ask("Create")["Status"] == "SUCCESS"
    login = json.dumps({"username": deployed.slot, "password": ROLE_PASSWORD})
    boto3.client("secretsmanager").put_secret_value(SecretId="login", SecretString=login)
    monkeypatch.setenv("DIMENSION", "shop")
    monkeypatch.delenv("ADMIN_SECRET")
    return deployed


def test_a_schedule_finds_what_has_changed_and_remembers_it(scheduled):
    deployed, s3, check = scheduled, boto3.client("s3"), scheduled.module.check
    assert check({}, CONTEXT) == {"changed": 0, "new_columns": 0}
    assert check({}, CONTEXT) == {"changed": 0, "new_columns": 0}
    run(deployed.dsn, "ALTER TABLE orders RENAME TO older")
    assert check({}, CONTEXT) == {"changed": 1, "new_columns": 0}
    run(deployed.dsn, "CREATE TABLE orders (id int PRIMARY KEY, note text)")
    for _ in range(2):  # a change is reported until the table is read again
        assert check({}, CONTEXT) == {"changed": 1, "new_columns": 0}
    stored = json.loads(s3.get_object(Bucket="state", Key="control/relations.json")["Body"].read())
    assert list(stored["tables"]) == ["public.orders"]
    published = boto3.client("cloudwatch").list_metrics(Namespace="cdclake")["Metrics"]
    assert {each["MetricName"] for each in published} == {"ChangedRelations", "NewColumns"}


@pytest.mark.parametrize(
    "narrowing", ["SET (publish = 'insert, update')", "DROP TABLE orders", "DROP"]
)
def test_a_deployment_does_not_forget_what_it_repairs(scheduled, monkeypatch, narrowing):
    """It may come before the next check; the deletes of that time are still in the lake."""
    check = scheduled.module.check
    assert check({}, CONTEXT) == {"changed": 0, "new_columns": 0}
    drop = f"DROP PUBLICATION {scheduled.slot}"
    change = f"ALTER PUBLICATION {scheduled.slot} {narrowing}"
    run(scheduled.dsn, drop if narrowing == "DROP" else change)
    monkeypatch.setenv("ADMIN_SECRET", "admin")
    scheduled.declare(ITEMS)
    assert scheduled.ask("Update")["Status"] == "SUCCESS"
    assert scheduled.published() == {"orders", "items", "heartbeat", "signal"}
    for _ in range(2):  # not of `items`, which is new
        assert check({}, CONTEXT) == {"changed": 1, "new_columns": 0}


def test_a_new_epoch_begins_with_new_records(scheduled, monkeypatch):
    check = scheduled.module.check
    assert check({}, CONTEXT)["changed"] == 0
    again = TABLES.splitlines()[2]  # the role exists
    run(scheduled.dsn, f"DROP PUBLICATION {scheduled.slot}", "DROP TABLE orders", again)
    monkeypatch.setenv("ADMIN_SECRET", "admin")
    epochs = {"OldResourceProperties": {"Epoch": "1"}, "ResourceProperties": {"Epoch": "2"}}
    for properties, changed in (({}, 1), (epochs, 0)):
        assert scheduled.ask("Update", **properties)["Status"] == "SUCCESS"
        assert check({}, CONTEXT)["changed"] == changed


def test_a_schedule_notes_widened_and_new_columns_for_the_stream(scheduled):
    check, s3, deployed = scheduled.module.check, boto3.client("s3"), scheduled

    def stored() -> dict[str, Any]:
        found = s3.list_objects_v2(Bucket="state", Prefix="control/")["Contents"]
        objects = ((each["Key"], s3.get_object(Bucket="state", Key=each["Key"])) for each in found)
        return {
            key.removeprefix("control/"): json.loads(each["Body"].read()) for key, each in objects
        }

    deployed.declare("policies: {new_columns: stop}\n")
    assert check({}, CONTEXT)["new_columns"] == 0
    assert stored().keys() == {"relations.json"}
    run(deployed.dsn, "ALTER TABLE orders ALTER id TYPE bigint, ADD more text, ADD shape box")
    assert check({}, CONTEXT)["new_columns"] == 2
    assert stored()["widened.json"] == {"tables": {"orders": {"id": "bigint"}}}
    noted = {"orders": {"more": "text", "shape": None}}
    assert stored()["new_columns.json"] == {"tables": noted}
    requests = {"repairs/orders.replay.json", "resume/orders.json"}
    assert stored().keys() >= requests
    for name in requests:
        s3.delete_object(Bucket="state", Key=f"control/{name}")
    check({}, CONTEXT)  # nothing has changed since
    assert not stored().keys() & requests
    run(deployed.dsn, "ALTER TABLE orders DROP more, DROP shape")
    assert check({}, CONTEXT)["new_columns"] == 0
    assert stored()["new_columns.json"] == {"tables": {}}
    assert stored()["resume/orders.json"] == {"mended": "columns"}


def test_what_speaks_against_it_stops_the_deployment_and_changes_nothing(deployed):
    deployed.declare(NOWHERE)
    told = deployed.ask("Create")
    assert (told["Status"], told["PhysicalResourceId"]) == ("FAILED", "not-prepared")
    assert "public.nowhere" in told["Reason"] and "[1]abc" in told["Reason"]
    assert deployed.published() == set()
    assert run(deployed.dsn, f"SELECT 1 FROM pg_roles WHERE rolname = '{deployed.slot}'") == []


def test_a_right_that_the_administrator_may_not_grant_stops_the_deployment(deployed):
    run(
        deployed.dsn,
        f"REVOKE CONNECT ON DATABASE {deployed.name} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {deployed.name} TO {ADMIN}",
    )
    told = deployed.ask("Create")
    assert told["Status"] == "FAILED"
    grant = f'GRANT CONNECT ON DATABASE "{deployed.name}" TO "{ADMIN}" WITH GRANT OPTION;'
    assert grant in told["Reason"]
    assert run(deployed.dsn, f"SELECT 1 FROM pg_roles WHERE rolname = '{deployed.slot}'") == []
    run(deployed.dsn, grant)
    assert deployed.ask("Create")["Status"] == "SUCCESS"
    role = make_conninfo(deployed.dsn, user=deployed.slot, password=ROLE_PASSWORD)
    assert run(role, "TABLE public.orders") == []
    assert deployed.ask("Delete")["Status"] == "SUCCESS"


def test_undoing_what_failed_asks_nobody(deployed, monkeypatch):
    monkeypatch.setenv("PORT", "9")
    told = deployed.ask("Delete", PhysicalResourceId="not-prepared")
    assert told["Status"] == "SUCCESS"
    assert deployed.ask("Delete")["Status"] == "FAILED"  # a slot may be there, and keep WAL


@pytest.mark.parametrize("host", ["another host", "another authority"])
def test_a_server_that_nobody_vouches_for_gets_no_password(deployed, server, monkeypatch, host):
    wrong, key = certified("127.0.0.2" if host == "another host" else "127.0.0.1")
    right = deployed.module.AUTHORITIES.read_text()
    if host == "another host":
        speak_tls(f"{server}/postgres", wrong, key)
    trusted = deployed.folder / "trusted.pem"
    trusted.write_text(wrong)
    monkeypatch.setattr(deployed.module, "AUTHORITIES", trusted)
    told = deployed.ask("Create")
    assert told["Status"] == "FAILED"
    assert told["Reason"].startswith("OperationalError; log ")
    assert right != wrong


def test_a_login_that_is_not_there_is_an_answer_too(deployed, monkeypatch):
    monkeypatch.setenv("LOGIN_SECRET", "nobody")
    told = deployed.ask("Create")
    assert told["Status"] == "FAILED"
    assert "(ResourceNotFoundException) when calling the GetSecretValue" in told["Reason"]


@needs_files("pagila")
def test_pagila_is_loaded_by_the_function(deployed):
    s3 = boto3.client("s3")
    # As RDS's administrator may.
    run(deployed.dsn, f"GRANT CREATE ON SCHEMA public TO {ADMIN}")
    run(deployed.dsn, f"GRANT SET ON PARAMETER session_replication_role TO {ADMIN}")
    told = {}
    for name in ("pagila-schema.sql", "pagila-data.sql"):
        key = f"{naming.SOURCE_SQL_PREFIX}/{name}"
        s3.put_object(Bucket="state", Key=key, Body=(given_folder("pagila") / name).read_bytes())
        event = {"key": name, "name": name, "keep_owners": False}
        told[name] = deployed.module.run_sql(event, CONTEXT)
    assert "error" not in {**told["pagila-schema.sql"], **told["pagila-data.sql"]}, told
    assert told["pagila-schema.sql"]["skipped_owners"] > 50
    counted = run(deployed.dsn, "SELECT count(*) FROM public.rental, (SELECT count(*) FROM film) f")
    assert counted == [(16044,)]
    assert told["pagila-data.sql"]["copied_rows"] > 40_000


def test_names_without_a_schema_are_those_of_public(deployed):
    s3 = boto3.client("s3")
    run(deployed.dsn, f"GRANT CREATE ON SCHEMA public TO {ADMIN}")
    body = b"CREATE TYPE mood AS ENUM ('calm'); CREATE TABLE moods (id int PRIMARY KEY, felt mood);"
    s3.put_object(Bucket="state", Key=f"{naming.SOURCE_SQL_PREFIX}/s", Body=body)
    told = deployed.module.run_sql({"key": "s", "name": "s.sql", "keep_owners": False}, CONTEXT)
    assert "error" not in told
    assert run(deployed.dsn, "SELECT to_regclass('public.moods') IS NOT NULL") == [(True,)]


def test_a_statement_that_fails_is_named_with_its_line(deployed):
    s3 = boto3.client("s3")
    body = b"CREATE SCHEMA mine;\nSELECT * FROM nowhere;\n"
    s3.put_object(Bucket="state", Key=f"{naming.SOURCE_SQL_PREFIX}/x", Body=body)
    told = deployed.module.run_sql({"key": "x", "name": "x.sql", "keep_owners": False}, CONTEXT)
    assert told["error"]["message"] == 'x.sql:2: relation "nowhere" does not exist'
