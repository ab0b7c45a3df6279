"""The metrics of one deployment, AWS's and our own, by names that are known before deployment.

Sources: MSK developer guide, "Monitoring Amazon MSK Connect" and "Metrics for monitoring Standard
brokers"; Glue user guide, "Monitoring with AWS Glue observability metrics". Those of the source are
in `cdclake/config/source_metrics.py`. Glue's consumer lag metric requires Glue's Kafka source,
which the stream does not use.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import IMetric, MathExpression, Metric

from cdclake import metrics, naming
from cdclake.config.aws_model import CreatedSource
from cdclake.config.source_metrics import LOGICAL_LAG, PHYSICAL_LAG, WAL_ON_DISK, source_dimensions

FIVE_MINUTES, HOUR, DAY = Duration.minutes(5), Duration.hours(1), Duration.days(1)


@dataclass(frozen=True, slots=True)
class DeploymentMetrics:
    """Metrics by origin; the default period is five minutes."""

    prefix: str

    def own(
        self,
        metric: metrics.Metric,
        statistic: str,
        *,
        job: str | None = None,
        period: Duration = FIVE_MINUTES,
    ) -> Metric:
        """Return a metric of the jobs or the stream keeper; `job` selects one table job."""
        named = {metrics.DEPLOYMENT: self.prefix, metrics.JOB: job}
        return Metric(
            namespace=metrics.NAMESPACE,
            metric_name=metric.name,
            dimensions_map={name: value for name, value in named.items() if value},
            statistic=statistic,
            period=period,
            label=f"{metric.name} ({job})" if job else metric.name,
        )

    def source(self, source: CreatedSource, name: str, statistic: str) -> Metric:
        """Return a metric of the created database server."""
        return _of("AWS/RDS", name, statistic, source_dimensions(self.prefix, source))

    def slot_lag(self, source: CreatedSource) -> IMetric:
        """Return the WAL bytes retained by the slot furthest behind, logical or physical.

        Of Aurora, the WAL on disk.
        """
        if source.engine == "aurora":
            return self.source(source, WAL_ON_DISK, "Maximum")
        return MathExpression(
            expression="MAX([FILL(logical, 0), FILL(physical, 0)])",
            using_metrics={
                "logical": self.source(source, LOGICAL_LAG, "Maximum"),
                "physical": self.source(source, PHYSICAL_LAG, "Maximum"),
            },
            label="WAL retained by the slot",
            period=FIVE_MINUTES,
        )

    def connector(self, name: str, statistic: str) -> Metric:
        """Return a metric of the Debezium connector."""
        connector = naming.connector_name(self.prefix)
        return _of("AWS/KafkaConnect", name, statistic, {"ConnectorName": connector})

    def tasks_of(self, declared: str) -> IMetric:
        """Return the running tasks of a declared connector, and 0 if one of its tasks failed."""
        name = {"ConnectorName": naming.declared_connector_name(self.prefix, declared)}
        return MathExpression(
            expression="IF(FILL(errored, 0) > 0, 0, FILL(running, 0))",
            using_metrics={
                "errored": _of("AWS/KafkaConnect", "ErroredTaskCount", "Maximum", name),
                "running": _of("AWS/KafkaConnect", "RunningTaskCount", "Minimum", name),
            },
            label=f"Running tasks of {declared}",
            period=FIVE_MINUTES,
        )

    def fullest_kafka_disk(self) -> IMetric:
        """Return the disk usage of the fullest broker in percent, for any number of brokers."""
        return MathExpression(
            expression=(
                'SELECT MAX(KafkaDataLogsDiskUsed) FROM SCHEMA("AWS/Kafka", "Broker ID",'
                f' "Cluster Name") WHERE "Cluster Name" = \'{self.prefix}\''
            ),
            using_metrics={},
            label="Fullest broker disk, %",
            period=FIVE_MINUTES,
        )

    def growing_lag(self, beyond: int) -> IMetric:
        """Return 1 where the lag exceeds `beyond` records and is growing, else 0."""
        return MathExpression(
            expression=f"IF(lag > {beyond} AND DIFF(lag) > 0, 1, 0)",
            using_metrics={"lag": self.own(metrics.LAG, "Maximum")},
            label="Consumer lag is growing",
            period=FIVE_MINUTES,
        )

    def failures(self, job: str, period: Duration) -> IMetric:
        """Return the tables that the job failed on, plus the runs that failed as a whole."""
        return MathExpression(
            expression="FILL(tables, 0) + FILL(runs, 0)",
            using_metrics={
                "tables": self.own(metrics.FAILED_TABLES, "Sum", job=job, period=period),
                "runs": self.failed_runs(job, period),
            },
            label=f"{job}: failed tables and runs",
            period=period,
        )

    def failed_runs(self, job: str, period: Duration) -> Metric:
        """Return the runs of the job that failed."""
        dimensions = {
            "JobName": naming.glue_job_name(self.prefix, job),
            "JobRunId": "ALL",
            "Type": "count",
            "ObservabilityGroup": "error",
        }
        return _of("Glue", "glue.error.ALL", "Sum", dimensions).with_(period=period)


def filled(metric: Metric, value: int) -> IMetric:
    """Return the metric with this value in each period without a point, for alarms of silence.

    In place of missing points an alarm takes older ones, from before its periods, and only then the
    state that it gives to missing data: without FILL the last point would keep it off for longer
    than its periods (CloudWatch's user guide, "How alarm state is evaluated when data is missing").
    A series without any point stays empty.
    """
    return MathExpression(
        expression=f"FILL(points, {value})",
        using_metrics={"points": metric},
        label=metric.label,
        period=metric.period,
    )


def waiting_messages(queue: str) -> Metric:
    """Return the number of messages in a queue."""
    name = "ApproximateNumberOfMessagesVisible"
    return _of("AWS/SQS", name, "Maximum", {"QueueName": queue})


def _of(namespace: str, name: str, statistic: str, dimensions: dict[str, str]) -> Metric:
    return Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dimensions,
        statistic=statistic,
        period=FIVE_MINUTES,
        label=name,
    )
