"""Tables that a refresh has created, as opposed to other tables of the same name."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.iceberg.schemas import DERIVED_PROPERTY, KEY_PROPERTY


def is_own(properties: Mapping[str, str], *, is_noted: bool) -> bool:
    """Check whether a refresh created the table with these properties.

    Tables of earlier versions do not have the property; the noted progress of a refresh stands in
    for it (`is_noted`). A state has a key: its name was that of a derived table before.
    """
    return DERIVED_PROPERTY in properties or (is_noted and KEY_PROPERTY not in properties)
