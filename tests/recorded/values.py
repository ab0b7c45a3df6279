"""One value in two spellings, PostgreSQL's text and the event's, brought to one form by type.

Written from PostgreSQL's and Debezium's documentation; none of it is the product's, which is what
is tested by it.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from cdclake.debezium.types import ColumnType
from tests.recorded.array_text import parse_array

Reading = Callable[[Any], Any]

_DATE = r"([+-]?\d+)-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d):(\d\d(?:\.\d+)?)"
_POSTGRES_DATE = re.compile(rf"{_DATE}(?: {_TIME}(?:\+00)?)?( BC)?")
_ISO_INSTANT = re.compile(rf"{_DATE}T{_TIME}Z")
_CLOCK = re.compile(rf"{_TIME}(Z|[+-]\d\d(?::\d\d)?(?::\d\d)?)?")
_INTERVAL = re.compile(r"(-?[\d.]+)([YMWDHS])")
_DAYS_OF_400_YEARS = 146_097
_SECOND = 1_000_000


def of_postgres(column_type: ColumnType, text: str) -> Any:
    """The value that PostgreSQL spells so."""
    if column_type.array:
        read = _POSTGRES.get(column_type.base, str)
        return [None if item is None else read(item) for item in parse_array(text)]
    return _POSTGRES.get(column_type.base, str)(text)


def of_event(column_type: ColumnType, value: Any) -> Any:
    """The value that the event, and so the log, holds as this."""
    read = _EVENT.get(column_type.base, str)
    if column_type.array:
        return [None if item is None else read(item) for item in json.loads(value)]
    return read(value)


def _days(year: int, month: int, day: int) -> int:
    eras, of_era = divmod(year, 400)
    shifted = date(2000 + of_era, month, day).toordinal() + (eras - 5) * _DAYS_OF_400_YEARS
    return shifted - date(1970, 1, 1).toordinal()


def _micros(hours: str, minutes: str, seconds: str) -> int:
    return (int(hours) * 60 + int(minutes)) * 60 * _SECOND + int(Decimal(seconds) * _SECOND)


def _postgres_date(text: str) -> int | str:
    match = _POSTGRES_DATE.fullmatch(text)
    if match is None:
        return text  # infinity, -infinity
    year = 1 - int(match[1]) if match[7] else int(match[1])
    return _days(year, int(match[2]), int(match[3]))


def _postgres_timestamp(text: str) -> int | str:
    match = _POSTGRES_DATE.fullmatch(text)
    if match is None:
        return text
    days = _postgres_date(text)
    assert isinstance(days, int)
    return days * 86_400 * _SECOND + _micros(match[4], match[5], match[6])


def _instant(text: str) -> int | str:
    match = _ISO_INSTANT.fullmatch(text)
    if match is None:
        return text
    days = _days(int(match[1]), int(match[2]), int(match[3]))
    return days * 86_400 * _SECOND + _micros(match[4], match[5], match[6])


def _clock(text: str) -> int:
    """Microseconds of a time; of one with an offset in UTC, where 24:00 alone is not 00:00."""
    match = _CLOCK.fullmatch(text)
    assert match is not None, text
    local = _micros(match[1], match[2], match[3])
    offset = match[4]
    if offset is None or (local == 86_400 * _SECOND and offset in ("Z", "+00")):
        return local
    parts = [0] if offset == "Z" else [int(part) for part in offset[1:].split(":")]
    seconds = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
    east = -1 if offset.startswith("-") else 1
    return (local - east * seconds * _SECOND) % (86_400 * _SECOND)


def _interval(text: str) -> tuple[int, int, int]:
    """Months, days and microseconds: what PostgreSQL keeps apart."""
    day_part, _, time_part = text.removeprefix("P").partition("T")
    days = {unit: Decimal(number) for number, unit in _INTERVAL.findall(day_part)}
    times = {unit: Decimal(number) for number, unit in _INTERVAL.findall(time_part)}
    months = days.get("Y", Decimal(0)) * 12 + days.get("M", Decimal(0))
    seconds = sum(times.get(unit, Decimal(0)) * n for unit, n in (("H", 3600), ("M", 60), ("S", 1)))
    return int(months), int(days.get("D", Decimal(0))), int(seconds * _SECOND)


def _float_bits(form: str) -> Reading:
    def bits(value: Any) -> str:
        return "NaN" if float(value) != float(value) else struct.pack(form, float(value)).hex()

    return bits


def _number(text: str) -> Any:
    """Digits and scale; PostgreSQL's and Java's words for what is no number."""
    words = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}
    text = words.get(text, text)
    return text if text in words.values() else Decimal(text).as_tuple()


def _point_text(text: str) -> tuple[str, ...]:
    return tuple(_float_bits(">d")(part) for part in text.strip("()").split(","))


def _point_event(text: str) -> tuple[str, ...]:
    point = json.loads(text)
    return tuple(_float_bits(">d")(point[name]) for name in ("x", "y"))


def _hstore_text(text: str) -> dict[str, str | None]:
    pairs = re.findall(r'"((?:[^"\\]|\\.)*)"=>(?:NULL|("(?:[^"\\]|\\.)*"))', text)
    return {_plain(key): _plain(value[1:-1]) if value else None for key, value in pairs}


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _bits_event(text: str) -> int:
    """A single bit is a boolean; more are bytes, the lowest first, of no known length."""
    if text in ("true", "false"):
        return int(text == "true")
    return int.from_bytes(base64.b64decode(text), "little")


_POSTGRES: dict[str, Reading] = {
    "boolean": lambda text: text == "t",
    **dict.fromkeys(("smallint", "integer", "bigint", "oid"), int),
    "real": _float_bits(">f"),
    "double precision": _float_bits(">d"),
    "numeric": _number,
    "money": lambda text: Decimal(re.sub("[$,]", "", text)).as_tuple(),
    "date": _postgres_date,
    "timestamp": _postgres_timestamp,
    "timestamptz": _postgres_timestamp,
    "time": _clock,
    "timetz": _clock,
    "interval": _interval,
    "bytea": lambda text: bytes.fromhex(text.removeprefix("\\x")),
    "hstore": _hstore_text,
    "bit": lambda text: int(text or "0", 2),
    "varbit": lambda text: int(text or "0", 2),
    "point": _point_text,
}
_EVENT: dict[str, Reading] = {
    **_POSTGRES,
    "boolean": lambda value: {True: True, False: False}[value],
    "money": lambda text: Decimal(text).as_tuple(),
    "date": int,
    "timestamp": int,
    "timestamptz": _instant,
    "time": int,
    "bytea": base64.b64decode,
    "hstore": json.loads,
    "bit": _bits_event,
    "varbit": _bits_event,
    "point": _point_event,
}
