"""Ways to break the carrying of unsent values: over key changes, out of quarantine, in a rejoin."""

from __future__ import annotations

from tests.mutations.broken_views import VIEWS
from tests.mutations.mutation import Mutation

_CHAINS = ("tests/spark/test_key_chains.py", "-k", "short_chain or 2-1")
_REPLAYED = ("tests/spark/test_replayed_values.py",)
_KEY_CHANGES = "glue_jobs/apply/key_changes.py"
_IN_VIEWS = "cdclake/iceberg/key_changes.py"
_VIEWS = "cdclake/iceberg/views.py"
_APPLY = "glue_jobs/apply/state_update.py"
_COLLAPSE = "glue_jobs/maintenance/changelog_compaction.py"
_FOLD = "cdclake/iceberg/collapse.py"
_KEY_VALUES = "cdclake/iceberg/key_values.py"
_KEYS, _SPELLED = "glue_jobs/iceberg/events_of_keys.py", "tests/spark/test_key_spellings.py"
_DECLARED = "glue_jobs/apply/declared_columns.py"
_DECLARED_TESTS = "tests/spark/test_declared_columns.py"

VALUES = (
    Mutation(
        "a job takes a column that its plan lacks for a dropped one",
        (_DECLARED_TESTS, "-k", "older_plan"),
        ((_DECLARED, "name not in declared and not naming.is_ours(name)", "False"),),
    ),
    Mutation(
        "a job applies values that its plan cannot hold",
        (_DECLARED_TESTS, "-k", "older_plan"),
        ((_DECLARED, "not promotes(stored[name], kind)", "False"),),
    ),
    Mutation(
        "a chain of changed keys ends where the steps end", _CHAINS,
        ((_KEY_CHANGES, "return spans, lowest is None", "return spans, True"),),
    ),
    Mutation(
        "the spans of a long chain look back once", _CHAINS,
        ((_KEY_CHANGES, "    while not spans.where(F.col(_BORN_AT).isNotNull()).isEmpty():",
          "    for _ in range(1):"),),
    ),
    Mutation(
        "a long chain takes a value of the key's other rows",
        ("tests/spark/test_key_chains.py", "-k", "long_chain_takes"),
        ((_KEY_CHANGES, 'F.coalesce(spans[_BORN_AT], F.lit(""))', 'F.lit("")'),),
    ),
    Mutation(
        "a long chain takes a value of another row at the same position",
        ("tests/spark/test_key_chains.py", "-k", "same_position"),
        ((_KEY_CHANGES, 'F.col(naming.POSITION).alias("at"), *_old_keys(table)',
          'F.col(naming.POSITION).alias("at")'),),
    ),
    Mutation(
        "a short chain reads all key changes, too", _CHAINS,
        ((_KEY_CHANGES, "return spans, lowest is None", "return spans, False"),),
    ),
    Mutation(
        "a collapse drops what a chain before it carried", _CHAINS,
        ((_COLLAPSE, "whole = matching_keys(completed,", "whole = matching_keys(alive,"),),
    ),
    Mutation(
        "a collapse gives a row the value of an earlier one",
        ("tests/spark/test_collapse.py", "-k", "newest_of_each_key"),
        ((_FOLD, "cdc__value_{index}.at >= {CREATED_AT}", "cdc__value_{index}.at >= ''"),),
    ),
    Mutation(
        "the view confuses rows that had a key one after the other", VIEWS,
        ((_IN_VIEWS, "CASE WHEN __before IS NULL THEN __birth END", "__birth"),),
    ),
    Mutation(
        "a replayed event completes no applied key change", _REPLAYED,
        ((_APPLY, "return facts.lowest_lsn if is_late else", "return"),),
    ),
    Mutation(
        "a replayed value does not replace the one that was carried instead", _REPLAYED,
        (("glue_jobs/apply/mixed_rows.py",
          "pc.or_(pc.greater(brought, kept), again)", "pc.greater(brought, kept)"),),
    ),
    Mutation(
        "the view completes no key change with replayed events", VIEWS,
        ((_VIEWS, 'f"{history_part(naming.POSITION)} <= {newest}',
          'f"{naming.OP} = \'d\' AND {history_part(naming.POSITION)} <= {newest}'),),
    ),
    Mutation(
        "the view keeps the value that was carried instead", VIEWS,
        ((_VIEWS, """column.name)}, '') >= {stored}\"""", """column.name)}, '') > {stored}\""""),),
    ),
    Mutation(
        "the view gives a changed key the value of the tombstone there", VIEWS,
        ((_VIEWS, "OR f.{CREATED_AT} > {stored}", "OR false"),),
    ),
    Mutation(
        "two texts of a key are two rows of a view", ("tests/unit/verify/test_key_spellings.py",),
        ((_KEY_VALUES, "if has_spellings(column_type) else value", "if False else value"),),
    ),
    Mutation(
        "a view finds the old key's values by its text",
        ("tests/unit/verify/test_key_spellings.py",),
        ((_IN_VIEWS, 'enumerate(key_values(table, dialect, "e."))',
          'enumerate(f"e.{dialect.name(key)}" for key in table.key)'),
         (_IN_VIEWS, '    keys = key_values(table, dialect, "e.")',
          '    keys = [f"e.{dialect.name(key)}" for key in table.key]')),
    ),
    Mutation(
        "a resync finds a row by the text of its key", (_SPELLED, "-k", "resync"),
        ((_KEYS, "for value in key_values(table, SPARK)", "for value in table.key"),),
    ),
    Mutation(
        "a collapse keeps an event for each text of a key", (_SPELLED, "-k", "collapse"),
        ((_FOLD, "key_values(table, SPARK)", "map(SPARK.name, table.key)"),),
    ),
    Mutation(
        "a resync deletes keys that the changelog lacks", (_SPELLED, "-k", "cannot_hold"),
        (("glue_jobs/stream/quarantined_rows.py", " AND {_is_since(position)}\"", "\""),),
    ),
    Mutation(
        "a numeric key that got zeros is not read again",
        ("tests/unit/postgres/test_key_types.py",),
        (("cdclake/postgres/relations.py", "in_key=flowing[column.name]", "in_key=False"),),
    ),
    Mutation(
        "a table that rejoined keeps its old values", ("tests/unit/local/test_rewritten.py",),
        (("cdclake/local/streaming_start.py", "if place.missed_below is None or place.quarantined",
          "if place.missed_below is not None or place.quarantined"),),
    ),
)  # fmt: skip
