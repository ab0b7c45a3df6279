"""The stacks of put tables: their parts and permissions, and the user's transform in the zip."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from aws_cdk import App

from cdclake.config.deployment import load_deployment
from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import parse_document
from cdclake.deployed.deployed_logs import log_groups
from cdclake.stacks.constructs.firehose_metrics import unread
from cdclake.stacks.lake_stack import LakeStack
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_app import check_security
from cdclake.stacks.puts_stack import PutsStack
from cdclake.stacks.redrive_puts_stack import RedrivePutsStack
from tests.synth.deployments import FLAGS, PIPELINE, PUTS, Deploy, Synthesized, read_assembly
from tests.synth.permissions import allows, role_of
from tests.synth.rules import access, broken_rules
from tests.synth.upgrades import changes

STREAM, ALARM = "AWS::KinesisFirehose::DeliveryStream", "AWS::CloudWatch::Alarm"
HERE = "eu-west-1:111122223333"
CLICKS, VISITS, EVENTS = "shop-puts-clicks", "shop-puts-visits", "shop-puts-events"


def test_put_tables_alone_need_neither_a_database_nor_kafka_nor_a_web_server(variants) -> None:
    deployed = variants["puts"]
    assert set(deployed.templates) == {
        CLICKS, VISITS, EVENTS,
        *(f"shop-{p}" for p in ("lake", "network", "observability", "query", "queries-puts")),
        "shop-redrive-puts",
    }  # fmt: skip
    assert not deployed.resources("AWS::ECS::Service")


def test_next_to_tables_they_add_stacks_and_replace_nothing(deploy: Deploy) -> None:
    without = PUTS.replace("    transform: transforms/visits\n", "").partition("name: shop\n")[2]
    found = changes(deploy(PIPELINE), deploy(PIPELINE + without))
    stacks = {name.split("/")[0] for name in found.added}
    assert stacks == {
        CLICKS, VISITS, EVENTS, "shop-observability", "shop-queries-puts", "shop-redrive-puts",
    }  # fmt: skip
    assert not (found.removed or found.replaced)


def test_the_logs_are_those_that_the_command_reads(variants, tmp_path) -> None:
    (tmp_path / "transforms" / "visits").mkdir(parents=True)
    (tmp_path / "transforms" / "visits" / "handler.py").touch()
    (tmp_path / "shop.yaml").write_text(PUTS)
    groups = variants["puts"].resources("AWS::Logs::LogGroup")
    named = {each["Properties"].get("LogGroupName") for each in groups}
    [firehose] = log_groups(load_deployment(tmp_path / "shop.yaml")).values()
    assert len(firehose) == 6 and {*firehose} <= named


def test_the_table_has_the_declared_columns_and_partitions(variants) -> None:
    made = {
        each["Properties"]["Name"]: each["Properties"]["OpenTableFormatInput"]["IcebergInput"]
        for each in variants["puts"].resources("AWS::Glue::Table")
    }
    assert made.keys() == {"clicks", "visits", "bought", "viewed"}
    assert [f["Name"] for f in made["bought"]["IcebergTableInput"]["Schema"]["Fields"]] == [
        "id", "kind", "arrived_at",
    ]  # fmt: skip
    clicks = made["clicks"]["IcebergTableInput"]
    assert [(each["Name"], each["Type"]) for each in clicks["Schema"]["Fields"]] == [
        ("id", "long"), ("price", "decimal(10,2)"), ("at", "timestamp"), ("day", "date"),
        ("ok", "boolean"), ("ratio", "double"), ("body", "string"), ("arrived_at", "timestamptz"),
    ]  # fmt: skip
    assert [
        (each["Name"], each["Transform"], each["SourceId"])
        for each in clicks["PartitionSpec"]["Fields"]
    ] == [("at_hour", "hour", 3), ("ok", "identity", 5)]


def test_each_stream_has_its_source_and_its_tables(variants) -> None:
    streams = {
        each["Properties"]["DeliveryStreamName"]: each["Properties"]
        for each in variants["puts"].resources(STREAM)
    }
    assert {
        name: [
            into["DestinationTableName"]
            for into in each["IcebergDestinationConfiguration"]["DestinationTableConfigurationList"]
        ]
        for name, each in streams.items()
    } == {
        "shop-clicks": ["clicks"], "shop-visits": ["visits"], "shop-events": ["bought", "viewed"],
    }  # fmt: skip
    for each in streams.values():  # the function routes, since only it knows the table's columns
        used = each["IcebergDestinationConfiguration"]["ProcessingConfiguration"]["Processors"]
        assert [processor["Type"] for processor in used] == ["Lambda"]
    assert streams["shop-clicks"]["DeliveryStreamType"] == "DirectPut"
    assert "KinesisStreamSourceConfiguration" in streams["shop-visits"]
    assert variants["puts"].only("AWS::Kinesis::Stream")["Name"] == "shop-visits"


def test_the_function_contains_the_table_and_the_transform(variants) -> None:
    zips = []
    for path in variants["puts"].folder.glob("asset.*.zip"):
        with zipfile.ZipFile(path) as archive:
            if "put_stream.json" in archive.namelist():
                put = json.loads(archive.read("put_stream.json"))
                tables = [table["name"] for table in put["targets"]]
                zips.append((tables, "transform/handler.py" in archive.namelist()))
    assert sorted(zips) == [(["bought", "viewed"], False), (["clicks"], False), (["visits"], True)]


def test_a_stream_appends_to_its_own_tables_only(variants) -> None:
    folder, templates = variants["puts"].folder, variants["puts"].templates
    roles = [
        role_of(Synthesized(folder, {stack: templates[stack]}), "Requests")
        for stack in (CLICKS, VISITS, EVENTS)
    ]
    table = f"arn:aws:glue:{HERE}:table/cdc_iceberg"
    every = {"clicks", "visits", "bought", "viewed"}
    for role, own in zip(roles, ({"clicks"}, {"visits"}, {"bought", "viewed"}), strict=True):
        assert {t for t in every if allows(role, "glue:UpdateTable", f"{table}/{t}")} == own
    assert not allows(roles[0], "kinesis:GetRecords", "ShardsArn")


def test_outputs_say_what_a_producer_needs(variants) -> None:
    outputs = [variants["puts"].templates[stack]["Outputs"] for stack in (CLICKS, VISITS)]
    direct, shards = (json.dumps(each["Producers"]["Value"]) for each in outputs)
    assert "firehose:PutRecordBatch" in direct and "deliverystream/shop-clicks" in direct
    assert "kinesis:PutRecords" in shards and "kms:GenerateDataKey" in shards


def test_put_tables_have_saved_queries_and_alarms(variants) -> None:
    queries = {
        each["Properties"]["Name"]: each["Properties"]["QueryString"]
        for each in variants["puts"].resources("AWS::Athena::NamedQuery")
    }
    assert {name: 'PARTITION BY "id"' in query for name, query in queries.items()} == {
        "clicks": True, "visits": False, "bought": True, "viewed": False,
    }  # fmt: skip
    assert "PARTITION BY" not in queries["visits"] + queries["viewed"]
    alarms = {
        each["Properties"]["AlarmName"].removeprefix("shop-")
        for each in variants["puts"].resources(ALARM)
    }
    assert alarms == {
        "delivery-late", "delivery-failed", "delivery-calls", "delivery-refused",
        "delivery-function", "puts-throttled", "puts-throttled-3", "kinesis-lag",
    }  # fmt: skip


def test_the_redrive_may_move_failed_objects_and_put_into_its_streams_only(variants) -> None:
    folder, templates = variants["puts"].folder, variants["puts"].templates
    redrive = Synthesized(folder, {"shop-redrive-puts": templates["shop-redrive-puts"]})
    function = redrive.only("AWS::Lambda::Function")
    assert function["FunctionName"] == "shop-redrive-puts"
    assert function["Environment"]["Variables"]["PREFIX"] == "shop"
    role, state = role_of(redrive, "Function"), "arn:aws:s3:::state"
    firehose = f"arn:aws:firehose:{HERE}:deliverystream"
    kms = ("kms:GenerateDataKey", f"arn:aws:kms:{HERE}:key/own")
    through = {
        name: {"ViaService": f"{name}.eu-west-1.amazonaws.com"} for name in ("kinesis", "s3")
    }
    failed, aside = (f"{state}/firehose/{at}processing-failed/a" for at in ("", "redriven/"))
    for action, resource in (
        ("s3:GetObject", failed), ("s3:DeleteObject", failed), ("s3:PutObject", aside),
        ("firehose:PutRecordBatch", f"{firehose}/shop-clicks"),
        ("firehose:PutRecordBatch", f"{firehose}/shop-events"),
        ("kinesis:PutRecords", f"arn:aws:kinesis:{HERE}:stream/shop-visits"),
    ):  # fmt: skip
        assert allows(role, action, resource), (action, resource)
    assert allows(role, *kms, **through["kinesis"]) and allows(role, *kms, **through["s3"])
    for action, resource in (
        ("s3:DeleteObject", aside), ("s3:DeleteObjectVersion", failed),
        ("s3:GetObject", f"{state}/control/stream.json"),
        ("firehose:PutRecordBatch", f"{firehose}/shop-visits"),
        ("firehose:PutRecordBatch", f"{firehose}/shop-cdclake.redrive"),
        ("firehose:DeleteDeliveryStream", f"{firehose}/shop-clicks"),
        ("glue:UpdateTable", f"arn:aws:glue:{HERE}:table/cdc_iceberg/clicks"), kms,
    ):  # fmt: skip
        assert not allows(role, action, resource), (action, resource)


# Names of the maximum length.
LONG_PIPELINE, LONG_ENVIRONMENT = "a" * 21, "e" * 10


def many_puts(count: int, name: str = "shop", padding: int = 4) -> str:
    """Return a file with as many put tables; every second stream is Kinesis's."""
    sources = ("direct_put", "kinesis")
    puts = "".join(
        f"  t{number:0{padding}}: {{columns: {{id: bigint}}, source: {sources[number % 2]}}}\n"
        for number in range(count)
    )
    return f"version: 1\nname: {name}\nputs:\n{puts}"


def redrive_of(text: str, folder: Path, environment: str | None = None) -> Synthesized:
    """Synthesize the redrive and what it needs, without the stacks of the streams."""
    if environment:
        text += f"environments: {{{environment}: {{aws: {{region: eu-west-1}}}}}}\n"
    (folder / "shop.yaml").write_text(text)
    app = App(context=FLAGS, outdir=str(folder / "out"), analytics_reporting=False)
    deployment = load_deployment(folder / "shop.yaml", environment)
    context = NetworkStack(app, deployment).outputs.context
    lake = LakeStack(app, deployment, context=context).outputs
    RedrivePutsStack(app, deployment, lake=lake, context=context)
    check_security(app)
    app.synth()
    return read_assembly(folder / "out")


def puts_into(deployed: Synthesized, stream: str) -> tuple[bool, bool]:
    """Tell if the redrive may put records into a stream of Firehose, and of Kinesis."""
    role = role_of(deployed, "Function")
    return (
        allows(role, "firehose:PutRecordBatch", f"arn:aws:firehose:{HERE}:deliverystream/{stream}"),
        allows(role, "kinesis:PutRecords", f"arn:aws:kinesis:{HERE}:stream/{stream}"),
    )


def test_the_redrive_of_few_streams_names_them(tmp_path: Path) -> None:
    deployed = redrive_of(many_puts(40), tmp_path)
    assert puts_into(deployed, "shop-t0000") == (True, False)
    assert puts_into(deployed, "shop-t0001") == (False, True)
    assert puts_into(deployed, "shop-other") == (False, False)


def test_the_redrive_of_many_streams_fits_its_role(tmp_path: Path) -> None:
    deployed = redrive_of(many_puts(120), tmp_path)
    assert broken_rules(deployed.templates) == []
    assert puts_into(deployed, "shop-t0118") == puts_into(deployed, "shop-t0119") == (True, True)
    assert puts_into(deployed, "another-t0000") == (False, False)


@pytest.mark.parametrize("count", [64, 65])
def test_the_longest_list_of_streams_fits_the_role_of_the_redrive(
    tmp_path: Path, count: int
) -> None:
    text = many_puts(count, LONG_PIPELINE, padding=29)
    deployed = redrive_of(text, tmp_path, LONG_ENVIRONMENT)
    broken = broken_rules(deployed.templates)
    assert [line for line in broken if line.startswith("roles_fit_iam")] == []
    other = f"{LONG_PIPELINE}-{LONG_ENVIRONMENT}-other"
    assert puts_into(deployed, other)[0] == (count == 65)


LONG_DATABASE = "d" * 128


def routed(count: int) -> str:
    tables = "".join(
        f"      t{number:029}: {{columns: {{id: bigint}}}}\n" for number in range(count)
    )
    return (
        f"version: 1\nname: {LONG_PIPELINE}\nlake: {{database: {LONG_DATABASE}}}\n"
        "aws: {region: ap-northeast-1}\nputs:\n"
        f"  {'p' * 30}:\n    source: kinesis\n    route: kind\n    tables:\n{tables}"
    )


def test_the_longest_list_of_tables_fits_the_role_of_their_stream(tmp_path, monkeypatch) -> None:
    [refused] = find_problems(parse_document(routed(30)))
    most = int(refused.remedy.split("at most the first ")[1].split(",")[0])
    assert [len(find_problems(parse_document(routed(n)))) for n in (most, most + 1)] == [0, 1]
    monkeypatch.setitem(access.PSEUDO_PARAMETERS, "AWS::Partition", "aws")  # others lack Firehose
    monkeypatch.setattr(access, "LONG_ARN", f"arn:aws:s3:::{'b' * 63}")
    (tmp_path / "shop.yaml").write_text(routed(most))
    app = App(
        context=FLAGS,
        outdir=str(tmp_path / "out"),
        analytics_reporting=False,
        builtin_cloud_formation_validation=False,
    )
    deployment = load_deployment(tmp_path / "shop.yaml")
    network = NetworkStack(app, deployment).outputs
    lake = LakeStack(app, deployment, context=network.context).outputs
    PutsStack(app, deployment, put=deployment.plan.puts[0], network=network, lake=lake)
    app.synth()
    templates = read_assembly(tmp_path / "out").templates
    [role] = [
        each["Properties"]
        for each in templates[f"{LONG_PIPELINE}-puts-{'p' * 30}"]["Resources"].values()
        if each["Type"] == "AWS::IAM::Role" and "kinesis:GetRecords" in json.dumps(each)
    ]
    assert list(access.roles_fit_iam("AWS::IAM::Role", role, {})) == []
    monkeypatch.setattr(access, "MAX_POLICIES", 10_240 - 453)  # less than a table from the limit
    assert list(access.roles_fit_iam("AWS::IAM::Role", role, {}))


def test_a_stream_from_kinesis_that_reads_nothing_is_an_alarm(variants) -> None:
    """Its own metrics may be silent then: the records that are put count."""
    [alarm] = [
        each["Properties"]
        for each in variants["puts"].resources(ALARM)
        if each["Properties"]["AlarmName"] == "shop-kinesis-lag"
    ]
    stats = {each["Id"]: each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each}
    names = {of: (s["Metric"]["MetricName"], s["Metric"]["Dimensions"]) for of, s in stats.items()}
    stream = [{"Name": "DeliveryStreamName", "Value": "shop-visits"}]
    assert names == {
        "behind": ("KinesisMillisBehindLatest", stream),
        "read": ("DataReadFromKinesisStream.Records", stream),
        "put": ("IncomingRecords", [{"Name": "StreamName", "Value": "shop-visits"}]),
    }
    # DIFF needs earlier hours, which an alarm of one period might not retrieve.
    assert (alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == (3, 1)


@pytest.mark.parametrize(
    ("put", "read", "behind_ms", "is_late"),
    [
        ([0, 0, 1], [0, 0, 0], 0, False),  # Firehose has not yet published that it was read
        ([0, 1, 0], [1, 0, 0], 0, False),  # published as of the five minutes before the hour
        ([0, 1, 0], [0, 1, 0], 0, False),
        ([0, 1, 1], [0, 0, 1], 0, False),
        ([0, 0, 0], [0, 0, 0], 0, False),
        ([0, 1, 0], [0, 0, 0], 0, True),
        ([5, 5, 5], [0, 0, 0], 0, True),
        # Minutes of freshness, and what the stream and its function may buffer.
        ([5, 5, 5], [5, 5, 5], 1_260_000, False),
        ([5, 5, 5], [5, 5, 5], 1_260_001, True),
    ],
)
def test_records_are_unread_if_none_is_read_for_hours(
    put: list[int], read: list[int], behind_ms: int, is_late: bool
) -> None:
    """CloudWatch's arithmetic in Python: each number is that of an hour, the last one is newest."""
    expression = unread("shop", "visits", 1260).expression
    for word, sign in (("AND", "&"), ("OR", "|"), ("IF(", "np.where(")):
        expression = expression.replace(word, sign)
    names = {
        "np": np,
        "FILL": lambda series, _: np.array(series, dtype=float),
        "DIFF": lambda series: np.diff(series, prepend=np.nan),
        "put": put,
        "read": read,
        "behind": [0, 0, behind_ms],
    }
    assert eval(expression, names)[-1] == is_late
