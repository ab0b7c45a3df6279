"""What Debezium 3.7 changes before anybody here sees it: the event's value, by table, column, key.

Patterns of what the log then holds; None is NULL. Nothing in the event tells these from values that
came right, so the lake cannot refuse them: they stand in docs/types.md.
"""

from __future__ import annotations

_ERA_LOST = r'\["0044-03-15T00:00:00\.000000Z"'


def _twice(pattern: str | None, number: int) -> dict[str, str | None]:
    """The same by the snapshot and by the stream."""
    return {str(number): pattern, str(100 + number): pattern}


LIMITS: dict[str, dict[str, dict[str, str | None]]] = {
    "typed": {
        "c_date": {"3": "-703383"},  # 44 after Christ; only a snapshot loses the era
        "c_tstzs": _twice(_ERA_LOST + r"\]", 3),
        "c_times": _twice(r"\[0\]", 3),  # 24:00
    },
    "keyed": {"d": {"0044-03-15 BC; 0044-03-15 00:00:00+00 BC; |,": "-703383"}},
    "limits": {
        "d": {"1": "-703383", "3": "-141422"},  # days that the calendar of 1582 left out
        "ds": {
            "1": r"\[-703383,-171605\]",
            "101": r"\[-703383,-171605\]",
            **_twice(r"\[-622191234,-625821272\]", 2),
            **_twice(r"\[-141422\]", 3),
        },
        # The Julian calendar's days, before 1582; infinities as the greatest and least numbers.
        "ts": {
            **_twice(r"\[-63517996800000000,-14825808000000000\]", 1),
            **_twice(r"\[9223372036854775807,-9223372036854775808\]", 2),
            **_twice(r"\[-12218860800000000\]", 3),
        },
        "zs": {
            **_twice(_ERA_LOST + r',"1500-03-01T00:00:00\.000000Z"\]', 1),
            **_twice(r'\["infinity","\+292269055-12-02T23:00:00\.000000Z"\]', 2),
            **_twice(r'\["1582-10-20T00:00:00\.000000Z"\]', 3),
        },
        "i": {**_twice("P0Y0M0DT0H0M0S", 1), **_twice("P0Y0M0DT0H0M0S", 2)},  # infinity
        "ticks": _twice(r"\[0\]", 1),  # 24:00
        "grid": {**_twice(r"\[null,null\]", 1)},  # more than one dimension
        "words": _twice(r'\["\[Ljava\.lang\.String;@[0-9a-f]+",.*\]', 1),
    },
}
