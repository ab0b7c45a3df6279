"""Polled tables in a deployment: their job, its schedules, and what it may do at the source."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.synth.deployments import OPTIMIZED, PIPELINE, Deploy, Synthesized, Template
from tests.synth.permissions import role_of
from tests.synth.test_derived import schedules
from tests.synth.test_forget import allowed, jobs


def test_tables_with_the_same_schedule_share_a_run(variants: dict[str, Synthesized]) -> None:
    polls = {
        name: (each["ScheduleExpression"], json.loads(each["Target"]["Input"])["Arguments"])
        for name, each in schedules(variants["governed"]).items()
        if "poll" in name
    }
    assert polls == {
        "shop-poll-rate-10-minutes": (
            "rate(10 minutes)",
            {"--tables": "places,towns", "--run": "poll_tables-rate-10-minutes"},
        ),
        "shop-poll-cron-1cbe49a6": (
            "cron(0 4 * * ? *)",
            {"--tables": "streets", "--run": "poll_tables-cron-1cbe49a6"},
        ),
    }


def test_the_job_reads_the_source_and_has_no_kafka(variants: dict[str, Synthesized]) -> None:
    [job] = [
        each["Properties"]
        for each in variants["governed"].resources("AWS::Glue::Job")
        if each["Properties"]["Name"] == "shop-poll_tables"
    ]
    arguments = job["DefaultArguments"]
    assert {"--source", "--login", "--authorities", "--mask_salt"} <= arguments.keys()
    assert "--brokers" not in arguments
    assert job["Command"]["Name"] == "glueetl"
    assert job["ExecutionProperty"]["MaxConcurrentRuns"] == 3  # two schedules, one comparison


def test_comparison_may_run_the_jobs_that_it_is_given(
    variants: dict[str, Synthesized], deploy: Deploy
) -> None:
    def runs(deployed: Synthesized) -> tuple[str | None, set[str]]:
        role = role_of(deployed, "VerifyTables")
        on = {action: allowed(role, f"glue:{action}JobRun") for action in ("Get", "Start")}
        assert on["Get"] == on["Start"]
        names = {arn.rpartition("/")[2] for arn in on["Start"]}
        return jobs(deployed)["shop-verify_tables"].get("--runs"), names

    assert runs(variants["governed"]) == ("poll_tables", {"shop-poll_tables"})
    assert runs(variants["created"]) == (None, set())
    assert runs(variants["delivered"]) == (None, set())
    scheduled = deploy(f"{PIPELINE}stream: {{mode: scheduled}}\n")
    assert runs(scheduled) == ("stream_changes", {"shop-stream_changes"})


OPTIMIZED_POLLED = """\
  public.rates:
    key: [rate_id]
    columns: {rate_id: bigint, changed_at: timestamptz}
    capture: {poll: {by: changed_at, every: "cron(0 3 * * ? *)"}}
    maintenance: glue
    shard: 2
"""


def test_deployment_starts_the_job_that_creates_what_it_waits_for(deploy: Deploy) -> None:
    """A poll, whose schedule may start it hours later, creates a polled table, and the stream none.

    Each shard has its own wait, here one with a replicated table and one with a polled table.
    """
    deployed = deploy(f"{PIPELINE}{OPTIMIZED}{OPTIMIZED_POLLED}stream: {{mode: scheduled}}\n")
    assert awaited(deployed, 1) == (
        {"Tables": ["visits_changes", "visits"], "Job": "shop-stream_changes"},
        {"shop-stream_changes"},
    )
    assert awaited(deployed, 2) == (
        {
            "Tables": ["rates_changes", "rates"],
            "Polled": {"rates_changes": "rates", "rates": "rates"},
            "PollJob": "shop-poll_tables",
        },
        {"shop-poll_tables"},
    )


def awaited(deployed: Synthesized, shard: int) -> tuple[Template, set[str]]:
    """Return what the shard's optimizers wait for, and the jobs that the wait may start."""
    stack = f"shop-optimizers-{shard}"
    template = deployed.templates[stack]
    [waiting] = [
        each["Properties"]
        for each in template["Resources"].values()
        if each["Type"] == "Custom::CdclakeTables"
    ]
    others = ("ServiceToken", "ServiceTimeout", "Database")
    wanted = {k: v for k, v in waiting.items() if k not in others}
    role = role_of(replace(deployed, templates={stack: template}), "TablesDoer")
    return wanted, {on.rpartition("/")[2] for on in allowed(role, "glue:StartJobRun")}


def test_polled_tables_have_no_topics(variants: dict[str, Synthesized]) -> None:
    topics = [
        each["Properties"]["TopicName"]
        for each in variants["governed"].resources("AWS::MSK::Topic")
    ]
    assert any("orders" in topic for topic in topics)
    assert not any("places" in topic or "towns" in topic for topic in topics)


def test_without_polled_tables_there_is_no_job(created: Synthesized) -> None:
    names = [job["Properties"]["Name"] for job in created.resources("AWS::Glue::Job")]
    assert "shop-verify_tables" in names
    assert "shop-poll_tables" not in names
