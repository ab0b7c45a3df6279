"""Decoding of Debezium events to changelog rows; refused events get a reason.

The row is a pure function of the record and the table's declaration: the same event gives the same
row in every batch. One typed `from_json` does the work; its corrupt-record column is set for every
field that does not have its exact type, which `from_json` alone would silently turn into NULL
(correctness 1.5).
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
from cdclake.debezium.toast_placeholder import is_lost_when_unsent, unavailable_forms
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

# Additional columns start with `cdc_`, which no column of a source may.
REFUSAL = "cdc__refusal"  # why the event is refused; NULL if it is accepted
_TEXT, _KEY_TEXT = "cdc__text", "cdc__key_text"
_EVENT, _KEY, _CORRUPT = "cdc__event", "cdc__event_key", "cdc__corrupt"

_READ_TYPES: dict[str, DataType] = {  # by type in the changelog
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": DoubleType(),  # as a float, a wider number would be rounded silently
    "double": DoubleType(),
    "string": StringType(),
}


class EventDecoder:
    """Decoder of one table's Kafka records to changelog rows."""

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
        """Decode Kafka records of the table's topic to changelog rows.

        The result has the changelog's columns without `cdc_ingested_at`, plus `REFUSAL`, `ABSENT`,
        `MISFITS` and `ODD`, in no particular order. Kafka tombstones are dropped, since they carry
        no row.
        """
        return self._decoded(events, self._named)

    def decode_plain(self, events: DataFrame) -> DataFrame:
        """Decode like `decode` at less cost; wrong for `ODD` events, which few batches have."""
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
    # With another identity `before` has invented values for NOT NULL columns: never read it.
    before = [StructField("before", _row_schema(table.columns))] if _logs_whole_rows(table) else []
    return StructType(
        [
            *before,
            StructField("after", _row_schema(table.columns)),
            StructField("source", source),
            StructField("op", StringType()),
            StructField(naming.EPOCH, StringType()),
            StructField(naming.OVERSIZED, StructType([StructField("reason", StringType())])),
            StructField(_CORRUPT, StringType()),
        ]
    )


def _key(table: Table) -> Expression:
    """Return the record's key; skip parsing if its text equals the key of the row."""
    parsed = _parse(_KEY_TEXT, _row_schema(table.key_columns).add(_CORRUPT, StringType()))
    if any(column.column_type.log not in ("int", "bigint") for column in table.key_columns):
        return parsed.alias(_KEY)  # other types have no canonical text
    after = {c.source: F.col(f"{_EVENT}.after").getField(c.source) for c in table.key_columns}
    fields = [F.concat(F.lit(f"{json_key(name)}:"), value) for name, value in after.items()]
    usual = F.concat(F.lit("{"), F.concat_ws(",", *fields), F.lit("}"))
    taken = [value.alias(name) for name, value in after.items()]
    same = F.struct(*taken, F.lit(None).cast("string").alias(_CORRUPT))
    return F.when(F.col(_KEY_TEXT) == usual, same).otherwise(parsed).alias(_KEY)


def _logs_whole_rows(table: Table) -> bool:
    return table.replica_identity == "full"


# The changelog's columns without those of the row and the time of ingestion.
FACT_COLUMNS = tuple(
    name for name, _ in (*SHARED_COLUMNS, *CHANGES_COLUMNS) if name != naming.INGESTED_AT
)


def _facts() -> list[Expression]:
    """Compute the event's columns other than the row."""
    sequence = F.split(f"{_EVENT}.source.sequence", ",")
    prev = F.coalesce(_unquoted(F.get(sequence, F.lit(0))), F.lit(0).cast("bigint"))
    # Rows of an incremental snapshot have no `lsn`; it is in the sequence.
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
    """Parse the number in an element of a JSON list, with or without the list's brackets."""
    return F.btrim(element, F.lit('[]" ')).cast("bigint")


def _hex(number: Expression, digits: int) -> Expression:
    return F.lpad(F.hex(number), digits, "0")


def _image_name(index: int) -> str:
    return f"cdc__image_{index}"


def _images(table: Table, fields: PlainFields) -> list[Expression]:
    """Return each column's value; for a delete the key, or the whole `before`.

    Only events with a row have `after`.
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
    """Return the condition that the value was not sent; None if it always is."""
    column = table.columns[index]
    unsent = None if _logs_whole_rows(table) else _is_placeholder(table, index, placeholder)
    if not column.renamed_from:
        return unsent
    # Sent after the old name was dropped and before the new name was declared.
    return any_of([fields.is_unsent(column), *([] if unsent is None else [unsent])])


def _is_placeholder(table: Table, index: int, placeholder: str) -> Expression | None:
    """Return the condition that the image is the placeholder; None if it never is."""
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
    """List the lake names of the columns whose value was not sent; NULL if all were."""
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
    """Return the first reason to refuse the event, NULL if there is none."""
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
    # The connector's marker of an event that was too large contains the reason.
    oversized = F.col(f"{_EVENT}.{naming.OVERSIZED}.reason")
    return F.coalesce(oversized, first_reason([*reasons, *unrepresentable(table, plan)]))


Reason = tuple[Expression, str]  # condition and text


def first_reason(reasons: Sequence[Reason]) -> Expression:
    """Return the first reason whose condition holds; NULL if there is none."""
    return F.coalesce(*(F.when(condition, F.lit(reason)) for condition, reason in reasons))


def unrepresentable(table: Table, plan: Plan) -> list[Reason]:
    """Return the reasons to refuse values that the state cannot hold, as the policy requires.

    With hard deletes the last values of a deleted row are only stored in the changelog, which can
    hold any: refusing the delete would keep the row alive.
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
    """Refuse unsent values if the replica identity is full; it was not when they were sent."""
    if not _logs_whole_rows(table):
        return []
    return [
        (unsent, refusals.unsent_value(c))
        for index, c in enumerate(table.columns)
        if (unsent := _is_unsent(table, index, placeholder)) is not None
    ]


def _is_unsent(table: Table, index: int, placeholder: str) -> Expression | None:
    """Return the condition that the value was not sent; None if the event cannot tell.

    A type without a placeholder arrives as NULL, which may be the value; but under replica identity
    full the event of an update has the old row as well.
    """
    column = table.columns[index]
    if column.name in table.key or not is_lost_when_unsent(column.column_type):
        return _is_placeholder(table, index, placeholder)
    is_update = F.col(naming.OP) == "u"
    is_null = F.col(_image_name(index)).isNull()
    return is_update & F.col(f"{_EVENT}.before").isNull() & is_null


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
