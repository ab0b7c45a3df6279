"""Requests of `forget`, its register, and its copies: a command that ends early loses no delete."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.control_objects import FORGET, ForgetRequest, erasures_name, outcome_name, request_name
from cdclake.erasures import KeyHash
from cdclake.errors import ComponentFailed
from cdclake.hudi_copy import HudiCopy
from cdclake.jobs.control.requests import request_forget
from cdclake.jobs.forget import erase
from cdclake.jobs.forget.erase import Erasure
from cdclake.jobs.forget.lake_objects import LakeObjects
from cdclake.jobs.operations.table_operations import TableOperations
from cdclake.jobs.publish.copy_stamp import CopyStamp
from cdclake.jobs.publish.hudi_timeline import STAMP_KEY
from cdclake.plan import Table
from cdclake.trace.row_key import RowKey
from tests.spark.events import MemoryStore
from tests.unit.forget.bucket import BUCKET
from tests.unit.jobs.test_operate import MemoryBackend
from tests.unit.verify.lakes import make_plan, make_table

STREAMED = make_table()
DELIVERED = replace(STREAMED, delivery="firehose")
POLLED = replace(STREAMED, delivery="poll")
NAME = STREAMED.name
ASKED, REGISTER = request_name(NAME, FORGET), erasures_name(NAME)
HASH = KeyHash.of(NAME, "salt").digest([7])
COPY = f"{NAME}_hudi"
DELIVERY_S = 900.0


class Interrupted(Exception):
    """End of the command."""


@dataclass
class Lake:
    """Lake whose writers answer nothing; `end` is where the command ends."""

    control: Any = field(default_factory=MemoryStore)
    end: str = ""
    salt: str = "salt"

    @property
    def operations(self) -> TableOperations:
        self.reach("operations")
        return TableOperations(Backend(self))

    def reach(self, point: str) -> None:
        if point == self.end:
            raise Interrupted

    def position(self) -> str:
        return "05"

    def delivery_seconds(self, _: Table) -> float:
        return DELIVERY_S

    def run_job(self, *_: Any) -> dict[str, Any]:
        raise Interrupted

    def erase(self, table: Table) -> None:
        with pytest.raises(Interrupted):
            Erasure(self, table, [RowKey(table, ("7",), {"id": 7})], timedelta())._erase()  # type: ignore[arg-type]

    def request(self) -> ForgetRequest | None:
        stored = self.control.read(ASKED)
        return None if stored is None else ForgetRequest.from_json(stored.content)


class Backend(MemoryBackend):
    """Backend of such a lake."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake.control, timeouts_s={FORGET: 60.0})
        self.lake = lake

    def exclusive(self) -> Any:
        self.lake.reach("exclusive")
        return nullcontext()

    def wake_stream(self) -> None:
        self.lake.reach("wake")


@pytest.fixture(autouse=True)
def ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command waits."""

    def end(_: float) -> None:
        raise Interrupted

    monkeypatch.setattr("cdclake.jobs.forget.erase.time.sleep", end)


@pytest.mark.parametrize("table", [STREAMED, DELIVERED], ids=["stream", "firehose"])
def test_no_key_is_registered_that_no_request_names(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its delete would be refused, and its row would stay."""
    lake = Lake(end="exclusive")
    lake.erase(table)
    assert lake.control.read(REGISTER) is None

    def kill(_: str) -> None:
        raise Interrupted

    with monkeypatch.context() as patched:
        patched.setattr(erase, "reach", kill)
        lake = Lake()
        lake.erase(table)
    assert lake.control.read(REGISTER) is None and lake.request() is not None


@pytest.mark.parametrize("table", [STREAMED, DELIVERED], ids=["stream", "firehose"])
def test_a_command_that_ends_while_it_waits_leaves_a_request_for_its_keys(table: Table) -> None:
    lake = Lake(end="wake")
    before = time.time()
    lake.erase(table)
    request = lake.request()
    assert request is not None and (request.hashes, request.position) == ((HASH,), "05")
    positions = lake.control.read(REGISTER).content["positions"]
    assert request.is_registered(positions)
    assert not request.is_registered({HASH: "04"})  # by an earlier erasure of the key
    assert not request.is_registered({})
    waits = before + DELIVERY_S <= request.not_before <= time.time() + DELIVERY_S
    assert waits if table is DELIVERED else request.not_before == 0


def test_a_request_of_another_command_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came between the wait for earlier requests and the lock."""
    lake = Lake(end="wake")

    def other_was_first(backend: Backend) -> Any:
        request_forget(lake.control, NAME, ["other"], position="04")
        lake.control.write(REGISTER, {"fingerprint": "f", "positions": {"other": "04"}})
        return nullcontext()

    monkeypatch.setattr(Backend, "exclusive", other_was_first)
    lake.erase(STREAMED)
    request = lake.request()
    assert request is not None and request.hashes == ("other",)


def test_an_erasure_of_a_polled_table_includes_one_that_was_not_answered() -> None:
    lake = Lake()
    request_forget(lake.control, NAME, ["left", HASH])
    lake.erase(POLLED)
    request = lake.request()
    assert request is not None and request.hashes == (HASH, "left")


@pytest.mark.parametrize(("error", "said"), [(None, "another erasure"), ("no", "failed: no")])
def test_a_request_that_no_run_answered_says_why(error: str | None, said: str) -> None:
    lake: Any = SimpleNamespace(
        control=MemoryStore(),
        salt="salt",
        run_job=lambda *_: {"tables": [{"table": NAME, "error": error}]},
    )
    asked = Erasure(lake, POLLED, [RowKey(POLLED, ("7",), {"id": 7})], timedelta())
    with pytest.raises(ComponentFailed, match=said) as refused:
        asked._erase()
    assert "run" in refused.value.remedy and "None" not in str(refused.value)


def published(s3: Any, erasure: str, failed: int = 0) -> list[str]:
    """Return the objects that an erasure "e" removes from a copy, by its newest commit."""
    copy = HudiCopy(name=COPY, table=NAME, type="cow", schedule="rate(1 hour)")
    plan = replace(make_plan(STREAMED), copies=(copy,))
    stamp = CopyStamp(1, "", "columns", "layout", erasure, NAME)
    commit = {
        "extraMetadata": {STAMP_KEY: stamp.to_json()},
        "partitionToWriteStats": {"": [{"totalWriteErrors": failed}]},
    }
    folder = f"wh/{plan.lake_database}.db/{COPY}"
    s3.put_object(Bucket=BUCKET, Key=f"{folder}/old.parquet", Body=b"1")
    s3.put_object(
        Bucket=BUCKET, Key=f"{folder}/.hoodie/20261129.commit", Body=json.dumps(commit).encode()
    )
    control: Any = MemoryStore()
    control.write(outcome_name(NAME, FORGET), {"id": "e"})
    control.written_at = lambda _: datetime.now(UTC) + timedelta(minutes=1)
    lake: Any = SimpleNamespace(
        plan=plan,
        control=control,
        objects=LakeObjects(s3, None, plan, f"s3://{BUCKET}/wh"),
        run_job=lambda job, names: {"ok": job == naming.PUBLISH_JOB and names == [COPY]},
    )
    found = Erasure(lake, STREAMED, [], timedelta())._removed_from([COPY])
    return [version.key.rpartition("/")[2] for version in found]


def test_files_of_a_copy_that_was_written_after_the_erasure_are_removed(s3: Any) -> None:
    assert published(s3, "e") == ["old.parquet"]


@pytest.mark.parametrize(("erasure", "failed"), [("earlier", 0), ("e", 1)])
def test_files_of_a_copy_that_was_not_written_stay(s3: Any, erasure: str, failed: int) -> None:
    """A state that lacks a declared column yet is not copied, and the job reports no error."""
    with pytest.raises(ComponentFailed, match=f"still in the copy {COPY}") as error:
        published(s3, erasure, failed)
    assert "again" in error.value.remedy
