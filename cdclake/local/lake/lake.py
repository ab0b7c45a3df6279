"""A lake that was brought up, as the commands see it: its plan and where everything answers."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake.errors import NotRunning
from cdclake.jobs.control.store import ObjectStore
from cdclake.local.components.installed import LOCAL_KEYS, REGION
from cdclake.local.lake import stack
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.home import Home, read_json, write_atomically
from cdclake.plan import Plan

BUCKET = "cdclake"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeState:
    """What a home remembers about its lake between commands."""

    plan: str = ""  # as JSON; empty: a bare lake
    pipeline_file: str = ""
    database: str = ""  # of the embedded PostgreSQL, that the pipeline reads
    external: bool = False  # the source was given by --source
    epoch: int = 0  # 0: never streamed
    loading: bool = False  # the epoch's bulk load has not come to its end
    paused: bool = False

    @staticmethod
    def load(home: Home) -> LakeState:
        """The home's state, or that of a lake that never was."""
        return LakeState(**read_json(home.path / "lake.json"))

    def save(self, home: Home) -> None:
        """Remember it."""
        write_atomically(home.path / "lake.json", json.dumps(asdict(self), indent=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLake:
    """A streaming lake's plan and addresses."""

    home: Home
    state: LakeState
    plan: Plan
    endpoints: Endpoints
    dsn: str

    @property
    def kafka(self) -> str:
        """`host:port` of the broker."""
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
        """What `mask: hash` mixes in."""
        return self.home.secret("mask_salt")

    @property
    def plan_uri(self) -> str:
        """Where jobs read the plan."""
        return f"s3://{BUCKET}/plans/{self.plan.name}.json"

    @property
    def control_uri(self) -> str:
        """Where leases, progress and reports are."""
        return f"s3://{BUCKET}/control/{self.plan.name}"

    @property
    def warehouse_uri(self) -> str:
        """Where tables are."""
        return f"s3://{BUCKET}/warehouse"

    @property
    def control(self) -> ObjectStore:
        """The control objects."""
        return ObjectStore(self.control_uri)

    def client(self, service: str) -> Any:
        """A boto3 client of the local AWS."""
        return boto3.client(service)


def open_lake(home: Home) -> LocalLake:
    """The running, streaming lake of a home; NotRunning if there is none."""
    state = LakeState.load(home)
    if not stack.is_up(home):
        raise NotRunning(f"no lake runs in {home.path}", "start one with `cdclake up FILE`")
    if not state.plan:
        raise NotRunning(
            f"the lake in {home.path} streams no pipeline yet", "give it one: `cdclake up FILE`"
        )
    return describe_lake(home, state)


def describe_lake(home: Home, state: LakeState) -> LocalLake:
    """The lake of a home whose state names a plan, without asking whether it runs."""
    endpoints = stack.endpoints(home, embedded_postgres=not state.external)
    os.environ.update(aws_environment(endpoints))
    return LocalLake(
        home=home,
        state=state,
        plan=Plan.from_json(state.plan),
        endpoints=endpoints,
        dsn=source_dsn(home, state, endpoints),
    )


def aws_environment(endpoints: Endpoints) -> dict[str, str]:
    """What makes every AWS client in a process talk to the local AWS, and to no other."""
    return {
        **LOCAL_KEYS,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": endpoints.s3,
        "AWS_ENDPOINT_URL_FIREHOSE": endpoints.firehose,
        "NO_PROXY": "127.0.0.1",
    }


def create_bucket_and_database(lake: LocalLake) -> None:
    """Where the tables are, if it is not there."""
    lake.client("s3").create_bucket(Bucket=BUCKET)
    try:
        lake.client("glue").create_database(DatabaseInput={"Name": lake.plan.lake_database})
    except ClientError as error:
        if error.response["Error"]["Code"] != "AlreadyExistsException":
            raise


def source_dsn(home: Home, state: LakeState, endpoints: Endpoints) -> str:
    """How to connect to the source with the rights to prepare and compare it."""
    if endpoints.source is None:
        return home.secret("source_dsn")
    source = asdict(endpoints.source)
    return make_conninfo(**{**source, "dbname": state.database or source["dbname"]})


def source_parts(dsn: str) -> dict[str, Any]:
    """Host, port, user, password and dbname of a DSN, as `up` returns them."""
    parts = conninfo_to_dict(dsn)
    user = parts.get("user") or "postgres"
    return {
        "host": parts.get("host") or "localhost",
        "port": int(parts.get("port") or 5432),
        "user": user,
        "password": parts.get("password"),
        "dbname": parts.get("dbname") or user,
    }
