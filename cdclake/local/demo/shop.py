"""Transactions of a realistic shop: the same seed gives the same statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any

from cdclake.local.demo import texts
from cdclake.local.demo.model import Books, Customer, Item, Order
from cdclake.local.demo.shop_tables import STATUSES, Row, RowChange, Transaction

OPENING_CUSTOMERS, OPENING_ORDERS, _OPENING_CHUNK = 500, 700, 100
_LARGE_NOTE, _REMEMBERED = 0.25, 50
_CUSTOMER = ("customer_id", "name", "email", "phone", "address", "created_at")
_ORDER = ("order_id", "customer_id", "status", "total", "details", "note")
_ITEM = ("order_id", "line_no", "sku", "quantity", "unit_price", "discount", "gift")
_DISCOUNTS = (None, None, Decimal("0.0000"), Decimal("0.0500"), Decimal("0.3333"))


class Shop:
    """Generator of the shop's transactions, with the model of the resulting rows."""

    def __init__(self, seed: int) -> None:
        self.books = Books()
        self._random = Random(seed)
        self._cancelled: list[Order] = []  # some are inserted again, under the same key
        # Weights: occurrences in about a hundred transactions.
        self._business: dict[Callable[[], list[RowChange]], int] = {
            self._customer_joins: 9,
            self._order_is_placed: 34,
            self._orders_move_on: 12,
            self._customer_moves: 8,
            self._order_is_noted: 6,
            self._noted_order_moves_on: 6,
            self._details_change: 5,
            self._order_is_cancelled: 6,
            self._order_comes_back: 2,
            self._customer_leaves: 2,
            self._line_is_dropped: 4,
            self._lines_swap: 2,
            self._customer_gets_new_id: 1,
            self._customers_merge: 1,
            self._prices_change: 1,
        }
        self._rollback_chance = 0.02

    def opening(self) -> Iterator[Transaction]:
        """Yield the transactions that write the initial rows, some thousands."""
        for first in range(0, OPENING_CUSTOMERS, _OPENING_CHUNK):
            count = min(_OPENING_CHUNK, OPENING_CUSTOMERS - first)
            yield Transaction("opening", (self._new_customers(count),))
        for first in range(0, OPENING_ORDERS, _OPENING_CHUNK):
            count = min(_OPENING_CHUNK, OPENING_ORDERS - first)
            yield Transaction("opening", self._new_orders(count))

    def transactions(self) -> Iterator[Transaction]:
        """Yield transactions endlessly; the rows of `opening` must exist."""
        business, weights = list(self._business), list(self._business.values())
        while True:
            if self._random.random() < self._rollback_chance:
                yield Transaction("changed_their_mind", self._doomed(), rolled_back=True)
                continue
            chosen = self._random.choices(business, weights)[0]
            changes = chosen() or self._order_is_placed()
            yield Transaction(chosen.__name__.strip("_"), tuple(changes))

    # --- customers -------------------------------------------------------------------------------

    def _customer_row(self, customer_id: int) -> Row:
        random = self._random
        return (
            customer_id, texts.name(random), texts.email(random, customer_id),
            texts.phone(random), texts.address(random), texts.created_at(random),
        )  # fmt: skip

    def _new_customers(self, count: int) -> RowChange:
        customers = [Customer(self.books.new_customer_id()) for _ in range(count)]
        for customer in customers:
            self.books.add_customer(customer)
        rows = tuple(self._customer_row(customer.customer_id) for customer in customers)
        return RowChange("insert", "customers", _CUSTOMER, rows)

    def _customer_joins(self) -> list[RowChange]:
        return [self._new_customers(self._random.randint(1, 4))]

    def _customer_moves(self) -> list[RowChange]:
        random = self._random
        customers = self.books.customers.sample(random, random.randint(1, 3))
        moved = tuple((texts.address(random), c.customer_id) for c in customers)
        mailed = tuple(
            (texts.email(random, c.customer_id), texts.phone(random), c.customer_id)
            for c in customers[:1]
        )
        return [
            RowChange("update", "customers", ("address",), moved),
            RowChange("update", "customers", ("email", "phone"), mailed),
        ]

    def _customer_leaves(self) -> list[RowChange]:
        if len(self.books.idle) < 2:
            return []
        customer_id = self.books.idle.pick(self._random).customer_id
        self.books.remove_customer(customer_id)
        return [RowChange("delete", "customers", (), ((customer_id,),))]

    def _customer_gets_new_id(self) -> list[RowChange]:
        customer = self.books.customers.pick(self._random)
        old, new = customer.customer_id, self.books.new_customer_id()
        self.books.remove_customer(old)
        customer.customer_id = new
        self.books.add_customer(customer)
        rekey = RowChange("rekey", "customers", ("customer_id",), ((new, old),))
        return [rekey, *self._hand_over(customer.orders, new)]

    def _customers_merge(self) -> list[RowChange]:
        """Merge two customers: the orders of the second move to the first."""
        kept, gone = self.books.customers.sample(self._random, 2)
        orders = list(gone.orders)
        self.books.remove_customer(gone.customer_id)
        handed = self._hand_over(orders, kept.customer_id)
        for order_id in orders:
            self.books.assign(self.books.orders[order_id])
        return [*handed, RowChange("delete", "customers", (), ((gone.customer_id,),))]

    def _hand_over(self, orders: Any, customer_id: int) -> list[RowChange]:
        for order_id in orders:
            self.books.orders[order_id].customer_id = customer_id
        rows = tuple((customer_id, order_id) for order_id in orders)
        return [RowChange("update", "orders", ("customer_id",), rows)] if rows else []

    # --- orders ----------------------------------------------------------------------------------

    def _new_item(self) -> Item:
        random = self._random
        return Item(
            sku=f"SKU-{random.randrange(400):03d}",
            quantity=random.randint(1, 9),
            unit_price=Decimal(random.randrange(1, 50_000)) / 100,
            discount=random.choice(_DISCOUNTS),
            gift=random.random() < 0.1,
        )

    def _new_orders(self, count: int) -> tuple[RowChange, ...]:
        orders = []
        for _ in range(count):
            order = Order(
                self.books.new_order_id(),
                self.books.customers.pick(self._random).customer_id,
                "placed",
                [self._new_item() for _ in range(self._random.randint(1, 8))],
            )
            self.books.add_order(order)
            orders.append(order)
        return self._inserts(orders)

    def _inserts(self, orders: Sequence[Order]) -> tuple[RowChange, ...]:
        rows = tuple(self._order_row(order) for order in orders)
        items = tuple(
            _item_row(order.order_id, line, item)
            for order in orders
            for line, item in enumerate(order.items, 1)
        )
        return (
            RowChange("insert", "orders", _ORDER, rows),
            RowChange("insert", "order_items", _ITEM, items),
        )

    def _order_row(self, order: Order) -> Row:
        random = self._random
        large = random.random() < 0.02
        text = texts.note(random, large) if large or random.random() < 0.2 else None
        self.books.mark_noted(order, large)
        return (
            order.order_id, order.customer_id, order.status, order.total,
            texts.details(random) if random.random() < 0.7 else None, text,
        )  # fmt: skip

    def _order_is_placed(self) -> list[RowChange]:
        placed = self._new_orders(1)
        if self._random.random() < 0.3:  # paid at once: changes a row twice in one transaction
            order_id = placed[0].rows[0][0]
            return [*placed, *self._move_on([self.books.orders[order_id]])]
        return list(placed)

    def _move_on(self, orders: Sequence[Order]) -> list[RowChange]:
        for order in orders:
            order.status = STATUSES[(STATUSES.index(order.status) + 1) % len(STATUSES)]
        rows = tuple((order.status, order.order_id) for order in orders)
        return [RowChange("update", "orders", ("status",), rows)] if rows else []

    def _orders_move_on(self) -> list[RowChange]:
        return self._move_on(self.books.orders.sample(self._random, self._random.randint(2, 25)))

    def _order_is_noted(self) -> list[RowChange]:
        order = self.books.orders.pick(self._random)
        large = self._random.random() < _LARGE_NOTE
        self.books.mark_noted(order, large)
        text = texts.note(self._random, large)
        return [RowChange("update", "orders", ("note",), ((text, order.order_id),))]

    def _noted_order_moves_on(self) -> list[RowChange]:
        """Update orders without changing their large notes, which the source then does not send."""
        return self._move_on(self.books.noted.sample(self._random, 3))

    def _details_change(self) -> list[RowChange]:
        orders = self.books.orders.sample(self._random, 2)
        rows = tuple((texts.details(self._random), order.order_id) for order in orders)
        return [RowChange("update", "orders", ("details",), rows)]

    def _order_is_cancelled(self) -> list[RowChange]:
        order = self.books.remove_order(self.books.orders.pick(self._random).order_id)
        self._cancelled = [*self._cancelled[-_REMEMBERED:], order]
        lines = tuple((order.order_id, line) for line in range(1, len(order.items) + 1))
        return [
            RowChange("delete", "order_items", (), lines),
            RowChange("delete", "orders", (), ((order.order_id,),)),
        ]

    def _order_comes_back(self) -> list[RowChange]:
        if not self._cancelled:
            return []
        order = self._cancelled.pop(self._random.randrange(len(self._cancelled)))
        if order.customer_id not in self.books.customers:
            order.customer_id = self.books.customers.pick(self._random).customer_id
        self.books.add_order(order)
        return list(self._inserts([order]))

    # --- lines -----------------------------------------------------------------------------------

    def _pick_longer(self) -> Order | None:
        order = self.books.orders.pick(self._random)
        return order if len(order.items) > 1 else None

    def _line_is_dropped(self) -> list[RowChange]:
        """Delete a line and renumber the following ones: each takes its predecessor's key."""
        order = self._pick_longer()
        if order is None:
            return []
        dropped = self._random.randint(1, len(order.items))
        del order.items[dropped - 1]
        moved = tuple(
            (line, order.order_id, line + 1) for line in range(dropped, len(order.items) + 1)
        )
        changes = [RowChange("delete", "order_items", (), ((order.order_id, dropped),))]
        if moved:
            changes.append(RowChange("rekey", "order_items", ("line_no",), moved))
        return [*changes, _totals([order])]

    def _lines_swap(self) -> list[RowChange]:
        """Swap the keys of two lines through an unused key."""
        order = self._pick_longer()
        if order is None:
            return []
        key, aside = order.order_id, 1000
        order.items[0], order.items[1] = order.items[1], order.items[0]
        steps = ((aside, key, 1), (1, key, 2), (2, key, aside))
        return [RowChange("rekey", "order_items", ("line_no",), steps)]

    def _prices_change(self) -> list[RowChange]:
        """Reprice every line of many orders, and update the totals, in one large transaction."""
        orders = self.books.orders.sample(self._random, 40)
        factor = Decimal(self._random.randint(80, 120)) / 100
        rows = []
        for order in orders:
            for line, item in enumerate(order.items, 1):
                item.unit_price = (item.unit_price * factor).quantize(Decimal("0.01"))
                rows.append((item.unit_price, order.order_id, line))
        return [RowChange("update", "order_items", ("unit_price",), tuple(rows)), _totals(orders)]

    def _doomed(self) -> tuple[RowChange, ...]:
        """Return changes of existing rows that will be rolled back."""
        customer = self.books.customers.pick(self._random)
        order = self.books.orders.pick(self._random)
        born = self._customer_row(self.books.new_customer_id())
        return (
            RowChange("insert", "customers", _CUSTOMER, (born,)),
            RowChange("update", "customers", ("address",), (("nowhere", customer.customer_id),)),
            RowChange("update", "orders", ("status",), (("returned", order.order_id),)),
        )


def _item_row(order_id: int, line: int, item: Item) -> Row:
    return (
        order_id, line, item.sku, item.quantity, item.unit_price, item.discount, item.gift
    )  # fmt: skip


def _totals(orders: Sequence[Order]) -> RowChange:
    rows = tuple((order.total, order.order_id) for order in orders)
    return RowChange("update", "orders", ("total",), rows)
