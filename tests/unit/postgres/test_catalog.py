"""Tables of the source, assembled from rows of the catalog."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake.postgres.admission import check_columns
from cdclake.postgres.catalog import SourceColumn, read_columns
from cdclake.postgres.propose import propose
from tests.unit.postgres.tables import actual, column, declared


def money(digits: int, shown: str = "money") -> SourceColumn:
    """Return a column of money, or of a domain over it, as the catalog has it."""
    return read(shown, "money", "b", digits, None)


def read(
    shown: str, resolved: str, kind: str, digits: int | None, labels: dict[str, str] | None
) -> SourceColumn:
    type_of = (shown, resolved, False, kind, "pg_catalog", None, 0)
    row: tuple[Any, ...] = (1, "number", *type_of, True, False, False, 2, False, digits, labels, [])
    [found] = read_columns([row])[1]
    return found


def test_labels_of_an_enum_are_read_by_their_oids() -> None:
    labels = {"16401": "sad", "16402": "ok"}
    assert read("mood", "public.mood", "e", None, labels).labels == labels
    assert read("text", "text", "b", None, None).labels == {}


def test_money_with_two_fractional_digits_is_supported() -> None:
    assert str(money(2).type) == "money"
    source = actual(columns=(column("id", nullable=False), money(2)))
    assert check_columns(declared(("id", "integer"), ("number", "money")), source) == []


@pytest.mark.parametrize("shown", ["money", "price"])
@pytest.mark.parametrize("digits", [0, 3])
def test_money_with_other_fractional_digits_is_refused(digits: int, shown: str) -> None:
    """The connector's session has two: it would read another amount."""
    source: Any = actual(columns=(column("id", nullable=False), money(digits, shown)))
    [refusal] = check_columns(declared(("id", "integer"), ("number", "money")), source)
    type_of = f"{shown} with {digits} fractional digits (lc_monetary)"
    assert f"has the type {type_of}, which cdclake does not support" in refusal.message
    assert "`number: {exclude: true}`" in refusal.remedy
    [proposal] = propose([source], "shop", {})
    assert f"does not support the type {type_of}" in proposal.reason
    assert proposal.declared is not None and proposal.declared.excluded == ("number",)
