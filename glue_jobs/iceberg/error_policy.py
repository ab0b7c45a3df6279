"""Reaction of the jobs to each kind of error, with its remedy, in one table.

The stream applies it between Spark and its tables; `commit_retry` to each commit. An error that no
entry names fails the stream: Spark replays the batch when the stream is started again. Two callers
catch CommitConflict before it stops a table, since a later batch repeats their work: the apply step
and the inline maintenance. The table jobs report a CdcError as the failure of that table alone; any
other error fails their run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from cdclake.errors import CommitConflict, Fenced, TableError


class Action(Enum):
    """Reaction to an error."""

    RETRY = auto()  # repeat the work, starting with a fresh look at the table
    STOP_TABLE = auto()  # keep the table's resume offsets; the other tables continue
    FAIL_STREAM = auto()  # end the query; the stream keeper starts it again


class Kind(Enum):
    """Kind of an error, by its cause."""

    COMMIT_LOST = auto()  # another writer's commit was first
    COMMIT_REFUSED = auto()  # another writer's commit conflicts with this one
    COMMIT_UNKNOWN = auto()  # the catalog did not answer; the stamp shows whether it committed
    COMMIT_CONFLICT = auto()  # every retry has lost
    FENCED = auto()  # another stream writes the changelog
    FILE_MISSING = auto()  # the table or a file of it is gone
    SCHEMA_MISMATCH = auto()  # Spark cannot resolve the query against the table
    KAFKA_UNREADABLE = auto()  # Kafka does not return the records of a resumed table
    TABLE_FAILED = auto()  # any other TableError, which has its own remedy
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Policy:
    """Reaction to one kind of error; `remedy` is empty where the error brings its own."""

    action: Action
    remedy: str = ""


def policy(kind: Kind) -> Policy:
    """Return the reaction to errors of this kind."""
    match kind:
        case Kind.COMMIT_LOST | Kind.COMMIT_REFUSED | Kind.COMMIT_UNKNOWN:
            return Policy(Action.RETRY)
        case Kind.COMMIT_CONFLICT:
            return Policy(
                Action.STOP_TABLE,
                "find the other job or tool that writes to this table, and let it wait",
            )
        case Kind.FENCED:
            return Policy(
                Action.FAIL_STREAM,
                "run one stream per lake; after a restart, this one continues where the other is",
            )
        case Kind.FILE_MISSING:
            return Policy(
                Action.STOP_TABLE,
                "restore it (docs/runbooks/restore.md), then run `cdclake resume`",
            )
        case Kind.KAFKA_UNREADABLE:
            return Policy(
                Action.STOP_TABLE,
                "check in `cdclake status` whether Kafka still keeps these records, and read the"
                " stream's log",
            )
        case Kind.SCHEMA_MISMATCH | Kind.TABLE_FAILED:
            return Policy(Action.STOP_TABLE)
        case Kind.OTHER:
            return Policy(Action.FAIL_STREAM)


_ICEBERG = "org.apache.iceberg.exceptions."
_JAVA_KINDS = {
    f"{_ICEBERG}CommitFailedException": Kind.COMMIT_LOST,
    f"{_ICEBERG}ValidationException": Kind.COMMIT_REFUSED,
    f"{_ICEBERG}CommitStateUnknownException": Kind.COMMIT_UNKNOWN,
    f"{_ICEBERG}NotFoundException": Kind.FILE_MISSING,
    f"{_ICEBERG}NoSuchTableException": Kind.FILE_MISSING,
}
# The first class that fits decides.
_PYTHON_KINDS: tuple[tuple[type[Exception], Kind], ...] = (
    (CommitConflict, Kind.COMMIT_CONFLICT),
    (TableError, Kind.TABLE_FAILED),
    (Fenced, Kind.FENCED),
    (AnalysisException, Kind.SCHEMA_MISMATCH),
)


@dataclass(frozen=True, slots=True)
class Cause:
    """One error of a chain: its kind, and the first line of its message."""

    kind: Kind
    reason: str


def causes(error: Exception) -> Iterator[Cause]:
    """Yield the error's own cause; for a Java error every cause of its chain, outermost first."""
    if isinstance(error, Py4JJavaError):
        yield from _java_causes(error.java_exception)
        return
    kinds = (kind for python_class, kind in _PYTHON_KINDS if isinstance(error, python_class))
    yield Cause(next(kinds, Kind.OTHER), _first_line(str(error)))


def _java_causes(thrown: Any) -> Iterator[Cause]:
    while thrown is not None:
        kind = _JAVA_KINDS.get(thrown.getClass().getName(), Kind.OTHER)
        yield Cause(kind, _first_line(str(thrown.getMessage())))
        thrown = thrown.getCause()


def _first_line(message: str) -> str:
    return (message.splitlines() or ["no reason given"])[0]


def cause_of(error: Exception, *kinds: Kind) -> Cause | None:
    """Return the first cause of one of these kinds; None if there is none."""
    return next((cause for cause in causes(error) if cause.kind in kinds), None)


def cause_for(error: Exception, action: Action) -> Cause | None:
    """Return the first cause that calls for `action`; None if there is none."""
    return next((cause for cause in causes(error) if policy(cause.kind).action is action), None)


def stop_reason(table: str, error: Exception) -> str | None:
    """Return the reason to stop this table alone; None if the error must fail the stream."""
    cause = cause_for(error, Action.STOP_TABLE)
    if cause is None:
        return None
    if cause.kind is Kind.FILE_MISSING:
        message = f"a file referenced by the table's metadata is missing: {cause.reason}"
        return str(TableError(table, message, policy(cause.kind).remedy))
    return cause.reason
