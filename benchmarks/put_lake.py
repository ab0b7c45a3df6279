"""Local S3, Glue and Firehose of put tables in one process, which counts requests by table.

The parts are those of a local lake, except that Firehose buffers as long as the file declares.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import boto3

from cdclake.iceberg.schemas import appended_schemas
from cdclake.local.aws.aws_server import DurableAws, scope
from cdclake.local.aws.http_server import Answer, Application, Server
from cdclake.local.aws.signature import SignedRequests
from cdclake.local.components.installed import REGION
from cdclake.local.firehose.delivery import Delivery
from cdclake.local.firehose.direct_put import DirectPut
from cdclake.local.firehose.failures import ErrorPrefix
from cdclake.local.firehose.firehose_server import keep_doing
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.handlers import handler_of
from cdclake.local.firehose.iceberg_tables import LogTables
from cdclake.local.firehose.journal import Journal, JournalSource
from cdclake.local.process.credentials import Login
from cdclake.plan import Plan

BUCKET = "bench"
KINDS = ("s3_write", "s3_read", "glue")  # of requests, as they are billed
_KEYS = Login("bench", "bench")
_READS = {"GET": "s3_read", "HEAD": "s3_read", "PUT": "s3_write", "POST": "s3_write"}


class Commit(NamedTuple):
    """Append that a reader can see since `at`, in seconds since 1970."""

    at: float
    rows: int


class CountedAws:
    """Local S3 and Glue that count the billed requests of each table."""

    def __init__(self, near: Application) -> None:
        self._near, self._lock = near, threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        """Count the request and answer it."""
        table, kind = _billed(environ, body)
        with self._lock:
            self._counts[table, kind] += 1
        return self._near(environ, body)

    def counts(self, table: str) -> dict[str, int]:
        """Return the requests of the table so far, by kind."""
        with self._lock:
            return {kind: self._counts[table, kind] for kind in KINDS}


def _billed(environ: Mapping[str, Any], body: bytes) -> tuple[str, str]:
    """Return the table and the kind of a request; S3 does not bill a DELETE."""
    if scope(dict(environ))[1] == "glue":
        asked = json.loads(body or b"{}")
        return asked.get("TableInput", asked).get("Name", ""), "glue"
    _, _, key = environ["PATH_INFO"].strip("/").partition("/")
    return key.partition("/")[0], _READS.get(environ["REQUEST_METHOD"], "free")


class TimedTables(LogTables):
    """Tables that note when each append has become readable."""

    def __init__(self, address: str, database: str) -> None:
        super().__init__(address, address, _KEYS, database)
        self._commits: dict[str, list[Commit]] = {}

    def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append the rows in one commit."""
        super().append(table, rows)
        self._commits.setdefault(table, []).append(Commit(time.time(), len(rows)))

    def commits(self, table: str) -> list[Commit]:
        """Return the appends to the table so far."""
        return list(self._commits.get(table, ()))

    def file_bytes(self, table: str) -> list[int]:
        """Return the sizes of the table's data files."""
        files = self._load(table).inspect.data_files()
        return [int(size) for size in files["file_size_in_bytes"].to_pylist()]

    def values(self, table: str, column: str) -> list[Any]:
        """Return a column of all rows."""
        found = self._load(table).scan(selected_fields=(column,)).to_arrow()
        return list(found[column].to_pylist())


class PutLake:
    """Running lake of put tables: its producers' client, and what has been delivered."""

    def __init__(
        self, plan: Plan, aws: CountedAws, address: str, folder: Path, journal: Journal
    ) -> None:
        self.aws, self.tables = aws, TimedTables(address, plan.lake_database)
        self._s3, self._glue = _client(address, "s3"), _client(address, "glue")
        self._create(plan)
        handlers = {s.name: handler_of(s, plan, folder, dict) for s in plan.put_streams}
        self._deliveries = [
            Delivery(
                stream,
                plan.lake_database,
                source=JournalSource(journal, stream.name),
                function=LocalFunction(handlers[stream.name], stream),
                tables=self.tables,
                errors=ErrorPrefix(self._s3, BUCKET, stream, stream.name),
                longest_buffer_s=math.inf,
            )
            for stream in plan.put_streams
        ]
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=keep_doing, args=(d.stream.name, d.turn, self._stop))
            for d in self._deliveries
        ]

    def _create(self, plan: Plan) -> None:
        self._s3.create_bucket(Bucket=BUCKET)
        database = {"Name": plan.lake_database}
        self._glue.create_database(DatabaseInput=database)
        for schema in appended_schemas(plan):
            self.tables.create(schema, f"s3://{BUCKET}/{schema.name}")

    def start(self) -> None:
        """Start the deliveries."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the deliveries after their current turn; buffered records stay undelivered."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def drain(self) -> None:
        """Deliver everything that was put, after `stop`."""
        for delivery in self._deliveries:
            delivery.drain()


def _client(address: str, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=address,
        region_name=REGION,
        aws_access_key_id=_KEYS.user,
        aws_secret_access_key=_KEYS.password,
    )


@contextmanager
def put_lake(folder: Path, plan: Plan) -> Iterator[tuple[PutLake, Any]]:
    """Yield a lake of the plan's put tables and a client of its Firehose; stop it in the end."""
    aws = CountedAws(DurableAws(folder / "aws"))
    journal = Journal(folder / "journal.db")
    firehose = DirectPut({stream.name: stream for stream in plan.put_streams}, journal)
    with ExitStack() as servers:
        address, api = (servers.enter_context(_serving(app)) for app in (aws, firehose))
        lake = PutLake(plan, aws, address, folder, journal)
        try:
            yield lake, _client(api, "firehose")
        finally:
            lake.stop()


@contextmanager
def _serving(app: Application) -> Iterator[str]:
    with Server(0, SignedRequests(app, _KEYS.user, _KEYS.password)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
