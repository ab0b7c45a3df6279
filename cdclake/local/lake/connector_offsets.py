"""Checks that the connector's stored offsets belong to this lake and its source.

Connect keeps them in a topic. Without them the connector reads all tables again, at positions that
are lower than those of the same epoch: the lake would not take the rows. So a lake whose Kafka was
replaced starts a new epoch. So does one whose source was set back together with its slot, as by a
snapshot of its disk: PostgreSQL would skip each commit up to the place that the connector asks for,
without an error.
"""

from __future__ import annotations

from cdclake.jobs.runtime.source import wal_position
from cdclake.local.components import connect
from cdclake.local.components.kafka import Broker
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.lake.stack import Endpoints
from cdclake.local.lake.topics import end_offsets, topic_id
from cdclake.local.process.home import Home

SET_BACK = "the source was set back to before what the connector has read"


def offsets_topic(home: Home, endpoints: Endpoints, *, embedded_postgres: bool) -> str:
    """Return the id of the offsets' topic; restart a worker that has lost it.

    A worker creates its topics only when it starts.
    """
    found = topic_id(endpoints.kafka, connect.OFFSETS_TOPIC)
    if not found:
        stack.stop_component(home, connect.NAME)
        stack.bring_up(home, embedded_postgres=embedded_postgres)
        found = topic_id(endpoints.kafka, connect.OFFSETS_TOPIC)
    return found


def are_lost(kafka: Broker, state: LakeState, topic: str) -> bool:
    """Return True if the connector has streamed, and this topic is not the one with its offsets.

    A lake of an earlier version knows no id; its connector has offsets unless the topic is empty.
    """
    if not state.epoch:
        return False
    if state.connector_offsets:
        return state.connector_offsets != topic
    return not any(end_offsets(kafka, [connect.OFFSETS_TOPIC])[connect.OFFSETS_TOPIC].values())


def are_ahead(lake: LocalLake) -> bool:
    """Return True if the connector has read further than the source's WAL reaches."""
    connector = ConnectorClient(lake.endpoints.connect, lake.plan)
    read_through = connector.read_through()  # first: the WAL may grow meanwhile
    return read_through > wal_position(lake.dsn)
