"""Handover of a deployed load to a connector that does not exist yet.

MSK Connect offers no way to set a connector's offsets, but the topic that stores them belongs to
the deployment: the load writes the connector's first record. Until the load is complete a record is
there at which the connector fails, so that it cannot start with rows missing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.debezium.connect_offset import UNFINISHED, offset_key, offset_value, stored_lsn
from cdclake.errors import ComponentFailed, InputError
from cdclake.jobs.bulk_load.load_source import LoadSource, connected, execute, refusal
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.runtime.arguments import brokers_of
from cdclake.jobs.runtime.connect_offsets import ConnectOffsets
from cdclake.plan import Plan
from cdclake.postgres import bulk_read

_NEXT_EPOCH = "increase `aws: connect: epoch` by one, deploy with `connector: off`, then load again"

log = logging.getLogger("cdclake.load")


@dataclass(frozen=True, slots=True)
class SlotState:
    """Replication slot as it is now."""

    is_active: bool
    is_lost: bool
    confirmed: int  # what a reader of the slot has confirmed: PostgreSQL does not send it again


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStart:
    """Start of the connector at the slot's LSN, by the connector's record in the offsets topic."""

    offsets: ConnectOffsets
    key: str
    slot: str
    epoch: int
    control: ObjectStore

    def begin(self, source: LoadSource) -> None:
        """Keep the connector from starting, and drop the slot of an earlier load.

        Raises InputError, with nothing changed, if connector or stream are deployed, if the
        connector can start where it is, or if the epoch has rows.
        """
        found = read_slot(source, self.slot)
        self._check_stopped(found)
        self._check_needed(found)
        self._check_epoch()
        self._write(UNFINISHED)
        if found is not None:
            _drop_slot(source, self.slot)

    def complete(self, source: LoadSource, lsn: int) -> None:
        """Let the connector start at `lsn`; ComponentFailed if the slot does not send what follows.

        Call it when every row of the snapshot at `lsn` is in the lake.
        """
        found = read_slot(source, self.slot)
        if found is None or found.is_lost:
            raise ComponentFailed(
                f"the slot {self.slot} was lost during the load: the source kept less WAL than was"
                " written meanwhile",
                f"raise the limit of WAL (`slot_wal_gb`, or max_slot_wal_keep_size), {_NEXT_EPOCH}",
                component="postgres",
            )
        if found.is_active or found.confirmed > lsn:
            raise ComponentFailed(
                f"another client has read from the slot {self.slot} during the load: its changes"
                f" from LSN {lsn} to {found.confirmed} are not sent again",
                f"end that client, {_NEXT_EPOCH}",
                component="postgres",
            )
        self._check_unchanged()
        self._write(offset_value(lsn))
        log.info("the connector starts at LSN %x", lsn)

    def abandon(self, source: LoadSource) -> None:
        """Drop the slot of a failed load: no connector can use it, and the source keeps WAL for it.

        Call it before `complete`, after which a connector may need the slot. The load has its error
        already, so another one is logged.
        """
        try:
            if read_slot(source, self.slot) is not None:
                _drop_slot(source, self.slot)
        except ComponentFailed as error:
            log.error(
                "the source keeps WAL for the slot %s; drop it, or load again, which drops it: %s",
                self.slot,
                error,
            )

    def _check_stopped(self, found: SlotState | None) -> None:
        order = self.control.read(naming.STREAM_ORDER)
        is_streaming = order is not None and order.content["deployment"] is not None
        if is_streaming or (found is not None and found.is_active):
            running = "the stream" if is_streaming else "the connector"
            raise InputError(
                f"{running} is running",
                "deploy with `connector: off` and `stream: off`, then load",
            )

    def _check_needed(self, found: SlotState | None) -> None:
        lsn = stored_lsn(self.offsets.newest().get(self.key))
        if lsn is not None and found is not None and not found.is_lost:
            raise InputError(
                f"the connector can start at LSN {lsn}, and its slot is intact: nothing to load",
                "deploy with `connector: on` and `stream: on`; to load everything again, drop the"
                f" slot {self.slot} first",
            )

    def _check_epoch(self) -> None:
        begun = self.control.read(naming.load_start(self.epoch)) is not None
        if begun or Progress.load(self.control).epoch >= self.epoch:
            raise InputError(f"the lake already has rows of epoch {self.epoch}", _NEXT_EPOCH)

    def _check_unchanged(self) -> None:
        """Raise ComponentFailed unless the record of `begin` is still the connector's newest one.

        A connector that read its offsets before `begin` may be taking a snapshot. Its slot is then
        inactive.
        """
        if self.offsets.newest().get(self.key) != UNFINISHED:
            raise ComponentFailed(
                f"a connector has stored a position in the topic {self.offsets.topic} during the"
                " load",
                f"deploy with `connector: off`, drop the slot {self.slot}, {_NEXT_EPOCH}",
                component="kafka",
            )

    def _write(self, value: str) -> None:
        self.offsets.write(self.key, value)
        if self.offsets.newest().get(self.key) != value:
            raise ComponentFailed(
                f"the topic {self.offsets.topic} has another position than the one just written",
                "end the connector that writes it, then load again",
                component="kafka",
            )


def deployed_start(
    spark: SparkSession, plan: Plan, control: ObjectStore, arguments: Mapping[str, str]
) -> ConnectorStart | None:
    """Return the handover of a deployed load; None if the local lake hands over."""
    if "offsets" not in arguments:
        return None
    return ConnectorStart(
        offsets=ConnectOffsets(spark, brokers_of(arguments), arguments["offsets"]),
        key=offset_key(arguments["connector"], plan.name),
        slot=arguments["slot"],
        epoch=int(arguments["epoch"]),
        control=control,
    )


def read_slot(source: LoadSource, slot: str) -> SlotState | None:
    """Return the state of the slot; None if it does not exist."""
    connection = connected(source)
    try:
        answer = connection.createStatement().executeQuery(bulk_read.slot_state(slot))
        if not answer.next():
            return None
        return SlotState(
            answer.getBoolean("active"), answer.getBoolean("lost"), answer.getLong("confirmed")
        )
    except Py4JJavaError as error:
        raise refusal(error) from None
    finally:
        connection.close()


def _drop_slot(source: LoadSource, slot: str) -> None:
    connection = connected(source)
    try:
        execute(connection, bulk_read.drop_slot(slot))
    finally:
        connection.close()
