"""Every name that more than one part of cdclake must agree on, spelled once.

Source names are PostgreSQL's exact spelling. Lake names are `[a-z_][a-z0-9_]*`, because Glue and
Athena know nothing else. One function maps each source name to each derived name.
"""

from __future__ import annotations

import hashlib
import re

# --- objects in the lake -------------------------------------------------------------------------

QUARANTINE = "cdclake_quarantine"
DERIVED_SUFFIXES = ("_changes", "_current", "_history")


def changes_name(table: str) -> str:
    """Name of the change log of lake table `table`."""
    return f"{table}_changes"


def current_name(table: str) -> str:
    """Name of the view of live rows."""
    return f"{table}_current"


def history_name(table: str) -> str:
    """Name of the view of typed changes."""
    return f"{table}_history"


# --- columns of ours -----------------------------------------------------------------------------

OP = "cdc_op"
POSITION = "cdc_position"
TX_ID = "cdc_tx_id"
COMMITTED_AT = "cdc_committed_at"
PARTITION = "cdc_partition"
OFFSET = "cdc_offset"
UNAVAILABLE = "cdc_unavailable"
EPOCH = "cdc_epoch"
LSN = "cdc_lsn"
PREV_COMMIT_LSN = "cdc_prev_commit_lsn"
PHASE = "cdc_phase"
INGESTED_AT = "cdc_ingested_at"
DELETED = "cdc_deleted"
TOAST_MISSING = "cdc_toast_missing"
VALUE_POSITIONS = "cdc_value_positions"

# Iceberg's own metadata columns: a data column of such a name breaks every merge-on-read MERGE
# (reference: Iceberg MetadataColumns).
ICEBERG_METADATA_COLUMNS = frozenset(
    {
        "_pos", "_file", "_deleted", "_spec_id", "_partition", "_row_id",
        "_last_updated_sequence_number", "_change_type", "_change_ordinal", "_commit_snapshot_id",
    }
)  # fmt: skip


_DROPPED = "cdc_dropped_"


def dropped_column(lake_name: str, number: int) -> str:
    """Name under which the lake keeps a column that is declared no more, for the nth time.

    >>> dropped_column("note", 1), dropped_column("note", 2)
    ('cdc_dropped_note', 'cdc_dropped_note_2')
    """
    return f"{_DROPPED}{lake_name}" + (f"_{number}" if number > 1 else "")


def is_dropped_column(lake_name: str) -> bool:
    """Whether a column of the lake holds what one held that is declared no more."""
    return lake_name.startswith(_DROPPED)


def is_ours(lake_name: str) -> bool:
    """Whether a column of the lake is one that no source has."""
    return lake_name.startswith("cdc_")


def is_reserved_column(lake_name: str) -> bool:
    """Whether a source column may not have this lake name."""
    return is_ours(lake_name) or lake_name in ICEBERG_METADATA_COLUMNS


# --- source names to lake names -----------------------------------------------------------------

LAKE_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_SLUG_LENGTH = 40


def lake_name(source: str) -> str:
    """The lake's name for a table or column of the source.

    The lower-cased name where that is a lake name already, else a slug with eight hex digits of
    the exact name's SHA-256, so that `Größe` and `Grösse` stay apart and the name never changes.

    >>> lake_name("CustomerId")
    'customerid'
    >>> lake_name("Order Lines")
    'order_lines_d02b9b46'
    """
    lowered = source.lower()
    if LAKE_NAME.fullmatch(lowered):
        return lowered
    slug = re.sub(r"[^a-z0-9]+", "_", lowered).strip("_")[:_SLUG_LENGTH]
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    if not slug:
        return f"_{digest}"
    return f"{slug}_{digest}" if slug[0].isalpha() else f"_{slug}_{digest}"


# --- Kafka ---------------------------------------------------------------------------------------


def _sanitized(part: str) -> str:
    """Debezium's own replacement of what Kafka does not allow in a topic's name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", part)


def topic_name(pipeline: str, schema: str, table: str) -> str:
    """The topic to which Debezium writes a table's events; distinct tables may collide here."""
    return f"{pipeline}.{_sanitized(schema)}.{_sanitized(table)}"


def domain_topic(pipeline: str, domain: str) -> str:
    """The topic that the tables of a domain share; a table's own has two dots or more."""
    return f"{pipeline}.{domain}"


def heartbeat_topic(pipeline: str) -> str:
    """Debezium's own heartbeats: no rows, only proof that the connector lives."""
    return f"__debezium-heartbeat.{pipeline}"


def offsets_topic(pipeline: str) -> str:
    """Where Connect keeps on AWS how far the connector has read, also of one that is made again."""
    return f"__cdclake-offsets.{pipeline}"


def delivery_group(pipeline: str, stream: str) -> str:
    """Consumer group of a stream of Firehose; on AWS Firehose names its own."""
    return f"firehose.{pipeline}.{stream}"


# --- our objects in the source database -----------------------------------------------------------

SOURCE_SCHEMA = "cdclake"
HEARTBEAT_TABLE = "heartbeat"
SIGNAL_TABLE = "signal"
NOTIFICATIONS = "notification"  # no table: where the connector says how far a snapshot is


def source_object(pipeline: str) -> str:
    """Name of the pipeline's role, publication and replication slot in the source.

    Slots allow `[a-z0-9_]` only; a pipeline name holds no underscore, so nothing collides.
    """
    return "cdclake_" + pipeline.replace("-", "_")


def login_secret(prefix: str) -> str:
    """The secret with the login of the connector's role; without colons, at which Kafka parts it.

    `prefix` is the deployment's; locally the pipeline's name.
    """
    return f"{prefix}/source"


def salt_secret(prefix: str) -> str:
    """The secret with the salt of `mask: hash`; named like that of the login."""
    return f"{prefix}/mask"


# --- jobs, stored objects -------------------------------------------------------------------------

CATALOG = "lake"  # the Spark catalog under which Glue tables appear
STREAM_JOB = "stream_changes"
APPLY_JOB = "apply_changes"
MAINTAIN_JOB = "maintain_tables"
REBUILD_JOB = "rebuild_tables"
LOAD_JOB = "load_tables"
VERIFY_JOB = "verify_tables"
OPERATE_JOB = "operate"
STREAM_COMPONENT = "stream"  # the stream where messages name it
FIREHOSE_COMPONENT = "firehose"
STAMP_PROPERTY = "cdclake.stamp"  # snapshot summary: what that commit covers, as JSON


# Folders of the bucket for state, on AWS; each is written by those who need it alone.
CONTROL_PREFIX = "control"
CHECKPOINT_PREFIX = "checkpoints"
DEPLOYED_PREFIX = "deployed"
STREAM_ORDER = "stream.json"  # control object: the deployment whose stream is to run


def checkpoint_prefix(pipeline: str) -> str:
    """Return the prefix, in the state bucket, under which a pipeline's checkpoints are stored.

    A checkpoint is one level below. S3A looks at the checkpoint's own key before it creates
    anything, and a permission on `PREFIX/*` covers that key only if it is below the prefix.
    """
    return f"{CHECKPOINT_PREFIX}/{pipeline}"


def glue_job_name(prefix: str, job: str) -> str:
    """The job's name in Glue; `prefix` is the deployment's."""
    return f"{prefix}-{job}"


def consumer_group_prefix(prefix: str) -> str:
    """Begins the name of every consumer group of the deployment's stream."""
    return f"{prefix}-stream"


def report_name(run: str) -> str:
    """The control object in which a job over tables says what it did."""
    return f"reports/{run}.json"


def load_start(epoch: int) -> str:
    """The control object in which a bulk load says at which LSN the slot takes over."""
    return f"loads/{epoch}.json"


REDRIVE = "cdclake.redrive"  # the stream of redriven rows; tables and domains have no dot
_STREAM_LENGTH = 64  # of a name that Firehose takes


def delivery_stream_name(prefix: str, stream: str) -> str:
    """The stream's name in Firehose; `prefix` is the deployment's, locally the pipeline's name.

    >>> delivery_stream_name("shop-prod", "orders")
    'shop-prod-orders'
    """
    name = f"{prefix}-{stream}"
    if len(name) <= _STREAM_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _STREAM_LENGTH - 9]}-{digest}"


def redrive_function(prefix: str) -> str:
    """The function's name in Lambda; `prefix` is the deployment's."""
    return f"{prefix}-redrive"


def kinesis_stream_name(prefix: str, web_logs: str) -> str:
    """The stream of Kinesis that web logs go through; `prefix` is as for streams of Firehose."""
    return f"{prefix}-{web_logs}"


def delivery_error_prefix(
    folder: str,
    kind: str = "!{firehose:error-output-type}",
    day: str = "!{timestamp:yyyy/MM/dd}",
) -> str:
    """Where in the bucket a stream of Firehose puts what fails; by default as Firehose is told.

    >>> delivery_error_prefix("firehose", "iceberg-failed", "2026/11/22")
    'firehose/iceberg-failed/2026/11/22/'
    """
    return f"{folder}/{kind}/{day}/"


def redriven_prefix(folder: str) -> str:
    """Where in the bucket the objects of an error prefix go when their records are redriven.

    >>> redriven_prefix("firehose")
    'firehose/redriven/'
    """
    return f"{folder}/redriven/"


REFUSED_METRIC = "Refused"  # what Firehose's function answers with ProcessingFailed


def delivery_metrics(prefix: str) -> str:
    """CloudWatch's namespace for what is counted in the log of Firehose's function.

    Of the deployment's own, since a log's filter can name no deployment as a dimension.
    """
    return f"cdclake/{prefix}"


def delivery_backup_prefix(folder: str, stream: str, day: str = "!{timestamp:yyyy/MM/dd}") -> str:
    """Where in the bucket a stream of Firehose with `backup: all` puts what it has read.

    >>> delivery_backup_prefix("firehose", "shop-orders", "2026/11/22")
    'firehose/as-it-came/shop-orders/2026/11/22/'
    """
    return f"{folder}/as-it-came/{stream}/{day}/"


def source_server(prefix: str) -> str:
    """The database server's name on AWS; `prefix` is the deployment's."""
    return f"{prefix}-source"


def runbook(alarm: str) -> str:
    """The page that says what to do when this alarm is on."""
    return f"docs/runbooks/{alarm}.md"


def connector_name(pipeline: str) -> str:
    """The connector's name; it never changes, for Connect keys its offsets by it."""
    return f"{pipeline}-source"


def unavailable_placeholder(pipeline: str) -> str:
    """What Debezium writes for an unchanged TOAST value it was not sent.

    Of its own for each pipeline, so that no row of a user can hold it by accident
    (correctness 1.3 f).
    """
    digest = hashlib.sha256(f"cdclake unavailable value of {pipeline}".encode()).hexdigest()
    return f"__cdclake_unavailable_{digest[:24]}"
