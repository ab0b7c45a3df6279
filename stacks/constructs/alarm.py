"""One thing that is watched: when its alarm is on, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk.aws_cloudwatch import ComparisonOperator, IMetric, TreatMissingData

MORE, LESS = ComparisonOperator.GREATER_THAN_THRESHOLD, ComparisonOperator.LESS_THAN_THRESHOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSpec:
    """One alarm: on after so many periods in a row beyond the threshold."""

    name: str  # its runbook's, too
    description: str
    metric: IMetric
    threshold: float
    beyond: ComparisonOperator = MORE
    periods: int = 1
    missing: TreatMissingData = TreatMissingData.NOT_BREACHING
    part: int = 1  # of an alarm that looks at more than fits into one

    @property
    def full_name(self) -> str:
        """What tells it from the others of the deployment."""
        return self.name if self.part == 1 else f"{self.name}-{self.part}"
