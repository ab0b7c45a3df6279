"""Ways to break what the stream knows of Kafka's topics, its checkpoint and its progress."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_STATE_TESTS = ("tests/unit/jobs/test_topic_state.py",)
_LOST_TESTS = ("tests/spark/test_lost_topics.py",)
_LOCAL_TESTS = ("tests/unit/local/test_lost_kafka.py",)
_GAP_TESTS = ("tests/unit/jobs/test_kafka_range.py",)
_RANGE = "glue_jobs/stream/kafka_range.py"
_STATE = "glue_jobs/control/topic_state.py"
_CHECK = "glue_jobs/stream/topic_check.py"
_CHECKPOINT = "glue_jobs/stream/checkpoint.py"
_PROGRESS = "glue_jobs/control/progress.py"
_TABLE_STREAM = "glue_jobs/stream/table_stream.py"

TOPICS = (
    Mutation(
        "a topic that was created again is the same", _STATE_TESTS,
        ((_STATE, "if not known or known == found:", "if True:"),),
    ),
    Mutation(
        "an end before the offset is not seen", _STATE_TESTS,
        ((_STATE, "if end is None or offset > end:", "if end is None:"),),
    ),
    Mutation(
        "a new topic's first offsets are not remembered", _STATE_TESTS,
        ((_CHECK, "        place.offsets.setdefault(partition, first)", "        pass"),),
    ),
    Mutation(
        "a table that rejoins has missed what its topic held", _STATE_TESTS,
        ((_CHECK, "rejoins=table.name in self._rejoining", "rejoins=False"),),
    ),
    Mutation(
        "offsets of another topic are taken over", _STATE_TESTS,
        ((_CHECK, "reached = topic.valid(place.offsets) if is_same else {}",
          "reached = topic.valid(place.offsets)"),),
    ),
    Mutation(
        "a stamp mixes the offsets of two topics", _STATE_TESTS,
        (("glue_jobs/iceberg/commit_metadata.py", "return {} if is_other else self.offsets",
          "return self.offsets"),),
    ),
    Mutation(
        "the stamp of a load forgets the topic of its offsets",
        ("tests/spark/test_bulk_load.py", "-k", "new_topic"),
        (("glue_jobs/bulk_load/table_load.py",
          "next_stamp(before, [], epoch=self.epoch, ingested_at=ingested_at)",
          "ChangesStamp(offsets=before.offsets, ingested_through=ingested_at, epoch=self.epoch)"),),
    ),
    Mutation(
        "the stamp keeps what the new topic does not reach", (*_LOST_TESTS, "-k", "created_again"),
        (("glue_jobs/stream/batch.py", ".accept_topic(topic)", ""),
         (_TABLE_STREAM, "taken=changelog.stamp.offsets_in(self.place.topic_id)",
          "taken=changelog.stamp.offsets")),
    ),
    Mutation(
        "rows that never came make rows stale", (*_LOST_TESTS, "-k", "never_reached"),
        (("glue_jobs/operations/executor.py", "if found < read:", "if False:"),),
    ),
    Mutation(
        "columns are remembered after the append alone", (*_LOST_TESTS, "-k", "first_seen"),
        ((_TABLE_STREAM, "            self.remember(drift.known)", "            pass"),),
    ),
    Mutation(
        "a stream that wakes up overwrites the progress", _STATE_TESTS,
        ((_PROGRESS, "control.write_if(PROGRESS, content, self.etag)",
          "control.write(PROGRESS, content) or ''"),),
    ),
    Mutation(
        "a new stream leaves the progress to the old one", _STATE_TESTS,
        ((_PROGRESS, "        if self.etag is not None:\n            self._write(control)",
          "        pass"),),
    ),
    Mutation(
        "a table with lost rows says nothing", _STATE_TESTS,
        (("glue_jobs/control/table_progress.py",
          "self.incomplete or self.warning", "self.warning"),),
    ),
    Mutation(
        "a gap ends where Kafka ends at each evaluation", _GAP_TESTS,
        ((_RANGE, "max(start, batch_ends.get(partition, end))", "batch_ends.get(partition, -1)"),),
    ),
    Mutation(
        "a gap begins where Kafka begins at each evaluation", _GAP_TESTS,
        ((_RANGE, "start = resume.get(partition, first)", "start = resume.get(partition, -2)"),),
    ),
    Mutation(
        "a checkpoint that Kafka does not reach is kept", _STATE_TESTS,
        ((_CHECKPOINT, "if not first <= offset <= end:", "if not offset <= end:"),),
    ),
    Mutation(
        "a damaged checkpoint is kept", _STATE_TESTS,
        ((_CHECKPOINT, 'raise ValueError("incomplete")', "return []"),),
    ),
    Mutation(
        "a heartbeat of an earlier Kafka is accepted", _LOCAL_TESTS,
        (("cdclake/local/lake/topics.py",
          "is_read and progress.heartbeat_committed_us >= self.committed_us", "is_read"),),
    ),
    Mutation(
        "a lake goes on without its connector's offsets", _LOCAL_TESTS,
        (("cdclake/local/lake/connector_offsets.py", "return state.connector_offsets != topic",
          "return False"),),
    ),
    Mutation(
        "an event that is twice in quarantine counts twice", _LOCAL_TESTS,
        (("glue_jobs/reader/quarantine_counts.py",
          'count(DISTINCT (topic, "partition", "offset"))', "count(*)"),),
    ),
)  # fmt: skip
