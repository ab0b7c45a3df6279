"""Permissions of the job that compares the lake with the source."""

from __future__ import annotations

from collections.abc import Iterable

from cdclake.plan import Plan
from cdclake.stacks.constructs import job_grants
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.source_stack import SourceOutputs
from cdclake.stacks.streaming_stack import StreamingOutputs


def verify_grants(
    plan: Plan,
    *,
    lake: LakeOutputs,
    streaming: StreamingOutputs,
    source: SourceOutputs,
    runs: Iterable[str],
    groups: str,
) -> list[Grant]:
    """Allow reading the lake, the topics' offsets and the source, and the salt of hashes.

    Of topics that Firehose reads it also reads records, in consumer groups with the prefix
    `groups`, and finds those of erased keys. `runs` are the jobs that it runs first.
    """
    if plan.deliveries:
        of_topics, secrets = streaming.grant_read_topics(groups), source.grant_erase_rows()
    else:
        of_topics, secrets = streaming.grant_describe_topics(), source.grant_read_login_and_salt()
    # The quarantine may have events that it has to decode.
    withholds = any(table.withholds for table in plan.tables)
    return [
        *job_grants.runs_jobs(runs),
        *lake.grant_read_tables(),
        *of_topics,
        *secrets,
        *(streaming.grant_read_schemas() if withholds else []),
    ]
