"""Greatest size of a record, shared by broker, topics, producer and the connector's transform."""

from __future__ import annotations

MAX_RECORD_BYTES = 16 * 1024 * 1024
# What the producer and the broker add to a record, and LZ4 to a batch that it cannot compress.
_MAX_ENVELOPE_BYTES = 64 * 1024
# The connector replaces records with a larger key and value by markers.
MAX_EVENT_BYTES = MAX_RECORD_BYTES - _MAX_ENVELOPE_BYTES
