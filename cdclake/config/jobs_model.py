"""Model of `aws: jobs:`: sizes of the Glue jobs, and their timeouts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cdclake.config.section import Section


class Workers(Section):
    """Workers of a Glue job."""

    worker: str
    workers: int = Field(
        default=3, ge=2, le=299, description="Maximum number of workers, including the driver."
    )
    autoscaling: bool = Field(
        default=True, description="Use fewer workers when they suffice; `false`: always use all."
    )


class StreamWorkers(Workers):
    """Workers of the streaming job."""

    worker: Literal["G.025X", "G.1X", "G.2X", "G.4X", "G.8X"] = Field(
        default="G.1X",
        description="Type of the workers: 2 cores with 4 GB, or 4, 8, 16 or 32 cores each.",
    )


class BatchWorkers(Workers):
    """Workers of each batch job."""

    worker: Literal["G.1X", "G.2X", "G.4X", "G.8X"] = Field(
        default="G.1X", description="Type of the workers: 4, 8, 16 or 32 cores each."
    )
    timeout_minutes: int = Field(
        default=240,
        ge=5,
        le=7 * 24 * 60 - 1,  # Glue refuses seven days (its API reference, "Jobs")
        description="Timeout of a run.",
    )


class Jobs(Section):
    """Sizes of the Glue jobs."""

    stream: StreamWorkers = Field(default_factory=StreamWorkers)
    batch: BatchWorkers = Field(default_factory=BatchWorkers)
