"""Decimals as the integers that Iceberg stores, exact for all 38 digits.

Python's own context would round to 28 digits.
"""

from __future__ import annotations

from decimal import Context, Decimal

_EXACT = Context(prec=80)


def unscaled(number: Decimal, scale: int) -> int:
    """Return the number times ten to the power of the scale.

    >>> unscaled(Decimal("-123456789012345678901234567890123456.78"), 2)
    -12345678901234567890123456789012345678
    """
    return int(number.scaleb(scale, _EXACT))


def scaled(integer: int, scale: int) -> Decimal:
    """Return the number of an integer that `unscaled` has returned.

    >>> scaled(-12345678901234567890123456789012345678, 2)
    Decimal('-123456789012345678901234567890123456.78')
    """
    return Decimal(integer).scaleb(-scale, _EXACT)
