"""Ways to break polls: what they read again, what they take for a change, and what is kept."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TESTS = "tests/spark/test_polls.py"
_RESTORED_TESTS = "tests/spark/test_restored_polls.py"
_UNSEEN_TESTS = "tests/spark/test_unseen_transactions.py"
_QUERIES = "cdclake/postgres/poll_queries.py"
_POLL = "glue_jobs/poll/table_poll.py"
_ROWS = "glue_jobs/poll/changed_rows.py"
_SNAPSHOT = "glue_jobs/poll/polled_snapshot.py"
_SOURCES = "cdclake/postgres/polled_sources.py"
_QUERY_TESTS = "tests/spark/test_polled_queries.py"
_PREPARE_TESTS = "tests/unit/postgres/test_prepare.py"

POLLS = (
    Mutation(
        "a poll with an older plan changes the tables back",
        ("tests/unit/jobs/test_poll_leases.py", "-k", "older_plan"),
        ((_POLL, "before.run_started > self.started", "False"),),
    ),
    Mutation(
        "a run that started earlier polls nothing under a plan that it has read again",
        ("tests/unit/jobs/test_poll_leases.py", "-k", "older_plan"),
        ((_POLL, "before.run_plan != self.plan_uri", "True"),),
    ),
    Mutation(
        "a poll that has waited has the plan of before",
        ("tests/unit/jobs/test_poll_leases.py",),
        ((_POLL, "current = job.with_current_plan()", "current = job"),),
    ),
    Mutation(
        "a poll reads since the last poll, not since the oldest transaction",
        (_TESTS, "-k", "open_over"),
        ((_QUERIES, "least(clock_timestamp(), min(xact_start))", "clock_timestamp()"),
         (_QUERIES, "interval '10 seconds'", "interval '0 seconds'"),),
    ),
    Mutation(
        "a prepared transaction is forgotten",
        (_TESTS, "-k", "prepared"),
        ((_SNAPSHOT, "None if prepared or oldest is None else", "None if oldest is None else"),
         (_QUERIES, "interval '10 seconds'", "interval '0 seconds'"),),
    ),
    Mutation(
        "a session that hides its transactions has none",
        (_UNSEEN_TESTS, "-k", "hides"),
        ((_QUERIES, "WHEN NOT coalesce(bool_or({_HIDDEN}), false) THEN", "WHEN true THEN"),
         (_QUERIES, "interval '10 seconds'", "interval '0 seconds'"),),
    ),
    Mutation(
        "late rows of a foreign table are missed",
        (_UNSEEN_TESTS, "-k", "foreign"),
        ((_SOURCES, "for schema, name in found]", "for schema, name in []]"),),
    ),
    Mutation(
        "a query's value of another type is cast to the declared one",
        (_QUERY_TESTS, "-k", "other_types"),
        ((_SOURCES, "return check_result(table, {column.name: column for column in columns})",
          "return []"),),
    ),
    Mutation(
        "a query's operators are those of pg_catalog",
        (_QUERY_TESTS, "-k", "operators"),
        ((_QUERIES, "nullif(reset_val, '')", "NULL"),),
    ),
    Mutation(
        "the role that polls has the server's search path",
        (_PREPARE_TESTS, "-k", "preparing_login"),
        (("cdclake/postgres/prepare.py",
          "[set_search_path(plan.source_object, database, query_schemas)]", "[]"),),
    ),
    Mutation(
        "a lock timeout of a query's check ends the polls of all tables",
        (_QUERY_TESTS, "-k", "waits_for_a_poll"),
        ((_SNAPSHOT, "with waits_reported():", "with nullcontext():"),
         (_SNAPSHOT, "import ExitStack,", "import ExitStack, nullcontext,"),
         (_SNAPSHOT, "if connection.broken:", "if True:"),),
    ),
    Mutation(
        "the server ends the session that keeps a poll's snapshot",
        (_QUERY_TESTS, "-k", "idle_timeout"),
        ((_SNAPSHOT, "for setting in NO_TIMEOUTS:", "for setting in ():"),),
    ),
    Mutation(
        "a table may be emptied between a poll's snapshot and its read",
        (_TESTS, "-k", "reload_during"),
        ((_SNAPSHOT, "_execute(locks, poll_queries.lock_against_rewrites(table))",
          '_execute(locks, "SELECT 1")'),),
    ),
    Mutation(
        "a poll whose lock is gone stores what it read",
        (_TESTS, "-k", "loses_its_lock"),
        ((_POLL, "snapshot.end()", "pass"),),
    ),
    Mutation(
        "rows that are read again are appended again",
        (_TESTS, "-k", "and_a_sweep"),
        ((_ROWS, '_same_key(table) & _all(same), "left_anti")', 'F.lit(False), "left_anti")'),),
    ),
    Mutation(
        "a sweep deletes nothing",
        (_TESTS, "-k", "and_a_sweep"),
        ((_ROWS, 'rows.alias("new"), _same_key(table), "left_anti")',
          'rows.alias("new"), _same_key(table), "left_semi").limit(0)'),),
    ),
    Mutation(
        "a sweep deletes a row at the position of one that is gone",
        ("tests/spark/test_polls_after_streaming.py",),
        ((_ROWS, "is_newest = same_position & _same_key(table)", "is_newest = same_position"),),
    ),
    Mutation(
        "a row that is refused now is taken for a deleted one",
        (_TESTS, "-k", "corrected"),
        ((_POLL, "deletes_of_gone_rows(events,", "deletes_of_gone_rows(accepted,"),),
    ),
    Mutation(
        "a refused row is quarantined at every poll",
        (_TESTS, "-k", "corrected"),
        ((_POLL, "numbered = same.withColumn(", "numbered = refused.withColumn("),),
    ),
    Mutation(
        "two rows of a poll may have one key",
        (_TESTS, "-k", "same_key"),
        (("glue_jobs/iceberg/repeated_keys.py", "{_ROWS} > 1", "{_ROWS} > 9"),),
    ),
    Mutation(
        "a poll ignores that the stream has written since",
        (_TESTS, "-k", "another_writer"),
        ((_POLL, "and before.ingested == ingested_through(self.lake, self.table)", ""),),
    ),
    Mutation(
        "rows that were not written since keep NULL in a new column",
        (_TESTS, "-k", "new_column"),
        ((_POLL, "and before.definition == self._definition", ""),),
    ),
    Mutation(
        "a poll after a restore has lower positions",
        (_RESTORED_TESTS, "-k", "restored"),
        ((_POLL, "max(snapshot.lsn, polled + 1, appended + 1)", "snapshot.lsn"),),
    ),
    Mutation(
        "a poll after a restore hides the changes of the new epoch",
        (_RESTORED_TESTS, "-k", "in_a_new_epoch"),
        ((_POLL, " if last.epoch == epoch else 0", ""),),
    ),
    Mutation(
        "a poll after a restore keeps the rows of the time that the source lost",
        ("tests/unit/jobs/test_poll_reach.py",),
        ((_POLL, "and before.epoch == epoch", ""),),
    ),
    Mutation(
        "a WAL that went back is not noticed",
        ("tests/unit/jobs/test_poll_reach.py",),
        ((_POLL, "before.source_lsn <= snapshot.primary_lsn", "True"),),
    ),
    Mutation(
        "a source that names no position ends the poll's snapshot",
        ("tests/spark/test_polls_of_aurora.py", "-k", "later_polls"),
        ((_SNAPSHOT, "with connection.transaction():  # a savepoint", "with nullcontext():  # a"),
         (_SNAPSHOT, "import ExitStack,", "import ExitStack, nullcontext,"),),
    ),
    Mutation(
        "rows that the newest poll has read are never stale",
        ("tests/unit/jobs/test_operate.py",),
        (("cdclake/debezium/position.py", "max(at.phase, STREAM_PHASE)", "STREAM_PHASE"),),
    ),
    Mutation(
        "a first stream is below the rows that polls have read",
        ("tests/unit/local/test_unstreamed.py",),
        (("cdclake/local/streaming_start.py", "before.newest_epoch + 1", "lake.state.epoch + 1"),),
    ),
    Mutation(
        "a deleted row of the state hides one that is inserted again",
        (_TESTS, "-k", "soft"),
        ((_POLL, ".where(~F.col(naming.DELETED))", ""),),
    ),
    Mutation(
        "a poll fails while another one of its table takes long",
        ("tests/unit/jobs/test_poll_leases.py",),
        ((_POLL, "leases.hold_in_turn(table.name, gives_way=is_scheduled)",
          "leases.try_hold(table.name)"),),
    ),
    Mutation(
        "scheduled polls wait for a long one and take all concurrent runs",
        ("tests/unit/jobs/test_poll_leases.py", "-k", "scheduled"),
        ((_POLL, "gives_way=is_scheduled", "gives_way=False"),),
    ),
)  # fmt: skip
