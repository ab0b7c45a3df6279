"""Ways to break derived tables: which rows a change concerns, and what may be published."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TESTS = "tests/spark/test_derived.py"
_OF_FIREHOSE = ("tests/spark/test_derived_firehose.py",)
_QUERIES = ("tests/unit/config/test_derived.py",)
_FILES = ("tests/unit/jobs/test_partition_files.py",)
_ROWS = "glue_jobs/derived/derived_rows.py"
_REFRESH = "glue_jobs/derived/refresh.py"
_SOURCE = "glue_jobs/derived/source_snapshot.py"
_SQL = "cdclake/config/derived_sql.py"

DERIVED = (
    Mutation(
        "rows that were made of a changed row are not refreshed",
        (_TESTS, "-k", "left and goes"),
        ((_ROWS, "for number in range(len(marks) + 1)]", "for number in range(len(marks))]"),),
    ),
    Mutation(
        "rows that the query no longer gives stay", (_TESTS, "-k", "at and once"),
        ((_REFRESH, "WHEN MATCHED AND NOT s.{_IS_LIVE} THEN DELETE",
          "WHEN MATCHED AND false THEN DELETE"),),
    ),
    Mutation(
        "a new snapshot of a source is a change of its keys", _OF_FIREHOSE,
        ((_SOURCE, "if self.progress.floor != since.floor:", "if False:"),),
    ),
    Mutation(
        "a truncate is a change of its keys", (_TESTS, "-k", "truncate"),
        ((_SOURCE, "if not changes.where(F.col(naming.OP) == \"t\").isEmpty():", "if False:"),
         (_SOURCE, "if self.progress.floor != since.floor:", "if False:"),),
    ),
    Mutation(
        "a rebuild of a source changes no row", ("tests/spark/test_rebuilt_readers.py",),
        ((_SOURCE, "if self.progress.rebuilt != since.rebuilt:", "if False:"),),
    ),
    Mutation(
        "a commit after a rebuild forgets it", ("tests/spark/test_rebuilt_readers.py",),
        (("glue_jobs/apply/prepared_changes.py", "rebuilt=applied.rebuilt", 'rebuilt=""'),),
    ),
    Mutation(
        "two rows may have one key", (_TESTS, "-k", "one_key"),
        (("glue_jobs/iceberg/repeated_keys.py", "{_ROWS} > 1", "{_ROWS} > 9"),),
    ),
    Mutation(
        "a changed row replaces one that has its key", (_TESTS, "-k", "key_of_another"),
        ((_ROWS, "if not others.isEmpty():", "if False:"),),
    ),
    Mutation(
        "a changed query keeps the rows of the old one", (_TESTS, "-k", "changed_query"),
        ((_REFRESH, "return known if known.definition == definition else None", "return known"),
         (_REFRESH, "if properties.get(DEFINITION_PROPERTY, definition) != definition:",
          "if False:")),
    ),
    Mutation(
        "a derived table replaces a table that a source table has left",
        ("tests/spark/test_derived_names.py", "-k", "keeps_the_tables"),
        ((_REFRESH, "not is_own(properties, is_noted=stored is not None)", "False"),),
    ),
    Mutation(
        "a right or full join is one of rows by row", _QUERIES,
        ((_SQL, 'join.side not in ("", "LEFT")', "False"),),
    ),
    Mutation(
        "an aggregate is a join of rows by row", _QUERIES,
        ((_SQL, "exp.AggFunc, exp.CTE", "exp.CTE"),
         (_SQL, "exp.Exists, exp.Group,", "exp.Exists,"),),
    ),
    Mutation(
        "an alternative condition makes columns equal", _QUERIES,
        ((_SQL, "isinstance(condition, exp.And)", "isinstance(condition, exp.Connector)"),),
    ),
    Mutation(
        "a left join makes columns equal in every row", _QUERIES,
        ((_SQL, "if joined in (None, new[0]):", "if True:"),),
    ),
    Mutation(
        "a row without a match shows the key of the match that it gets", _QUERIES,
        ((_SQL, "return not may_be_removed and not is_in_key", "return True"),),
    ),
    Mutation(
        "a late event changes the row of its own key alone",
        ("tests/spark/test_replayed_values.py", "-k", "late_event"),
        (("glue_jobs/apply/key_changes.py", "return changes if lowest is None",
          "return changes if True"),),
    ),
    Mutation(
        "a collapse hides deletes from a table that lags", (_TESTS, "-k", "has_collapsed"),
        ((_SOURCE, "if may_lack_deletes(self.lake, self.table, since.through):", "if False:"),),
    ),
    Mutation(
        "a file has rows of two partitions", _FILES,
        ((_FILES[0].replace("tests/unit/jobs/test_", "glue_jobs/derived/"),
          "values != at or is_full", "is_full"),),
    ),
)  # fmt: skip
