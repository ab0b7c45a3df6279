"""Tables that a connector is reading, from its stored offset."""

import json

from cdclake.debezium.incremental_snapshot import tables_being_read

STORED = [
    {"incremental_snapshot_collections_id": '"public"."orders"', "additional_condition": None},
    {"incremental_snapshot_collections_id": '"Sales"."Old Orders"'},
]


def test_the_tables_that_are_read_are_named_as_the_file_names_them() -> None:
    offset = {"lsn": 7, "incremental_snapshot_collections": json.dumps(STORED)}
    assert tables_being_read(offset) == {"public.orders", "Sales.Old Orders"}


def test_none_is_read_where_nothing_is_said_of_it() -> None:
    assert not tables_being_read({"lsn": 7})
    assert not tables_being_read({"incremental_snapshot_collections": "[]"})
