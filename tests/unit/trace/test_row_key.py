"""Keys as they are written, and the records of their rows."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cdclake.errors import InputError
from cdclake.plan import Column, Table
from cdclake.trace.row_key import RowKey, key_by_text

TABLE = Table(
    schema="public",
    table="items",
    name="items",
    topic="shop.public.items",
    key=("id", "code"),
    columns=(
        Column(source="id", name="id", type="bigint"),
        Column(source="code", name="code", type="text", renamed_from=("sku",)),
    ),
)
KEY = RowKey(TABLE, ("1", "a"), {"id": 1, "code": "a"})


@pytest.mark.parametrize(
    ("key", "value", "is_match"),
    [
        (b'{"id": 1, "code": "a"}', None, True),
        (b'{"id": 1, "sku": "a"}', None, True),  # the column's earlier name
        (b'{"payload": {"id": 1, "code": "a"}, "schema": {}}', None, True),
        (b'{"id": 2, "code": "a"}', None, False),
        (b'{"id": "1", "code": "a"}', None, False),
        (b'{"id": 1}', None, False),
        (b"{", b'{"after": {"id": 1, "code": "a"}}', False),
        (None, b'{"after": {"id": 1, "code": "a"}}', True),
        (None, b'{"before": {"id": 1, "code": "a"}, "after": null}', True),
        (None, None, False),
        (None, b'{"id": 1, "code": "a", "cdc_position": "1"}', True),  # a row that Firehose failed
        (None, b'{"table": "c", "row": {"id": 1, "code": "a", "cdc_position": "1"}}', True),
        (None, b'{"id": 2, "code": "a", "cdc_position": "1"}', False),
        (None, b'{"id": 1, "code": "a", "op": "t"}', False),  # an event without a row
    ],
)
def test_a_record_of_the_row_is_found(
    key: bytes | None, value: bytes | None, is_match: bool
) -> None:
    assert KEY.matches(key, value) is is_match


WRAPPER_NAMES = replace(
    TABLE,
    key=("schema", "payload"),
    columns=tuple(Column(source=name, name=name, type="text") for name in ("schema", "payload")),
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"schema": "a", "payload": "b"}', None),
        (b'{"payload": {"schema": "a", "payload": "b"}, "schema": {}}', None),
        (None, b'{"after": {"schema": "a", "payload": "b"}}'),
        (None, b'{"schema": "a", "payload": "b", "cdc_position": "1"}'),
    ],
)
def test_key_columns_with_the_names_of_a_wrapper(key: bytes | None, value: bytes | None) -> None:
    row = RowKey(WRAPPER_NAMES, ("a", "b"), {"schema": "a", "payload": "b"})
    assert row.matches(key, value)


def test_a_key_of_numbers_and_text_needs_no_source() -> None:
    assert key_by_text(TABLE, ("01", "x")).values == {"id": 1, "code": "x"}
    with pytest.raises(InputError, match="'x' is no bigint"):
        key_by_text(TABLE, ("x", "a"))
    with pytest.raises(InputError, match="has 2 columns, not 1"):
        key_by_text(TABLE, ("1",))


def keyed_by(kind: str) -> Table:
    return Table(
        schema="public",
        table="days",
        name="days",
        topic="shop.public.days",
        key=("day",),
        columns=(Column(source="day", name="day", type=kind),),
    )


def test_uuid_keys_have_the_spelling_of_the_changelog() -> None:
    table = keyed_by("uuid")
    written = "0E5BA60F-1B3C-4F4E-9D5A-0123456789AB"
    assert key_by_text(table, (written,)).values == {"day": written.lower()}
    with pytest.raises(InputError, match="'x' is no uuid"):
        key_by_text(table, ("x",))


@pytest.mark.parametrize("kind", ["date", "char(4)", "numeric", "inet", "text[]"])
def test_a_key_that_only_the_source_converts_is_refused_without_it(kind: str) -> None:
    table = keyed_by(kind)
    with pytest.raises(InputError, match="only it converts a " + re.escape(kind)):
        key_by_text(table, ("2026-01-01",))
    with pytest.raises(InputError, match="is not asked for a deployment"):
        key_by_text(table, ("2026-01-01",), is_deployed=True)


@pytest.mark.parametrize("spelled", ["1.5", "1.50"])
def test_a_record_is_found_by_any_spelling_of_its_number(spelled: str) -> None:
    key = RowKey(keyed_by("numeric"), ("1.5",), {"day": "1.5"})
    assert key.matches(f'{{"day": "{spelled}"}}'.encode(), None)
    assert not key.matches(b'{"day": "1.51"}', None)
