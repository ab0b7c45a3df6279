"""Write docs/jobs.md: each deployed job, its arguments, and how to start it manually.

`python -m scripts.jobs_page` writes the page. A unit test fails if the page is out of date, and
tests run the jobs with exactly the arguments on the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdclake import naming
from cdclake.deployed_jobs import (
    JOBS,
    JobLocations,
    own_arguments,
    probe_arguments,
    source_words,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "jobs.md"

# Example values of settings that differ between deployments.
EXAMPLE = JobLocations(
    prefix="shop-prod",
    pipeline="shop",
    state="STATE-BUCKET",
    warehouse="WAREHOUSE-BUCKET",
    plan=f"s3://STATE-BUCKET/{naming.DEPLOYED_PREFIX}/plan-HASH.json",
    brokers="b-1.example:9098,b-2.example:9098",
    source=source_words("db.example", 5432, "shop"),
    login=naming.login_secret("shop-prod"),
    salt=naming.salt_secret("shop-prod"),
    is_delivered=True,
    is_masked=True,
    authorities=f"s3://STATE-BUCKET/{naming.DEPLOYED_PREFIX}/rds-ca-HASH.pem",
    epoch=1,
    runs=(naming.POLL_JOB, naming.STREAM_JOB),
)

PROBED = probe_arguments(state=EXAMPLE.state, pipeline=EXAMPLE.pipeline, database="cdc_iceberg")


@dataclass(frozen=True, slots=True)
class Described:
    """Description of a job on the page; `given` are the arguments of a manually started run."""

    does: str
    begins: str
    given: dict[str, str]


JOBS_DESCRIBED = {
    naming.STREAM_JOB: Described(
        "Reads the pipeline's topics and writes changelogs, quarantine and states, until stopped.",
        "The stream keeper starts and restarts it. With `stream: {mode: scheduled}` it is started"
        " by `schedules.apply`, reads the available records, and ends.",
        {},
    ),
    naming.APPLY_JOB: Described(
        "Applies to each state the changes that its changelog has ingested since the last apply.",
        "Started by `schedules.apply`, if any table has `apply: scheduled`.",
        {"--tables": "orders", "--run": "by-hand-1"},
    ),
    naming.MAINTAIN_JOB: Described(
        "Purges tombstones, collapses old days, compacts files, expires snapshots and removes"
        " orphan files, one changelog or state at a time; the quarantine comes last, as"
        " `cdclake_quarantine` in `--tables` and in the report.",
        "Started by `schedules.maintain`.",
        {"--tables": "customers,orders", "--run": "by-hand-2"},
    ),
    naming.REBUILD_JOB: Described(
        "Rebuilds each state from its changelog, in one commit per table; creates one that is"
        " gone.",
        "Started manually only.",
        {"--tables": "orders", "--run": "by-hand-3"},
    ),
    naming.REFRESH_JOB: Described(
        "Brings [derived tables](derived-tables.md) up to date with the tables that they are made"
        " of. Deployed only if the file has `derived:`; runs for different tables may overlap.",
        "Started by the schedule of each derived table.",
        {"--tables": "order_lines", "--run": "by-hand-6"},
    ),
    naming.CHECK_JOB: Described(
        "Checks the [quality rules](quality-rules.md) of each table over its rows in the lake. If"
        " one does not hold, the run ends as failed. Deployed only if a table has `checks:`.",
        "Started by `schedules.checks`.",
        {"--tables": "orders", "--run": "by-hand-7"},
    ),
    naming.POLL_JOB: Described(
        "Reads the rows of [polled tables](polled-tables.md) that have changed since the last poll,"
        " and applies them. Deployed only if a table has `capture: {poll: ...}`; runs for different"
        " tables may overlap.",
        "Started by the schedules of the polled tables, one run for all tables of a schedule.",
        {"--tables": "orders", "--whole": "true", "--run": "by-hand-8"},
    ),
    naming.PUBLISH_JOB: Described(
        "Updates [copies in Hudi's format](hudi.md) from the states that they copy."
        " Deployed only if a table has `publish:`; runs for different copies may overlap.",
        "Started by the schedule of each copy.",
        {"--tables": "customers_hudi", "--run": "by-hand-9"},
    ),
    naming.VERIFY_JOB: Described(
        "Compares every row of the source with `<t>_current`, after waiting for all written changes"
        " to arrive; a run that finds a difference fails. Before, it runs"
        " `poll_tables` for polled tables, and `stream_changes` if records wait for a stream with"
        " `mode: scheduled`. It compares on the driver only, in PostgreSQL"
        " and DuckDB, with packages that Glue installs from the deployment's own bucket.",
        "Started manually, and by `schedules.verify` if the file sets it.",
        {
            "--tables": "orders",
            "--wait": "600",
            "--sample": "100000",
            "--deep": "true",
            "--reader": "spark",
            "--run": "by-hand-4",
        },
    ),
    naming.OPERATE_JOB: Described(
        "Requests one of three operations from the stream: retry quarantined events (`replay`),"
        " continue stopped tables (`resume`), or have the connector read tables again while"
        " everything else keeps flowing, and delete rows from the lake that the source does not"
        " have (`resync`, which needs table names, or `--expired true` for all tables whose events"
        " Kafka has lost). Stream and connector must be running.",
        "Started manually only.",
        {"--verb": "resync", "--tables": "orders", "--run": "by-hand-5"},
    ),
    naming.FORGET_JOB: Described(
        "[Erases rows](how-to/erase-rows.md) of one table: it has their writer erase them,"
        " deletes every version of the objects that had them, and searches what is left. The keys"
        " are in the control object `forgets/<order>.json`, which it deletes with all its versions;"
        " a run without it fails. Deployed only if rows of a table can be erased.",
        "Started by `cdclake forget --target aws`.",
        {"--tables": "orders", "--order": "1f0c", "--grace": "60", "--run": "by-hand-12"},
    ),
    naming.LOAD_JOB: Described(
        "Loads every row of the source's tables as of one LSN, before the connector exists, and"
        " writes that LSN into the connector's offsets, so that the connector continues there"
        " ([bulk load](how-to/bulk-load.md)). Deployed only with `snapshot: {mode: bulk}`. It"
        " refuses to run while connector or stream are deployed, and in an epoch that has rows.",
        "Started manually only.",
        {"--run": "by-hand-11"},
    ),
    naming.PROBE_JOB: Described(
        "Checks where the jobs will run: Java classes and Python packages, a checkpoint's folder,"
        " conditional writes, and a commit to a table that it drops again. It needs neither source"
        " nor Kafka. Its role allows only that, on names that it makes up: the roles of the other"
        " jobs are not probed. A run that is killed may leave a table `cdclake_probe_*`.",
        "Started by `cdclake doctor --target aws --probe`.",
        {"--run": "by-hand-10"},
    ),
}
_MEANINGS = {
    "--plan": "the plan of the pipeline file, as deployed",
    "--control": "leases, progress, requests and reports",
    "--metrics": "name of the deployment in its CloudWatch metrics",
    "--checkpoint": "the stream's offsets in Kafka; the probe makes another folder",
    "--database": "the lake's database in the catalog",
    "--brokers": "bootstrap brokers for IAM access",
    "--kafka_options": "authentication, and the prefix of its consumer groups' names",
    "--deployment": "the stream ends between two batches when another deployment takes over",
    "--source": "address of the source, with server verification",
    "--login": "secret with the login of the connector's role",
    "--authorities": "certificate authorities trusted for the source's server",
    "--mask_salt": "secret with the salt of masks, and of the hashes of erased keys",
    "--runs": "jobs that it runs before it compares, if the pipeline has polls or such a stream",
    "--order": "id of the object with the keys to erase",
    "--grace": "seconds that queries have to end, before files that they read are deleted",
    "--wait": "seconds to wait for changes in flight; default 600 and the buffers of Firehose",
    "--sample": "approximate number of rows to compare per table; default all",
    "--deep": "`true`: also compare each state table with its changelog",
    "--reader": "`spark`: compare what Spark shows in `<t>_current`; default DuckDB",
    "--offsets": "Connect's offset topic: the connector's position, and tables being read again",
    "--connector": "name of the connector, and so the key of its position",
    "--slot": "replication slot that the job creates, and that the connector reads",
    "--epoch": "epoch of the rows and of the connector, `aws: connect: epoch`",
    "--whole": "`true`: read all rows, not only those that have changed",
    "--verb": "`replay`, `resume` or `resync`",
    "--tables": "table names in the lake, separated by commas; default all",
    "--run": "name of the report that the run writes, `control/reports/<run>.json`",
}
_OWN_MEANINGS = {
    naming.LOAD_JOB: {
        "--source": "address and login of the source, with server verification, as the connector's",
        "--mask_salt": "reference to the salt, if a column has `mask: hash` or `token`",
    }
}
_HEAD = """\
# The jobs on AWS

Generated from the code by `make docs`. **Nothing here has ever run on AWS**; tests run the jobs on
the local lake with the arguments shown here.

A job is named `<pipeline>-<environment>-<job>`, here `shop-prod-...`. The deployment sets most
arguments; for a manual run add those in the table "set per run". In the Glue console: *ETL jobs*,
the job, *Actions*, *Run with parameters*, *Job parameters*, one key and value per line. A job
cannot be started while another run of it is active, except `refresh_derived`, `poll_tables` and
`publish_hudi`. Logs are in
CloudWatch under `/aws-glue/jobs/<pipeline>-<environment>/<job>/output` and `.../error`.

`cdclake job NAME --target aws --file FILE --environment NAME [--table T]` starts a run, waits for
its end and prints the report, as it does locally; `stream_changes` is started and left running.
`cdclake verify --target aws` runs `verify_tables` and prints the same output as locally;
`cdclake replay` and `cdclake resync` with `--target aws` run the job `operate`, `cdclake resume`
writes the requests that it would write, and `cdclake forget --target aws` runs `forget_rows`.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *(line for job in JOBS for line in _job(job))])


def _job(job: str) -> Iterator[str]:
    described, meanings = JOBS_DESCRIBED[job], _MEANINGS | _OWN_MEANINGS.get(job, {})
    deployed = PROBED if job == naming.PROBE_JOB else own_arguments(job, EXAMPLE)
    yield from (f"## {job}", "", f"{described.does} {described.begins}", "")
    if job == naming.STREAM_JOB:
        deployed["--deployment"] = "HASH"
    yield from _table("set by the deployment", deployed, meanings)
    if described.given:
        yield from _table("set per run", described.given, meanings)
    yield from ("```sh", _command(job, described.given), "```", "")


def _table(title: str, arguments: dict[str, str], meanings: dict[str, str]) -> Iterator[str]:
    yield from (f"| {title} | value | meaning |", "|---|---|---|")
    for name, value in arguments.items():
        yield f"| `{name}` | `{value}` | {meanings[name]} |"
    yield ""


def _command(job: str, given: dict[str, str]) -> str:
    name = naming.glue_job_name(EXAMPLE.prefix, job)
    command = f"aws glue start-job-run --job-name {name}"
    return f"{command} --arguments '{json.dumps(given)}'" if given else command


if __name__ == "__main__":
    PAGE.write_text(page())
