"""A publication that omitted changes: the check reports it until the table is read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import boto3
import pytest

from cdclake.errors import InputError
from cdclake.plan import Plan, Table
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.prepare import PublicationState
from cdclake.postgres.relation_check import records_content
from cdclake.postgres.relation_record import RelationRecord
from cdclake.postgres.relations import SourceState
from tests.load_function import load
from tests.unit.postgres.tables import actual, declared, plan

STACK = "arn:aws:cloudformation:eu-west-1:123456789012:stack/shop-cdc/1"
KEY = "control/relations.json"
NOW = actual(oid=1)
ITEMS = replace(NOW, oid=2, table="items")
PUBLISHED = PublicationState(True, False, True, {NOW.id: None, ITEMS.id: None})
NARROWED = replace(PUBLISHED, right=False)
WITHOUT_ITEMS = replace(PUBLISHED, tables={NOW.id: None})


def recorded(tables: tuple[Table, ...]) -> dict[str, RelationRecord]:
    return {t.source: RelationRecord.of(t, actual(oid=1), settled=True) for t in tables}


@dataclass
class Source:
    """The functions on one source; preparing it repairs its publication."""

    function: ModuleType
    folder: Path
    publication: PublicationState = PUBLISHED
    orders: SourceTable = NOW
    is_read: bool = True  # the slot

    def deploy(
        self, declares: Plan, request: str = "Update", *, epochs: tuple[str, ...] = ("1", "1")
    ) -> None:
        """Handle the request; `epochs` are the properties' before and now, if they have them."""
        self.function.PLAN.write_text(declares.to_json())
        names = ("OldResourceProperties", "ResourceProperties")[-len(epochs) :]
        event: dict[str, Any] = {
            "RequestType": request,
            "LogicalResourceId": "prepared",
            "StackId": STACK,
        }
        event |= {name: {"Epoch": n} if n else {} for name, n in zip(names, epochs, strict=True)}
        self.function.handler(event, SimpleNamespace(log_stream_name="stream"))

    def read(self, *_: Any) -> SourceState:
        return SourceState(
            tables={NOW.id: self.orders, ITEMS.id: ITEMS},
            names={},
            alike={},
            loaded=frozenset(),
            publication=self.publication,
            role="cdclake_shop",
            sees_all_rows=False,
            version=170000,
            streams=self.is_read,
        )

    def repair(self, *_: Any, **__: Any) -> SimpleNamespace:
        self.publication = PUBLISHED
        return SimpleNamespace(database="shop", version=170011, slot_loss="")

    def fail(self, _event: Any, _made: str, reason: str, **_: Any) -> None:
        raise AssertionError(reason)

    def check(self) -> int:
        return int(self.function.check({}, None)["changed"])

    def records(self) -> Any:
        return json.loads(boto3.client("s3").get_object(Bucket="state", Key=KEY)["Body"].read())


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    boto3.client("s3").create_bucket(Bucket="state", **where)
    function = load("prepare_source")
    made = Source(function, tmp_path)
    names = {"BUCKET": "state", "DIMENSION": "shop", "LOGIN_SECRET": "shop/source"}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    for name, stand_in in {
        "PLAN": tmp_path / "plan.json",
        "secret": lambda _: {"password": "p"},
        "connected": lambda _: nullcontext(),
        "read_publication": lambda *_: made.publication,
        "read_source": made.read,
        "prepare_session": made.repair,
        "source_warnings": lambda *_, **__: [],
        "answer": lambda *_: None,
        "answer_failure": made.fail,
    }.items():
        monkeypatch.setattr(function, name, stand_in)
    return made


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_deployment_that_repairs_it_does_not_forget_it(source: Source, is_checked: bool) -> None:
    """Any deployment with a new plan or code repairs it, also one between two checks."""
    source.deploy(plan(), "Create")
    assert source.check() == 0
    source.publication = NARROWED
    if is_checked:
        assert source.check() == 1
    source.deploy(plan(declared(("id", "integer"))))
    assert source.publication == PUBLISHED
    assert [source.check(), source.check()] == [1, 1]
    [record] = source.records()["tables"].values()
    assert record["omitted"]
    restored = records_content(recorded((declared(),)))  # as the table's resync records it
    boto3.client("s3").put_object(Bucket="state", Key=KEY, Body=json.dumps(restored).encode())
    assert source.check() == 0


def test_one_that_was_set_right_by_hand_is_remembered(source: Source) -> None:
    source.deploy(plan(), "Create")
    assert source.check() == 0
    source.publication = NARROWED
    assert source.check() == 1
    source.publication = PUBLISHED
    assert source.check() == 1


@pytest.mark.parametrize("delivery", ["stream", "firehose"])
def test_a_new_epoch_ends_it_since_it_reads_all_tables(source: Source, delivery: str) -> None:
    """Another server has another relation for each table."""
    table = declared(delivery=delivery)
    source.deploy(plan(table), "Create", epochs=("1",))
    assert source.check() == 0
    source.orders, source.publication = replace(NOW, oid=99), PublicationState()
    source.is_read = False
    source.deploy(plan(table))  # as with `connector: off`
    assert source.check() == 1
    source.publication = PublicationState()
    source.deploy(plan(table), epochs=("1", "2"))
    [record] = source.records()["tables"].values()
    assert (record["oid"], record["omitted"], record["settled"]) == (99, False, False)
    assert source.check() == 0
    source.orders = replace(source.orders, file=11)
    assert source.check() == 1  # rewritten before the connector has read it
    source.is_read = True
    assert source.check() == 1


@pytest.mark.parametrize("epochs", [("2", "2"), ("", "2"), ("2", "1"), ("2", "")])
def test_a_deployment_without_a_new_epoch_keeps_the_records(
    source: Source, epochs: tuple[str, str]
) -> None:
    """The first deployment of this version too: the stack had no epoch before."""
    source.deploy(plan(), "Create", epochs=("1",))
    assert source.check() == 0
    source.orders = replace(NOW, oid=99)
    source.deploy(plan(), epochs=epochs)
    assert source.check() == 1


def test_rolled_back_epoch_restores_the_records_before_it(source: Source) -> None:
    """CloudFormation rolls it back if the connector, which comes after it, fails."""
    source.deploy(plan(), "Create", epochs=("1",))
    assert source.check() == 0
    source.orders, source.publication = replace(NOW, oid=99), NARROWED
    for _ in range(2):  # Lambda repeats a call whose answer was lost
        source.deploy(plan(), epochs=("1", "2"))
    assert source.check() == 0
    for _ in range(2):
        source.deploy(plan(), epochs=("2", "1"))
        assert source.check() == 1
    [record] = source.records()["tables"].values()
    assert (record["oid"], record["omitted"]) == (1, True)


def test_epoch_that_failed_before_its_records_restores_no_older_ones(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.deploy(plan(), "Create", epochs=("1",))
    assert source.check() == 0
    for epochs in (("1", "2"), ("2", "1")):
        source.deploy(plan(), epochs=epochs)
    source.orders = replace(NOW, oid=99)
    record = RelationRecord.of(declared(), source.orders, settled=True)  # as by a resync
    body = json.dumps(records_content({"public.orders": record})).encode()
    boto3.client("s3").put_object(Bucket="state", Key=KEY, Body=body)
    with monkeypatch.context() as refused:
        refused.setattr(source.function, "prepare_session", refuse)
        with pytest.raises(AssertionError, match="refused"):
            source.deploy(plan(), epochs=("1", "2"))
    source.deploy(plan(), epochs=("2", "1"))
    assert source.check() == 0


def refuse(*_: Any, **__: Any) -> None:
    raise InputError("refused", "")


def test_a_firehose_table_ends_it_under_another_name(source: Source) -> None:
    table = declared(delivery="firehose")
    source.deploy(plan(table), "Create")
    assert source.check() == 0
    source.publication = NARROWED
    source.deploy(plan(table, replace(table, table="items", name="items")))
    assert source.check() == 1  # `items` is new
    again = replace(table, name="sales")
    source.deploy(plan(again))
    assert source.check() == 0


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_table_that_joins_has_omitted_nothing(source: Source, is_checked: bool) -> None:
    """A check with the new plan may run before the deployment has published its table."""
    source.publication = WITHOUT_ITEMS
    source.deploy(plan(), "Create")
    source.publication = WITHOUT_ITEMS
    assert source.check() == 0
    both = plan(declared(), declared(table="items", name="items"))
    source.function.PLAN.write_text(both.to_json())
    if is_checked:
        assert [source.check(), source.check()] == [1, 1]
    source.deploy(both)
    assert source.check() == 0


def test_a_table_that_left_and_returns_has_omitted_changes(source: Source) -> None:
    both = plan(declared(), declared(table="items", name="items"))
    source.deploy(both, "Create")
    assert source.check() == 0
    source.deploy(plan())
    source.publication = WITHOUT_ITEMS  # as this deployment has left it
    source.deploy(both)
    assert source.check() == 1


def before_put(
    source: Source, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]
) -> list[bool]:
    """Have another writer act before the first put of the records; collect the puts' answers."""
    put: Callable[..., bool] = source.function.put_records
    answers: list[bool] = []

    def after_another_writer(records: Any, etag: str | None) -> bool:
        if not answers:
            act()
        answers.append(put(records, etag))
        return answers[-1]

    monkeypatch.setattr(source.function, "put_records", after_another_writer)
    return answers


def test_a_record_that_is_written_meanwhile_is_kept(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a resync, which does not wait for a deployment."""

    def write() -> None:
        stored = source.records()
        stored["tables"]["public.orders"]["file"] = 99
        boto3.client("s3").put_object(Bucket="state", Key=KEY, Body=json.dumps(stored).encode())

    source.deploy(plan(), "Create")
    assert source.check() == 0
    source.publication = NARROWED
    answers = before_put(source, monkeypatch, write)
    source.deploy(plan())
    assert answers == [False, True]
    [record] = source.records()["tables"].values()
    assert (record["file"], record["omitted"]) == (99, True)


def test_records_that_are_deleted_meanwhile_fail_no_deployment(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.deploy(plan(), "Create")
    assert source.check() == 0
    delete = partial(boto3.client("s3").delete_object, Bucket="state", Key=KEY)
    answers = before_put(source, monkeypatch, delete)
    source.deploy(plan(), epochs=("1", "2"))  # which records the tables again
    assert answers == [False, True]
    assert source.records()["tables"].keys() == {"public.orders"}
