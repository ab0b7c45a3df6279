"""The slot that the connector creates."""

from cdclake.debezium.connector import SourceAddress, connector_config
from tests.unit.postgres.tables import plan


def test_standbys_may_copy_the_connectors_slot() -> None:
    """Debezium 3.7 ignores the setting before PostgreSQL 17 (`useFailOverSlot` in its bytecode)."""
    address = SourceAddress(host="h", port=1, database="d", user="u", password="", sslmode="prefer")
    config = connector_config(plan(), address, epoch=1, mask_salt="", max_queue_bytes=1)
    assert config["slot.failover"] == "true"
