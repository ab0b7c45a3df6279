"""Model of `aws: connect:`: the connector's worker, and the guard against its replacement."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cdclake.config.section import Section


class Connect(Section):
    """MSK Connect with one worker, since a slot has one reader."""

    mcus: Literal[1, 2, 4, 8] = Field(
        default=1, description="Size of the worker; each is one vCPU and 4 GB."
    )
    epoch: int = Field(
        default=1,
        ge=1,
        description="Epoch of the history: increase it by one after a lost slot.",
    )
    login_version: int = Field(
        default=1,
        ge=1,
        description="Increase it by one after a new password was put into the login's secret: the"
        " deployment sets the role's password, and the connector is restarted when it must sign in"
        " again.",
    )
    made_of: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{12}$",
        examples=["0a1b2c3d4e5f"],
        description="Fingerprint of the running connector, as printed by the deployment: a file"
        " that would replace the connector is refused.",
    )
    provider_jar: str | None = Field(
        default=None,
        examples=["msk-config-providers-0.2.0-all.jar"],
        description="Jar of AWS's secrets provider, relative to the project's folder; it replaces"
        " the built-in provider.",
    )
