"""Random histories of a database, and the stream that Debezium and Kafka make of them.

The truth is what the simulated database holds in the end; nothing here reads an event back.
Transactions overlap in the WAL, hold their rows' locks, and are sent in the order of their commits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.model.scenarios import DAY_IN_2023, Case, Live

KEYS = range(1, 6)
PARTITIONS = 3
LONGEST_CHAIN = 4  # as far as the views follow a value through changed keys


@dataclass(slots=True)
class Value:
    """A row of the database: `moves` counts the changed keys since `big` was last sent."""

    v: str
    big: str | None
    moves: int = 0


@dataclass(slots=True)
class Transaction:
    """Its changes, not visible to others, and the keys that it has locked."""

    id: int
    rows: dict[int, Value | None] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)  # events without their previous commit
    truncates: bool = False


class Database:
    """A table of PostgreSQL as far as its WAL shows it."""

    def __init__(self, random: Random, *, truncates: bool) -> None:
        self._random = random
        self._truncates = truncates
        self._lsn = 100
        self._last_commit: int | None = None
        self._open: list[Transaction] = []
        self._transactions = 0
        self._changes = 0
        self.rows: dict[int, Value] = {}
        self.stream: list[tuple[int | None, list[str]]] = []  # by transaction: previous commit

    def run(self, steps: int) -> None:
        """A history with a snapshot somewhere in its first half; in the end all has committed."""
        snapshot = self._random.randrange(steps // 2)
        for step in range(steps):
            if step == snapshot:
                self._snapshot()
            self._step()
        while self._open:
            self._commit(self._open[0])

    def _snapshot(self) -> None:
        """What was committed is read; transactions that are open over it will be streamed."""
        self._lsn += 10
        rows = [
            f"r{key}@-:{self._lsn} p={key % PARTITIONS} {_shown(row)}"
            for key, row in self.rows.items()
        ]
        self.stream = [(None, rows)]
        self._last_commit = None

    def _step(self) -> None:
        action = self._random.choice(["open", "change", "change", "change", "commit"])
        if not self._open or (action == "open" and len(self._open) < 3):
            self._transactions += 1
            self._open.append(Transaction(self._transactions))
        transaction = self._random.choice(self._open)
        if action == "commit":
            self._commit(transaction)
        else:
            self._change(transaction)

    def _commit(self, transaction: Transaction) -> None:
        self._open.remove(transaction)
        if transaction.truncates:
            self.rows.clear()
        for key, row in transaction.rows.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        if transaction.sent:
            self.stream.append((self._last_commit, transaction.sent))
            self._last_commit = self._next_lsn()

    def _next_lsn(self) -> int:
        self._lsn += self._random.choice([1, 7, 200])
        return self._lsn

    def _free(self, transaction: Transaction) -> list[int]:
        locked = {key for other in self._open if other is not transaction for key in other.rows}
        return [key for key in KEYS if key not in locked]

    def _change(self, transaction: Transaction) -> None:
        if self._truncates and len(self._open) == 1 and self._random.random() < 0.1:
            transaction.truncates = True
            transaction.rows = dict.fromkeys(KEYS)
            transaction.sent.append(f"t@PREV:{self._next_lsn()} tx={transaction.id}")
            return
        free = self._free(transaction)
        if not free:
            return
        key = self._random.choice(free)
        row = transaction.rows[key] if key in transaction.rows else self.rows.get(key)
        self._changes += 1
        if row is None:
            self._write(transaction, "c", key, Value(f"v{self._changes}", self._big()))
        elif (kind := self._random.choice(["update", "update", "delete", "move"])) == "update":
            big, unsent = self._updated(row)
            self._write(transaction, "u", key, Value(f"v{self._changes}", big, row.moves), unsent)
        elif kind == "delete":
            self._write(transaction, "d", key, None)
        else:
            self._move(transaction, key, row, free)

    def _big(self) -> str | None:
        return self._random.choice([f"big{self._changes}", f"large{self._changes}", None])

    def _updated(self, row: Value) -> tuple[str | None, bool]:
        """The value after an update, and whether it is left out of the event as unchanged."""
        if row.big is not None and self._random.random() < 0.6:
            return row.big, True
        return self._big(), False

    def _move(self, transaction: Transaction, key: int, row: Value, free: list[int]) -> None:
        targets = [k for k in free if transaction.rows.get(k, self.rows.get(k)) is None]
        targets = [k for k in targets if k != key]
        if not targets:
            return
        big, unsent = self._updated(row)
        if row.moves == LONGEST_CHAIN:
            unsent = False
        moved = Value(f"v{self._changes}", big, row.moves + 1 if unsent else 0)
        lsn = self._next_lsn()
        self._write(transaction, "d", key, None, lsn=lsn)
        self._write(transaction, "c", self._random.choice(targets), moved, unsent, lsn=lsn)

    def _write(
        self,
        transaction: Transaction,
        op: str,
        key: int,
        row: Value | None,
        unsent: bool = False,
        *,
        lsn: int | None = None,
    ) -> None:
        if row is not None and not unsent:
            row.moves = 0
        transaction.rows[key] = row
        shown = "" if row is None else _shown(row, unsent)
        lsn = lsn or self._next_lsn()
        event = f"{op}{key}@PREV:{lsn} tx={transaction.id} p={key % PARTITIONS} {shown}"
        transaction.sent.append(event)


def _shown(row: Value, unsent: bool = False) -> str:
    big = "?" if unsent else row.big
    return f"v={row.v}" if big is None else f"v={row.v} big={big}"


def sent(database: Database, random: Random) -> list[str]:
    """The stream's events, with suffixes that a restarted connector sends again.

    A transaction that is sent again may name another previous commit, between its own and the next;
    a snapshot's row has the time of the new reading.
    """
    events: list[str] = []
    for restart, (prev, transaction) in enumerate(database.stream, 1):
        named = [event.replace("PREV", "-" if prev is None else str(prev)) for event in transaction]
        cut = random.randrange(len(named) + 1)
        if not named or random.random() < 0.7:
            events += named
            continue
        events += named[:cut]  # here the connector dies
        lowest = min(int(event.split(":")[1].split()[0]) for event in transaction)
        again = str(max(prev or 0, lowest - 1) if random.random() < 0.5 else prev or 0)
        sent_before = events[random.randrange(len(events) + 1) : len(events) - cut]
        events += [_read_again(event, restart) for event in sent_before]
        events += [_read_again(event.replace("PREV", again), restart) for event in transaction]
    return events


def _read_again(event: str, restart: int) -> str:
    return f"{event} ts={DAY_IN_2023 + restart}" if event.startswith("r") else event


def batches(events: list[str], random: Random) -> list[list[str]]:
    """The events as the stream reads them: each partition in its order, at its own pace."""
    queues = {p: [event for event in events if _partition(event) == p] for p in range(PARTITIONS)}
    cut = []
    while any(queues.values()):
        batch = []
        for partition, queue in queues.items():
            taken = random.choice([0, 1, 3, len(queue)])
            batch += queue[:taken]
            queues[partition] = queue[taken:]
        if batch:
            cut.append(batch)
    return cut


def _partition(event: str) -> int:
    facts = dict(word.split("=") for word in event.split()[1:])
    return int(facts.get("p", 0))


def history(random: Random, name: str, *, truncates: bool = True, steps: int = 30) -> Case:
    """A random history as a scenario, its live rows as the database has them in the end."""
    database = Database(random, truncates=truncates)
    database.run(steps)
    state: Live = {(key,): (row.v, row.big) for key, row in database.rows.items()}
    events = sent(database, random)
    log = " ".join(word.split("@")[0] for _, changes in database.stream for word in changes)
    return Case(
        id=name,
        shape="plain",
        alone=truncates,
        batches=tuple(map(tuple, batches(events, random))),
        then={},
        state=state,
        log=log,
    )
