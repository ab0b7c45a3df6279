"""The warning that Spark's Kafka reader logs for each record, and executors that come later."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.runtime import quiet_consumer
from cdclake.jobs.runtime.quiet_consumer import CONSUMER_LOGGER, QuietConsumer

pytestmark = pytest.mark.spark


@pytest.fixture
def logging_(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.logging.log4j


@pytest.fixture
def warning(logging_: Any) -> None:
    levels = logging_.core.config.Configurator
    levels.setLevel(CONSUMER_LOGGER, "WARN")


@pytest.mark.usefixtures("warning")
def test_where_tasks_run_the_kafka_reader_logs_errors_only(spark, logging_):
    others = logging_.LogManager.getRootLogger().getLevel()
    assert logging_.LogManager.getLogger(CONSUMER_LOGGER).isWarnEnabled()
    QuietConsumer().extend(spark)
    consumer = logging_.LogManager.getLogger(CONSUMER_LOGGER)
    assert not consumer.isWarnEnabled() and consumer.isErrorEnabled()
    assert logging_.LogManager.getRootLogger().getLevel() == others


def test_only_new_executors_cost_a_job(spark, monkeypatch):
    known = [frozenset({"driver"}), frozenset({"driver"}), frozenset({"driver", "one"})]
    monkeypatch.setattr(quiet_consumer, "_executors", lambda _: known.pop(0))
    consumer, tracker = QuietConsumer(), spark.sparkContext.statusTracker()
    jobs = []
    for number in range(3):
        spark.sparkContext.setJobGroup(f"quiet {number}", "")
        consumer.extend(spark)
        jobs.append(len(tracker.getJobIdsForGroup(f"quiet {number}")))
    assert jobs == [1, 0, 1]


def test_without_the_method_the_warnings_stay_and_the_stream_goes_on(spark, monkeypatch, caplog):
    monkeypatch.setattr(quiet_consumer, "_LEVELS", "no.such.Configurator")
    consumer = QuietConsumer()
    for _ in range(2):
        consumer.extend(spark)
    [warning] = caplog.records
    assert "no.such.Configurator" in warning.getMessage()


def test_executors_are_known_by_address(spark):
    [driver] = quiet_consumer._executors(spark)
    assert driver.rpartition(":")[2].isdigit()
