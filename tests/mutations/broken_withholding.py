"""Ways to break rules that withhold events: which, and what counts as withheld."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_DECODERS = ("tests/unit/jobs/test_decoders_withhold.py",)
_HELD_TESTS = ("tests/unit/deployed/test_held_events.py",)
_KEYS = ("tests/unit/verify/test_withheld_keys.py",)
_SPARK = ("tests/spark/test_withheld.py",)
_FILE = ("tests/unit/config/test_quality.py",)
_RULES = "cdclake/debezium/row_rules.py"
_STALE = "glue_jobs/operations/stale_rows.py"

WITHHOLDING = (
    Mutation(
        "withhold deletes", _DECODERS,
        (("cdclake/debezium/stream_rows.py", 'if refusal is None and op != "d":',
          "if refusal is None:"),),
    ),
    Mutation(
        "judge values that were not sent", _DECODERS,
        ((_RULES, "if column.name not in unsent and breaks(value):", "if breaks(value):"),),
    ),
    Mutation(
        "accept an event that lacks a value though an earlier one may be withheld", _DECODERS,
        (("cdclake/debezium/toast_placeholder.py",
          'return table.withholds and table.replica_identity == "full"', "return False"),),
    ),
    Mutation(
        "compare decimals as texts", _DECODERS, ((_RULES, "return Decimal\n", "return _same\n"),)
    ),
    Mutation(
        "let the fast decoder take events that break a rule", _DECODERS,
        (("glue_jobs/stream/block_decoder.py", "if broken is not None:", "if False:"),),
    ),
    Mutation(
        "let Firehose deliver what a rule withholds", _DECODERS,
        (("cdclake/debezium/changelog_rows.py", 'if op in ("c", "u", "r") and (reason',
          "if False and (reason"),),
    ),
    Mutation(
        "let rules of tables withhold rows", _FILE,
        (("cdclake/config/quality_model.py", 'if self.on == "quarantine":', "if False:"),),
    ),
    Mutation(
        "let rules withhold events that lack values", _FILE,
        (("cdclake/config/checks/withholding.py", "_check_rows(table)", "pass"),),
    ),
    Mutation(
        "let rules withhold by values that compare as text", _FILE,
        (("cdclake/config/checks/withholding.py", "_check_limits(table, rule)", "pass"),),
    ),
    Mutation(
        "stop the table after too many withheld rows", (*_SPARK, "-k", "never_stop"),
        (("glue_jobs/stream/quarantine.py", "NewlyRefused(count - withheld,",
          "NewlyRefused(count,"),),
    ),
    Mutation(
        "count withheld rows of a bulk load as faults",
        ("tests/spark/test_bulk_load.py", "-k", "no_faults"),
        (("glue_jobs/bulk_load/bulk_load.py", "loaded.faults", "loaded.refused"),),
    ),
    Mutation(
        "forget unreadable events when withheld ones are replayed", (*_SPARK, "-k", "never_stop"),
        (("glue_jobs/operations/executor.py", "done.released - done.withheld", "done.released"),),
    ),
    Mutation(
        "see no drift in rows that a rule withholds", (*_SPARK, "-k", "dropped_column"),
        (("glue_jobs/stream/partition_summary.py", "(NULL_KEY, KEY_MISMATCH, BROKEN_RULE)",
          "(NULL_KEY, KEY_MISMATCH)"),),
    ),
    Mutation(
        "delete as stale what a resync read and a rule withholds", (*_SPARK, "-k", "resync"),
        ((_STALE, "known = with_quarantined(log, stream.lake, stream.table, stream.plan, position)",
          "known = log"),),
    ),
    Mutation(
        "explain every difference by withheld events", _KEYS,
        (("glue_jobs/verify/mismatches.py", "AND source = ? AND", "AND (source = ? OR true) AND"),),
    ),
    Mutation(
        "explain a wrong row of the lake by withheld events", _KEYS,
        (("glue_jobs/verify/mismatches.py", "AND lake = accepted AND", "AND"),),
    ),
    Mutation(
        "explain rows that occur twice by withheld events", _KEYS,
        (("glue_jobs/verify/mismatches.py", "AND verdict IN ('missing', 'different')", ""),),
    ),
    Mutation(
        "explain differences by any quarantined event", _KEYS,
        (("glue_jobs/verify/withheld_keys.py", 'AND {is_withheld("reason")}', "AND true"),),
    ),
    Mutation(
        "explain differences by events that no current rule withholds", _KEYS,
        (("glue_jobs/verify/withheld_keys.py",
          ' or not refusals.is_withheld(decoded.refusal or "")', ""),),
    ),
    Mutation(
        "place withheld rows of polls as those of a snapshot", _KEYS,
        (("glue_jobs/verify/withheld_keys.py", 'if table.delivery != "poll":', "if True:"),),
    ),
    Mutation(
        "a deployment's quarantine that cannot be read has no events", _HELD_TESTS,
        (("cdclake/deployed/held_events.py", "return None  # `cdclake",
          "return {figure: {} for figure in _FIGURES}  # `cdclake"),),
    ),
    Mutation(
        "a deployment's events in quarantine are counted without a commit", _HELD_TESTS,
        (("cdclake/deployed/held_events.py", "@lru_cache(maxsize=1)\n", ""),),
    ),
)  # fmt: skip
