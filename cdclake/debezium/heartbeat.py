"""Statement with which the connector writes its heartbeat into the source."""

from __future__ import annotations

from cdclake.naming import HEARTBEAT_TABLE, SOURCE_SCHEMA

# Debezium's `heartbeat.action.query`: the slot must also advance when the source is idle.
HEARTBEAT_QUERY = (
    f'INSERT INTO "{SOURCE_SCHEMA}"."{HEARTBEAT_TABLE}" (id, beat_at) VALUES (1, now())'
    " ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at"
)
