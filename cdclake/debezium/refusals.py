"""Reasons why an event cannot be decoded, as shown in the quarantine and the log output.

Each is a code in capitals, for counting and searching, and its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable

from cdclake.plan import Column, Table

UNREADABLE_VALUE = "UNREADABLE_VALUE: not JSON, or a field is not of its declared type"
UNREADABLE_KEY = "UNREADABLE_KEY: not JSON, or a field is not of its declared type"
UNREADABLE_AVRO = "UNREADABLE_AVRO"  # followed by the reason
SCHEMA_REFUSED = "SCHEMA_REFUSED"  # followed by the registry's reason; written by the connector
UNKNOWN_OPERATION = "UNKNOWN_OPERATION: op is not one of crudt"
NO_SEQUENCE = "NO_SEQUENCE: without source.sequence the event has no place in the order"
NO_EPOCH = "NO_EPOCH: the connector does not set cdc_epoch"
NO_ROW = "NO_ROW: `after` is missing"
NULL_KEY = "NULL_KEY: a key column is NULL"
KEY_MISMATCH = "KEY_MISMATCH: key and row name different keys"

# The row is readable, and a rule of the file withholds it: an intent, not a fault.
BROKEN_RULE = "BROKEN_RULE"
WITH_VALUE = " with the value "
MAX_VALUE_CHARACTERS = 100  # of a value in a reason

# The connector writes the whole reason into the marker of an event that is too large for Kafka.
OVERSIZED_RECORD = "OVERSIZED_RECORD"
UNCONVERTED_VALUE = "UNCONVERTED_VALUE"  # of a column that is NOT NULL; written by the connector

# Only for Firehose: its function sees one event at a time, and writes JSON.
UNKNOWN_TABLE = "UNKNOWN_TABLE: no table with `delivery: firehose` has this source"
NON_FINITE = "NON_FINITE: JSON has no NaN and no infinities"
TOO_LARGE = "TOO_LARGE: the response would exceed the limit of a function"

# Only for redriven records that Firehose had returned.
UNREADABLE_LINE = "UNREADABLE_LINE: the line under the error prefix is not as Firehose writes it"
NO_TABLE = "NO_TABLE: no changelog that Firehose writes has exactly these columns"
TOO_OLD = "TOO_OLD: later events of the row may already be purged or collapsed"


class RefusedEvent(ValueError):
    """Event that cannot be decoded; its text is the reason."""


def not_representable(column: Column, table: Table) -> str:
    """Return the reason for a value that the state's type cannot hold."""
    part = "key column " if column.name in table.key else ""
    return f"NOT_REPRESENTABLE: {column.column_type.state} cannot hold {part}{column.name!r}"


def broken_rule(rule: str, column: Column, value: str) -> str:
    """Return the reason for a row that breaks a rule with `on: quarantine`."""
    if len(value) > MAX_VALUE_CHARACTERS:
        value = f"{value[:MAX_VALUE_CHARACTERS]}..."
    return f"{BROKEN_RULE}: {rule} is broken by column {column.name!r}{WITH_VALUE}{value}"


def is_withheld(reason: str) -> bool:
    """Check whether the reason is a rule of the file; `iceberg.limit_condition` has it in SQL."""
    return reason.startswith(BROKEN_RULE)


def is_without_values(reason: str) -> bool:
    """Check whether the event does not have the row's values, so that every replay refuses it."""
    return reason.startswith((OVERSIZED_RECORD, UNCONVERTED_VALUE))


def without_value(reason: str) -> str:
    """Return the reason without the value that broke a rule, for counting and for log output.

    >>> without_value("BROKEN_RULE: in(s) is broken by column 's' with the value x")
    "BROKEN_RULE: in(s) is broken by column 's'"
    """
    return reason.split(WITH_VALUE)[0] if is_withheld(reason) else reason


def unsent_value(column: Column) -> str:
    """Return the reason for a value that replica identity full, which is declared, would send."""
    return f"UNSENT_VALUE: {column.name!r} was not sent, though replica identity full is declared"


def absent_column(column: Column) -> str:
    """Return the reason for a missing field: its column may be dropped, renamed or newer."""
    return f"ABSENT_COLUMN: the event has no field {column.source!r}"


def lacking_column(name: str) -> str:
    """Return the reason for a row without a declared column, from an older declaration."""
    return f"ABSENT_COLUMN: the row has no column {name!r}"


def wrong_type(name: str, kind: str) -> str:
    """Return the reason for a value that does not fit the current declaration."""
    return f"WRONG_TYPE: column {name!r} is {kind} now"


def several_tables(logs: Iterable[str]) -> str:
    """Return the reason for a row without a table if several changelogs have its columns."""
    return f"SEVERAL_TABLES: the row may belong to {' or '.join(logs)}"
