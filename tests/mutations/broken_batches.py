"""Ways to break what a batch, a replay or a restart does around the engine."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MICRO_BATCH = "tests/spark/test_micro_batch.py"

_AFTER_READ = "tests/spark/test_replay_after_read.py"
_REFUSED_READS = "tests/spark/test_refused_reads.py"
_QUARANTINED = "glue_jobs/stream/quarantined_rows.py"
_STALE = "glue_jobs/operations/stale_rows.py"
_BATCH = "glue_jobs/stream/batch.py"
_TABLE_STREAM = "glue_jobs/stream/table_stream.py"
_METRICS_TESTS = ("tests/unit/deployed/test_metrics.py",)
_SCHEDULER = "glue_jobs/stream/apply_scheduler.py"
_THINNING_TESTS = ("tests/unit/jobs/test_inline_expiration.py",)
_SNAPSHOTS, _SNAPSHOT_TESTS = (
    "glue_jobs/maintenance/snapshot_expiration.py",
    ("tests/spark/test_snapshots.py",),
)
_BETWEEN = "glue_jobs/stream/inline_maintenance.py"
_PACKING, _PACKING_TESTS = (
    "glue_jobs/stream/inline_compaction.py",
    ("tests/unit/jobs/test_inline_compaction.py",),
)

BATCHES = (
    Mutation(
        "rows before the first heartbeat are of no epoch", (MICRO_BATCH, "-k", "heartbeat"),
        ((_TABLE_STREAM, "changelog.stamp.epoch) or min(_epochs(parts), default=0)",
          "changelog.stamp.epoch)"),),
    ),
    Mutation(
        "a query that fails does not publish its last refused events", _METRICS_TESTS,
        (("glue_jobs/stream/streaming_query.py",
          "        gauges.publish(None, is_end=False)\n", ""),),
    ),
    Mutation(
        "a paused run publishes nothing", _METRICS_TESTS,
        (("glue_jobs/stream/streaming_query.py",
          "        _gauges(control, arguments, plan).publish(None)\n", ""),),
    ),
    Mutation(
        "a new process takes refused events for published", _METRICS_TESTS,
        (("glue_jobs/stream/gauges.py", "content = {} if stored is None else stored.content",
          "content = Progress.load(self._control).refused.to_json()"),),
    ),
    Mutation(
        "refused events are noted as published before they are", _METRICS_TESTS,
        (("glue_jobs/stream/gauges.py", "reported, self._gathered = self._read_reported()",
          "reported, self._reported = self._read_reported()"),),
    ),
    Mutation(
        "replay what is older than its tombstone", ("tests/spark/test_repairs.py", "-k", "purged"),
        (("glue_jobs/operations/replay.py", '"t") & is_old', '"t") & F.lit(False)'),),
    ),
    Mutation(
        "replay restores a row that a resync did not find", (_AFTER_READ, "-k", "a_resync"),
        (("glue_jobs/operations/executor.py",
          "    mine.note_complete_read(request.position)\n", ""),),
    ),
    Mutation(
        "replay deletes rows that were read since", (_AFTER_READ, "-k", "a_resync"),
        ((_STALE, "known = with_quarantined(log, stream.lake, table, stream.plan, position)",
          "known = log.limit(0)"),),
    ),
    Mutation(
        "delete as stale what was read and refused", (_REFUSED_READS, "-k", "stays"),
        ((_STALE, "known = with_quarantined(log, stream.lake, stream.table, stream.plan, position)",
          "known = with_withheld(log, stream.lake, stream.table, stream.plan)"),),
    ),
    Mutation(
        "keep a row whose delete was refused", (_REFUSED_READS, "-k", "delete_was_refused"),
        ((_QUARANTINED, "{naming.OP} <> 'd' AND", ""),),
    ),
    Mutation(
        "a replayed row's delete hides the first row of a snapshot",
        (_AFTER_READ, "-k", "earlier_epoch"),
        ((_STALE, "at = replace(at, lsn=max(0, at.lsn - 1))", "pass"),),
    ),
    Mutation(
        "replay what may have collapsed",
        ("tests/spark/test_replayed_values.py", "-k", "older_than_a_collapse"),
        (("cdclake/iceberg/collapse.py", "if table.toastable else None", "if False else None"),),
    ),
    Mutation(
        "a lost progress begins where Kafka does", (MICRO_BATCH, "-k", "lost_progress"),
        ((_BATCH, "if self._progress.batch < 0:", "if False:"),),
    ),
    Mutation(
        "a state that waits its time never has its turn",
        ("tests/unit/jobs/test_apply_scheduler.py",),
        ((_SCHEDULER, "max(fitting, int(self._owed), ", "max(fitting, "),),
    ),
    Mutation(
        "a batch without events brings all states up", ("tests/unit/jobs/test_apply_scheduler.py",),
        ((_SCHEDULER, "if len(lacking) * self._state_seconds <= room:",
          "if not arriving or len(lacking) * self._state_seconds <= room:"),),
    ),
    Mutation(
        "a lacking file is the lake's failure", (MICRO_BATCH, "-k", "lacks_a_file"),
        (("glue_jobs/iceberg/error_policy.py", "(FileMissing, Kind.FILE_MISSING)",
          "(FileMissing, Kind.OTHER)"),),
    ),
    Mutation(
        "a request to resume dies with its batch", (MICRO_BATCH, "-k", "request_to_resume"),
        (("glue_jobs/control/requests.py",
          "            progress.save(control)", "            pass"),),
    ),
    Mutation(
        "no state is packed while it streams", (MICRO_BATCH, "-k", "packed"),
        ((_BATCH, "(self._compaction.chosen, self._compaction.compact),", ""),),
    ),
    Mutation(
        "pack or thin what another job holds", (*_PACKING_TESTS, *_THINNING_TESTS),
        ((_BETWEEN, "if held:", "if True:"),),
    ),
    Mutation(
        "pack what others maintain", _PACKING_TESTS,
        ((_PACKING, 'if stream.table.maintenance == "own"', "if True"),),
    ),
    Mutation(
        "no snapshot is thinned while they stream", (MICRO_BATCH, "-k", "thinned"),
        ((_BATCH, "(self._expiration.chosen, self._expiration.expire),", ""),),
    ),
    Mutation(
        "forget the newest stamp's snapshot", _SNAPSHOT_TESTS,
        ((_SNAPSHOTS, "if stamped.stamped_at_ms is not None:", "if False:"),),
    ),
    Mutation(
        "forget snapshots without a tag for their hour", _SNAPSHOT_TESTS,
        ((_SNAPSHOTS, "if not table.refs().containsKey(tag):", "if False:"),),
    ),
    Mutation(
        "a quiet table's tag ages from the commit", (*_SNAPSHOT_TESTS, "-k", "last_hour"),
        ((_SNAPSHOTS, "age = until + KEEP_HOURLY_FOR - committed", "age = KEEP_HOURLY_FOR"),),
    ),
)  # fmt: skip
