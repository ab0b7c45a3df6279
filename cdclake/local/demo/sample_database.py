"""Databases that the demo loads: Pagila, and MoMA's collection."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from cdclake.errors import InputError
from cdclake.local.demo.pinned_files import PinnedFiles
from cdclake.places import RESOURCES
from cdclake.postgres.run_script import run_script
from cdclake.postgres.sql_script import SqlStatement, read_script, split_script

_PIPELINES = RESOURCES / "pipelines"


@dataclass(frozen=True, slots=True)
class SampleDatabase:
    """Database of the demo: its files, in order of loading, and where they come from."""

    name: str
    files: tuple[str, ...]
    origin: str
    pinned: PinnedFiles | None = None  # None: no commit has the files as they are loaded

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

    @property
    def remedy(self) -> str:
        """Return how to provide its files."""
        return (
            f"get {self.name} from {self.origin}, and name its folder with --data or"
            f" {self.folder_key}"
        )

    def folder(self, data: Path | None) -> Path:
        """Return the folder of its files: `data`, the environment's, or downloaded ones.

        Raises InputError if one of the files is missing or cannot be downloaded.
        """
        named = data or os.environ.get(self.folder_key)
        if named:
            self.check(Path(named))
            return Path(named)
        if self.pinned is None:
            raise InputError(f"{self.name} is not downloaded: no folder is given", self.remedy)
        return self.pinned.fetch(self.remedy)

    def check(self, folder: Path) -> None:
        """Raise InputError if the folder lacks one of the files."""
        missing = [name for name in self.files if not (folder / name).is_file()]
        if missing:
            raise InputError(f"{folder} has no {missing[0]}", self.remedy)

    def load(self, dsn: str, folder: Path) -> int:
        """Load the files into an empty database; return the number of rows."""
        with _refusing(folder), psycopg.connect(dsn, autocommit=True) as session:
            schema = _PIPELINES / f"{self.name}.sql"
            loaded = _run(session, schema) if schema.exists() else 0
            for name in self.files:
                file = folder / name
                loaded += _run(session, file) if file.suffix == ".sql" else _copy(session, file)
        return loaded


_PAGILA = "eb65be5bc01833c4a4b716e611b82d0f680e359a"  # the commit
SAMPLES = {
    "pagila": SampleDatabase(
        "pagila",
        ("pagila-schema.sql", "pagila-data.sql"),
        "https://github.com/xzilla/pagila",
        PinnedFiles(
            "pagila",
            f"https://raw.githubusercontent.com/xzilla/pagila/{_PAGILA}",
            {
                "pagila-schema.sql": (
                    "69972968c7c78f78b478a7b578400eeb411d31b2d3afd881497b075e1db5edc7"
                ),
                "pagila-data.sql": (
                    "dc8b9998c2fd2ad2a52fde80f72805e2142db232c5b3853016d84d9efb03ba0f"
                ),
            },
        ),
    ),
    "moma": SampleDatabase(
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
