"""Ways to break what bounds records and batches by their bytes."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

TOPICS = ("tests/unit/debezium/test_topics.py",)
MARKERS = ("tests/unit/debezium/test_oversized.py",)
SLICES = ("tests/unit/jobs/test_batch_slices.py",)
CONF = ("tests/unit/iceberg/test_catalog_conf.py",)
LARGE = "tests/spark/test_oversized.py"

_CONNECTOR = "cdclake/debezium/connector.py"
_BATCH = "glue_jobs/stream/batch.py"

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
        ((_CONNECTOR, '["epoch", *routes, _OVERSIZED]', '["epoch", *routes]'),),
    ),
    Mutation(
        "records are measured before they are complete", MARKERS,
        ((_CONNECTOR, '["epoch", *routes, _OVERSIZED]', '[_OVERSIZED, "epoch", *routes]'),),
    ),
    Mutation(
        "Firehose gives no reason for a marker", MARKERS,
        (("cdclake/debezium/changelog_rows.py", "        _refuse_marker(event)\n", ""),),
    ),
    Mutation(
        "the stream gives no reason for a marker", (LARGE, "-k", "is_no_row"),
        (("glue_jobs/stream/decode.py", "F.coalesce(oversized, first_reason(", "(first_reason("),),
    ),
    Mutation(
        "a row that is too large passes for a deleted one", (LARGE, "-k", "deletes_nothing"),
        (("glue_jobs/operations/executor.py",
          "if unread := unread_markers(batch, request.position):", "if unread := []:"),),
    ),
    Mutation(
        "a repaired row stays in quarantine", (LARGE, "-k", "deletes_nothing"),
        (("glue_jobs/operations/executor.py",
          "    _release_markers(mine, batch, None)\n", ""),),
    ),
    Mutation(
        "no policy stops a table for its size", (LARGE, "-k", "policy"),
        ((_BATCH, 'plan.oversized_records == "stop"', "False"),),
    ),
    Mutation(
        "a batch is as large as it is", (LARGE, "-k", "heartbeats_last"),
        ((_BATCH, "if is_whole and not self._slices.fits", "if False and not self._slices.fits"),),
    ),
    Mutation(
        "a heartbeat is in the lake before what it follows", (LARGE, "-k", "heartbeats_last"),
        (("glue_jobs/stream/batch_slices.py", "(piece.topic in own, piece)", "piece"),),
    ),
    Mutation(
        "a gap is read whole", (LARGE, "-k", "gap"),
        ((_BATCH, "return self._slices.of_gap(records, table.topic, missed)",
          "return [(records, missed)]"),),
    ),
    Mutation(
        "a poll of large records is bounded by their number alone", SLICES,
        (("glue_jobs/stream/batch_slices.py", "min([MAX_POLL_RECORDS, *fitting])",
          "MAX_POLL_RECORDS"),),
    ),
    Mutation(
        "the slices are read with Kafka's own bound of a poll", (LARGE, "-k", "heartbeats_last"),
        (("glue_jobs/stream/batch_slices.py", "options = self._brokers | poll_bound(pieces)",
          "options = self._brokers"),),
    ),
    Mutation(
        "consumers keep the records of their last poll for minutes", CONF,
        (("cdclake/iceberg/catalog_conf.py",
          '        "spark.kafka.consumer.fetchedData.cache.timeout": "1s",\n', ""),),
    ),
)  # fmt: skip
