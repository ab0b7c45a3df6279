"""The connector's converters in a JVM, as its worker would load them, without the worker."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cdclake.debezium.avro_converter import plugin_profile
from tests.source_tree import PROJECT

_PROGRAM = Path(__file__).with_name("ConvertRecords.java")
_JARS = PROJECT / "jars"
_TIMEOUT_S = 60.0


def convert(
    settings: Mapping[str, str], registry: str, records: Sequence[tuple[str, dict[str, Any]]]
) -> list[tuple[bytes, bytes]]:
    """Each record of a topic (with its Connect schema) as JSON and as `settings` write it."""
    done = _run(settings, registry, records)
    assert done.returncode == 0, done.stderr[-3000:]
    return [
        (base64.b64decode(as_json), base64.b64decode(written))
        for as_json, written in (line.split() for line in done.stdout.splitlines() if " " in line)
    ]


def failure(settings: Mapping[str, str], registry: str, record: tuple[str, dict[str, Any]]) -> str:
    """Return class and message of the exception that the converter throws for a record."""
    done = _run(settings, registry, [record])
    assert done.returncode != 0, done.stdout
    [thrown] = re.findall('(?m)^Exception in thread "main" (.*)', done.stderr)
    return str(thrown)


def _run(
    settings: Mapping[str, str], registry: str, records: Sequence[tuple[str, dict[str, Any]]]
) -> subprocess.CompletedProcess[str]:
    folders = ("connect", "debezium", "secrets", plugin_profile(registry))
    classes = ":".join(f"{_JARS / folder}/*" for folder in folders)
    prefix = "value.converter."
    own = [f"{k.removeprefix(prefix)}={v}" for k, v in settings.items() if k.startswith(prefix)]
    lines = "".join(f"{topic}\t{_json(record)}\n" for topic, record in records)
    return subprocess.run(
        ["java", "-Xmx256m", "-cp", classes, str(_PROGRAM), *own],
        input=lines,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        env={**os.environ},
    )


def _json(record: dict[str, Any]) -> str:
    """Return the record as JSON; Connect reads the large number as infinite."""
    return json.dumps(record).replace("Infinity", "1e999")


def struct(name: str, values: Mapping[str, tuple[Any, Any]]) -> tuple[dict[str, Any], Any]:
    """Schema and value of a struct, from the schema and value of each field."""
    fields = [{**schema, "field": field} for field, (schema, _) in values.items()]
    schema = {"type": "struct", "name": name, "optional": True, "fields": fields}
    return schema, {field: value for field, (_, value) in values.items()}
