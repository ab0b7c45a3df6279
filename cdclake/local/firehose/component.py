"""The local Firehose as a component of a lake: start, stop, and wait for delivery."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse

from cdclake import naming
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.progress import Progress
from cdclake.local.components.installed import environment, shell
from cdclake.local.firehose.fault_injection import FaultInjector
from cdclake.local.firehose.journal import Journal, journal_file
from cdclake.local.lake import stack
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import LakeState, LocalLake, aws_environment
from cdclake.local.lake.topics import end_offsets
from cdclake.local.process.home import write_atomically
from cdclake.local.process.process_spec import Spec
from cdclake.local.process.supervisor_client import log_tail
from cdclake.places import IMPORT_ROOT
from cdclake.plan import Plan
from cdclake.zip_files import transform_files

NAME = naming.FIREHOSE_COMPONENT
READY_TIMEOUT_S = 60.0
DELIVERY_TIMEOUT_S = 300.0
_POLL_S = 0.5
FAULTS_KEY = "CDCLAKE_FIREHOSE_TROUBLE"  # in the environment of `up`, like 7:shuffle,fail


def requested_faults() -> str:
    """Return the faults to inject from the environment; raise InputError if they are invalid."""
    spelled = os.environ.get(FAULTS_KEY, "")
    FaultInjector.parse(spelled)
    return spelled


def run(lake: LocalLake) -> None:
    """Start or heal the local Firehose for the plan's streams, or stop it if there are none.

    The changelogs must exist: Firehose creates no tables.
    """
    if not lake.plan.streams:
        stack.stop_component(lake.home, NAME)
        return
    stack.run_component(lake.home, spec(lake), lambda: answers(lake), READY_TIMEOUT_S)


def answers(lake: LocalLake) -> bool:
    """Return True once the API answers; from then on Firehose delivers."""
    return bool(lake.client("firehose").list_delivery_streams()["DeliveryStreamNames"])


def deliver_what_was_sent(lake: LocalLake) -> None:
    """Wait until all records in Kafka are delivered with the previous plan.

    They have no values of new columns, so the function must decode them with the previous plan.
    Raise ComponentFailed on a timeout.
    """
    before = _previous_plan(lake)
    if not before.deliveries:
        return
    run(replace(lake, plan=before))
    ends = end_offsets(lake.kafka, [stream.topic for stream in before.deliveries])
    deadline = time.monotonic() + DELIVERY_TIMEOUT_S
    while not _is_delivered(lake, before, ends):
        if time.monotonic() > deadline:
            raise ComponentFailed(
                "records sent with the previous pipeline file were not delivered within"
                f" {DELIVERY_TIMEOUT_S:.0f} s",
                f"read the log {lake.home.log(NAME)}, then run `cdclake up` again",
                component=NAME,
                log_tail=log_tail(Path(lake.home.log(NAME))),
            )
        time.sleep(_POLL_S)


def end_that_of_before(lake: LocalLake) -> None:
    """Stop the local Firehose if the plan changes, before its function sees a new kind of event."""
    if _previous_plan(lake) != lake.plan:
        stack.stop_component(lake.home, NAME)


def _previous_plan(lake: LocalLake) -> Plan:
    return Plan.from_json(LakeState.load(lake.home).plan)


def _is_delivered(lake: LocalLake, plan: Plan, ends: dict[str, dict[int, int]]) -> bool:
    redriven = naming.delivery_stream_name(plan.name, naming.REDRIVE)
    if Journal(journal_file(lake.home)).waiting(redriven):
        return False
    arrived = arrived_offsets(lake.kafka, plan, Progress())
    return all(
        arrived[stream.tables[0]].get(partition, 0) >= end
        for stream in plan.deliveries
        for partition, end in ends[stream.topic].items()
    )


def spec(lake: LocalLake) -> Spec:
    """Return the process to run; another plan, transform or faults make another process."""
    plan = plan_file(lake)
    return Spec(
        name=NAME,
        argv=(
            *(sys.executable, "-m", "cdclake.local.firehose.firehose_server"),
            *("--home", str(lake.home.path), "--plan", str(plan)),
            *("--transforms", str(copy_transforms(lake)), "--faults", requested_faults()),
        ),
        env=environment(**aws_environment(lake.endpoints)),
        shell=shell(),
        cwd=str(IMPORT_ROOT),
        port=urlparse(lake.endpoints.firehose).port,
        log=str(lake.home.log(NAME)),
    )


def copy_transforms(lake: LocalLake) -> Path:
    """Copy the users' transforms to a folder named by their content; return it."""
    source = Path(lake.state.pipeline_file).parent
    files = {
        f"{put.name}/{name}": content
        for put in lake.plan.puts
        if put.transform
        for name, content in transform_files(source / put.transform).items()
    }
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)} ".encode() + content)
    folder = lake.home.run / f"transforms-{digest.hexdigest()[:16]}"
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def plan_file(lake: LocalLake) -> Path:
    """Write the plan to a file named by its content, so that the previous one stays usable."""
    text = lake.plan.to_json()
    file = lake.home.run / f"firehose-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    write_atomically(file, text)
    return file
