"""Configuration of Apache Iceberg's sink: it appends each change to `<t>_sink`.

Topics have no schemas, so Debezium's ExtractNewRecordState passes their events on as they are.
Iceberg's transform flattens them, and adds `_cdc` with the operation, the time, the Kafka offset,
the source table and the key. Decision 48 has the reasons. Before it, our transform removes the
values of deleted rows that the source did not send (decision 74).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from cdclake import naming
from cdclake.connectors.declared import DeclaredConnector
from cdclake.connectors.sink_jar import DELETED_KEYS
from cdclake.plan import Plan, Table

# Settings of the sink that a pipeline file may change.
DEFAULTS: Mapping[str, str] = {
    # The sink's own default of five minutes is slower than any other way into the lake.
    "iceberg.control.commit.interval-ms": "60000",
    "iceberg.control.commit.timeout-ms": "30000",
    "iceberg.tables.auto-create-props.format-version": "2",
    # A commit a minute leaves as many metadata files, which Iceberg keeps by default.
    "iceberg.tables.auto-create-props.write.metadata.delete-after-commit.enabled": "true",
    "iceberg.tables.auto-create-props.write.metadata.previous-versions-max": "50",
    # The sink's own default `latest` loses the files of a first commit that was interrupted: the
    # source offsets are committed with them, but the group that commits them has no offset yet
    # (measured, docs/ways.md; apache/iceberg#18006).
    "iceberg.kafka.auto.offset.reset": "earliest",
}
_SENT, _FLAT = "sent", "flat"  # the transforms
_SOURCE_FIELD = "_cdc.source"  # `schema.table`, written by the transform


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkAddress:
    """Addresses of the catalog and of Kafka, and how the sink signs in to Kafka."""

    warehouse: str
    region: str
    endpoint: str | None = None  # of S3 and Glue; None: AWS's
    kafka: Mapping[str, str] = field(default_factory=dict)  # settings of the sink's own clients


def sink_settings(
    plan: Plan, connector: DeclaredConnector, connector_id: str, address: SinkAddress
) -> dict[str, str]:
    """Return the settings that are derived from the plan, which a file may not change."""
    tables = [plan.table(name) for name in connector.tables]
    return {
        **_transforms(tables),
        **_routing(plan, tables),
        **_control(plan, connector, connector_id),
        **_catalog(address),
        **{f"iceberg.kafka.{name}": value for name, value in sorted(address.kafka.items())},
    }


def _transforms(tables: list[Table]) -> dict[str, str]:
    json = "org.apache.kafka.connect.json.JsonConverter"
    whole = [re.escape(table.source) for table in tables if table.replica_identity == "full"]
    return {
        "key.converter": json,
        "key.converter.schemas.enable": "false",
        "value.converter": json,
        "value.converter.schemas.enable": "false",
        "transforms": f"{_SENT},{_FLAT}",
        f"transforms.{_SENT}.type": DELETED_KEYS,
        **({f"transforms.{_SENT}.whole.regex": "|".join(whole)} if whole else {}),
        f"transforms.{_FLAT}.type": "org.apache.iceberg.connect.transforms.DebeziumTransform",
    }


def _routing(plan: Plan, tables: list[Table]) -> dict[str, str]:
    """Route each event by its source table: a topic may have the events of several tables."""
    targets = {f"{plan.lake_database}.{naming.sink_name(t.name)}": t for t in tables}
    return {
        "iceberg.tables": ",".join(targets),
        "iceberg.tables.route-field": _SOURCE_FIELD,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.evolve-schema-enabled": "true",
        # A column that the first event lacks, or that a later event lacks, is not an error.
        "iceberg.tables.schema-force-optional": "true",
        **{
            f"iceberg.table.{target}.route-regex": re.escape(table.source)
            for target, table in targets.items()
        },
    }


def _control(plan: Plan, connector: DeclaredConnector, connector_id: str) -> dict[str, str]:
    """Name the topic, groups and transactions of the commit, so that two sinks share none."""
    return {
        "iceberg.control.topic": naming.control_topic(plan.name, connector.name),
        "iceberg.control.group-id-prefix": f"cg-control-{connector_id}-",
        "iceberg.connect.group-id": f"connect-{connector_id}",
        "iceberg.coordinator.transactional.prefix": f"{connector_id}-",
    }


def _catalog(address: SinkAddress) -> dict[str, str]:
    settings = {
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "warehouse": address.warehouse,
        "client.region": address.region,
        "glue.skip-archive": "true",
    }
    if address.endpoint is not None:
        settings["glue.endpoint"] = settings["s3.endpoint"] = address.endpoint
        settings["s3.path-style-access"] = "true"
    return {f"iceberg.catalog.{name}": value for name, value in settings.items()}
