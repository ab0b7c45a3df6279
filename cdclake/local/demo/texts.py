"""The shop's names, addresses, notes and details: seeded, and awkward where real ones are."""

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
LARGE_WORDS = 2500  # some 15 kB: far too large for a page even when compressed


def name(random: Random) -> str:
    """A person's name."""
    return f"{random.choice(_FIRST)} {random.choice(_LAST)}"


def email(random: Random, customer_id: int) -> str:
    """An address, different from the customer's earlier ones most of the time."""
    return f"c{customer_id}.{random.randrange(10_000)}@example.com"


def phone(random: Random) -> str | None:
    """A number, an empty text, or none."""
    return random.choice((None, "", f"+{random.randrange(10**9, 10**11)}"))


def address(random: Random) -> str | None:
    """Two lines, or none."""
    if random.random() < 0.1:
        return None
    house = random.randrange(1, 200)
    return f"{house} {random.choice(_STREETS)}\n{random.choice(_CITIES)}"


def created_at(random: Random) -> datetime:
    """A moment of the last years, to the microsecond."""
    return _BIRTH + timedelta(microseconds=random.randrange(10**14))


def note(random: Random, large: bool) -> str:
    """A wish of the customer's; a large one does not fit into its row."""
    return " ".join(random.choices(_WORDS, k=LARGE_WORDS if large else random.randrange(1, 12)))


def details(random: Random) -> str:
    """JSON as a shop writes it: nested, with nulls, unicode and numbers that no float holds."""
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
