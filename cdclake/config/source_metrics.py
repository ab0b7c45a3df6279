"""CloudWatch metrics of a created source: their dimensions, and the WAL that its slots retain.

Sources: RDS user guide, "Amazon CloudWatch metrics for Amazon RDS"; Aurora user guide, "Amazon
CloudWatch metrics for Amazon Aurora". Aurora's list has no lag of slots. It has the disk space of
the WAL, of the instance that writes, while replication is logical.
"""

from __future__ import annotations

from cdclake import naming
from cdclake.config.aws_model import CreatedSource

WAL_ON_DISK = "TransactionLogsDiskUsage"
LOGICAL_LAG, PHYSICAL_LAG = "OldestLogicalReplicationSlotLag", "OldestReplicationSlotLag"


def aurora_cluster(prefix: str) -> str:
    """Return the identifier of the source's Aurora cluster."""
    return f"{naming.source_server(prefix)}-cluster"


def source_dimensions(prefix: str, source: CreatedSource) -> dict[str, str]:
    """Return the dimensions of the server; in an Aurora cluster, of the current writer."""
    if source.engine == "aurora":
        return {"DBClusterIdentifier": aurora_cluster(prefix), "Role": "WRITER"}
    return {"DBInstanceIdentifier": naming.source_server(prefix)}
