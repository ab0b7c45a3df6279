"""Days and microseconds since 1970 in PostgreSQL's notation, for all years that it supports."""

from __future__ import annotations

_DAYS_TO_1970 = 719_468  # from 0000-03-01, where the leap day is a year's last
_DAYS_PER_ERA = 146_097  # 400 years
_MICROS_PER_DAY = 86_400_000_000


def date_text(days: int) -> str:
    """Format a date as PostgreSQL writes and reads it, in its proleptic Gregorian calendar.

    >>> date_text(0), date_text(-719528), date_text(-735160)
    ('1970-01-01', '0001-01-01 BC', '0044-03-15 BC')
    """
    date, era = _civil(days)
    return date + era


def timestamp_text(micros: int, zone: str = "") -> str:
    """Format a timestamp, with `zone` after the time.

    >>> timestamp_text(1500000), timestamp_text(-1, "+00")
    ('1970-01-01 00:00:01.5', '1969-12-31 23:59:59.999999+00')
    """
    days, rest = divmod(micros, _MICROS_PER_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    date, era = _civil(days)
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if fraction:
        time += f".{fraction:06d}".rstrip("0")
    return f"{date} {time}{zone}{era}"


def _civil(days: int) -> tuple[str, str]:
    """Return `YYYY-MM-DD`, and ` BC` or an empty text."""
    era, of_era = divmod(days + _DAYS_TO_1970, _DAYS_PER_ERA)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153  # months since March
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + 400 * era + (month <= 2)
    if year <= 0:
        return f"{1 - year:04d}-{month:02d}-{day:02d}", " BC"
    return f"{year:04d}-{month:02d}-{day:02d}", ""
