"""What `make record` keeps of a script: Kafka's records, and what PostgreSQL says of the rows.

`<name>.sql` and `<name>.yaml` are written by people, `<name>.events.jsonl` and `<name>.rows.jsonl`
by `make record`, one JSON object a line. Keys and values are the records' own text, since parsed
JSON would have lost duplicate keys and digits by now.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdclake.config.resolve import load_plan
from cdclake.jobs.stream.avro_values import split_header
from cdclake.plan import GLUE_REGISTRY, Plan

FOLDER = Path(__file__).parent
EPOCH = 7  # under which everything is recorded; no default could bring it about
SALT = "lHFzFNZFaPX7m4F-gv0s7aB-Ijmg862V"  # of the columns with `mask: hash`

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record, byte for byte."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def event(self) -> dict[str, Any]:
        """The value parsed; only for a record that has one."""
        assert self.value is not None
        event: dict[str, Any] = json.loads(self.value)
        return event

    def to_line(self) -> str:
        """The record as a line of `<name>.events.jsonl`."""
        return _line(
            {
                "topic": self.topic,
                "partition": self.partition,
                "offset": self.offset,
                "headers": [[name, _text(value)] for name, value in self.headers],
                "key": _text(self.key),
                "value": _text(self.value),
            }
        )

    @staticmethod
    def from_line(line: str) -> Record:
        """The record that `to_line` wrote."""
        raw = json.loads(line)
        for field in ("key", "value"):
            raw[field] = _bytes(raw[field])
        raw["headers"] = tuple((name, _bytes(value)) for name, value in raw["headers"])
        return Record(**raw)


@dataclass(frozen=True, slots=True)
class Witnessed:
    """What PostgreSQL itself said of one change, or of one row that a snapshot had before it.

    Values are PostgreSQL's text, in UTC, ISO dates and ISO 8601 intervals. `op` is that of the
    trigger, or SNAPSHOT. `before` is there where a row went away: deleted, or under another key.
    """

    table: str
    op: str
    row: dict[str, str | None] | None = None
    before: dict[str, str | None] | None = None
    unsent: tuple[str, ...] = ()  # stored out of line and not written anew by this change

    def to_line(self) -> str:
        """What was said as a line of `<name>.rows.jsonl`."""
        said = {name: getattr(self, name) for name in self.__slots__}
        return _line({name: value for name, value in said.items() if value not in (None, ())})

    @staticmethod
    def from_line(line: str) -> Witnessed:
        """What `to_line` wrote."""
        raw = json.loads(line)
        return Witnessed(**{**raw, "unsent": tuple(raw.get("unsent", ()))})


@dataclass(frozen=True, slots=True)
class Recording:
    """One script's plan and everything that was recorded of it."""

    name: str
    plan: Plan
    records: tuple[Record, ...]
    witnessed: tuple[Witnessed, ...]

    @staticmethod
    def load(name: str) -> Recording:
        """The recording of this name, as it stands in the repository."""
        records = _lines(events_file(name))
        said = _lines(rows_file(name))
        return Recording(
            name=name,
            plan=load_plan(FOLDER / f"{name}.yaml"),
            records=tuple(Record.from_line(line) for line in records),
            witnessed=tuple(Witnessed.from_line(line) for line in said),
        )

    def of_topic(self, topic: str) -> list[Record]:
        """The topic's records by offset."""
        return [record for record in self.records if record.topic == topic]

    def said_of(self, table: str) -> list[Witnessed]:
        """What was said of a table (`schema.table`), in order."""
        return [said for said in self.witnessed if said.table == table]


def names() -> list[str]:
    """Every script by name."""
    return sorted(p.stem for p in FOLDER.glob("*.sql") if p.with_suffix(".yaml").exists())


def save(name: str, records: Sequence[Record], witnessed: Iterable[Witnessed]) -> None:
    """Replace the recording of this name, by topic and offset."""
    in_order = sorted(records, key=lambda r: (r.topic, r.partition, r.offset))
    events_file(name).write_text("".join(record.to_line() for record in in_order))
    rows_file(name).write_text("".join(said.to_line() for said in witnessed))


def as_avro(plan: Plan) -> Plan:
    """The plan with events as Avro, whatever else it has."""
    return replace(plan, format="avro", registry=GLUE_REGISTRY, compatibility="NONE")


def save_avro(name: str, records: Sequence[Record], schema_text: Callable[[str], str]) -> None:
    """Replace the recording of this name as Avro: its records, and the schemas that they name."""
    in_order = sorted(records, key=lambda r: (r.topic, r.partition, r.offset))
    avro_file(name).write_text("".join(record.to_line() for record in in_order))
    values = [r.value for r in in_order if r.value is not None and not r.value.startswith(b"{")]
    used = sorted({split_header(value)[0] for value in values})
    schemas_file(name).write_text(json.dumps({one: schema_text(one) for one in used}, indent=1))


def avro_file(name: str) -> Path:
    """Kafka's records as Avro."""
    return FOLDER / f"{name}.avro.jsonl"


def schemas_file(name: str) -> Path:
    """The schemas of the records as Avro, by identifier."""
    return FOLDER / f"{name}.schemas.json"


def events_file(name: str) -> Path:
    """Kafka's records."""
    return FOLDER / f"{name}.events.jsonl"


def rows_file(name: str) -> Path:
    """What PostgreSQL said."""
    return FOLDER / f"{name}.rows.jsonl"


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]  # a value may hold U+2028


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False) + "\n"


def _text(raw: bytes | None) -> str | dict[str, str] | None:
    """Text where it is text, else base64 under that name."""
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}


def _bytes(text: str | dict[str, str] | None) -> bytes | None:
    if text is None:
        return None
    return base64.b64decode(text["base64"]) if isinstance(text, dict) else text.encode()
