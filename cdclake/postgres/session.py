"""Used part of psycopg's connections and errors, so that the core does not import psycopg."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Rows(Protocol):
    """Result of a statement."""

    @property
    def description(self) -> Any:
        """Return the columns, or None."""

    @property
    def pgresult(self) -> Any:
        """Return libpq's result, which has the columns' types."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Session(Protocol):
    """Used part of psycopg's connection."""

    @property
    def info(self) -> Any:
        """Return facts about the connection, such as its `server_version`."""

    def execute(self, query: Any, params: Any = None, /) -> Rows:
        """Run a statement."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Open a transaction for a block."""


def sqlstate(error: Exception) -> str | None:
    """Return the SQLSTATE of the error; None if it is not an error of the server."""
    return getattr(error, "sqlstate", None)


def reason_of(error: Exception) -> str:
    """Return the server's message, or the error's class if it has none."""
    diagnosis = getattr(error, "diag", None)
    return getattr(diagnosis, "message_primary", None) or type(error).__name__
