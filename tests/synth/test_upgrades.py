"""A change of the pipeline file changes what it should, and nothing that holds data is replaced."""

from __future__ import annotations

import re

import pytest

from cdclake.deployed_jobs import JOBS
from tests.synth.deployments import (
    CONNECTED,
    DELIVERED,
    EXISTING,
    LARGER,
    OFF,
    OPTIMIZED,
    PIPELINE,
    PRIVATE,
    WIDER,
    Deploy,
    Synthesized,
)
from tests.synth.exports import hindrances
from tests.synth.permissions import allows, role_of
from tests.synth.upgrades import Changes, changes, create_only
from tests.unit.runbooks import PAGES

CONNECTOR, SETTINGS = "AWS::KafkaConnect::Connector", "ConnectorConfiguration"
FUNCTION = "AWS::Lambda::Function"
NAMED_QUERY = "AWS::Athena::NamedQuery"
SCHEDULE = "AWS::Scheduler::Schedule"
ALARM, DASHBOARD = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"
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
STREAM = "AWS::KinesisFirehose::DeliveryStream"
ALARMS = "aws: {monitoring: {email: [a@b.c], freshness_minutes: 30}}\n"
DELIVERS = PIPELINE + DELIVERED + PRIVATE
BEFORE_ORDERS = ("  public.orders:", TABLE.format(name="items") + "  public.orders:")


def changed(deploy: Deploy, *edits: tuple[str, str], more: str = "") -> Changes:
    text = PIPELINE + more
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return changes(deploy(PIPELINE), deploy(text))


def told(found: Changes) -> dict[str, set[str]]:
    """The types of what is updated, with the properties that change."""
    by_type: dict[str, set[str]] = {}
    for name, what in found.updated.items():
        by_type.setdefault(name.split("/")[1], set()).update(what)
    return by_type


@pytest.mark.parametrize("place", [pytest.param("first", marks=pytest.mark.synth), "last"])
def test_a_new_table_adds_its_topic_and_is_told_in_place(deploy, place):
    if place == "first":
        found = changed(deploy, BEFORE_ORDERS)
    else:
        found = changed(deploy, more=TABLE.format(name="items"))
    assert found.kinds(found.added) == {"AWS::MSK::Topic", NAMED_QUERY}
    assert len(found.added) == 2
    assert told(found) == NEW_PLAN
    assert not (found.removed or found.replaced)


NEW_DELIVERY = {
    **NEW_PLAN,
    "Custom::CdclakeTables": {"Tables", "ColumnsDigest"},
}


def test_a_new_table_of_firehose_adds_its_stream_and_touches_no_other(deploy):
    items = TABLE.format(name="items") + "    delivery: firehose\n"
    found = changes(deploy(DELIVERS), deploy(DELIVERS.replace("tables:\n", f"tables:\n{items}")))
    assert found.kinds(found.added) == {
        "AWS::IAM::Role", "AWS::Logs::LogStream", "AWS::MSK::Topic", NAMED_QUERY, STREAM,
    }  # fmt: skip
    [updated] = [name for name in found.updated if "/shop-trade" in name or STREAM in name]
    assert "RedriveStream" in updated
    assert {k: v for k, v in told(found).items() if k not in (ALARM, DASHBOARD)} == {
        **NEW_DELIVERY, STREAM: {"IcebergDestinationConfiguration"},
    }  # fmt: skip
    assert not (found.removed or found.replaced)


@pytest.mark.synth
def test_a_new_table_of_a_domain_is_told_to_its_stream_in_place(deploy):
    items = TABLE.format(name="items") + "    delivery: firehose\n    domain: trade\n"
    routed = DELIVERS.replace(
        'else "returns_changes"', 'elif has("id") then "items_changes" else "returns_changes"'
    )
    found = changes(deploy(DELIVERS), deploy(routed.replace("tables:\n", f"tables:\n{items}")))
    assert found.kinds(found.added) == {NAMED_QUERY}
    assert told(found)[STREAM] == {"IcebergDestinationConfiguration"}
    assert not (found.removed or found.replaced)


@pytest.mark.synth
def test_how_much_firehose_collects_changes_in_place(deploy):
    buffered = DELIVERS.replace("firehose:\n", "firehose:\n  buffer: {seconds: 60, mib: 32}\n")
    found = changes(deploy(DELIVERS), deploy(buffered))
    assert told(found)[STREAM] == {"IcebergDestinationConfiguration"}
    assert not (found.added or found.removed or found.replaced)


def test_the_second_step_changes_the_cluster_in_place(deploy):
    first = deploy(DELIVERS.replace(PRIVATE, "aws: {delivery: off}\n"))
    found = changes(first, deploy(DELIVERS))
    assert told(found)["AWS::MSK::Cluster"] == {"BrokerNodeGroupInfo"}
    assert "AWS::MSK::ClusterPolicy" in found.kinds(found.added)
    assert not (found.removed or found.replaced)


@pytest.mark.synth
def test_a_new_shard_is_a_stack_of_its_own(deploy):
    found = changed(deploy, more=TABLE.format(name="items") + "    shard: 2\n")
    assert {name.split("/")[0] for name in found.added} == {"shop-tables-2", "shop-queries-2"}
    assert told(found) == NEW_PLAN
    assert not (found.removed or found.replaced)


def test_a_new_column_is_told_in_place_and_touches_nothing_else(deploy):
    found = changes(deploy(PIPELINE), deploy(WIDER))
    assert told(found) == NEW_PLAN
    functions = {
        name.split("/")[0]: what for name, what in found.updated.items() if FUNCTION in name
    }
    assert functions == {"shop-cdc": {"Code"}, "shop-processing": {"Environment"}}
    # The text of the rows of a commit time names the columns; it is not used by anything.
    [replaced] = found.replaced
    assert replaced.startswith(f"shop-queries-1/{NAMED_QUERY}/orders")
    assert not (found.added or found.removed)


def test_a_stream_that_is_switched_off_is_told_to_its_keeper_and_watched_no_more(deploy):
    found = changed(deploy, more="aws: {stream: off}\n")
    assert found.kinds(set(found.updated)) == {FUNCTION, DASHBOARD}
    assert found.kinds(found.removed) == {ALARM}
    assert not (found.added or found.replaced)


def keeper_of(deployed: Synthesized) -> dict[str, str]:
    """Return the environment of the stream keeper."""
    [found] = [
        each["Properties"]["Environment"]["Variables"]
        for each in deployed.resources(FUNCTION)
        if "DEPLOYMENT" in each["Properties"].get("Environment", {}).get("Variables", {})
    ]
    return dict(found)


def test_a_switch_to_scheduled_runs_ends_the_always_on_run(deploy):
    always, scheduled = deploy(PIPELINE), deploy(f"{PIPELINE}stream: {{mode: scheduled}}\n")
    found = changes(always, scheduled)
    assert found.kinds(found.added) == {ALARM, SCHEDULE}
    assert found.kinds(found.removed) == {ALARM} and not found.replaced
    before, after = keeper_of(always), keeper_of(scheduled)
    # The running job ends when the stored order names another deployment than its own.
    assert before["DEPLOYMENT"] and after == {**before, "DEPLOYMENT": "", "SCHEDULED": "true"}
    assert keeper_of(deploy(f"{PIPELINE}aws: {{stream: off}}\n")) == {**before, "DEPLOYMENT": ""}
    role = role_of(scheduled, "StreamKeeper")
    assert allows(role, "s3:PutObject", "arn:aws:s3:::state/control/stream.json")


def test_a_schedule_changes_its_role_in_place():
    """Deployments before the shared role: CloudFormation deletes their roles after the update."""
    assert not any(path[0] == "Target" for path in create_only(SCHEDULE))


@pytest.mark.synth
def test_tables_whose_names_differ_by_underscores_both_have_saved_queries(deploy):
    tables = TABLE.format(name="line_items") + TABLE.format(name="lineitems")
    found = changed(deploy, ("  public.orders:", f"{tables}  public.orders:"))
    assert len([name for name in found.added if NAMED_QUERY in name]) == 2


@pytest.mark.synth
def test_the_stream_restarts_for_another_argument_but_not_for_an_alarm(deploy):
    before = keeper_of(deploy(PIPELINE))["DEPLOYMENT"]
    assert keeper_of(deploy(PIPELINE + ALARMS))["DEPLOYMENT"] == before
    metrics = f"{PIPELINE}aws: {{monitoring: {{table_metrics: true}}}}\n"
    assert keeper_of(deploy(metrics))["DEPLOYMENT"] != before
    brokers = EXISTING.replace("b-1.all", "b-2.all")
    existing, moved = (keeper_of(deploy(PIPELINE + each)) for each in (EXISTING, brokers))
    assert existing["DEPLOYMENT"] != moved["DEPLOYMENT"]


@pytest.mark.synth
def test_who_is_told_and_from_when_on_changes_in_place(deploy):
    found = changed(deploy, more=ALARMS)
    assert found.kinds(found.added) == {"AWS::SNS::Subscription"}
    assert told(found) == {ALARM: {"AlarmDescription", "Threshold"}}
    assert not (found.removed or found.replaced)


# By type the properties that each of LARGER's sizes changes; no property is of two sizes.
LARGER_CHANGES: dict[str, set[str]] = {
    "AWS::CloudWatch::Alarm": {"AlarmDescription", "Threshold"},
    "AWS::RDS::DBInstance": {"AllocatedStorage", "DBInstanceClass"},
    "AWS::RDS::DBParameterGroup": {"Parameters"},
    "AWS::ApplicationAutoScaling::ScalableTarget": {"MaxCapacity"},
    "AWS::MSK::Cluster": {"NumberOfBrokerNodes"},
    "Custom::CdclakeBrokers": {"PerZone"},
    CONNECTOR: {"Capacity"},
    "AWS::Glue::Job": {"NumberOfWorkers", "DefaultArguments", "WorkerType"},
    FUNCTION: {"Environment"},
    "AWS::Logs::LogGroup": {"RetentionInDays"},
    "AWS::S3::Bucket": {"LifecycleConfiguration"},
}


def test_sizes_change_in_place(deploy):
    found = changes(deploy(PIPELINE), deploy(LARGER))
    assert told(found) == LARGER_CHANGES
    assert not (found.added or found.removed or found.replaced)


HASHED = PIPELINE.replace("mask: truncate(4)", "mask: hash")
# By what is edited, the file before and after.
EDITS = {
    "larger": (PIPELINE, LARGER),
    "nothing is hashed any more": (HASHED, PIPELINE),
    "the connector is off": (PIPELINE, OFF),
    "Firehose delivers no more": (DELIVERS, DELIVERS.replace(": on}", ": on, delivery: off}")),
    "Athena reads no more": (PIPELINE, f"{PIPELINE}lake: {{readers: [spark]}}\n"),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.synth
def test_nothing_that_another_stack_imports_goes_or_changes(deploy, edit):
    before, after = EDITS[edit]
    assert [*hindrances(deploy(before), deploy(after))] == []


OF_SOURCE = "  source:" + EXISTING.split("  source:")[1].split("  kafka:")[0]
OF_KAFKA = "  kafka:" + EXISTING.split("  kafka:")[1]


@pytest.mark.synth
@pytest.mark.parametrize("kafka", ["  protect: true\n", OF_KAFKA], ids=["created", "existing"])
def test_another_server_takes_the_place_of_a_created_one_in_the_runbooks_order(deploy, kafka):
    created = deploy(f"{PIPELINE}aws:\n{kafka}")
    existing = deploy(f"{PIPELINE}aws:\n{OF_SOURCE}{kafka}")
    assert any("uses" in line for line in hindrances(created, existing))  # as `--all` has it
    restored = PAGES["restore"].split("## Another existing server")[0]
    lines = re.findall(r"npx cdk deploy .* --exclusively (.*)", restored)
    first = [f"shop-{stack}" for stack in re.findall(r"shop-prod-(\w+)", " ".join(lines))]
    assert first == ["shop-network", "shop-cdc", "shop-processing"]
    others = sorted(existing.templates.keys() - {*first})
    assert [*hindrances(created, existing, [*first, *others])] == []
    ways_out = [
        (each["Properties"]["DestinationSecurityGroupId"], each["Properties"]["FromPort"])
        for each in existing.templates["shop-network"]["Resources"].values()
        if each["Type"] == "AWS::EC2::SecurityGroupEgress"
    ]
    assert ways_out.count(("sg-0a1b2c3d", 6432)) == 3


@pytest.mark.synth
def test_another_existing_server_is_deployed_after_the_network(deploy):
    before = deploy(PIPELINE + EXISTING)
    moved = EXISTING.replace("db.example.org", "db2.example.org").replace("sg-0a1b", "sg-0b1b")
    after = deploy(PIPELINE + moved)
    others = sorted(after.templates.keys() - {"shop-network"})
    assert [*hindrances(before, after, ["shop-network", *others])] == []
    found = changes(before, after)
    assert "Custom::CdclakeSource" in found.kinds({*found.updated})
    jobs = {name for name in found.updated if "/AWS::Glue::Job/" in name}
    assert len(jobs) > 1  # their arguments name the server, so they are deployed too


def test_the_size_of_one_job_is_told_to_that_job(deploy):
    found = changes(deploy(PIPELINE), deploy(LARGER))
    jobs = {n.split("/")[2]: what for n, what in found.updated.items() if "/AWS::Glue::Job/" in n}
    streams = [what for job, what in jobs.items() if job.startswith("StreamChanges")]
    assert streams == [{"NumberOfWorkers", "DefaultArguments"}]
    others = [what for job, what in jobs.items() if not job.startswith("StreamChanges")]
    # One is the stream, one the probe, which has its own size; five are deployed only with derived
    # or polled tables, rules, copies or a bulk load.
    assert others == [{"WorkerType"}] * (len(JOBS) - 7)


def test_a_replacement_would_be_seen(deploy):
    """Other zones move every subnet, and neither MSK nor CloudFormation can move brokers."""
    found = changed(deploy, more="aws: {network: {create: {zones: [b, c, d]}}}\n")
    assert "AWS::MSK::Cluster" in found.kinds(set(found.replaced))
    assert ("BrokerNodeGroupInfo", "ClientSubnets") in create_only("AWS::MSK::Cluster")


BY_CONTENT = re.compile(r"-[0-9a-f]{12}$")
# A second one of this name must not be made beside the first: CloudFormation then fails.
NAMES_MAY_REPEAT = {NAMED_QUERY}  # Athena knows them by an id of its own
MUST_NOT_BE_REPLACED = {
    CONNECTOR,
    "AWS::ApplicationAutoScaling::ScalingPolicy",  # of the cluster
    STREAM,  # of a topic and a cluster that do not change; it would read all of Kafka again
    "AWS::MSK::Cluster",
    "AWS::MSK::Topic",
    "AWS::RDS::DBInstance",
}


OF_EXISTING = {
    CONNECTOR,
    "AWS::Glue::TableOptimizer",  # of a table and a kind, which are all that would replace it
    "AWS::MSK::Topic",
}


@pytest.mark.parametrize(
    ("name", "expected"), [("delivered", MUST_NOT_BE_REPLACED), ("connectors", OF_EXISTING)]
)
def test_what_may_be_replaced_can_be(variants, name, expected):
    """A replacement is made before the old one goes, so its name must not be a fixed one."""
    stuck = set()
    for template in variants[name].templates.values():
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
    assert stuck - NAMES_MAY_REPEAT == expected


SINKS = PIPELINE + OPTIMIZED + EXISTING + CONNECTED
SINKS_OFF = SINKS.replace("aws:\n", "aws:\n  sinks: off\n")
# Without a password the plugin lacks the provider, and the worker does not name it.
OTHER_PLUGIN = SINKS.replace("connection.password:", "connection.other:").replace(
    "${secretsmanager:shop/copy:password}", "plain"
)


@pytest.mark.synth
def test_sinks_that_are_off_leave_what_they_continue_with(deploy):
    found = changes(deploy(SINKS), deploy(SINKS_OFF))
    assert found.kinds(found.removed) == {CONNECTOR, ALARM}
    assert len([name for name in found.removed if CONNECTOR in name]) == 2
    assert not (found.added or found.replaced)
    assert [*hindrances(deploy(SINKS), deploy(SINKS_OFF))] == []


@pytest.mark.synth
def test_another_plugin_replaces_a_sink_unless_it_is_off(deploy):
    new = {name.split("/")[2] for name in changes(deploy(SINKS), deploy(OTHER_PLUGIN)).replaced}
    fixed = {path[0] for path in create_only(CONNECTOR)}
    made_with = {
        properties["ConnectorName"]: str([properties[name] for name in fixed & {*properties}])
        for properties in (each["Properties"] for each in deploy(SINKS).resources(CONNECTOR))
    }
    stuck = {name for name, text in made_with.items() if any(each in text for each in new)}
    assert stuck == {"shop-copy"}
    in_steps = changes(deploy(SINKS_OFF), deploy(OTHER_PLUGIN))
    assert len([name for name in in_steps.added if CONNECTOR in name]) == 2
    assert [*hindrances(deploy(SINKS_OFF), deploy(OTHER_PLUGIN))] == []
