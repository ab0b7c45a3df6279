"""Check for a deployment: the connector's configuration fits its stack's template."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

from cdclake.config import literals
from cdclake.config.document import Document
from cdclake.config.problems import Problem
from cdclake.debezium.deployed_connector import deployed_config
from cdclake.plan import Plan

# CloudFormation allows 1,000,000 bytes per template (its user guide, "Understand quotas"), and the
# stack's other resources take about 27,000. Kafka Connect writes the configuration as one record,
# which may have 1,048,576 bytes (the default of its producer's `max.request.size`).
MAX_CONFIGURATION_BYTES = 950_000


def check_connector_size(document: Document, plan: Plan) -> Iterator[Problem]:
    """Check that the configuration fits; report the first table that does not."""
    size = _bytes(plan)
    if size <= MAX_CONFIGURATION_BYTES:
        return
    # What routes the tables of domains to their topics refers to all tables.
    unrouted = replace(plan, deliveries=())
    room = MAX_CONFIGURATION_BYTES - (size - _bytes(unrouted))
    index = bisect_left(
        range(1, len(plan.tables)),
        True,
        key=lambda count: _bytes(replace(unrouted, tables=plan.tables[:count])) > room,
    )
    table = plan.tables[index]
    keys = {literals.parse_table_key(key): key for key in document.mapping("tables")}
    spelled = keys[table.schema, table.table]
    yield document.problem(
        ("tables", spelled),
        f"the connector's configuration would have {size:,} bytes: it names every column, and from"
        f" {spelled!r} on exceeds the {MAX_CONFIGURATION_BYTES:,} that fit a template of"
        " CloudFormation and a record of Kafka Connect",
        "declare this table and those below in a second pipeline, or exclude columns",
    )


def _bytes(plan: Plan) -> int:
    """Return the size of the configuration in JSON; addresses have some length."""
    config = deployed_config(
        plan,
        plan.name,
        source=("h" * 100, 5432),
        login="l" * 100,
        epoch=1,
        heap_bytes=1,
        region="us-gov-west-1",
    )
    return len(json.dumps(config, indent=1))
