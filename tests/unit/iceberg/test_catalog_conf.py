"""Spark settings of all jobs that bound their memory."""

from cdclake.deployed_jobs import spark_conf
from cdclake.iceberg.catalog_conf import catalog_conf

BOUNDS = {
    "spark.kafka.consumer.fetchedData.cache.timeout": "1s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "1s",
    "spark.sql.ui.retainedExecutions": "50",
}


def test_catalog_conf_bounds_what_spark_keeps_locally_and_deployed() -> None:
    local, deployed = catalog_conf("s3://lake/warehouse"), spark_conf("lake/warehouse").split(" ")
    for name, value in BOUNDS.items():
        assert local[name] == value
        assert f"{name}={value}" in deployed
