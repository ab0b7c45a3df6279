"""Names that more than one part of cdclake must agree on, each defined once.

Source names are PostgreSQL's exact spelling. Lake names are `[a-z_][a-z0-9_]*`, because Glue and
Athena support nothing else. One function derives each kind of name.
"""

from __future__ import annotations

import hashlib
import re

# --- objects in the lake -------------------------------------------------------------------------

QUARANTINE = "cdclake_quarantine"
DERIVED_SUFFIXES = ("_changes", "_current", "_history")


def changes_name(table: str) -> str:
    """Return the name of the changelog of lake table `table`."""
    return f"{table}_changes"


def current_name(table: str) -> str:
    """Return the name of the view of live rows."""
    return f"{table}_current"


def history_name(table: str) -> str:
    """Return the name of the view of typed changes."""
    return f"{table}_history"


def lake_objects(table: str) -> tuple[str, ...]:
    """Return the names of a lake table and of the relations that belong to it."""
    return table, *(f"{table}{suffix}" for suffix in DERIVED_SUFFIXES)


def hudi_name(table: str) -> str:
    """Return the default name of a table's copy in Hudi's format."""
    return f"{table}_hudi"


def sink_name(table: str) -> str:
    """Return the name of the table that the Iceberg sink of `connectors:` appends to."""
    return f"{table}_sink"


def rebuilt_name(table: str) -> str:
    """Return the name of the rows that `verify --deep` rebuilds from the changelog."""
    return f"cdc__rebuilt_{table}"


def tail_name(table: str) -> str:
    """Return the name of the changelog's rows that may not be applied yet."""
    return f"cdc__tail_{table}"


# --- cdclake's columns ---------------------------------------------------------------------------

OP = "cdc_op"
OPERATIONS = {"c": "insert", "u": "update", "d": "delete", "r": "snapshot", "t": "truncate"}
POSITION = "cdc_position"
TX_ID = "cdc_tx_id"
COMMITTED_AT = "cdc_committed_at"
PARTITION, OFFSET = "cdc_partition", "cdc_offset"
UNAVAILABLE = "cdc_unavailable"
EPOCH = "cdc_epoch"
OVERSIZED = "cdc_oversized"  # in an event: marks one that is too large for Kafka
REFUSED = "cdc_refused"  # in an event: marks one that the connector could not write as declared
SCHEMA_FINGERPRINT = "cdc_schema"  # in an event of Avro: that of its schema; it is in no row
LSN = "cdc_lsn"
PREV_COMMIT_LSN = "cdc_prev_commit_lsn"
PHASE = "cdc_phase"
INGESTED_AT = "cdc_ingested_at"
DELETED = "cdc_deleted"
TOAST_MISSING = "cdc_toast_missing"
VALUE_POSITIONS = "cdc_value_positions"

# Iceberg's metadata columns: a data column with such a name breaks every merge-on-read MERGE
# (reference: Iceberg MetadataColumns).
ICEBERG_METADATA_COLUMNS = frozenset(
    {
        "_pos", "_file", "_deleted", "_spec_id", "_partition", "_row_id",
        "_last_updated_sequence_number", "_change_type", "_change_ordinal", "_commit_snapshot_id",
    }
)  # fmt: skip


_DROPPED = "cdc_dropped_"


def dropped_column(lake_name: str, number: int) -> str:
    """Return the lake's name for a column that was dropped for the nth time.

    >>> dropped_column("note", 1), dropped_column("note", 2)
    ('cdc_dropped_note', 'cdc_dropped_note_2')
    """
    return f"{_DROPPED}{lake_name}" + (f"_{number}" if number > 1 else "")


def is_dropped_column(lake_name: str) -> bool:
    """Check whether a lake column has the values of a column that is no longer declared."""
    return lake_name.startswith(_DROPPED)


def is_ours(lake_name: str) -> bool:
    """Check whether a lake column belongs to cdclake, not to a source."""
    return lake_name.startswith("cdc_")


def is_reserved_column(lake_name: str) -> bool:
    """Check whether a source column must not have this lake name."""
    return is_ours(lake_name) or lake_name in ICEBERG_METADATA_COLUMNS


# --- source names to lake names -----------------------------------------------------------------

LAKE_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_SLUG_LENGTH = 40


def lake_name(source: str) -> str:
    """Return the lake's name for a table or column of the source.

    It is the lowercase name if that is a valid lake name, else a slug with eight hex digits of the
    exact name's SHA-256, so that `Größe` and `Grösse` differ and the name never changes.

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
    """Replace UTF-16 units that Kafka does not allow in a topic's name, as Debezium does."""
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: "__" if found[0] > "\uffff" else "_", part)


def topic_name(pipeline: str, schema: str, table: str) -> str:
    """Return Debezium's topic of a table; topics of distinct tables may collide."""
    return f"{pipeline}.{_sanitized(schema)}.{_sanitized(table)}"


def domain_topic(pipeline: str, domain: str) -> str:
    """Return the topic that a domain's tables share; a table's own topic has two dots or more."""
    return f"{pipeline}.{domain}"


def heartbeat_topic(pipeline: str) -> str:
    """Return the topic of Debezium's heartbeats, which only prove that the connector runs."""
    return f"__debezium-heartbeat.{pipeline}"


def offsets_topic(pipeline: str) -> str:
    """Return Connect's offsets topic on AWS, which survives a replacement of the connector."""
    return f"__cdclake-offsets.{pipeline}"


def control_topic(pipeline: str, connector: str) -> str:
    """Return the topic through which the tasks of an Iceberg sink agree on a commit."""
    return f"__cdclake-control.{pipeline}.{connector}"


def delivery_group(pipeline: str, stream: str) -> str:
    """Return the consumer group of a local Firehose stream; on AWS Firehose names its own."""
    return f"firehose.{pipeline}.{stream}"


# --- objects in the source database ---------------------------------------------------------------

SOURCE_SCHEMA = "cdclake"
HEARTBEAT_TABLE = "heartbeat"
SIGNAL_TABLE = "signal"
NOTIFICATIONS = "notification"  # not a table: topic with the progress of snapshots


def source_object(pipeline: str) -> str:
    """Return the name of the pipeline's role, publication and replication slot in the source.

    Slots allow only `[a-z0-9_]`; a pipeline name has no underscore, so names do not collide.
    """
    return "cdclake_" + pipeline.replace("-", "_")


def login_secret(prefix: str) -> str:
    """Return the name of the secret with the login of the connector's role.

    It has no colons, since Kafka splits references at them. `prefix` is the deployment's; locally
    the pipeline's name.
    """
    return f"{prefix}/source"


def salt_secret(prefix: str) -> str:
    """Return the name of the secret with the salt of masks."""
    return f"{prefix}/mask"


# --- jobs, stored objects -------------------------------------------------------------------------

CATALOG = "lake"  # Spark catalog of the Glue tables
STREAM_JOB = "stream_changes"
APPLY_JOB = "apply_changes"
MAINTAIN_JOB = "maintain_tables"
REBUILD_JOB = "rebuild_tables"
REFRESH_JOB = "refresh_derived"
POLL_JOB = "poll_tables"
CHECK_JOB = "check_tables"
PUBLISH_JOB = "publish_hudi"
LOAD_JOB = "load_tables"
VERIFY_JOB = "verify_tables"
OPERATE_JOB = "operate"
FORGET_JOB = "forget_rows"
PROBE_JOB = "probe"
PROBE_TABLE = "cdclake_probe_"  # start of the name of a table that the probe makes and drops
PROBE_OUTPUTS = "ConnectorProbe"  # start of the outputs that describe the probe connector
# Those that a schedule may start in a deployment, depending on its pipeline file.
SCHEDULED_JOBS = (
    STREAM_JOB, APPLY_JOB, MAINTAIN_JOB, REFRESH_JOB,
    POLL_JOB, CHECK_JOB, PUBLISH_JOB, VERIFY_JOB,
)  # fmt: skip
STREAM_COMPONENT = "stream"  # name of the stream in messages
FIREHOSE_COMPONENT = "firehose"
COLLAPSED_BEFORE = "cdclake.collapsed-before"  # a day; a changelog may lack earlier events
COLLAPSE_COMPLETE = "cdclake.collapse-complete"  # that day, after the commit
COLLAPSED_SEQUENCE = "cdclake.collapsed-sequence"  # the same for Firehose: a sequence number
STAMP_PROPERTY = "cdclake.stamp"  # snapshot summary: what that commit covers, as JSON


# Folders of the bucket for state, on AWS; each has only the writers that need it.
CONTROL_PREFIX = "control"
CHECKPOINT_PREFIX = "checkpoints"
SOURCE_SQL_PREFIX = "source-sql"  # of files that `cdclake source sql` runs, until they have run
DEPLOYED_PREFIX = "deployed"
RELATIONS = "relations.json"  # control object: the source's relations when the lake read them
FORMER_RELATIONS = "former_relations.json"  # control object: those from before the newest epoch
REPORTS = "reports"  # folder of control objects
LOADS = "loads"  # folder of control objects
STREAM_ORDER = "stream.json"  # control object: the deployment whose stream is to run


def source_sql_function(prefix: str) -> str:
    """Return the name of a deployment's function that runs SQL files in the source."""
    return f"{prefix}-source-sql"


def checkpoint_prefix(pipeline: str) -> str:
    """Return the prefix, in the state bucket, under which a pipeline's checkpoints are stored.

    A checkpoint is one level below. S3A looks at the checkpoint's own key before it creates
    anything, and a permission on `PREFIX/*` covers that key only if it is below the prefix.
    """
    return f"{CHECKPOINT_PREFIX}/{pipeline}"


def glue_job_name(prefix: str, job: str) -> str:
    """Return the job's name in Glue; `prefix` is the deployment's."""
    return f"{prefix}-{job}"


def consumer_group_prefix(prefix: str) -> str:
    """Return the prefix of every consumer group of the deployment's stream."""
    return f"{prefix}-stream"


def report_name(run: str) -> str:
    """Return the name of the control object with the report of a job run."""
    return f"{REPORTS}/{run}.json"


def advance_name(run: str) -> str:
    """Return the name of the control object with the progress of a job run."""
    return f"{REPORTS}/{run}.advance.json"


def load_start(epoch: int) -> str:
    """Return the name of the control object with the LSN where the slot follows a bulk load."""
    return f"{LOADS}/{epoch}.json"


REDRIVE = "cdclake.redrive"  # the stream of redriven rows; tables and domains have no dot
_MAX_NAME_LENGTH = 64  # of a stream in Firehose, and of a schedule in EventBridge Scheduler


def delivery_stream_name(prefix: str, stream: str) -> str:
    """Return the stream's name in Firehose; `prefix` is the deployment's or pipeline's name."""
    return _shortened(f"{prefix}-{stream}")


def schedule_name(prefix: str, schedule: str) -> str:
    """Return the schedule's name in EventBridge Scheduler; `prefix` is the deployment's."""
    return _shortened(f"{prefix}-{schedule}")


def _shortened(name: str) -> str:
    """Return the name; one that is too long ends with a digest of the whole name."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 9]}-{digest}"


def redrive_function(prefix: str) -> str:
    """Return the function's name in Lambda; `prefix` is the deployment's."""
    return f"{prefix}-redrive"


def kinesis_stream_name(prefix: str, stream: str) -> str:
    """Return the name of the Kinesis stream in front of a Firehose stream.

    `prefix` is the deployment's or pipeline's name.
    """
    return f"{prefix}-{stream}"


def delivery_error_prefix(
    folder: str,
    kind: str = "!{firehose:error-output-type}",
    day: str = "!{timestamp:yyyy/MM/dd}",
) -> str:
    """Return the prefix for a stream's failed records; by default with Firehose's placeholders.

    >>> delivery_error_prefix("firehose", "iceberg-failed", "2026/11/22")
    'firehose/iceberg-failed/2026/11/22/'
    """
    return f"{folder}/{kind}/{day}/"


def redrive_puts_function(prefix: str) -> str:
    """Return the name of the function that puts failed records of put streams again."""
    return f"{prefix}-redrive-puts"


def redriven_prefix(folder: str) -> str:
    """Return the prefix of the objects whose records were redriven.

    >>> redriven_prefix("firehose")
    'firehose/redriven/'
    """
    return f"{folder}/redriven/"


REFUSED_METRIC = "Refused"  # records that Firehose's function returns as ProcessingFailed


def delivery_metrics(prefix: str) -> str:
    """Return the CloudWatch namespace of the metrics from the log of Firehose's function.

    Each deployment has its own, since a metric filter cannot set the deployment as a dimension.
    """
    return f"cdclake/{prefix}"


def source_server(prefix: str) -> str:
    """Return the database server's name on AWS; `prefix` is the deployment's."""
    return f"{prefix}-source"


def runbook_command(name: str) -> str:
    """Return the command that prints a runbook; that of an alarm has the alarm's name."""
    return f"cdclake runbook {name}"


def connector_name(pipeline: str) -> str:
    """Return the connector's name; it must never change, since Connect keys its offsets by it."""
    return f"{pipeline}-source"


def probe_connector_name(prefix: str) -> str:
    """Return the name of the probe connector of `cdclake doctor`, which no other has."""
    return f"{prefix}-probe-throw-away-connector"  # longer than names in `connectors:`


def probe_connector_log(prefix: str) -> str:
    """Return the log group of the probe connector."""
    return f"/aws/vendedlogs/{prefix}/connect-probe"


def declared_connector_name(prefix: str, name: str) -> str:
    """Return the name in Connect of a connector of `connectors:`; it names its group as well."""
    return f"{prefix}-{name}"


def unavailable_placeholder(pipeline: str) -> str:
    """Return the placeholder that Debezium writes for an unsent, unchanged TOAST value.

    It differs for each pipeline, so that no user's row contains it by accident.
    """
    digest = hashlib.sha256(f"cdclake unavailable value of {pipeline}".encode()).hexdigest()
    return f"__cdclake_unavailable_{digest[:24]}"
