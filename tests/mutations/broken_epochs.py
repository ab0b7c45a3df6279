"""Ways to break the change of epochs: readers lose rows too early, or keep them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SNAPSHOT = "glue_jobs/stream/epoch_snapshot.py"
_PROGRESS = "glue_jobs/control/progress.py"
_APPLY = "glue_jobs/apply/prepared_changes.py"
_TESTS = ("tests/unit/jobs/test_epoch_snapshot.py",)
_SPARK_TESTS = ("tests/spark/test_epochs.py",)
_LOAD_TESTS = ("tests/unit/local/test_table_loads.py",)
_DELIVERED_TESTS = ("tests/unit/verify/test_firehose_offsets.py",)
_REQUEST_TESTS = ("tests/unit/jobs/test_failed_requests.py",)
_VERIFY_TESTS = ("tests/unit/verify/test_obstacles.py",)

EPOCHS = (
    Mutation(
        "the first streamed heartbeat proves that the snapshot has arrived", _TESTS,
        ((_SNAPSHOT, "is_complete = has_settled and", "is_complete ="),),
    ),
    Mutation(
        "a snapshot that is taken again is complete like the first", _TESTS,
        ((_SNAPSHOT, "progress.snapshot, progress.streaming_since_ms = start, 0",
          "progress.snapshot = start"),),
    ),
    Mutation(
        "a snapshot that is taken again leaves the rows of the first", _TESTS,
        ((_SNAPSHOT, "lsn = heartbeat.lsn if heartbeat.is_read else 0", "lsn = 0"),),
    ),
    Mutation(
        "a late heartbeat of the epoch before ends the snapshot", _TESTS,
        ((_SNAPSHOT, "if heartbeat.epoch < progress.epoch:", "if False:"),),
    ),
    Mutation(
        "a table is swept before it has read its rows", _TESTS,
        ((_SNAPSHOT, "if has_all else place.swept", "if True else place.swept"),),
    ),
    Mutation(
        "a table that joins is swept", _TESTS,
        ((_PROGRESS, "TableProgress(swept=self.complete_snapshot)",
          "TableProgress()"),),
    ),
    Mutation(
        "a replay does not know of the epoch's snapshot", (*_SPARK_TESTS, "-k", "old_rows_stay"),
        (("glue_jobs/stream/batch.py", "if not replaced.is_swept:", "if False:"),),
    ),
    Mutation(
        "a table that joins later counts as read by the snapshot", _TESTS,
        (("glue_jobs/control/table_progress.py", ' and raw.get("snapshot_ends"):', ":"),),
    ),
    Mutation(
        "a state is swept before it has the snapshot's rows", (*_SPARK_TESTS, "-k", "late_state"),
        ((_APPLY, "    if is_sweep(floor):\n        # The", "    if False:\n        # The"),),
    ),
    Mutation(
        "a large value of the epoch before stays", (*_SPARK_TESTS, "-k", "value_of"),
        ((_APPLY, "if _has_replaced_values(update, floor):",
          "if False:"),),
    ),
    Mutation(
        "a sweep's stamp is committed before the rebuild", (*_SPARK_TESTS, "-k", "crash_before"),
        ((_APPLY, "    if _has_replaced_values(update, floor):\n        rebuild",
          "    update.commit_stamp(replace(until, carried=applied.carried))\n"
          "    if _has_replaced_values(update, floor):\n        rebuild"),),
    ),
    Mutation(
        "a delivered table is swept before its rows", (*_SPARK_TESTS, "-k", "delivered"),
        (("glue_jobs/apply/firehose_changelog.py", 'return floor if has_all else ""',
          "return floor"),),
    ),
    Mutation(
        "a delivered table is swept while its append is retried",
        (*_SPARK_TESTS, "-k", "retried"),
        (("glue_jobs/apply/firehose_changelog.py", "passed[p] + delivery_s < now", "True"),),
    ),
    Mutation(
        "a topic that was created again counts as the one of before", _TESTS,
        ((_PROGRESS, "if topic in known and known[topic].id == state.id", "if topic in known"),),
    ),
    Mutation(
        "events of a lost topic count as those of the present one", _DELIVERED_TESTS,
        (("cdclake/firehose/arrival.py", " AND {naming.EPOCH} >= {epoch}", ""),),
    ),
    Mutation(
        "verify awaits records of a snapshot for ever", _DELIVERED_TESTS,
        (("glue_jobs/verify/firehose_offsets.py", "progress.completed_at + DELIVERY_S",
          "float('inf')"),),
    ),
    Mutation(
        "a new epoch ends a resync before the table has read its snapshot", _REQUEST_TESTS,
        (("glue_jobs/operations/executor.py",
          "if progress.is_replacing(stream.table, progress.epoch):", "if False:"),),
    ),
    Mutation(
        "a table lacks rows after the snapshot of a new epoch", _REQUEST_TESTS,
        (("glue_jobs/operations/executor.py", "mine.warning = mine.incomplete = None",
          "mine.warning = None"),),
    ),
    Mutation(
        "a table has loaded with the rows of both epochs", _LOAD_TESTS,
        (("cdclake/local/lake/table_loads.py", "elif table.name in replacing:", "elif False:"),),
    ),
    Mutation(
        "verify compares the rows of both epochs", _VERIFY_TESTS,
        (("glue_jobs/verify/catch_up.py",
          "behind += _replacing(progress, waited, max(self.epoch, progress.epoch))",
          "behind += []"),),
    ),
)  # fmt: skip
