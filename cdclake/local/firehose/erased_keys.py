"""Register of a local lake's erased keys, as the functions of its streams read it."""

from __future__ import annotations

from cdclake import naming
from cdclake.firehose.erased_rows import RecentRegister
from cdclake.local.lake.lake import LocalLake


def erased_keys(lake: LocalLake) -> RecentRegister:
    """Return the register in the local S3; its salt is in the local Secrets Manager, as on AWS."""
    salt = naming.salt_secret(lake.plan.name)
    return RecentRegister.of(lake.client, control=lake.control_uri, salt=salt)
