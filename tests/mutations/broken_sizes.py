"""Ways to break what bounds records and batches by their bytes."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

TOPICS = ("tests/unit/debezium/test_topics.py",)
MARKERS = ("tests/unit/debezium/test_oversized.py",)
UNSENT = ("tests/unit/debezium/test_unsent_values.py",)
CONF = ("tests/unit/iceberg/test_catalog_conf.py",)
LARGE = "tests/spark/test_oversized.py"

_CONNECTOR = "cdclake/debezium/connector.py"
_ERRORS = "glue_jobs/stream/table_errors.py"

SIZES = (
    Mutation(
        "logical messages go to a topic that does not exist", TOPICS,
        ((_CONNECTOR, '        "message.prefix.exclude.list": "(?s).*",\n', ""),),
    ),
    Mutation(
        "a message's prefix may have a second line", TOPICS,
        ((_CONNECTOR, '"(?s).*"', '".*"'),),
    ),
    Mutation(
        "a record that is too large fails the connector", MARKERS,
        ((_CONNECTOR, "*routes, _UNCONVERTED, _OVERSIZED]", "*routes, _UNCONVERTED]"),),
    ),
    Mutation(
        "records are measured before they are complete", MARKERS,
        ((_CONNECTOR, '"epoch", *routes, _UNCONVERTED, _OVERSIZED',
          '_OVERSIZED, "epoch", *routes, _UNCONVERTED'),),
    ),
    Mutation(
        "an event without a value that is NOT NULL has no mark", UNSENT,
        ((_CONNECTOR, "*routes, _UNCONVERTED, _OVERSIZED]", "*routes, _OVERSIZED]"),),
    ),
    Mutation(
        "Firehose accepts an event without a value that is NOT NULL", UNSENT,
        (("cdclake/debezium/changelog_rows.py",
          "(naming.OVERSIZED, naming.REFUSED)", "(naming.OVERSIZED,)"),),
    ),
    Mutation(
        "a replay accepts an event without a value that is NOT NULL", UNSENT,
        (("glue_jobs/stream/avro_values.py", '"{refusals.SCHEMA_REFUSED}: \'', "'"),),
    ),
    Mutation(
        "Firehose gives no reason for a marker", MARKERS,
        (("cdclake/debezium/changelog_rows.py", "        _refuse_marker(event)\n", ""),),
    ),
    Mutation(
        "a row that is too large passes for a deleted one", (LARGE, "-k", "deletes_nothing"),
        (("glue_jobs/operations/executor.py",
          "if unread := unread_markers(stream, request.position):", "if unread := []:"),),
    ),
    Mutation(
        "a repaired row stays in quarantine", (LARGE, "-k", "deletes_nothing"),
        (("glue_jobs/operations/executor.py",
          "    _release_markers(mine, stream, None)\n", ""),),
    ),
    Mutation(
        "no policy stops a table for its size", (LARGE, "-k", "policy"),
        ((_ERRORS, 'plan.oversized_records == "stop"', "False"),),
    ),
    Mutation(
        "consumers keep the records of their last poll for minutes", CONF,
        (("cdclake/iceberg/catalog_conf.py",
          '        "spark.kafka.consumer.fetchedData.cache.timeout": "1s",\n', ""),),
    ),
)  # fmt: skip
