"""Spellings of keys that the lake has, as far as the source takes them for equal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.jobs.forget import key_spellings
from cdclake.jobs.forget.key_spellings import stored_spellings
from cdclake.jobs.runtime.key_types import KeyType
from cdclake.plan import Column
from cdclake.trace.row_key import RowKey
from tests.unit.verify.lakes import create, event, make_table

_, *OTHERS = make_table().columns
PEOPLE = make_table(
    key=("id", "mail"),
    columns=(
        Column(source="id", name="id", type="numeric"),
        Column(source="mail", name="mail", type="citext"),
        *OTHERS,
    ),
)
TYPES = {
    "id": KeyType("numeric", "numeric", "numeric"),
    "mail": KeyType("citext", "citext", "citext", "public"),
}


class LakeOfPeople:
    """Reader of a changelog, a state and the quarantine in DuckDB's memory."""

    def __init__(self, *, refused: bool = True) -> None:
        self.tables = {PEOPLE.changes, PEOPLE.name, *([naming.QUARANTINE] if refused else [])}

    @property
    def catalog(self) -> LakeOfPeople:
        return self

    def names(self) -> set[str]:
        return self.tables

    @contextmanager
    def open(self, tables: Any, plain: Any) -> Iterator[duckdb.DuckDBPyConnection]:
        assert not tables and {*plain} == self.tables
        events = [
            event("c", 10, 11, id="1.50", mail="Ada"), event("u", 10, 12, id="1.5", mail="ADA"),
            event("c", 10, 13, id="15", mail="Ada"), event("c", 10, 14, id="1.5", mail="Bob"),
        ]  # fmt: skip
        state = [{"id": "1.5", "mail": "aDa", naming.POSITION: "~"}]
        row = {"id": "1.500", "mail": "adA"}
        failed = {**row, "mail": "aDA", naming.POSITION: "~"}
        wrapped = {"table": PEOPLE.changes, "row": {**failed, "mail": "ADa"}}
        records: list[tuple[bytes | None, bytes]] = [(json.dumps(row).encode(), b"{}")]
        records += [(None, json.dumps(each).encode()) for each in (failed, wrapped)]
        with duckdb.connect() as session:
            create(session, PEOPLE, events, state)
            session.execute(
                f"CREATE TABLE {naming.QUARANTINE}"
                ' ("table" TEXT, topic TEXT, "partition" INT, key BLOB, value BLOB)'
            )
            for key, value in records:
                session.execute(
                    f"INSERT INTO {naming.QUARANTINE} VALUES ('former', ?, 0, ?, ?)",
                    [PEOPLE.topic, key, value],
                )
            yield session


@pytest.fixture(autouse=True)
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    def equal_pairs(
        connection: Any,
        types: Mapping[int, KeyType],
        words: Sequence[Sequence[str]],
        stored: Sequence[Sequence[str]],
    ) -> Iterator[tuple[int, int]]:
        assert types == {1: TYPES["mail"]}
        for one, given in enumerate(words):
            for other, each in enumerate(stored):
                if given[1].lower() == each[1].lower():
                    yield one, other

    monkeypatch.setattr(key_spellings, "equal_pairs", equal_pairs)
    monkeypatch.setattr(key_spellings, "key_types", lambda connection, table: TYPES)


def spellings(*words: str, **lake: bool) -> list[list[Any]]:
    key = RowKey(PEOPLE, words, dict(zip(PEOPLE.key, words, strict=True)))
    reader: Any = LakeOfPeople(**lake)
    found = stored_spellings(None, lambda: reader, [key])  # type: ignore[arg-type]
    assert all(each.words == words for each in found)
    return [each.parts for each in found]


def test_equal_keys_of_all_tables_are_found_newest_first() -> None:
    of_tables = [["1.5", "aDa"], ["1.5", "ADA"], ["1.5", "Ada"]]
    found = spellings("1.5", "ada")
    assert found[:3] == of_tables
    assert sorted(mail for _, mail in found[3:]) == ["ADa", "aDA", "adA"]  # of the quarantine
    assert spellings("1.500", "ada", refused=False) == of_tables
    assert spellings("2", "ada") == [] == spellings("1.5", "eve")


def test_a_key_of_one_text_per_value_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {**TYPES, "mail": KeyType("text", "text", "text")}
    monkeypatch.setattr(key_spellings, "key_types", lambda connection, table: plain)

    def reader() -> Any:
        raise AssertionError

    key = RowKey(PEOPLE, ("1", "ada"), {"id": "1", "mail": "ada"})
    assert stored_spellings(None, reader, [key]) == []  # type: ignore[arg-type]
