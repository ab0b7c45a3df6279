"""Queries of tables that lack a declared column, or the asked time: others are answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from cdclake import naming
from cdclake.errors import InputError
from cdclake.iceberg.schemas import TableSchema, changes_schema, quarantine_schema, state_schema
from cdclake.jobs.reader import as_of
from cdclake.jobs.reader.catalog import Catalog, CatalogTable, parse_table
from cdclake.jobs.reader.duck import Reader
from cdclake.local.reader import table_figures
from cdclake.local.reader.query import run_query
from cdclake.plan import Column, Plan, Table
from cdclake.polling import Polling
from tests.unit.verify.lakes import make_plan, make_table

FILM, ACTORS = (make_table(name=name, table=name) for name in ("film", "film_actor"))
ADDED = tuple(
    Column(source=kind, name=f"new_{number}", type=kind)
    for number, kind in enumerate(("date", "timestamptz", "numeric(9,2)", "bytea", "text"))
)
POLLING = Polling(by="id", every="rate(1 day)")
LACKING = "film has no column 'new_0', .*'new_4' yet"


def iceberg(kind: str) -> Any:
    """The JSON form of a Spark type."""
    inside = kind.partition("<")[2].removesuffix(">")
    if kind.startswith("array<"):
        return {"type": "list", "element": iceberg(inside)}
    if kind.startswith("map<"):
        key, _, value = inside.partition(",")
        return {"type": "map", "key": iceberg(key), "value": iceberg(value)}
    if kind.startswith("struct<"):
        pairs = (field.split(":") for field in inside.split(","))
        return {"type": "struct", "fields": [{"name": n, "type": iceberg(k)} for n, k in pairs]}
    names = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
    return names.get(kind, kind)


def stored(schema: TableSchema) -> CatalogTable:
    """A table without a commit."""
    fields = [
        {"id": number, "name": name, "type": iceberg(kind)}
        for number, (name, kind) in enumerate(schema.columns)
    ]
    metadata = {
        "schemas": [{"schema-id": 0, "fields": fields}], "current-schema-id": 0,
        "current-snapshot-id": -1, "snapshots": [], "snapshot-log": [],
    }  # fmt: skip
    return parse_table(schema.name, "s3://lake/none", metadata)


class Stored:
    """Catalog of the tables as an earlier plan has created them."""

    def __init__(self, plan: Plan) -> None:
        schemas = [
            schema(t, plan) for t in plan.tables for schema in (changes_schema, state_schema)
        ]
        self.tables: Mapping[str, CatalogTable] = {
            schema.name: stored(schema) for schema in (*schemas, quarantine_schema(plan))
        }

    def load(self, name: str) -> CatalogTable:
        if name not in self.tables:
            raise InputError(f"{name} does not exist yet", "wait for its first batch")
        return self.tables[name]

    def names(self) -> set[str]:
        return {*self.tables}


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def reader_of(folder: Path, declared: Table, *created: Table) -> Reader:
    """A reader whose plan declares this table and `film_actor`; the lake has the created ones."""
    plan = make_plan(declared)
    reader = Reader(
        plan=replace(plan, tables=(declared, ACTORS)),
        s3="http://x", glue="http://x", bucket="lake", spill=folder,
    )  # fmt: skip
    catalog = cast(Catalog, Stored(replace(plan, tables=created)))
    reader.__dict__["catalog"] = catalog
    return reader


@pytest.fixture(params=["stream", "poll"])
def lacking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    more: dict[str, Any] = (
        {"delivery": "poll", "polling": POLLING} if request.param == "poll" else {}
    )
    declared = replace(FILM, columns=(*FILM.columns, *ADDED), **more)
    yield reader_of(tmp_path, declared, FILM, ACTORS)


@pytest.mark.parametrize("as_of", [None, "2020-01-01"])
@pytest.mark.parametrize(
    "query",
    ["SELECT id FROM film_current", "SELECT max(new_0 + 1) FROM film_current",
     "SELECT year(new_1), new_2 + 1, new_3 FROM film_history", "SELECT cdc_op FROM film_history"],
)  # fmt: skip
def test_rows_without_a_declared_column_are_refused(
    lacking: Reader, query: str, as_of: str | None
) -> None:
    with pytest.raises(InputError, match=LACKING) as refused:
        run_query(lacking, query, as_of=as_of)
    is_polled = lacking.plan.tables[0].delivery == "poll"
    assert ("poll_tables --table film" in refused.value.remedy) is is_polled
    assert ("cdclake up FILE" in refused.value.remedy) is not is_polled


def test_other_relations_of_the_lake_are_read(lacking: Reader) -> None:
    shown = run_query(lacking, "SHOW TABLES").rows
    assert {"film_current", "film_actor_current"} <= {name for [name] in shown}
    for name in ("film_changes", "film", "film_actor_current", naming.QUARANTINE):
        assert run_query(lacking, f"SELECT * FROM {name}, film_actor").rows == []


def test_other_readers_name_the_column(lacking: Reader) -> None:
    film = lacking.plan.tables[0]
    for relation in (naming.current_name(film.name), naming.rebuilt_name(film.name)):
        with (
            pytest.raises(InputError, match=LACKING),
            lacking.open([film], rebuilt=True) as session,
        ):
            session.execute(f"SELECT * FROM {relation}").fetchall()
    with pytest.raises(InputError, match=LACKING), lacking.open([film]) as session:
        session.execute("SELECT new_0 FROM film_changes")
    with pytest.raises(duckdb.BinderException), lacking.open([ACTORS]) as session:
        session.execute("SELECT new_0 FROM film_actor_changes")


def test_figures_of_other_tables_are_read(lacking: Reader) -> None:
    read = table_figures._read_each(lacking, lacking.plan.tables)
    assert {name: figures["live_rows"] for name, figures in read.items()} == {"film_actor": 0}


def test_a_name_within_another_names_no_table(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, FILM, ACTORS)
    assert run_query(reader, "SELECT * FROM film_actor_current").rows == []
    with pytest.raises(InputError, match="film does not exist yet"):
        run_query(reader, 'SELECT * FROM film_actor_current, "film_current"')


def test_only_a_query_of_the_later_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_complete(table: Table, **_: Any) -> str:
        return f"SELECT TIMESTAMPTZ '{2024 if table == FILM else 2020}-01-01 12:00:00+00'"

    monkeypatch.setattr(as_of, "first_complete", first_complete)
    reader = reader_of(tmp_path, FILM, FILM, ACTORS)
    either = "SELECT 'film' AS word FROM film_actor_current"
    assert run_query(reader, either, as_of="2024-01-01T11:00").rows == []
    assert run_query(reader, "SELECT * FROM film_current", as_of="2024-01-02").rows == []
    for name in ("film_current", "film_changes", "film_history", "film"):
        with pytest.raises(InputError, match="changelog of film is complete since") as refused:
            run_query(reader, f"SELECT * FROM {name}", as_of="2024-01-01T11:00")
        assert refused.value.remedy == "ask for --as-of 2024-01-01T12:00:00+00:00 or later"
