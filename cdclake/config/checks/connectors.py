"""Checks of `connectors:`: names, tables, settings, and that no setting holds a password."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.config.checks.put_streams import put_tables
from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem, did_you_mean
from cdclake.connectors.declared import ICEBERG_SINK, is_reference
from cdclake.passwords import carries_password

_SECTION = "connectors"
_SOURCE = "source"  # the pipeline's own connector is NAME-source
# Settings that cdclake derives from the plan or from other keys of the entry.
_RESERVED = {
    "name": "the key of the entry is its name",
    "connector.class": "write `class:`",
    "tasks.max": "write `tasks:`",
    "topics": "write `tables:`",
    "topics.regex": "write `tables:`",
}
_DERIVED_BY_SINK = re.compile(
    r"iceberg\.(catalog|kafka(?!\.auto\.offset\.reset)|table)\..*|iceberg\.tables"
    r"|iceberg\.tables\.(route-field|auto-create-enabled|evolve-schema-enabled"
    r"|schema-force-optional|dynamic-enabled)"
    r"|iceberg\.(control\.(topic|group-id-prefix)|connect\.group-id)"
    r"|iceberg\.coordinator\.transactional\.prefix"
    r"|transforms(\..*)?|(key|value)\.converter(\..*)?"
)
_SECRET_WORD = re.compile(
    r"passw(or)?d|passphrase|\bpwd\b|secret|token|credential"
    r"|(access|api|private|account|shared|encryption|license|sas)[._-]?key|[._-]key$",
    re.IGNORECASE,
)
_CLIENT_SECRET = re.compile(r"\bclientSecret\s*=\s*(?![\"']?\$\{)\S")
_REMEDY = (
    "put it into a secret of Secrets Manager and write `${secretsmanager:NAME:KEY}`, which Connect"
    " resolves"
)


def check_connectors(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check each connector against the source, the pipeline's tables and the lake's names."""
    spelled = {table.spelled: table for table in tables}
    taken = _lake_names(document, tables)
    for name, entry in document.mapping(_SECTION).items():
        place: Location = (_SECTION, name)
        if name == _SOURCE:
            message = f"{name!r} is the name of the pipeline's Debezium connector"
            yield document.key_problem(place, message, "rename the connector")
        if not isinstance(entry, dict):
            continue
        yield from _check_class(document, place, entry)
        yield from _check_format(document, place, entry)
        yield from _check_tables(document, place, entry, spelled, taken)
        yield from _check_settings(document, place, entry)


def sink_tables(document: Document, tables: Sequence[TableOutline]) -> dict[str, str]:
    """Return the connector of each table that an Iceberg sink appends to."""
    named = {table.spelled: table.name for table in tables if table.name}
    return {
        naming.sink_name(named[name]): f"{_SECTION}: {connector}"
        for connector, entry in document.mapping(_SECTION).items()
        if isinstance(entry, dict) and entry.get("plugin") == ICEBERG_SINK
        for name in (entry["tables"] if isinstance(entry.get("tables"), list) else ())
        if isinstance(name, str) and name in named
    }


def _check_class(
    document: Document, place: Location, entry: Mapping[str, Any]
) -> Iterator[Problem]:
    is_sink, named = entry.get("plugin") == ICEBERG_SINK, "class" in entry
    if is_sink and named:
        message = f"the plugin {ICEBERG_SINK} has its own class"
        yield document.key_problem((*place, "class"), message, "remove this line")
    if not is_sink and not named and isinstance(entry.get("plugin"), str):
        message = "the connector has no `class`"
        remedy = "add the Java class of the plugin's connector, such as `class: io.example.Sink`"
        yield document.key_problem(place, message, remedy)


def _check_format(
    document: Document, place: Location, entry: Mapping[str, Any]
) -> Iterator[Problem]:
    """Refuse a connector whose converter would fail at the first event in Avro."""
    if document.get("source", "format") != "avro":
        return
    settings = entry.get("settings")
    if entry.get("plugin") == ICEBERG_SINK:
        yield document.problem(
            (*place, "plugin"),
            f"the plugin {ICEBERG_SINK} reads events as JSON, and the source's are Avro",
            "remove `format: avro` under `source:`, or this connector",
        )
    elif not (isinstance(settings, dict) and "value.converter" in settings):
        yield document.key_problem(
            place,
            "the source's events are Avro, and the connector's worker would read JSON",
            "add `value.converter` to its `settings`: a class of the plugin that reads the"
            " registry's Avro, and the few events that stay JSON",
        )


def _check_tables(
    document: Document,
    place: Location,
    entry: Mapping[str, Any],
    spelled: Mapping[str, TableOutline],
    taken: dict[str, str],
) -> Iterator[Problem]:
    listed = entry.get("tables")
    for index, name in enumerate(listed if isinstance(listed, list) else ()):
        if not isinstance(name, str):
            continue
        at = (*place, "tables", index)
        table = spelled.get(name)
        if table is None:
            hint = did_you_mean(name, spelled) or f"the file's tables are {', '.join(spelled)}"
            yield document.problem(at, f"the file has no table {name!r}", hint)
        elif table.is_polled:
            message = f"{name!r} is polled, so it has no topic"
            yield document.problem(at, message, "remove it here, or `capture:` from the table")
        elif entry.get("plugin") == ICEBERG_SINK and table.name:
            sink = naming.sink_name(table.name)
            if sink in taken:
                message = f"the lake already has {sink!r}, of {taken[sink]}"
                remedy = "rename that one, or remove the table from this list"
                yield document.problem(at, message, remedy)
            taken[sink] = f"the connector {place[1]!r}"


def _check_settings(
    document: Document, place: Location, entry: Mapping[str, Any]
) -> Iterator[Problem]:
    settings = entry.get("settings")
    for key, value in settings.items() if isinstance(settings, dict) else ():
        at = (*place, "settings", key)
        if key in _RESERVED:
            yield document.key_problem(at, f"{key!r} is not a setting here", _RESERVED[key])
        elif entry.get("plugin") == ICEBERG_SINK and _DERIVED_BY_SINK.fullmatch(key):
            message = f"cdclake derives {key!r} from the pipeline file"
            yield document.key_problem(at, message, "remove this line")
        if _is_clear_secret(key, value):
            yield document.problem(at, f"the setting {key!r} holds a password or key", _REMEDY)


def _is_clear_secret(key: str, value: Any) -> bool:
    """Check whether the setting looks like a secret whose value is not a reference."""
    if isinstance(value, bool) or value is None or value == "":
        return False
    text = str(value)
    if carries_password(text) or _CLIENT_SECRET.search(text):
        return True
    is_jaas = "jaas" in key.lower()  # a text with several values, each of them checked above
    return _SECRET_WORD.search(key) is not None and not (is_jaas or is_reference(text))


def _lake_names(document: Document, tables: Sequence[TableOutline]) -> dict[str, str]:
    taken = {
        name: repr(table.spelled)
        for table in tables
        if table.name
        for name in naming.lake_objects(table.name)
    }
    taken |= put_tables(document)
    return taken | dict.fromkeys(document.mapping("derived"), "`derived:`")
