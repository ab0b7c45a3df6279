"""Storage classes are deployed as declared, and no live file of a table is lost or archived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.synth.deployments import DELIVERED, PIPELINE, PRIVATE

if TYPE_CHECKING:
    from tests.synth.deployments import Deploy, Synthesized

SIZE = "TransitionDefaultMinimumObjectSize"
CLASSES = """\
, log_days: 60, storage: {warehouse: intelligent_tiering,
  failed: {standard_ia: 30, glacier_ir: 90}, access_log: {standard_ia: 30}}}"""


def lifecycles(deployed: Synthesized) -> dict[str, dict[str, Any]]:
    """The lifecycle of each bucket of the lake, by its construct."""
    return {
        name.partition("Bucket")[0]: resource["Properties"]["LifecycleConfiguration"]
        for template in deployed.templates.values()
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::S3::Bucket"
    }


def moves(rule: dict[str, Any]) -> list[tuple[str, int]]:
    """Class and age of each transition of a rule."""
    return [(t["StorageClass"], t["TransitionInDays"]) for t in rule.get("Transitions", [])]


def test_objects_move_where_the_file_says_so(deploy: Deploy) -> None:
    found = lifecycles(deploy(PIPELINE + DELIVERED + PRIVATE.replace("}", CLASSES, 1)))
    [warehouse] = found["Warehouse"]["Rules"]
    assert moves(warehouse) == [("INTELLIGENT_TIERING", 0)]
    state = {rule["Id"]: rule for rule in found["State"]["Rules"]}
    assert moves(state["Expire-firehose"]) == [("STANDARD_IA", 30), ("GLACIER_IR", 90)]
    assert [*state] == [
        "Expire",
        "Expire-firehose",
        "Overwritten-checkpoints",
        "ShortLived-forgets",
        "ShortLived-reports",
        "ShortLived-source-sql",
    ]
    assert not moves(state["Expire"])
    assert not moves(state["Overwritten-checkpoints"])
    [access_log] = found["AccessLog"]["Rules"]
    assert moves(access_log) == [("STANDARD_IA", 30)]
    assert access_log["ExpirationInDays"] == 60
    assert {found[name][SIZE] for name in ("Warehouse", "State", "AccessLog")} == {
        "all_storage_classes_128K"
    }


def test_by_default_everything_stays_in_s3_standard(created: Synthesized) -> None:
    found = lifecycles(created)
    assert found.keys() >= {"Warehouse", "State", "AccessLog"}
    for lifecycle in found.values():
        assert SIZE not in lifecycle
        assert not any(moves(rule) for rule in lifecycle["Rules"])
