"""The tables that random histories write: one set of values, and what differs between them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

PIPELINE = "model"
DATABASE = "postgres"  # the embedded server's own
KEYS_OF_A_HISTORY = 1000  # keys of one table that belong to one history

LARGE = ("body", "doc", "raw")  # stored out of line, uncompressed: an update may leave them unsent
VALUES = ("v", "note", *LARGE)
_BY_VALUE = '["bucket(4, v)"]'
_VALUE_TYPES = {"v": "integer", "note": "text", "body": "text", "doc": "jsonb", "raw": "bytea"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One table: its key, and how it is declared."""

    name: str
    key: tuple[tuple[str, str], ...] = (("id", "bigint"),)
    declared: tuple[tuple[str, str], ...] = ()
    partitions: int = 1  # of its topic

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Names of the key's columns."""
        return tuple(name for name, _ in self.key)

    @property
    def sends_whole_rows(self) -> bool:
        """Whether every event holds all values, a delete the old ones."""
        return ("replica_identity", "full") in self.declared

    @property
    def keeps_deleted(self) -> bool:
        """Whether a deleted row's last values stay in the state."""
        return ("deletes", "soft") in self.declared

    def key_values(self, seed: int, number: int) -> tuple[str, ...]:
        """The texts of a history's key of that number."""
        if self.key == (("id", "uuid"),):
            return (str(uuid.UUID(int=(seed << 64) + number)),)
        if len(self.key) == 2:
            return (str(seed), f"key {number} é'")
        return (str(seed * KEYS_OF_A_HISTORY + number),)

    def key_text(self, seed: int, number: int) -> str:
        """The key as the audit and the queries of the log have it."""
        return "/".join(self.key_values(seed, number))

    def ddl(self) -> str:
        """CREATE TABLE in the source.

        With the replica identity that is declared: `up` finds no moment to set it in while so many
        transactions overlap, and says so.
        """
        columns = [f"{name} {kind}" for name, kind in self.key]
        columns += [f"{name} {kind}" for name, kind in _VALUE_TYPES.items()]
        changed = [f"ALTER {name} SET STORAGE EXTERNAL" for name in LARGE]
        changed += ["REPLICA IDENTITY FULL"] if self.sends_whole_rows else []
        return (
            f"CREATE TABLE {self.name} ({', '.join(columns)}, "
            f"PRIMARY KEY ({', '.join(self.key_columns)}));\n"
            f"ALTER TABLE {self.name} {', '.join(changed)};\n"
        )

    def declaration(self) -> str:
        """The table's entry in the pipeline file."""
        facts = "".join(f"    {name}: {value}\n" for name, value in self.declared)
        columns = [*self.key, *_VALUE_TYPES.items()]
        declared = "".join(f"      {name}: {kind}\n" for name, kind in columns)
        key = ", ".join(self.key_columns)
        return f"  public.{self.name}:\n    key: [{key}]\n{facts}    columns:\n{declared}"


SHAPES = (
    # Its state is committed often, so that a campaign's stream soon dies in that commit.
    Shape(name="accounts", declared=(("state_freshness", "5"),)),
    Shape(name="papers", partitions=3),
    Shape(name="entries", key=(("owner", "bigint"), ("label", "text")), partitions=3),
    Shape(name="devices", key=(("id", "uuid"),)),
    Shape(name="ledgers", declared=(("replica_identity", "full"),)),
    Shape(name="members", declared=(("deletes", "soft"),)),
    Shape(name="reports", declared=(("apply", "scheduled"),)),
    # Rows and tombstones move between the lake's partitions, and to that of NULL.
    Shape(name="moved", declared=(("partition_by", _BY_VALUE),), partitions=3),
    Shape(
        name="kept_moved",
        declared=(
            ("partition_by", _BY_VALUE),
            ("deletes", "soft"),
            ("replica_identity", "full"),
        ),
    ),
)
EMPTIED = Shape(name="emptied", partitions=3)  # the only one that is truncated
ALL_SHAPES = (*SHAPES, EMPTIED)


def pipeline() -> str:
    """The pipeline file."""
    tables = "".join(shape.declaration() for shape in ALL_SHAPES)
    return (
        f"version: 1\nname: {PIPELINE}\nsource: {{database: {DATABASE}}}\n"
        f"stream: {{trigger_seconds: 2}}\ntables:\n{tables}"
    )
