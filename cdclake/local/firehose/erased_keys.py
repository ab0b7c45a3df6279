"""Register of a local lake's erased keys, as the functions of its streams read it."""

from __future__ import annotations

from cdclake import naming
from cdclake.firehose.erased_rows import RecentRegister
from cdclake.local.lake.lake import LocalLake


def erased_keys(lake: LocalLake) -> RecentRegister:
    """Return the register in the local S3; its salt is in the local Secrets Manager, as on AWS."""
    # Created here: each stream calls its function in another thread, where boto3 must create none.
    clients = {service: lake.client(service) for service in ("s3", "secretsmanager")}
    salt = naming.salt_secret(lake.plan.name)
    return RecentRegister.of(clients.__getitem__, control=lake.control_uri, salt=salt)
