"""Translation of pydantic's validation errors to a `Problem` each, with its place and remedy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from cdclake.config.document import Document, Location
from cdclake.config.firehose_model import REMOVED_KEYS, StreamSettings
from cdclake.config.model import PipelineFile
from cdclake.config.problems import Problem, Refused, did_you_mean
from cdclake.config.source_model import Source
from cdclake.config.table_model import TableEntry
from cdclake.passwords import without_passwords

_SECRET_WORDS = ("password", "passwd", "secret")
NO_PASSWORDS = (
    "remove it: never write a password into this file; use `--source DSN` or CDCLAKE_SOURCE_DSN for"
    " an existing database, and on AWS the name of a secret"
)
_SERVER_KEYS = frozenset({"host", "hostname", "port", "user", "username", "url", "uri", "dsn"})
_SERVER_REMEDY = (
    "remove it: the server is not in this file; locally set CDCLAKE_SOURCE_DSN or use"
    " `--source DSN`, on AWS `aws: {source: {existing: {endpoint, port, secret_arn}}}`"
)
_KINDS = {
    "int_type": ("a whole number", "write digits without quotes"),
    "string_type": ("text", "write it in quotes"),
    "float_type": ("a number", "write digits without quotes"),
    "bool_type": ("true or false", "write `true` or `false` without quotes"),
    "list_type": ("a list", "write `[a, b]`, or one `- a` per line"),
    "dict_type": ("a mapping", "write `name: value` lines beneath it"),
    "model_type": ("a mapping", "write `name: value` lines beneath it"),
}
_UNION = "union"
_PYDANTIC_TYPES = {"str": "string"}  # the others have the name that their errors have
_KEY_REMEDY = (
    "declare `key: [...]`, the columns that identify a row; add `replica_identity: full` unless"
    " they are the primary key"
)


def structure_problems(document: Document) -> list[Problem]:
    """Validate the document's structure and single values."""
    try:
        PipelineFile.model_validate(document.values)
    except ValidationError as error:
        found = [dict(entry) for entry in error.errors(include_url=False)]
        return [_explain(document, entry) for entry in _one_of_each_union(found)]
    return []


def _one_of_each_union(errors: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the errors, of a value with several types one that names them all.

    pydantic reports such a value once for each type, and appends the type to the location.
    """
    by_place: dict[Location, list[dict[str, Any]]] = {}
    for error in errors:
        place = tuple(error["loc"])
        is_typed = error["type"] == f"{_PYDANTIC_TYPES.get(str(place[-1]), place[-1])}_type"
        by_place.setdefault(place[:-1] if is_typed else place, []).append(error)
    for place, found in by_place.items():
        kinds = [_KINDS[error["type"]][0] for error in found if error["type"] in _KINDS]
        if len(found) > 1 and len(kinds) == len(found):
            yield {**found[0], "loc": place, "type": _UNION, "ctx": {"kinds": " or ".join(kinds)}}
        else:
            yield from found


def _explain(document: Document, error: Mapping[str, Any]) -> Problem:
    location: Location = tuple(error["loc"])
    kind: str = error["type"]
    context: Mapping[str, Any] = error.get("ctx", {})
    refused = context.get("error")
    if isinstance(refused, Refused):
        return document.problem(location, refused.message, refused.remedy)
    if kind == "extra_forbidden":
        return document.key_problem(location, *_unknown_key(location))
    if kind in ("missing", "too_short"):
        return document.problem(location, *_missing(location, kind))
    subject = f"`{_subject(location)}`"
    value = _shown(error["input"])
    if kind == _UNION:
        message = f"{subject} must be {context['kinds']}, not {value}"
        return document.problem(location, message, "write one value")
    if kind in _KINDS:
        what, remedy = _KINDS[kind]
        return document.problem(location, f"{subject} must be {what}, not {value}", remedy)
    if kind == "literal_error":
        return document.problem(location, *_not_one_of(subject, error))
    if kind == "string_pattern_mismatch":
        remedy = "use 2 to 21 lowercase letters, digits and hyphens, starting with a letter"
        if location != ("name",):
            remedy = f"write it like `{_example_at(location)}`"
        return document.problem(location, f"{subject} cannot be {value}", remedy)
    remedy = str(error["msg"]).replace("Input should", "it should")
    return document.problem(location, f"{subject} cannot be {value}", remedy)


def _subject(location: Location) -> str:
    names = [str(part) for part in location if isinstance(part, str)]
    return names[-1] if names else "the file"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    shown = without_passwords(repr(value))  # before it is cut, which may leave half a password
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _not_one_of(subject: str, error: Mapping[str, Any]) -> tuple[str, str]:
    expected = str(error["ctx"]["expected"])
    choices = [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
    hint = did_you_mean(str(error["input"]), choices)
    message = f"{subject} cannot be {_shown(error['input'])}" + (f", {hint}" if hint else "")
    return message, f"write {' or '.join(f'`{choice}`' for choice in choices)}"


def _missing(location: Location, kind: str) -> tuple[str, str]:
    name = _subject(location)
    empty = "is empty" if kind == "too_short" else "is missing"
    if name == "key":
        return f"the table's `key` {empty}", _KEY_REMEDY
    remedy = f"add `{name}:`; see the JSON Schema (`cdclake schema`)"
    if kind == "too_short":
        remedy = "add at least one entry; see the JSON Schema (`cdclake schema`)"
    return f"`{name}` {empty}", remedy


def _unknown_key(location: Location) -> tuple[str, str]:
    key = str(location[-1])
    if key in REMOVED_KEYS and _is_stream(location[:-1]):
        return REMOVED_KEYS[key]
    if key == "name" and location[0] == "environments" and len(location) == 3:
        return (
            "an environment cannot have another pipeline `name`",
            "remove it: the names of deployed resources contain the environment",
        )
    message = f"unknown key {key!r}"
    if any(word in key.lower() for word in _SECRET_WORDS):
        return message, NO_PASSWORDS
    if key in _SERVER_KEYS and _value_at(location[:-1]) is Source:
        return message, _SERVER_REMEDY
    known = _fields_at(location[:-1])
    hint = _another_place(key) or did_you_mean(key, known)
    return message, hint or f"use one of {', '.join(known)}"


def _another_place(key: str) -> str:
    """Return where the file may have this key, and how to move it there; empty if nowhere."""
    field = PipelineFile.model_fields.get(key)
    if field is not None and not field.is_required():  # a section
        return f"did you mean `{key}` at the top level? move it there"
    places = {f"{s}.{key}": f"under `{s}:`" for s in _SECTIONS if key in _fields_at((s,))}
    if key in TableEntry.model_fields:
        places[f"tables.NAME.{key}"] = "under a table of `tables:`"
    if not places:
        return ""
    where = " or ".join(f"`{place}`" for place in places)
    move = "there" if len(places) > 1 else next(iter(places.values()))
    return f"did you mean {where}? move it {move}"


def _example_at(location: Location) -> str:
    """Return the model's example for the value at this place, or for what is around it."""
    here: Any = PipelineFile
    examples: list[Any] = []
    for part in location:
        if _is_model(here):
            field = _fields(here)[str(part)]
            examples, here = field.examples or [], _of_optional(field.annotation)
    [example, *_] = examples
    return example if isinstance(example, str) else json.dumps(example)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _of_optional(annotation: Any) -> Any:
    return get_args(annotation)[0] if type(None) in get_args(annotation) else annotation


_SECTIONS = tuple(
    name
    for name, field in PipelineFile.model_fields.items()
    if _is_model(_of_optional(field.annotation))
)


def _fields_at(location: Location) -> list[str]:
    """Return the keys that a mapping at this place may have."""
    here = _value_at(location)
    return list(_fields(here)) if _is_model(here) else []


def _is_stream(location: Location) -> bool:
    model = _value_at(location)
    return _is_model(model) and issubclass(model, StreamSettings)


def _value_at(location: Location) -> Any:
    """Return the type of the value at this place."""
    here: Any = PipelineFile
    for part in location:
        if _is_model(here):
            here = _of_optional(_fields(here)[str(part)].annotation)
        else:
            here = get_args(here)[-1]  # the values of a mapping by name
    return here


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the model's fields by their keys in the file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}
