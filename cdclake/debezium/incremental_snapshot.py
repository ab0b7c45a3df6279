"""What Debezium's stored offset says of the tables that it is reading again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TABLES = "incremental_snapshot_collections"


def tables_being_read(offset: Mapping[str, Any]) -> frozenset[str]:
    """Tables (`schema.table`) that an incremental snapshot reads, or has still to read."""
    listed = json.loads(offset.get(_TABLES) or "[]")
    return frozenset(entry[f"{_TABLES}_id"].replace('"', "") for entry in listed)
