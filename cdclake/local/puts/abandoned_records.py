"""Refusal of a plan that abandons records: those that wait, and those that failed."""

from __future__ import annotations

import shlex
from typing import Any

from cdclake import naming
from cdclake.errors import InputError
from cdclake.firehose.redrive_stream import redrive_stream
from cdclake.local.firehose.journal import Journal, journal_file
from cdclake.local.lake.lake import LakeState, LocalLake, describe_lake
from cdclake.local.process.home import Home
from cdclake.local.puts.put_figures import not_delivered
from cdclake.plan import Plan
from cdclake.redrive.objects import error_prefix, failed_prefixes


def refuse_to_leave(home: Home, before: LakeState, plan: Plan) -> None:
    """Raise InputError if the plan removes a Direct PUT stream that has undelivered records."""
    file = journal_file(home)
    if not before.plan or not file.exists():
        return
    journal = Journal(file)
    for name in _direct(Plan.from_json(before.plan)) - _direct(plan):
        _refuse(name, journal.waiting(name), before)


def refuse_to_abandon(home: Home, before: LakeState, plan: Plan) -> None:
    """Raise InputError if the plan abandons records that the local AWS of a running lake has.

    They are undelivered records of a Kinesis stream that the plan removes, or failed and redriven
    ones below an error prefix that it replaces.
    """
    if not before.plan:
        return
    lake = describe_lake(home, before)
    for name in _kinesis(lake.plan) - _kinesis(plan):
        _refuse(name, not_delivered(lake, name), before)
    old, new = error_prefix(lake.plan), error_prefix(plan)
    # Without any stream, failed records stay until they expire.
    if old and new and old != new and _has_objects(lake, old):
        raise InputError(
            f"`firehose: error_prefix` changed from {old!r} to {new!r}, but there are records below"
            f" s3://{lake.bucket}/{old}/, which no command would find",
            f"restore `error_prefix: {old}`",
        )


def _refuse(stream: str, waiting: int, before: LakeState) -> None:
    """Raise InputError if records of the stream wait."""
    if waiting:
        file_before = shlex.quote(before.pipeline_file)
        raise InputError(
            f"{waiting} records of the stream {stream} are not delivered yet, and the pipeline"
            " file no longer has this stream",
            f"run `cdclake up {file_before}`, wait until they are delivered (`waiting` in `cdclake"
            " status`, except for redriven rows), then run this command again",
        )


def _direct(plan: Plan) -> set[str]:
    redriven = redrive_stream(plan)
    return {
        naming.delivery_stream_name(plan.name, stream.name)
        for stream in (*plan.streams, *([redriven] if redriven else []))
        if stream.source == "direct_put"
    }


def _kinesis(plan: Plan) -> set[str]:
    return {
        naming.kinesis_stream_name(plan.name, stream.name)
        for stream in plan.put_streams
        if stream.source == "kinesis"
    }


def _has_objects(lake: LocalLake, folder: str) -> bool:
    s3: Any = lake.client("s3")
    listed = (
        s3.list_objects_v2(Bucket=lake.bucket, Prefix=prefix, MaxKeys=1)
        for prefix in failed_prefixes(folder)
    )
    return any(answer.get("Contents") for answer in listed)
