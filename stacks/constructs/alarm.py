"""The specification of one alarm."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk.aws_cloudwatch import ComparisonOperator, IMetric, TreatMissingData

MORE, LESS = ComparisonOperator.GREATER_THAN_THRESHOLD, ComparisonOperator.LESS_THAN_THRESHOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSpec:
    """One alarm: in ALARM if all of the last `periods` are beyond the threshold, or `breaching`."""

    name: str  # also the name of its runbook
    description: str
    metric: IMetric
    threshold: float
    beyond: ComparisonOperator = MORE
    periods: int = 1
    breaching: int | None = None  # so many of the periods suffice
    missing: TreatMissingData = TreatMissingData.NOT_BREACHING
    part: int = 1  # if one alarm cannot hold all metrics

    @property
    def full_name(self) -> str:
        """Return the name that is unique within the deployment."""
        return self.name if self.part == 1 else f"{self.name}-{self.part}"
