"""The connector's offsets, which Connect keeps in a topic: are they still those of this lake?

Without them the connector reads all tables again, at positions that are lower than those of the
same epoch: the lake would not take the rows. So a lake whose Kafka was replaced starts a new epoch.
"""

from __future__ import annotations

from cdclake.local.components import connect
from cdclake.local.components.kafka import Broker
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState
from cdclake.local.lake.stack import Endpoints
from cdclake.local.lake.topics import end_offsets, topic_id
from cdclake.local.process.home import Home


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
