"""The converter and the decoder with a real Apicurio registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdclake.debezium.avro_converter import avro_settings
from cdclake.jobs.stream.avro_values import AvroValues, split_header, without_refusal
from cdclake.jobs.stream.schema_registry import registry_of
from cdclake.plan import Plan
from tests.avro.apicurio import running_registry, set_rule
from tests.avro.converters import convert
from tests.avro.samples import TOPIC, event, optional

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def plan_of(url: str) -> Plan:
    """A plan with this registry."""
    return Plan(
        name="shop", source_database="shop", lake_database="lake", tables=(), format="avro",
        registry=url,
    )  # fmt: skip


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plan]:
    """A plan with a registry that answers."""
    with running_registry(tmp_path_factory.mktemp("apicurio") / "log") as url:
        yield plan_of(url)


def settings(plan: Plan) -> dict[str, str]:
    """The connector's settings of the plan."""
    return {"value.converter.replace.null.with.default": "false"} | avro_settings(plan, None)


def test_each_value_is_that_of_json(plan: Plan) -> None:
    events = [event(), event(added=optional("int32", 1)), event(with_point=False), event()]
    written = convert(settings(plan), plan.registry, [(TOPIC, each) for each in events])
    registry = AvroValues(registry_of(plan))
    for as_json, as_avro in written:
        assert as_avro[0] == 0
        [found] = registry.as_json([as_avro])
        assert found == as_json.replace(rb"\uD83D\uDE00", "\U0001f600".encode())
    assert len({split_header(as_avro)[0] for _, as_avro in written}) == 3


def test_a_schema_against_the_rule_leaves_the_event_and_the_reason(plan: Plan) -> None:
    set_rule(plan.registry, "BACKWARD")
    topic = "shop.public.others"
    needed = ({"type": "int32", "optional": False}, 1)
    events = [event(), event(needed=needed), event(added=optional("int32", 1))]
    written = convert(settings(plan), plan.registry, [(topic, each) for each in events])
    first, refused, added = written
    assert (first[1][0], added[1][0]) == (0, 0)
    assert b'"cdc_refused":{"reason":"SCHEMA_REFUSED: ' in refused[1]
    assert without_refusal(refused[1]) == refused[0]


def test_a_registry_that_was_replaced_swaps_no_columns(tmp_path: Path) -> None:
    a, b = optional("string", "A"), optional("string", "B")
    written = []
    for same_layout in (event(a=a, b=b), event(b=b, a=a)):
        with running_registry(tmp_path / "log") as url:
            written += convert(settings(plan_of(url)), url, [(TOPIC, same_layout)])
            values = AvroValues(registry_of(plan_of(url))).as_json([each for _, each in written])
    (_, former), (as_json, later) = written
    assert split_header(former)[0] == split_header(later)[0]
    assert b"UNREADABLE_AVRO: OtherSchema" in (values[0] or b"")
    assert values[1] == as_json.replace(rb"\uD83D\uDE00", "\U0001f600".encode())
