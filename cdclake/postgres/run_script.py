"""Execution of a SQL file in a source database, statement by statement."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from cdclake.errors import InputError
from cdclake.postgres.sql_script import SqlStatement

_FAILED = ": fix this one, then run the rest"
# Without a SQLSTATE the server has not answered.
_UNKNOWN = ", and it may be done as well: look in the source, then run the rest"


class _Cursor(Protocol):
    def copy(self, statement: str) -> AbstractContextManager[Any]: ...


class ScriptSession(Protocol):
    """Session of psycopg, in autocommit mode."""

    def execute(self, query: str) -> Any:
        """Run a statement."""
        ...

    def cursor(self) -> AbstractContextManager[_Cursor]:
        """Open a cursor, which COPY needs."""
        ...


@dataclass(slots=True)
class ScriptResult:
    """Counts of a run: statements, copied rows, and skipped changes of owners."""

    statements: int = 0
    copied_rows: int = 0
    skipped_owners: int = 0


def run_script(
    session: ScriptSession, statements: Iterable[SqlStatement], name: str, *, keep_owners: bool
) -> ScriptResult:
    """Run the statements in order, each on its own, as psql does.

    Without `keep_owners` the statements that only set an owner are skipped: the dump's roles need
    not exist. Raises InputError with file and line at the first statement that fails; those before
    it stay done. If the connection fails, the statement itself may be done as well.
    """
    result = ScriptResult()
    row = session.execute("SELECT current_setting('is_superuser')").fetchone()
    is_superuser = row is not None and row[0] == "on"
    for statement in statements:
        if statement.sets_owner and not keep_owners:
            result.skipped_owners += 1
            continue
        try:
            result.copied_rows += _run(session, statement, is_superuser=is_superuser)
        except Exception as error:
            if not hasattr(error, "sqlstate"):  # not of psycopg
                raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(
                f"{name}:{statement.line}: {reason}",
                f"the {result.statements} statements before it are done"
                + (_FAILED if error.sqlstate else _UNKNOWN),
            ) from None
        result.statements += 1
    return result


def _run(session: ScriptSession, statement: SqlStatement, *, is_superuser: bool) -> int:
    """Run one statement; return the number of copied rows."""
    if statement.rows is None:
        session.execute(statement.sql if is_superuser else statement.for_administrator)
        return 0
    with session.cursor() as cursor, cursor.copy(statement.sql) as copy:
        copy.write(statement.rows)
    return statement.rows.count("\n")
