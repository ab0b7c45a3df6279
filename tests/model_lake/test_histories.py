"""Histories on a PostgreSQL without a lake: they run, and the audit tells what they did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.local.source_database import running_server
from tests.model_lake.audit import Place, Values, create_tables, read_changes, rows_after
from tests.model_lake.history import History, history
from tests.model_lake.player import Players
from tests.model_lake.shapes import ALL_SHAPES, SHAPES

HISTORIES = [history(seed, truncates=seed == 0) for seed in range(30)]


@pytest.fixture(scope="module")
def source() -> Iterator[psycopg.Connection[Any]]:
    """A database in which the histories have run, all at once."""
    with running_server() as server:
        dsn = f"{server}/postgres"
        with psycopg.connect(dsn, autocommit=True) as connection:
            create_tables(connection)
            Players(conninfo_to_dict(dsn), HISTORIES, seconds=1).wait()
            yield connection


@pytest.mark.local
def test_the_audit_ends_in_the_tables_rows(source: psycopg.Connection[Any]) -> None:
    changes = read_changes(source)
    assert rows_after(changes) == _rows(source)
    ops = {(place[0], change.op) for place, known in changes.items() for change in known}
    assert ops >= {(shape.name, op) for shape in ALL_SHAPES for op in "cud"} | {("emptied", "t")}


def _rows(source: psycopg.Connection[Any]) -> dict[Place, Values]:
    found: dict[Place, Values] = {}
    for shape in ALL_SHAPES:
        key = " || '/' || ".join(f"{name}::text" for name in shape.key_columns)
        rows = source.execute(
            f"SELECT {key}, v::text, note, md5(body), md5(doc::text), md5(encode(raw, 'hex')) "
            f"FROM {shape.name}".encode()
        )
        found |= {(shape.name, row[0]): row[1:] for row in rows.fetchall()}
    return found


@pytest.mark.local
def test_large_values_are_stored_out_of_line(source: psycopg.Connection[Any]) -> None:
    for shape in SHAPES:
        [[pages]] = source.execute(
            "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = %s", [shape.name]
        ).fetchall()
        assert pages > 0, shape.name


def test_a_seed_makes_one_history() -> None:
    assert history(17, truncates=False) == history(17, truncates=False)
    assert history(17, truncates=False).script() != history(18, truncates=False).script()


def test_the_histories_do_everything() -> None:
    script = "".join(one.script() for one in HISTORIES)
    for words in (
        *("BEGIN", "COMMIT", "ROLLBACK;", "SAVEPOINT", "ROLLBACK TO", "RELEASE", "TRUNCATE"),
        *("COPY", "DELETE", "ON CONFLICT DO NOTHING", "DO UPDATE", "SET id =", "label =", "v = v"),
    ):
        assert words in script, words


def test_sessions_of_a_history_overlap() -> None:
    assert sum(_most_open(one) > 1 for one in HISTORIES) > len(HISTORIES) / 3


def _most_open(one: History) -> int:
    held: set[int] = set()
    most = 0
    for step in one.steps:
        if step.sql in ("COMMIT", "ROLLBACK"):
            held.discard(step.session)
        else:
            held.add(step.session)
        most = max(most, len(held))
    return most
