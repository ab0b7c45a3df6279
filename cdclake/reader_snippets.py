"""Programs and settings that read a lake with other engines: `cdclake connect`.

They read states without deleted rows: only `cdclake sql` and stored views overlay the changes that
are not applied yet. No secret is in them: the local ones name the file with the lake's credentials,
and the others use those of the AWS profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cdclake import naming

ICEBERG_VERSION, SPARK_VERSION, SCALA_VERSION = "1.10.0", "3.5", "2.12"
TRINO_VERSION = "476"
_NOT_RUN = f"""\
# This file has never been run: only the names of its properties are compared with a list
# from the documentation of Trino {TRINO_VERSION}. Later documentation names fs.s3.enabled
# instead of fs.native-s3.enabled.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAccess:
    """Access to a local lake: its endpoint, the file with its credentials, and Spark's jars."""

    endpoint: str
    credentials: str
    jars: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetTarget:
    """Lake that a snippet reads; `local` is None for a deployment."""

    database: str
    table: str
    region: str
    local: LocalAccess | None = None


def duckdb_snippet(target: SnippetTarget) -> str:
    """Return a Python program for DuckDB."""
    endpoint = ""
    if target.local is not None:
        host = target.local.endpoint.removeprefix("http://")
        endpoint = f", ENDPOINT '{host}', URL_STYLE path, USE_SSL false"
    return f"""\
# pip install duckdb boto3
{_credentials(target)}import boto3
import duckdb

session = boto3.Session(region_name="{target.region}")
keys = session.get_credentials().get_frozen_credentials()
lake = duckdb.connect()
for extension in ("httpfs", "avro", "iceberg"):
    lake.execute(f"INSTALL {{extension}}; LOAD {{extension}}")
token = f", SESSION_TOKEN '{{keys.token}}'" if keys.token else ""
lake.execute(
    f"CREATE SECRET (TYPE s3, KEY_ID '{{keys.access_key}}', SECRET '{{keys.secret_key}}'{{token}},"
    " REGION '{target.region}'{endpoint})"
)
glue = session.client("glue")


def table(name):
    found = glue.get_table(DatabaseName="{target.database}", Name=name)["Table"]
    place = found["Parameters"]["metadata_location"]
    return lake.sql(f"SELECT * FROM iceberg_scan('{{place}}')")


print(table("{target.table}").filter("NOT {naming.DELETED}").count("*"))
"""


def pyiceberg_snippet(target: SnippetTarget) -> str:
    """Return a Python program for PyIceberg."""
    endpoint = (
        ""
        if target.local is None
        else f'\n    **{{"glue.endpoint": "{target.local.endpoint}",'
        f' "s3.endpoint": "{target.local.endpoint}"}},'
    )
    return f"""\
# pip install "pyiceberg[glue,pyarrow]"
{_credentials(target)}from pyiceberg.catalog import load_catalog

catalog = load_catalog(
    "lake",
    type="glue",
    **{{"glue.region": "{target.region}", "s3.region": "{target.region}"}},{endpoint}
)
table = catalog.load_table("{target.database}.{target.table}")
print(table.scan(row_filter="{naming.DELETED} = false").to_arrow().num_rows)
"""


def spark_snippet(target: SnippetTarget) -> str:
    """Return a Python program for Spark with Iceberg's catalog of Glue."""
    catalog = "spark.sql.catalog.lake"
    settings = {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{catalog}.client.region": target.region,
        "spark.sql.session.timeZone": "UTC",
        **_spark_access(target, catalog),
    }
    configured = "".join(f'    "{name}": "{value}",\n' for name, value in settings.items())
    return f"""\
# pip install "pyspark=={SPARK_VERSION}.*"
{_credentials(target)}from pyspark.sql import SparkSession

settings = {{
{configured}}}
builder = SparkSession.builder
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = spark.table("lake.{target.database}.{target.table}").where("NOT {naming.DELETED}")
print(rows.count())
"""


def _spark_access(target: SnippetTarget, catalog: str) -> Mapping[str, str]:
    if target.local is None:
        runtime = f"iceberg-spark-runtime-{SPARK_VERSION}_{SCALA_VERSION}:{ICEBERG_VERSION}"
        bundle = f"iceberg-aws-bundle:{ICEBERG_VERSION}"
        group = "org.apache.iceberg"
        return {"spark.jars.packages": f"{group}:{runtime},{group}:{bundle}"}
    return {
        "spark.driver.extraClassPath": target.local.jars,
        f"{catalog}.glue.endpoint": target.local.endpoint,
        f"{catalog}.s3.endpoint": target.local.endpoint,
        f"{catalog}.s3.path-style-access": "true",
    }


def trino_snippet(target: SnippetTarget) -> str:
    """Return the properties of a catalog for Trino; it reads the credentials' variables.

    They have never been run: the tests have Trino 406, which lacks `fs.native-s3.enabled`.
    """
    lines = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "glue",
        "hive.metastore.glue.region": target.region,
        "fs.native-s3.enabled": "true",
        "s3.region": target.region,
    }
    comment = "# etc/catalog/lake.properties of Trino, with the credentials of its AWS role\n"
    if target.local is not None:
        comment = (
            "# etc/catalog/lake.properties of Trino. Start it with AWS_ACCESS_KEY_ID and\n"
            f"# AWS_SECRET_ACCESS_KEY from {target.local.credentials}\n"
        )
        lines |= {
            "hive.metastore.glue.endpoint-url": target.local.endpoint,
            "hive.metastore.glue.aws-access-key": "${ENV:AWS_ACCESS_KEY_ID}",
            "hive.metastore.glue.aws-secret-key": "${ENV:AWS_SECRET_ACCESS_KEY}",
            "s3.endpoint": target.local.endpoint,
            "s3.path-style-access": "true",
            "s3.aws-access-key": "${ENV:AWS_ACCESS_KEY_ID}",
            "s3.aws-secret-key": "${ENV:AWS_SECRET_ACCESS_KEY}",
        }
    properties = "".join(f"{name}={value}\n" for name, value in lines.items())
    query = (
        f"# SELECT count(*) FROM lake.{target.database}.{target.table} WHERE NOT {naming.DELETED}\n"
    )
    return f"{comment}{_NOT_RUN}{properties}{query}"


def _credentials(target: SnippetTarget) -> str:
    if target.local is None:
        return ""
    return f"""\
import os

for variable in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE"):
    os.environ.pop(f"AWS_{{variable}}", None)  # they would be used instead of the file
os.environ["AWS_CONFIG_FILE"] = "{target.local.credentials}"
os.environ["AWS_SHARED_CREDENTIALS_FILE"] = "{target.local.credentials}"
"""


SNIPPETS: Mapping[str, Callable[[SnippetTarget], str]] = {
    "duckdb": duckdb_snippet,
    "pyiceberg": pyiceberg_snippet,
    "spark": spark_snippet,
    "trino": trino_snippet,
}
