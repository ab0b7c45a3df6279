"""A change of the pipeline file changes what it should, and nothing that holds data is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.synth.deployments import PIPELINE, Synthesized, synthesize
from tests.synth.upgrades import changes, create_only

TABLE = "  public.{name}:\n    key: [id]\n    columns: {{id: bigint}}\n"
# The plan is a file under a new name: copied by a role that may copy it, read by the jobs.
NEW_PLAN = {
    "AWS::Glue::Job",
    "AWS::IAM::Role",
    "AWS::Lambda::Function",
    "Custom::CdclakeFiles",
}
BEFORE_ORDERS = ("  public.orders:", TABLE.format(name="items") + "  public.orders:")


def changed(tmp_path: Path, created: Synthesized, *edits: tuple[str, str], more: str = ""):
    text = PIPELINE + more
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return changes(created, synthesize(text, tmp_path))


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_new_table_adds_its_topic_and_touches_nothing_else(created, tmp_path, place):
    if place == "first":
        found = changed(tmp_path, created, BEFORE_ORDERS)
    else:
        found = changed(tmp_path, created, more=TABLE.format(name="items"))
    assert found.kinds(found.added) == {"AWS::MSK::Topic"}
    assert len(found.added) == 1
    assert not (found.removed or found.replaced)
    assert found.kinds(set(found.updated)) == NEW_PLAN


def test_a_new_shard_is_a_stack_of_its_own(created, tmp_path):
    found = changed(tmp_path, created, more=TABLE.format(name="items") + "    shard: 2\n")
    assert {name.split("/")[0] for name in found.added} == {"shop-tables-2"}
    assert not (found.removed or found.replaced)
    assert found.kinds(set(found.updated)) == NEW_PLAN


def test_a_new_column_is_told_to_the_jobs_and_touches_nothing_else(created, tmp_path):
    found = changed(tmp_path, created, ("order_id: bigint,", "order_id: bigint, total: money,"))
    assert not (found.added or found.removed or found.replaced)
    assert found.kinds(set(found.updated)) == NEW_PLAN
    jobs = {name for name in found.updated if "/AWS::Glue::Job/" in name}
    assert {frozenset(found.updated[job]) for job in jobs} == {frozenset({"DefaultArguments"})}
    [keeper] = [name for name in found.updated if "/AWS::Lambda::Function/" in name]
    assert (keeper.split("/")[0], found.updated[keeper]) == ("shop-processing", {"Environment"})


def test_a_stream_that_is_switched_off_is_told_to_its_keeper_alone(created, tmp_path):
    found = changed(tmp_path, created, more="aws: {stream: off}\n")
    assert found.kinds(set(found.updated)) == {"AWS::Lambda::Function"}
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
    "stream": (
        "{jobs: {stream: {workers: 10}}}",
        {"AWS::Glue::Job", "AWS::Lambda::Function"},
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


# A second one of this name must not be made beside the first: CloudFormation then fails.
MUST_NOT_BE_REPLACED = {"AWS::MSK::Cluster", "AWS::MSK::Topic", "AWS::RDS::DBInstance"}


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
            fixed = [n for n in names if isinstance(resource["Properties"][n], str)]
            if fixed and set_at_creation - names:
                stuck.add(resource["Type"])
    assert stuck == MUST_NOT_BE_REPLACED
