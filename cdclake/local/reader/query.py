"""A user's query: checked to be read-only, run, and its values converted for JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
from duckdb.sqltypes import DuckDBPyType

from cdclake.errors import InputError
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.reader.as_of import commit_micros
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.late_columns import late_columns
from cdclake.jobs.reader.mentioned_tables import (
    file_tables,
    mentioned,
    mentioned_removed,
    plain_tables,
)
from cdclake.jobs.reader.point_in_time import NOW, Moment, at_snapshot, at_time, snapshot_id
from cdclake.jobs.reader.reached_commits import missing_commits
from cdclake.jobs.reader.relations import TOO_EARLY
from cdclake.local.reader.converted_values import Conversion, converted
from cdclake.local.reader.suggestions import GUESS, remedy
from cdclake.plan import Plan, Table
from cdclake.query_answer import Answer

_SELECT = [duckdb.StatementType.SELECT]
_FETCH_ROWS = 1000
# DuckDB 1.5.5 expects rows without deletes, as an unsigned number. Maintenance outside of cdclake
# may leave deletes of files that are gone.
_NEGATIVE_ESTIMATE = "Information loss on integer cast"
# Statements that list relations, and so need all of them.
_LISTS = re.compile(
    r"\b(show|describe|information_schema|duckdb_\w+|pragma_\w+|sqlite_master)\b", re.I
)
_QUERY = re.compile(
    r"(--[^\n]*\n|/\*.*?\*/|[\s(])*(select|with|from|values|table|pivot|unpivot)\b", re.I | re.S
)
# EXPLAIN with its options, which have no comments; those before and after EXPLAIN are dropped.
_GAP = r"(?:--[^\n]*\n|/\*.*?\*/|\s)*"
_OPTION = r"(?:[\w\s,]|'\w*'|\"\w*\")*"
_EXPLAIN = re.compile(
    rf"{_GAP}explain\b(?:{_GAP}(analy[sz]e\b|\(\s*(?:analy[sz]e|format)\b{_OPTION}\)))?",
    re.I | re.S,
)


def run_query(
    reader: Reader,
    query: str,
    at: str | None = None,
    limit: int | None = None,
    as_of: str | None = None,
    parquet: Path | None = None,
) -> Answer:
    """Run a query and return at most `limit` rows; raise InputError with DuckDB's message.

    `at` is a time or snapshot of the lake, `as_of` a commit time of the source; at most one.
    With `parquet` the rows are written to that file, and the answer has none.
    """
    run = partial(_run, query=query, limit=limit, parquet=parquet)
    folder = None if parquet is None else parquet.parent
    if at is not None and as_of is not None:
        raise InputError("--at and --as-of exclude each other", "leave out one of the two")
    committed = None if as_of is None else commit_micros(as_of)
    warnings = _warnings(reader, query, committed)
    try:
        answer = _query(reader, query, run, at, as_of=committed, writable=folder)
        return replace(answer, warnings=warnings)
    except _UnknownRelation as unknown:
        removed = mentioned_removed(reader, query) if as_of is None else ()
        if not removed:
            raise unknown.refused from None
    return _query(reader, query, run, at, removed, writable=folder)


def _warnings(reader: Reader, query: str, as_of: int | None) -> tuple[dict[str, str], ...]:
    if as_of is None or reader.control is None:
        return ()
    tables = mentioned(reader.plan, query)
    missing = missing_commits(reader.control, tables, as_of)
    return (*missing, *late_columns(reader, tables, as_of))


class _UnknownRelation(Exception):
    """Query of a relation that the plan's tables do not have."""

    def __init__(self, refused: InputError) -> None:
        super().__init__(refused)
        self.refused = refused


def _query(
    reader: Reader,
    query: str,
    run: Callable[[duckdb.DuckDBPyConnection], Answer],
    at: str | None = None,
    removed: Sequence[str] = (),
    *,
    as_of: int | None = None,
    writable: Path | None = None,
) -> Answer:
    tables = _tables(reader.plan, query)
    named = None if tables is None else query
    plain, files = plain_tables(reader, named), file_tables(reader, named)
    moment = NOW if at is None else _moment(reader, at)
    with reader.open(
        tables,
        moment,
        plain=plain,
        files=files,
        removed=removed,
        as_of=as_of,
        writable=writable,
    ) as session:
        try:
            return run(session)
        except duckdb.HTTPException as error:
            raise InputError(
                f"the query could not read the lake: {_first_line(error)}",
                "a snapshot may have expired meanwhile; run the query again",
            ) from None
        except duckdb.Error as error:
            if TOO_EARLY in str(error):
                raise _too_early(str(error), at) from None
            refused = _refused(error, reader, query)
            if isinstance(error, duckdb.CatalogException) and not removed:
                raise _UnknownRelation(refused) from None
            raise refused from None


def _refused(error: duckdb.Error, reader: Reader, query: str) -> InputError:
    reason = GUESS.sub("", str(error).split("\n\nLINE")[0])
    if _NEGATIVE_ESTIMATE in reason:
        return InputError(
            "DuckDB cannot plan the query: a table in it has more deleted positions than rows",
            "run `cdclake job maintain_tables`, which removes them; until then, query each table by"
            " itself",
        )
    return InputError(f"DuckDB refused the query: {reason}", remedy(reader, query, reason))


def _too_early(message: str, at: str | None) -> InputError:
    problem, _, remedy = message.rpartition(TOO_EARLY)[2].partition("; ")
    return InputError(problem if at is None else f"--at {at!r}: {problem}", remedy)


def _tables(plan: Plan, query: str) -> tuple[Table, ...] | None:
    """Return the tables that the query may read; None for all, which a query seldom needs."""
    if _LISTS.search(query) or "quarantine" in query.lower():
        return None
    return mentioned(plan, query)


def _moment(reader: Reader, at: str) -> Moment:
    number = snapshot_id(at)
    if number is None:
        return at_time(at)
    loaded = reader.load(reader.plan.all_tables, plain=plain_tables(reader))
    return at_snapshot(number, loaded.values())


def _run(
    session: duckdb.DuckDBPyConnection,
    query: str,
    limit: int | None,
    parquet: Path | None = None,
) -> Answer:
    text = _read_only(session, query)
    if parquet is not None:
        return _write(session, text, parquet)
    if not _QUERY.match(text):  # EXPLAIN, DESCRIBE, SHOW: not all are allowed in parentheses
        result = session.execute(text)
        shown = tuple((str(column[0]), str(column[1])) for column in result.description)
        return Answer(shown, _rows(result, None))
    columns, kinds = _described(session, text)
    result = session.execute(_converted(text, kinds, _readable))
    rows = _rows(result, None if limit is None else limit + 1)
    more = limit is not None and len(rows) > limit
    return Answer(columns, rows[:limit] if more else rows, more)


def _read_only(session: duckdb.DuckDBPyConnection, query: str) -> str:
    """Return the text of the only statement; raise InputError if it may write."""
    explain, text = "", query
    statements = session.extract_statements(query)
    if [each.type for each in statements] == [duckdb.StatementType.EXPLAIN]:
        # EXPLAIN ANALYZE executes what follows, so that must be a query too. Only what has been
        # checked is run: the options, and the query that DuckDB has parsed without them.
        if found := _EXPLAIN.match(statements[0].query):
            explain, text = f"EXPLAIN {found[1] or ''} ", statements[0].query[found.end() :]
        statements = session.extract_statements(text)
    if [each.type for each in statements] != _SELECT:
        raise InputError(
            "the query is not a single read-only statement",
            "use one SELECT (or WITH, DESCRIBE, SHOW, EXPLAIN); only jobs write the lake",
        )
    return explain + _without_end(statements[0].query)


def _without_end(statement: str) -> str:
    """Return the statement without its semicolon, and without comments after that."""
    text = statement.strip().encode()  # DuckDB counts bytes
    for offset, _ in reversed(duckdb.tokenize(text.decode())):
        if text[offset : offset + 1] != b";":
            break
        text = text[:offset]
    return text.decode()


def _write(session: duckdb.DuckDBPyConnection, text: str, file: Path) -> Answer:
    if not _QUERY.match(text):
        raise InputError("only rows of a query can be written as Parquet", "use one SELECT or WITH")
    columns, kinds = _described(session, text)
    rows = _converted(text, kinds, _writable, [name for name, _ in columns])
    session.execute(f"COPY (\n{rows}\n) TO {DUCKDB.text(str(file))} (FORMAT parquet)")
    return Answer((), [])


def _described(
    session: duckdb.DuckDBPyConnection, text: str
) -> tuple[tuple[tuple[str, str], ...], list[DuckDBPyType]]:
    """Return the columns of the query, and their types with all parts, which no name has."""
    described = session.execute(f"DESCRIBE {text}").fetchall()
    empty = session.execute(f"SELECT * FROM (\n{text}\n) LIMIT 0").description
    return tuple((str(row[0]), str(row[1])) for row in described), [each[1] for each in empty]


def _converted(
    text: str, kinds: Sequence[DuckDBPyType], convert: Conversion, names: Sequence[str] = ()
) -> str:
    columns = [f"c{index}" for index in range(len(kinds))]
    values = (converted(*column, convert) for column in zip(columns, kinds, strict=True))
    selected = ", ".join(
        f"{value} AS {DUCKDB.name(name)}"
        for value, name in zip(values, names or columns, strict=True)
    )
    return f"SELECT {selected} FROM (\n{text}\n) AS q({', '.join(columns)})"


def _readable(value: str, kind: str) -> str:
    """Return times as text: Python's have fewer years and need pytz for zones."""
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"replace(replace({_with_iso_year(value)}, ' ', 'T'), '+00', '+00:00')"
    if kind.startswith("TIMESTAMP"):
        return f"replace({_with_iso_year(value)}, ' ', 'T')"
    if kind == "DATE":
        return _with_iso_year(value)
    is_text = kind.startswith(("TIME", "INTERVAL"))
    # The members of a union share a column, so one that may be a time is text as a whole.
    is_text |= kind.startswith("UNION") and ("TIME" in kind or "DATE" in kind)
    return f"{value}::VARCHAR" if is_text else value


def _with_iso_year(value: str) -> str:
    """Return a date or timestamp as text, with the year of ISO 8601, where 1 BC is year 0."""
    text, era = f"{value}::VARCHAR", "' (BC)'"
    years = f"regexp_extract({text}, '^[0-9]+')::INTEGER - 1"
    iso = f"if({years} > 0, '-', '') || format('{{:04d}}', {years})"
    rest = f"replace(substr({text}, strpos({text}, '-')), {era}, '')"
    return f"CASE WHEN contains({text}, {era}) THEN {iso} || {rest} ELSE {text} END"


def _writable(value: str, kind: str) -> str:
    """Return 128-bit integers, such as sums, as decimals: in Parquet they would be rounded."""
    return f"{value}::DECIMAL(38, 0)" if kind in ("HUGEINT", "UHUGEINT") else value


def _rows(result: duckdb.DuckDBPyConnection, limit: int | None) -> list[list[Any]]:
    return [[json_value(value) for value in row] for row in islice(_fetch(result), limit)]


def _fetch(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := result.fetchmany(_FETCH_ROWS):
        yield from rows


def json_value(value: Any) -> Any:
    """Convert a value to JSON without loss.

    Decimals become text, NaN and infinities 'NaN', 'Infinity', '-Infinity', bytes lower-case
    hexadecimal, times ISO 8601; integers of any size stay numbers.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if math.isfinite(value):
                return value
            return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case date() | datetime() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case dict():
            return {str(json_value(key)): json_value(held) for key, held in value.items()}
        case list() | tuple():
            return [json_value(held) for held in value]
        case _:
            return str(value)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
