"""Shape of `aws: connect:`: the connector's worker, and what says that it must not be replaced."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cdclake.config.table_model import Section


class Connect(Section):
    """MSK Connect, with one worker: a slot has one reader."""

    mcus: Literal[1, 2, 4, 8] = Field(
        default=1, description="Size of the worker; each is one vCPU and 4 GB."
    )
    epoch: int = Field(
        default=1,
        ge=1,
        description="Counts how often history began anew: one more after a lost slot.",
    )
    made_of: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{12}$",
        examples=["0a1b2c3d4e5f"],
        description="What the running connector was made of, as the deployment printed it: a"
        " file that would replace the connector is then refused.",
    )
    provider_jar: str | None = Field(
        default=None,
        examples=["msk-config-providers-0.2.0-all.jar"],
        description="AWS's provider of secrets in place of ours: its jar, from the project's"
        " folder.",
    )
