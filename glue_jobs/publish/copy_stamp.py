"""Stamp of a copy: what its commit contains, in the commit's own metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from cdclake.control_objects import known_fields
from cdclake.hudi_copy import HudiCopy, columns_digest
from cdclake.iceberg.views import AppliedThrough
from cdclake.plan import Table

KEY_COLUMN = "cdc_key"
_WHOLE_NUMBERS = ("int", "bigint")
_FLOATS = ("float", "double")


@dataclass(frozen=True, slots=True)
class CopyStamp:
    """Content of a copy.

    `through` is a time of ingestion in microseconds since 1970, or Iceberg's sequence number for a
    changelog that Firehose writes: the copy has all changes up to it. `floor` is the greatest
    truncate, or snapshot of the source, that the state had applied. `erasure` is the id of the
    table's last erasure before, `rebuilt` that of the state's last rebuild: the copy was written as
    a whole after both. `table` is the lake name of the table that was copied.
    """

    through: int
    floor: str
    columns: str  # digest of names and types
    layout: str
    erasure: str = ""  # as in copies of before erasures reached them
    table: str = ""  # as in stamps of earlier versions: the table that the file declares
    rebuilt: str = ""

    def to_json(self) -> str:
        """Return the stamp as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> CopyStamp:
        """Parse a stamp that `to_json` wrote; ignore keys that a newer version has added."""
        return CopyStamp(**known_fields(CopyStamp, json.loads(text)))

    def of_table(self, table: Table) -> CopyStamp:
        """Return the stamp with this table, where an earlier version named none."""
        return self if self.table else replace(self, table=table.name)


def stamp_of(
    copy: HudiCopy,
    table: Table,
    applied: AppliedThrough,
    erasure: str,
    stored: Mapping[str, str] | None = None,
) -> CopyStamp:
    """Return the stamp of a copy that equals a state, applied so far.

    `stored` has the types of the state's columns, by default as declared: a plan may declare wider
    types before the stream has widened the state.
    """
    through = applied.sequence if table.delivery == "firehose" else applied.ingested
    types = stored or {}
    columns = {c.name: types.get(c.name, c.column_type.state) for c in table.columns}
    columns["deletes"] = table.deletes
    if any(key.column_type.state in _FLOATS for key in table.key_columns):
        columns["zero"] = "unsigned"  # earlier copies may have the key -0.0 and are written again
    layout = copy.layout(record_key(table))
    digest = columns_digest(columns)
    return CopyStamp(through, applied.floor, digest, layout, erasure, table.name, applied.rebuilt)


def record_key(table: Table) -> str:
    """Return the column that tells the copy's rows apart.

    A key of one whole number is taken as it is. Hudi refuses an empty text as a key, and its texts
    of several columns are ambiguous: other keys become one column of JSON.
    """
    first, *others = table.key_columns
    is_plain = not others and first.column_type.state in _WHOLE_NUMBERS
    return first.name if is_plain else KEY_COLUMN
