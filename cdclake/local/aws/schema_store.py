"""moto's Glue Schema Registry, stored in SQLite in the lake's folder.

Unlike Glue, moto checks no compatibility, except that the mode DISABLED refuses a second version.
Tags do not survive a restart.
"""

from __future__ import annotations

import json
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.glue.models import FakeRegistry, FakeSchema, FakeSchemaVersion, GlueBackend, glue_backends

from cdclake.local.aws.index import Index

_SCHEMA_FIELDS = (
    "data_format",
    "compatibility",
    "schema_version_id",
    "description",
)
_COUNTERS = ("schema_checkpoint", "latest_schema_version", "next_schema_version", "schema_status")
_VERSION_FIELDS = ("schema_version_id", "schema_version_status", "metadata")


class SchemaStore:
    """Storage of registries; those of a region are written after each change of one."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def install(self) -> None:
        """Load the stored registries."""
        for region, name, body in self.index.connection.execute("select * from glue_registry"):
            _restore(_backend(region), name, json.loads(body))

    def commit(self, region: str, action: str) -> None:
        """Store the region's registries, if the action may have changed one."""
        is_about_schemas = "Schema" in action or "Registry" in action
        if not is_about_schemas or action.startswith(("Get", "List", "Query", "Check")):
            return
        rows = [
            (region, registry.name, json.dumps(_body(registry)))
            for registry in _backend(region).registries.values()
        ]
        with self.index.transaction() as db:
            db.execute("delete from glue_registry where region = ?", (region,))
            db.executemany("insert into glue_registry values (?, ?, ?)", rows)


def _body(registry: FakeRegistry) -> dict[str, Any]:
    return {
        "description": registry.description,
        "schemas": {name: _schema(schema) for name, schema in registry.schemas.items()},
    }


def _schema(schema: FakeSchema) -> dict[str, Any]:
    versions = [
        {
            "definition": version.schema_definition,
            "number": version.version_number,
            **{name: getattr(version, name) for name in _VERSION_FIELDS},
        }
        for version in schema.schema_versions.values()
    ]
    fields = {name: getattr(schema, name) for name in (*_SCHEMA_FIELDS, *_COUNTERS)}
    return {**fields, "versions": versions}


def _restore(backend: GlueBackend, name: str, body: dict[str, Any]) -> None:
    registry = FakeRegistry(backend, name, body["description"])
    backend.registries[name] = registry
    for schema_name, stored in body["schemas"].items():
        schema = FakeSchema(backend, name, schema_name, *(stored[f] for f in _SCHEMA_FIELDS))
        for counter in _COUNTERS:
            setattr(schema, counter, stored[counter])
        for each in stored["versions"]:
            version = FakeSchemaVersion(
                backend, name, schema_name, each["definition"], each["number"]
            )
            for field in _VERSION_FIELDS:
                setattr(version, field, each[field])
            schema.schema_versions[version.schema_version_id] = version
            backend.num_schema_versions += 1
        registry.schemas[schema_name] = schema
        backend.num_schemas += 1


def _backend(region: str) -> GlueBackend:
    return glue_backends[DEFAULT_ACCOUNT_ID][region]
