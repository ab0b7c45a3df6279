"""The metrics of Firehose's streams, by names that are known before they are made.

Source: Firehose's developer guide, "Monitor Amazon Data Firehose with CloudWatch metrics" and
"Monitor metrics" of Iceberg tables. It has none of a stream that reads nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import IMetric, MathExpression, Metric

from cdclake import naming
from cdclake.firehose.stream import DeliveryStream
from cdclake.stacks.constructs.deployment_metrics import FIVE_MINUTES, HOUR

# An alarm looks at ten metrics, of which one is what is made of the others.
_STREAMS = 9
_LAG = "KafkaOffsetLag"  # only a stream from Kafka has it


def metrics_of(prefix: str, streams: Sequence[DeliveryStream]) -> Iterator[DeliveryMetrics]:
    """The streams' metrics, in parts that an alarm can look at."""
    for part, first in enumerate(range(0, len(streams), _STREAMS), start=1):
        yield DeliveryMetrics(prefix, streams[first : first + _STREAMS], part)


def throttled(prefix: str, stream: str) -> IMetric:
    """Records that a stream of Direct PUT did not take, of which the sender tries each again."""
    return Metric(
        namespace="AWS/Firehose",
        metric_name="ThrottledRecords",
        dimensions_map={"DeliveryStreamName": naming.delivery_stream_name(prefix, stream)},
        statistic="Sum",
        period=FIVE_MINUTES,
        label="throttled records",
    )


def running(prefix: str, name: str) -> IMetric:
    """Points of a web server's load, of which its running tasks send one a minute."""
    server = naming.delivery_stream_name(prefix, name)
    return Metric(
        namespace="AWS/ECS",
        metric_name="CPUUtilization",
        dimensions_map={"ClusterName": server, "ServiceName": server},
        statistic="SampleCount",
        period=FIVE_MINUTES,
        label="CPU samples of the web server",
    )


@dataclass(frozen=True, slots=True)
class DeliveryMetrics:
    """Of at most nine streams of Firehose, as many as an alarm can look at."""

    prefix: str
    streams: Sequence[DeliveryStream]
    part: int  # a graph shows several, and knows metrics by their names

    @property
    def of_kafka(self) -> bool:
        """Whether one of them reads a topic."""
        return any(each.source == "msk" for each in self.streams)

    @property
    def collecting_seconds(self) -> int:
        """How long the slowest of them may collect before it appends."""
        return max(each.function_seconds + each.buffer_seconds for each in self.streams)

    def age(self) -> IMetric:
        """Seconds that the oldest record has been in Firehose."""
        return self._folded("MAX", "DeliveryToIceberg.DataFreshness", "Maximum", "oldest record, s")

    def lag(self) -> IMetric:
        """Records that Kafka has and Firehose has not read, of the stream furthest behind."""
        return self._folded("MAX", _LAG, "Maximum", "consumer lag, records")

    def growing_lag(self, beyond: int) -> IMetric:
        """1 where more records than that are unread and there are more than before, else 0."""
        used = self._each(_LAG, "Maximum", FIVE_MINUTES)
        lag = f"MAX([{', '.join(used)}])"
        return MathExpression(
            expression=f"IF({lag} > {beyond} AND DIFF({lag}) > 0, 1, 0)",
            using_metrics=used,
            label="Firehose consumer lag is growing",
            period=FIVE_MINUTES,
        )

    def appended(self) -> IMetric:
        """Rows that were appended."""
        return self._folded("SUM", "DeliveryToIceberg.SuccessfulRowCount", "Sum", "appended rows")

    def failed(self, period: Duration = FIVE_MINUTES) -> IMetric:
        """Rows that went to S3 since they could not be appended."""
        metric = "DeliveryToIceberg.FailedRowCount"
        return self._folded("SUM", metric, "Sum", "failed rows", period)

    def _folded(
        self, fold: str, metric: str, statistic: str, label: str, period: Duration = FIVE_MINUTES
    ) -> IMetric:
        used = self._each(metric, statistic, period)
        filled = ", ".join(f"FILL({name}, 0)" for name in used)
        names = ", ".join(each.name for each in self.streams)
        return MathExpression(
            expression=f"{fold}([{filled}])",
            using_metrics=used,
            label=f"{label}: {names}",
            period=period,
        )

    def _each(self, metric: str, statistic: str, period: Duration) -> dict[str, IMetric]:
        return {
            f"part{self.part}stream{number}": Metric(
                namespace="AWS/Firehose",
                metric_name=metric,
                dimensions_map={
                    "DeliveryStreamName": naming.delivery_stream_name(self.prefix, stream.name)
                },
                statistic=statistic,
                period=period,
            )
            for number, stream in enumerate(self.streams)
            if stream.source == "msk" or metric != _LAG
        }


def refused(prefix: str) -> IMetric:
    """Events that the function could not make rows of, within an hour."""
    return Metric(
        namespace=naming.delivery_metrics(prefix),
        metric_name=naming.REFUSED_METRIC,
        statistic="Sum",
        period=HOUR,
        label="rejected events per hour",
    )


def failed_calls(functions: Sequence[str]) -> IMetric:
    """Calls of these functions, four at most, that ended badly or were not let in."""
    used: dict[str, IMetric] = {
        f"{name.lower()}{number}": Metric(
            namespace="AWS/Lambda",
            metric_name=name,
            dimensions_map={"FunctionName": function},
            statistic="Sum",
            period=FIVE_MINUTES,
        )
        for number, function in enumerate(functions)
        for name in ("Errors", "Throttles")
    }
    return MathExpression(
        expression=" + ".join(f"FILL({each}, 0)" for each in used),
        using_metrics=used,
        label="failed function calls",
        period=FIVE_MINUTES,
    )
