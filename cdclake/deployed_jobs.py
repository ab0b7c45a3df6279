"""Names of the deployed Glue jobs, and the arguments that the deployment passes to each.

The jobs themselves read the same arguments locally; only the addresses differ.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from cdclake import naming
from cdclake.debezium.connector import SourceAddress
from cdclake.debezium.worker import RDS_CERTIFICATES, password_of, salt_of
from cdclake.hudi_copy import HUDI_CONF
from cdclake.iceberg.catalog_conf import catalog_conf
from cdclake.plan import Plan

TABLE_JOBS = (
    naming.APPLY_JOB,
    naming.MAINTAIN_JOB,
    naming.REBUILD_JOB,
    naming.REFRESH_JOB,
    naming.CHECK_JOB,
    naming.POLL_JOB,
    naming.PUBLISH_JOB,
)
JOBS = (
    naming.STREAM_JOB,
    *TABLE_JOBS,
    naming.VERIFY_JOB,
    naming.OPERATE_JOB,
    naming.FORGET_JOB,
    naming.LOAD_JOB,
    naming.PROBE_JOB,
)
# Jobs that query the source and need extra packages, which Glue does not have.
AT_SOURCE = (naming.VERIFY_JOB, naming.OPERATE_JOB, naming.POLL_JOB, naming.FORGET_JOB)
AT_KAFKA = (
    naming.STREAM_JOB,
    naming.VERIFY_JOB,
    naming.OPERATE_JOB,
    naming.FORGET_JOB,
    naming.LOAD_JOB,
)
ERASING = (naming.STREAM_JOB, naming.POLL_JOB, naming.FORGET_JOB)  # by keyed hashes of keys
OF_DELIVERED = (naming.APPLY_JOB, naming.REBUILD_JOB)  # which erase rows that Firehose delivers

# Source: aws-msk-iam-auth, "Using the Amazon MSK Library for IAM Authentication".
SIGNED_BY_IAM = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}


def resolve_name(job: str, plan: Plan, name: str, *, of: str = "lake") -> str:
    """Return the lake's name of what the job works on, such as a table, a derived table or a copy.

    Raises InputError, which mentions `of`, if the plan has none of this name.
    """
    if job == naming.REFRESH_JOB:
        return plan.derived_table(name).name
    if job == naming.PUBLISH_JOB:
        return plan.copy(name).name
    if job == naming.POLL_JOB:
        return plan.polled_table(name, of=of).name
    if job == naming.MAINTAIN_JOB and name == naming.QUARANTINE:
        return name
    return plan.table(name, of=of).name


def has_work(job: str, plan: Plan) -> bool:
    """Return False if the job works on parts of a plan that this one does not declare."""
    parts = {
        naming.REFRESH_JOB: plan.derived,
        naming.PUBLISH_JOB: plan.copies,
        naming.POLL_JOB: plan.polled,
        naming.CHECK_JOB: plan.is_checked,
    }
    return bool(parts.get(job, True))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLocations:
    """Locations that a deployment's jobs read and write; bucket names may be CDK tokens."""

    prefix: str
    pipeline: str
    state: str  # bucket
    warehouse: str  # bucket
    plan: str  # URI
    brokers: str
    source: str  # JSON of libpq parameters: host, port, database, and verification of the server
    login: str  # name of the secret with the login of the connector's role
    salt: str  # name of the secret with the salt of masks and of erased keys
    is_masked: bool  # whether a column's mask uses the salt
    is_delivered: bool  # whether Firehose delivers a table
    authorities: str  # URI of a file: trusted authorities for the source's server
    epoch: int  # of the connector
    runs: tuple[str, ...]  # jobs that a comparison runs first

    @property
    def control(self) -> str:
        """Return the URI of the control objects: leases, progress, reports."""
        return f"s3://{self.state}/{naming.CONTROL_PREFIX}"

    @property
    def checkpoint(self) -> str:
        """Return the URI of the stream's checkpoint."""
        return f"s3://{self.state}/{naming.checkpoint_prefix(self.pipeline)}/stream"


def own_arguments(job: str, locations: JobLocations) -> dict[str, str]:
    """Return the arguments for the job's own code, except those that each run adds."""
    arguments = {"--plan": locations.plan, "--control": locations.control}
    arguments["--metrics"] = locations.prefix
    if job == naming.STREAM_JOB:
        arguments["--checkpoint"] = locations.checkpoint
    if job in AT_KAFKA:
        # Spark creates a new consumer group for every start; the role allows them by this prefix.
        group = {"groupIdPrefix": naming.consumer_group_prefix(locations.prefix)}
        arguments["--brokers"] = locations.brokers
        signed = {f"kafka.{name}": value for name, value in SIGNED_BY_IAM.items()}
        arguments["--kafka_options"] = json.dumps(signed | group, sort_keys=True)
    if job in AT_SOURCE:
        arguments["--source"] = locations.source
        arguments["--login"] = locations.login
        arguments["--authorities"] = locations.authorities
    of_some = {naming.VERIFY_JOB: locations.is_masked or locations.is_delivered}
    of_some |= dict.fromkeys(OF_DELIVERED, locations.is_delivered)
    if job in ERASING or of_some.get(job):
        arguments["--mask_salt"] = locations.salt
    if job == naming.VERIFY_JOB and locations.runs:
        arguments["--runs"] = ",".join(locations.runs)
    if job in (naming.OPERATE_JOB, naming.LOAD_JOB):
        arguments["--offsets"] = naming.offsets_topic(locations.pipeline)
    if job == naming.LOAD_JOB:
        arguments |= _load_arguments(locations)
    return arguments


def _load_arguments(locations: JobLocations) -> dict[str, str]:
    """Return what the load needs to read the source as the connector will, and where it begins."""
    words = json.loads(locations.source)
    address = SourceAddress(
        host=words["host"],
        port=int(words["port"]),
        database=words["dbname"],
        user=naming.source_object(locations.pipeline),
        password=password_of(locations.login),
        sslmode=words["sslmode"],
        sslfactory=RDS_CERTIFICATES,
    )
    return {
        "--source": json.dumps(asdict(address), sort_keys=True),
        "--slot": naming.source_object(locations.pipeline),
        "--epoch": str(locations.epoch),
        "--connector": naming.connector_name(locations.prefix),
        "--authorities": locations.authorities,
        **({"--mask_salt": salt_of(locations.salt)} if locations.is_masked else {}),
    }


def probe_arguments(*, state: str, pipeline: str, database: str) -> dict[str, str]:
    """Return the arguments of the probe job's own code; `state` is the state bucket."""
    return {
        "--control": f"s3://{state}/{naming.CONTROL_PREFIX}",
        "--checkpoint": f"s3://{state}/{naming.checkpoint_prefix(pipeline)}/{naming.PROBE_JOB}",
        "--database": database,
    }


def glue_arguments(job: str, warehouse: str, *, package: str, log_group: str) -> dict[str, str]:
    """Return the arguments for Glue itself: the shared code, the catalog, logs and metrics."""
    return {
        "--extra-py-files": package,
        "--datalake-formats": "iceberg,hudi" if job == naming.PUBLISH_JOB else "iceberg",
        "--conf": spark_conf(job, warehouse),
        "--job-bookmark-option": "job-bookmark-disable",
        "--enable-metrics": "true",
        "--enable-observability-metrics": "true",
        "--custom-logGroup-prefix": log_group,
    }


def source_words(host: str, port: int, database: str) -> str:
    """Return the source's address for `--source`, with verification of its server."""
    words = {"dbname": database, "host": host, "port": str(port), "sslmode": "verify-full"}
    return json.dumps(words, sort_keys=True)


def package_arguments(wheels: str) -> dict[str, str]:
    """Return arguments that make Glue install the wheels of a zip, and no other packages.

    Source: Glue's developer guide, "Using Python libraries", zip of wheels (Glue 5.0 and newer).
    """
    return {
        "--additional-python-modules": wheels,
        "--python-modules-installer-option": "--no-index",
    }


def spark_conf(job: str, warehouse: str) -> str:
    """Return the job's settings in Glue's format: the first one without its `--conf`."""
    hudi = HUDI_CONF if job == naming.PUBLISH_JOB else {}
    conf = {**catalog_conf(f"s3://{warehouse}"), **hudi}
    return " --conf ".join(f"{key}={value}" for key, value in sorted(conf.items()))
