"""Databases that the demo loads from a folder: Pagila, and MoMA's collection."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from cdclake.errors import InputError
from cdclake.places import RESOURCES
from cdclake.postgres.run_script import run_script
from cdclake.postgres.sql_script import SqlStatement, read_script, split_script

_PIPELINES = RESOURCES / "pipelines"


@dataclass(frozen=True, slots=True)
class GivenDatabase:
    """Database of the demo: its files, in order of loading, and where they come from."""

    name: str
    files: tuple[str, ...]
    origin: str

    @property
    def pipeline(self) -> Path:
        """Return the pipeline file of its tables."""
        return _PIPELINES / f"{self.name}.yaml"

    @property
    def folder_key(self) -> str:
        """Return the environment variable that may name its folder."""
        return f"CDCLAKE_{self.name.upper()}"

    def changes(self) -> list[SqlStatement]:
        """Return the statements that the demo runs while the lake streams."""
        file = _PIPELINES / f"{self.name}_changes.sql"
        return list(split_script(read_script(file), file.name))

    def check(self, folder: Path) -> None:
        """Raise InputError if the folder lacks one of the files."""
        missing = [name for name in self.files if not (folder / name).is_file()]
        if missing:
            raise InputError(
                f"{folder} has no {missing[0]}",
                f"get {self.name} from {self.origin}, and name its folder with --data or"
                f" {self.folder_key}",
            )

    def load(self, dsn: str, folder: Path) -> int:
        """Load the files into an empty database; return the number of rows."""
        with _refusing(folder), psycopg.connect(dsn, autocommit=True) as session:
            schema = _PIPELINES / f"{self.name}.sql"
            loaded = _run(session, schema) if schema.exists() else 0
            for name in self.files:
                file = folder / name
                loaded += _run(session, file) if file.suffix == ".sql" else _copy(session, file)
        return loaded


GIVEN = {
    "pagila": GivenDatabase(
        "pagila",
        ("pagila-schema.sql", "pagila-data.sql"),
        "https://github.com/devrimgunduz/pagila",
    ),
    "moma": GivenDatabase(
        "moma",
        ("artists.csv.gz", "artworks.csv.gz"),
        "https://github.com/MuseumofModernArt/collection (as CSV, compressed by gzip, with the"
        " columns of pipelines/moma.sql)",
    ),
}


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    try:
        yield
    except (psycopg.DataError, psycopg.ProgrammingError, OSError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0]
        raise InputError(
            f"the files in {folder} cannot be loaded: {first}", "use another copy of the data"
        ) from None


def _run(session: psycopg.Connection[Any], file: Path) -> int:
    statements = split_script(read_script(file), file.name)
    done = run_script(session, statements, file.name, keep_owners=False)
    return done.copied_rows


def _copy(session: psycopg.Connection[Any], file: Path) -> int:
    """Copy a compressed CSV file into the table of its name, by the columns of its first line."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        columns = sql.SQL(", ").join(map(sql.Identifier, next(rows)))
        table = sql.Identifier(file.name.partition(".")[0])
        copied = 0
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(table, columns)
        with session.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row([value or None for value in row])
                copied += 1
    return copied


def numbered(statements: list[SqlStatement]) -> Iterator[tuple[str, SqlStatement]]:
    """Yield each statement with its number and its text on one line, for display."""
    for number, statement in enumerate(statements, 1):
        text = " ".join(statement.sql.split())
        yield f"{number}/{len(statements)} {text[:90]}", statement
