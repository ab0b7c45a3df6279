"""Connectors of `connectors:` on the local worker: apply the plan's, and report their states.

None of them may stop the pipeline: whatever Connect refuses is in the answer of `up`, and whatever
fails later is in that of `status`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cdclake import naming
from cdclake.connectors.configuration import configure
from cdclake.connectors.declared import DeclaredConnector
from cdclake.connectors.iceberg_sink import SinkAddress
from cdclake.errors import ComponentFailed
from cdclake.local.components.installed import REGION
from cdclake.local.components.kafka import CLIENT_SETTINGS
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LocalLake
from cdclake.plan import Plan

_WAIT_S = 2.0  # for an answer of `status`
_APPLY_WAIT_S = 15.0  # for a worker that rebalances; it answers an unknown class with 500 as well
_MISSING = "Connect does not have it; run `cdclake up`, which shows why"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorState:
    """State of a declared connector."""

    connector: str
    plugin: str
    tables: tuple[str, ...]
    state: str
    last_error: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the state for `up` and `status`."""
        return asdict(self)


def remove_connectors(lake: LocalLake, before: Plan) -> None:
    """Delete the connectors that only the earlier plan has."""
    declared = {connector.name for connector in lake.plan.connectors}
    for connector in before.connectors:
        if connector.name not in declared:
            client(lake, connector.name).remove()


def apply_connectors(lake: LocalLake) -> list[ConnectorState]:
    """Run the plan's connectors, and return their states."""
    return [_applied(lake, connector) for connector in lake.plan.connectors]


def connector_states(lake: LocalLake) -> list[ConnectorState]:
    """Return the state of each connector of the plan; raise ComponentFailed if Connect is down."""
    found = []
    for connector in lake.plan.connectors:
        asked = client(lake, connector.name, wait_s=_WAIT_S)
        state = asked.state()
        failure = asked.failure() if state != "missing" else _MISSING
        found.append(_state(connector, state, failure))
    return found


def client(lake: LocalLake, name: str, *, wait_s: float = _APPLY_WAIT_S) -> ConnectorClient:
    """Return the client of the declared connector with this name."""
    in_connect = naming.declared_connector_name(lake.plan.name, name)
    return ConnectorClient(lake.endpoints.connect, lake.plan, name=in_connect, wait_s=wait_s)


def local_config(lake: LocalLake, connector: DeclaredConnector) -> dict[str, str]:
    """Return the connector's configuration on the local worker."""
    address = SinkAddress(
        warehouse=lake.warehouse_uri,
        region=REGION,
        endpoint=lake.glue,
        kafka={"bootstrap.servers": lake.kafka.address, **CLIENT_SETTINGS},
    )
    name = naming.declared_connector_name(lake.plan.name, connector.name)
    return configure(lake.plan, connector, name, address)


def shown(states: Sequence[ConnectorState]) -> list[dict[str, Any]]:
    """Return the states for `up` and `status`."""
    return [state.to_json() for state in states]


def _applied(lake: LocalLake, connector: DeclaredConnector) -> ConnectorState:
    asked = client(lake, connector.name)
    try:
        asked.start(local_config(lake, connector))
        return _state(connector, asked.state(), asked.failure())
    except ComponentFailed as error:
        return _state(connector, "refused", error.message)


def _state(connector: DeclaredConnector, state: str, failure: str | None) -> ConnectorState:
    return ConnectorState(
        connector=connector.name,
        plugin=connector.plugin,
        tables=connector.tables,
        state=state,
        last_error=failure,
    )
