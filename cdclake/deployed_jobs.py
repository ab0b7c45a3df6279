"""The jobs as Glue has them: their names, and the arguments that the deployment gives each.

The jobs themselves read the same arguments locally; only the addresses differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from cdclake import naming
from cdclake.iceberg.catalog_conf import catalog_conf

# `load_tables` is not among them: MSK Connect lets nobody set a connector's offsets.
TABLE_JOBS = (naming.APPLY_JOB, naming.MAINTAIN_JOB, naming.REBUILD_JOB)
JOBS = (naming.STREAM_JOB, *TABLE_JOBS, naming.VERIFY_JOB, naming.OPERATE_JOB)
# Those that ask the source, and need packages for it that Glue does not have.
AT_SOURCE = (naming.VERIFY_JOB, naming.OPERATE_JOB)
_AT_KAFKA = (naming.STREAM_JOB, *AT_SOURCE)

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
    source: str  # JSON of libpq's words: host, port, database, and that the server is checked
    login: str  # name of the secret with the login of the connector's role
    salt: str | None  # name of the secret with that of `mask: hash`, if a column has one
    authorities: str  # URI of a file: who may vouch for the source's server

    @property
    def control(self) -> str:
        """URI of the control objects: leases, progress, reports."""
        return f"s3://{self.state}/{naming.CONTROL_PREFIX}"

    @property
    def checkpoint(self) -> str:
        """URI of the stream's checkpoint."""
        return f"s3://{self.state}/{naming.checkpoint_prefix(self.pipeline)}/stream"


def own_arguments(job: str, places: Places) -> dict[str, str]:
    """What the job's own code reads, but for what each run adds."""
    arguments = {"--plan": places.plan, "--control": places.control}
    arguments["--metrics"] = places.prefix
    if job == naming.STREAM_JOB:
        arguments["--checkpoint"] = places.checkpoint
    if job in _AT_KAFKA:
        # Spark makes a consumer group of its own for every start; the role knows them by this.
        group = {"groupIdPrefix": naming.consumer_group_prefix(places.prefix)}
        arguments["--brokers"] = places.brokers
        arguments["--kafka_options"] = json.dumps(_SIGNED_BY_IAM | group, sort_keys=True)
    if job in AT_SOURCE:
        arguments["--source"] = places.source
        arguments["--login"] = places.login
        arguments["--authorities"] = places.authorities
    if job == naming.VERIFY_JOB and places.salt is not None:
        arguments["--mask_salt"] = places.salt
    if job == naming.OPERATE_JOB:
        arguments["--offsets"] = naming.offsets_topic(places.pipeline)
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


def source_words(host: str, port: int, database: str) -> str:
    """Where the source is, for `--source`; its server has to prove that it is this one."""
    words = {"dbname": database, "host": host, "port": str(port), "sslmode": "verify-full"}
    return json.dumps(words, sort_keys=True)


def package_arguments(wheels: str) -> dict[str, str]:
    """Have Glue install the wheels in a zip of theirs, and look for no others anywhere.

    Source: Glue's developer guide, "Using Python libraries", zip of wheels (Glue 5.0 and newer).
    """
    return {
        "--additional-python-modules": wheels,
        "--python-modules-installer-option": "--no-index",
    }


def spark_conf(warehouse: str) -> str:
    """The catalog's settings in Glue's spelling of several: the first without its `--conf`."""
    conf = catalog_conf(f"s3://{warehouse}")
    return " --conf ".join(f"{key}={value}" for key, value in sorted(conf.items()))
