"""Stand-ins for the pipeline file, the control bucket and the operators of a measured stream."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from cdclake.control_reader import StoredObject
from cdclake.plan import Plan


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """A plan that does not change."""

    plan: Plan

    def read(self) -> Plan:
        return self.plan


@dataclass(slots=True)
class MemoryStore:
    """Object store in memory, with what the stream needs of one."""

    stored: dict[str, StoredObject] = field(default_factory=dict)

    def read(self, name: str) -> StoredObject | None:
        return self.stored.get(name)

    def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
        present = self.stored.get(name)
        if (present.etag if present else None) != etag:
            return None
        self.stored[name] = StoredObject(content, uuid.uuid4().hex)
        return self.stored[name].etag

    def write(self, name: str, content: dict[str, Any]) -> None:
        self.stored[name] = StoredObject(content, uuid.uuid4().hex)

    def names(self, folder: str) -> list[str]:
        found = [name for name in self.stored if name.startswith(f"{folder}/")]
        return [name.removeprefix(f"{folder}/") for name in found]

    def delete(self, name: str) -> None:
        self.stored.pop(name, None)


class NoOperations:
    """Nothing is requested."""

    def run(self, *_: object) -> None:
        """Run nothing."""
