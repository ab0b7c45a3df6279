"""Durable state of the server in one SQLite file: objects, tables, secrets, Kinesis records.

A commit has been passed to the kernel when it returns, so it survives a kill of the process but not
a power failure (synchronous=OFF, as elsewhere in the local lake).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCHEMA = """
create table if not exists bucket (
    name text primary key, region text not null, created text not null);
create table if not exists object (
    bucket text not null, key text not null, file text not null, size integer not null,
    etag text not null, modified text not null, storage_class text, metadata text not null,
    checksum text not null, primary key (bucket, key));
create table if not exists glue_database (
    region text not null, name text not null, body text not null, primary key (region, name));
create table if not exists glue_table (
    region text not null, database text not null, name text not null, body text not null,
    primary key (region, database, name));
create table if not exists glue_registry (
    region text not null, name text not null, body text not null, primary key (region, name));
create table if not exists secret (
    region text not null, name text not null, value text not null, primary key (region, name));
create table if not exists kinesis_stream (
    region text not null, name text not null, shards integer not null, primary key (region, name));
create table if not exists kinesis_record (
    region text not null, stream text not null, shard text not null, sequence integer not null,
    key text not null, data text not null, created real not null,
    primary key (region, stream, shard, sequence));
"""
_LOCK_TIMEOUT_S = 60.0  # of another process, such as a search that empties the write-ahead log


class Index:
    """SQLite connection; the server's write lock ensures that one thread uses it at a time."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(
            path, timeout=_LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        self.connection.execute("pragma journal_mode=wal")
        self.connection.execute("pragma synchronous=off")
        # Names of objects have values of partitions, which an erasure must not leave in free pages.
        self.connection.execute("pragma secure_delete=on")
        self.connection.executescript(SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block in a transaction; a nested block joins the outer transaction.

        If SQLite fails, for example on a full disk, the process ends: moto has the change already,
        and would serve what the next start does not have.
        """
        if self.connection.in_transaction:
            yield self.connection
            return
        try:
            self.connection.execute("begin immediate")
            try:
                yield self.connection
            except BaseException:
                self.connection.execute("rollback")
                raise
            self.connection.execute("commit")
        except sqlite3.Error:
            try:
                traceback.print_exc(file=sys.stderr)
            finally:  # the log may be on the same full disk
                os._exit(1)
