"""Ways to break the engine, and the tests that must notice."""

from __future__ import annotations

from tests.mutations.broken_access import ACCESS
from tests.mutations.broken_batches import BATCHES
from tests.mutations.broken_decoding import DECODING
from tests.mutations.broken_derived import DERIVED
from tests.mutations.broken_epochs import EPOCHS
from tests.mutations.broken_first_account import FIRST_ACCOUNT
from tests.mutations.broken_first_day import FIRST_DAY
from tests.mutations.broken_forget import FORGET
from tests.mutations.broken_masks import MASKS
from tests.mutations.broken_new_columns import NEW_COLUMNS
from tests.mutations.broken_polls import POLLS
from tests.mutations.broken_publish import PUBLISHED
from tests.mutations.broken_puts import PUTS
from tests.mutations.broken_quality import QUALITY
from tests.mutations.broken_relations import RELATIONS
from tests.mutations.broken_search import SEARCH
from tests.mutations.broken_sizes import SIZES
from tests.mutations.broken_states import STATES
from tests.mutations.broken_topics import TOPICS
from tests.mutations.broken_upkeep import UPKEEP
from tests.mutations.broken_values import VALUES
from tests.mutations.broken_verify import VERIFY
from tests.mutations.broken_views import STATE_VIEWS, VIEWS
from tests.mutations.broken_withholding import WITHHOLDING
from tests.mutations.mutation import Mutation

CATALOGUE = "tests/spark/test_catalogue.py"
ENGINE = "tests/spark/test_engine.py"
DELTA = "tests/spark/test_row_delta.py"
ONE_WRITER = "tests/spark/test_one_writer.py"
FIREHOSE = ("tests/spark/test_firehose_log.py",)

_COMMITS = "glue_jobs/apply/changelog_commits.py"
_KEY_CHANGES = "glue_jobs/apply/key_changes.py"
_BATCH = "glue_jobs/stream/table_stream.py"
_REPEATS = "glue_jobs/stream/deduplicate.py"
_PREPARED = "glue_jobs/apply/prepared_changes.py"
_REBUILT = "glue_jobs/apply/rebuilt_state.py"
_MERGE = "cdclake/iceberg/merge.py"
_STATE_ROWS = "cdclake/iceberg/state_rows.py"
_MIX = "glue_jobs/apply/mixed_rows.py"
_COLLAPSE = "cdclake/iceberg/collapse.py"
_DELETES = "glue_jobs/maintenance/delete_compaction.py"
_FOLD = "cdclake/iceberg/latest_row.py"
_VIEWS = "cdclake/iceberg/views.py"


def _cases(ids: str) -> tuple[str, ...]:
    return (CATALOGUE, "-k", f"({ids}) and delta")


def _merged_cases(ids: str) -> tuple[str, ...]:
    return (CATALOGUE, "-k", f"({ids}) and merge")


def _engine(words: str) -> tuple[str, ...]:
    return (ENGINE, "-k", words)


MUTATIONS = (
    Mutation(
        "no sweep where a table's first batch holds two epochs", _cases("S5"),
        ((_BATCH, "has_older = min(_epochs(parts), default=newest) < newest",
          "has_older = False"),),
    ),
    Mutation(
        "rows below a new epoch stay", _cases("S5"),
        ((_BATCH, "return None if floor >= history_part(replaced.position) else replaced.position",
          "return None"),),
    ),
    Mutation(
        "forget tombstones in the merge", _merged_cases("D2"),
        ((_MERGE, 'f"WHEN MATCHED AND ({brings_news(table, carried)})',
          'f"WHEN MATCHED AND s.cdc_deleted THEN DELETE\\n'
          'WHEN MATCHED AND ({brings_news(table, carried)})'),),
    ),
    Mutation(
        "drop the guard of the merge", _merged_cases("O2 or O6"),
        ((_STATE_ROWS, 'f"s.{naming.POSITION} > t.{naming.POSITION}"', '"true"'),),
    ),
    Mutation(
        "the offset is part of an event's identity", _cases("O8"),
        ((_REPEATS, "naming.LSN, naming.OP, *table.key]",
          "naming.LSN, naming.OP, naming.OFFSET, *table.key]"),),
    ),
    Mutation(
        "the previous commit is part of an event's identity", _cases("O8"),
        ((_REPEATS, "naming.LSN, naming.OP, *table.key]",
          "naming.LSN, naming.OP, naming.PREV_COMMIT_LSN, *table.key]"),),
    ),
    Mutation(
        "the key is no part of an event's identity", _cases("O10"),
        ((_REPEATS, "naming.LSN, naming.OP, *table.key]", "naming.LSN, naming.OP]"),),
    ),
    Mutation(
        "never look a repeat up in the log", _cases("O8"),
        ((_REPEATS, "            return True\n", "            return False\n"),),
    ),
    Mutation(
        "a merge that lost is not done again", (ONE_WRITER, "-k", "lost_to_a_compaction"),
        (("glue_jobs/apply/state_table.py",
          "events = retry_on_conflict(update.table.name, attempt)", "events = attempt()"),),
    ),
    Mutation(
        "round decimals in SQL", ("tests/spark/test_state_values.py",),
        (("cdclake/iceberg/conversions.py", 'return f"({exact} AND ', 'return f"('),),
    ),
    Mutation(
        "the merge drops what stands at a truncate's place", _cases("D8"),
        ((_MERGE, "(naming.POSITION)} >= {SPARK", "(naming.POSITION)} > {SPARK"),),
    ),
    Mutation(
        "the view drops what stands at a truncate's place", VIEWS,
        ((_FOLD, "coalesce(max({history_part(naming.POSITION)}), '')",
          "coalesce(max({naming.POSITION}), '')"),),
    ),
    Mutation(
        "forget the floor of truncates that were applied", _cases("D8"),
        ((_PREPARED, "floor = max(applied.floor, until.floor)", "floor = until.floor"),),
    ),
    Mutation(
        "a truncate leaves the state's rows in the view", VIEWS,
        ((_VIEWS, "SELECT * FROM {state} WHERE {kept}", "SELECT * FROM {state}"),),
    ),
    Mutation(
        "drop refused events", _cases("F7 or P7"),
        ((_BATCH, "self._quarantine(share) if share.has(REFUSED) else NewlyRefused()",
          "NewlyRefused()"),),
    ),
    Mutation(
        "a kill forgets how many events were refused",
        ("tests/spark/test_refused_counts.py", "-k", "process_is_killed"),
        ((_BATCH, "            self.remember_quarantined(found)\n", "            pass\n"),),
    ),
    Mutation(
        "a table that is held counts refused events twice",
        ("tests/spark/test_refused_counts.py", "-k", "held_table_count"),
        (("glue_jobs/stream/quarantine.py", ' | (F.col("offset") >= offset)', ' | F.lit(True)'),),
    ),
    Mutation(
        "quarantine a replayed event again", _cases("F7"),
        (("glue_jobs/stream/quarantine.py", '"left_anti"', '"left"'),
         ("glue_jobs/stream/changelog_task.py", "if partition in target.taken:", "if False:")),
    ),
    Mutation(
        "quarantine a replayed event without a look at what is there", _cases("F7"),
        (("glue_jobs/stream/quarantine.py", "if handle.may_have(places):", "if False:"),
         ("glue_jobs/stream/changelog_task.py", "if partition in target.taken:", "if False:")),
    ),
    Mutation(
        "a stream that was replaced quarantines again",
        ("tests/spark/test_quarantine.py", "-k", "quarantines_nothing"),
        (("glue_jobs/stream/quarantine.py", "unless_added=places",
          "unless_added=handle.expressions.alwaysFalse()"),),
    ),
    Mutation(
        "a refused record passes for the one that an earlier topic had at its place",
        ("tests/spark/test_quarantine.py", "-k", "same_places"),
        (("glue_jobs/stream/quarantine.py", 'f"{same} AND n.value <=> k.value"', "same"),),
    ),
    Mutation(
        "a replay deletes a refused record with an accepted one",
        ("tests/spark/test_repairs.py", "-k", "accepted_ones_place"),
        (("glue_jobs/operations/replay.py", '.join(others, place, "left_anti")', ""),),
    ),
    Mutation(
        "a crash forgets that an event was too large",
        ("tests/spark/test_oversized.py", "-k", "forget_the_marker"),
        ((_BATCH, "            self.remember_refused(reasons)\n", "            pass\n"),),
    ),
    Mutation(
        "a request ends when a service fails",
        ("tests/unit/jobs/test_failed_requests.py",),
        (("glue_jobs/operations/executor.py", "if passing_cause(error) is None:", "if True:"),),
    ),
    Mutation(
        "bounds of long decimals are rounded",
        ("tests/spark/test_written_files.py",),
        (("glue_jobs/iceberg/decimals.py", "number.scaleb(scale, _EXACT)",
          "number.scaleb(scale)"),),
    ),
    Mutation(
        "minus zero is another key",
        ("tests/spark/test_engine.py", "-k", "minus_zero"),
        (("glue_jobs/apply/folded_changes.py", "pc.add(values, 0.0) if is_float",
          "values if is_float"),),
    ),
    Mutation(
        "a rebuilt state forgets dropped columns",
        ("tests/spark/test_dropped_columns.py", "-k", "rebuilt_state_keeps"),
        ((_REBUILT, "rows.join(held, [*table.key]", "rows.join(held.limit(0), [*table.key]"),),
    ),
    Mutation(
        "a collapsed log forgets dropped columns",
        ("tests/spark/test_collapse.py", "-k", "dropped_column"),
        ((_COLLAPSE, "coalesce({values[column]}, cdc__dropped_{index})", "{values[column]}"),),
    ),
    Mutation(
        "a collapsed log takes NULL in a dropped column for nothing",
        ("tests/spark/test_collapse.py", "-k", "dropped_column"),
        ((_COLLAPSE, "{name} IS NOT NULL AND {held}", "{name} IS NOT NULL"),),
    ),
    Mutation(
        "pair a changed key's events by the previous commit, too", _cases("P5"),
        ((_KEY_CHANGES, "_PAIR = (naming.EPOCH,",
          "_PAIR = (naming.EPOCH, naming.PREV_COMMIT_LSN,"),),
    ),
    Mutation(
        "so does the view", VIEWS,
        (("cdclake/iceberg/key_changes.py", "_PAIR = (naming.EPOCH,",
          "_PAIR = (naming.EPOCH, naming.PREV_COMMIT_LSN,"),),
    ),
    Mutation(
        "a key's earlier row gives its values, too", VIEWS,
        (("cdclake/iceberg/key_changes.py", ">= s.__since", ">= ''"),),
    ),
    Mutation(
        "a key's earlier row gives its values, too, in the merge", _cases("P5"),
        ((_KEY_CHANGES, 'F.coalesce(spans[_BORN_AT], F.lit(""))', 'F.lit("")'),),
    ),
    Mutation(
        "a creation that was applied early keeps waiting", _cases("P5"),
        ((_PREPARED, "return None if waiting.isEmpty() else waiting", "return None"),),
    ),
    Mutation(
        "the newest event's value, sent or not", VIEWS,
        ((_FOLD, 'where = f"FILTER (WHERE {is_available(table, name, dialect)})"', 'where = ""'),),
    ),
    Mutation(
        "a NULL that was sent is no value", VIEWS,
        ((_FOLD, 'max_by({held}, {naming.POSITION}) {where} AS',
          "max_by({held}, {naming.POSITION}) "
          "{where[:-1]} AND {dialect.name(name)} IS NOT NULL) AS"),),
    ),
    Mutation(
        "a truncate takes what soft deletes keep", _engine("under_soft_deletes_marks"),
        ((_MERGE, 'if not floor or table.deletes == "soft":', "if not floor:"),),
    ),
    Mutation(
        "a rebuilt soft delete empties its row", _engine("soft_deletes_keep"),
        ((_FOLD, "return available if deletes_have_values(table) else", "return available or"),),
    ),
    Mutation(
        "deletes brought together are some of them", ("tests/spark/test_upkeep.py", "-k", "tenth"),
        ((_DELETES, 'where("_deleted").select', 'where("_deleted").limit(3).select'),),
    ),
    Mutation(
        "deletes brought together stay beside the old ones",
        ("tests/spark/test_upkeep.py", "-k", "tenth"),
        ((_DELETES, "        rewrite.deleteFile(file)\n", "        pass\n"),),
    ),
    Mutation(
        "bound a log of Firehose's by the moment of ingestion", (*FIREHOSE, "-k", "earlier_rows"),
        (("glue_jobs/apply/firehose_changelog.py", "SPARK.instant(after)",
          "SPARK.instant(applied.ingested)"),),
    ),
    Mutation(
        "forget that an epoch of Firehose's sweeps", (*FIREHOSE, "-k", "epoch"),
        ((_COMMITS, "floor=floor, sequence=sequence", 'floor="", sequence=sequence'),),
    ),
    Mutation(
        "the tail of Firehose's log begins where the state's last rows were ingested",
        ("tests/unit/firehose/test_tables.py",),
        (("glue_jobs/reader/tail.py", "min(first, default=applied.ingested)", "applied.ingested"),),
    ),
    Mutation(
        "a row that collapses before it is applied is left out",
        ("tests/spark/test_collapsed_firehose.py", "-k", "not_applied"),
        (("cdclake/iceberg/collapse.py", "or through is None or sequence < int(through):",
          "or through is None:"),),
    ),
    Mutation(
        "a changed key that Firehose brought is not completed anew",
        (*FIREHOSE, "-k", "committed_after_it"),
        ((_PREPARED, "return None if waiting.isEmpty() else waiting", "return None"),),
    ),
    Mutation(
        "what a changed key took along first stays", (*FIREHOSE, "-k", "committed_after_it"),
        ((_MIX, "pc.or_(pc.greater(brought, kept), again)", "pc.greater(brought, kept)"),),
    ),
    Mutation(
        "a view completes no changed key anew", (*FIREHOSE, "-k", "not_applied_yet"),
        ((_VIEWS, 'if table.delivery != "firehose" or not applied.lacked(table):', "if True:"),),
    ),
    Mutation(
        "commit offsets of rows that the local Firehose holds back",
        ("tests/unit/firehose/test_delivery.py",),
        (("cdclake/local/firehose/delivery.py",
          "[*self._waiting, *(row.made.record for row in self._rows)]", "[*self._waiting]"),),
    ),
    *STATES,
    *DECODING,
    *BATCHES,
    *MASKS,
    *SEARCH,
    *FORGET,
    *SIZES,
    *TOPICS,
    *EPOCHS,
    *ACCESS,
    *DERIVED,
    *POLLS,
    *PUBLISHED,
    *PUTS,
    *QUALITY,
    *WITHHOLDING,
    *FIRST_ACCOUNT,
    *FIRST_DAY,
    *UPKEEP,
    *RELATIONS,
    *VERIFY,
    *STATE_VIEWS,
    *VALUES,
    *NEW_COLUMNS,
)  # fmt: skip
