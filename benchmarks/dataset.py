"""The rows and changes that every contender is given, as Parquet files in the log's schema.

Made by Python and DuckDB, and kept: the same question gives the same files.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.history import MIXED, Change, History, Keys, Mix
from benchmarks.orders import LOG_COLUMNS
from cdclake.debezium.position import SNAPSHOT_PHASE, STREAM_PHASE, Position, history_part

ROWS_PER_FILE = 1_250_000
_LOAD_LSN = 1
_DUCK_TYPES = {"bigint": "BIGINT", "int": "INTEGER", "string": "VARCHAR", "boolean": "BOOLEAN"}
_DUCK_TYPES |= {"timestamp": "TIMESTAMPTZ", "array<string>": "VARCHAR[]"}
_FIRST_COMMIT = "TIMESTAMP '2026-01-01 00:00:00'"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A table of `rows` rows and `batches` batches of `changes` changes; the files of both.

    The first `warm_up` batches are taken as the others are, but do not count.
    """

    folder: Path
    rows: int
    changes: int
    batches: int
    warm_up: int = 0
    keys: Keys
    mix: Mix = MIXED

    @property
    def base(self) -> Path:
        """Folder of the rows that the table begins with."""
        return self.folder / f"base-{self.rows}"

    @property
    def batch_files(self) -> list[Path]:
        """Each batch's file."""
        mix = f"{self.mix.inserts}-{self.mix.updates}"
        folder = self.folder / f"{self.keys}-{mix}-{self.rows}-{self.changes}x{self.batches}"
        return [folder / f"{number:04}.parquet" for number in range(self.batches)]

    def counted(self, figures: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """The figures of the batches that count, out of each batch's."""
        return figures[self.warm_up :]

    def make(self) -> DataSet:
        """Write what is not there yet."""
        duck = duckdb.connect(config={"threads": 2, "memory_limit": "2GB"})
        with duck:
            if not self.base.exists():
                _write_base(duck, self.base, self.rows)
            if not all(file.exists() for file in self.batch_files):
                self._write_batches(duck)
        return self

    def _write_batches(self, duck: duckdb.DuckDBPyConnection) -> None:
        history = History(self.rows, self.keys, self.mix)
        for file in self.batch_files:
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_suffix(".csv")
            with draft.open("w", newline="") as lines:
                csv.writer(lines).writerows(_fields(history.changes(self.changes)))
            duck.execute(f"COPY ({_changes_query(draft)}) TO '{file}.part' (FORMAT parquet)")
            Path(f"{file}.part").rename(file)
            draft.unlink()


def _write_base(duck: duckdb.DuckDBPyConnection, folder: Path, rows: int) -> None:
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    for start in range(1, rows + 1, ROWS_PER_FILE):
        stop = min(start + ROWS_PER_FILE, rows + 1)
        query = _base_query(start, stop)
        duck.execute(f"COPY ({query}) TO '{fresh / f'{start:012}.parquet'}' (FORMAT parquet)")
    fresh.rename(folder)


def _fields(changes: Iterator[Change]) -> Iterator[tuple[str | int, ...]]:
    for c in changes:
        position = Position(1, c.prev_commit_lsn, STREAM_PHASE, c.lsn, c.number)
        yield c.op, c.key, c.number, c.draw, c.lsn, c.prev_commit_lsn, str(position)


def _base_query(start: int, stop: int) -> str:
    """The rows with the keys from `start` to before `stop`, as a snapshot reads them."""
    position = str(Position(1, 0, SNAPSHOT_PHASE, _LOAD_LSN, 0))
    facts = {
        "cdc_op": "'r'",
        "cdc_position": f"'{history_part(position)}.' || format('{{:016x}}', key)",
        "cdc_committed_at": _FIRST_COMMIT,
        "cdc_partition": "-2",
        "cdc_offset": "key",
        "cdc_epoch": "1",
        "cdc_lsn": str(_LOAD_LSN),
        "cdc_prev_commit_lsn": "0",
        "cdc_phase": str(SNAPSHOT_PHASE),
    }
    draw = "(hash(range) % 4294967296)::BIGINT AS draw"
    source = f"(SELECT range AS key, {draw} FROM range({start}, {stop}))"
    return _log_rows({**_values("0"), **facts}, source)


def _changes_query(draft: Path) -> str:
    columns = (
        "{'op': 'VARCHAR', 'key': 'BIGINT', 'number': 'BIGINT', 'draw': 'BIGINT', 'lsn': 'BIGINT',"
        " 'prev': 'BIGINT', 'position': 'VARCHAR'}"
    )
    facts = {
        "cdc_op": "op",
        "cdc_position": "position",
        "cdc_tx_id": "1000 + number",
        # Each a microsecond later than the one before, so that the clock tells the order, too.
        "cdc_committed_at": f"{_FIRST_COMMIT} + to_microseconds(1 + number)",
        "cdc_partition": "0",
        "cdc_offset": "number",
        "cdc_epoch": "1",
        "cdc_lsn": "lsn",
        "cdc_prev_commit_lsn": "prev",
        "cdc_phase": str(STREAM_PHASE),
    }
    values = {
        name: value if name == "id" else f"CASE WHEN op <> 'd' THEN {value} END"
        for name, value in _values("number").items()
    }
    source = f"read_csv('{draft}', header = false, columns = {columns})"
    return _log_rows({**values, **facts}, source)


def _values(number: str) -> dict[str, str]:
    """A row's values as the log holds them, out of `key`, `draw` and the change's number."""
    moment = "strftime(make_timestamp({}000000 + {}), '%Y-%m-%dT%H:%M:%S.%fZ')"
    return {
        "id": "key",
        "customer_id": "1 + draw % 100000",
        "quantity": "1 + draw % 9",
        "price": "format('{}.{:02}', draw % 90000, draw % 97)",
        "status": "['open', 'paid', 'packed', 'sent', 'returned'][1 + (draw % 5)::INTEGER]",
        "note": "CASE WHEN draw % 3 > 0 THEN 'note ' || md5((draw + key)::VARCHAR) END",
        "paid": "draw % 2 = 0",
        "created_at": moment.format("1700000000", "key % 86400"),
        "updated_at": moment.format("1760000000", f"(draw % 1000000 + {number})"),
    }


def _log_rows(values: dict[str, str], source: str) -> str:
    selected = [
        f"CAST({values.get(name, 'NULL')} AS {_DUCK_TYPES[kind]}) AS {name}"
        for name, kind in LOG_COLUMNS
    ]
    return f"SELECT {', '.join(selected)} FROM {source}"
