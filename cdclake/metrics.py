"""What a deployment tells CloudWatch of itself: the names that jobs publish and alarms read."""

from __future__ import annotations

from dataclasses import dataclass

NAMESPACE = "cdclake"
DEPLOYMENT = "Deployment"  # dimension of every metric: which deployment it is of
JOB = "Job"  # dimension of those that each job has


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, and CloudWatch's word for its unit."""

    name: str
    unit: str = "Count"


# Of the stream, once a minute while it runs.
FRESHNESS = Metric("Freshness", "Seconds")  # age of the newest heartbeat that the lake has
BATCH_AGE = Metric("BatchAge", "Seconds")  # since the last batch ended
BATCH_SECONDS = Metric("BatchSeconds", "Seconds")  # that the last batch took
BATCH_EVENTS = Metric("BatchEvents")  # that it held
LAG = Metric("Lag")  # records behind the end of the topic that is furthest behind
QUARANTINED = Metric("Quarantined")  # events refused since it was last told
STOPPED_TABLES = Metric("StoppedTables")

# Of a job over tables, at its end.
FAILED_TABLES = Metric("FailedTables")
# Of `maintain_tables`, after it has gone over all of them: the worst table's.
SMALL_FILES = Metric("SmallFiles")  # files beyond those that its bytes need
SNAPSHOTS = Metric("Snapshots")

# Of the stream's keeper, whenever it looks.
STREAM_RUNNING = Metric("StreamRunning")
STREAM_FAILURES = Metric("StreamFailures")
STREAM_GIVEN_UP = Metric("StreamGivenUp")
