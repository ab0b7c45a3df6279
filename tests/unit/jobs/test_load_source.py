"""Access of a bulk load to the source, by JDBC and by libpq."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from cdclake.debezium.connector import SYSTEM_FACTORY
from cdclake.jobs.bulk_load.load_source import LoadSource
from cdclake.jobs.bulk_load.source_reader import SourceReader

PASSWORD, SALT = "p w'\\", "s a\\lt"
NO_SPARK: Any = None


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    file = tmp_path / "secrets.properties"
    file.write_text(f"password={PASSWORD}\nmask_salt={SALT}\n")
    return file


def source(secrets: Path, authorities: str = "", **address: object) -> LoadSource:
    given = {
        "host": "db.example", "port": 5432, "database": "a b", "user": "loader",
        "password": f"${{file:{secrets}:password}}", "sslmode": "verify-full",
    }  # fmt: skip
    text = json.dumps(given | address)
    return LoadSource(NO_SPARK, text, f"${{file:{secrets}:mask_salt}}", authorities)


def conninfo(loading: LoadSource) -> tuple[dict[str, Any], str]:
    """The parameters that libpq gets, and the content of the file of authorities."""
    reader = SourceReader(
        words=loading.words, authorities=loading.authorities, snapshot="00000003-0000001B-1"
    )
    assert PASSWORD not in repr(reader) and "BEGIN CERTIFICATE" not in repr(reader)
    with reader._conninfo() as text:
        found = conninfo_to_dict(text)
        file = found.get("sslrootcert", "system")
        content = "" if file == "system" else Path(str(file)).read_text()
    assert file == "system" or not Path(str(file)).exists()
    return found, content


def test_libpq_and_the_driver_get_the_same_words(secrets: Path) -> None:
    loading = source(secrets, host="::1")
    found, _ = conninfo(loading)
    assert (found["host"], found["dbname"], found["user"]) == ("::1", "a b", "loader")
    assert found["password"] == loading.properties["password"] == PASSWORD
    assert found["sslmode"] == loading.properties["sslmode"] == "verify-full"
    assert found["options"] == loading.properties["options"]
    assert r"cdclake.mask_salt=s\ a\\lt" in str(found["options"])
    assert found["client_encoding"] == "UTF8"
    assert loading.url == "jdbc:postgresql://[::1]:5432/a%20b"


def test_both_trust_the_file_of_the_address(secrets: Path, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("BEGIN CERTIFICATE of the address")
    loading = source(secrets, sslrootcert=str(file))
    assert conninfo(loading)[1] == "BEGIN CERTIFICATE of the address"
    assert loading.properties["sslrootcert"] == str(file)


def test_a_class_of_the_driver_is_a_file_for_libpq(secrets: Path) -> None:
    loading = source(secrets, "BEGIN CERTIFICATE of RDS", sslfactory="cdclake.connect.X")
    assert conninfo(loading)[1] == "BEGIN CERTIFICATE of RDS"
    assert loading.properties["sslfactory"] == "cdclake.connect.X"


def test_the_systems_authorities_are_those_of_libpq(secrets: Path) -> None:
    found, content = conninfo(source(secrets, sslfactory=SYSTEM_FACTORY))
    assert (found["sslrootcert"], content) == ("system", "")
