"""Hudi copies in a deployment: their job, its settings and its schedules."""

from __future__ import annotations

import json

from tests.synth.deployments import Synthesized
from tests.synth.test_derived import schedules


def test_each_copy_is_published_on_its_own_schedule(variants: dict[str, Synthesized]) -> None:
    found = schedules(variants["governed"])
    published = {
        name: (each["ScheduleExpression"], json.loads(each["Target"]["Input"]))
        for name, each in found.items()
        if "publish" in name
    }
    assert published == {
        f"shop-publish-{copy}": (
            schedule,
            {
                "JobName": "shop-publish_hudi",
                "Arguments": {"--tables": copy, "--run": f"publish_hudi-{copy}"},
            },
        )
        for copy, schedule in (("orders_hudi", "rate(1 hour)"), ("orders_cow", "rate(30 minutes)"))
    }


def test_only_the_job_of_copies_has_hudi(variants: dict[str, Synthesized]) -> None:
    found = {
        job["Properties"]["Name"]: job["Properties"]["DefaultArguments"]
        for job in variants["governed"].resources("AWS::Glue::Job")
    }
    own = found.pop("shop-publish_hudi")
    assert own["--datalake-formats"] == "iceberg,hudi"
    assert "KryoSerializer" in json.dumps(own["--conf"])
    assert {each["--datalake-formats"] for each in found.values()} == {"iceberg"}
    assert "KryoSerializer" not in json.dumps([each["--conf"] for each in found.values()])


def test_without_copies_there_is_no_job(created: Synthesized) -> None:
    names = [job["Properties"]["Name"] for job in created.resources("AWS::Glue::Job")]
    assert "shop-publish_hudi" not in names
