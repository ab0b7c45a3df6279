"""In-memory model of the demo shop, so that every statement matches existing rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")
_CENT = Decimal("0.01")


class Pool(Generic[T]):
    """Things by id, with a random choice in constant time, reproducible by seed."""

    def __init__(self) -> None:
        self._things: list[tuple[int, T]] = []
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._things)

    def __contains__(self, identity: int) -> bool:
        return identity in self._places

    def __iter__(self) -> Iterator[T]:
        return (thing for _, thing in self._things)

    def __getitem__(self, identity: int) -> T:
        return self._things[self._places[identity]][1]

    def add(self, identity: int, thing: T) -> None:
        """Add a thing under a new id."""
        self._places[identity] = len(self._things)
        self._things.append((identity, thing))

    def remove(self, identity: int) -> T:
        """Remove and return a thing; the last one moves into its slot."""
        place = self._places.pop(identity)
        last = self._things.pop()
        if last[0] == identity:
            return last[1]
        thing = self._things[place][1]
        self._things[place] = last
        self._places[last[0]] = place
        return thing

    def pick(self, random: Random) -> T:
        """Return a random thing."""
        return random.choice(self._things)[1]

    def sample(self, random: Random, most: int) -> list[T]:
        """Return at most `most` different things."""
        return [thing for _, thing in random.sample(self._things, min(most, len(self._things)))]


@dataclass(slots=True)
class Item:
    """Line of an order; its index in the order's list plus one is its line number."""

    sku: str
    quantity: int
    unit_price: Decimal
    discount: Decimal | None
    gift: bool

    @property
    def amount(self) -> Decimal:
        """Price of the line, not rounded."""
        return self.quantity * self.unit_price * (1 - (self.discount or 0))


@dataclass(slots=True)
class Order:
    """Order with its lines."""

    order_id: int
    customer_id: int
    status: str
    items: list[Item]

    @property
    def total(self) -> Decimal:
        """Sum of the lines, rounded to cents."""
        return sum((item.amount for item in self.items), Decimal(0)).quantize(_CENT)


@dataclass(slots=True)
class Customer:
    """Customer, with the ids of the orders that refer to it."""

    customer_id: int
    orders: dict[int, None] = field(default_factory=dict)  # oldest first


class Books:
    """All customers and orders, with consistent references, and the next free ids."""

    def __init__(self) -> None:
        self.customers: Pool[Customer] = Pool()
        self.orders: Pool[Order] = Pool()
        self.idle: Pool[Customer] = Pool()  # customers without orders
        self.noted: Pool[Order] = Pool()  # orders with a note too large for its row
        self._next_customer = 1000
        self._next_order = 50_000

    def new_customer_id(self) -> int:
        """Return an unused customer id."""
        self._next_customer += 1
        return self._next_customer

    def new_order_id(self) -> int:
        """Return an unused order id."""
        self._next_order += 1
        return self._next_order

    def add_customer(self, customer: Customer) -> None:
        """Add a customer."""
        self.customers.add(customer.customer_id, customer)
        if not customer.orders:
            self.idle.add(customer.customer_id, customer)

    def remove_customer(self, customer_id: int) -> Customer:
        """Remove a customer; the caller reassigns or removes its orders."""
        if customer_id in self.idle:
            self.idle.remove(customer_id)
        return self.customers.remove(customer_id)

    def add_order(self, order: Order) -> None:
        """Add an order of an existing customer."""
        self.orders.add(order.order_id, order)
        self.assign(order)

    def assign(self, order: Order) -> None:
        """Add the order to its customer's orders."""
        customer = self.customers[order.customer_id]
        customer.orders[order.order_id] = None
        if customer.customer_id in self.idle:
            self.idle.remove(customer.customer_id)

    def remove_order(self, order_id: int) -> Order:
        """Remove and return an order with its lines."""
        order = self.orders.remove(order_id)
        if order_id in self.noted:
            self.noted.remove(order_id)
        customer = self.customers[order.customer_id]
        del customer.orders[order_id]
        if not customer.orders:
            self.idle.add(customer.customer_id, customer)
        return order

    def mark_noted(self, order: Order, large: bool) -> None:
        """Record whether the order's note is large."""
        if large and order.order_id not in self.noted:
            self.noted.add(order.order_id, order)
        elif not large and order.order_id in self.noted:
            self.noted.remove(order.order_id)
