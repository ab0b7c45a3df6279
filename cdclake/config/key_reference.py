"""Reference of the pipeline file: each key with its type, default, meaning and an example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cdclake.config.key_examples import KeyExample, example_of
from cdclake.config.problems import did_you_mean
from cdclake.config.schema import pipeline_schema
from cdclake.errors import InputError

Schema = Mapping[str, Any]

NAME = "NAME"  # in a path: a name that the file's author chooses
ITEM = "[]"  # after a key: each entry of its list
_WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "boolean"}
# Sections that override `firehose`.
_SHARING = {"firehose.domains.NAME", "puts.NAME", "weblogs.NAME"}
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedKey:
    """One key of the pipeline file."""

    path: str
    type: str
    default: str  # empty: none, or the meaning names it
    meaning: str
    example: KeyExample | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer of `cdclake schema --doc`, without `ok`."""
        return {
            "key": self.path,
            "type": self.type,
            "default": self.default,
            "meaning": self.meaning,
            "example": self.example.block() if self.example else "",
        }


def documented_keys() -> list[DocumentedKey]:
    """Return every key in the schema's order, a section before the keys in it."""
    schema = pipeline_schema()
    return [
        key
        for name, entry in schema["properties"].items()
        for key in _keys(schema, name, entry, is_required=name in schema["required"])
    ]


def find_key(spelled: str) -> DocumentedKey:
    """Return the key with this path or the only one that ends with it, and its example.

    Raises:
        InputError: if there is none, or several
    """
    keys = {key.path: key for key in documented_keys()}
    found = keys.get(spelled)
    if found is None:
        ending = [path for path in keys if _plain(path).endswith(f".{_plain(spelled)}")]
        if len(ending) != 1:
            raise _not_one(spelled, ending, list(keys))
        found = keys[ending[0]]
    return replace(found, example=example_of(found.path))


def _plain(path: str) -> str:
    return path.replace(ITEM, "")


def _not_one(spelled: str, ending: list[str], known: list[str]) -> InputError:
    if ending:
        shown = ", ".join(ending[:_MAX_LISTED]) + (", ..." if len(ending) > _MAX_LISTED else "")
        return InputError(f"{len(ending)} keys end with {spelled!r}", f"name one of {shown}")
    nearest = did_you_mean(spelled, [*known, *(path.rpartition(".")[2] for path in known)])
    remedy = nearest or "write the path with dots, as in `policies.new_columns`"
    return InputError(f"the pipeline file has no key {spelled!r}", remedy)


def _keys(
    schema: Schema, path: str, entry: Schema, *, is_required: bool = False, inherits: bool = False
) -> Iterator[DocumentedKey]:
    """Yield a key, and every key below it.

    Keys that a domain or web logs share with `firehose` take their default from there (`inherits`).
    """
    named, mapping = _named(schema, entry), _mapping(schema, entry)
    meaning = entry.get("description") or named["description"]
    yield DocumentedKey(
        path=path,
        type=_type(schema, entry),
        default=_default(entry, is_required=is_required, inherits=inherits),
        meaning=" ".join(meaning.split()),
    )
    for name, entry_below in mapping.get("properties", {}).items():
        yield from _keys(
            schema,
            f"{path}.{name}",
            entry_below,
            is_required=name in mapping.get("required", ()),
            inherits=inherits or (path in _SHARING and name in _shared(schema)),
        )
    below = _each(mapping)
    if below and path != "environments" and not _is_any(below):
        yield from _keys(schema, f"{path}.{NAME}", below)
    item = _mapping(schema, entry.get("items", {}))
    for name, entry_below in item.get("properties", {}).items():
        is_needed = name in item.get("required", ())
        yield from _keys(schema, f"{path}{ITEM}.{name}", entry_below, is_required=is_needed)


def _shared(schema: Schema) -> Schema:
    shared: Schema = schema["$defs"]["Firehose"]["properties"]
    return shared


def _is_any(entry: Schema) -> bool:
    return bool(entry.get("$ref") == "#/$defs/JsonValue")


def _named(schema: Schema, entry: Schema) -> Schema:
    """Return the definition that an entry, also an optional one, refers to; else the entry."""
    for option in (entry, *entry.get("anyOf", ())):
        if "$ref" in option:
            found: Schema = schema["$defs"][option["$ref"].rpartition("/")[2]]
            return found
    return entry


def _mapping(schema: Schema, entry: Schema) -> Schema:
    """Return the mapping that the entry allows; an empty one if it allows none."""
    named = _named(schema, entry)
    for option in (named, *entry.get("anyOf", ()), *named.get("anyOf", ())):
        if "properties" in option or _each(option):
            mapping: Schema = option
            return mapping
    return {}


def _default(entry: Schema, *, is_required: bool, inherits: bool) -> str:
    if is_required:
        return "required"
    value = entry.get("default")
    if value is None or isinstance(value, dict):
        return ""
    return "that of `firehose`" if inherits else f"`{spelled(value)}`"


def _type(schema: Schema, entry: Schema) -> str:
    """Return the values that an entry allows, in words."""
    if "anyOf" in entry:
        options = [_type(schema, each) for each in entry["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(options))
    if "$ref" in entry:
        return "any value" if _is_any(entry) else _type(schema, _named(schema, entry))
    if "const" in entry or "enum" in entry:
        values = [entry["const"]] if "const" in entry else entry["enum"]
        return ", ".join(f"`{spelled(value)}`" for value in values if value is not None)
    if entry.get("type") == "array":
        return f"list of {_type(schema, entry.get('items', {}))}"
    if entry.get("type") == "object":
        return "mapping by name" if _each(entry) else "mapping"
    word = _WORDS.get(str(entry.get("type")), "any value")
    return f"{word}{_limits(entry)}"


def _each(mapping: Schema) -> Schema:
    """Return what a mapping by name allows for each name; an empty one for other mappings."""
    by_pattern: Schema = next(iter(mapping.get("patternProperties", {}).values()), {})
    each = mapping.get("additionalProperties")
    return each if isinstance(each, dict) else by_pattern


def _limits(entry: Schema) -> str:
    least, greatest = entry.get("minimum"), entry.get("maximum")
    if least is None and greatest is None:
        return ""
    if greatest is None:
        return f", {least} or more"
    return f", {least} to {greatest}"


def spelled(value: object) -> str:
    """Return a value as a message or a table shows it."""
    return value if isinstance(value, str) else json.dumps(value)
