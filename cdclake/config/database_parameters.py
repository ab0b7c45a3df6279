"""Parameters of a created source: those of its parameter group, which `doctor` looks up before."""

from __future__ import annotations

from cdclake.config import versions
from cdclake.config.aws_model import CreatedSource

ENGINES = {"rds": "postgres", "aurora": "aurora-postgresql"}
_MB_IN_GB = 1024


def parameter_family(source: CreatedSource) -> str:
    """Return RDS's name of the group of parameters for engine and version."""
    return f"{ENGINES[source.engine]}{versions.POSTGRES}"


def database_parameters(source: CreatedSource) -> dict[str, str]:
    """Return the values by parameter: logical replication over TLS, with bounded WAL on RDS.

    Without evidence that a cluster accepts `max_slot_wal_keep_size`, Aurora gets no limit.
    """
    common = {"rds.logical_replication": "1", "rds.force_ssl": "1"}
    if source.engine == "aurora":
        return common
    # Beyond this PostgreSQL invalidates the slot: the lake needs a new snapshot, but the disk does
    # not fill up.
    return common | {"max_slot_wal_keep_size": str(source.slot_wal_gb * _MB_IN_GB)}
