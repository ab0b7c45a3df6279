"""A place for a stream, and a broker with the topics of its plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.broker import running_broker
from benchmarks.comparison import Arena, Place
from benchmarks.storage import in_folder
from cdclake.plan import Plan


@contextmanager
def fed_stream(work: Path, plan: Plan) -> Iterator[tuple[Place, dict[str, str]]]:
    """Yield an empty place, its tables in a folder, and Spark's options of a running broker."""
    with (
        Arena(work, in_folder).place("scale") as place,
        running_broker(place.folder / "kafka") as broker,
    ):
        broker.create([*(table.topic for table in plan.tables), plan.heartbeat_rows_topic])
        yield place, broker.spark_options
