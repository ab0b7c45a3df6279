"""Record of a source connector's position in the offsets topic of Kafka Connect.

Connect finds a record by the bytes of its key, so both texts are exactly those of Connect's own
converter: JSON without spaces. The test compares them with records that a worker wrote.
"""

from __future__ import annotations

import json

# The connector fails at a position that is no number, instead of starting without its rows.
UNFINISHED = '{"lsn":"the bulk load has not finished","ts_usec":0}'


def offset_key(connector: str, topic_prefix: str) -> str:
    """Return the key of the position that Connect stores for a Debezium connector.

    >>> offset_key("shop-prod-connector", "shop")
    '["shop-prod-connector",{"server":"shop"}]'
    """
    return json.dumps([connector, {"server": topic_prefix}], separators=(",", ":"))


def offset_value(lsn: int) -> str:
    """Return the position of a connector that has to begin at this LSN, without a snapshot."""
    return json.dumps({"lsn": lsn, "ts_usec": 0}, separators=(",", ":"))


def stored_lsn(value: str | None) -> int | None:
    """Return the LSN of a stored position; None if there is none, or a load is unfinished."""
    lsn = json.loads(value).get("lsn") if value else None
    return lsn if isinstance(lsn, int) else None
