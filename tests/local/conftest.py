"""Databases for the tests of the source's side; no server starts before a test asks for one."""

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest

from tests.local.source_database import running_server

_numbers = count(1)


@pytest.fixture(scope="package")
def server() -> Iterator[str]:
    with running_server() as dsn:
        yield dsn


@pytest.fixture
def database(server: str) -> Iterator[str]:
    """The DSN of a fresh database; its pipelines are named after it, so slots never collide."""
    name = f"shop{next(_numbers)}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    yield f"{server}/{name}"
