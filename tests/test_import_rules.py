"""Inside and between rooms: no cycles, third-party packages by an allow-list, and closed rooms."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import pytest

from tests.source_tree import (
    PROJECT,
    cycles,
    import_graph,
    imported_modules,
    is_within,
    module_of,
    room_of,
    sources,
)

# What each room may import that is neither ours nor Python's. A room that is not here: nothing.
# The longest prefix of the module decides.
THIRD_PARTY: Mapping[str, set[str]] = {
    "cdclake": set(),  # the core: standard library only
    "cdclake.cli": {"prompt_toolkit", "rich", "typer"},
    "cdclake.config": {"jq", "pydantic", "pydantic_core", "ruamel", "sqlglot"},
    "cdclake.deployed": {"boto3", "botocore"},
    "cdclake.functions": {"boto3", "botocore"},
    "cdclake.functions.firehose_puts": set(),
    "cdclake.functions.firehose_requests": set(),
    "cdclake.functions.firehose_unwrap": set(),
    "cdclake.functions.prepare_source": {"boto3", "botocore", "psycopg"},
    "cdclake.jobs": set(),  # entry scripts
    "cdclake.jobs.apply": {"numpy", "pandas", "pyarrow", "pyspark"},
    "cdclake.jobs.bulk_load": {
        *("adbc_driver_postgresql", "numpy", "psycopg", "py4j", "pyarrow", "pyspark"),
    },
    "cdclake.jobs.control": {"boto3", "botocore"},
    "cdclake.jobs.derived": {"boto3", "pyarrow", "pyspark"},
    "cdclake.jobs.erasure": {"botocore", "fastavro", "numpy", "pyarrow"},
    "cdclake.jobs.forget": {"boto3", "botocore", "pyspark"},
    "cdclake.jobs.iceberg": {
        *("boto3", "botocore", "mmh3", "numpy", "py4j", "pyarrow", "pyspark"),
    },
    "cdclake.jobs.jvm": {"py4j", "pyspark"},
    "cdclake.jobs.maintenance": {"pyspark"},
    "cdclake.jobs.operations": {"pyarrow", "pyspark"},
    "cdclake.jobs.poll": {"psycopg", "pyarrow", "pyspark"},
    "cdclake.jobs.probing": {"botocore", "py4j", "pyarrow", "pyspark"},
    "cdclake.jobs.publish": {"boto3", "pyspark"},
    "cdclake.jobs.quality": {"pyspark"},
    "cdclake.jobs.reader": {"boto3", "botocore", "duckdb", "pyspark"},
    "cdclake.jobs.runtime": {"awsglue", "boto3", "botocore", "psycopg", "pyspark"},
    "cdclake.jobs.stream": {
        "boto3",
        "botocore",
        "fastavro",
        "msgspec",
        "numpy",
        "py4j",
        "pyarrow",
        "pyspark",
    },
    "cdclake.jobs.table_jobs": {"boto3"},
    "cdclake.jobs.verify": {"duckdb", "psycopg", "pyspark"},
    "cdclake.local": {"psycopg"},
    "cdclake.local.aws": {"moto", "werkzeug"},
    "cdclake.local.components": {"confluent_kafka", "psutil", "psycopg"},
    "cdclake.local.demo": {"duckdb", "psycopg", "rich"},
    "cdclake.local.firehose": {"confluent_kafka", "pyarrow", "pyiceberg"},
    "cdclake.local.lake": {"boto3", "botocore", "confluent_kafka", "psycopg"},
    "cdclake.local.process": {"psutil"},
    "cdclake.local.puts": {"botocore"},
    "cdclake.local.reader": {"duckdb"},
    "cdclake.local.trace": {"psycopg"},
    "cdclake.local.trino": {"trino"},
    "cdclake.stacks": {"aws_cdk", "cdk_nag", "constructs"},
    "cdclake.stacks.constructs": {"aws_cdk", "constructs"},
}
# A room -> the only other rooms of its package that it may import.
CLOSED: Mapping[str, set[str]] = {
    "cdclake.jobs.jvm": set(),
    "cdclake.jobs.control": set(),
    "cdclake.jobs.iceberg": {"cdclake.jobs.jvm"},
    "cdclake.jobs.runtime": {"cdclake.jobs.jvm"},
    "cdclake.local.process": set(),
    "cdclake.local.aws": set(),
    "cdclake.local.components": {"cdclake.local.process"},
    "cdclake.local.lake": {"cdclake.local.components", "cdclake.local.process"},
    "cdclake.stacks.constructs": {"cdclake.stacks.bundles"},
}
# A room of the core -> rooms that it never imports.
UNKNOWN: Mapping[str, set[str]] = {
    "cdclake.debezium": {"cdclake.iceberg", "cdclake.postgres"},
}
ENTRY_LINES = 40


def third_party_violations(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield each import of a package that the module's room has no permission for."""
    for path, text in texts.items():
        module = module_of(path)
        if not is_within(module, "cdclake"):
            continue
        rooms = [room for room in THIRD_PARTY if is_within(module, room)]
        allowed = {"cdclake", *sys.stdlib_module_names, *THIRD_PARTY[max(rooms, key=len)]}
        for name in imported_modules(text):
            if name.split(".")[0] not in allowed:
                yield f"{module} imports {name}"


def closed_room_violations(graph: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield each import from a room that is closed to it, and each of an entry script."""
    scripts = _entry_scripts(graph)
    for module, imported in graph.items():
        room = room_of(module)
        package = room.rpartition(".")[0]
        for other in map(room_of, imported - {package}):
            if other == room:
                continue
            if room in CLOSED and is_within(other, package) and other not in CLOSED[room]:
                yield f"{module} imports {other}"
            if other in UNKNOWN.get(room, ()):
                yield f"{module} imports {other}"
        for name in imported & scripts:
            yield f"{module} imports the entry script {name}"


def cycle_violations(graph: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the cycles between modules, and those between rooms.

    The core's modules outside of packages are no rooms: `plan` has streams of Firehose, whose rows
    are made after a plan.
    """
    ours = {m: found for m, found in graph.items() if is_within(m, "cdclake")}
    packages = {module.rpartition(".")[0] for module in ours}
    loose = {m for m in ours if m.count(".") == 1 and m not in packages}
    rooms: dict[str, set[str]] = {}
    for module in ours.keys() - loose:
        others = {room_of(name) for name in ours[module] - loose}
        rooms.setdefault(room_of(module), set()).update(others - {room_of(module)})
    for found in (*cycles(ours), *cycles(rooms)):
        yield f"a cycle: {', '.join(found)}"


def _entry_scripts(graph: Mapping[str, set[str]]) -> set[str]:
    """The modules that lie in `cdclake.jobs` itself."""
    packages = {module.rpartition(".")[0] for module in graph}
    return {m for m in graph if m.rpartition(".")[0] == "cdclake.jobs" and m not in packages}


def violations(texts: Mapping[str, str]) -> list[str]:
    """Return everything that these files import against the rules."""
    graph = import_graph(texts)
    return [
        *third_party_violations(texts),
        *closed_room_violations(graph),
        *cycle_violations(graph),
    ]


def test_every_import_keeps_to_the_rules():
    found = violations(sources())
    assert not found, "\n".join(found)


def test_every_room_of_the_allow_list_exists():
    modules = {module_of(path) for path in sources()}
    for room in (*THIRD_PARTY, *CLOSED, *UNKNOWN):
        assert any(is_within(module, room) for module in modules), room


def test_no_permission_is_unused():
    unused = {(room, package) for room, packages in THIRD_PARTY.items() for package in packages}
    for path, text in sources().items():
        rooms = [room for room in THIRD_PARTY if is_within(module_of(path), room)]
        if rooms:
            room = max(rooms, key=len)
            unused -= {(room, name.split(".")[0]) for name in imported_modules(text)}
    assert not unused


def test_entry_scripts_are_short():
    scripts = [*(PROJECT / "glue_jobs").glob("*.py")]
    assert len(scripts) > 5
    long = [script.name for script in scripts if len(script.open().readlines()) > ENTRY_LINES]
    assert not long


PLANTED = [
    # the core is standard library only
    ("cdclake/naming.py", "import boto3"),
    ("cdclake/debezium/types.py", "def late():\n    import pyspark"),
    ("cdclake/web_logs/row.py", "import pydantic"),
    # an allow-list per room
    ("glue_jobs/control/store.py", "import pyspark.sql"),
    ("glue_jobs/stream/batch.py", "import duckdb"),
    ("glue_jobs/apply/state_update.py", "import boto3"),
    ("glue_jobs/operations/replay.py", "import psycopg"),
    ("glue_jobs/stream_changes.py", "from pyspark.sql import SparkSession"),
    ("cdclake/local/process/supervisor.py", "import psycopg"),
    ("cdclake/local/lake/topics.py", "import rich"),
    ("cdclake/cli/up.py", "import duckdb"),
    ("lambda/firehose_unwrap/firehose_unwrap.py", "import boto3"),
    ("cdclake/firehose/erased_rows.py", "import boto3"),
    ("stacks/constructs/topic.py", "import cdk_nag"),
    ("cdclake/config/model.py", "import yaml"),
    # closed rooms
    ("glue_jobs/runtime/session.py", "from cdclake.jobs.control.store import ObjectStore"),
    ("glue_jobs/runtime/session.py", "from cdclake.jobs.iceberg import lake_tables"),
    ("glue_jobs/iceberg/delta_handle.py", "import cdclake.jobs.runtime.metrics"),
    (
        "glue_jobs/iceberg/delta_handle.py",
        "def late():\n    from cdclake.jobs.apply import key_index",
    ),
    ("glue_jobs/jvm/java.py", "from cdclake.jobs.runtime import logs"),
    ("glue_jobs/control/leases.py", "from cdclake.jobs.runtime import logs"),
    ("cdclake/debezium/field_values.py", "from cdclake.iceberg.conversions import to_state"),
    ("cdclake/debezium/connector.py", "from cdclake.postgres import quoting"),
    ("cdclake/local/process/home.py", "from cdclake.local.lake.lake import LocalLake"),
    ("cdclake/local/components/kafka.py", "from cdclake.local.lake import topics"),
    ("stacks/constructs/topic.py", "from cdclake.stacks import pipeline_app"),
    # entry scripts are started, not imported
    ("glue_jobs/operations/replay.py", "from cdclake.jobs import operate"),
    # cycles between modules
    ("cdclake/config/document.py", "def late():\n    from cdclake.config import yaml_reader"),
    ("glue_jobs/stream/changelog_job.py", "from cdclake.jobs.stream.table_work import Work"),
    ("cdclake/naming.py", "from cdclake.plan import Plan"),
    # cycles between rooms
    ("glue_jobs/stream/batch.py", "from cdclake.jobs.operations.replay import replay_quarantine"),
    ("glue_jobs/apply/state_update.py", "from cdclake.jobs.stream import stage_timer"),
    ("glue_jobs/maintenance/actions.py", "from cdclake.jobs.stream import gauges"),
    ("cdclake/local/lake/stack.py", "from cdclake.local.firehose import journal"),
    ("cdclake/iceberg/ddl.py", "from cdclake.redrive import objects"),
]


@pytest.mark.parametrize(("path", "source"), PLANTED)
def test_a_planted_violation_is_found(path: str, source: str) -> None:
    texts = sources()
    assert violations({**texts, path: f"{texts[path]}\n{source}\n"})


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("glue_jobs/iceberg/delta_handle.py", "from cdclake.jobs.jvm import java"),
        ("glue_jobs/stream/batch.py", "from cdclake.jobs.runtime import logs"),
        ("cdclake/postgres/prepare.py", "import cdclake.debezium.types, json"),
        ("stacks/constructs/topic.py", "from cdclake.stacks import bundles"),
    ],
)
def test_an_allowed_import_is_not_found(path: str, source: str) -> None:
    texts = sources()
    assert not violations({**texts, path: f"{texts[path]}\n{source}\n"})
