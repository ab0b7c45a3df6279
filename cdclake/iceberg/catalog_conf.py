"""The Spark settings that every job starts with: the same by `--conf` on Glue and locally."""

from __future__ import annotations

from cdclake import naming


def catalog_conf(warehouse: str) -> dict[str, str]:
    """Iceberg's extensions, and the Glue catalog under its name, with tables below `warehouse`."""
    catalog = f"spark.sql.catalog.{naming.CATALOG}"
    return {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{catalog}.warehouse": warehouse,
        # A cached table handle would hide what another job committed.
        f"{catalog}.cache-enabled": "false",
        f"{catalog}.glue.skip-archive": "true",
        "spark.sql.session.timeZone": "UTC",
        # Each table has some dozens of generated classes. With Spark's default of 100 every batch
        # throws out what the next one needs, and compiles it again (measured: a second a batch).
        "spark.sql.codegen.cache.maxEntries": "10000",
        # A batch's rows are held for seconds: how each column is best compressed need not be found.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # The plan's text that nobody reads, written for each of a batch's queries.
        "spark.sql.ui.explainMode": "simple",
        # Spark keeps its last queries' plans for its page, 1,000 by default, with the page off too:
        # of the tests' tables they filled 3 GB of a heap, which a small driver has not.
        "spark.sql.ui.retainedExecutions": "50",
    }
