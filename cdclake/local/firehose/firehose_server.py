"""The local Firehose as a process: all streams of the plan, and the API.

`python -m cdclake.local.firehose.firehose_server --home PATH --plan FILE --transforms FOLDER
[--faults SEED:KINDS]`; another plan or transform needs another process, as it needs another
deployment of the function on AWS.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

from cdclake import naming
from cdclake.firehose.redrive_stream import redrive_stream
from cdclake.firehose.stream import DeliveryStream
from cdclake.jobs.runtime.logs import log_to_stdout
from cdclake.local.aws.http_server import Server
from cdclake.local.aws.signature import SignedRequests
from cdclake.local.firehose.control_reads import erased_keys, widened_columns
from cdclake.local.firehose.delivery import Delivery, RecordSource
from cdclake.local.firehose.direct_put import DirectPut
from cdclake.local.firehose.failures import ErrorPrefix
from cdclake.local.firehose.fault_injection import FaultInjector
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.handlers import handler_of
from cdclake.local.firehose.iceberg_tables import LogTables
from cdclake.local.firehose.journal import Journal, JournalSource, journal_file
from cdclake.local.firehose.shards import KinesisSource, begin_now, checkpoints_file
from cdclake.local.firehose.topic import TopicSource
from cdclake.local.lake.lake import LakeState, LocalLake, describe_lake
from cdclake.local.process.home import Home
from cdclake.plan import Plan

log = logging.getLogger("cdclake.firehose")
_RETRY_S = 1.0


def main() -> int:
    """Deliver until SIGTERM, then return 0; the next process reads undelivered records again."""
    log_to_stdout()
    logging.getLogger("pyiceberg").setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(description="Local stand-in for Amazon Data Firehose.")
    parser.add_argument("--home", required=True, type=Path)
    parser.add_argument("--plan", required=True, type=Path)
    parser.add_argument("--transforms", required=True, type=Path)
    parser.add_argument("--faults", default="", help="faults to inject, like 7:shuffle,fail")
    given = parser.parse_args()
    home = Home(given.home)
    lake = describe_lake(home, LakeState.load(home))
    stop = threading.Event()
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: stop.set())
    _run(lake, given, stop)
    return 0


def _run(lake: LocalLake, given: argparse.Namespace, stop: threading.Event) -> None:
    plan = Plan.from_json(given.plan.read_text(encoding="utf-8"))
    journal = Journal(journal_file(lake.home))
    redrive = redrive_stream(plan)
    listed = [*plan.streams, *([redrive] if redrive else [])]
    deliveries = [_delivery(lake, plan, journal, s, given) for s in listed]
    work: dict[str, Callable[[], None]] = {d.stream.name: d.turn for d in deliveries}
    threads = [threading.Thread(target=keep_doing, args=(*each, stop)) for each in work.items()]
    streams = {naming.delivery_stream_name(plan.name, s.name): s for s in listed}
    port = urlparse(lake.endpoints.firehose).port
    assert port is not None  # chosen by `up`
    keys = lake.endpoints.keys
    api = DirectPut(streams, journal, FaultInjector.parse(given.faults))
    with Server(port, SignedRequests(api, keys.user, keys.password)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.shutdown()


def keep_doing(name: str, work: Callable[[], None], stop: threading.Event) -> None:
    """Repeat the work until `stop`, also after errors: undelivered records are kept."""
    while not stop.is_set():
        try:
            work()
        except Exception:
            log.exception("%s failed, retrying", name)
            stop.wait(_RETRY_S)


def _delivery(
    lake: LocalLake,
    plan: Plan,
    journal: Journal,
    stream: DeliveryStream,
    given: argparse.Namespace,
) -> Delivery:
    faults = FaultInjector.parse(given.faults)
    name = naming.delivery_stream_name(plan.name, stream.name)
    read = stream.topic or "direct puts"
    log.info("stream %s reads %s for %s", name, read, ", ".join(stream.tables))
    handler = None
    if stream.function is not None:
        reads = erased_keys(lake).read, widened_columns(lake).read
        handler = handler_of(stream, plan, given.transforms, *reads)
    return Delivery(
        stream,
        plan.lake_database,
        source=_source(lake, plan, journal, stream),
        function=None if handler is None else LocalFunction(handler, stream, faults=faults),
        tables=LogTables(lake.glue, lake.s3, lake.endpoints.keys, plan.lake_database),
        errors=ErrorPrefix(lake.client("s3"), lake.bucket, stream, name),
        faults=faults,
    )


def _source(lake: LocalLake, plan: Plan, journal: Journal, stream: DeliveryStream) -> RecordSource:
    name = naming.delivery_stream_name(plan.name, stream.name)
    if stream.source == "direct_put":
        return JournalSource(journal, name)
    if stream.source == "kinesis":
        shards = naming.kinesis_stream_name(plan.name, stream.topic)
        file = checkpoints_file(lake.home, shards)
        begin_now(file)
        return KinesisSource(lake.client("kinesis"), shards, file)
    return TopicSource(lake.kafka, naming.delivery_group(plan.name, stream.name), stream.topic)


if __name__ == "__main__":
    sys.exit(main())
