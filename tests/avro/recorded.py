"""The recorded scripts as Avro: `python -m tests.recorded.record --avro` keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from cdclake.jobs.stream.schema_registry import UnknownSchema
from tests.recorded import recording
from tests.recorded.recording import Record


@dataclass(frozen=True, slots=True)
class StoredSchemas:
    """Schemas of a recording, as the registry had them."""

    texts: dict[str, str]

    def schema_text(self, identifier: str) -> str:
        """Return a schema; raise UnknownSchema if there is none with this identifier."""
        if identifier not in self.texts:
            raise UnknownSchema(identifier)
        return self.texts[identifier]


def stored_schemas(name: str) -> StoredSchemas:
    """The schemas of a recording."""
    return StoredSchemas(json.loads(recording.schemas_file(name).read_text()))


def recorded_avro(name: str) -> list[Record]:
    """The records of a script as Avro."""
    lines = recording.avro_file(name).read_text(encoding="utf-8").split("\n")[:-1]
    return [Record.from_line(line) for line in lines]
