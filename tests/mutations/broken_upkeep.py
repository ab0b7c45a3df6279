"""Ways to break retries, upkeep and columns that follow their source."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_POLICY, _POLICY_TESTS = (
    "glue_jobs/iceberg/error_policy.py",
    ("tests/unit/jobs/test_error_policy.py",),
)
_RETRIES = ("tests/unit/jobs/test_retries.py",)
_KEEPER = ("tests/unit/deployed/test_stream_keeper.py",)
_PROGRESS = "glue_jobs/control/table_progress.py"
_WIDENING = ("tests/unit/iceberg/test_widening.py",)
_UPKEEP = ("tests/spark/test_upkeep.py", "-k", "tombstones")

UPKEEP = (
    Mutation(
        "a throttled service is an unknown error", _POLICY_TESTS,
        ((_POLICY, "Kind.UNAVAILABLE if is_transient_java(classes, message) else Kind.OTHER",
          "Kind.OTHER"),),
    ),
    Mutation(
        "a table that is not found stops for good", _POLICY_TESTS,
        ((_POLICY, "kind = Kind.TABLE_MISSING", "pass"),),
    ),
    Mutation(
        "an unknown Java error fails every table", _POLICY_TESTS,
        ((_POLICY, "if cause is None and _is_unexpected(error):", "if False:"),),
    ),
    Mutation(
        "a JVM without memory holds back one table", _POLICY_TESTS,
        ((_POLICY, "if _JVM_ERROR in classes or _SHUTDOWN.search(message):", "if False:"),),
    ),
    Mutation(
        "a held table is not tried again", _RETRIES,
        ((_PROGRESS, "or (isinstance(life, Held) and life.retry_at <= now)", ""),),
    ),
    Mutation(
        "a held table is tried again at once", _RETRIES,
        ((_PROGRESS, "retry_at = now + pause_after(self.failures, FIRST_RETRY_S, MAX_RETRY_S)",
          "retry_at = now"),),
    ),
    Mutation(
        "pauses do not grow", _RETRIES,
        (("cdclake/backoff.py", "first * (1 << doublings)", "first"),),
    ),
    Mutation(
        "pauses have no jitter", _KEEPER,
        (("cdclake/backoff.py", "random.Random(seed).uniform(0.75, 1.0)", "1.0"),),
    ),
    Mutation(
        "a failing service ends the stream's process", _RETRIES,
        (("glue_jobs/stream/restarts.py", "if cause is None:", "if True:"),),
    ),
    Mutation(
        "a job does not repeat a table", _RETRIES,
        (("glue_jobs/table_jobs/table_job.py",
          "if not pending or time.monotonic() > deadline:", "if True:"),),
    ),
    Mutation(
        "the keeper gives up", _KEEPER,
        (("lambda/stream_keeper/stream_keeper.py",
          'if failures and now < ended(runs[0])', 'if late or failures and now < ended(runs[0])'),),
    ),
    Mutation(
        "the keeper ends scheduled runs", _KEEPER,
        (("lambda/stream_keeper/stream_keeper.py", "paused or not ends_by_itself(run)", "True"),),
    ),
    Mutation(
        "the keeper ignores refused stops", _KEEPER,
        (("lambda/stream_keeper/stream_keeper.py", 'answer.get("Errors", ())', "()"),),
    ),
    Mutation(
        "purge by commit time", _UPKEEP,
        (("glue_jobs/maintenance/actions.py", " AND NOT EXISTS ({young})", ""),),
    ),
    Mutation(
        "purge a tombstone below an event that a view may overlay",
        ("tests/spark/test_upkeep.py", "-k", "overlay"),
        (("glue_jobs/maintenance/actions.py", "    if upkeep.lateness:\n", "    if False:\n"),),
    ),
    Mutation(
        "collapse by commit time",
        ("tests/spark/test_collapse.py", "-k", "newest_of_each_key"),
        (("cdclake/iceberg/collapse.py", "cdc__delete.{naming.INGESTED_AT} >=",
          "cdc__delete.{naming.COMMITTED_AT} >="),),
    ),
    Mutation(
        "a quiet table's stamp is not renewed",
        ("tests/spark/test_stamps.py", "-k", "keeps_its_stamps"),
        (("glue_jobs/stream/stamp_renewal.py",
          "read_from=stamped.snapshot_id, stamp=stamped.stamp", "read_from=None, stamp='{}'"),),
    ),
    Mutation(
        "a stamp is renewed over a newer one",
        ("tests/spark/test_stamps.py", "-k", "renewed_over"),
        (("glue_jobs/stream/stamp_renewal.py",
          "if state.stamped().snapshot_id == stamped.snapshot_id:", "if True:"),),
    ),
    Mutation(
        "orphan removal takes young files",
        ("tests/spark/test_orphan_files.py",),
        (("glue_jobs/maintenance/actions.py", "upkeep.now - ORPHAN_AGE", "upkeep.now"),),
    ),
    Mutation(
        "publish every column of a table with a rename",
        ("tests/unit/postgres/test_admission.py",),
        (("cdclake/postgres/published.py",
          " and not _lists_renamed(declared, actual)", ""),),
    ),
    Mutation(
        "the connector takes an excluded column of an earlier name",
        ("tests/unit/debezium/test_earlier_names.py",),
        (("cdclake/debezium/connector.py", " if name not in t.excluded", ""),),
    ),
    Mutation(
        "compaction leaves deletes of files that are gone",
        ("tests/spark/test_upkeep.py", "-k", "outnumber"),
        (("glue_jobs/maintenance/actions.py",
          "    drop_dangling_deletes(upkeep.lake, upkeep.name)\n", ""),),
    ),
    Mutation(
        "the jobs ignore widened types", _WIDENING,
        (("glue_jobs/control/plan_watcher.py",
          "with_widened(plan, widened), etags", "plan, etags"),),
    ),
    Mutation(
        "what a narrower column refused stays in quarantine",
        ("tests/spark/test_widened_stream.py",),
        (("glue_jobs/stream/stream_tables.py",
          "            request_replay(self._control, widened)\n",
          "            pass\n"),),
    ),
    Mutation(
        "a delivered changelog that could not be altered is not tried again",
        ("tests/spark/test_widened_stream.py", "-k", "lost"),
        (("glue_jobs/stream/stream_tables.py",
          "            self._create_delivered(plan)\n", ""),),
    ),
    Mutation(
        "Firehose's function follows the source check before the changelog can",
        ("tests/unit/deployed/test_widened_delivery.py",),
        (("cdclake/widened_columns.py", "with_widened(plan, self.changelogs)",
          "with_widened(plan, self.noted)"),),
    ),
    Mutation(
        "a type that loses values is a widening", _WIDENING,
        (("cdclake/iceberg/widening.py", "can_become(declared, actual) and ", ""),),
    ),
    Mutation(
        "a file that has not followed narrows a column", _WIDENING,
        (("cdclake/iceberg/widening.py", "return with_widened(plan, types)", "return plan"),),
    ),
)  # fmt: skip
