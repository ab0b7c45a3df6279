"""Errors that cdclake raises on purpose, by what the caller has to do about them.

CdcError
├── InputError                  refuse to start: invalid file, command or database (exit 2)
│   └── InvalidPipeline         report every problem of the pipeline file
├── NotRunning                  report that no lake is running (exit 3)
├── ComponentFailed             report the failed or late component and its log (exit 4)
├── TablesFailed                report the tables for which a command failed (exit 4)
├── TaskFailed                  try this table again after a pause; the others continue
│   ├── FileMissing             the same, until the file is restored
│   └── ServiceUnavailable      the same; it passes by itself
├── TableError                  stop this table; the others continue
│   ├── RulesFailed             report the rules; the stream does not stop the table
│   └── CommitConflict          postpone the work, or stop this table
└── Fenced                      end this stream: another one writes the changelogs

Every message states what is wrong and where; `remedy` states what to do, as an imperative. The
stream's reaction to each kind of error is in `glue_jobs/iceberg/error_policy.py`. An event that
cannot be decoded is no error of this tree: it goes to quarantine with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdclake.quality_rule import FailedRule

APPLY_FILE = "apply the file (`cdclake up FILE`, on AWS deploy it)"  # for both targets
START_AGAIN = (
    f"remove the table from the file, {APPLY_FILE}, and add it again under another `name:`"
)


def reading_failure(error: OSError | ValueError) -> str:
    """Return why a file could not be read, without the number of the error and the path."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return getattr(error, "strerror", None) or str(error)


class CdcError(Exception):
    """Root of all errors that cdclake raises on purpose; `code` names it in `--json` output."""

    code = "error"
    exit_code = 4

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)  # both in args, so that it survives pickling
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


class InputError(CdcError):
    """Invalid pipeline file, command line or source database."""

    code = "bad_input"
    exit_code = 2


class NotRunning(CdcError):
    """Missing lake: the command needs one that is running."""

    code = "not_running"
    exit_code = 3


class ComponentFailed(CdcError):
    """Component of the lake that failed, or was not ready in time."""

    code = "component_failed"
    exit_code = 4

    def __init__(
        self, message: str, remedy: str = "", component: str = "", log_tail: str = ""
    ) -> None:
        super().__init__(message, remedy)
        self.args = (message, remedy, component, log_tail)
        self.component = component
        self.log_tail = log_tail


class TablesFailed(CdcError):
    """Failure of a command for some of its tables, whose own errors are in its report."""

    code = "tables_failed"


class TaskFailed(CdcError):
    """Failure of a task's work for one table, which its exception describes."""

    code = "task_failed"


class FileMissing(TaskFailed):
    """A task did not find a file that a table refers to."""


class ServiceUnavailable(TaskFailed):
    """A service throttled a task, failed or could not be reached."""


class TableError(CdcError):
    """Failure of one table: it stops and keeps its resume offsets, the others continue."""

    code = "table_stopped"

    def __init__(self, table: str, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.args = (table, message, remedy)
        self.table = table

    def __str__(self) -> str:
        return f"table {self.table!r}: {super().__str__()}"


class RulesFailed(TableError):
    """Rows of a table, or the table, break quality rules; `failed` has the rules."""

    code = "rules_failed"

    def __init__(self, table: str, failed: Sequence[FailedRule]) -> None:
        shown = "; ".join(map(str, failed))
        super().__init__(
            table, f"quality rules failed: {shown}", "see `cdclake runbook checks-failed`"
        )
        self.args = (table, failed)
        self.failed = tuple(failed)


class CommitConflict(TableError):
    """Work on a table that lost to other writers' commits at every try."""


class Fenced(CdcError):
    """Stream that may no longer write a changelog, since another stream has written to it."""

    code = "fenced"


def reported_error(error: Mapping[str, str], component: str) -> CdcError:
    """Return the error of a job's report as the command's: invalid input, no lake, or a failure."""
    for kind in (InputError, NotRunning):
        if error["code"] == kind.code:
            return kind(error["message"], error["remedy"])
    return ComponentFailed(error["message"], error["remedy"], component=component)
