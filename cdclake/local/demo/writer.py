"""Thread that runs the shop's transactions against PostgreSQL at a steady rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import psycopg

from cdclake.local.demo.shop_tables import DDL, KEYS, Transaction
from cdclake.local.demo.transaction_log import Ledger


@dataclass(slots=True)
class Written:
    """Counts of committed transactions, and of rows, events and records by table."""

    transactions: int = 0
    rolled_back: int = 0
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    events: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    records: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))

    def add(self, transaction: Transaction) -> None:
        """Count a finished transaction."""
        if transaction.rolled_back:
            self.rolled_back += 1
            return
        self.transactions += 1
        for change in transaction.changes:
            self.rows[change.table] += len(change.rows)
            self.events[change.table] += change.events
            self.records[change.table] += change.records

    @property
    def total(self) -> int:
        """Number of row changes in all tables."""
        return sum(self.rows.values())


def open_shop(dsn: str, opening: Iterable[Transaction]) -> Written:
    """Create the tables, write the initial rows, and return their counts."""
    written = Written()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(DDL)
        for transaction in opening:
            run_transaction(connection, transaction)
            written.add(transaction)
        connection.execute("ANALYZE")
    return written


def run_transaction(connection: psycopg.Connection, transaction: Transaction) -> None:
    """Run a transaction in pipeline mode, so that rows do not each wait for a round trip."""
    with connection.pipeline(), connection.transaction() as block, connection.cursor() as cursor:
        for change in transaction.changes:
            cursor.executemany(change.sql, change.rows)
        if transaction.rolled_back:
            raise psycopg.Rollback(block)


class Writer(threading.Thread):
    """Thread that writes transactions until stopped; `error` is set if it ended early."""

    def __init__(
        self, dsn: str, opening: Written, transactions: Iterator[Transaction], rate: float
    ) -> None:
        super().__init__(name="shop", daemon=True)
        self._dsn, self._transactions, self._rate = dsn, transactions, rate
        self._stopping = threading.Event()
        self._opening = opening
        self.written = Written()
        self.ledgers = {table: Ledger() for table in KEYS}
        self.error: Exception | None = None

    def run(self) -> None:
        """Write transactions until stopped."""
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                self._write(connection)
        except psycopg.Error as error:
            self.error = error

    def _write(self, connection: psycopg.Connection) -> None:
        started, attempted = time.monotonic(), 0
        for transaction in self._transactions:
            ahead = attempted / self._rate - (time.monotonic() - started)
            if self._stopping.wait(ahead) if ahead > 0 else self._stopping.is_set():
                return
            run_transaction(connection, transaction)
            self._note(transaction)
            attempted += transaction.rows

    def _note(self, transaction: Transaction) -> None:
        self.written.add(transaction)
        now = time.time()
        for table in {change.table for change in transaction.changes}:
            offset = self._opening.records[table] + self.written.records[table]
            self.ledgers[table].add(offset, now)

    def stop(self) -> None:
        """Stop after the current transaction, and wait for that."""
        self._stopping.set()
        self.join(timeout=30)
