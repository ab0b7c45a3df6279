"""Write docs/jobs.md: each deployed job, what it is given, and how it is started by hand.

`python -m scripts.jobs_page` writes the page. A unit test fails as long as it is not the newest,
and tests give the jobs the very arguments that stand on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdclake import naming
from cdclake.deployed_jobs import JOBS, Places, own_arguments, source_words

PAGE = Path(__file__).resolve().parents[1] / "docs" / "jobs.md"

# What stands on the page for what differs from deployment to deployment.
EXAMPLE = Places(
    prefix="shop-prod",
    pipeline="shop",
    state="STATE-BUCKET",
    warehouse="WAREHOUSE-BUCKET",
    plan=f"s3://STATE-BUCKET/{naming.DEPLOYED_PREFIX}/plan-HASH.json",
    brokers="b-1.example:9098,b-2.example:9098",
    source=source_words("db.example", 5432, "shop"),
    login=naming.login_secret("shop-prod"),
    salt=naming.salt_secret("shop-prod"),
    authorities=f"s3://STATE-BUCKET/{naming.DEPLOYED_PREFIX}/rds-ca-HASH.pem",
)


@dataclass(frozen=True, slots=True)
class Described:
    """What the page says of a job; `given` are the arguments of a run that is started by hand."""

    does: str
    begins: str
    given: dict[str, str]


JOBS_DESCRIBED = {
    naming.STREAM_JOB: Described(
        "Reads the pipeline's topics and writes logs, quarantine and states, until it is ended.",
        "The keeper starts it, and starts it again. Under `stream: {mode: scheduled}` it begins by"
        " `schedules.apply`, reads what is there, and ends.",
        {},
    ),
    naming.APPLY_JOB: Described(
        "Merges into each state what its log has ingested since.",
        "By `schedules.apply`, if any table has `apply: scheduled`.",
        {"--tables": "orders", "--run": "by-hand-1"},
    ),
    naming.MAINTAIN_JOB: Described(
        "Purges, collapses, compacts, thins snapshots and removes orphans, log by log and state by"
        " state.",
        "By `schedules.maintain`.",
        {"--tables": "customers,orders", "--run": "by-hand-2"},
    ),
    naming.REBUILD_JOB: Described(
        "Makes each state again from its log, in one commit a table.",
        "By hand only.",
        {"--tables": "orders", "--run": "by-hand-3"},
    ),
    naming.VERIFY_JOB: Described(
        "Compares every row of the source with `<t>_current`, once all that was written has"
        " arrived; a run that finds a difference has failed. On the driver alone, by PostgreSQL and"
        " DuckDB, with packages that Glue installs from the deployment's own bucket.",
        "By hand only.",
        {"--tables": "orders", "--wait": "600", "--sample": "100000", "--run": "by-hand-4"},
    ),
    naming.OPERATE_JOB: Described(
        "Has the stream try quarantined events again (`replay`), stopped tables rejoin (`resume`),"
        " or tables be read again by the connector while everything flows, and what the source does"
        " not have leave the lake (`resync`, of named tables only). Stream and connector must be"
        " running.",
        "By hand only.",
        {"--verb": "resync", "--tables": "orders", "--run": "by-hand-5"},
    ),
}
_MEANINGS = {
    "--plan": "the plan of the pipeline file, as deployed",
    "--control": "leases, progress, requests and reports",
    "--metrics": "the deployment as whose metrics CloudWatch is told",
    "--checkpoint": "the stream's place in Kafka; no other job may read or write there",
    "--brokers": "of IAM access",
    "--kafka_options": "how it signs in, and the beginning of its consumer groups' names",
    "--deployment": "the stream ends between two batches when the keeper wants another one",
    "--source": "where the source is, and that its server is checked",
    "--login": "the secret with the login of the connector's role",
    "--authorities": "who may vouch for the source's server",
    "--mask_salt": "the secret with the salt, if a column has `mask: hash`",
    "--wait": "seconds to wait for what is under way; without it 600",
    "--sample": "compare about so many rows a table; without it all",
    "--offsets": "where Connect keeps how far the connector has read, and which tables again",
    "--verb": "`replay`, `resume` or `resync`",
    "--tables": "names in the lake, parted by commas; without it all",
    "--run": "name of the report that the run writes, `control/reports/<run>.json`",
}
_HEAD = """\
# The jobs on AWS

Made from the code by `make docs`. **Nothing here has ever run on AWS**; tests give the jobs, on the
local lake, the arguments that stand here.

A job is called `<pipeline>-<environment>-<job>`, here `shop-prod-...`. The deployment gives each
job its arguments; a run that is started by hand adds what its own table shows. In Glue's
console: *ETL jobs*, the job, *Actions*, *Run with parameters*, *Job parameters*, one key and value
a line. A run is refused while another one of the job is alive. Logs are in CloudWatch under
`/aws-glue/jobs/<pipeline>-<environment>/<job>/output` and `.../error`.

`cdclake job NAME --target aws --file FILE --environment NAME [--table T]` starts a run, waits for
its end and prints the report, as it does locally; `stream_changes` is started and left running.
`cdclake verify --target aws` runs `verify_tables` and prints what the local one does;
`cdclake replay`, `cdclake resume` and `cdclake resync` with `--target aws` run the job `operate`.

`load_tables` is not deployed: a bulk load ends by setting the connector's offsets, and MSK Connect
lets nobody do so. A file with `snapshot: {mode: bulk}` is refused.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(line for job in JOBS for line in _job(job))])


def _job(job: str) -> Iterator[str]:
    described = JOBS_DESCRIBED[job]
    deployed = own_arguments(job, EXAMPLE)
    yield from (f"## {job}", "", f"{described.does} {described.begins}", "")
    if job == naming.STREAM_JOB:
        deployed["--deployment"] = "HASH"
    yield from _table("set by the deployment", deployed)
    if described.given:
        yield from _table("of a run", described.given)
    yield from ("```sh", _command(job, described.given), "```", "")


def _table(title: str, arguments: dict[str, str]) -> Iterator[str]:
    yield from (f"| {title} | value | what it is |", "|---|---|---|")
    for name, value in arguments.items():
        yield f"| `{name}` | `{value}` | {_MEANINGS[name]} |"
    yield ""


def _command(job: str, given: dict[str, str]) -> str:
    name = naming.glue_job_name(EXAMPLE.prefix, job)
    command = f"aws glue start-job-run --job-name {name}"
    return f"{command} --arguments '{json.dumps(given)}'" if given else command


if __name__ == "__main__":
    PAGE.write_text(page())
