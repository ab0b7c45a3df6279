"""Errors of Python tasks, serialized per table: the driver fails only the affected table."""

from __future__ import annotations

import json
import traceback

from cdclake.errors import FileMissing, ServiceUnavailable, TaskFailed
from cdclake.jobs.iceberg.service_failures import is_transient_python


def failure_text(error: Exception) -> str:
    """Serialize a task's error for the driver as JSON."""
    missing = str(error.filename) if isinstance(error, FileNotFoundError) else None
    shown = "".join(traceback.format_exception(error))
    is_passing = is_transient_python(error) or isinstance(error, ServiceUnavailable)
    return json.dumps({"missing": missing, "is_passing": is_passing, "traceback": shown})


def failure_of(text: str) -> TaskFailed:
    """Parse `failure_text` into the exception whose class selects the stream's reaction."""
    raw = json.loads(text)
    if raw["missing"] is not None:
        return FileMissing(f"{raw['missing']} is missing")
    last_line = raw["traceback"].strip().splitlines()[-1]
    return ServiceUnavailable(last_line) if raw["is_passing"] else TaskFailed(last_line)


def traceback_of(text: str) -> str:
    """Return the traceback in `failure_text`, for the log."""
    return str(json.loads(text)["traceback"])
