"""Ways to break the update of states: the fold, the key indexes, the mix with stored rows."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

DELTA = "tests/spark/test_row_delta.py"
ONE_WRITER = "tests/spark/test_one_writer.py"

_TASK = "glue_jobs/apply/state_task.py"
_FOLD = "glue_jobs/apply/folded_changes.py"
_MIX = "glue_jobs/apply/mixed_rows.py"
_INDEX, _INDEX_TESTS = "glue_jobs/apply/key_index.py", ("tests/unit/jobs/test_key_index.py",)
_VALUES, _VALUE_TESTS = "glue_jobs/apply/state_values.py", ("tests/unit/jobs/test_state_values.py",)
_PARTITIONS = "glue_jobs/iceberg/partition_values.py"
_PARTITION_TESTS = ("tests/unit/jobs/test_partition_values.py",)
_UPDATE = "glue_jobs/apply/state_update.py"
_STORED = "glue_jobs/apply/stored_rows.py"
_DELTA_HANDLE = "glue_jobs/iceberg/delta_handle.py"
_PENDING, _PENDING_TESTS = (
    "glue_jobs/apply/pending_changes.py",
    ("tests/spark/test_pending_changes.py",),
)


def _cases(ids: str) -> tuple[str, ...]:
    return ("tests/spark/test_catalogue.py", "-k", f"({ids}) and delta")


STATES = (
    Mutation(
        "forget tombstones", _cases("D2"),
        ((_TASK, "changes = _above(changes, target)",
          "changes = changes.filter(pc.not_equal(changes.column('cdc_op'), 'd'))"),),
    ),
    Mutation(
        "every batch is ahead of the state", _cases("O2 or O6"),
        ((_TASK, "is_ahead=facts.lowest > target.newest", "is_ahead=True"),),
    ),
    Mutation(
        "drop the guard", _cases("O2 or O6"),
        ((_MIX, "is_newer = pc.greater(at_s, at_t)", "is_newer = pc.is_valid(at_s)"),),
    ),
    Mutation(
        "a row takes its place without its unsent values", (DELTA, "-k", "stamped_commit"),
        ((_TASK, "return hits.found & lacking", "return hits.found & False"),),
    ),
    Mutation(
        "values of dropped columns are lost with their rows",
        ("tests/spark/test_columns.py", "-k", "before_the_first_event_that_lacks"),
        ((_TASK, "if self._dropped() or not self.is_ahead:", "if not self.is_ahead:"),),
    ),
    Mutation(
        "stored columns are found by name",
        ("tests/spark/test_columns.py", "-k", "before_the_first_event_that_lacks"),
        (("glue_jobs/iceberg/parquet_file.py",
          "return {f.name: in_file[_id_of(f)] for f in wanted if _id_of(f) in in_file}",
          "return {f.name: f.name for f in wanted if f.name in file.names}"),),
    ),
    Mutation(
        "a carried value has its row's position", _cases("T13 or T4"),
        ((_MIX, "pc.coalesce(_stored_position(t[naming.VALUE_POSITIONS], column), at_t)", "at_t"),),
    ),
    Mutation(
        "the newest event's value, sent or not", _cases("T1 or T2 or T3"),
        ((_FOLD, "available = ~unavailable_in(columns[naming.UNAVAILABLE], name)",
          "available = np.ones(len(columns[naming.OP]), bool)"),),
    ),
    Mutation(
        "events are folded in the order of arrival", _cases("O2 or O6 or O3"),
        ((_FOLD, "return changes.take(pc.sort_indices(positions))", "return changes"),),
    ),
    Mutation(
        "a dead row counts as stored", (DELTA, "-k", "dead_row"),
        (("glue_jobs/apply/deleted_places.py",
          "return np.isin(rows, parts[0])", "return np.zeros(len(rows), bool)"),),
    ),
    Mutation(
        "the oldest file with a key has its row", (DELTA, "-k", "newest_file"),
        ((_TASK, "for number, (name, path) in enumerate(files.items()):",
          "for number, (name, path) in [*enumerate(files.items())][::-1]:"),),
    ),
    Mutation(
        "only one file of deletes for all partitions", (DELTA, "-k", "move_between_partitions"),
        ((_TASK, 'group = f"{file.spec_id} {sorted(file.partition.items())}"', 'group = ""'),),
    ),
    Mutation(
        "equal hashes are equal keys", _INDEX_TESTS,
        ((_INDEX, "if self.keys.second is not None and len(mine):", "if False:"),),
    ),
    Mutation(
        "a key is where the next one is", _INDEX_TESTS,
        ((_INDEX, 'for side in ("left", "right"))', 'for side in ("right", "right"))'),),
    ),
    Mutation(
        "another key has the indexes of the earlier one", ("tests/unit/jobs/test_state_task.py",),
        ((_INDEX, 'return "\\n".join((path, *key))', "return path"),),
    ),
    Mutation(
        "no index is ever removed", _INDEX_TESTS,
        ((_INDEX, "if size <= self._limit(stat.st_atime):", "if True:"),),
    ),
    Mutation(
        "each update makes the indexes of a large state again", _INDEX_TESTS,
        ((_INDEX, "if used_at < time.time() - IN_USE_SECONDS:", "if True:"),),
    ),
    Mutation(
        "a full disk stops the state", _INDEX_TESTS,
        ((_INDEX, "except OSError as error:  # a full disk", "except KeyError as error:  # full"),),
    ),
    Mutation(
        "composite keys run into each other", _INDEX_TESTS,
        ((_INDEX, "joined += [length, part]", "joined += [part]"),
         (_INDEX, 'pc.binary_join_element_wise(*joined, b"\\x1f")',
          'pc.binary_join_element_wise(*joined, b"")')),
    ),
    Mutation(
        "round decimals", _VALUE_TESTS,
        ((_VALUES, "one(text) if is_held(text) else None", "one(text)"),),
    ),
    Mutation(
        "an early year is one of today", _VALUE_TESTS,
        (("cdclake/debezium/field_values.py",
          "days += (year - leap) // _CYCLE_YEARS * _CYCLE_DAYS", "pass"),),
    ),
    Mutation(
        "buckets of another hash", _PARTITION_TESTS,
        ((_PARTITIONS, "(mmh3.hash(to_bytes(each)) & _MAX_HASH) % count",
          "hash(to_bytes(each)) % count"),),
    ),
    Mutation(
        "negative numbers are truncated to zero", _PARTITION_TESTS,
        ((_PARTITIONS, "_wrapped(n - n % width, kind.bit_width) for n in numbers",
          "_wrapped(int(n / width) * width, kind.bit_width) for n in numbers"),),
    ),
    Mutation(
        "truncated integers do not wrap", _PARTITION_TESTS,
        ((_PARTITIONS, "return (number + half) % (2 * half) - half", "return number"),),
    ),
    Mutation(
        "a NaN is a partition", _PARTITION_TESTS,
        ((_PARTITIONS, "if pa.types.is_floating(found.type) and", "if False and"),),
    ),
    Mutation(
        "a delta does not mind that its files were replaced",
        (ONE_WRITER, "-k", "lost_to_a_compaction"),
        ((_DELTA_HANDLE, "if delta.replaced_in:", "if False:"),),
    ),
    Mutation(
        "a delta does not mind another one", (ONE_WRITER, "-k", "two_owners_of_a_state"),
        ((_DELTA_HANDLE, ".validateNoConflictingDataFiles()", ""),
         (_DELTA_HANDLE, "commit.validateNoConflictingDeleteFiles()", "commit")),
    ),
    Mutation(
        "the own commit is taken for the next after another's", (DELTA, "-k", "commit_between"),
        ((_DELTA_HANDLE,
          "if (None if parent is None else int(parent)) != before.snapshot_id:", "if False:"),),
    ),
    Mutation(
        "a commit is validated from files that were not searched",
        (DELTA, "-k", "files_that_were_searched"),
        ((_UPDATE, "until, request.target.snapshot_id",
          "until, self._state.live().snapshot_id"),),
    ),
    Mutation(
        "a part of the pending changes passes for all", _PENDING_TESTS,
        ((_PENDING, "through=until,\n        rows", "through=through,\n        rows"),),
    ),
    Mutation(
        "all pending changes are one part", _PENDING_TESTS,
        ((_PENDING, "if rows > MAX_EVENTS or size > MAX_BYTES:", "if False:"),),
    ),
    Mutation(
        "many rows of one ingestion are all of its last part", _PENDING_TESTS,
        ((_UPDATE, "F.pmod(code, F.lit(parts)) == part", "F.lit(part) == 0"),
         (_UPDATE, "return max(-(-facts.events // MAX_EVENTS), ", "return max(2, ")),
    ),
    Mutation(
        "all events of a key are in one task", _PENDING_TESTS,
        ((_UPDATE, "persisted(newest_events(rows, self.table, carried))", "persisted(rows)"),),
    ),
    Mutation(
        "only the newest events of keys are divided", _PENDING_TESTS,
        (("glue_jobs/apply/newest_events.py",
          "*(is_available(table, column, SPARK) for column in carried),", ""),),
    ),
    Mutation(
        "stored rows with large values are read at once", ("tests/unit/jobs/test_state_task.py",),
        ((_STORED, "max(1, min(BLOCK_BYTES * rows // max(needed, 1), MAX_BLOCK_ROWS))",
          "MAX_BLOCK_ROWS"),),
    ),
    Mutation(
        "repeated stored values are counted once", ("tests/unit/jobs/test_state_task.py",),
        ((_STORED, "decoded_bytes(source, file.metadata, [group], enough=_MAX_MEASURED_BYTES)",
          "file.metadata.row_group(group).total_byte_size"),),
    ),
    Mutation(
        "pages that need too much memory are read to measure them",
        ("tests/unit/jobs/test_decoded_size.py",),
        (("glue_jobs/iceberg/decoded_size.py", "if plain + stored > enough:", "if False:"),),
    ),
    Mutation(
        "rows with large stored values are held until the end",
        ("tests/unit/jobs/test_state_task.py",),
        ((_TASK, ">= MAX_HELD_BYTES:", "< 0:"),),
    ),
    Mutation(
        "small files pass for small changes", _PENDING_TESTS,
        ((_PENDING, "if left < 0:", "if False:"),),
    ),
    Mutation(
        "large values of one ingestion are one part", _PENDING_TESTS,
        ((_UPDATE, "-(-facts.text_bytes // MAX_DECODED_BYTES), 1)", "1)"),),
    ),
    Mutation(
        "a fold takes a value of an earlier row of the key",
        ("tests/unit/jobs/test_state_task.py",),
        ((_FOLD, "has_value[has_value >= born[codes[has_value]]]", "has_value"),),
    ),
    Mutation(
        "a task keeps a value of an earlier row of the key",
        ("tests/unit/jobs/test_state_task.py",),
        ((_MIX, "pc.greater(folded.created, kept),", "pc.greater(kept, kept),"),),
    ),
    Mutation(
        "a task takes the NULL of a delete for a value that was sent",
        ("tests/unit/jobs/test_state_task.py", "-k", "earlier_row"),
        ((_MIX, "is_newer, deleted_by_source(t, table)", "is_newer, False"),),
    ),
    Mutation(
        "a task takes a late delete for a value of the next row",
        ("tests/unit/jobs/test_state_task.py", "-k", "late_delete"),
        ((_MIX, "deleted_by_source(s, table), pc.invert(is_newer)", "is_newer, False"),),
    ),
    Mutation(
        "a MERGE keeps a value of an earlier row of the key",
        ("tests/spark/test_earlier_rows.py", "-k", "merge"),
        (("cdclake/iceberg/state_rows.py", 'f"s.{CREATED_AT} > {stored}"',
          '"false"'),),
    ),
)  # fmt: skip
