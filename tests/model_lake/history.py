"""A history: the SQL that one seed makes, session by session, in one fixed order.

Transactions of its sessions overlap, so changes are committed in another order than they were
made. None ever waits for another: each touches only rows that no open one has touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tests.model_lake.shapes import EMPTIED, SHAPES, Shape
from tests.model_lake.statements import FreeRows, Statements

TRANSACTIONS = 14
TRANSACTIONS_OF_TRUNCATES = 40  # such histories are few, each in a table that nobody else writes
SESSIONS = 3
KEYS = range(1, 9)

Place = tuple[Shape, int]  # a table and the number of a key
Rows = dict[Place, bool]  # whether the key has a row


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of one session; `copied` are the rows that a COPY reads."""

    session: int
    sql: str
    copied: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """What a seed does."""

    seed: int
    shapes: tuple[Shape, ...]
    steps: tuple[Step, ...]

    def script(self) -> str:
        """The statements for people to read, and to run again in as many sessions."""
        lines = [f"-- seed {self.seed}; the number is the session's\n"]
        for step in self.steps:
            copied = f"{step.copied}\\.\n" if step.copied else ""
            lines.append(f"/* {step.session} */ {step.sql};\n{copied}")
        return "".join(lines)


@dataclass(slots=True)
class Transaction:
    """An open one: the rows that it has changed, and so locked, as it sees them."""

    session: int
    left: int  # changes still to come
    rows: Rows = field(default_factory=dict)
    saved: Rows | None = None  # as they were at its savepoint


def history(seed: int, *, truncates: bool) -> History:
    """The history of that seed; one that truncates has the truncated table for itself."""
    random = Random(seed)
    shapes = (EMPTIED,) if truncates else tuple(random.sample(SHAPES, 2))
    steps = tuple(_Writer(random, seed, shapes).steps())
    return History(seed, shapes, steps)


class _Writer:
    def __init__(self, random: Random, seed: int, shapes: tuple[Shape, ...]) -> None:
        self._random = random
        self._shapes = shapes
        self._to_begin = TRANSACTIONS_OF_TRUNCATES if EMPTIED in shapes else TRANSACTIONS
        self._statements = Statements(random, seed)
        self._sessions = list(range(1, random.randint(1, SESSIONS) + 1))
        self._rows: Rows = {}
        self._open: list[Transaction] = []

    def steps(self) -> Iterator[Step]:
        """Statements until as many transactions have ended as there shall be."""
        while self._to_begin or self._open:
            idle = [s for s in self._sessions if s not in {t.session for t in self._open}]
            may_begin = self._to_begin > 0 and bool(idle)
            if may_begin and (not self._open or self._random.random() < 0.2):
                self._to_begin -= 1
                self._open.append(Transaction(idle[0], self._random.randint(1, 6)))
                yield Step(idle[0], "BEGIN")
            transaction = self._random.choice(self._open)
            if transaction.left:
                transaction.left -= 1
                yield from self._change(transaction)
            else:
                yield self._end(transaction)

    def _end(self, transaction: Transaction) -> Step:
        self._open.remove(transaction)
        if self._random.random() < 0.15:
            return Step(transaction.session, "ROLLBACK")
        self._rows |= transaction.rows
        return Step(transaction.session, "COMMIT")

    def _change(self, transaction: Transaction) -> Iterator[Step]:
        if self._random.random() < 0.15:
            yield Step(transaction.session, self._savepoint(transaction))
        shape = self._random.choice(self._shapes)
        if shape is EMPTIED and len(self._open) == 1 and self._random.random() < 0.15:
            for key in KEYS:
                transaction.rows[shape, key] = False
            yield Step(transaction.session, f"TRUNCATE {shape.name}")
            return
        rows = self._free_rows(transaction, shape)
        for sql, copied in self._statements.change(shape, rows):
            yield Step(transaction.session, sql, copied)
        for key, lives in rows.changed.items():
            transaction.rows[shape, key] = lives

    def _savepoint(self, transaction: Transaction) -> str:
        if transaction.saved is None:
            transaction.saved = dict(transaction.rows)
            return "SAVEPOINT s"
        saved, transaction.saved = transaction.saved, None
        if self._random.random() < 0.3:
            return "RELEASE s"
        transaction.rows = saved
        return "ROLLBACK TO s"

    def _free_rows(self, transaction: Transaction, shape: Shape) -> FreeRows:
        others = {place for t in self._open if t is not transaction for place in t.rows}
        free = [key for key in KEYS if (shape, key) not in others]
        seen = self._rows | transaction.rows
        return FreeRows({key: seen.get((shape, key), False) for key in free})
