"""Flink SQL from Kafka to Iceberg in upsert mode, as the documentation of both has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdclake.local.components.installed import REGION
from cdclake.local.components.kafka import CLIENT_SETTINGS, Broker
from cdclake.naming import CATALOG
from cdclake.plan import Plan, Table

# The connector's jar has Kafka's classes under names of its maker.
_LOGIN = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.plain.PlainLoginModule"
_TYPES = {
    "bigint": "BIGINT",
    "integer": "INT",
    "boolean": "BOOLEAN",
    "numeric(12,2)": "DECIMAL(12, 2)",
    "timestamptz": "TIMESTAMP_LTZ(6)",
    "text": "STRING",
    "uuid": "STRING",
}
_UPSERT = {"format-version": "2", "write.upsert.enabled": "true"}


def script(plan: Plan, broker: Broker, endpoint: str, warehouse: str) -> str:
    """Return the statements of one job for all tables, which runs until it is killed."""
    parts = [_catalog(endpoint, warehouse), "SET 'table.dml-sync' = 'true'"]
    parts += [create_table(table, plan.lake_database) for table in plan.tables]
    parts += [_source(table, broker) for table in plan.tables]
    parts.append("BEGIN STATEMENT SET")
    parts += [
        f"INSERT INTO {_target(table, plan.lake_database)} SELECT * FROM {_source_name(table)}"
        for table in plan.tables
    ]
    return ";\n".join([*parts, "END"]) + ";\n"


def create_table(table: Table, database: str) -> str:
    """Return the statement that creates the table, of format 2 and in upsert mode."""
    return f"CREATE TABLE {_target(table, database)} ({_columns(table)}) WITH {_options(_UPSERT)}"


def _catalog(endpoint: str, warehouse: str) -> str:
    return f"CREATE CATALOG {CATALOG} WITH " + _options(
        {
            "type": "iceberg",
            "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "warehouse": warehouse,
            "glue.endpoint": endpoint,
            "glue.skip-archive": "true",
            "s3.endpoint": endpoint,
            "s3.path-style-access": "true",
            "client.region": REGION,
        }
    )


def _source(table: Table, broker: Broker) -> str:
    login = f'{_LOGIN} required username="{broker.login.user}" password="{broker.login.password}";'
    options = {
        "connector": "kafka",
        "topic": table.topic,
        "properties.bootstrap.servers": broker.address,
        "properties.group.id": "flink",
        **{f"properties.{name}": value for name, value in CLIENT_SETTINGS.items()},
        "properties.sasl.jaas.config": login,
        "scan.startup.mode": "earliest-offset",
        "format": "debezium-json",
        "debezium-json.timestamp-format.standard": "ISO-8601",
    }
    name = _source_name(table)
    return f"CREATE TEMPORARY TABLE {name} ({_columns(table)}) WITH {_options(options)}"


def _columns(table: Table) -> str:
    return ", ".join([*_declared(table), f"PRIMARY KEY ({_key(table)}) NOT ENFORCED"])


def _declared(table: Table) -> Iterator[str]:
    for column in table.columns:
        kind = "STRING" if column.type.startswith("varchar") else _TYPES[column.type]
        yield f"`{column.name}` {kind}"


def _key(table: Table) -> str:
    return ", ".join(f"`{name}`" for name in table.key)


def _target(table: Table, database: str) -> str:
    return f"`{CATALOG}`.`{database}`.`{table.name}`"


def _source_name(table: Table) -> str:
    return f"`default_catalog`.`default_database`.`{table.name}_topic`"


def _options(options: Mapping[str, str]) -> str:
    words = (f"'{name}' = '{value}'" for name, value in options.items())
    return f"({', '.join(words)})"
