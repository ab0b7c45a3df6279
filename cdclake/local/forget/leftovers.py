"""Search of a whole local lake for values that must be gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.jobs.erasure.stored_objects import Leftover, search_bucket, search_named
from cdclake.local.forget.table_locations import copy_folder_of, iceberg_folders
from cdclake.local.lake.lake import LocalLake
from cdclake.local.trace.stored_row import content_of, files_of, place_json
from cdclake.plan import Table

Places = list[dict[str, Any]]


def leftovers(lake: LocalLake, table: Table, sought: SoughtValues) -> tuple[Places, Places]:
    """Return where values are left, and where rows of other tables have them.

    Those may have a person's data, too, but no erasure of this table's rows removes them.
    """
    folders = iceberg_folders(lake)
    own = tuple(_folders(lake, table, folders))
    others = tuple(
        f"s3://{lake.bucket}/{folder}"
        for other in lake.plan.all_tables
        if other != table
        for folder in _folders(lake, other, folders)
    )
    found = sorted({*_in_buckets(lake, sought, own), *_in_files(lake, sought.elsewhere())})
    left = [place_json(place) for place in found if not place.where.startswith(others)]
    return left, [place_json(place) for place in found if place.where.startswith(others)]


def _folders(lake: LocalLake, table: Table, folders: Mapping[str, str]) -> Iterator[str]:
    """Yield the prefixes of a table's state, changelog and Hudi copies."""
    yield from (folders[name] for name in table.stored if name in folders)
    copies = (copy.name for copy in lake.plan.copies if copy.table == table.name)
    yield from (copy_folder_of(lake, name) for name in copies)


def _in_buckets(lake: LocalLake, sought: SoughtValues, own: tuple[str, ...]) -> Iterator[Leftover]:
    client = lake.client("s3")
    for bucket in client.list_buckets()["Buckets"]:
        yield from search_bucket(client, bucket["Name"], sought, own)


def _in_files(lake: LocalLake, sought: SoughtValues) -> Iterator[Leftover]:
    for file in files_of(lake.home.path):
        if (content := content_of(file)) is not None:
            yield from search_named(str(file), content, sought)
