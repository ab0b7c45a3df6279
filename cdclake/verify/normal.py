"""Normal forms of values by type, and their readable forms.

A normal form is a text; two values are equal exactly if their normal forms are equal. It is
computed only if the texts of the two sides differ.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator

from cdclake.verify.calendar import date_text, timestamp_text

Normal = Callable[[str], str]


def as_it_is(text: str) -> str:
    """Return the text itself, for types with exactly one text per value."""
    return text


def number(text: str) -> str:
    """Remove insignificant zeros of a decimal number; return other texts (NAN) unchanged.

    >>> number("1.500"), number("-0.00"), number("100"), number("1E+2"), number("NAN")
    ('1.5', '0', '100', '1E+2', 'NAN')
    """
    if not re.fullmatch(r"-?[0-9]*\.?[0-9]*", text):
        return text
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, fraction = digits.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    if not fraction:
        return whole if whole == "0" else sign + whole
    return f"{sign}{whole}.{fraction}"


_INSTANT = re.compile(r"([+-]?\d{4,9})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?Z")


def instant(text: str) -> str:
    """Convert ISO 8601 with Z (Debezium's form) to microseconds since 1970; keep other texts.

    >>> instant("1970-01-01T00:00:01.5Z"), instant("-0043-03-15T00:00:00Z"), instant("infinity")
    ('1500000', '-63517824000000000', 'infinity')
    """
    match = _INSTANT.fullmatch(text)
    if match is None:
        return text
    year, month, day, hour, minute = (int(part) for part in match.groups()[:5])
    seconds = (hour * 60 + minute) * 60 + int(match[6] or 0)
    fraction = int((match[7] or "0").ljust(6, "0")[:6])
    return str((_days(year, month, day) * 86_400 + seconds) * 1_000_000 + fraction)


def _days(year: int, month: int, day: int) -> int:
    """Return days since 1970 in the proleptic Gregorian calendar with a year 0."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def array(element: Normal) -> Normal:
    """Return the normal form of JSON arrays: strings by `element`, other elements by their text.

    A string and a number with the same text are equal, since the two sides quote differently.
    """

    def normal(text: str) -> str:
        try:
            parsed = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
        except ValueError:
            return text
        return repr(_elements(parsed, element))

    return normal


def _elements(value: object, element: Normal) -> object:
    if isinstance(value, list):
        return [_elements(item, element) for item in value]
    return element(value) if isinstance(value, str) else value


def hstore_json(text: str) -> str:
    """Normalize the event's JSON object of an hstore by sorting its keys."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    return repr(sorted(parsed.items())) if isinstance(parsed, dict) else text


_HSTORE_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:NULL|"((?:[^"\\]|\\.)*)")(?:, )?', re.DOTALL)


def hstore_text(text: str) -> str:
    r"""Normalize PostgreSQL's text of an hstore; equal to `hstore_json` of the same value.

    >>> hstore_text(r'"a"=>"1", "b\"c"=>NULL') == hstore_json(r'{"b\"c": null, "a": "1"}')
    True
    """
    return repr(sorted(_pairs(text)))


def _pairs(text: str) -> Iterator[tuple[str, str | None]]:
    for match in _HSTORE_PAIR.finditer(text):
        key, value = match.groups()
        yield _unescaped(key), None if value is None else _unescaped(value)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def cut(length: int) -> Normal:
    """Return the connector's truncation, which counts UTF-16 units; PostgreSQL counts characters.

    It keeps no half of a character.

    >>> cut(3)("ab\U0001f600c"), cut(3)("abcd"), cut(4)("ab\U0001f600c") == "ab\U0001f600"
    ('ab', 'abc', True)
    """

    def normal(text: str) -> str:
        return text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "ignore")

    return normal


def shown_floats(text: str) -> str:
    """Convert floats in hexadecimal bits to readable numbers.

    >>> shown_floats("3ff8000000000000"), shown_floats("[3fc00000,null]")
    ('1.5', '[1.5,null]')
    """
    return re.sub(r"\b(?:[0-9a-f]{16}|[0-9a-f]{8})\b", _shown_float, text)


def _shown_float(bits: re.Match[str]) -> str:
    raw = bytes.fromhex(bits[0])
    value = struct.unpack(">d" if len(raw) == 8 else ">f", raw)[0]
    return f"{value:.9g}" if len(raw) == 4 else repr(value)


def shown_date(text: str) -> str:
    """Convert days since 1970 to a date."""
    return date_text(int(text)) if _is_whole(text) else text


def shown_timestamp(text: str) -> str:
    """Convert microseconds since 1970 to a timestamp."""
    return timestamp_text(int(text)) if _is_whole(text) else text


def shown_instant(text: str) -> str:
    """Convert microseconds since 1970 to a timestamp in UTC."""
    return timestamp_text(int(text), "+00") if _is_whole(text) else text


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdigit()
