"""CloudWatch metrics that AWS does not measure itself. Publishing never fails the job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import boto3
from botocore.config import Config

from cdclake.metrics import DEPLOYMENT, JOB, NAMESPACE, Metric, metric_data

log = logging.getLogger("cdclake.metrics")

Values = Mapping[Metric, float]

# Do not wait longer: the next values follow a minute later.
_QUICK = Config(connect_timeout=5, read_timeout=5, retries={"total_max_attempts": 2})


class Metrics:
    """Publisher of one deployment's metrics; without a deployment (locally) it does nothing."""

    def __init__(self, deployment: str | None, job: str | None = None) -> None:
        """Set the dimensions: `deployment` is the one that alarms use, `job` is optional."""
        named = {DEPLOYMENT: deployment, JOB: job}
        self._dimensions = {name: value for name, value in named.items() if value}
        self._is_on = deployment is not None
        self._failed = False

    def publish(
        self, gather: Callable[[], Values], note_published: Callable[[], None] = lambda: None
    ) -> None:
        """Gather and publish the values; log a failure once, until publishing works again.

        Call `note_published` only after CloudWatch has accepted them.
        Catches every exception: a response that botocore cannot parse does not raise a botocore
        error, and a missing metric must not stop a stream.
        """
        if not self._is_on:
            return
        try:
            self._put(gather())
            note_published()
            self._failed = False
        except Exception as error:
            if not self._failed:
                log.warning("metrics could not be published: %r", error)
            self._failed = True

    def _put(self, values: Values) -> None:
        # A new client each time: creating it may fail, without a region or credentials.
        boto3.client("cloudwatch", config=_QUICK).put_metric_data(
            Namespace=NAMESPACE, MetricData=metric_data(values, self._dimensions)
        )
