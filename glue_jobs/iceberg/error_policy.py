"""Reaction of the jobs to each kind of error, with its remedy, in one table.

The stream applies it between Spark and its tables; `commit_retry` to each commit. A Java error that
no entry names holds back its table alone: the next try starts after a pause. A Python error that no
entry names fails the stream: Spark replays the batch when the stream is started again. Two callers
catch CommitConflict before it stops a table, since a later batch repeats their work: the apply step
and the inline maintenance. The table jobs retry and report by the same table (`table_jobs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from cdclake.errors import (
    CommitConflict,
    Fenced,
    FileMissing,
    ServiceUnavailable,
    TableError,
    TaskFailed,
)
from cdclake.jobs.iceberg.service_failures import is_transient_java, is_transient_python


class Action(Enum):
    """Reaction to an error."""

    RETRY = auto()  # repeat the work, starting with a fresh look at the table
    HOLD_TABLE = auto()  # retry the table after a pause; the other tables continue
    STOP_TABLE = auto()  # keep the table's resume offsets; the other tables continue
    FAIL_STREAM = auto()  # end the query; the stream keeper starts it again


class Kind(Enum):
    """Kind of an error, by its cause."""

    COMMIT_LOST = auto()  # another writer's commit was first
    COMMIT_REFUSED = auto()  # another writer's commit conflicts with this one
    COMMIT_UNKNOWN = auto()  # the catalog did not answer; the stamp shows whether it committed
    COMMIT_CONFLICT = auto()  # every retry has lost
    FENCED = auto()  # another stream writes the changelog
    UNAVAILABLE = auto()  # S3, Glue or Kafka throttles, fails or cannot be reached
    FILE_MISSING = auto()  # a file of the table is gone
    TABLE_MISSING = auto()  # the catalog does not know the table
    CLOCK_BEHIND = auto()  # the table's newest commit is later than this clock's time
    SCHEMA_MISMATCH = auto()  # Spark cannot resolve the query against the table
    KAFKA_UNREADABLE = auto()  # Kafka does not return the records of a resumed table
    TABLE_FAILED = auto()  # any other TableError, which has its own remedy
    UNEXPECTED = auto()  # any other failure of Spark or Iceberg with this table
    JVM_FAILED = auto()  # the driver's JVM is out of memory or shuts down
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Policy:
    """Reaction to one kind of error; `remedy` is empty where the error brings its own."""

    action: Action
    remedy: str = ""


_RESTORE = "restore it (`cdclake runbook restore`); `cdclake resume` retries at once"
_HOLD_REMEDIES = {
    Kind.UNAVAILABLE: (
        "if it does not pass by itself, check quotas, endpoints and the service's status"
    ),
    Kind.FILE_MISSING: _RESTORE,
    Kind.TABLE_MISSING: _RESTORE,
    Kind.CLOCK_BEHIND: (
        "check the clocks of this machine and of other writers: one was ahead or is behind; commits"
        " succeed again when the correct time reaches that of the newest one"
    ),
    Kind.UNEXPECTED: "read the stream's log for the whole error",
}


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
        case (
            Kind.UNAVAILABLE
            | Kind.FILE_MISSING
            | Kind.TABLE_MISSING
            | Kind.CLOCK_BEHIND
            | Kind.UNEXPECTED
        ):
            return Policy(Action.HOLD_TABLE, _HOLD_REMEDIES[kind])
        case Kind.KAFKA_UNREADABLE:
            return Policy(
                Action.STOP_TABLE,
                "check in `cdclake status` whether Kafka still keeps these records, and read the"
                " stream's log",
            )
        case Kind.SCHEMA_MISMATCH | Kind.TABLE_FAILED:
            return Policy(Action.STOP_TABLE)
        case Kind.JVM_FAILED | Kind.OTHER:
            return Policy(Action.FAIL_STREAM)


_ICEBERG = "org.apache.iceberg.exceptions."
_JAVA_KINDS = {
    f"{_ICEBERG}CommitFailedException": Kind.COMMIT_LOST,
    f"{_ICEBERG}ValidationException": Kind.COMMIT_REFUSED,
    f"{_ICEBERG}CommitStateUnknownException": Kind.COMMIT_UNKNOWN,
    f"{_ICEBERG}NotFoundException": Kind.FILE_MISSING,
    f"{_ICEBERG}NoSuchTableException": Kind.TABLE_MISSING,
}
# In an IllegalStateException from the planning of a copy-on-write MERGE or DELETE.
_MODIFIED = "Runtime file filtering is not possible: the table has been concurrently modified"
# In an IllegalArgumentException, of a commit that is older than the table's by over a minute. The
# order of snapshots and of metadata files is checked before the time of an update.
_OLDER = (
    "[BUG] Expected sorted snapshot log entries",
    "[BUG] Expected sorted previous metadata log entries",
    "Invalid update timestamp",
)
_TABLE_NOT_FOUND = "[TABLE_OR_VIEW_NOT_FOUND]"  # Spark's error class, at the start of the message
_JVM_ERROR = "java.lang.VirtualMachineError"
_SHUTDOWN = re.compile("SparkContext was shut down|stopped SparkContext")
# The first class that fits decides.
_PYTHON_KINDS: tuple[tuple[type[Exception], Kind], ...] = (
    (CommitConflict, Kind.COMMIT_CONFLICT),
    (TableError, Kind.TABLE_FAILED),
    (Fenced, Kind.FENCED),
    (FileMissing, Kind.FILE_MISSING),
    (ServiceUnavailable, Kind.UNAVAILABLE),
    (TaskFailed, Kind.UNEXPECTED),
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
    kind = next((kind for each, kind in _PYTHON_KINDS if isinstance(error, each)), Kind.OTHER)
    text = str(error)
    if kind is Kind.SCHEMA_MISMATCH and text.startswith(_TABLE_NOT_FOUND):
        kind = Kind.TABLE_MISSING
    if is_transient_python(error):
        kind = Kind.UNAVAILABLE
    yield Cause(kind, _first_line(text))
    if isinstance(error, PySparkException):  # captured from the JVM, with the exception there
        yield from _java_causes(getattr(error, "_origin", None))


def _java_causes(thrown: Any) -> Iterator[Cause]:
    while thrown is not None:
        message = str(thrown.getMessage())
        yield Cause(_java_kind(list(_classes(thrown)), message), _first_line(message))
        thrown = thrown.getCause()


def _java_kind(classes: list[str], message: str) -> Kind:
    if _JVM_ERROR in classes or _SHUTDOWN.search(message):
        return Kind.JVM_FAILED
    named = _JAVA_KINDS.get(classes[0])
    if named is not None:
        return named
    if message.startswith(_MODIFIED):
        return Kind.COMMIT_REFUSED
    if message.startswith(_OLDER):
        return Kind.CLOCK_BEHIND
    return Kind.UNAVAILABLE if is_transient_java(classes, message) else Kind.OTHER


def _classes(thrown: Any) -> Iterator[str]:
    java_class = thrown.getClass()
    while java_class is not None:
        yield str(java_class.getName())
        java_class = java_class.getSuperclass()


def _first_line(message: str) -> str:
    return (message.splitlines() or ["no reason given"])[0]


def cause_of(error: Exception, *kinds: Kind) -> Cause | None:
    """Return the first cause of one of these kinds; None if there is none."""
    return next((cause for cause in causes(error) if cause.kind in kinds), None)


def cause_for(error: Exception, action: Action) -> Cause | None:
    """Return the first cause that calls for `action`; None if there is none."""
    return next((cause for cause in causes(error) if policy(cause.kind).action is action), None)


def stop_reason(table: str, error: Exception) -> str | None:
    """Return the reason to stop this table until an operator resumes it; None if there is none."""
    cause = cause_for(error, Action.STOP_TABLE)
    if cause is None or hold_reason(table, error) is not None:
        return None
    return cause.reason


def hold_reason(table: str, error: Exception) -> str | None:
    """Return the reason to retry this table alone after a pause; None if that would not help.

    A commit without an answer is one: the next try finds out from the stamp whether it succeeded.
    """
    if cause_of(error, Kind.JVM_FAILED) is not None:
        return None
    cause = cause_for(error, Action.HOLD_TABLE) or cause_for(error, Action.RETRY)
    if cause is None and _is_unexpected(error):
        cause = Cause(Kind.UNEXPECTED, next(causes(error)).reason)
    if cause is None:
        return None
    message = f"{_PROBLEMS.get(cause.kind, 'its work failed')}: {cause.reason}"
    return str(TableError(table, message, policy(cause.kind).remedy))


def passing_cause(error: Exception) -> Cause | None:
    """Return the service's failure that the error comes from; None if waiting does not help."""
    if cause_of(error, Kind.JVM_FAILED) is not None:
        return None
    return cause_of(error, Kind.UNAVAILABLE, Kind.COMMIT_UNKNOWN)


_PROBLEMS = {
    Kind.UNAVAILABLE: "a service that it needs does not answer",
    Kind.FILE_MISSING: "a file referenced by the table's metadata is missing",
    Kind.TABLE_MISSING: "the catalog does not find the table",
    Kind.CLOCK_BEHIND: "its newest commit has a later time than the clock",
}


def _is_unexpected(error: Exception) -> bool:
    """Return True for an error that comes from the JVM and that no entry names."""
    is_from_jvm = isinstance(error, Py4JJavaError | PySparkException)
    return is_from_jvm and cause_for(error, Action.STOP_TABLE) is None
