"""Servers that lack what the catalog queries read: refused with their version, not by a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from cdclake.errors import InputError
from cdclake.local.lake import introspect
from cdclake.postgres.ownership import Owner
from cdclake.postgres.session import Rows, Session
from cdclake.postgres.source import (
    check_session,
    read_catalog,
    read_publication,
    read_server,
)
from tests.unit.postgres.tables import plan


class OldServer:
    """Session that fails every query on the catalog."""

    def __init__(self, version: int) -> None:
        self._version = version

    @property
    def info(self) -> Any:
        return SimpleNamespace(server_version=self._version, dbname="shop")

    def execute(self, query: Any, params: Any = None, /) -> Rows:
        del params
        if str(query).startswith("SET "):
            return None  # type: ignore[return-value]
        raise psycopg.errors.UndefinedFunction("function pg_partition_root(oid) does not exist")

    def transaction(self) -> AbstractContextManager[Any]:
        return nullcontext()


def checked(session: Session) -> object:
    return check_session(session, plan(), embedded=False, owner=Owner("local:a1", "a lake"))


@pytest.mark.parametrize(
    ("version", "read"),
    [
        (110022, checked),
        (120022, checked),
        (110022, read_catalog),
        (100023, lambda session: read_server(session, "cdclake_shop")),
        (120022, lambda session: read_publication(session, "cdclake_shop")),
    ],
)
def test_an_old_server_is_refused_by_its_version(
    version: int, read: Callable[[Session], object]
) -> None:
    with pytest.raises(InputError) as refused:
        read(OldServer(version))
    major = version // 10000
    assert (
        refused.value.message == f"server: it is PostgreSQL {major}; cdclake streams from 15 to 18"
    )
    assert refused.value.remedy == "use PostgreSQL 15 to 18"


@pytest.mark.parametrize(
    ("version", "read"), [(120022, read_catalog), (130022, lambda s: read_server(s, "x"))]
)
def test_a_server_that_has_the_catalog_is_asked(
    version: int, read: Callable[[Session], object]
) -> None:
    with pytest.raises(psycopg.errors.UndefinedFunction):
        read(OldServer(version))


def test_init_names_the_version_of_an_old_server(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def connect(dsn: str) -> Iterator[OldServer]:
        del dsn
        yield OldServer(110022)

    monkeypatch.setattr(introspect, "connect", connect)
    with pytest.raises(InputError, match="it is PostgreSQL 11"):
        introspect.introspect_tables("host=h", None)
