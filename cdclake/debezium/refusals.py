"""Why an event cannot be a row of the log, in the words that quarantine and logs show.

A word in capitals, by which people count and search, and what it means.
"""

from __future__ import annotations

from collections.abc import Iterable

from cdclake.plan import Column

UNREADABLE_VALUE = "UNREADABLE_VALUE: not JSON, or a field is not of its declared type"
UNREADABLE_KEY = "UNREADABLE_KEY: not JSON, or a field is not of its declared type"
UNKNOWN_OPERATION = "UNKNOWN_OPERATION: op is not one of crudt"
NO_SEQUENCE = "NO_SEQUENCE: without source.sequence the event has no place in the order"
NO_EPOCH = "NO_EPOCH: the connector does not set cdc_epoch"
NO_ROW = "NO_ROW: `after` is missing"
NULL_KEY = "NULL_KEY: a key column is NULL"
KEY_MISMATCH = "KEY_MISMATCH: key and row name different keys"

# Of Firehose alone: its function looks at one event at a time, and writes JSON.
UNKNOWN_TABLE = "UNKNOWN_TABLE: no table with `delivery: firehose` has this source"
NON_FINITE = "NON_FINITE: JSON has no NaN and no infinities"
TOO_LARGE = "TOO_LARGE: the answer would be larger than a function may give"

# Of what Firehose gave back, when it is redriven.
UNREADABLE_LINE = "UNREADABLE_LINE: the line under the error prefix is not as Firehose writes it"
NO_TABLE = "NO_TABLE: no log that Firehose delivers has just these columns"
TOO_OLD = "TOO_OLD: nobody knows any more whether the row was deleted since"


class RefusedEvent(ValueError):
    """The event cannot be a row of the log; its text says why."""


def not_representable(column: Column) -> str:
    """The state's type has no such value, and the policy is to say so."""
    return f"NOT_REPRESENTABLE: {column.column_type.state} cannot hold {column.name!r}"


def unsent_value(column: Column) -> str:
    """A placeholder where none may be: sent before the source had identity full, or since."""
    return f"UNSENT_VALUE: {column.name!r} was not sent, though replica identity full is declared"


def absent_column(column: Column) -> str:
    """NULL would be a guess: the column may be gone, renamed, or younger than the event."""
    return f"ABSENT_COLUMN: the event has no field {column.source!r}"


def lacking_column(name: str) -> str:
    """Of a row that was made under another declaration."""
    return f"ABSENT_COLUMN: the row has no column {name!r}"


def wrong_type(name: str, kind: str) -> str:
    """Of a row that was made under another declaration."""
    return f"WRONG_TYPE: column {name!r} is {kind} now"


def several_tables(logs: Iterable[str]) -> str:
    """A row names no table, and these logs have the same columns."""
    return f"SEVERAL_TABLES: the row may be of {' or '.join(logs)}"
