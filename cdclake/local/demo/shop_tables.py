"""Tables of the demo shop, as pipelines/shop.yaml declares them, and its transactions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

Kind = Literal["insert", "update", "delete", "rekey"]
Row = tuple[Any, ...]

KEYS = {
    "customers": ("customer_id",),
    "orders": ("order_id",),
    "order_items": ("order_id", "line_no"),
}
STATUSES = ("placed", "paid", "packed", "shipped", "delivered", "returned")

# Foreign keys are checked at commit, so a key and its references can change in any order.
DDL = f"""
CREATE TYPE order_status AS ENUM ({", ".join(f"'{status}'" for status in STATUSES)});
CREATE TABLE customers (
    customer_id bigint PRIMARY KEY,
    name text NOT NULL,
    email text NOT NULL,
    phone text,
    address text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE orders (
    order_id bigint PRIMARY KEY,
    customer_id bigint NOT NULL REFERENCES customers DEFERRABLE INITIALLY DEFERRED,
    status order_status NOT NULL,
    total numeric(12,2) NOT NULL,
    details jsonb,
    note text,
    ordered_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON orders (customer_id);
CREATE TABLE order_items (
    order_id bigint NOT NULL REFERENCES orders DEFERRABLE INITIALLY DEFERRED,
    line_no integer NOT NULL,
    sku text NOT NULL,
    quantity integer NOT NULL,
    unit_price numeric(10,2) NOT NULL,
    discount numeric(5,4),
    gift boolean NOT NULL,
    PRIMARY KEY (order_id, line_no)
);
"""

_TOUCHED = ("customers", "orders")  # have an `updated_at`
# Events in the changelog and records in Kafka per changed row. In Kafka a tombstone follows each
# delete. A changed key is a delete and an insert.
_EVENTS = {"insert": 1, "update": 1, "delete": 1, "rekey": 2}
_RECORDS = {"insert": 1, "update": 1, "delete": 2, "rekey": 3}


@dataclass(frozen=True, slots=True)
class RowChange:
    """Statement with many parameter sets; each set changes exactly one row.

    A set contains the values of `columns` and then, except for inserts, those of the key.
    """

    kind: Kind
    table: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def sql(self) -> str:
        """Text of the statement, with psycopg's placeholders."""
        return _sql(self.kind, self.table, self.columns)

    @property
    def events(self) -> int:
        """Number of resulting events in the changelog."""
        return _EVENTS[self.kind] * len(self.rows)

    @property
    def records(self) -> int:
        """Number of resulting records in Kafka."""
        return _RECORDS[self.kind] * len(self.rows)


@dataclass(frozen=True, slots=True)
class Transaction:
    """Changes that are committed, or rolled back, together."""

    name: str
    changes: tuple[RowChange, ...]
    rolled_back: bool = False

    @property
    def rows(self) -> int:
        """Number of row changes, even if they are rolled back."""
        return sum(len(change.rows) for change in self.changes)


@lru_cache
def _sql(kind: Kind, table: str, columns: tuple[str, ...]) -> str:
    where = " AND ".join(f"{column} = %s" for column in KEYS[table])
    if kind == "insert":
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({_places(columns)})"
    if kind == "delete":
        return f"DELETE FROM {table} WHERE {where}"
    sets = [f"{column} = %s" for column in columns]
    if table in _TOUCHED:
        sets.append("updated_at = now()")
    return f"UPDATE {table} SET {', '.join(sets)} WHERE {where}"


def _places(columns: tuple[str, ...]) -> str:
    return ", ".join(["%s"] * len(columns))
