"""Execution of a SQL file in a source database, statement by statement."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from cdclake.errors import InputError
from cdclake.postgres.sql_script import SqlStatement

log = logging.getLogger(__name__)

_IDLE = 0  # psycopg's status of a session without an open transaction
_CHAINED = re.compile(r"\band\s+chain$", re.IGNORECASE)  # ends a transaction and begins the next


class _Cursor(Protocol):
    def copy(self, statement: str) -> AbstractContextManager[Any]: ...


class _Info(Protocol):
    @property
    def transaction_status(self) -> int: ...


class ScriptSession(Protocol):
    """Session of psycopg, in autocommit mode."""

    @property
    def info(self) -> _Info:
        """State of the session."""
        ...

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


@dataclass(slots=True)
class _Progress:
    """Statements that stay done, and the line where the file's open transaction begins."""

    done: int = 0
    begun: int | None = None

    def update(self, status: int, statement: SqlStatement, ran: int) -> None:
        """Note the session's status after this statement, the last of `ran`."""
        if status == _IDLE:
            self.done, self.begun = ran, None
        elif self.begun is None:
            self.begun = statement.line
        elif _CHAINED.search(statement.sql):
            self.done, self.begun = ran, statement.line

    def describe(self) -> str:
        """Return a clause about the statements before the current one, for the log."""
        if self.begun is None:
            return "all statements before it are done"
        return (
            f"all statements before line {self.begun} are done, those since then only when their"
            " transaction ends"
        )

    def undone(self) -> str:
        """Return what is done and what to do if the file does not end its transaction."""
        return (
            f"the {self.done} statements before it are done, and it is undone: add COMMIT, then run"
            " the file from that line on"
        )

    def remedy(self, *, is_answered: bool) -> str:
        """Return what is done and what to do if the current statement fails.

        Without an answer of the server the statement may be done, maybe as the transaction's last.
        """
        if self.begun is None:
            done = f"the {self.done} statements before it are done"
            if is_answered:
                return f"{done}: fix this one, then run the rest"
            return f"{done}, and it may be done as well: look in the source, then run the rest"
        done = f"the {self.done} statements before the transaction from line {self.begun} are done"
        if is_answered:
            return f"{done}, and it is undone: fix this one, then run the rest from that line on"
        return (
            f"{done}, and it is undone, unless this statement has ended it: look in the source,"
            " then run the rest, from that line on if it is undone"
        )


def run_script(
    session: ScriptSession, statements: Iterable[SqlStatement], name: str, *, keep_owners: bool
) -> ScriptResult:
    """Run the statements in order, each on its own, as psql does.

    Without `keep_owners` the statements that only set an owner are skipped: the dump's roles need
    not exist. Raises InputError with file and line at the first statement that fails; those before
    it stay done, except in a transaction that the file has begun and not ended. If the connection
    fails, the statement itself may be done as well. A transaction that is open at the end is undone
    and refused: psycopg would commit it.
    """
    result, progress = ScriptResult(), _Progress()
    row = session.execute("SELECT current_setting('is_superuser')").fetchone()
    is_superuser = row is not None and row[0] == "on"
    for statement in statements:
        if statement.sets_owner and not keep_owners:
            result.skipped_owners += 1
            continue
        # Before it runs: a deployed function may be killed while it does.
        log.info("runs %s:%s; %s", name, statement.line, progress.describe())
        try:
            result.copied_rows += _run(session, statement, is_superuser=is_superuser)
        except Exception as error:
            if not hasattr(error, "sqlstate"):  # not of psycopg
                raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(
                f"{name}:{statement.line}: {reason}",
                progress.remedy(is_answered=bool(error.sqlstate)),
            ) from None
        result.statements += 1
        progress.update(session.info.transaction_status, statement, result.statements)
    if progress.begun is not None:
        session.execute("ROLLBACK")
        raise InputError(f"{name}:{progress.begun}: the transaction has no end", progress.undone())
    return result


def _run(session: ScriptSession, statement: SqlStatement, *, is_superuser: bool) -> int:
    """Run one statement; return the number of copied rows."""
    if statement.rows is None:
        session.execute(statement.sql if is_superuser else statement.for_administrator)
        return 0
    with session.cursor() as cursor, cursor.copy(statement.sql) as copy:
        copy.write(statement.rows)
    return statement.rows.count("\n")
