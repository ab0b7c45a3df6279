"""Support of the lake's tables by each query engine, with the source and date of each fact.

`validate` refuses by this table, and `docs/reading.md` prints it. A state has position deletes, or
deletion vectors with format version 3; cdclake writes no equality deletes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ReaderName = Literal[
    "athena", "spark", "duckdb", "trino", "snowflake", "redshift", "pyiceberg", "clickhouse"
]
OURS = "this project's tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFacts:
    """Facts about one engine as a reader of Iceberg tables in the Glue catalog."""

    title: str
    version: str
    formats: tuple[int, ...]  # Iceberg format versions that it reads, with their deletes
    views: str  # how fresh `<t>_current` is there
    attached_by: str
    limits: str
    source: str
    read_on: str
    max_text_bytes: int | None = None  # longer values are cut without an error
    max_binary_bytes: int | None = None
    has_few_years: bool = False  # fewer than PostgreSQL's dates and timestamps


READER_FACTS: Mapping[str, ReaderFacts] = {
    "athena": ReaderFacts(
        title="Athena",
        version="engine version 3",
        formats=(2,),
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
        formats=(2, 3),
        views="a temporary view of the session ([Spark](#spark)): as fresh as the changelog",
        attached_by="`GlueCatalog` and `S3FileIO`",
        limits="",
        source=OURS,
        read_on="2026-11-26",
    ),
    "duckdb": ReaderFacts(
        title="DuckDB",
        version="1.5",
        formats=(2, 3),
        views="`cdclake sql`: as fresh as the changelog",
        attached_by="`iceberg_scan` of the metadata file that Glue names",
        limits="",
        source=OURS,
        read_on="2026-11-26",
    ),
    "trino": ReaderFacts(
        title="Trino",
        version="406 and 476",
        formats=(2,),
        views="run what `cdclake views` prints, and again after new types or settings: as fresh as"
        " the changelog; `cdclake verify --reader trino` compares its rows with the source; views"
        " that Athena stores are untested in Trino",
        attached_by="the Iceberg connector with `iceberg.catalog.type=glue`",
        limits="as Athena",
        source="406: this project's tests; 476: tried against the local Glue and S3",
        read_on="2026-11-26",
    ),
    "snowflake": ReaderFacts(
        title="Snowflake",
        version="2026-05",
        formats=(2, 3),
        views="none is generated",
        attached_by="a catalog integration with Glue and an external volume",
        limits="",
        source="Snowflake release notes, Support for Apache Iceberg version 3, 2026-05-07",
        read_on="2026-11-26",
    ),
    "redshift": ReaderFacts(
        title="Redshift",
        version="2026",
        formats=(2,),
        views="none is generated",
        attached_by="an external schema of the Glue catalog",
        limits="cuts text after 16,384 and binary after 64,000 bytes, without an error",
        source="Redshift developer guide, Supported data types with Apache Iceberg tables",
        read_on="2026-11-26",
        max_text_bytes=16_384,
        max_binary_bytes=64_000,
    ),
    "pyiceberg": ReaderFacts(
        title="PyIceberg",
        version="0.12",
        formats=(2,),
        views="none: filter `NOT cdc_deleted` of `<t>`",
        attached_by="the catalog type `glue`",
        limits="",
        source=f"{OURS}; format version 3: apache/iceberg-python#3618",
        read_on="2026-11-26",
    ),
    "clickhouse": ReaderFacts(
        title="ClickHouse",
        version="25.8",
        formats=(2,),
        views="none is generated",
        attached_by="the database engine `DataLakeCatalog` with Glue, or `icebergS3`",
        limits="25.8 has the years 1900 to 2299 only: a date beyond fails the query, a timestamp"
        " may become another one without an error",
        source="clickhouse.com/docs, support matrix of data warehousing, Date32 and DateTime64;"
        " ClickHouse/ClickHouse#51402; later versions: years 0 to 9999 by #107907 and #111534",
        read_on="2026-11-29",
        has_few_years=True,
    ),
}
# Engines that can store the views of `athena_views`.
VIEW_READERS: tuple[ReaderName, ...] = ("athena", "trino")
DEFAULT_READERS: tuple[ReaderName, ...] = ("athena", "spark", "duckdb")
