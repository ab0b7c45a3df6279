"""Checks that the queries of domains route every row to the changelog of its table."""

from __future__ import annotations

from collections.abc import Iterator

from cdclake.config.document import Document, Location
from cdclake.config.problems import Problem, Refused
from cdclake.config.routing import Nowhere, destinations
from cdclake.config.sample_rows import sample_rows
from cdclake.firehose.stream import DeliveryStream
from cdclake.plan import Plan

_REMEDY = "distinguish the tables by `has(...)`: a row has every column of its changelog"


def has_routes(document: Document) -> bool:
    """Check whether a domain has a query; only then must the file be resolved."""
    domains = document.mapping("firehose", "domains").values()
    return any(isinstance(domain, dict) and "route" in domain for domain in domains)


def check_routes(document: Document, plan: Plan) -> Iterator[Problem]:
    """Report the first misrouted row of each domain; the file must be valid otherwise."""
    for stream in plan.deliveries:
        if stream.route is None:
            continue
        location = ("firehose", "domains", stream.name, "route")
        try:
            yield from _check_route(document, location, plan, stream)
        except Refused as refused:
            yield document.problem(location, refused.message, refused.remedy)


def _check_route(
    document: Document, location: Location, plan: Plan, stream: DeliveryStream
) -> Iterator[Problem]:
    tables = [plan.table(name) for name in stream.tables]
    samples = [(t, op, row) for t in tables for op, row in sample_rows(t, plan).items()]
    found = destinations(stream.route or "", [row for _, _, row in samples])
    logs = {table.changes for table in tables}
    for (table, op, _), destination in zip(samples, found, strict=True):
        wrong = None
        if isinstance(destination, Nowhere):
            wrong = str(destination)
        elif (destination.database, destination.table) != (plan.lake_database, table.changes):
            known = "" if destination.table in logs else ", which is not a changelog of the domain"
            wrong = f"the query sends it to {destination.database}.{destination.table}{known}"
        elif destination.operation != "insert":
            wrong = f"the query would {destination.operation}, but a changelog is append-only"
        if wrong is not None:
            said = f"misrouted row with cdc_op {op!r} of {table.source!r}: {wrong}"
            wanted = f"send it to {plan.lake_database}.{table.changes}; {_REMEDY}"
            yield document.problem(location, said, wanted)
            return
