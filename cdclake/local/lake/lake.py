"""A started lake as the commands see it: its plan, state and endpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import boto3
from botocore.exceptions import ClientError
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from cdclake.debezium.position import FIRST_EPOCH
from cdclake.errors import InputError, NotRunning
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.runtime.dsn import dsn_parts
from cdclake.local.components import postgres
from cdclake.local.components.installed import REGION, aws_variables
from cdclake.local.components.kafka import Broker
from cdclake.local.lake import stack
from cdclake.local.lake.source_tls import KEY_PASSWORD, secured
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.home import Home, read_json, refuse_newer, write_atomically
from cdclake.plan import Plan

BUCKET = "cdclake"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeState:
    """State of a lake that its home keeps between commands."""

    plan: str = ""  # as JSON; empty: a bare lake
    pipeline_file: str = ""
    database: str = ""  # database of the embedded PostgreSQL that the pipeline reads
    external: bool = False  # the source was given with --source
    epoch: int = 0  # 0: never streamed
    loading: bool = False  # the epoch's bulk load has not finished
    paused: bool = False
    bare: bool = False  # the last `up` was without a stream
    masks: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # mask_history.History
    # The last plan, as JSON, with the removed tables as they were declared (`lake_continuation`).
    stored: str = ""
    connector_offsets: str = ""  # id of the topic with the connector's offsets; "": not known
    # By table: where its snapshot began, until its rows are in the lake (`table_loads`).
    loads: Mapping[str, Any] = field(default_factory=dict)
    left_source: bool = False  # `down` has removed our objects from the external source
    source_id: str = ""  # identity of the external source's database; "": not known
    # Plans, as JSON, that the jobs may have had since the last `up` that ended.
    published: list[str] = field(default_factory=list)

    @staticmethod
    def load(home: Home) -> LakeState:
        """Return the home's state, or the initial state."""
        found = read_json(home.state_file)
        refuse_newer(LakeState, found, home.state_file)
        return LakeState(**found)

    @property
    def in_source(self) -> bool:
        """Check whether our slot may be in a database of the user's."""
        return self.external and self.epoch > 0 and not self.left_source

    @property
    def newest_epoch(self) -> int:
        """Greatest epoch that rows of the lake may have; polled ones have one before any stream."""
        plans = [Plan.from_json(text) for text in (self.plan, self.stored) if text]
        polled = any(plan.polled for plan in plans)
        return max(self.epoch, FIRST_EPOCH if polled else 0)

    def publishing(self) -> LakeState:
        """Return the state while its plan is given to the jobs."""
        return replace(self, published=list(dict.fromkeys([*self.published, self.plan])))

    def save(self, home: Home) -> None:
        """Write the state to the home."""
        write_atomically(home.state_file, json.dumps(asdict(self), indent=1), is_lasting=True)

    @staticmethod
    def set_paused(home: Home, *, paused: bool) -> None:
        """Store that the stream is paused or not, and leave the rest of the stored state."""
        with home.changing():
            state = LakeState.load(home)
            replace(state, paused=paused, bare=state.bare and paused).save(home)


@dataclass(frozen=True, kw_only=True)
class LocalLake:
    """Streaming lake with its plan and endpoints."""

    home: Home
    state: LakeState
    plan: Plan
    endpoints: Endpoints
    dsn: str

    @property
    def kafka(self) -> Broker:
        """The broker, with the login of its clients."""
        return self.endpoints.kafka

    @property
    def s3(self) -> str:
        """URL of the local S3."""
        return self.endpoints.s3

    @property
    def glue(self) -> str:
        """URL of the local Glue."""
        return self.endpoints.glue

    @property
    def bucket(self) -> str:
        """The lake's only bucket."""
        return BUCKET

    @property
    def mask_salt(self) -> str:
        """Salt of `mask: hash`, key of `mask: token`."""
        return self.home.secret("mask_salt")

    @property
    def plan_uri(self) -> str:
        """Location of the plan for the jobs."""
        return f"s3://{BUCKET}/plans/{self.plan.name}.json"

    @property
    def control_uri(self) -> str:
        """Location of leases, progress and reports."""
        return f"s3://{BUCKET}/control/{self.plan.name}"

    @property
    def warehouse_uri(self) -> str:
        """Location of the tables."""
        return f"s3://{BUCKET}/warehouse"

    @cached_property
    def control(self) -> ObjectStore:
        """Store of the control objects."""
        return ObjectStore(self.control_uri)

    def client(self, service: str) -> Any:
        """Create a boto3 client of the local AWS."""
        return boto3.client(service)


def open_lake(home: Home) -> LocalLake:
    """Return the running, streaming lake of a home; raise NotRunning if there is none."""
    state = _running_state(home)
    if not state.plan:
        raise NotRunning(
            f"the lake in {home.path} has no pipeline yet", "start one with `cdclake up FILE`"
        )
    return describe_lake(home, state)


@contextmanager
def changing_lake(home: Home) -> Iterator[LocalLake]:
    """Hold the lock of a running, streaming lake, and yield the lake as it is under the lock."""
    _running_state(home)  # a home without a lake gets no folder for the lock
    with home.changing():
        yield open_lake(home)


def running_source(home: Home) -> tuple[str, bool]:
    """Return the source's DSN of a running lake, also a bare one, and whether it is external.

    Raises NotRunning if no lake runs, and InputError if it has no database.
    """
    state = _running_state(home)
    if not state.external and not stack.wants(home, postgres.NAME):
        raise InputError(
            f"the lake in {home.path} has no source database", "its pipeline has only web logs"
        )
    endpoints = stack.endpoints(home, embedded_postgres=not state.external)
    return source_dsn(home, state, endpoints), state.external


def _running_state(home: Home) -> LakeState:
    if not stack.is_up(home):
        raise NotRunning(f"no lake is running in {home.path}", "start one with `cdclake up FILE`")
    return LakeState.load(home)


def describe_lake(home: Home, state: LakeState) -> LocalLake:
    """Return the lake of a home whose state has a plan, without checking that it runs."""
    endpoints = stack.endpoints(home, embedded_postgres=not state.external)
    use_local_aws(endpoints)
    return LocalLake(
        home=home,
        state=state,
        plan=Plan.from_json(state.plan),
        endpoints=endpoints,
        dsn=source_dsn(home, state, endpoints),
    )


def use_local_aws(endpoints: Endpoints) -> None:
    """Direct the AWS clients that this process creates from now on to this lake.

    Other AWS_* variables of the shell, such as a profile or the endpoint of one service, would take
    precedence. boto3's default session keeps the first keys that it has read, which may be another
    lake's.
    """
    local = aws_environment(endpoints)
    for name in [name for name in os.environ if name.startswith("AWS_") and name not in local]:
        del os.environ[name]
    os.environ.update(local)
    os.environ["no_proxy"] = local["NO_PROXY"]  # takes precedence over the upper-case name
    session = boto3.DEFAULT_SESSION
    found = session.get_credentials() if session else None
    if found is not None and found.access_key != endpoints.keys.user:
        boto3.setup_default_session()


def aws_environment(endpoints: Endpoints) -> dict[str, str]:
    """Return the environment that directs all AWS clients of a process to the local AWS."""
    return {
        **aws_variables(endpoints.keys),
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": endpoints.s3,
        "AWS_ENDPOINT_URL_FIREHOSE": endpoints.firehose,
        "NO_PROXY": "127.0.0.1",
    }


def create_bucket_and_database(lake: LocalLake) -> None:
    """Create the bucket, and the Glue database if it does not exist."""
    lake.client("s3").create_bucket(Bucket=BUCKET)
    try:
        lake.client("glue").create_database(DatabaseInput={"Name": lake.plan.lake_database})
    except ClientError as error:
        if error.response["Error"]["Code"] != "AlreadyExistsException":
            raise


def write_plan(lake: LocalLake) -> None:
    """Publish the plan to the jobs."""
    lake.client("s3").put_object(
        Bucket=BUCKET,
        Key=lake.plan_uri.removeprefix(f"s3://{BUCKET}/"),
        Body=lake.plan.to_json().encode(),
    )


def source_dsn(home: Home, state: LakeState, endpoints: Endpoints) -> str:
    """Return the DSN of the source for a user that may prepare and compare it."""
    if endpoints.source is None:
        return secured(home.secret("source_dsn"))
    return endpoints.source.dsn(state.database)


def without_password(dsn: str) -> tuple[str, str | None]:
    """Return the DSN without secrets, for the arguments of a process, and the password."""
    parts = {name: str(value) for name, value in dsn_parts(dsn).items()}
    password = parts.pop("password", None)
    parts.pop(KEY_PASSWORD, None)  # stored by an earlier version: `up` refuses it
    return make_conninfo("", **parts), password


def source_parts(dsn: str) -> dict[str, Any]:
    """Return host, port, user, password and dbname of a DSN, as `up` returns them."""
    parts = dsn_parts(dsn)
    user = parts.get("user") or _default_user()
    return {
        "host": parts.get("host") or parts.get("hostaddr") or "localhost",
        "port": int(parts.get("port") or 5432),
        "user": user,
        "password": parts.get("password"),
        "dbname": parts.get("dbname") or user,
    }


def _default_user() -> str:
    """Return libpq's user of a DSN without one, by default that of the operating system."""
    defaults = {option.keyword: option.val for option in Conninfo.get_defaults()}
    return (defaults[b"user"] or b"").decode()


def shown_source(source: dict[str, Any], dsn: str | None) -> dict[str, Any]:
    """Return the source as `up` shows it: the password only of the lake's own PostgreSQL."""
    return source if dsn is None else {**source, "password": None}
