"""Search of a lake's folder for values, while its AWS server has the index open."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.local.aws.index import Index
from cdclake.local.trace.stored_row import search_lake

CITY = "Rotterdam"
INSERT = "insert into object values ('lake', ?, 'f', 1, 'e', 'm', null, '{}', '{}')"


def found(home: Path) -> set[str]:
    client = SimpleNamespace(list_buckets=lambda: {"Buckets": []})
    lake: Any = SimpleNamespace(client=lambda _: client, home=SimpleNamespace(path=home))
    sought = SoughtValues([SoughtValue("city", CITY)])
    return {place.where for place in search_lake(lake, sought, ())}


def test_the_index_keeps_no_name_of_a_deleted_object(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "aws"
    folder.mkdir(parents=True)
    index = Index(folder / "index.db")
    with closing(index.connection):
        for number in range(300):
            city = CITY if number == 260 else "Springfield"
            with index.transaction() as connection:
                connection.execute(INSERT, [f"t/data/city={city}/{number}.parquet"])
        assert found(tmp_path) == {str(folder / "index.db")}
        with index.transaction() as connection:
            connection.execute("delete from object where key like ?", [f"%{CITY}%"])
        assert found(tmp_path) == set()
        with index.transaction() as connection:  # the server goes on
            connection.execute(INSERT, ["t/data/city=Springfield/more.parquet"])
