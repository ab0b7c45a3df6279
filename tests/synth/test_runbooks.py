"""Every alarm has its runbook, every runbook its place in the list, and every stack is one."""

from __future__ import annotations

import re

import pytest

from cdclake.runbooks import runbook_titles
from tests.synth.deployments import (
    CHECKED,
    CONNECTED,
    DELIVERED,
    DERIVED,
    OPTIMIZED,
    PIPELINE,
    POLLED,
    PRIVATE,
    PUBLISHED,
    PUTS,
    WEB_LOGS,
)
from tests.unit.runbooks import PAGES, commands

ALARM = "AWS::CloudWatch::Alarm"
ALARM_SECTIONS = (
    "## What it means", "## How to confirm", "## What to do", "## How to verify",
    "## What can be lost",
)  # fmt: skip
ALONGSIDE = WEB_LOGS.partition("name: shop\n")[2]
NOW_AND_THEN = {
    "adding-a-table", "first-deployment", "is-it-flowing", "lost-slot", "replacing-the-connector",
    "restore", "resync", "rotate-passwords", "tearing-down", "upgrade",
}  # fmt: skip

# By type: its name on the page.
KEPT = {
    "AWS::Glue::Database": "Glue database", "AWS::Glue::Registry": "schema registry",
    "AWS::Glue::Table": "its tables", "AWS::KMS::Key": "the key",
    "AWS::Kinesis::Stream": "Kinesis streams", "AWS::MSK::Cluster": "Kafka cluster",
    "AWS::MSK::Topic": "topics", "AWS::RDS::DBCluster": "a snapshot",
    "AWS::RDS::DBInstance": "a snapshot", "AWS::S3::Bucket": "buckets",
    "AWS::SecretsManager::Secret": "salt",
}  # fmt: skip
POLICY = "policies: {new_columns: stop}\nschedules: {verify: rate(1 day)}\n"
SINK = "connectors: {lake: {plugin: iceberg-sink, tables: [public.orders]}}\n"
SHARDS = "  arrivals: {source: kinesis, columns: {id: bigint}}\n"
PUT = PUTS.partition("name: shop\n")[2].partition("  visits:")[0] + SHARDS
TABLES = PIPELINE + CHECKED + PUBLISHED + POLLED + OPTIMIZED + DELIVERED
ALL_ALARMS = TABLES + ALONGSIDE + PUT + PRIVATE + POLICY + DERIVED + SINK
SCHEDULED = ALL_ALARMS + "stream: {mode: scheduled}\n"  # without the keeper's


def alarms(deployed) -> list[str]:
    """The alarms' names without the deployment's, and without the number of a part."""
    named = [each["Properties"]["AlarmName"] for each in deployed.resources(ALARM)]
    return [re.sub(r"-[0-9]+$", "", name.removeprefix("shop-")) for name in named]


def test_every_alarm_has_its_page_and_every_page_is_of_something(variants, deploy):
    deployed = (*variants.values(), deploy(ALL_ALARMS), deploy(SCHEDULED))
    names = {name for each in deployed for name in alarms(each)}
    assert names <= runbook_titles().keys()
    assert PAGES.keys() == names | NOW_AND_THEN | {"README"}
    for name in names:
        assert PAGES[name].startswith(f"# Alarm: {name}\n"), name
        for part in ALARM_SECTIONS:
            assert part in PAGES[name], name


def test_the_list_has_every_page_and_the_alarms_in_the_datas_order(deploy):
    listed = re.findall(r"^\| \[([a-z-]+)\]\(\1[.]md\)", PAGES["README"], re.M)
    of_scheduled = {"stream-failed", "stream-overdue"}
    assert [each for each in listed if each not in of_scheduled] == alarms(deploy(ALL_ALARMS))
    of_keeper = {"keeper-gave-up", "keeper-silent"}
    assert [each for each in listed if each not in of_keeper] == alarms(deploy(SCHEDULED))
    linked = set(re.findall(r"\(([a-z-]+)[.]md\)", PAGES["README"]))
    assert linked == PAGES.keys() - {"README"}


@pytest.mark.synth
def test_stacks_that_are_named_are_there(deploy):
    every = PIPELINE + OPTIMIZED + DELIVERED + ALONGSIDE + PRIVATE + CONNECTED
    stacks = {name.removeprefix("shop-") for name in deploy(every).templates}
    lines = commands("npx")
    assert lines
    for page, line in lines:
        assert set(re.findall(r"shop-prod-([a-z0-9-]+)", line)) <= stacks, page


def test_deployments_of_put_records_alone_can_follow_their_pages(deploy):
    """They have neither jobs nor the stack of the deliveries from Kafka."""
    deployed = deploy(WEB_LOGS + PUT)
    find = r"--stack-name shop-prod-(\w+) .*starts_with\(LogicalResourceId, '(\w+)'\)"
    [(stack, start)] = re.findall(find, PAGES["README"])
    resources = deployed.templates[f"shop-{stack}"]["Resources"].items()
    buckets = [name for name, each in resources if each["Type"] == "AWS::S3::Bucket"]
    assert len([name for name in buckets if name.startswith(start)]) == 1
    assert "delivery-function" in alarms(deployed)
    kinds = {name.split("-")[1] for name in deployed.templates} & {"delivery", "puts", "weblogs"}
    assert kinds == {"puts", "weblogs"}
    assert all(f"`shop-prod-{kind}-NAME`" in PAGES["delivery-function"] for kind in kinds)


def test_schedules_that_are_named_are_there(deploy):
    page = PAGES["first-deployment"].split("- **Schedules**")[1].split("\n- **")[0]
    deployed = deploy(PIPELINE + OPTIMIZED)
    schedules = {
        each["Properties"]["Name"].replace("shop-", "shop-prod-", 1)
        for each in deployed.resources("AWS::Scheduler::Schedule")
    }
    jobs = {
        each["Properties"]["Name"].replace("shop-", "shop-prod-", 1)
        for each in deployed.resources("AWS::Glue::Job")
    }
    named = set(re.findall(r"shop-prod-[a-z_]+", page))
    assert named & schedules and named <= schedules | jobs


def test_tearing_down_names_everything_that_outlives_its_stack(variants):
    kept = {
        resource["Type"]
        for deployed in variants.values()
        for template in deployed.templates.values()
        for resource in template["Resources"].values()
        if resource.get("DeletionPolicy") in ("Retain", "RetainExceptOnCreate", "Snapshot")
    }
    assert "AWS::Kinesis::Stream" in kept and kept <= KEPT.keys()
    beginning = PAGES["tearing-down"].split("\n1. ")[0].replace("\n", " ")
    assert [kind for kind in sorted(kept) if KEPT[kind] not in beginning] == []
