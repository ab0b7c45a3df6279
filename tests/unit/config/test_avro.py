"""Events as Avro in the pipeline file: the plan, the connector's settings, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.yaml_reader import read_document
from cdclake.debezium.avro_converter import CONVERTER, GlueRegistry
from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.plan import Plan

FILE = """\
version: 1
name: shop
source: {{database: shop{source}}}
tables:
  public.orders: {{key: [id], columns: {{id: bigint}}{table}}}
"""


def written(folder: Path, source: str = "", table: str = "") -> Path:
    """The file with these settings of the source and of the table."""
    file = folder / "shop.yaml"
    file.write_text(FILE.format(source=source, table=table))
    return file


def config(plan: Plan, registry: GlueRegistry | None) -> dict[str, str]:
    """The connector's settings."""
    address = SourceAddress(
        host="h", port=1, database="d", user="u", password="${p}", sslmode="prefer"
    )
    return connector_config(
        plan, address, epoch=1, mask_salt="", max_queue_bytes=1, registry=registry
    )


def test_a_plan_without_avro_is_as_before(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path))
    assert (plan.format, plan.registry, plan.compatibility) == ("json", "", "")
    assert plan == load_plan(written(tmp_path, ", format: json"))
    assert "JsonConverter" in config(plan, None)["value.converter"]


def test_glue_is_the_registry_of_the_deployment(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, ", format: avro, registry: glue"))
    assert Plan.from_json(plan.to_json()) == plan
    assert (plan.registry, plan.compatibility) == ("glue", "BACKWARD")
    settings = config(plan, GlueRegistry("shop-dev", "eu-west-1"))
    assert settings["value.converter"] == CONVERTER
    assert settings["value.converter.registry.name"] == "shop-dev"
    assert settings["value.converter.compatibility"] == "BACKWARD"
    assert "value.converter.endpoint" not in settings
    assert settings["key.converter"].endswith("JsonConverter")
    topics = settings["value.converter.json.topics"].split(",")
    assert set(topics) == set(plan.own_topics.values())
    assert plan.tables[0].topic not in topics


def test_apicurio_has_an_address(tmp_path: Path) -> None:
    source = ', format: avro, registry: {apicurio: "http://registry:8080/"}'
    plan = load_plan(written(tmp_path, source))
    assert (plan.registry, plan.compatibility) == ("http://registry:8080/", "")
    url = config(plan, None)["value.converter.apicurio.registry.url"]
    assert url == "http://registry:8080/apis/registry/v2"


@pytest.mark.parametrize(
    ("source", "table", "message", "remedy"),
    [
        (", format: avro", "", "need a schema registry", "registry: glue"),
        (", registry: glue", "", "is for events as Avro", "add `format: avro`"),
        (", compatibility: FULL", "", "is for events as Avro", "add `format: avro`"),
        (
            ', format: avro, compatibility: NONE, registry: {apicurio: "http://r"}',
            "",
            "a rule of the registry itself",
            "set the rule there",
        ),
        (
            ", format: avro, registry: glue",
            ", delivery: firehose",
            "cannot ask a schema registry",
            "delivery: stream",
        ),
        (', format: avro, registry: {apicurio: "r:8080"}', "", "invalid address", "http://"),
        (', format: avro, registry: {apicurio: "http://r/?a=1"}', "", "invalid address", "login"),
        (', format: avro, registry: {apicurio: "http://r:99999"}', "", "invalid address", "port"),
        (", format: avro, registry: other", "", "invalid schema registry 'other'", "write `glue`"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(
    tmp_path: Path, source: str, table: str, message: str, remedy: str
) -> None:
    [problem] = find_problems(read_document(written(tmp_path, source, table)))
    assert message in problem.message
    assert remedy in problem.remedy
    assert problem.line == (5 if table else 3)
