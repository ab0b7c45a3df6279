"""The metrics of Firehose's streams, by names that are known before deployment.

Source: Firehose's developer guide, "Monitor Amazon Data Firehose with CloudWatch metrics" and
"Monitor metrics" of Iceberg tables. None of them shows that a stream reads nothing
at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import IMetric, MathExpression, Metric

from cdclake import naming
from cdclake.firehose.stream import DeliveryStream
from cdclake.stacks.constructs.deployment_metrics import FIVE_MINUTES, HOUR

# An alarm holds ten metrics, including the expression over the others.
_STREAMS = 9
_LAG = "KafkaOffsetLag"  # only a stream from Kafka has it


def metrics_of(prefix: str, streams: Sequence[DeliveryStream]) -> Iterator[DeliveryMetrics]:
    """Yield the streams' metrics, in parts that fit into one alarm."""
    for part, first in enumerate(range(0, len(streams), _STREAMS), start=1):
        yield DeliveryMetrics(prefix, streams[first : first + _STREAMS], part)


def throttled(prefix: str, stream: DeliveryStream) -> IMetric:
    """Return the records that a Direct PUT or Kinesis stream throttled; the sender retries them.

    Source of the second: Kinesis Data Streams' developer guide, "Basic stream-level metrics".
    """
    if stream.source == "kinesis":
        service, metric, dimension = "Kinesis", "WriteProvisionedThroughputExceeded", "StreamName"
        name = naming.kinesis_stream_name(prefix, stream.name)
    else:
        service, metric, dimension = "Firehose", "ThrottledRecords", "DeliveryStreamName"
        name = naming.delivery_stream_name(prefix, stream.name)
    return Metric(
        namespace=f"AWS/{service}",
        metric_name=metric,
        dimensions_map={dimension: name},
        statistic="Sum",
        period=FIVE_MINUTES,
        label="throttled records",
    )


def unread(prefix: str, stream: str, beyond_seconds: int) -> MathExpression:
    """Return 1 for each hour when a stream was behind its Kinesis stream, or did not read it.

    It is behind if even its newest read record was older than `beyond_seconds` throughout. A
    stream that cannot read may publish neither metric, so the records of the Kinesis stream count:
    those of the hour before, if nothing was read in that hour, the one before it and the one after.
    Firehose publishes every five minutes and Kinesis every minute, and the hours slide with each
    evaluation: the number of records read may be known later than that of the records put, or
    belong to the hour before.
    """
    firehose = {"DeliveryStreamName": naming.delivery_stream_name(prefix, stream)}
    kinesis = {"StreamName": naming.kinesis_stream_name(prefix, stream)}
    used: dict[str, IMetric] = {
        name: Metric(
            namespace=namespace,
            metric_name=metric,
            dimensions_map=dimensions,
            statistic=statistic,
            period=HOUR,
        )
        for name, namespace, metric, dimensions, statistic in (
            ("behind", "AWS/Firehose", "KinesisMillisBehindLatest", firehose, "Minimum"),
            ("read", "AWS/Firehose", "DataReadFromKinesisStream.Records", firehose, "Sum"),
            ("put", "AWS/Kinesis", "IncomingRecords", kinesis, "Sum"),
        )
    }
    late, put, read = f"FILL(behind, 0) > {1000 * beyond_seconds}", "FILL(put, 0)", "FILL(read, 0)"
    hours = (read, _before(read), _before(_before(read)))
    silent = " AND ".join(f"({hour} == 0)" for hour in hours)
    return MathExpression(
        expression=f"IF(({late}) OR (({_before(put)} > 0) AND {silent}), 1, 0)",
        using_metrics=used,
        label=f"behind Kinesis: {stream}",
        period=HOUR,
    )


def _before(series: str) -> str:
    """Return the expression of the series' values one period earlier."""
    return f"({series} - DIFF({series}))"


def running(prefix: str, name: str) -> Metric:
    """Return the number of CPU samples: each running task of the web server sends one a minute."""
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
    """Metrics of at most nine Firehose streams, as many as fit into one alarm."""

    prefix: str
    streams: Sequence[DeliveryStream]
    part: int  # makes the metric ids unique in a graph of several parts

    @property
    def of_kafka(self) -> bool:
        """Return whether a stream reads a Kafka topic."""
        return any(each.source == "msk" for each in self.streams)

    @property
    def collecting_seconds(self) -> int:
        """Return the longest time that one of the streams may buffer records."""
        return max(each.function_seconds + each.buffer_seconds for each in self.streams)

    def age(self) -> IMetric:
        """Return the age in seconds of the oldest record in Firehose."""
        return self._greatest("DeliveryToIceberg.DataFreshness", "oldest record, s")

    def lag(self) -> IMetric:
        """Return the consumer lag in records of the stream furthest behind."""
        return self._greatest(_LAG, "consumer lag, records")

    def growing_lag(self, beyond: int) -> IMetric:
        """Return 1 where the lag exceeds `beyond` records and is growing, else 0."""
        used = self._each(_LAG, "Maximum", FIVE_MINUTES)
        lag = f"MAX([{', '.join(used)}])"
        return MathExpression(
            expression=f"IF({lag} > {beyond} AND DIFF({lag}) > 0, 1, 0)",
            using_metrics=used,
            label="Firehose consumer lag is growing",
            period=FIVE_MINUTES,
        )

    def appended(self) -> IMetric:
        """Return the number of appended rows."""
        return self._summed("DeliveryToIceberg.SuccessfulRowCount", "appended rows", FIVE_MINUTES)

    def failed(self, period: Duration = FIVE_MINUTES) -> IMetric:
        """Return the number of rows that could not be appended and went to S3."""
        return self._summed("DeliveryToIceberg.FailedRowCount", "failed rows", period)

    def succeeded_calls(self, period: Duration = FIVE_MINUTES) -> IMetric:
        """Return the least share of function calls that succeeded, 1 without a call.

        Firehose counts a request that Lambda refuses, for instance since it is too large; Lambda
        itself counts it nowhere.
        """
        used = self._each("ExecuteProcessing.Success", "Minimum", period)
        return MathExpression(
            expression=f"MIN([{', '.join(f'FILL({name}, 1)' for name in used)}])",
            using_metrics=used,
            label=f"successful calls: {self._names}",
            period=period,
        )

    @property
    def _names(self) -> str:
        return ", ".join(each.name for each in self.streams)

    def _greatest(self, metric: str, label: str) -> IMetric:
        """Return the greatest value of the streams in each period with a point.

        Without FILL: Firehose publishes every five minutes, so the newest period often has no point
        yet, and a filled one would keep an alarm off or switch it every few minutes (CloudWatch's
        user guide, "Using metric math", FILL).
        """
        used = self._each(metric, "Maximum", FIVE_MINUTES)
        return MathExpression(
            expression=f"MAX([{', '.join(used)}])",
            using_metrics=used,
            label=f"{label}: {self._names}",
            period=FIVE_MINUTES,
        )

    def _summed(self, metric: str, label: str, period: Duration) -> IMetric:
        used = self._each(metric, "Sum", period)
        filled = ", ".join(f"FILL({name}, 0)" for name in used)
        return MathExpression(
            expression=f"SUM([{filled}])",
            using_metrics=used,
            label=f"{label}: {self._names}",
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
    """Return the number of events per hour that the function could not decode."""
    return Metric(
        namespace=naming.delivery_metrics(prefix),
        metric_name=naming.REFUSED_METRIC,
        statistic="Sum",
        period=HOUR,
        label="rejected events per hour",
    )


def failed_calls(functions: Sequence[str], period: Duration = FIVE_MINUTES) -> IMetric:
    """Return the failed and throttled calls of these functions, at most four."""
    used: dict[str, IMetric] = {
        f"{name.lower()}{number}": Metric(
            namespace="AWS/Lambda",
            metric_name=name,
            dimensions_map={"FunctionName": function},
            statistic="Sum",
            period=period,
        )
        for number, function in enumerate(functions)
        for name in ("Errors", "Throttles")
    }
    return MathExpression(
        expression=" + ".join(f"FILL({each}, 0)" for each in used),
        using_metrics=used,
        label="failed function calls",
        period=period,
    )
