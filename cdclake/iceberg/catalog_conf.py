"""Spark settings of every job, passed by `--conf` on Glue and locally."""

from __future__ import annotations

from cdclake import naming


def catalog_conf(warehouse: str) -> dict[str, str]:
    """Return the settings of Iceberg's extensions and of the Glue catalog below `warehouse`."""
    catalog = f"spark.sql.catalog.{naming.CATALOG}"
    return {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        # S3FileIO that reads its own metadata files from memory (java/iceberg).
        f"{catalog}.io-impl": "cdclake.iceberg.WrittenMetadataFileIO",
        f"{catalog}.warehouse": warehouse,
        # A cached table handle would hide the commits of other jobs.
        f"{catalog}.cache-enabled": "false",
        f"{catalog}.glue.skip-archive": "true",
        "spark.sql.session.timeZone": "UTC",
        # Each table has some dozens of generated classes. With Spark's default of 100 every batch
        # evicts classes that the next one compiles again (measured: a second per batch).
        "spark.sql.codegen.cache.maxEntries": "10000",
        # A batch's rows are cached for seconds, which does not pay for choosing a compression.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # Rows are passed to Python in blocks of so many. Larger ones take as long, and more memory.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
        # Otherwise a column of a block could not have more than 2 GB.
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        # Otherwise Spark writes the unused text of the plan for each query of a batch.
        "spark.sql.ui.explainMode": "simple",
        # Spark keeps the plans of its last queries for its UI, 1,000 by default, even without a UI:
        # for the tests' tables they filled 3 GB of the heap, more than a small driver has.
        "spark.sql.ui.retainedExecutions": "50",
        # A consumer per piece of a topic is kept between batches (decision 42); by default 64.
        "spark.kafka.consumer.cache.capacity": "512",
        # Each query's consumer keeps the records of its last poll, up to 500 of any size, for five
        # minutes by default: 500 MB after five reads of rows of 200 kB (measured).
        "spark.kafka.consumer.fetchedData.cache.timeout": "1s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "1s",
    }
