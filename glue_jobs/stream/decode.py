"""Debezium events to rows of the log; what cannot be one gets the reason why.

A pure function of the record and the table's declaration: reading the same event again, in any
batch, gives the same row. One typed `from_json` does the work; its corrupt-record column fires on
every field that is not exactly of its type, where `from_json` alone would turn it into NULL in
silence (correctness 1.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.position import EPOCH_DIGITS, LSN_DIGITS, SNAPSHOT_PHASE, STREAM_PHASE
from cdclake.debezium.toast_placeholder import unavailable_forms
from cdclake.debezium.types import Conversion
from cdclake.iceberg.conversions import is_representable
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import CHANGES_COLUMNS, SHARED_COLUMNS
from cdclake.jobs.stream.fields import (
    ABSENT,
    MISFITS,
    ODD,
    NamedFields,
    PlainFields,
    any_of,
    json_key,
)
from cdclake.plan import Column, Plan, Table

# Columns beside the row's own: under `cdc_`, which no column of a source may begin with.
REFUSAL = "cdc__refusal"  # why the event cannot be a row of the log; NULL if it can
_TEXT, _KEY_TEXT = "cdc__text", "cdc__key_text"
_EVENT, _KEY, _CORRUPT = "cdc__event", "cdc__event_key", "cdc__corrupt"

_READ_TYPES: dict[str, DataType] = {  # by what the log holds
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": DoubleType(),  # read as a float, a number that is none would be rounded unseen
    "double": DoubleType(),
    "string": StringType(),
}


class EventDecoder:
    """Makes rows of `<t>_changes` out of one table's Kafka records."""

    def __init__(self, table: Table, plan: Plan) -> None:
        self._table = table
        self._plan = plan
        self._parsed = [
            F.col("partition").alias(naming.PARTITION),
            F.col("offset").alias(naming.OFFSET),
            F.col("value").cast("string").alias(_TEXT),
            _parse("value", _envelope_schema(table)).alias(_EVENT),
            F.col("key").cast("string").alias(_KEY_TEXT),
        ]
        self._plain = self._steps(PlainFields)

    @cached_property
    def _named(self) -> list[list[Expression]]:
        return self._steps(NamedFields)

    def decode(self, events: DataFrame) -> DataFrame:
        """The log's columns but `cdc_ingested_at`, with `REFUSAL`, `ABSENT`, `MISFITS` and `ODD`.

        `events` are Kafka records of the table's topic. Kafka tombstones are dropped, for they
        carry no row. No order is promised.
        """
        return self._decoded(events, self._named)

    def decode_plain(self, events: DataFrame) -> DataFrame:
        """As `decode`, at less cost; wrong for events that are `ODD`, which few batches have."""
        return self._decoded(events, self._plain)

    def _decoded(self, events: DataFrame, steps: list[list[Expression]]) -> DataFrame:
        parsed = events.where(F.col("value").isNotNull()).select(*self._parsed)
        return reduce(lambda rows, step: rows.select(*step), steps, parsed)

    def _steps(self, how: type[PlainFields]) -> list[list[Expression]]:
        table, placeholder, every = self._table, self._plan.placeholder, F.col("*")
        fields = how(table, event=_EVENT, text=_TEXT, corrupt=_CORRUPT)
        values = _values(table, fields, placeholder)
        return [
            [every, _key(table)],
            *([every, *step] for step in fields.steps()),
            [every, *_facts(), *_images(table, fields), *fields.findings()],
            [every, *values, _unavailable(table, fields, placeholder)],
            [
                *(F.col(SPARK.name(column.name)) for column in table.columns),
                *(F.col(name) for name in FACT_COLUMNS),
                _refusal(table, self._plan).alias(REFUSAL),
                *(F.col(column) for column in (ABSENT, MISFITS, ODD)),
            ],
        ]


def _parse(column: str, schema: StructType) -> Expression:
    options = {"columnNameOfCorruptRecord": _CORRUPT}
    return F.from_json(F.col(column).cast("string"), schema, options)


def _row_schema(columns: Sequence[Column]) -> StructType:
    return StructType(
        [StructField(n, _READ_TYPES[c.column_type.log]) for c in columns for n in c.names]
    )


def _envelope_schema(table: Table) -> StructType:
    source = StructType(
        [
            StructField("lsn", LongType()),
            StructField("sequence", StringType()),
            StructField("txId", LongType()),
            StructField("ts_us", LongType()),
        ]
    )
    # Under another identity `before` holds made-up values for NOT NULL columns: never read it.
    before = [StructField("before", _row_schema(table.columns))] if _logs_whole_rows(table) else []
    return StructType(
        [
            *before,
            StructField("after", _row_schema(table.columns)),
            StructField("source", source),
            StructField("op", StringType()),
            StructField(naming.EPOCH, StringType()),
            StructField(_CORRUPT, StringType()),
        ]
    )


def _key(table: Table) -> Expression:
    """The record's key; not parsed where it says in the usual text what the row says."""
    parsed = _parse(_KEY_TEXT, _row_schema(table.key_columns).add(_CORRUPT, StringType()))
    if any(column.column_type.log not in ("int", "bigint") for column in table.key_columns):
        return parsed.alias(_KEY)  # of other values the usual text is no plain one
    after = {c.source: F.col(f"{_EVENT}.after").getField(c.source) for c in table.key_columns}
    fields = [F.concat(F.lit(f"{json_key(name)}:"), value) for name, value in after.items()]
    usual = F.concat(F.lit("{"), F.concat_ws(",", *fields), F.lit("}"))
    taken = [value.alias(name) for name, value in after.items()]
    same = F.struct(*taken, F.lit(None).cast("string").alias(_CORRUPT))
    return F.when(F.col(_KEY_TEXT) == usual, same).otherwise(parsed).alias(_KEY)


def _logs_whole_rows(table: Table) -> bool:
    return table.replica_identity == "full"


# What the log has beside the row's own columns, but for when it was ingested.
FACT_COLUMNS = tuple(
    name for name, _ in (*SHARED_COLUMNS, *CHANGES_COLUMNS) if name != naming.INGESTED_AT
)


def _facts() -> list[Expression]:
    """Everything about the event that is not its row."""
    sequence = F.split(f"{_EVENT}.source.sequence", ",")
    prev = F.coalesce(_unquoted(F.get(sequence, F.lit(0))), F.lit(0).cast("bigint"))
    # Rows of an incremental snapshot carry no lsn of their own, only the sequence has it.
    lsn = F.coalesce(F.col(f"{_EVENT}.source.lsn"), _unquoted(F.get(sequence, F.lit(1))))
    phase = F.when(F.col(f"{_EVENT}.op") == "r", SNAPSHOT_PHASE).otherwise(STREAM_PHASE)
    epoch = F.col(f"{_EVENT}.{naming.EPOCH}").cast("int")
    position = F.concat_ws(
        ".",
        _hex(epoch, EPOCH_DIGITS),
        _hex(prev, LSN_DIGITS),
        phase.cast("string"),
        _hex(lsn, LSN_DIGITS),
        _hex(F.col(naming.OFFSET), LSN_DIGITS),
    )
    return [
        F.col(f"{_EVENT}.op").alias(naming.OP),
        F.lower(position).alias(naming.POSITION),
        F.col(f"{_EVENT}.source.txId").alias(naming.TX_ID),
        F.timestamp_micros(F.col(f"{_EVENT}.source.ts_us")).alias(naming.COMMITTED_AT),
        epoch.alias(naming.EPOCH),
        lsn.alias(naming.LSN),
        prev.alias(naming.PREV_COMMIT_LSN),
        phase.alias(naming.PHASE),
    ]


def _unquoted(element: Expression) -> Expression:
    """The number in an element of a list in JSON, the list's brackets perhaps still at it."""
    return F.btrim(element, F.lit('[]" ')).cast("bigint")


def _hex(number: Expression, digits: int) -> Expression:
    return F.lpad(F.hex(number), digits, "0")


def _image_name(index: int) -> str:
    return f"cdc__image_{index}"


def _images(table: Table, fields: PlainFields) -> list[Expression]:
    """Each column as the event has it; of a delete the key, or the whole `before`.

    Other events than those with a row have no `after`.
    """
    is_delete = F.col(f"{_EVENT}.op") == "d"
    images = []
    for index, column in enumerate(table.columns):
        image = fields.image(column)
        if column.name in table.key:
            image = F.when(is_delete, F.col(_KEY).getField(column.source)).otherwise(image)
        if column.column_type.log == "float":
            image = image.cast(FloatType())
        images.append(image.alias(_image_name(index)))
    return images


def _is_unavailable(
    table: Table, fields: PlainFields, index: int, placeholder: str
) -> Expression | None:
    """Whether the value was not sent; None where it always is."""
    column = table.columns[index]
    unsent = None if _logs_whole_rows(table) else _is_placeholder(table, index, placeholder)
    if not column.renamed_from:
        return unsent
    # Before its new name was declared, and after its old one was gone.
    return any_of([fields.is_unsent(column), *([] if unsent is None else [unsent])])


def _is_placeholder(table: Table, index: int, placeholder: str) -> Expression | None:
    """Whether the image is what stands for a value that was not sent; None if nothing does."""
    column = table.columns[index]
    if column.name in table.key or not column.column_type.toastable:
        return None
    forms = unavailable_forms(column.column_type, placeholder)
    if not forms:
        return None
    return F.coalesce(F.col(_image_name(index)).isin(*forms), F.lit(False))


def _values(table: Table, fields: PlainFields, placeholder: str) -> list[Expression]:
    values = []
    for index, column in enumerate(table.columns):
        value = F.col(_image_name(index))
        unavailable = _is_unavailable(table, fields, index, placeholder)
        if unavailable is not None:
            value = F.when(~unavailable, value)
        values.append(value.alias(column.name))
    return values


def _unavailable(table: Table, fields: PlainFields, placeholder: str) -> Expression:
    """Lake names of the columns whose value was not sent; NULL where all were."""
    unsent = {
        column.name: is_unsent
        for index, column in enumerate(table.columns)
        if (is_unsent := _is_unavailable(table, fields, index, placeholder)) is not None
    }
    if not unsent:
        return F.lit(None).cast("array<string>").alias(naming.UNAVAILABLE)
    names = [F.when(is_unsent, F.lit(name)) for name, is_unsent in unsent.items()]
    listed = F.array_compact(F.array(*names))
    return F.when(any_of([*unsent.values()]), listed).alias(naming.UNAVAILABLE)


def _refusal(table: Table, plan: Plan) -> Expression:
    """The first reason that speaks against the event, NULL if none does."""
    op = F.col(naming.OP)
    has_row, has_key = op.isin("c", "u", "r"), op.isin("c", "u", "r", "d")
    key_images = [F.col(_KEY).getField(c.source) for c in table.key_columns]
    reasons = [
        (_is_unreadable(), refusals.UNREADABLE_VALUE),
        (
            ~op.isin("c", "u", "r", "d", "t") | op.isNull(),
            refusals.UNKNOWN_OPERATION,
        ),
        (
            F.col(f"{_EVENT}.source.sequence").isNull() | F.col(naming.LSN).isNull(),
            refusals.NO_SEQUENCE,
        ),
        (F.col(naming.EPOCH).isNull(), refusals.NO_EPOCH),
        (
            has_key & (F.col(_KEY).isNull() | F.col(f"{_KEY}.{_CORRUPT}").isNotNull()),
            refusals.UNREADABLE_KEY,
        ),
        (has_row & F.col(f"{_EVENT}.after").isNull(), refusals.NO_ROW),
        (
            has_key & any_of([image.isNull() for image in key_images]),
            refusals.NULL_KEY,
        ),
        (has_row & any_of(_key_mismatches(table)), refusals.KEY_MISMATCH),
    ]
    reasons += _unsent_values(table, plan.placeholder)
    return first_reason([*reasons, *unrepresentable(table, plan)])


Reason = tuple[Expression, str]  # what speaks against a row, and how it is said


def first_reason(reasons: Sequence[Reason]) -> Expression:
    """The first that holds; NULL if none does."""
    return F.coalesce(*(F.when(condition, F.lit(reason)) for condition, reason in reasons))


def unrepresentable(table: Table, plan: Plan) -> list[Reason]:
    """What the policy has against rows in the log's columns: values that `<t>` cannot hold.

    Where nothing of a deleted row stays, its last values are for the log alone, which holds any:
    refusing the delete would keep the row alive.
    """
    if plan.not_representable != "quarantine":
        return []
    forgotten = F.col(naming.OP) == "d" if table.deletes == "hard" else F.lit(False)
    return [
        (
            (F.lit(column.name in table.key) | ~forgotten) & _is_not_representable(column),
            refusals.not_representable(column),
        )
        for column in table.columns
        if column.column_type.conversion is not Conversion.NONE
    ]


def _unsent_values(table: Table, placeholder: str) -> list[Reason]:
    """A placeholder where none may be: sent before the source had identity full, or since."""
    if not _logs_whole_rows(table):
        return []
    return [
        (unsent, refusals.unsent_value(c))
        for index, c in enumerate(table.columns)
        if (unsent := _is_placeholder(table, index, placeholder)) is not None
    ]


def _is_unreadable() -> Expression:
    corrupt = F.col(f"{_EVENT}.{_CORRUPT}").isNotNull()
    return F.col(_EVENT).isNull() | corrupt | F.col(MISFITS).isNotNull()


def _is_not_representable(column: Column) -> Expression:
    value = SPARK.name(column.name)
    held = is_representable(value, column.column_type, SPARK)
    return F.expr(f"{value} IS NOT NULL AND NOT {held}")


def _key_mismatches(table: Table) -> list[Expression]:
    return [
        ~F.col(_KEY).getField(c.source).eqNullSafe(F.col(f"{_EVENT}.after").getField(c.source))
        for c in table.key_columns
    ]
