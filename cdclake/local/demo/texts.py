"""Seeded names, addresses, notes and details of the shop, as awkward as real ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random

_FIRST = (
    "Ada", "Alan", "Barbara", "Edgar", "Grace", "Leslie", "Michael", "Radia", "Søren", "Zoë",
    "Łukasz", "José", "Noël", "Ümit", "Chloé", "Nguyễn", "明子", "Олена", "عمر",
)  # fmt: skip
_LAST = (
    "Lovelace", "Turing", "Liskov", "Codd", "Hopper", "Lamport", "Stonebraker", "Perlman",
    "Kierkegård", "O'Brien", "Wałęsa", "García-Márquez", "山田", "Шевченко", "d'Artagnan", "Müller",
)  # fmt: skip
_STREETS = ("Main St", "Rue de l'Église", 'Am "Alten" Markt', "Hafenstraße", "中山路", "C:\\Lane")
_CITIES = ("Lisbon", "Zürich", "Kraków", "São Paulo", "Reykjavík", "東京")
_WORDS = (
    "please", "leave", "the", "parcel", "with", "our", "neighbour", "behind", "green", "gate",
    "ring", "twice", "fragile", "glass", "birthday", "surprise", "do", "not", "bend", "gift",
    "wrap", "blue", "ribbon", "🎁", "naïve", "“quoted”", "back\\slash", "tab\there", "new\nline",
    "{json}", "100%", "it's",
)  # fmt: skip
_CHANNELS = ("web", "app", "shop", "phone", None)
_BIRTH = datetime(2021, 3, 1, tzinfo=UTC)
LARGE_WORDS = 2500  # about 15 kB: too large for a page even when compressed


def name(random: Random) -> str:
    """Return a person's name."""
    return f"{random.choice(_FIRST)} {random.choice(_LAST)}"


def email(random: Random, customer_id: int) -> str:
    """Return an email address, usually different from the customer's earlier ones."""
    return f"c{customer_id}.{random.randrange(10_000)}@example.com"


def phone(random: Random) -> str | None:
    """Return a phone number, an empty text, or None."""
    return random.choice((None, "", f"+{random.randrange(10**9, 10**11)}"))


def address(random: Random) -> str | None:
    """Return an address of two lines, or None."""
    if random.random() < 0.1:
        return None
    house = random.randrange(1, 200)
    return f"{house} {random.choice(_STREETS)}\n{random.choice(_CITIES)}"


def created_at(random: Random) -> datetime:
    """Return a timestamp of recent years, with microseconds."""
    return _BIRTH + timedelta(microseconds=random.randrange(10**14))


def note(random: Random, large: bool) -> str:
    """Return a customer's note; a large one does not fit into its row."""
    return " ".join(random.choices(_WORDS, k=LARGE_WORDS if large else random.randrange(1, 12)))


def details(random: Random) -> str:
    """Return nested JSON with nulls, Unicode, and integers that a float cannot represent."""
    return json.dumps(
        {
            "channel": random.choice(_CHANNELS),
            "basket": random.getrandbits(64),
            "tags": random.sample(("new", "vip", "b2b", "fragile", "naïve"), random.randrange(4)),
            "utm": {"campaign": f"w{random.randrange(1, 53)}", "cost": random.randrange(999) / 100},
            "gift": random.random() < 0.2,
        },
        ensure_ascii=False,
    )
