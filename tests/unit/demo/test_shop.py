"""The shop's statements: the same for a seed, and each hits exactly one row that is there."""

from collections import Counter
from decimal import Decimal
from itertools import islice
from typing import Any

from cdclake.local.demo.shop import OPENING_CUSTOMERS, OPENING_ORDERS, Shop
from cdclake.local.demo.shop_tables import KEYS, STATUSES, RowChange, Transaction

BUSINESS = 3000
Key = tuple[Any, ...]


class Shelf:
    """A database of dicts that refuses a statement that does not hit its one row."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, dict[str, Any]]] = {table: {} for table in KEYS}

    def run(self, change: RowChange) -> None:
        for row in change.rows:
            self.run_row(change, row)

    def run_row(self, change: RowChange, row: Key) -> None:
        table, key = self.tables[change.table], KEYS[change.table]
        values = dict(zip(change.columns, row, strict=False))
        assert change.sql.count("%s") == len(row)
        if change.kind == "insert":
            found: dict[str, Any] = {}
        else:
            found = table.pop(row[len(change.columns) :])
        if change.kind != "delete":
            found |= values
            new_key = tuple(found[column] for column in key)
            assert new_key not in table
            assert (change.kind == "rekey") == bool(found.keys() & set(key) & values.keys()) or (
                change.kind == "insert"
            )
            table[new_key] = found

    def check(self) -> None:
        """Nothing dangles, lines count from one, totals are the sums of their lines."""
        customers, orders, items = self.tables.values()
        assert {(order["customer_id"],) for order in orders.values()} <= customers.keys()
        lines: dict[int, list[int]] = {}
        totals: dict[int, Decimal] = {}
        for (order_id, line), item in items.items():
            lines.setdefault(order_id, []).append(line)
            amount = item["quantity"] * item["unit_price"] * (1 - (item["discount"] or 0))
            totals[order_id] = totals.get(order_id, Decimal(0)) + amount
        assert {(order_id,) for order_id in lines} == orders.keys()
        assert all(sorted(each) == list(range(1, len(each) + 1)) for each in lines.values())
        for (order_id,), order in orders.items():
            assert order["total"] == totals[order_id].quantize(Decimal("0.01"))
            assert order["status"] in STATUSES


def written(seed: int, count: int = BUSINESS) -> list[Transaction]:
    shop = Shop(seed)
    return [*shop.opening(), *islice(shop.transactions(), count)]


def test_the_same_seed_gives_the_same_statements() -> None:
    assert written(7, 500) == written(7, 500)
    assert written(7, 500) != written(8, 500)


def test_every_statement_hits_and_the_books_agree() -> None:
    shop, shelf = Shop(1), Shelf()
    for transaction in (*shop.opening(), *islice(shop.transactions(), BUSINESS)):
        if transaction.rolled_back:
            continue
        for change in transaction.changes:
            assert change.rows
            shelf.run(change)
    shelf.check()
    customers, orders, items = shelf.tables.values()
    assert len(customers) == len(shop.books.customers)
    assert len(orders) == len(shop.books.orders)
    assert len(items) == sum(len(order.items) for order in shop.books.orders)
    idle = {key for (key,) in customers} - {order["customer_id"] for order in orders.values()}
    assert idle == {customer.customer_id for customer in shop.books.idle}
    large = {key for (key,), order in orders.items() if len(order["note"] or "") > 5000}
    assert large == {order.order_id for order in shop.books.noted}


def test_everything_a_shop_does_happens() -> None:
    transactions = written(1)
    kinds = Counter((c.kind, c.table) for t in transactions for c in t.changes)
    assert set(kinds) >= {(kind, t) for kind in ("insert", "update", "delete") for t in KEYS}
    assert {("rekey", "customers"), ("rekey", "order_items")} <= set(kinds)
    assert any(t.rolled_back for t in transactions)
    assert max(t.rows for t in transactions[-BUSINESS:]) > 100
    again = Counter(
        row[0]
        for t in transactions
        for c in t.changes
        if c.kind == "insert" and c.table == "orders"
        for row in c.rows
    )
    assert max(again.values()) > 1, "a deleted key comes back"


def test_the_opening_is_some_thousand_rows() -> None:
    rows = sum(transaction.rows for transaction in Shop(3).opening())
    assert OPENING_CUSTOMERS + OPENING_ORDERS < rows < 10_000


def test_events_and_records_of_a_change() -> None:
    rows = ((1,), (2,))
    counted = {
        kind: (change.events, change.records)
        for kind in ("insert", "update", "delete", "rekey")
        if (change := RowChange(kind, "customers", (), rows))
    }
    assert counted == {"insert": (2, 2), "update": (2, 2), "delete": (2, 4), "rekey": (4, 6)}
