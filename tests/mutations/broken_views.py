"""Ways to break `<t>_current`, which lays the changelog's tail over the state."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

VIEWS = ("tests/unit/catalogue/test_current.py", "tests/unit/verify/test_views.py")
_VIEWS = "cdclake/iceberg/views.py"
_TAIL = "cdclake/iceberg/tail_facts.py"
_ATHENA = "cdclake/iceberg/athena_views.py"
_TRINO = ("tests/trino/test_athena_sql.py",)
_RENEWAL = "glue_jobs/apply/view_renewal.py"
_RENEWED = ("tests/spark/test_view_renewal.py",)

STATE_VIEWS = (
    Mutation(
        "in Trino a key NaN equals no other", (*_TRINO, "-k", "floating"),
        (("cdclake/iceberg/dialect.py", 'kind not in ("float", "double")', "True"),),
    ),
    Mutation(
        "the tail wins over a newer state in the view", VIEWS,
        ((_VIEWS, "WHEN {_FOLDED_IS_NEWER} THEN", "WHEN f.{naming.POSITION} IS NOT NULL THEN"),
         (_VIEWS, "newer = _FOLDED_IS_NEWER", 'newer = f"f.{naming.POSITION} IS NOT NULL"')),
    ),
    Mutation(
        "the view shows tombstones", VIEWS,
        ((_VIEWS, 'f"ELSE s.{naming.DELETED} END)', 'f"ELSE false END)'),),
    ),
    Mutation(
        "the view's carried values have their row's position", VIEWS,
        ((_VIEWS, "coalesce({stored}, s.{naming.POSITION})",
          "s.{naming.POSITION}"),),
    ),
    Mutation(
        "the view bounds its tail by position", VIEWS,
        ((_VIEWS, "in_tail = tail_condition(table, changes, applied, dialect)",
          "in_tail = f\"{naming.POSITION} > (SELECT coalesce(max({naming.POSITION}), '') "
          "FROM {state})\""),),
    ),
    Mutation(
        "the view forgets the floor of truncates that were applied", VIEWS,
        ((_VIEWS, "floor_of_log('tail', applied.floor, dialect)",
          "floor_of_log('tail', '', dialect)"),),
    ),
    Mutation(
        "the view follows a changed key one step only", VIEWS,
        (("cdclake/iceberg/key_changes.py",
          '"WHERE (SELECT bool_or(__moved) FROM jumps))', '"WHERE false)'),),
    ),
    Mutation(
        "the view leaves applied creations waiting for their deletes", VIEWS,
        ((_VIEWS, "if waiting := _waiting_creations(", "if False and _waiting_creations("),),
    ),
    Mutation(
        "the history shows what Firehose appended twice", VIEWS,
        (("cdclake/iceberg/event_identity.py", " WHERE cdc__copy = 1)", ")"),),
    ),
    Mutation(
        "the history keeps another row of a repeated event than the state", VIEWS,
        (("cdclake/iceberg/event_identity.py", "{naming.POSITION} DESC", "{naming.POSITION}"),),
    ),
    Mutation(
        "Athena's view takes the stamp of a commit that was just made", _TRINO,
        ((_ATHENA, "STAMP_AGE_S = 120", "STAMP_AGE_S = 0"),),
    ),
    Mutation(
        "Athena's view takes the stamp of a commit that was rolled back", _TRINO,
        ((_ATHENA, " WHERE is_current_ancestor", ""),),
    ),
    Mutation(
        "Athena's view forgets that Firehose commits late", _TRINO,
        ((_ATHENA, "f'{ingested} - {late}'", "ingested"),),
    ),
    Mutation(
        "Athena's view hides changes from before its bound in silence", _TRINO,
        ((_ATHENA, "live += f", "_ = f"),),
    ),
    Mutation(
        "a view is renewed with the stamp of a commit that was just made", _RENEWED,
        ((_RENEWAL, "now - SETTLED_AFTER - _EPOCH", "now - _EPOCH"),),
    ),
    Mutation(
        "a renewed bound forgets that Firehose commits late", _RENEWED,
        ((_RENEWAL, "settled = stamp - lateness", "settled = stamp"),),
    ),
    Mutation(
        "the bound of a state that was set back stays", _RENEWED,
        ((_RENEWAL, "settled < bound or ", ""),),
    ),
    Mutation(
        "commits that have expired do not count as growth of the tail", _RENEWED,
        ((_RENEWAL, "return True\n        return False", "return False\n        return False"),),
    ),
    Mutation(
        "an error in the renewal of a view fails the stream", _RENEWED,
        ((_RENEWAL, "if cause_of(error, Kind.JVM_FAILED) is not None:", "if error is not None:"),),
    ),
    Mutation(
        "a renewal overwrites the view of another writer", _RENEWED,
        (("glue_jobs/iceberg/catalog_view.py", '            VersionId=view["VersionId"],\n', ""),),
    ),
    Mutation(
        "the view of a known tail leaves the state's rows below a truncate", VIEWS,
        ((_TAIL, "kept = kept if is_truncated else", "kept = kept if False else"),),
    ),
    Mutation(
        "the view of a known tail takes an unsent value for NULL", VIEWS,
        ((_TAIL, "or may_lack_values(table, tail, applied)", ""),),
    ),
    Mutation(
        "the view forgets values that applied events lacked", VIEWS,
        ((_TAIL, "tail.lacks_values or applied.lacked(table)", "tail.lacks_values"),),
    ),
    Mutation(
        "the view of a known tail folds events below a truncate", VIEWS,
        ((_TAIL, "pending.append(kept)", "pass"),),
    ),
    Mutation(
        "the view of a known tail looks up no values of changed keys", VIEWS,
        ((_TAIL, "if tail.needs_values:", "if False:"),),
    ),
    Mutation(
        "the view of a known tail overlooks late events", VIEWS,
        ((_TAIL, "is_late(table, applied, dialect)]", "'']"),),
    ),
    Mutation(
        "a deleted row's values are shown", VIEWS,
        ((_VIEWS, "THEN f.{naming.DELETED} ", "THEN false "),),
    ),
)  # fmt: skip
