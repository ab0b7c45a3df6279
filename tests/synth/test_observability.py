"""What is watched follows from what is deployed, and looks at metrics that somebody publishes."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template
from aws_cdk.aws_cloudwatch import Alarm

from cdclake import metrics
from cdclake.config.deployment import load_deployment
from cdclake.debezium.topics import RETENTION_DAYS
from cdclake.stacks.constructs.dashboard import Dashboard
from tests.synth.deployments import DELIVERED, PIPELINE, PRIVATE, PUTS, Synthesized

ALARM, DASHBOARD = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"
OF_SOURCE, OF_KAFKA = {"slot-lag", "free-storage"}, {"kafka-disk"}
OF_STREAM = {"freshness", "lag", "quarantine", "stopped-table"}
OF_KEEPER = {"keeper-gave-up", "keeper-silent"}
OF_DELIVERY = {
    "delivery-late", "delivery-lag", "delivery-failed", "delivery-calls", "delivery-refused",
    "delivery-function", "redrive",
}  # fmt: skip
OF_JOBS = {"schedules", "maintain-failed", "small-files"}
# CloudWatch's quotas (its user guide, "CloudWatch service quotas").
MOST_WIDGETS, MOST_METRICS_OF_AN_ALARM, DAY_S = 500, 10, 86_400
MOST_ALARMS_OF_A_WIDGET = 100  # API reference, "Dashboard Body Structure"


def alarms(deployed: Synthesized) -> dict[str, dict[str, Any]]:
    """Every alarm by its name without the deployment's."""
    found = [each["Properties"] for each in deployed.resources(ALARM)]
    return {each["AlarmName"].removeprefix("shop-"): each for each in found}


def body(deployed: Synthesized) -> str:
    """The dashboard as CloudWatch gets it, with a word for what is known at the deployment only."""
    joined = deployed.only(DASHBOARD)["DashboardBody"]["Fn::Join"][1]
    return "".join(part if isinstance(part, str) else "token" for part in joined)


def stats(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    return [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]


def test_what_is_created_is_watched(created):
    assert alarms(created).keys() == (
        OF_SOURCE
        | {"changed-relations", "connector", "connector-update"}
        | OF_KAFKA
        | OF_STREAM
        | OF_KEEPER
        | OF_JOBS
    )


def test_what_firehose_delivers_is_watched_and_what_is_off_is_not(variants, deploy):
    assert alarms(variants["delivered"]).keys() == (
        alarms(variants["created"]).keys() | OF_DELIVERY | {"apply-failed"}
    )
    off = deploy(PIPELINE + DELIVERED + PRIVATE.replace("on}", "on, delivery: off}"))
    assert not OF_DELIVERY & alarms(off).keys()


def test_firehoses_metrics_are_those_of_its_guide_and_of_our_streams(variants):
    """Its developer guide, "Monitor Amazon Data Firehose with CloudWatch metrics"."""
    found = [
        stat["Metric"]
        for name, alarm in alarms(variants["delivered"]).items()
        if name in OF_DELIVERY
        for stat in stats(alarm)
    ]
    of_firehose = [each for each in found if each["Namespace"] == "AWS/Firehose"]
    assert {each["MetricName"] for each in of_firehose} == {
        "DeliveryToIceberg.DataFreshness", "DeliveryToIceberg.FailedRowCount",
        "ExecuteProcessing.Success", "KafkaOffsetLag",
    }  # fmt: skip
    told = {(d["Name"], d["Value"]) for each in of_firehose for d in each["Dimensions"]}
    assert told == {
        ("DeliveryStreamName", f"shop-{name}") for name in ("events", "trade", "cdclake.redrive")
    }


def test_what_the_function_refuses_is_counted_where_the_alarm_looks(variants):
    deployed = variants["delivered"]
    [counted] = deployed.only("AWS::Logs::MetricFilter")["MetricTransformations"]
    [looked_at] = [stat["Metric"] for stat in stats(alarms(deployed)["delivery-refused"])]
    assert looked_at == {
        "Namespace": counted["MetricNamespace"], "MetricName": counted["MetricName"],
    }  # fmt: skip


def test_what_exists_is_left_to_its_owner_who_is_told_so(variants):
    existing = variants["existing"]
    applied = {"apply-failed"}  # a table of this one is applied by schedule
    others = {"connector", "connector-update", "changed-relations"}
    assert alarms(existing).keys() == others | OF_STREAM | OF_KEEPER | OF_JOBS | applied
    outputs = existing.templates["shop-observability"]["Outputs"]
    assert "db.example.org" in outputs["SourceOwner"]["Value"] and "KafkaOwner" in outputs
    network = existing.templates["shop-network"]["Outputs"]
    assert "its certificate must be of an authority of RDS" in str(network["SourceOwner"])
    assert "AWS/RDS" not in body(existing) and "AWS/Kafka\\" not in body(existing)


def test_one_batch_that_a_function_has_failed_is_an_alarm(variants):
    """Firehose gives it up after three repeated calls, and counts it nowhere."""
    alarm = alarms(variants["delivered"])["delivery-function"]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (3, 1)
    assert {each["Period"] for each in stats(alarm)} == {3600}


def test_a_stuck_stream_is_an_alarm_before_its_newest_point_arrives(variants):
    """Firehose publishes every five minutes: the newest period may have no point, or others'."""
    alarm = alarms(variants["delivered"])["delivery-late"]
    [expression] = [each["Expression"] for each in alarm["Metrics"] if "Expression" in each]
    assert expression == "MAX([part1stream0, part1stream1])"
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (2, 3)
    assert alarm["TreatMissingData"] == "notBreaching"


def test_a_call_that_lambda_refuses_is_an_alarm_by_firehoses_count(variants):
    """Lambda counts function errors and throttled calls, but no request that it refuses."""
    alarm = alarms(variants["delivered"])["delivery-calls"]
    assert {(each["Stat"], each["Period"]) for each in stats(alarm)} == {("Minimum", 3600)}
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "LessThanThreshold")
    [expression] = [each["Expression"] for each in alarm["Metrics"] if "Expression" in each]
    assert expression == "MIN([FILL(part1stream0, 1), FILL(part1stream1, 1)])"


@pytest.mark.synth
def test_slow_failures_of_one_batch_pass_the_threshold(deploy):
    """A call may take five minutes: twenty retries do not fit into an hour."""
    slow = DELIVERED.replace("firehose:\n", "firehose:\n  function: {retries: 20}\n")
    alarm = alarms(deploy(PIPELINE + slow + PRIVATE))["delivery-function"]
    assert alarm["Threshold"] == 6


@pytest.mark.parametrize(
    ("more", "gone"),
    [
        ("aws: {connector: off}\n", {"connector", "connector-update"}),
        ("aws: {stream: off}\n", OF_STREAM),
        ("stream: {mode: scheduled}\n", OF_KEEPER),
    ],
)
def test_what_is_off_is_not_missed(deploy, created, more, gone):
    assert alarms(created).keys() - alarms(deploy(PIPELINE + more)).keys() == gone


@pytest.mark.synth
def test_a_scheduled_streams_alarms_see_its_few_points(deploy):
    """A run publishes them once, at its end, and no keeper reports a run that failed."""
    scheduled = PIPELINE + "stream: {mode: scheduled}\n"
    found = alarms(deploy(scheduled))
    for name in ("freshness", "stopped-table"):
        assert (found[name]["EvaluationPeriods"], found[name]["TreatMissingData"]) == (1, "ignore")
    failed = found["stream-failed"]
    [stat] = stats(failed)
    assert (stat["Metric"]["MetricName"], stat["Stat"]) == ("glue.error.ALL", "Sum")
    assert {"Name": "JobName", "Value": "shop-stream_changes"} in stat["Metric"]["Dimensions"]
    assert (stat["Period"], failed["Threshold"]) == (3600, 0)
    off = alarms(deploy(scheduled + "aws: {stream: off}\n"))
    assert not {"stream-failed", "stream-overdue"} & off.keys()


@pytest.mark.parametrize(
    ("schedule", "days"), [("rate(15 minutes)", 2), ("rate(2 days)", 3), ("rate(9 days)", 6)]
)
@pytest.mark.synth
def test_a_scheduled_stream_is_overdue_before_kafka_deletes_its_events(deploy, schedule, days):
    """A disabled schedule fails nowhere, and other alarms keep their state without new points."""
    more = f"stream: {{mode: scheduled}}\nschedules: {{apply: {schedule!r}}}\n"
    overdue = alarms(deploy(PIPELINE + more))["stream-overdue"]
    [stat] = stats(overdue)
    assert stat["Metric"]["MetricName"] == metrics.FRESHNESS.name
    assert [each["Name"] for each in stat["Metric"]["Dimensions"]] == ["Deployment"]
    assert (stat["Stat"], stat["Period"], overdue["Threshold"]) == ("SampleCount", DAY_S, 1)
    assert overdue["EvaluationPeriods"] == days < RETENTION_DAYS


def test_new_columns_are_an_alarm_unless_they_are_ignored(deploy, created):
    assert "new-columns" not in alarms(created)
    for policy in ("declare", "stop"):
        found = alarms(deploy(PIPELINE + f"policies: {{new_columns: {policy}}}\n"))
        assert found.keys() - alarms(created).keys() == {"new-columns"}
        [stat] = stats(found["new-columns"])
        assert stat["Metric"]["MetricName"] == metrics.NEW_COLUMNS.name


def test_silence_is_an_alarm_where_somebody_must_speak(deploy, created):
    def silent(deployed: Synthesized) -> set[str]:
        found = alarms(deployed).items()
        return {name for name, each in found if each["TreatMissingData"] == "breaching"}

    scheduled = {"changed-relations", "connector", "connector-update"}
    assert silent(created) == scheduled | {"freshness", "keeper-silent"}
    found = silent(deploy(PIPELINE + "stream: {mode: scheduled}\n"))
    assert found == scheduled | {"stream-overdue"}


def test_alarms_of_silence_look_at_no_older_points(created, variants, deploy):
    """CloudWatch looks further back than the alarm's periods for the points that it misses.

    Freshness alone waits for them: a restart of the stream is no alarm, and the keeper has its own.
    """
    scheduled = deploy(PIPELINE + "stream: {mode: scheduled}\n")
    named = ("governed", "web logs", "connectors")
    shown = (created, scheduled, *(variants[name] for name in named))
    silent = {
        name: alarm
        for each in shown
        for name, alarm in alarms(each).items()
        if alarm["TreatMissingData"] == "breaching" and name != "freshness"
    }
    assert {"stream-overdue", "verify-overdue", "web-server", "declared-connector"} < silent.keys()
    for name, alarm in silent.items():
        [text] = [each["Expression"] for each in alarm["Metrics"] if "Expression" in each]
        filled = dict(re.findall(r"FILL\((\w+), (\d)\)", text))
        assert filled.keys() == {e["Id"] for e in alarm["Metrics"] if "MetricStat" in e}, name
        is_less = alarm["ComparisonOperator"] == "LessThanThreshold"
        for filler in map(int, filled.values()):
            assert (filler < alarm["Threshold"]) if is_less else (filler > alarm["Threshold"]), name


@pytest.mark.synth
def test_thresholds_are_the_files(deploy):
    limits = "slot_wal_percent: 25, free_storage_percent: 20, quarantined_per_hour: 7"
    found = alarms(deploy(PIPELINE + f"aws: {{monitoring: {{{limits}}}}}\n"))
    assert found["slot-lag"]["Threshold"] == 5 * 1024**3  # of 20 GB
    assert found["free-storage"]["Threshold"] == 20 * 1024**3  # of 100 GB
    assert (found["quarantine"]["Threshold"], stats(found["quarantine"])[0]["Period"]) == (7, 3600)


def test_aurora_is_watched_at_the_writer_and_promises_no_limit(variants):
    alarm = alarms(variants["governed"])["slot-lag"]
    [metric] = [each["Metric"] for each in stats(alarm)]
    assert metric["MetricName"] == "TransactionLogsDiskUsage"
    assert {each["Name"]: each["Value"] for each in metric["Dimensions"]} == {
        "DBClusterIdentifier": "shop-source-cluster",
        "Role": "WRITER",
    }
    assert "invalidates" not in alarm["AlarmDescription"]
    cluster = variants["governed"].only("AWS::RDS::DBCluster")
    assert cluster["DBClusterIdentifier"] == "shop-source-cluster"
    assert (
        "max_slot_wal_keep_size"
        not in variants["governed"].only("AWS::RDS::DBClusterParameterGroup")["Parameters"]
    )
    assert "DBInstanceIdentifier" not in body(variants["governed"])


def test_who_is_written_to_stands_in_the_file(variants):
    assert variants["created"].resources("AWS::SNS::Subscription") == []
    mail = variants["small"].only("AWS::SNS::Subscription")
    assert (mail["Protocol"], mail["Endpoint"]) == ("email", "on-call@example.com")


def test_alarms_reach_webhooks_and_secret_addresses_stay_out_of_the_template(deploy):
    named = "https://events.example.com/sns"
    file = f"aws: {{monitoring: {{webhook: [{named!r}, '${{secretsmanager:pager:url}}']}}}}\n"
    found = [
        each["Properties"] for each in deploy(PIPELINE + file).resources("AWS::SNS::Subscription")
    ]
    assert {each["Protocol"] for each in found} == {"https"}
    assert {each["Endpoint"] for each in found} == {
        named,
        "{{resolve:secretsmanager:pager:SecretString:url}}",
    }


def test_every_metric_of_ours_is_published_and_every_published_one_is_shown(created):
    known = {each.name for each in vars(metrics).values() if isinstance(each, metrics.Metric)}
    assert "name" in {field.name for field in fields(metrics.Metric)}
    watched = {
        stat["Metric"]["MetricName"]
        for alarm in alarms(created).values()
        for stat in stats(alarm)
        if stat["Metric"]["Namespace"] == metrics.NAMESPACE
    }
    shown = set(re.findall(rf'\["{metrics.NAMESPACE}","(\w+)"', body(created)))
    assert watched <= known
    per_table = {name for name in known if name.startswith("Table")}  # a user's own dashboard
    assert len(per_table) == 6
    # The alarm's own state shows the last one.
    assert shown | per_table | {"StreamGivenUp"} == known


@pytest.mark.parametrize("variant", ["delivered", "governed"])
def test_alarms_keep_within_the_quotas(variants, variant):
    """The window's is that of PutMetricAlarm: a week, or a day for periods below an hour."""
    found = alarms(variants[variant])
    assert ("verify-overdue" in found) == (variant == "governed")
    for name, alarm in found.items():
        assert len(alarm["AlarmDescription"]) <= 1024
        metrics_of = alarm.get("Metrics", [])
        assert len(metrics_of) <= MOST_METRICS_OF_AN_ALARM, name
        of_metrics = stats(alarm) if metrics_of else []
        period = max(
            each["Period"] for each in (alarm, *of_metrics, *metrics_of) if "Period" in each
        )
        longest = 7 * DAY_S if period >= 3600 else DAY_S
        assert period * alarm["EvaluationPeriods"] <= longest, name


@pytest.mark.parametrize(
    ("schedule", "periods"),
    [("cron(0 5 ? * MON *)", 7), ("rate(8 days)", None)],
)
@pytest.mark.synth
def test_a_comparison_is_overdue_after_its_interval_and_at_most_a_week(deploy, schedule, periods):
    found = alarms(deploy(PIPELINE + f"schedules: {{verify: {schedule!r}}}\n"))
    assert "verify-failed" in found
    assert found.get("verify-overdue", {}).get("EvaluationPeriods") == periods


def test_the_dashboard_shows_any_number_of_alarms(tmp_path):
    """Each entry of web logs and put tables has an alarm."""
    (tmp_path / "shop.yaml").write_text(PUTS.replace("    transform: transforms/visits\n", ""))
    stack = Stack(App(), "Watch", analytics_reporting=False)
    names = [f"shop-{number}" for number in range(201)]
    Dashboard(
        stack,
        "Dashboard",
        deployment=load_deployment(tmp_path / "shop.yaml"),
        alarms=[Alarm.from_alarm_name(stack, name, name) for name in names],
        failed_queue=None,
        functions=["rows"],
    )
    template = dict(Template.from_stack(stack).to_json())
    widgets = json.loads(body(Synthesized(tmp_path, {"Watch": template})))["widgets"]
    status = [each["properties"]["alarms"] for each in widgets if each["type"] == "alarm"]
    assert [len(each) for each in status] == [MOST_ALARMS_OF_A_WIDGET, MOST_ALARMS_OF_A_WIDGET, 1]
    assert [arn.rpartition(":")[2] for each in status for arn in each] == names


def test_the_dashboard_is_the_datas_way_and_shows_every_alarm(variants):
    delivered = variants["delivered"]
    widgets = json.loads(body(delivered))["widgets"]
    assert len(widgets) <= MOST_WIDGETS
    [status] = [each for each in widgets if each["type"] == "alarm"]
    assert len(status["properties"]["alarms"]) == len(alarms(delivered))
    hops = [each["properties"]["title"].split(":")[0] for each in widgets if each != status]
    assert list(dict.fromkeys(hops)) == [
        "Source", "Connector", "Kafka", "Stream", "Lake", "Delivery", "Jobs", "Keeper",
    ]  # fmt: skip


def test_the_list_of_stopped_tables_has_those_that_are_retried(created):
    """The alarm counts a table that has failed several times in a row."""
    widgets = json.loads(body(created))["widgets"]
    [query] = [each["properties"]["query"] for each in widgets if each["type"] == "log"]
    [pattern] = re.findall(r"like /(.*)/", query)
    for line in ("table t stopped: why", "table t: processing failed; retried after a pause"):
        assert re.search(pattern, line)
