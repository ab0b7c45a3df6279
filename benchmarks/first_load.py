"""P5: the first rows of a table into the lake: in bulk, through Debezium and Kafka, by loaders."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
from psycopg.conninfo import conninfo_to_dict

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.current import iceberg_session
from benchmarks.dataset import DataSet
from benchmarks.expected import digest_of, rows_of_base
from benchmarks.lake_fixture import await_rows, source_of, stream
from benchmarks.metering import metered
from benchmarks.orders import ORDERS, PLAN
from benchmarks.results import Bound, Measure, Run, median_of
from benchmarks.session import PROJECT
from benchmarks.sizes import Size
from benchmarks.source_fixture import create_tables, fill_table
from benchmarks.steps import Steps
from benchmarks.storage import in_folder
from cdclake.iceberg.dialect import DUCKDB
from cdclake.local import lifecycle, shutdown
from cdclake.local.process.home import Home
from cdclake.local.reader.duck import lake_reader

THROUGH_KAFKA, DLT, ADBC = "debezium_and_kafka", "dlt", "adbc_and_pyiceberg"
TARGETS = {THROUGH_KAFKA: Bound(">=", 3), DLT: Bound(">=", 1.3), ADBC: Bound(">=", 1.3)}
_TIMEOUT_SECONDS = 3600.0
_PEERS = PROJECT / "benchmarks" / "peers"
_PYTHON = PROJECT / "build" / "venvs" / "dlt" / "bin" / "python"


def measure_first_load(size: Size, work: Path, steps: Steps) -> Measure:
    """P5: every contender in turn, each round a step, from the same rows into an empty lake."""
    arena = Arena(work, in_folder)

    def taken(contender: str) -> Any:
        data = DataSet(
            folder=work / "data", rows=size.loaded, changes=1, batches=0, keys="uniform"
        ).make()
        with arena.place("first-load") as place:
            question = {"contender": contender, "base": str(data.base), "rows": size.loaded}
            return place.ask("benchmarks.first_load", question)

    answers: dict[str, list[Any]] = {contender: [] for contender in (OURS, *TARGETS)}
    for number in range(1, size.rounds + 1):
        for contender, rounds in answers.items():
            rounds.append(steps.take(f"{contender}, round {number}", partial(taken, contender)))
    runs = [_run(contender, size.loaded, rounds) for contender, rounds in answers.items()]
    peers = {peer: median_of(runs, peer) for peer in TARGETS}
    return Measure(ours=median_of(runs, OURS), peers=peers, targets=TARGETS, runs=runs)


def _run(contender: str, rows: int, rounds: Sequence[Mapping[str, Any]]) -> Run:
    wrong = next((each["wrong"] for each in rounds if each["wrong"] is not None), None)
    about = {"subject": "first load", "rows": rows}
    return Run(contender, about, wrong, [each["figures"] for each in rounds])


def take(*, warehouse: str, scratch: str, contender: str, base: str, rows: int) -> dict[str, Any]:
    """Return the figures of one first load, and how its table was wrong, if it was.

    `seconds` end with the commit that completes the table. CPU and memory are those of all that
    runs: PostgreSQL, and for ours the whole lake until its stream is up.
    """
    folder, data = Path(warehouse), Path(base)
    with source_of(folder / "home", PLAN) as (home, dsn):
        create_tables(dsn, [ORDERS])
        fill_table(dsn, ORDERS, data, folder)
        loads: Mapping[str, Callable[[], tuple[Any, str | None]]] = {
            OURS: lambda: _by_ours(home, "bulk", data, rows),
            DLT: lambda: _by_loader("dlt_load.py", folder / "loader", dsn, data),
            ADBC: lambda: _by_loader("adbc_load.py", folder / "loader", dsn, data),
            THROUGH_KAFKA: lambda: _by_ours(home, "initial", data, rows),
        }
        lifecycle.up_bare(home, PLAN, None)  # the same idle servers for every contender
        figures, wrong = loads[contender]()
        shutdown.down(home, purge=True)
    return {"wrong": wrong, "figures": figures}


def _by_ours(home: Home, mode: Any, base: Path, rows: int) -> tuple[Mapping[str, Any], str | None]:
    """With the whole lake running, from the wish to stream on; into log and state."""
    with metered() as meter:
        started = time.time()
        lake = stream(home, replace(PLAN, snapshot_mode=mode))
        complete = await_rows(lake, ORDERS.name, rows, _TIMEOUT_SECONDS)
    logged_ms = await_rows(lake, ORDERS.changes, rows, _TIMEOUT_SECONDS).committed_ms
    meter.seconds = complete.committed_ms / 1000 - started
    with lake_reader(lake).open([ORDERS]) as duck:
        wrong = _wrong(duck, f"{ORDERS.name}_current", base)
        logged = duck.execute(f"SELECT count(*) FROM {ORDERS.changes}").fetchone()
    if logged != (rows,):
        wrong = f"the log has not {rows} rows, but {logged}"
    return {**meter.figures(), "until_logged": logged_ms / 1000 - started}, wrong


def _by_loader(
    script: str, folder: Path, dsn: str, base: Path
) -> tuple[Mapping[str, Any], str | None]:
    """From the process's start to its end; into one table."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    question = folder / "question.json"
    question.write_text(
        json.dumps(
            {
                "dsn": _url(dsn),
                "schema": ORDERS.schema,
                "table": ORDERS.table,
                "folder": str(folder),
            }
        )
    )
    with metered() as meter:
        subprocess.run([_PYTHON, _PEERS / script, question], cwd=folder, check=True)
    tables = folder / "lake" / "bench" / ORDERS.table
    newest = max((tables / "metadata").glob("*.metadata.json"))
    with iceberg_session() as duck:
        wrong = _wrong(duck, f"iceberg_scan({DUCKDB.text(str(newest))})", base)
    shutil.rmtree(folder)
    return meter.figures(), wrong


def _url(dsn: str) -> str:
    given = {name: quote(str(value), safe="") for name, value in conninfo_to_dict(dsn).items()}
    return "postgresql://{user}:{password}@{host}:{port}/{dbname}".format(**given)


def _wrong(duck: duckdb.DuckDBPyConnection, relation: str, base: Path) -> str | None:
    """How the relation's rows differ from those of `base`; None if they are the same."""
    found = digest_of(duck, relation)
    with duckdb.connect(config={"threads": 2, "memory_limit": "4GB"}) as own:
        expected = digest_of(own, rows_of_base(base))
    return None if found == expected else f"rows, keys and their hash are {found}, not {expected}"
