"""DuckDB over the lake: an in-memory session that can read only the bucket.

Extensions come from files of the PyPI packages; nothing is downloaded. After the relations have
been created, file access is restricted to the lake's bucket and the configuration is locked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlparse

import boto3
import botocore
import duckdb

from cdclake import naming
from cdclake.errors import CdcError, ComponentFailed
from cdclake.extras import install_remedy
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.tail_facts import UNKNOWN, TailFacts
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.reader.as_of import define_as_of
from cdclake.jobs.reader.catalog import Catalog, CatalogTable
from cdclake.jobs.reader.point_in_time import NOW, Moment
from cdclake.jobs.reader.relations import (
    TOO_EARLY,
    applied_at,
    failing,
    is_applied,
    is_too_early,
    lacking_columns,
    live_rows,
    only_current,
    rebuilt_rows,
    refusal,
    refusal_of_lacking,
    relation,
    scan,
    views,
)
from cdclake.jobs.reader.tail import read_tail, with_tail
from cdclake.plan import Plan, Table

_EXTENSIONS = ("avro", "httpfs", "iceberg")  # iceberg needs the other two
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "memory_limit": "2GB",
    "python_enable_replacements": False,  # a query sees relations, never Python's variables
}
# Extensions whose signature DuckDB has verified in this process. To do so in each session costs a
# third of a second; no query loads one, as it has no external access.
_verified: set[str] = set()
_LOADER_THREADS = 8
AUTHORITIES = Path(botocore.__file__).parent / "cacert.pem"


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reader of one lake; each `open` sees the lake's current state."""

    plan: Plan
    s3: str  # endpoints, as URLs
    glue: str
    bucket: str
    spill: Path  # folder for data that does not fit into memory
    control: ObjectStore | None = None  # None: how far a changelog is stays unknown

    @cached_property
    def catalog(self) -> Catalog:
        """Catalog of the lake's tables."""
        return Catalog(
            boto3.client("glue", endpoint_url=self.glue),
            boto3.client("s3", endpoint_url=self.s3),
            self.plan.lake_database,
        )

    @contextmanager
    def open(
        self,
        tables: Collection[Table] | None = None,
        moment: Moment = NOW,
        *,
        plain: Collection[str] = (),
        files: Collection[str] = (),
        removed: Collection[str] = (),
        rebuilt: bool = False,
        tails: bool = False,
        as_of: int | None = None,
        writable: Path | None = None,
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a session with the relations of these tables (None: of all, and the quarantine).

        `plain` are tables without changelog, `files` those in plain files, `removed` those that the
        plan no longer has: these have no history, and `_current` only if all their changes are
        applied. With `rebuilt` each table also has a relation of the rows that its changelog gives,
        `naming.rebuilt_name`, and with `tails` of the rows that may not be applied yet,
        `naming.tail_name`. With `as_of`, microseconds since 1970, the relations are those of that
        commit time. The session may write files into the folder `writable`.
        """
        wanted = self.plan.all_tables if tables is None else tuple(tables)
        others = [*plain, *removed, *(naming.changes_name(name) for name in removed)]
        loaded = self.load(wanted, quarantine=tables is None, plain=others)
        try:
            with self._session() as session:
                self._define(session, wanted, loaded, moment, as_of)
                self._define_removed(session, removed, loaded, moment)
                self._define_files(session, files, is_now=moment == NOW and as_of is None)
                self._define_rebuilt(session, wanted if rebuilt else (), loaded, moment)
                self._define_tails(session, wanted if tails else (), loaded)
                _restrict(session, self.bucket, writable)
                yield session
        except duckdb.Error as error:
            failure = _failure(error, wanted, loaded)
            if failure is None:
                raise
            raise failure from None

    def applied_now(self, tables: Sequence[Table]) -> dict[str, AppliedThrough]:
        """Return how far each state is applied, with the bound of its tail."""
        loaded = self.load(tables, quarantine=False)
        with self._session() as session:
            return {table.name: self._applied(session, table, loaded, NOW) for table in tables}

    def newest_position(self, table: Table) -> str | None:
        """Return the greatest position in the table's changelog; None if it is empty."""
        with self.open([], plain=[table.changes]) as session:
            row = session.execute(
                f"SELECT max({naming.POSITION}) FROM {DUCKDB.name(table.changes)}"
            ).fetchone()
        return None if row is None else row[0]

    def load(
        self,
        tables: Sequence[Table],
        *,
        quarantine: bool = True,
        plain: Collection[str] = (),
    ) -> Mapping[str, CatalogTable]:
        """Load the metadata of the tables' states and changelogs, by name.

        All states are read before any changelog, so that the changelogs contain at least the
        changes that the states have applied.
        """
        # A plan with only web logs has no job that creates the quarantine.
        refused = [naming.QUARANTINE] if quarantine and self.plan.all_tables else []
        states = [*(table.name for table in tables), *refused, *plain]
        logs = [table.changes for table in tables]
        with ThreadPoolExecutor(_LOADER_THREADS) as pool:
            loaded = [*pool.map(self.catalog.load, states), *pool.map(self.catalog.load, logs)]
        return {table.name: table for table in loaded}

    @contextmanager
    def _session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        self.spill.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.spill.chmod(0o700)  # rows of the lake pass through it
        config = {**_CONFIG, "allow_unsigned_extensions": _verified.issuperset(_EXTENSIONS)}
        with duckdb.connect(":memory:", config=config) as session:
            for extension in _EXTENSIONS:
                session.execute(f"LOAD {DUCKDB.text(str(extension_file(extension)))}")
                _verified.add(extension)
            session.execute("SET TimeZone = 'UTC'")
            # DuckDB takes `python -c`, which starts the installed command, for a notebook, and
            # would print its progress in front of the JSON.
            session.execute("SET enable_progress_bar_print = false")
            session.execute(f"SET temp_directory = {DUCKDB.text(str(self.spill))}")
            if self.s3.startswith("https:"):
                _check_server(session)
            session.execute(_secret(self.s3))
            self._set_schema(session)
            yield session

    def _set_schema(self, session: duckdb.DuckDBPyConnection) -> None:
        schema = self.plan.lake_database
        session.execute(f"CREATE SCHEMA IF NOT EXISTS {DUCKDB.name(schema)}")
        session.execute(f"SET search_path = {DUCKDB.text(schema)}")

    def _define(
        self,
        session: duckdb.DuckDBPyConnection,
        tables: Sequence[Table],
        loaded: Mapping[str, CatalogTable],
        moment: Moment,
        as_of: int | None,
    ) -> None:
        schema = self.plan.lake_database
        if as_of is not None:
            for name, select in define_as_of(session, tables, loaded, as_of, schema=schema).items():
                _create_view(session, schema, name, select)
            return
        logs = {table.name: loaded[table.changes] for table in tables}
        for name, stored in loaded.items():
            # The quarantine may begin at any time, and a state begins after its changelog.
            log = logs.get(name, stored)
            early = name != naming.QUARANTINE and is_too_early(log, moment)
            select = refusal(stored, log) if early else scan(stored, moment)
            _create_view(session, schema, name, select)
        for table in tables:
            self._define_views(session, table, loaded, moment)

    def _define_views(
        self,
        session: duckdb.DuckDBPyConnection,
        table: Table,
        loaded: Mapping[str, CatalogTable],
        moment: Moment,
    ) -> None:
        schema, tail = self.plan.lake_database, TailFacts()
        refused = refusal_of_lacking(table, loaded[table.changes], loaded[table.name])
        if refused is not None:
            for name in (naming.current_name(table.name), naming.history_name(table.name)):
                _create_view(session, schema, name, refused)
            return
        applied = self._applied(session, table, loaded, moment)
        if not is_applied(loaded[table.name], loaded[table.changes], moment):
            tail = _tail(session, table, applied, relation(schema, table.changes))
        for name, select in views(table, applied, tail, schema=schema):
            _create_view(session, schema, name, select)

    def _applied(
        self,
        session: duckdb.DuckDBPyConnection,
        table: Table,
        loaded: Mapping[str, CatalogTable],
        moment: Moment,
    ) -> AppliedThrough:
        applied, log = applied_at(loaded[table.name], moment), loaded[table.changes]
        if table.delivery != "firehose":
            return applied
        return with_tail(session, applied, log, moment.of(log))

    def _define_tails(
        self,
        session: duckdb.DuckDBPyConnection,
        tables: Sequence[Table],
        loaded: Mapping[str, CatalogTable],
    ) -> None:
        schema = self.plan.lake_database
        for table in tables:
            is_empty = is_applied(loaded[table.name], loaded[table.changes], NOW)
            since = self._applied(session, table, loaded, NOW).ingested
            late = f"{naming.INGESTED_AT} > {DUCKDB.instant(since)}"
            select = (
                f"SELECT * FROM {relation(schema, table.changes)}"
                f" WHERE {'false' if is_empty else late}"
            )
            _create_view(session, schema, naming.tail_name(table.name), select)

    def _define_removed(
        self,
        session: duckdb.DuckDBPyConnection,
        removed: Collection[str],
        loaded: Mapping[str, CatalogTable],
        moment: Moment,
    ) -> None:
        schema = self.plan.lake_database
        for name in removed:
            state, log = loaded[name], loaded[naming.changes_name(name)]
            if is_applied(state, log, moment):
                select = live_rows(state, schema=schema)
                _create_view(session, schema, naming.current_name(name), select)

    def _define_files(
        self, session: duckdb.DuckDBPyConnection, files: Collection[str], *, is_now: bool
    ) -> None:
        schema = self.plan.lake_database
        for name in files:
            if is_now:
                select = self.catalog.rows_in_files(name)
            else:
                select = failing(self.catalog.no_rows_in_files(name), only_current(name))
            _create_view(session, schema, name, select)

    def _define_rebuilt(
        self,
        session: duckdb.DuckDBPyConnection,
        tables: Sequence[Table],
        loaded: Mapping[str, CatalogTable],
        moment: Moment,
    ) -> None:
        schema = self.plan.lake_database
        for table in tables:
            log, state = loaded[table.changes], loaded[table.name]
            select = refusal_of_lacking(table, log, state) or rebuilt_rows(
                table, log, applied_at(state, moment), schema=schema
            )
            _create_view(session, schema, naming.rebuilt_name(table.name), select)


def _failure(
    error: duckdb.Error, tables: Sequence[Table], loaded: Mapping[str, CatalogTable]
) -> CdcError | None:
    """Return what an error means that is the lake's, not the query's."""
    if isinstance(error, duckdb.IOException | duckdb.HTTPException):
        return ComponentFailed(
            f"the lake could not be read: {str(error).splitlines()[0]}",
            "run the command again: a snapshot may have expired while it was read",
            component="aws",
        )
    if isinstance(error, duckdb.BinderException) or TOO_EARLY in str(error):
        lacking = (lacking_columns(t, loaded[t.changes], loaded[t.name]) for t in tables)
        return next((each for each in lacking if each is not None), None)
    return None


def _tail(
    session: duckdb.DuckDBPyConnection, table: Table, applied: AppliedThrough, changes: str
) -> TailFacts:
    """Return what the tail contains; if it cannot be read, only queries that need it fail."""
    try:
        return read_tail(session, table, applied, changes)
    except duckdb.Error:
        return UNKNOWN


def _create_view(session: duckdb.DuckDBPyConnection, schema: str, name: str, select: str) -> None:
    session.execute(f"CREATE VIEW {relation(schema, name)} AS {select}")


def extension_file(extension: str) -> Path:
    """Return the path of the extension's file in its PyPI package."""
    spec = find_spec(f"duckdb_extension_{extension}")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    found = sorted(folder.rglob(f"{extension}.duckdb_extension")) if spec is not None else []
    if not found:
        raise ComponentFailed(
            f"DuckDB's extension {extension!r} is not installed", install_remedy("read"), "reader"
        )
    return found[0]


def _secret(endpoint: str) -> str:
    """Return the statement that sets the current credentials.

    Credentials of a role last for an hour, so each session requests new ones.
    """
    parsed, signing = urlparse(endpoint), boto3.Session()
    credentials = signing.get_credentials().get_frozen_credentials()
    given = {
        "KEY_ID": credentials.access_key,
        "SECRET": credentials.secret_key,
        "SESSION_TOKEN": credentials.token,
        "REGION": signing.region_name,
        "ENDPOINT": parsed.netloc,
    }
    listed = ", ".join(f"{name} {DUCKDB.text(value)}" for name, value in given.items() if value)
    over_tls = str(parsed.scheme == "https").lower()
    return f"CREATE SECRET lake (TYPE s3, {listed}, URL_STYLE path, USE_SSL {over_tls})"


def _check_server(session: duckdb.DuckDBPyConnection) -> None:
    """Verify the server with boto3's certificate authorities.

    DuckDB looks for them at another system's path, or, with its older client, nowhere.
    """
    session.execute("SET enable_server_cert_verification = true")
    session.execute(f"SET ca_cert_file = {DUCKDB.text(str(AUTHORITIES))}")


def _restrict(session: duckdb.DuckDBPyConnection, bucket: str, writable: Path | None) -> None:
    folders = [f"s3://{bucket}/", *([] if writable is None else [f"{writable}/"])]
    session.execute(f"SET allowed_directories = [{', '.join(map(DUCKDB.text, folders))}]")
    session.execute("SET enable_external_access = false")
    session.execute("SET lock_configuration = true")
