"""Reading of a snapshot by binary COPY, from a server that identifies itself by a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.conninfo import conninfo_to_dict

from cdclake.jobs.bulk_load.source_reader import SourceReader, SourceRefused
from tests.certificates import certified
from tests.local.source_database import running_server
from tests.local.test_prepare_source import speak_tls

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, str]]:
    """A superuser's DSN, and the server's certificate."""
    with running_server() as url:
        certificate, key = certified("127.0.0.1")
        speak_tls(f"{url}/postgres", certificate, key)
        yield f"{url}/postgres", certificate


@pytest.fixture
def snapshot(server: tuple[str, str]) -> Iterator[str]:
    """Name of an exported snapshot with three rows; one has been deleted since."""
    with psycopg.connect(server[0]) as holder, psycopg.connect(server[0], autocommit=True) as c:
        c.execute("DROP TABLE IF EXISTS t")
        c.execute("CREATE TABLE t (id int)")
        c.execute("INSERT INTO t SELECT generate_series(1, 3)")
        row = holder.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        c.execute("DELETE FROM t WHERE id = 2")
        yield str(row[0])


def reader(dsn: str, snapshot: str, authorities: str, **words: str) -> SourceReader:
    given: dict[str, Any] = {**conninfo_to_dict(dsn), "sslmode": "verify-full", **words}
    return SourceReader(words=given, authorities=authorities, snapshot=snapshot)


def test_rows_are_those_of_the_snapshot(server: tuple[str, str], snapshot: str) -> None:
    reading = reader(server[0], snapshot, server[1])
    with reading.batches("SELECT id FROM public.t") as batches:
        assert pa.Table.from_batches(list(batches)).to_pydict() == {"id": [1, 2, 3]}
    assert reading.number("SELECT count(*) FROM public.t") == 3
    query = "SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()"
    assert reading.number(query) == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM public.nowhere", 'relation "public.nowhere" does not exist'),
        ("SELECT 1 / (id - 3) FROM public.t", "division by zero"),  # while rows are sent
    ],
)
def test_a_refused_query_has_the_servers_reason(
    server: tuple[str, str], snapshot: str, query: str, reason: str
) -> None:
    refused = pytest.raises(SourceRefused, match=f"^{reason}$")
    with refused, reader(server[0], snapshot, server[1]).batches(query) as batches:
        list(batches)


def test_an_error_of_the_caller_stays_what_it_is(server: tuple[str, str], snapshot: str) -> None:
    reading = reader(server[0], snapshot, server[1])
    with pytest.raises(FileNotFoundError), reading.batches("SELECT id FROM public.t"):
        raise FileNotFoundError


def test_a_server_that_cannot_be_trusted_is_not_read(
    server: tuple[str, str], snapshot: str
) -> None:
    other, _ = certified("127.0.0.1")
    with pytest.raises(SourceRefused, match="certificate verify failed"):
        reader(server[0], snapshot, other).number("SELECT 1")
    with pytest.raises(SourceRefused, match="password authentication failed") as refused:
        reader(server[0], snapshot, server[1], password="not-the-password").number("SELECT 1")
    assert "not-the-password" not in str(refused.value)
