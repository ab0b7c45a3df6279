"""What is redriven goes by the API, the journal and the stream's own function to its relations."""

import base64
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyiceberg.schema import Schema

from cdclake import naming
from cdclake.firehose.redrive_stream import redrive_stream
from cdclake.iceberg.schemas import quarantine_schema
from cdclake.local.aws.http_server import Server
from cdclake.local.firehose.delivery import Delivery
from cdclake.local.firehose.direct_put import DirectPut
from cdclake.local.firehose.fault_injection import FaultInjector
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.handlers import handler_of
from cdclake.local.firehose.journal import Journal, JournalSource
from cdclake.redrive.batch_writer import BatchWriter
from cdclake.redrive.objects import Line
from cdclake.redrive.routed_rows import Redrive
from tests.recorded.firehose import Kept, Logs, iceberg_schema
from tests.unit.deployed.redriving import NOW, events, plan, rows
from tests.unit.firehose.test_direct_put import client_of

NAME = naming.delivery_stream_name("changes", naming.REDRIVE)


class Relations(Logs):
    """The logs, and the quarantine."""

    def schema(self, table: str) -> Schema:
        if table != naming.QUARANTINE:
            return super().schema(table)
        return iceberg_schema(quarantine_schema(self.plan))

    def rows(self, table: str) -> list[Mapping[str, Any]]:
        return [row for name, rows in self.commits for row in rows if name == table]


def lines(raw: Sequence[bytes]) -> list[Line]:
    spelled = [json.dumps({"rawData": base64.b64encode(each).decode()}).encode() for each in raw]
    name = naming.delivery_stream_name("changes", "plain")
    return [Line("processing-failed", name, "s3://b/k", n, t) for n, t in enumerate(spelled, 1)]


def test_rows_arrive_in_logs_and_quarantine_though_firehose_refuses_and_fails(
    tmp_path: Path,
) -> None:
    stream, relations, kept = redrive_stream(plan()), Relations(plan()), Kept()
    assert stream is not None
    journal, faults = (
        Journal(tmp_path / "journal.db"),
        FaultInjector(3, ["fail", "split", "duplicate"]),
    )
    with Server(0, DirectPut({NAME: stream}, journal, faults)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        puts = BatchWriter(client_of(server.server_address[1]), NAME, pause=lambda _: None)
        redrive = Redrive(plan(), "changes", dict)
        for line in lines([*events("plain"), b"no event"]):
            made = redrive.route(line, NOW)
            assert made is not None
            puts.add(made.record())
        puts.flush()
        server.shutdown()
    delivery = Delivery(
        stream, plan().lake_database, source=JournalSource(journal, NAME), tables=relations,
        function=LocalFunction(handler_of(stream, plan(), Path(), dict), stream, faults=faults),
        errors=kept, faults=faults, pause=lambda _: None,
    )  # fmt: skip
    delivery.drain()
    assert kept.failures == []
    arrived = {row[naming.LSN] for row in relations.rows("plain_changes")}
    assert arrived == {row[naming.LSN] for row in rows("plain")}
    assert {row["offset"] for row in relations.rows(naming.QUARANTINE)} == {
        len(events("plain")) + 1
    }
    assert journal.waiting(NAME) == 0
