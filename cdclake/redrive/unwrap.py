"""Firehose's function on the redrive stream: unwrap each record into its row and its relation.

A record names its relation, `{"table": ..., "row": {...}}`. The answer has the row as data and the
relation as metadata. A record of any other form fails, and Firehose keeps it under its error
prefix.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from cdclake.firehose.rows import encode, otf_metadata

log = logging.getLogger()


def unwrapped(record: bytes) -> tuple[str, Mapping[str, Any]]:
    """Return the relation and the row in a record; raise ValueError for any other record."""
    wrapped = json.loads(record)
    if type(wrapped) is not dict or wrapped.keys() != {"table", "row"}:
        raise ValueError("the record must have exactly `table` and `row`")
    relation, row = wrapped["table"], wrapped["row"]
    if type(relation) is not str or type(row) is not dict:
        raise ValueError("`table` must be a string and `row` an object")
    return relation, row


def unwrap_records(records: Sequence[Mapping[str, Any]], database: str) -> list[dict[str, Any]]:
    """Return one answer for each record, in order; the rows go to relations of `database`."""
    return [_answer(record, database) for record in records]


def _answer(record: Mapping[str, Any], database: str) -> dict[str, Any]:
    try:
        relation, row = unwrapped(base64.b64decode(record["data"]))
    except ValueError as error:
        log.warning("record %s was not put by the redrive: %s", record["recordId"], error)
        return {"recordId": record["recordId"], "result": "ProcessingFailed"}
    return {
        "recordId": record["recordId"],
        "result": "Ok",
        "data": base64.b64encode(encode(row).encode()).decode(),
        "metadata": otf_metadata(database, relation),
    }
