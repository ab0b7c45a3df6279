"""Stand-ins for the pipeline file, the control bucket and the operators of a measured stream."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from cdclake.control_reader import StoredObject
from cdclake.plan import Plan


@dataclass(slots=True)
class FixedPlan:
    """The plan, where a stream would read it."""

    plan: Plan

    def read(self) -> Plan:
        return self.plan


class MemoryStore:
    """Object store in memory, with what the stream needs of one."""

    def __init__(self) -> None:
        self.stored: dict[str, StoredObject] = {}

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

    def etags(self, folder: str) -> dict[str, str]:
        return {name: self.stored[f"{folder}/{name}"].etag for name in self.names(folder)}

    def delete(self, name: str) -> None:
        self.stored.pop(name, None)

    def delete_all(self, folder: str) -> None:
        for name in self.names(folder):
            self.delete(f"{folder}/{name}")


class NoOperations:
    """Nothing is requested."""

    def run(self, *_: object) -> None:
        """Run nothing."""
