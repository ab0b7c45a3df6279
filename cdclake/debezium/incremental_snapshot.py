"""Progress of Debezium's incremental snapshots, from its stored offset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TABLES = "incremental_snapshot_collections"


def tables_being_read(offset: Mapping[str, Any]) -> frozenset[str]:
    """Return the tables (`schema.table`) that an incremental snapshot has not finished."""
    listed = json.loads(offset.get(_TABLES) or "[]")
    return frozenset(entry[f"{_TABLES}_id"].replace('"', "") for entry in listed)
