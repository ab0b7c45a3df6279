"""Where Iceberg's tables are: in a folder, or in the S3 and Glue of `benchmarks.latency_proxy`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cdclake import naming

ENDPOINT = "BENCH_AWS"  # the environment's name for that S3 and Glue
EXTENSIONS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
_CATALOG = f"spark.sql.catalog.{naming.CATALOG}"


def catalog_settings(warehouse: str) -> Mapping[str, str]:
    """The catalog `lake`, whichever kind `warehouse` asks for."""
    plain = {
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.warehouse": warehouse,
    }
    if not warehouse.startswith("s3://"):
        # By class, as in S3 and on Glue: a job's own setting of it gives way.
        return {
            **plain,
            f"{_CATALOG}.catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog",
            f"{_CATALOG}.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        }
    endpoint = os.environ[ENDPOINT]
    return {
        **plain,
        f"{_CATALOG}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        f"{_CATALOG}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{_CATALOG}.glue.skip-archive": "true",
        f"{_CATALOG}.glue.endpoint": endpoint,
        f"{_CATALOG}.s3.endpoint": endpoint,
        f"{_CATALOG}.s3.path-style-access": "true",
        f"{_CATALOG}.client.region": "us-east-1",
    }
