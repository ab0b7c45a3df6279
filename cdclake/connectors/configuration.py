"""Configuration of a declared connector, the same locally and on MSK Connect."""

from __future__ import annotations

from cdclake.connectors.declared import DeclaredConnector
from cdclake.connectors.iceberg_sink import DEFAULTS, SinkAddress, sink_settings
from cdclake.plan import Plan


def configure(
    plan: Plan, connector: DeclaredConnector, connector_id: str, address: SinkAddress
) -> dict[str, str]:
    """Return the connector's whole configuration; `connector_id` is its name in Connect.

    Secrets are references, which Connect resolves when the connector starts.
    """
    topics = dict.fromkeys(plan.table(name).topic for name in connector.tables)
    of_sink = connector.is_iceberg_sink
    return {
        "connector.class": connector.connector_class,
        "tasks.max": str(connector.tasks),
        "topics": ",".join(topics),
        **(DEFAULTS if of_sink else {}),
        **connector.settings,
        **(sink_settings(plan, connector, connector_id, address) if of_sink else {}),
    }
