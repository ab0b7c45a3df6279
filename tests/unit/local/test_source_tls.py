"""Encryption of connections to the source, for psycopg and for the driver alike."""

import os
import pwd
from pathlib import Path

import pytest
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.errors import InputError
from cdclake.local.lake.lake import source_parts
from cdclake.local.lake.source_tls import driver_tls, refuse_options, secured
from cdclake.plan import Plan


@pytest.mark.parametrize(
    ("dsn", "mode"),
    [
        ("postgresql://u@db.example.org/d", "require"),
        ("postgresql://u@10.0.0.5/d", "require"),
        ("postgresql://u@db.example.org/d?sslmode=disable", "disable"),
        ("postgresql://u@db.example.org/d?sslmode=verify-full", "verify-full"),
        ("postgresql://u@localhost/d", None),
        ("host=/tmp user=u", None),
        ("host=127.0.0.1 sslmode=require", "require"),
        ("host=db.example.org hostaddr=127.0.0.1", None),
    ],
)
def test_encryption_is_the_default_off_this_machine(monkeypatch, dsn, mode):
    monkeypatch.delenv("PGSSLMODE", raising=False)
    assert conninfo_to_dict(secured(dsn)).get("sslmode") == mode
    assert secured(secured(dsn)) == secured(dsn)


def test_the_environment_and_relative_paths_hold_for_other_processes(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGSSLMODE", "verify-ca")
    found = conninfo_to_dict(secured("postgresql://h/d?sslrootcert=ca.pem"))
    assert (found["sslmode"], found["sslrootcert"]) == ("verify-ca", str(tmp_path / "ca.pem"))


def test_every_file_of_the_dsn_is_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGSSLCRL", "crl.pem")
    given = "sslcert=client.pem sslkey=client.key sslcrldir=crls passfile=pass"
    found = conninfo_to_dict(secured(f"host=h {given}"))
    files = ("client.pem", "client.key", "crl.pem", "crls", "pass")
    names = ("sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile")
    assert [found[name] for name in names] == [str(tmp_path / file) for file in files]
    values = "sslkey=engine:key sslrootcert=system passfile=''"
    found = conninfo_to_dict(secured(f"host=h sslmode=verify-full {values}"))
    assert [found[name] for name in ("sslkey", "sslrootcert", "passfile")] == [
        *("engine:key", "system", ""),
    ]


def test_the_address_of_the_environment_is_that_of_the_driver(monkeypatch):
    for name, value in (("PGHOST", "db.example.org"), ("PGPORT", "6432"), ("PGDATABASE", "shop")):
        monkeypatch.setenv(name, value)
    parts = source_parts(secured("user=u"))
    assert (parts["host"], parts["port"], parts["dbname"]) == ("db.example.org", 6432, "shop")
    parts = source_parts(secured("postgresql://u@127.0.0.1:5433/d"))
    assert (parts["host"], parts["port"], parts["dbname"]) == ("127.0.0.1", 5433, "d")
    monkeypatch.delenv("PGUSER", raising=False)
    parts, user = source_parts("host=127.0.0.1"), pwd.getpwuid(os.geteuid()).pw_name
    assert (parts["user"], parts["dbname"]) == (user, user)
    monkeypatch.delenv("PGHOST")
    assert source_parts(secured("hostaddr=10.0.0.5 user=u"))["host"] == "10.0.0.5"
    monkeypatch.setenv("PGHOSTADDR", "10.0.0.6")
    found = {"user=u": "10.0.0.6", "host=db user=u": "db", "hostaddr=10.0.0.5": "10.0.0.5"}
    for dsn, host in found.items():
        assert source_parts(secured(dsn))["host"] == host
        assert driver_tls(secured(dsn))["sslmode"] == "require"
        assert _reached(secured(dsn)) == host


def _reached(dsn: str) -> str:
    """Return the address that libpq takes: hostaddr before host."""
    connection = pq.PGconn.connect_start(f"{dsn} port=1".encode())
    found = {option.keyword: option.val for option in connection.info}
    return ((found[b"hostaddr"] or found[b"host"]) or b"").decode()


@pytest.mark.parametrize(
    ("dsn", "variables", "message"),
    [
        ("postgresql://u@a,b/d", {}, "several hosts \\(a,b\\)"),
        ("user=u", {"PGHOST": "a,b"}, "several hosts"),
        ("hostaddr=10.0.0.5,10.0.0.6", {}, "several hosts"),
        ("hostaddr=10.0.0.5,10.0.0.6 port=5432,5433", {}, "several hosts"),
        ("service=shop", {}, "libpq service"),
        ("host=h", {"PGSERVICE": "shop"}, "libpq service"),
        ("host=h sslpassword=x", {}, "sslpassword"),
        ("postgres//u@h", {}, "invalid DSN"),
        ("user=u", {"PGPORT": "x"}, "invalid DSN"),
    ],
)
def test_addresses_that_the_driver_cannot_use_are_refused(monkeypatch, dsn, variables, message):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=message):
        refuse_options(dsn)


def test_an_invalid_dsn_is_left_to_the_connection():
    assert secured("postgres//u@h") == "postgres//u@h"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {"sslmode": "prefer"}),
        ("sslmode=verify-full sslrootcert=/ca", {"sslmode": "verify-full", "sslrootcert": "/ca"}),
        ("sslmode=require sslrootcert=/ca", {"sslmode": "verify-ca", "sslrootcert": "/ca"}),
        (
            "sslmode=verify-full sslrootcert=system",
            {
                "sslmode": "verify-full",
                "sslfactory": "org.postgresql.ssl.DefaultJavaSSLFactory",
            },
        ),
    ],
)
def test_the_driver_checks_what_libpq_checks(words, expected):
    assert driver_tls(f"host=h {words}") == expected


def test_the_connector_trusts_the_same_authorities(tmp_path: Path):
    address = SourceAddress(
        host="h", port=1, database="d", user="u", password="p",
        **driver_tls("host=h sslmode=verify-full sslrootcert=/ca"),
    )  # fmt: skip
    plan = Plan(name="x", source_database="d", lake_database="l", tables=())
    config = connector_config(plan, address, epoch=1, mask_salt="", max_queue_bytes=1)
    assert config["database.sslmode"] == "verify-full"
    assert config["database.sslrootcert"] == "/ca"
