"""Measure Avro against JSON on the recorded events, and write the figures into docs/avro.md.

    python -m tests.avro.measure

Bytes are those of the values in Kafka before compression; CPU time is that of decoding to rows in
one process, the best of several rounds.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cdclake.jobs.stream.avro_values import AvroValues
from cdclake.jobs.stream.block_decoder import BlockDecoder
from cdclake.plan import Plan, Table
from tests.avro.recorded import recorded_avro, stored_schemas
from tests.recorded import recording
from tests.recorded.recording import Record
from tests.source_tree import PROJECT

RESULTS = Path(__file__).with_name("measured.json")
PAGE = PROJECT / "docs" / "avro.md"
_SECTION = re.compile(r"(?s)(<!-- made by tests.avro.measure -->\n).*?(<!-- end -->)")
_ROUNDS, _EVENTS_PER_ROUND = 7, 20_000


def main() -> None:
    """Measure all recordings, and write results and page."""
    measured = {name: _measured(name) for name in recording.names()}
    machine = {"system": platform.platform(), "python": platform.python_version()}
    content = {"machine": machine, "recordings": measured}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    write_page(content)


def write_page(content: dict[str, Any]) -> None:
    """Replace the page's section with these results."""
    PAGE.write_text(
        _SECTION.sub(lambda found: found[1] + rendered(content) + found[2], PAGE.read_text())
    )


def rendered(content: dict[str, Any]) -> str:
    """The results as a table."""
    lines = [
        "| recorded events | bytes as JSON | bytes as Avro | Avro / JSON | CPU per event, JSON"
        " | CPU per event, Avro | Avro / JSON |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in content["recordings"].items():
        sizes, micros = found["bytes_per_event"], found["cpu_us_per_event"]
        lines.append(
            f"| `{name}` ({found['events']}) | {sizes['json']:.0f} | {sizes['avro']:.0f}"
            f" | {sizes['avro'] / sizes['json']:.2f} | {micros['json']:.1f} µs"
            f" | {micros['avro']:.1f} µs | {micros['avro'] / micros['json']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def _measured(name: str) -> dict[str, Any]:
    plan = recording.Recording.load(name).plan
    of_json = recording.Recording.load(name).records
    of_avro = recorded_avro(name)
    topics = {table.topic: table for table in plan.tables}
    found: dict[str, Any] = {"bytes_per_event": {}, "cpu_us_per_event": {}}
    for kind, records in (("json", of_json), ("avro", of_avro)):
        mine = [r for r in records if r.topic in topics and r.value is not None]
        found["events"] = len(mine)
        size = sum(len(record.value or b"") for record in mine)
        found["bytes_per_event"][kind] = round(size / len(mine), 1)
        avro = AvroValues(stored_schemas(name)) if kind == "avro" else None
        micros = min(_round(mine, topics, plan, avro) for _ in range(_ROUNDS))
        found["cpu_us_per_event"][kind] = round(micros, 2)
    sys.stdout.write(f"{name}: {found}\n")
    return found


def _round(
    records: Sequence[Record], topics: dict[str, Table], plan: Plan, avro: AvroValues | None
) -> float:
    """Microseconds of CPU per event, over as many events as a batch may have."""
    blocks = []
    for topic, table in topics.items():
        mine = [record for record in records if record.topic == topic]
        times = max(1, _EVENTS_PER_ROUND // max(1, len(records)))
        keys = [record.key for record in mine] * times
        values = [record.value for record in mine] * times
        blocks.append((BlockDecoder(table, plan), keys, values))
    count = sum(len(values) for _, _, values in blocks)
    started = time.process_time()
    for decoder, keys, values in blocks:
        if values:
            as_json = values if avro is None else avro.as_json(values)
            decoder.decode(as_json, keys, 0, np.arange(len(values)))
    return (time.process_time() - started) * 1e6 / count


if __name__ == "__main__":
    main()
