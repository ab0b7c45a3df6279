"""DuckDB reader for a job, configured from its Spark session and environment."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlparse

import boto3
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.reader.duck import Reader
from cdclake.plan import Plan


def job_reader(spark: SparkSession, plan: Plan, spill: Path) -> Reader:
    """Create a reader of the catalog's bucket with the job's credentials."""
    warehouse = spark.conf.get(f"spark.sql.catalog.{naming.CATALOG}.warehouse")
    assert warehouse is not None
    return Reader(
        plan=plan,
        s3=boto3.client("s3").meta.endpoint_url,
        glue=boto3.client("glue").meta.endpoint_url,
        bucket=urlparse(warehouse).netloc,
        spill=spill,
    )
