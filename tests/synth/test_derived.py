"""Derived tables in a deployment: their job and its schedules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cdclake.config.deployment import load_deployment
from cdclake.scheduled_runs import scheduled_runs
from tests.synth.deployments import DERIVED, PIPELINE, VARIANTS, Deploy, Synthesized
from tests.synth.rules import broken_rules


def schedules(deployed: Synthesized) -> dict[str, dict[str, Any]]:
    """The properties of every schedule by its name."""
    found = [each["Properties"] for each in deployed.resources("AWS::Scheduler::Schedule")]
    return {each["Name"]: each for each in found}


def test_each_derived_table_is_refreshed_on_its_own_schedule(
    variants: dict[str, Synthesized],
) -> None:
    found = schedules(variants["governed"])
    refreshed = {
        name: (each["ScheduleExpression"], json.loads(each["Target"]["Input"]))
        for name, each in found.items()
        if "refresh" in name
    }
    assert refreshed == {
        f"shop-refresh-{table}": (
            schedule,
            {
                "JobName": "shop-refresh_derived",
                "Arguments": {"--tables": table, "--run": f"refresh_derived-{table}"},
            },
        )
        for table, schedule in (("noted_orders", "rate(30 minutes)"), ("notes", "rate(1 hour)"))
    }


def test_schedules_of_long_names_fit_their_service(deploy: Deploy) -> None:
    long = "a" * 124
    copies = f"    publish: [{{hudi: {{name: {long}_cow}}}}, {{hudi: {{name: {long}_mor}}}}]\n"
    derived = DERIVED.replace("noted_orders:", f"{long}_all:")
    deployed = deploy(PIPELINE + copies + derived)
    found = {
        json.loads(s["Target"]["Input"]).get("Arguments", {}).get("--tables"): name
        for name, s in schedules(deployed).items()
    }
    assert {f"{long}_all", f"{long}_cow", f"{long}_mor"} <= found.keys()
    assert [line for line in broken_rules(deployed.templates) if "names_fit" in line] == []


def test_scheduled_runs_of_a_status_are_those_of_the_schedules(
    variants: dict[str, Synthesized], tmp_path: Path
) -> None:
    (tmp_path / "pipeline.yaml").write_text(VARIANTS["governed"])
    inputs = [json.loads(s["Target"]["Input"]) for s in schedules(variants["governed"]).values()]
    started = {
        each.get("Arguments", {}).get("--run", each["JobName"].removeprefix("shop-"))
        for each in inputs
        if "JobName" in each
    }
    expected = scheduled_runs(load_deployment(tmp_path / "pipeline.yaml").plan)
    assert {run for run in started if not run.startswith("poll_tables")} == {*expected}


def test_runs_for_different_tables_may_overlap(variants: dict[str, Synthesized]) -> None:
    runs = {
        job["Properties"]["Name"]: job["Properties"]["ExecutionProperty"]["MaxConcurrentRuns"]
        for job in variants["governed"].resources("AWS::Glue::Job")
    }
    assert runs.pop("shop-refresh_derived") == 2
    assert runs.pop("shop-publish_hudi") == 2
    assert runs.pop("shop-poll_tables") == 3
    assert set(runs.values()) == {1}


def test_without_derived_tables_there_is_no_job(created: Synthesized) -> None:
    names = [job["Properties"]["Name"] for job in created.resources("AWS::Glue::Job")]
    assert "shop-maintain_tables" in names
    assert "shop-refresh_derived" not in names
