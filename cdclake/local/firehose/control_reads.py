"""Control objects of a local lake, as the functions of its streams read them."""

from __future__ import annotations

from cdclake import naming
from cdclake.control_reader import ControlReader
from cdclake.firehose.erased_rows import RecentRegister
from cdclake.local.lake.lake import LocalLake
from cdclake.widened_columns import RecentlyWidened


def erased_keys(lake: LocalLake) -> RecentRegister:
    """Return the register in the local S3; its salt is in the local Secrets Manager, as on AWS."""
    # Created here: each stream calls its function in another thread, where boto3 must create none.
    clients = {service: lake.client(service) for service in ("s3", "secretsmanager")}
    salt = naming.salt_secret(lake.plan.name)
    return RecentRegister.of(clients.__getitem__, control=lake.control_uri, salt=salt)


def widened_columns(lake: LocalLake) -> RecentlyWidened:
    """Return the reader of the columns that the source has widened."""
    return RecentlyWidened(ControlReader(lake.client("s3"), lake.control_uri))
