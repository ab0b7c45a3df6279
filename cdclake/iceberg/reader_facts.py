"""Support of the lake's tables by each query engine, with the source and date of each fact.

`validate` refuses by this table, and `docs/reading.md` prints it. A state has position deletes, or
deletion vectors with format version 3; cdclake writes no equality deletes, but another writer of
the same lake may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ReaderName = Literal[
    "athena", "spark", "duckdb", "trino", "snowflake", "redshift", "pyiceberg", "clickhouse"
]
YES, NO = "yes", "no"
NOT_STATED = "not stated"  # no statement of the vendor was found


@dataclass(frozen=True, slots=True)
class Fact:
    """Statement about an engine, and the document or test that it is from."""

    text: str
    source: str = ""
    read_on: str = "2026-11-30"


_ASKED = "`tests/spark/test_delete_files.py`"
_ATHENA_TYPES = "Athena user guide, Supported data types for Iceberg tables"
_REDSHIFT_TYPES = "Redshift developer guide, Supported data types with Apache Iceberg tables"
_REDSHIFT_V3 = "Redshift developer guide, Apache Iceberg v3 features"
_REDSHIFT_V3_LIMITS = f"{_REDSHIFT_V3}, as quoted by dev.classmethod.jp on 2026-09-03"
_SUPPORT_MATRIX = "clickhouse.com/docs, support matrix of data warehousing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFacts:
    """Facts about one engine as a reader of Iceberg tables in the Glue catalog."""

    title: str
    version: str  # of a service: the month of the newest fact
    position_deletes: Fact
    deletion_vectors: Fact
    equality_deletes: Fact
    types: Fact
    views: str  # how fresh `<t>_current` is there
    has_views: bool = True
    attached_by: str
    limits: str
    source: str  # of the version, the views, and how it is attached
    read_on: str
    max_text_bytes: int | None = None  # longer values are cut without an error
    max_binary_bytes: int | None = None
    has_few_years: bool = False  # fewer than PostgreSQL's dates and timestamps

    @property
    def formats(self) -> tuple[int, ...]:
        """Iceberg's format versions that the engine reads, with the deletes that states have."""
        return (2, 3) if self.deletion_vectors.text == YES else (2,)


READER_FACTS: Mapping[str, ReaderFacts] = {
    "athena": ReaderFacts(
        title="Athena",
        version="engine version 3",
        position_deletes=Fact(YES, "Athena user guide, DELETE"),
        deletion_vectors=Fact(
            NO, "AWS Prescriptive Guidance, Iceberg table format specification version 3"
        ),
        equality_deletes=Fact(NOT_STATED),
        types=Fact("all of the lake's; with a zone `timestamptz`", _ATHENA_TYPES),
        views="stored by `cdclake views`: as fresh as the changelog",
        attached_by="the Glue catalog, through the deployment's workgroup",
        limits="no types with a time zone in views; in `<t>_current`, large values over key changes"
        " once they are applied; no view for readers whom Lake Formation gives only some columns,"
        " rows or cells",
        source="Athena user guide, Using Apache Iceberg tables",
        read_on="2026-11-25",
    ),
    "spark": ReaderFacts(
        title="Spark",
        version="3.5 with Iceberg 1.10",
        position_deletes=Fact(YES, _ASKED),
        deletion_vectors=Fact(YES, _ASKED),
        equality_deletes=Fact(YES, _ASKED),
        types=Fact("all of the lake's; with a zone `timestamp`, without `timestamp_ntz`", _ASKED),
        views="a temporary view of the session ([Spark](#spark)): as fresh as the changelog",
        attached_by="`GlueCatalog` and `S3FileIO`",
        limits="",
        source="`tests/spark/test_views_agree.py`",
        read_on="2026-11-26",
    ),
    "duckdb": ReaderFacts(
        title="DuckDB",
        version="1.5",
        position_deletes=Fact(YES, _ASKED),
        deletion_vectors=Fact(YES, _ASKED),
        equality_deletes=Fact(YES, _ASKED),
        types=Fact("all of the lake's; with a zone `TIMESTAMP WITH TIME ZONE`", _ASKED),
        views="`cdclake sql`: as fresh as the changelog",
        attached_by="`iceberg_scan` of the metadata file that Glue names",
        limits="",
        source="`tests/local/test_connect.py`",
        read_on="2026-11-26",
    ),
    "trino": ReaderFacts(
        title="Trino",
        version="406 and 476",
        position_deletes=Fact(YES, "`tests/trino/test_lake.py`"),
        deletion_vectors=Fact(NO, "trinodb/trino#25550; later versions by #27788"),
        equality_deletes=Fact(
            YES, "trinodb/trino#18396; 406: `EqualityDeleteFilter` of its connector; untested here"
        ),
        types=Fact(
            "all of the lake's; with a zone `timestamp(6) with time zone`",
            "Trino documentation, Iceberg connector, type mapping;"
            " `tests/trino/test_verify_reader.py`",
        ),
        views="run what `cdclake views` prints, and again after new types or settings: as fresh as"
        " the changelog; `cdclake verify --reader trino` compares its rows with the source; views"
        " that Athena stores are untested in Trino",
        attached_by="the Iceberg connector with `iceberg.catalog.type=glue`",
        limits="as Athena",
        source="406: `tests/trino/test_lake.py`; 476: tried against the local Glue and S3",
        read_on="2026-11-26",
    ),
    "snowflake": ReaderFacts(
        title="Snowflake",
        version="service, 2026-05",
        position_deletes=Fact(
            YES,
            "Snowflake release notes, Positional deletes for externally managed Apache Iceberg"
            " tables, 2025-10-17",
        ),
        deletion_vectors=Fact(
            YES, "Snowflake release notes, Support for Apache Iceberg version 3, 2026-05-07"
        ),
        equality_deletes=Fact(
            "no: error 091968, or the snapshot before them",
            "airbytehq/airbyte#82750; MaterializeInc/materialize#38458",
        ),
        types=Fact(
            "without a zone `TIMESTAMP_NTZ(6)`; `int` as `NUMBER(10,0)`; with a zone, lists and"
            f" maps: {NOT_STATED}",
            "Snowflake user guide, Data types for Apache Iceberg tables",
        ),
        views="none is generated",
        has_views=False,
        attached_by="a catalog integration with Glue and an external volume",
        limits="",
        source="Snowflake user guide, Apache Iceberg tables",
        read_on="2026-11-30",
    ),
    "redshift": ReaderFacts(
        title="Redshift",
        version="service, 2026-08",
        position_deletes=Fact(YES, _REDSHIFT_V3),
        deletion_vectors=Fact(
            "serverless and clusters on Graviton since 2026-08-31, but no lists and maps in such"
            " tables, which every state has",
            f"{_REDSHIFT_V3_LIMITS}; AWS, What's new, 2026-08-31",
        ),
        equality_deletes=Fact(f"no in format version 3; in 2 {NOT_STATED}", _REDSHIFT_V3_LIMITS),
        types=Fact("with a zone `TIMESTAMPTZ`; lists and maps as `SUPER`", _REDSHIFT_TYPES),
        views="none is generated",
        has_views=False,
        attached_by="an external schema of the Glue catalog",
        limits="cuts text after 16,384 and binary after 64,000 bytes, without an error",
        source=_REDSHIFT_TYPES,
        read_on="2026-11-26",
        max_text_bytes=16_384,
        max_binary_bytes=64_000,
    ),
    "pyiceberg": ReaderFacts(
        title="PyIceberg",
        version="0.12",
        position_deletes=Fact(YES, _ASKED),
        deletion_vectors=Fact(
            "read in our test, not declared as supported",
            f"{_ASKED}; apache/iceberg-python#1549 is open",
        ),
        equality_deletes=Fact("no: an error", f"{_ASKED}; apache/iceberg-python#3270"),
        types=Fact("all of the lake's, as Arrow's; with a zone in UTC", _ASKED),
        views="none: filter `NOT cdc_deleted` of `<t>`",
        has_views=False,
        attached_by="the catalog type `glue`",
        limits="",
        source="`tests/spark/test_incremental_readers.py`",
        read_on="2026-11-26",
    ),
    "clickhouse": ReaderFacts(
        title="ClickHouse",
        version="25.8",
        position_deletes=Fact(YES, _SUPPORT_MATRIX),
        deletion_vectors=Fact(
            NO, f"{_SUPPORT_MATRIX}; later versions by ClickHouse/ClickHouse#110781"
        ),
        equality_deletes=Fact("by the table engine, not by the function", _SUPPORT_MATRIX),
        types=Fact(
            f"with a zone `DateTime64(6, 'UTC')`; lists and maps: {NOT_STATED}",
            "ClickHouse/ClickHouse#86641",
        ),
        views="none is generated",
        has_views=False,
        attached_by="the database engine `DataLakeCatalog` with Glue, or `icebergS3`",
        limits="25.8 has the years 1900 to 2299 only: a date beyond fails the query, a timestamp"
        " may become another one without an error",
        source="clickhouse.com/docs, Date32 and DateTime64;"
        " ClickHouse/ClickHouse#51402; later versions: years 0 to 9999 by #107907 and #111534",
        read_on="2026-11-29",
        has_few_years=True,
    ),
}
# Engines that can store the views of `athena_views`.
VIEW_READERS: tuple[ReaderName, ...] = ("athena", "trino")
DEFAULT_READERS: tuple[ReaderName, ...] = ("athena", "spark", "duckdb")
