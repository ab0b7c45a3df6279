"""A change of the pipeline file changes what it should, and nothing that holds data is replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.synth.deployments import PIPELINE, Synthesized, synthesize
from tests.synth.upgrades import Changes, changes, create_only

CONNECTOR, SETTINGS = "AWS::KafkaConnect::Connector", "ConnectorConfiguration"
FUNCTION = "AWS::Lambda::Function"
TABLE = "  public.{name}:\n    key: [id]\n    columns: {{id: bigint}}\n"
# A plan is told to the source, by a function that holds it, and then to the connector. To the jobs
# it is a file under a new name: copied by a role that may copy it, read by them.
NEW_PLAN = {
    CONNECTOR: {SETTINGS},
    FUNCTION: {"Code", "Environment"},
    "Custom::CdclakeSource": {"Content"},
    "AWS::Glue::Job": {"DefaultArguments"},
    "AWS::IAM::Role": {"Policies"},
    "Custom::CdclakeFiles": {"Files"},
}
BEFORE_ORDERS = ("  public.orders:", TABLE.format(name="items") + "  public.orders:")


def changed(tmp_path: Path, created: Synthesized, *edits: tuple[str, str], more: str = ""):
    text = PIPELINE + more
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return changes(created, synthesize(text, tmp_path))


def told(found: Changes) -> dict[str, set[str]]:
    """The types of what is updated, with the properties that change."""
    by_type: dict[str, set[str]] = {}
    for name, what in found.updated.items():
        by_type.setdefault(name.split("/")[1], set()).update(what)
    return by_type


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_new_table_adds_its_topic_and_is_told_in_place(created, tmp_path, place):
    if place == "first":
        found = changed(tmp_path, created, BEFORE_ORDERS)
    else:
        found = changed(tmp_path, created, more=TABLE.format(name="items"))
    assert found.kinds(found.added) == {"AWS::MSK::Topic"}
    assert len(found.added) == 1
    assert told(found) == NEW_PLAN
    assert not (found.removed or found.replaced)


def test_a_new_shard_is_a_stack_of_its_own(created, tmp_path):
    found = changed(tmp_path, created, more=TABLE.format(name="items") + "    shard: 2\n")
    assert {name.split("/")[0] for name in found.added} == {"shop-tables-2"}
    assert told(found) == NEW_PLAN
    assert not (found.removed or found.replaced)


def test_a_new_column_is_told_in_place_and_touches_nothing_else(created, tmp_path):
    found = changed(tmp_path, created, ("order_id: bigint,", "order_id: bigint, total: money,"))
    assert told(found) == NEW_PLAN
    functions = {
        name.split("/")[0]: what for name, what in found.updated.items() if FUNCTION in name
    }
    assert functions == {"shop-cdc": {"Code"}, "shop-processing": {"Environment"}}
    assert not (found.added or found.removed or found.replaced)


def test_a_stream_that_is_switched_off_is_told_to_its_keeper_alone(created, tmp_path):
    found = changed(tmp_path, created, more="aws: {stream: off}\n")
    assert found.kinds(set(found.updated)) == {FUNCTION}
    assert not (found.added or found.removed or found.replaced)


SIZES = {
    "storage": ("{source: {create: {storage_gb: 200}}}", {"AWS::RDS::DBInstance"}),
    "instance": ("{source: {create: {instance: db.m7g.large}}}", {"AWS::RDS::DBInstance"}),
    "slot": ("{source: {create: {slot_wal_gb: 30}}}", {"AWS::RDS::DBParameterGroup"}),
    "brokers": (
        "{kafka: {create: {brokers_per_zone: 2}}}",
        {"AWS::MSK::Cluster", "Custom::CdclakeBrokers"},
    ),
    "volume": ("{kafka: {create: {volume_gb: 200}}}", {"AWS::MSK::Cluster"}),
    "worker": ("{connect: {mcus: 2}}", {CONNECTOR}),
    "epoch": ("{connect: {epoch: 2}}", {CONNECTOR}),
    "stream": (
        "{jobs: {stream: {workers: 10}}}",
        {"AWS::Glue::Job", FUNCTION},
    ),
    "batch": ("{jobs: {batch: {worker: G.2X}}}", {"AWS::Glue::Job"}),
    "logs": ("{log_days: 90}", {"AWS::Logs::LogGroup", "AWS::S3::Bucket"}),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_changes_in_place(created, tmp_path, name):
    size, kinds = SIZES[name]
    found = changed(tmp_path, created, more=f"aws: {size}\n")
    assert found.kinds(set(found.updated)) == kinds
    assert not (found.added or found.removed or found.replaced)


def test_a_replacement_would_be_seen(created, tmp_path):
    """Other zones move every subnet, and neither MSK nor CloudFormation can move brokers."""
    found = changed(tmp_path, created, more="aws: {network: {create: {zones: [b, c, d]}}}\n")
    assert "AWS::MSK::Cluster" in found.kinds(set(found.replaced))
    assert ("BrokerNodeGroupInfo", "ClientSubnets") in create_only("AWS::MSK::Cluster")


BY_CONTENT = re.compile(r"-[0-9a-f]{12}$")
# A second one of this name must not be made beside the first: CloudFormation then fails.
MUST_NOT_BE_REPLACED = {"AWS::MSK::Cluster", "AWS::MSK::Topic", "AWS::RDS::DBInstance", CONNECTOR}


def test_what_may_be_replaced_can_be(created):
    """A replacement is made before the old one goes, so its name must not be a fixed one."""
    stuck = set()
    for template in created.templates.values():
        for resource in template["Resources"].values():
            set_at_creation = {
                path[0]
                for path in create_only(resource["Type"])
                if path[0] in resource.get("Properties", {})
            }
            names = {name for name in set_at_creation if name.endswith(("Name", "Identifier"))}
            spelled = [resource["Properties"][name] for name in names]
            fixed = [n for n in spelled if isinstance(n, str) and not BY_CONTENT.search(n)]
            if fixed and set_at_creation - names:
                stuck.add(resource["Type"])
    assert stuck == MUST_NOT_BE_REPLACED
