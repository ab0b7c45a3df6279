"""Ways to break the decoding of events, and the files and commits that follow from it."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, Patch

DECODERS = ("tests/unit/jobs/test_decoders_agree.py",)
SUMMARIES = ("tests/unit/jobs/test_partition_summary.py",)
CATALOGUE = "tests/spark/test_catalogue.py"
JOB = "tests/spark/test_changelog_job.py"
FILES = ("tests/spark/test_written_files.py",)
ONE_WRITER = "tests/spark/test_one_writer.py"
AVRO = ("tests/unit/jobs/test_avro_values.py",)

_SLOW = "cdclake/debezium/stream_rows.py"
_FIELD = "cdclake/debezium/row_field.py"
_FAST = "glue_jobs/stream/block_decoder.py"
_COLUMN = "glue_jobs/stream/decoded_column.py"
_PROOFS = "glue_jobs/stream/value_proofs.py"
_SCHEMA = "glue_jobs/stream/writer_schema.py"
_SUMMARY = "glue_jobs/stream/partition_summary.py"
_JOB = "glue_jobs/stream/changelog_job.py"
_HANDLE = "glue_jobs/iceberg/table_handle.py"
_METRICS = "glue_jobs/iceberg/file_metrics.py"


def _cases(ids: str) -> tuple[str, ...]:
    return (CATALOGUE, "-k", f"({ids}) and delta")


def _both(slow: tuple[str, str], fast: tuple[str, str]) -> tuple[Patch, ...]:
    """The same fault in both decoders, so that their comparison does not show it."""
    return (_SLOW, *slow), (_FAST, *fast)


DECODING = (
    Mutation(
        "a record is decoded with the schema of another registry", AVRO,
        ((_SCHEMA, "            raise OtherSchema\n", "            return event\n"),),
    ),
    Mutation(
        "a default that fastavro refuses fails every task of the table", AVRO,
        ((_SCHEMA, "parse_schema(_without_defaults(raw))", "parse_schema(raw)"),),
    ),
    Mutation(
        "a schema is asked for once, though the registry was replaced", AVRO,
        (("glue_jobs/stream/avro_values.py",
          "                if identifier in asked:\n                    raise\n",
          "                raise\n"),),
    ),
    Mutation(
        "order by the clock", _cases("O11 or O5"),
        _both(("row[naming.PREV_COMMIT_LSN],\n            phase",
               "row[naming.COMMITTED_AT],\n            phase"),
              ("self._prev, phase", "np.array([s.ts_us for s in self._sources]), phase")),
    ),
    Mutation(
        "order by LSN alone", _cases("O6"),
        _both(("row[naming.PREV_COMMIT_LSN],\n            phase", "0,\n            phase"),
              ("self._prev, phase", "self._prev * 0, phase")),
    ),
    Mutation(
        "a snapshot's rows are like any others", _cases("S1"),
        _both(('SNAPSHOT_PHASE if event.get("op") == "r" else STREAM_PHASE', "STREAM_PHASE"),
              ('np.where(self._is("r"), SNAPSHOT_PHASE,', 'np.where(self._is("r"), STREAM_PHASE,')),
    ),
    Mutation(
        "ignore epochs", _cases("S5"),
        _both(("            row[naming.EPOCH],\n", "            1,\n"),
              ("position_texts(self._epoch,", "position_texts(self._epoch * 0 + 1,")),
    ),
    Mutation(
        "the placeholder is data", _cases("T1 or T3"),
        ((_SLOW, "if read in field.unsent:", "if False:"),
         (_COLUMN, "if self._placeholders is not None:", "if False:")),
    ),
    Mutation(
        "know a value that was not sent as text only", _cases("T6"),
        ((_FIELD, "unavailable_forms(kind, plan.placeholder)", "(plan.placeholder,)"),
         (_COLUMN, "unavailable_forms(kind, plan.placeholder)", "(plan.placeholder,)")),
    ),
    Mutation(
        "compare LSNs as text", DECODERS,
        (("cdclake/debezium/position.py", "{lsn:0{LSN_DIGITS}x}", "{lsn:<{LSN_DIGITS}d}"),),
    ),
    Mutation(
        "a delete has no key", DECODERS,
        ((_SLOW, 'if op == "d" and keys is not None:', "if False:"),),
    ),
    Mutation(
        "trust the values of `before`", DECODERS,
        ((_SLOW, '_row(event, "before") if self._whole else None', '_row(event, "before")'),),
    ),
    Mutation(
        "any type will do", DECODERS,
        ((_SLOW, "self.is_unreadable = True", "self.is_unreadable = False"),),
    ),
    Mutation(
        "the fast decoder proves every value", DECODERS,
        ((_FAST, "if decoded.unproved is not None:", "if False:"),),
    ),
    Mutation(
        "a real is read as a float", DECODERS,
        ((_COLUMN, "_where_false(is_real(values, reals))", "None"),),
    ),
    Mutation(
        "each month has 31 days", DECODERS,
        (("glue_jobs/apply/representable_values.py",
          "(0[469]|11)-(29|30))", "(0[469]|11)-(29|30|31))"),),
    ),
    Mutation(
        "arrays are kept as they are spelled", DECODERS,
        ((_PROOFS, "not _CHANGED.search(text)", "True"),),
    ),
    Mutation(
        "key and row may differ", DECODERS,
        ((_SLOW, "return None if is_same else refusals.KEY_MISMATCH", "return None"),),
    ),
    Mutation(
        "the fast decoder takes any key", DECODERS,
        ((_FAST, "proved &= np.fromiter(same, bool, len(keys))", "pass"),),
    ),
    Mutation(
        "refuse a delete for values that nobody needs", DECODERS,
        ((_SLOW, 'if field.is_key or not (op == "d" and self._forgets):', "if True:"),),
    ),
    Mutation(
        "a key becomes NULL", ("tests/unit/jobs/test_unheld_keys.py",),
        (("cdclake/plan.py", ' or column.name in table.key', ""),),
    ),
    Mutation(
        "a NULL of a value that was not sent is taken for the value by the stream",
        ("tests/spark/test_recorded.py", "-k", "unsent_value"),
        _both(("is_lost = field.is_lost_when_unsent and lacks_old_row", "is_lost = False"),
              ("if self._may_lose_values:", "if False:")),
    ),
    Mutation(
        "the stream gives no reason for a marker", DECODERS,
        ((_SLOW, 'return str(marker["reason"])', "pass"),),
    ),
    Mutation(
        "no block has an event twice", SUMMARIES,
        ((_SUMMARY, "return bool(distinct.num_rows < kept.num_rows)", "return False"),),
    ),
    Mutation(
        "two blocks never have an event in common", SUMMARIES,
        ((_SUMMARY, " or _share_lsns(one, other)", ""),),
    ),
    Mutation(
        "large values are passed with the others", (JOB, "-k", "large_values"),
        ((_JOB, 'f"octet_length(value) <= {LARGE_VALUE_BYTES}"', '"true"'),),
    ),
    Mutation(
        "a task for each partition of Kafka", (JOB, "-k", "as_many_tasks"),
        ((_JOB, "passed.coalesce(cores)", "passed"),),
    ),
    Mutation(
        "an upper bound is cut like a lower one", FILES,
        ((_METRICS, "greatest = _truncated_up(greatest)", "greatest = greatest[:16]"),),
    ),
    Mutation(
        "no fence", (ONE_WRITER, "-k", "wakes_up_after"),
        ((_HANDLE, ".validateNoConflictingData()", ""),),
    ),
    Mutation(
        "the fence takes in what its own stamp covers only", (ONE_WRITER, "-k", "wakes_up_after"),
        (("glue_jobs/stream/append.py", "changelog.ingested(after=follows)",
          "changelog.ingested(after=follows + 86_400_000_000)"),),
    ),
)  # fmt: skip
