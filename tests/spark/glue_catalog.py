"""Iceberg's Glue catalog and S3FileIO, as deployed, on the local S3 and Glue in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from pyspark.sql import SparkSession

from cdclake.iceberg.catalog_conf import catalog_conf
from cdclake.local.aws.http_server import Answer, Server

BUCKET = "lake"
CLIENT = {
    "region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local",
}  # fmt: skip


@contextmanager
def serving(aws: Callable[[dict[str, Any], bytes], Answer]) -> Iterator[str]:
    """Serve S3 and Glue, with a bucket; yields the address."""
    with Server(0, aws) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            client: Any = boto3.client("s3", endpoint_url=url, **CLIENT)
            client.create_bucket(Bucket=BUCKET)
            yield url
        finally:
            server.shutdown()
            thread.join()


def glue_session(spark: SparkSession, url: str) -> SparkSession:
    """A session whose catalog is Glue, next to the other tests' catalog; S3 is asked only twice."""
    session = spark.newSession()
    system: Any = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    for name, value in (("accessKeyId", "local"), ("secretAccessKey", "local")):
        system.setProperty(f"aws.{name}", value)
    catalog = "spark.sql.catalog.lake"
    session.conf.unset(f"{catalog}.type")
    settings = {
        **catalog_conf(f"s3://{BUCKET}/warehouse"),
        f"{catalog}.glue.endpoint": url,
        f"{catalog}.s3.endpoint": url,
        f"{catalog}.s3.access-key-id": "local",
        f"{catalog}.s3.secret-access-key": "local",
        f"{catalog}.s3.path-style-access": "true",
        f"{catalog}.s3.retry.num-retries": "1",
        f"{catalog}.s3.retry.min-wait-ms": "10",
        f"{catalog}.client.region": "us-east-1",
    }
    for name, value in settings.items():
        if name.startswith(catalog):
            session.conf.set(name, value)
    return session
