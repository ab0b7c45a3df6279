"""Ways to break `verify`, the reader, and the admission of keys."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_DEEP, _DEEP_TESTS = (
    "glue_jobs/verify/deep_comparison.py",
    ("tests/unit/verify/test_deep_comparison.py",),
)
_READER_TESTS = ("tests/unit/verify/test_reader.py",)
_OBSTACLE_TESTS = ("tests/unit/verify/test_obstacles.py",)

VERIFY = (
    Mutation(
        "let DuckDB print its progress", ("tests/unit/verify/test_reader_output.py",),
        (("glue_jobs/reader/duck.py", "SET enable_progress_bar_print = false",
          "SET enable_progress_bar_print = true"),),
    ),
    Mutation(
        "compare no values of a state with its changelog", _DEEP_TESTS,
        ((_DEEP, "where = \" OR \".join([missing, extra, *compared.values()])",
          "where = \" OR \".join([missing, extra])"),),
    ),
    Mutation(
        "look for no doubled events", _DEEP_TESTS,
        ((_DEEP, "[_doubled_events(table)] if table.delivery != \"firehose\" else []", "[]"),),
    ),
    Mutation(
        "rebuild from events that are not applied", (*_DEEP_TESTS, "-k", "unapplied"),
        (("glue_jobs/reader/relations.py",
          "{naming.INGESTED_AT} <= {DUCKDB.instant(applied.ingested)}", "true"),),
    ),
    Mutation(
        "accept a time in the future", (*_READER_TESTS, "-k", "moments"),
        (("glue_jobs/reader/point_in_time.py", "if time > now:", "if now is None:"),),
    ),
    Mutation(
        "answer a time before the lake with no rows", (*_READER_TESTS, "-k", "first_commit"),
        (("glue_jobs/reader/relations.py", "bool(table.history) and moment.of(table) is None",
          "False"),),
    ),
    Mutation(
        "forget tables of earlier plans", (*_READER_TESTS, "-k", "earlier_plans"),
        (("glue_jobs/reader/mentioned_tables.py", "sorted(stored - known)",
          "sorted(stored & known)"),),
    ),
    Mutation(
        "call every difference of an incomplete row incomplete",
        ("tests/unit/verify/test_view_rows.py",),
        (("glue_jobs/verify/rounds.py", "name in waits_for and ", ""),),
    ),
    Mutation(
        "call a wrong value of an incomplete row incomplete",
        ("tests/unit/verify/test_view_rows.py",),
        (("glue_jobs/verify/rounds.py", " and name in nulls", ""),),
    ),
    Mutation(
        "call a row that the engine has lost incomplete",
        ("tests/unit/verify/test_view_rows.py",),
        (("glue_jobs/verify/rounds.py", "if lake is None:\n        return False",
          "if lake is None:\n        return True"),),
    ),
    Mutation(
        "count rows that lacked a value before they were applied",
        ("tests/unit/verify/test_incomplete_counts.py",),
        (("cdclake/iceberg/incomplete_rows.py",
          "s.{position} IS NULL OR s.{position} < l.{position}", "true"),),
    ),
    Mutation(
        "name no obstacle", _OBSTACLE_TESTS,
        (("glue_jobs/verify/catch_up.py", "            raise found\n", "            return\n"),),
    ),
    Mutation(
        "call a table that is late stopped", ("tests/unit/verify/test_rounds.py",),
        (("glue_jobs/verify/table_results.py", "late is not None and late.is_stopped",
          "late is not None"),),
    ),
    Mutation(
        "count the records after the newest event again at each look",
        ("tests/unit/verify/test_firehose_offsets.py", "-k", "settled"),
        (("glue_jobs/verify/settled_records.py", "self._found.setdefault(topic, {})", "{}"),),
    ),
    Mutation(
        "run no scheduled stream for a table that its last run has held back",
        ("tests/unit/deployed/test_verify_runs.py",),
        (("glue_jobs/verify/catch_up.py",
          "any(_is_tried(progress.tables[name]) for name in stopped)", "False"),),
    ),
    Mutation(
        "another key's row of the same position counts as the redriven one",
        ("tests/unit/verify/test_firehose_offsets.py",),
        (("glue_jobs/verify/settled_records.py", "return tuple(comparable_key(table, values))",
          "return ()"),),
    ),
    Mutation(
        "accept a key that cannot be read in chunks",
        ("tests/unit/postgres/test_admission.py", "-k", "chunks"),
        (("cdclake/postgres/key_identity.py", "*_check_chunks(declared),", ""),),
    ),
)  # fmt: skip
