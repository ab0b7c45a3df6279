"""The jobs as Glue has them: their names, and the arguments that the deployment gives each.

The jobs themselves read the same arguments locally; only the addresses differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from cdclake import naming
from cdclake.iceberg.catalog import catalog_conf

# `load_tables` is not among them: MSK Connect lets nobody set a connector's offsets.
TABLE_JOBS = (naming.APPLY_JOB, naming.MAINTAIN_JOB, naming.REBUILD_JOB)
JOBS = (naming.STREAM_JOB, *TABLE_JOBS, naming.OPERATE_JOB)

# Source: aws-msk-iam-auth, "Using the Amazon MSK Library for IAM Authentication".
_SIGNED_BY_IAM = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "AWS_MSK_IAM",
    "kafka.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "kafka.sasl.client.callback.handler.class": (
        "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a deployment has what its jobs read and write; bucket names may be CDK's tokens."""

    prefix: str
    pipeline: str
    state: str  # bucket
    warehouse: str  # bucket
    plan: str  # URI
    brokers: str

    @property
    def control(self) -> str:
        """URI of the control objects: leases, progress, reports."""
        return f"s3://{self.state}/{naming.CONTROL_PREFIX}"

    @property
    def checkpoint(self) -> str:
        """URI of the stream's checkpoint."""
        return f"s3://{self.state}/{naming.CHECKPOINT_PREFIX}/{self.pipeline}"


def own_arguments(job: str, places: Places) -> dict[str, str]:
    """What the job's own code reads, but for what each run adds."""
    arguments = {"--plan": places.plan, "--control": places.control}
    arguments["--metrics"] = places.prefix
    if job == naming.STREAM_JOB:
        # Spark makes a consumer group of its own for every start; the role knows them by this.
        group = {"groupIdPrefix": naming.consumer_group_prefix(places.prefix)}
        arguments |= {
            "--checkpoint": places.checkpoint,
            "--brokers": places.brokers,
            "--kafka_options": json.dumps(_SIGNED_BY_IAM | group, sort_keys=True),
        }
    return arguments


def glue_arguments(job: str, places: Places, *, package: str, log_group: str) -> dict[str, str]:
    """What Glue itself reads: the shared code, the catalog, logs and metrics."""
    return {
        "--extra-py-files": package,
        "--datalake-formats": "iceberg",
        "--conf": spark_conf(places.warehouse),
        "--job-bookmark-option": "job-bookmark-disable",
        "--enable-metrics": "true",
        "--enable-observability-metrics": "true",
        "--custom-logGroup-prefix": log_group,
    }


def spark_conf(warehouse: str) -> str:
    """The catalog's settings in Glue's spelling of several: the first without its `--conf`."""
    conf = catalog_conf(f"s3://{warehouse}")
    return " --conf ".join(f"{key}={value}" for key, value in sorted(conf.items()))
