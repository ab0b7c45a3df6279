"""A bounded read of Kafka: what a stopped table missed while the others flowed."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from glue_jobs.ingest.table_batch import Ranges

RECORD_COLUMNS = ("topic", "partition", "offset", "key", "value", "headers")


def read_gap(
    spark: SparkSession,
    brokers: dict[str, str],
    topic: str,
    resume: dict[int, int],
    batch_ends: dict[int, int],
) -> tuple[DataFrame, Ranges]:
    """The topic's records from `resume` on (empty: from its beginning), and their offset ranges.

    Ends where the running batch ends, or, for a partition that has no record in it, at the
    partition's end now. Fails if Kafka no longer keeps the beginning of the gap.
    """
    starts = {topic: {str(partition): offset for partition, offset in resume.items()}}
    records = (
        spark.read.format("kafka")
        .options(**brokers)
        .option("subscribe", topic)
        .option("startingOffsets", json.dumps(starts) if resume else "earliest")
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
        .select(*RECORD_COLUMNS)
    )
    for partition, end in batch_ends.items():
        records = records.where((F.col("partition") != partition) | (F.col("offset") < end))
    rows = (
        records.groupBy("partition")
        .agg(F.min("offset").alias("first"), (F.max("offset") + 1).alias("following"))
        .collect()
    )
    return records, {row["partition"]: (row["first"], row["following"]) for row in rows}
