"""`connectors:` in the pipeline file: what is resolved, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.yaml_reader import read_document
from cdclake.plan import Plan

TABLES = """\
version: 1
name: shop
source: {database: shop}
tables:
  public.orders: {key: [id], columns: {id: bigint}}
  public.Order Lines: {key: [id], columns: {id: bigint}}
connectors:
"""


def problems(tmp_path: Path, connectors: str, *, before: str = "") -> list[str]:
    """The problems of a file with these connectors, as line, message and remedy."""
    file = tmp_path / "shop.yaml"
    file.write_text(TABLES.replace("connectors:\n", before + "connectors:\n") + connectors)
    found = find_problems(read_document(file))
    return [f"{p.line - TABLES.count(chr(10))}: {p.message}; {p.remedy}" for p in found]


def loaded(tmp_path: Path, connectors: str) -> Plan:
    file = tmp_path / "shop.yaml"
    file.write_text(TABLES + connectors)
    return load_plan(file)


def test_the_sink_gets_its_class_and_tables(tmp_path: Path) -> None:
    plan = loaded(
        tmp_path,
        "  lake: {plugin: iceberg-sink, tables: [public.orders, public.Order Lines], tasks: 2}\n",
    )
    [sink] = plan.connectors
    assert sink.connector_class == "org.apache.iceberg.connect.IcebergSinkConnector"
    assert sink.tables == ("orders", "order_lines_d02b9b46")
    assert plan.sink_tables == ("orders_sink", "order_lines_d02b9b46_sink")
    assert plan.control_topics == {"lake": "__cdclake-control.shop.lake"}
    assert Plan.from_json(plan.to_json()) == plan


def test_settings_become_text_as_connect_reads_it(tmp_path: Path) -> None:
    plan = loaded(
        tmp_path,
        "  files:\n    plugin: plugins/files.zip\n    class: io.example.Files\n"
        "    tables: [public.orders]\n"
        '    settings: {batch.size: 10, flush: true, ratio: 0.5, a.password: "${secretsmanager:'
        'shop/files:password}"}\n',
    )
    [files] = plan.connectors
    assert files.settings == {
        "batch.size": "10",
        "flush": "true",
        "ratio": "0.5",
        "a.password": "${secretsmanager:shop/files:password}",
    }
    assert files.secrets == ("shop/files",)
    assert plan.control_topics == {} and plan.sink_tables == ()


CLEAR = "holds a password or key; put it into a secret of Secrets Manager"


@pytest.mark.parametrize(
    ("setting", "is_refused"),
    [
        ("connection.password: hunter2", True),
        ("connection.password: 12345", True),
        ('connection.password: "${file:/run/passwords:a}"', True),
        ('connection.password: "x${secretsmanager:a:b}"', True),
        ("aws.secret.access.key: AKIA", True),
        ("api-token: abc", True),
        ("apiKey: abc", True),
        ('sasl.jaas.config: \'Login required username="a" clientSecret="b";\'', True),
        ('connection.password: "${secretsmanager:a:b}"', False),
        ("delete.on.null.key: true", False),
        ("key.converter: org.example.Json", False),
        ("sasl.jaas.config: 'Login required password=\"${secretsmanager:a:b}\";'", False),
        ("connection.url: 'jdbc:x://u:${secretsmanager:a:b}@host/db'", False),
    ],
)
def test_secrets_are_references(tmp_path: Path, setting: str, is_refused: bool) -> None:
    found = problems(
        tmp_path,
        "  out:\n    plugin: a.zip\n    class: io.example.Out\n    tables: [public.orders]\n"
        f"    settings:\n      {setting}\n",
    )
    assert [line.partition(":")[0] for line in found] == ["6"] * is_refused
    assert all(CLEAR in line and "hunter2" not in line for line in found)


def test_a_clear_password_in_any_text_is_refused(tmp_path: Path) -> None:
    for value in ("jdbc:x://u:pw@host/db", "a b password=hunter2"):
        [found] = problems(
            tmp_path,
            "  out:\n    plugin: a.zip\n    class: io.example.Out\n    tables: [public.orders]\n"
            f"    settings: {{url: '{value}'}}\n",
        )
        assert CLEAR in found and "pw@" not in found and "hunter2" not in found


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "  source: {plugin: iceberg-sink, tables: [public.orders]}",
            "1: 'source' is the name of the pipeline's Debezium connector; rename the connector",
        ),
        (
            "  lake: {plugin: iceberg-sink, tables: [public.order]}",
            "1: the file has no table 'public.order'; did you mean 'public.orders' or"
            " 'public.Order Lines'?",
        ),
        (
            "  lake: {plugin: iceberg-sink, class: io.example.A, tables: [public.orders]}",
            "1: the plugin iceberg-sink has its own class; remove this line",
        ),
        (
            "  out: {plugin: a.zip, tables: [public.orders]}",
            "1: the connector has no `class`; add the Java class of the plugin's connector, such"
            " as `class: io.example.Sink`",
        ),
        (
            "  lake: {plugin: iceberg-sink, tables: [public.orders], settings: {topics: a}}",
            "1: 'topics' is not a setting here; write `tables:`",
        ),
        (
            "  lake: {plugin: iceberg-sink, tables: [public.orders],"
            " settings: {iceberg.catalog.type: rest}}",
            "1: cdclake derives 'iceberg.catalog.type' from the pipeline file; remove this line",
        ),
        (
            "  Lake: {plugin: iceberg-sink, tables: [public.orders]}",
            "1: invalid connector name 'Lake'; use 1 to 20 lowercase letters, digits and hyphens,"
            " starting with a letter",
        ),
        (
            "  a: {plugin: iceberg-sink, tables: [public.orders]}\n"
            "  b: {plugin: iceberg-sink, tables: [public.orders]}",
            "2: the lake already has 'orders_sink', of the connector 'a'; rename that one, or"
            " remove the table from this list",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(
    tmp_path: Path, entry: str, expected: str
) -> None:
    assert problems(tmp_path, entry + "\n") == [expected]


def test_a_sink_of_avro_needs_a_converter(tmp_path: Path) -> None:
    avro = "  format: avro\n  registry: glue\n"
    file = tmp_path / "shop.yaml"
    given = TABLES.replace("source: {database: shop}\n", f"source:\n  database: shop\n{avro}")
    entry = "  out: {plugin: a.zip, class: io.example.Out, tables: [public.orders]"
    file.write_text(f"{given}{entry}}}\n")
    [found] = find_problems(read_document(file))
    assert (found.line, found.message) == (
        given.count("\n") + 1,
        "the source's events are Avro, and the connector's worker would read JSON",
    )
    assert "add `value.converter` to its `settings`" in found.remedy
    file.write_text(f"{given}{entry}, settings: {{value.converter: io.example.Avro}}}}\n")
    assert find_problems(read_document(file)) == []


def test_a_sink_takes_no_name_of_another_table(tmp_path: Path) -> None:
    other = "  public.orders_sink: {key: [id], columns: {id: bigint}}\n"
    [found] = problems(
        tmp_path, "  lake: {plugin: iceberg-sink, tables: [public.orders]}\n", before=other
    )
    assert "the lake already has 'orders_sink', of 'public.orders_sink'" in found


def test_what_has_no_topic_as_json_is_refused(tmp_path: Path) -> None:
    polled = (
        "  public.seen:\n    key: [id]\n    columns: {id: bigint, at: timestamptz}\n"
        "    capture: {poll: {by: at}}\n"
    )
    entry = "  lake: {plugin: iceberg-sink, tables: [public.seen]}"
    [problem] = problems(tmp_path, entry, before=polled)
    assert "'public.seen' is polled, so it has no topic" in problem
    avro = tmp_path / "avro.yaml"
    text = TABLES.replace("database: shop", "database: shop, format: avro, registry: glue")
    avro.write_text(text + "  lake: {plugin: iceberg-sink, tables: [public.orders]}")
    [found] = find_problems(read_document(avro))
    assert "reads events as JSON" in found.message


def wide_problems(tmp_path: Path, connectors: str, *, more: str = "") -> list[str]:
    """The problems of a deployment with 101 tables; ALL are all of them, MOST all but one."""
    names = [f"public.table_{number:03}" for number in range(101)]
    tables = "".join(f"  {each}: {{key: [id], columns: {{id: bigint}}}}\n" for each in names)
    connectors = connectors.replace("ALL", ", ".join(names)).replace("MOST", ", ".join(names[1:]))
    head = TABLES[: TABLES.index("  public.orders")]
    file = tmp_path / "shop.yaml"
    file.write_text(f"{head}{tables}{more}aws: {{}}\nconnectors:\n{connectors}")
    found = find_problems(read_document(file))
    return [f"{p.line}: {p.message}; {p.remedy}" for p in found]


SINK = "  lake: {plugin: iceberg-sink, tables: [NAMES]}\n"
JDBC = "  jdbc: {plugin: p.zip, class: io.example.Sink, tables: [NAMES]}\n"


@pytest.mark.parametrize("sink", [SINK, JDBC])
def test_a_role_of_every_table_has_a_pattern(tmp_path: Path, sink: str) -> None:
    assert wide_problems(tmp_path, sink.replace("NAMES", "ALL")) == []


@pytest.mark.parametrize(("sink", "fitting"), [(SINK, 15), (JDBC, 32)])
def test_a_role_that_is_too_long_is_refused(tmp_path: Path, sink: str, fitting: int) -> None:
    [problem] = wide_problems(tmp_path, sink.replace("NAMES", "MOST"))
    assert problem == (
        "108: IAM limits a role to 10,240 characters, which the names of these 100 tables exceed;"
        f" list at most the first {fitting}, and the others in further connectors; or list every"
        " table of the pipeline in one connector, whose role then has a pattern"
    )


def test_a_pattern_matches_no_table_of_others(tmp_path: Path) -> None:
    sink = SINK.replace("NAMES", "ALL")
    kitchen = "  public.kitchen_sink: {key: [id], columns: {id: bigint}}\n"
    every = sink.replace("ALL", "ALL, public.kitchen_sink")
    assert len(wide_problems(tmp_path, every, more=kitchen)) == 1
