"""Silence a warning that Spark's Kafka reader logs for each record.

Spark warns of KAFKA-1894 when a thread that may be interrupted reads from Kafka, and the thread
that passes rows to Python is one: a line of 190 bytes per event (measured). Nothing else of Spark's
log is changed. `spark.log.level` does not reach executors in Spark 3.5, and a configuration file
would take the place of the platform's own, so an expression sets the level within tasks.
"""

from __future__ import annotations

import logging

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

log = logging.getLogger("cdclake.stream")

CONSUMER_LOGGER = "org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer"
_LEVELS = "org.apache.logging.log4j.core.config.Configurator"


class QuietConsumer:
    """Executors whose Kafka reader logs errors only."""

    def __init__(self) -> None:
        self._quiet: frozenset[str] = frozenset()

    def extend(self, spark: SparkSession) -> None:
        """Silence executors that are new since the last call; without any this costs no job.

        A task per core reaches each executor as long as all are idle; one that was missed warns on.
        So do all if their Log4j has no such method, which is logged.
        """
        executors = _executors(spark)
        if executors <= self._quiet:
            return
        cores = spark.sparkContext.defaultParallelism
        silenced = f"reflect('{_LEVELS}', 'setLevel', '{CONSUMER_LOGGER}', 'ERROR')"
        try:
            spark.range(0, cores, 1, cores).selectExpr(silenced).collect()
        except PySparkException as failure:
            log.warning("cannot silence the warnings of %s: %s", CONSUMER_LOGGER, failure)
        self._quiet = executors


def _executors(spark: SparkSession) -> frozenset[str]:
    """Return the addresses of the driver and of the executors."""
    context = spark.sparkContext._jsc.sc()
    return frozenset(context.getExecutorMemoryStatus().keySet().mkString(",").split(","))
