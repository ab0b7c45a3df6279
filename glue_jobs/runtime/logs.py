"""Logging of a job: JSON lines on standard output, which Glue stores.

Each line has `at`, `level`, `message` and what is bound to the code that logs: batch, epoch, table.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

_CHATTY = ("py4j", "botocore")
_BOUND: ContextVar[Mapping[str, Any]] = ContextVar("bound", default=MappingProxyType({}))


def log_to_stdout() -> None:
    """Log to standard output from INFO on; from chatty libraries only warnings."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)


@contextmanager
def bound(**fields: Any) -> Iterator[None]:
    """Add fields to the lines that this thread logs inside the block."""
    token = _BOUND.set({**_BOUND.get(), **fields})
    try:
        yield
    finally:
        _BOUND.reset(token)


class JsonLines(logging.Formatter):
    """Formatter of a record as one line of JSON; an exception is the field `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {"at": at, "level": record.levelname, "message": record.getMessage()}
        table = {"table": record.table} if hasattr(record, "table") else {}
        error = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps(
            {**fields, **_BOUND.get(), **table, **error}, default=str, ensure_ascii=False
        )
