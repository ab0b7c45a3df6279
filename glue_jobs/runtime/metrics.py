"""Telling CloudWatch what AWS does not measure by itself. Telling never fails what it tells of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import boto3
from botocore.config import Config

from cdclake.metrics import DEPLOYMENT, JOB, NAMESPACE, Metric

log = logging.getLogger("cdclake.metrics")

Values = Mapping[Metric, float]

# A minute's figures are not worth a longer wait: the next ones come.
_QUICK = Config(connect_timeout=5, read_timeout=5, retries={"total_max_attempts": 2})


class Metrics:
    """Publishes for one deployment; for none, as locally, it does nothing."""

    def __init__(self, deployment: str | None, job: str | None = None) -> None:
        """`deployment`: value of the dimension that the alarms look at; `job`: another one."""
        named = {DEPLOYMENT: deployment, JOB: job}
        self._dimensions = [
            {"Name": name, "Value": value} for name, value in named.items() if value
        ]
        self._is_on = deployment is not None
        self._failed = False

    def tell(self, gather: Callable[[], Values]) -> None:
        """Gather and publish. What fails is logged, once until it works again.

        Whatever it is: an answer that botocore cannot read is no error of its own, and no figure is
        worth a stream.
        """
        if not self._is_on:
            return
        try:
            self._publish(gather())
            self._failed = False
        except Exception as error:
            if not self._failed:
                log.warning("metrics could not be published: %r", error)
            self._failed = True

    def _publish(self, values: Values) -> None:
        # A client of now: the first one may be what fails, without a region or credentials.
        boto3.client("cloudwatch", config=_QUICK).put_metric_data(
            Namespace=NAMESPACE,
            MetricData=[
                {
                    "MetricName": metric.name,
                    "Dimensions": self._dimensions,
                    "Value": float(value),
                    "Unit": metric.unit,
                }
                for metric, value in values.items()
            ],
        )
