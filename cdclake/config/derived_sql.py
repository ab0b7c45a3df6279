"""Analysis of a derived table's query: its columns, its sources, and what a change concerns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError, SchemaError, TokenError
from sqlglot.optimizer.qualify import qualify

from cdclake import naming
from cdclake.config.problems import Refused, did_you_mean
from cdclake.iceberg.schemas import CHANGES_COLUMNS, SHARED_COLUMNS
from cdclake.iceberg.views import HISTORY_FACTS

_DIALECT = "spark"
_COLORS = re.compile(r"\x1b\[\d*m")
# Their value depends on when or where the query runs: the same sources could give another result.
_UNSTABLE = (
    exp.CurrentCatalog, exp.CurrentDatabase, exp.CurrentDate, exp.CurrentDatetime,
    exp.CurrentSchema, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentTimezone, exp.CurrentUser,
    exp.Localtimestamp, exp.Rand, exp.Randn, exp.Randstr, exp.SessionUser, exp.Shuffle,
    exp.Uniform, exp.Uuid,
)  # fmt: skip
_UNSTABLE_NAMES = frozenset(
    {"getdate", "input_file_name", "java_method", "monotonically_increasing_id", "now", "reflect",
     "spark_partition_id", "user", "version"}
)  # fmt: skip
# Texts that Spark replaces by a time where it needs one, also without a cast in the query. Source:
# Spark's `SpecialDatetimeValues`; a zone may follow.
_TIME_TEXT = re.compile(
    r"\s*(?:now|today|tomorrow|yesterday)(?:\s+\S+|[^a-z\s]\S*)?\s*", re.IGNORECASE
)
_GIVES_TEXT = (
    exp.Case, exp.Coalesce, exp.Concat, exp.ConcatWs, exp.DPipe, exp.If, exp.Initcap, exp.Lower,
    exp.Nvl2, exp.Overlay, exp.Pad, exp.Paren, exp.RegexpExtract, exp.RegexpReplace, exp.Repeat,
    exp.Replace, exp.Reverse, exp.Substring, exp.SubstringIndex, exp.Translate, exp.Trim, exp.Upper,
)  # fmt: skip
_NEEDS_NO_TIME = (
    exp.Array, exp.ArrayContains, exp.ArrayPosition, exp.ArrayRemove, exp.ArrayToString,
    exp.Contains, exp.EndsWith, exp.FromJson, exp.ILike, exp.Length, exp.Levenshtein, exp.Like,
    exp.MD5, exp.PropertyEQ, exp.RegexpLike, exp.RegexpSplit, exp.SHA2, exp.SimilarTo,
    exp.StartsWith, exp.StrPosition, exp.StrToMap, exp.Struct, exp.VarMap,
)  # fmt: skip
# With one of these, a row of the result may depend on rows whose keys it does not show.
_BEYOND_ROWS = (
    exp.AggFunc, exp.CTE, exp.Distinct, exp.Exists, exp.Group, exp.Having, exp.Lateral, exp.Limit,
    exp.Offset, exp.Qualify, exp.SetOperation, exp.Subquery, exp.TableSample, exp.UDTF, exp.Window,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """Source table of a query: lake name, key, and columns in the lake."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def relations(self) -> dict[str, tuple[str, ...]]:
        """Return the relations that a query may read, with their columns."""
        facts = tuple(name for name, _ in (*SHARED_COLUMNS, *CHANGES_COLUMNS))
        return {
            naming.current_name(self.name): self.columns,
            naming.history_name(self.name): (*HISTORY_FACTS, *self.columns),
            naming.changes_name(self.name): (*self.columns, *facts),
        }


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Facts of a valid query; the attributes are those of `DerivedTable`."""

    columns: tuple[str, ...]
    sources: tuple[str, ...]
    source_keys: Mapping[str, Mapping[str, str]]


def analyze(sql: str, tables: Sequence[SourceColumns], key: Sequence[str]) -> QueryFacts:
    """Return the facts of a query over these tables, whose result has this key.

    Raises:
        Refused: if it is not one SELECT, reads something else than the tables' relations, has a
            column without a name or twice, or depends on the time at which it runs.
    """
    known = {name: table for table in tables for name in table.relations}
    query = _parsed(sql)
    inner = {cte.alias_or_name for cte in query.find_all(exp.CTE)}
    read = [table for table in query.find_all(exp.Table) if table.name not in inner]
    for table in read:
        _check_relation(table, known)
    _check_stable(query)
    qualified = _qualified(query, known)
    columns = tuple(qualified.named_selects)
    _check_names(columns, qualified)
    return QueryFacts(
        columns=columns,
        sources=tuple(dict.fromkeys(known[table.name].name for table in read)),
        source_keys=_source_keys(qualified, known, key),
    )


def _check_stable(query: exp.Query) -> None:
    for unstable in filter(is_unstable, query.find_all(exp.Func)):
        raise Refused(
            f"the query calls {unstable.sql(_DIALECT)}, whose value depends on when it runs",
            "use a column of a table, for example `cdc_committed_at` of `<t>_history`",
        )
    for text in filter(_may_be_time, query.find_all(exp.Literal)):
        raise Refused(
            f"Spark may take the text {text.sql(_DIALECT)} for the time when it runs",
            "use a column of a table instead of a time; compare a text by LIKE",
        )


def _may_be_time(literal: exp.Literal) -> bool:
    """Check whether Spark may cast the text to a date or time, as it does to compare with one.

    Only a constant is taken for the current time: a text that was made of a column never is.
    """
    if not literal.is_string or _TIME_TEXT.fullmatch(literal.name) is None:
        return False
    value: exp.Expr = literal
    user = literal.parent
    while isinstance(user, _GIVES_TEXT):
        if isinstance(user, (exp.Case, exp.If)) and value.arg_key == "this":
            return True  # a simple CASE compares it
        if user.find(exp.Column) is not None:
            return False
        value, user = user, user.parent
    is_used = isinstance(user, (exp.Func, exp.Binary, exp.Predicate))
    return is_used and not isinstance(user, _NEEDS_NO_TIME)


def is_unstable(function: exp.Func) -> bool:
    """Check whether the function's value depends on more than its arguments."""
    is_named = isinstance(function, exp.Anonymous) and function.name.lower() in _UNSTABLE_NAMES
    return is_named or isinstance(function, _UNSTABLE)


def _parsed(sql: str) -> exp.Query:
    try:
        statements = [each for each in sqlglot.parse(sql, dialect=_DIALECT) if each is not None]
    except (ParseError, TokenError) as error:
        raise Refused(f"the query is not valid SQL: {message_of(error)}", "correct it") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise Refused("the query is not one SELECT", "write one SELECT, without a `;` inside")
    return statements[0]


def message_of(error: Exception) -> str:
    """Return the parser's message as one line without colors."""
    return _COLORS.sub("", " ".join(str(error).split()))


def _check_relation(table: exp.Table, known: Mapping[str, SourceColumns]) -> None:
    if table.name in known and not table.db:
        return
    current = naming.current_name(table.name)
    hint = f"write `{current}`" if current in known else did_you_mean(table.name, known)
    raise Refused(
        f"the query reads {table.sql(_DIALECT)!r}, which is not a relation of this file's tables",
        hint or "read `<t>_current`, `<t>_history` or `<t>_changes` of a table under `tables:`",
    )


def _qualified(query: exp.Query, known: Mapping[str, SourceColumns]) -> exp.Query:
    schema: dict[str, object] = {
        name: dict.fromkeys(table.relations[name], "string") for name, table in known.items()
    }
    try:
        found = qualify(query.copy(), schema=schema, dialect=_DIALECT, quote_identifiers=False)
    except OptimizeError as error:
        message = str(error).partition(" Line:")[0].rstrip(".")
        raise Refused(f"the query cannot be resolved: {message}", "correct its columns") from None
    except SchemaError:
        remedy = "declare the columns of each table that it reads"
        raise Refused("the query reads a table without columns", remedy) from None
    assert isinstance(found, exp.Query)
    return found


def _check_names(columns: Sequence[str], query: exp.Query) -> None:
    for name, selected in zip(columns, query.selects, strict=True):
        if columns.count(name) > 1:
            raise Refused(f"the query has the column {name!r} twice", "give one another name: `AS`")
        if naming.LAKE_NAME.fullmatch(name) is None or name.startswith("_col_"):
            shown = selected.unalias().sql(_DIALECT)
            raise Refused(
                f"the query's column {shown} has no name that Glue accepts",
                "add `AS name`, in lower case letters, digits and underscores",
            )


def _source_keys(
    query: exp.Query, known: Mapping[str, SourceColumns], key: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the result's columns with each source's key; empty if it is no join of rows by row."""
    if not isinstance(query, exp.Select) or query.find(*_BEYOND_ROWS) is not None:
        return {}
    joins = query.args.get("joins") or []
    if any(join.side not in ("", "LEFT") or join.kind in ("SEMI", "ANTI") for join in joins):
        return {}
    found: dict[str, dict[str, str]] = {}
    for table in query.find_all(exp.Table):
        source, alias = known[table.name], table.alias_or_name
        shown = _shown_columns(query, "" if _shows_own_rows(query, alias, key) else alias)
        keys = {column: shown.get((alias, column)) for column in source.key}
        is_current = table.name == naming.current_name(source.name)
        if source.name in found or not is_current or None in keys.values():
            return {}
        found[source.name] = {column: str(name) for column, name in keys.items()}
    return found


def _shows_own_rows(query: exp.Select, alias: str, key: Sequence[str]) -> bool:
    """Check whether the table's selected columns tell which rows of the result a change concerns.

    A row that a left join found no match for has NULL there. If a match arrives, the new row tells
    the old one by the result's key, unless the match changes that key or removes the row.
    """
    joins = query.args.get("joins") or []
    left = [join.alias_or_name for join in joins if join.side == "LEFT"]
    if alias not in left:
        return True
    after = joins[[join.alias_or_name for join in joins].index(alias) :]
    may_be_removed = query.args.get("where") is not None or any(
        join.side != "LEFT" for join in after
    )
    parts = [each for each in query.selects if each.alias_or_name in key]
    is_in_key = any(column.table in left for part in parts for column in part.find_all(exp.Column))
    return not may_be_removed and not is_in_key


def _shown_columns(query: exp.Select, hidden: str) -> dict[tuple[str, str], str]:
    """Return the result's column by table alias and column, without the selected ones of `hidden`.

    A column that must be equal to a shown one, by a condition of a join or of WHERE, is shown too.
    The condition of a left join holds for a match alone: it shows columns of the joined table, as
    the value that a match would have, and nothing about the other tables.
    """
    shown = {
        (column.table, column.name): selected.alias_or_name
        for selected in query.selects
        if isinstance(column := selected.unalias(), exp.Column) and column.table != hidden
    }
    showing = [*_showing_columns(query)]
    for _ in showing:  # a chain is at most as long as there are pairs
        for known, new in showing:
            if known in shown:
                shown.setdefault(new, shown[known])
    return shown


def _showing_columns(query: exp.Select) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """List pairs of columns: if the first is shown, so is the second."""
    where = query.args.get("where")
    conditions = [(where.this, None)] if where else []
    for join in query.args.get("joins") or []:
        if on := join.args.get("on"):
            conditions.append((on, join.alias_or_name if join.side == "LEFT" else None))
    for condition, joined in conditions:
        for one, other in _equal_columns(condition):
            for known, new in ((one, other), (other, one)):
                if joined in (None, new[0]):
                    yield known, new


def _equal_columns(
    condition: exp.Expression,
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        if not isinstance(part, exp.EQ):
            continue
        left, right = part.this.unnest(), part.expression.unnest()
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            yield (left.table, left.name), (right.table, right.name)
