"""The page `docs/recorded-requests.md`: permissions that recorded requests used, and the others.

`python -m tests.recorded_requests.page` writes it; a unit test fails if it is out of date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from cdclake.deployed_jobs import AT_KAFKA, JOBS
from tests.recorded_requests.kafka_audit import CONNECTOR
from tests.recorded_requests.reasons import (
    REFUSED,
    UNRECORDED,
    UNRECORDED_CALLS,
    UNRECORDED_OF_CONNECTOR,
)
from tests.recorded_requests.record import READER, Requests, known
from tests.recorded_requests.record_functions import called
from tests.source_tree import PROJECT

PAGE = PROJECT / "docs" / "recorded-requests.md"
_SERVICES = {
    "s3": "S3",
    "glue": "Glue",
    "secretsmanager": "Secrets Manager",
    "kafka-cluster": "Kafka",
}
_INTRODUCTION = """\
# Recorded requests

`make record-requests` runs every job of the [jobs page](jobs.md), the connector and a reader on a
local lake, and records each request to S3, Glue, Secrets Manager and Kafka with its caller. A test
evaluates each against the policies of the synthesized templates, with resources and conditions
([what that proves](deployment.md#what-is-proved-and-what-that-cannot-show)). **Nothing here has run
on AWS.** This page is generated from the [recording](../tests/recorded_requests/requests.json).

## Distinct requests

Two requests are the same if role, action and pattern of the resource are the same: names that a run
makes up are `*` in a pattern.
"""
_FUNCTIONS = """\
## Functions

Their [calls](../tests/recorded_requests/functions.json) are recorded in their tests, without
resources.
"""
_UNUSED = """\
## Permissions that no request used

A test fails if a role has a permission that is neither used nor in these tables.
"""


def page() -> str:
    """Return the page's text."""
    return "".join(f"{line}\n" for line in _lines())


def distinct(requests: Requests) -> set[tuple[str, str, str]]:
    """Role, action and resource pattern of every recorded request."""
    return {(role, *call) for role, calls in requests.items() for call in calls}


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield from _table(("caller", *_SERVICES.values(), "all"), _counts(known()))
    yield _FUNCTIONS
    calls = {function: sorted(made) for function, made in called().items()}
    rows = [(f"`{of}`", str(len(made)), _code(made)) for of, made in calls.items()]
    yield from _table(("function", "distinct calls", "calls"), rows)
    yield "## Requests that are refused on purpose"
    yield ""
    refused = [
        (f"`{who}`", f"`{does}`", f"`{on}`", why) for (who, does, on), why in REFUSED.items()
    ]
    yield from _table(("job", "action", "resource", "why it goes on"), refused)
    yield _UNUSED
    yield from _table(("role", "action", "resource", "reason"), _unused_of_jobs())
    yield "Of the connector, on its cluster:"
    yield ""
    of_connector = [
        (f"`{action}`", f"`{on}`" if on else "the cluster", reason)
        for (action, on), reason in UNRECORDED_OF_CONNECTOR.items()
    ]
    yield from _table(("action", "resource", "reason"), of_connector)
    yield "Of the functions:"
    yield ""
    of_functions = [(f"`{of}`", f"`{call}`", why) for (of, call), why in UNRECORDED_CALLS.items()]
    yield from _table(("function", "call", "reason"), of_functions)


def _counts(requests: Requests) -> Iterator[Sequence[str]]:
    of_service = Counter((role, action.partition(":")[0]) for role, action, _ in distinct(requests))
    for role in requests:
        counts = [of_service[role, service] for service in _SERVICES]
        yield _named(role), *map(str, counts), str(sum(counts))
    totals = [sum(of_service[role, service] for role in requests) for service in _SERVICES]
    yield "**all**", *map(str, totals), f"**{sum(totals)}**"


def _named(role: str) -> str:
    names = {CONNECTOR: "the connector", READER: "a person who runs `cdclake sql`"}
    return names.get(role, f"`{role}`")


def _unused_of_jobs() -> Iterator[Sequence[str]]:
    groups = {JOBS: "every job", AT_KAFKA: "jobs at Kafka"}
    for jobs, action, on, reason in UNRECORDED:
        where = "any that it has" if on == "*" else f"`{on}`"
        yield groups.get(jobs) or _code(jobs), f"`{action}`", where, reason


def _code(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
