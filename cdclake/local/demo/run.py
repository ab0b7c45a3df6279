"""The demo from an empty folder to the proof, as timed steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cdclake import naming
from cdclake.config.resolve import load_plan
from cdclake.local import lifecycle
from cdclake.local.components import class_archive, connect, kafka
from cdclake.local.components.installed import java
from cdclake.local.demo.business import Business, applied, do_business, maintained, run_over_tables
from cdclake.local.demo.changed_row import changed_row
from cdclake.local.demo.measure import Measured, measure
from cdclake.local.demo.pipeline_stages import Hops
from cdclake.local.demo.proof import prove, verdict
from cdclake.local.demo.shop import Shop
from cdclake.local.demo.show import Show, step
from cdclake.local.demo.tasks import Stopwatch
from cdclake.local.demo.writer import Writer, open_shop
from cdclake.local.lake import stack
from cdclake.local.lake.lake import open_lake, running_source
from cdclake.local.lake.spark_jobs import CLASSES, STREAM
from cdclake.local.process.home import Home
from cdclake.places import RESOURCES

# The same tables, by delivery.
PIPELINES = {
    "stream": RESOURCES / "pipelines" / "shop.yaml",
    "firehose": RESOURCES / "pipelines" / "shop_firehose.yaml",
}


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `cdclake demo`."""

    seconds: float
    rate: float
    seed: int
    delivery: str  # of PIPELINES
    keep: bool  # leave the lake running


def run_demo(home: Home, options: Options, watch: Stopwatch, show: Show) -> dict[str, Any]:
    """Run the whole demo and return the contract's answer."""
    pipeline = PIPELINES[options.delivery]
    plan = load_plan(pipeline)
    shop = Shop(options.seed)
    with step(show, "start the lake"):
        lifecycle.up_bare(home, plan, None)
    with step(show, "open the shop") as said:
        opening = open_shop(running_source(home)[0], shop.opening())
        said.append(f"{opening.total:,} initial rows")
    with step(show, "stream its tables"):
        lifecycle.up(home, plan, str(pipeline), None)
    lake = open_lake(home)
    writer = Writer(lake.dsn, opening, shop.transactions(), options.rate)
    hops = Hops(lake, writer)
    try:
        business = do_business(lake, writer, hops, options.seconds, show)
    finally:
        writer.stop()
    if plan.deliveries:
        with step(show, "apply") as said:
            # The schedule would run this job later. Afterwards `verify` checks the states alone.
            said.append(applied(run_over_tables(lake, naming.APPLY_JOB)))
    with step(show, "maintain") as said:
        # After business hours: on two cores a second Spark would slow down the stream.
        maintenance = run_over_tables(lake, naming.MAINTAIN_JOB)
        said.append(maintained(maintenance))
    with step(show, "verify at rest") as said:
        proof = prove(lake)
        said.append(verdict(proof))
    show.look(hops.look())  # the final state stays on the screen
    with step(show, "measure"):
        measured, changed = measure(lake), changed_row(lake)
    if not options.keep:
        if class_archive.is_missing(CLASSES, java(home)):
            with step(show, "keep Java's classes for the next start"):
                _keep_classes(home)
        with step(show, "stop everything"):
            stack.shut_down(home)
    return {**_answer(watch, business, proof, measured, changed), "maintenance": maintenance}


def _keep_classes(home: Home) -> None:
    archives = {kafka.NAME: kafka.NAME, connect.NAME: connect.NAME, STREAM: CLASSES}
    for part in stack.components(home):
        if part["name"] in archives and part["pid"] is not None:
            class_archive.keep(archives[part["name"]], java(home), part["pid"])


def _answer(
    watch: Stopwatch, business: Business, proof: dict[str, Any], measured: Measured,
    changed: dict[str, Any] | None,
) -> dict[str, Any]:  # fmt: skip
    opened_at = watch.started_at + watch.steps["open for business"][0]
    tables = [
        {
            **table,
            "inserts": measured.seen[table["table"]].inserts,
            "updates": measured.seen[table["table"]].updates,
            "deletes": measured.seen[table["table"]].deletes,
        }
        for table in proof["tables"]
    ]
    return {
        **proof,
        "ok": proof["ok"] and business.while_writing["ok"],
        "tables": tables,
        **measured.figures(watch.started_at, opened_at),
        "events_expected": sum(business.written.events.values()),
        "rows_written": business.written.total,
        "transactions": business.written.transactions,
        "rolled_back": business.written.rolled_back,
        "verified_while_writing": business.while_writing,
        "changed_row": changed,
    }
