"""Spark settings of all jobs that bound their memory."""

from cdclake import naming
from cdclake.deployed_jobs import spark_conf
from cdclake.iceberg.catalog_conf import catalog_conf

BOUNDS = {
    "spark.kafka.consumer.cache.capacity": "512",
    "spark.kafka.consumer.fetchedData.cache.timeout": "1s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "1s",
    "spark.sql.ui.retainedExecutions": "50",
}


def test_catalog_conf_bounds_what_spark_keeps_locally_and_deployed() -> None:
    local = catalog_conf("s3://lake/warehouse")
    deployed = spark_conf(naming.APPLY_JOB, "lake/warehouse").split(" ")
    for name, value in BOUNDS.items():
        assert local[name] == value
        assert f"{name}={value}" in deployed


def test_only_the_job_of_hudi_copies_has_hudis_settings() -> None:
    kryo = "spark.serializer=org.apache.spark.serializer.KryoSerializer"
    assert kryo in spark_conf(naming.PUBLISH_JOB, "lake/warehouse").split(" ")
    assert kryo not in spark_conf(naming.STREAM_JOB, "lake/warehouse")
