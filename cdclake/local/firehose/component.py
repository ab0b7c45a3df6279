"""The stand-in for Amazon Data Firehose, for a lake with tables that it delivers."""

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
from cdclake.local.components.installed import environment
from cdclake.local.firehose.fault_injection import Trouble
from cdclake.local.firehose.journal import Journal, journal_file
from cdclake.local.lake import stack
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import LakeState, LocalLake, aws_environment
from cdclake.local.lake.topics import end_offsets
from cdclake.local.process.home import PROJECT, write_atomically
from cdclake.local.process.process_spec import Spec
from cdclake.local.process.supervisor_client import log_tail
from cdclake.plan import Plan

NAME = naming.FIREHOSE_COMPONENT
READY_TIMEOUT_S = 60.0
DELIVERY_TIMEOUT_S = 300.0
_POLL_S = 0.5
TROUBLE_KEY = "CDCLAKE_FIREHOSE_TROUBLE"  # of the environment of `up`: like 7:shuffle,fail


def asked_trouble() -> str:
    """The trouble that the environment asks for; InputError for what is none."""
    spelled = os.environ.get(TROUBLE_KEY, "")
    Trouble.parse(spelled)
    return spelled


def run(lake: LocalLake) -> None:
    """Start or heal it for the plan's streams, or stop it if there are none.

    The logs must be there: Firehose makes none.
    """
    if not lake.plan.streams:
        stack.stop_component(lake.home, NAME)
        return
    stack.run_component(lake.home, spec(lake), lambda: answers(lake), READY_TIMEOUT_S)


def answers(lake: LocalLake) -> bool:
    """Whether its API does; it delivers from then on."""
    return bool(lake.client("firehose").list_delivery_streams()["DeliveryStreamNames"])


def deliver_what_was_sent(lake: LocalLake) -> None:
    """Wait until all that Kafka has is delivered under the plan of before.

    What was sent before has no values of new columns, so the function of before has to take it.
    ComponentFailed if that does not end.
    """
    before = _plan_of_before(lake)
    if not before.deliveries:
        return
    run(replace(lake, plan=before))
    ends = end_offsets(lake.kafka, [stream.topic for stream in before.deliveries])
    deadline = time.monotonic() + DELIVERY_TIMEOUT_S
    while not _is_delivered(lake, before, ends):
        if time.monotonic() > deadline:
            raise ComponentFailed(
                "what was sent under the file of before was not delivered in"
                f" {DELIVERY_TIMEOUT_S:.0f} s",
                f"read its log {lake.home.log(NAME)}, then run `cdclake up` again",
                component=NAME,
                log_tail=log_tail(Path(lake.home.log(NAME))),
            )
        time.sleep(_POLL_S)


def end_that_of_before(lake: LocalLake) -> None:
    """Stop it before the first event under another plan, which its function would not know."""
    if _plan_of_before(lake) != lake.plan:
        stack.stop_component(lake.home, NAME)


def _plan_of_before(lake: LocalLake) -> Plan:
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
    """Its process; of another plan, or with other trouble, another one."""
    plan = plan_file(lake)
    return Spec(
        name=NAME,
        argv=(
            *(sys.executable, "-m", "cdclake.local.firehose.firehose_server"),
            *("--home", str(lake.home.path), "--plan", str(plan), "--trouble", asked_trouble()),
        ),
        env=environment(**aws_environment(lake.endpoints)),
        cwd=str(PROJECT),
        port=urlparse(lake.endpoints.firehose).port,
        log=str(lake.home.log(NAME)),
    )


def plan_file(lake: LocalLake) -> Path:
    """The plan as a file of its own, so that a process of the plan before can still be started."""
    text = lake.plan.to_json()
    file = lake.home.run / f"firehose-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    write_atomically(file, text)
    return file
