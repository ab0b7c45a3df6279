"""What can go wrong, named by what the caller has to do about it.

CdcError
├── InputError        refuse to start: file, command or database is not as it must be (exit 2)
├── NotRunning        there is no lake to ask (exit 3)
├── ComponentFailed   a part of the lake failed or a wait ran out (exit 4)
├── TableError        stop that table, let the others go on
└── RecordError       quarantine that event, let the batch go on

Every message says what is wrong and where; `remedy` says what to do.
"""

from __future__ import annotations


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
    """The pipeline file, the command line or the source database is not as it must be."""

    code = "bad_input"
    exit_code = 2


class NotRunning(CdcError):
    """The command needs a running lake and there is none."""

    code = "not_running"
    exit_code = 3


class ComponentFailed(CdcError):
    """A component of the lake failed, or did not get ready in time."""

    code = "component_failed"
    exit_code = 4

    def __init__(
        self, message: str, remedy: str = "", component: str = "", log_tail: str = ""
    ) -> None:
        super().__init__(message, remedy)
        self.args = (message, remedy, component, log_tail)
        self.component = component
        self.log_tail = log_tail


class TableError(CdcError):
    """One table cannot go on; it stops with its resume offsets kept, the others flow."""

    code = "table_stopped"

    def __init__(self, table: str, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.args = (table, message, remedy)
        self.table = table

    def __str__(self) -> str:
        return f"table {self.table!r}: {super().__str__()}"


class RecordError(CdcError):
    """One event cannot be applied; it goes to quarantine with its bytes and this reason."""

    code = "event_refused"

    def __init__(self, reason: str, topic: str, partition: int, offset: int) -> None:
        super().__init__(reason)
        self.args = (reason, topic, partition, offset)
        self.topic, self.partition, self.offset = topic, partition, offset

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}: {self.message}"
