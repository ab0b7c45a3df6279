"""Shape of `aws: jobs:`: how large the Glue jobs are, and for how long they may run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cdclake.config.table_model import Section


class Workers(Section):
    """What a Glue job runs on."""

    worker: Literal["G.1X", "G.2X", "G.4X", "G.8X"] = Field(
        default="G.1X", description="Kind of its workers: 4, 8, 16 or 32 cores each."
    )
    workers: int = Field(
        default=3, ge=2, le=299, description="Its workers, the driver among them; at most so many."
    )
    autoscaling: bool = Field(
        default=True, description="Fewer workers than that where fewer do; `false`: always all."
    )


class StreamWorkers(Workers):
    """The streaming job's."""


class BatchWorkers(Workers):
    """Those of each job that goes over tables and ends."""

    timeout_minutes: int = Field(
        default=240, ge=5, le=10080, description="A run that takes longer is ended."
    )


class Jobs(Section):
    """Sizes of the Glue jobs."""

    stream: StreamWorkers = Field(default_factory=StreamWorkers)
    batch: BatchWorkers = Field(default_factory=BatchWorkers)
