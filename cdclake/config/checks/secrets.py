"""Check that a pipeline file, which is committed, diffed and copied, contains no password."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import sqlglot
from sqlglot.errors import TokenError

from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.validation_errors import NO_PASSWORDS
from cdclake.passwords import carries_password, is_password_key

PASSWORD_IN_KEY = "this key contains a password"
PASSWORD_IN_VALUE = "this value contains a password"
_SECRET_KEY = re.compile(r"secret", re.IGNORECASE)
_SECRET_REFERENCE = re.compile(r"(_?(arn|name|id))$|^secret$", re.IGNORECASE)
_SQL_DIALECTS = {"query": "postgres", "sql": "spark"}  # by the field with the SQL


def check_secrets(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse keys of the free-form `aws` for passwords, and any value that contains one."""
    del tables
    for location, value in _walk((), document.values):
        key = location[-1] if location else None
        if isinstance(key, str) and _is_free_form(location) and _is_secret(key):
            message = f"the key {key!r} looks like that of a password"
            yield document.key_problem(location, message, NO_PASSWORDS)
        if isinstance(key, str) and carries_password(key):
            yield document.key_problem(location, PASSWORD_IN_KEY, NO_PASSWORDS)
        if not isinstance(value, str) or _is_setting(location):
            continue
        if any(map(carries_password, _texts(key, value))):
            yield document.problem(location, PASSWORD_IN_VALUE, NO_PASSWORDS)


def _is_free_form(location: Location) -> bool:
    return _in_section(location)[:1] == ("aws",)


def _is_setting(location: Location) -> bool:
    """Check whether this is a connector's setting, which `check_connectors` checks."""
    location = _in_section(location)
    return (*location[:1], *location[2:3]) == ("connectors", "settings")


def _texts(key: Any, value: str) -> list[str]:
    """Return the texts that may be a DSN: of SQL its tokens, since it may compare a column."""
    if key not in _SQL_DIALECTS:
        return [value]
    try:
        return [token.text for token in sqlglot.tokenize(value, read=_SQL_DIALECTS[key])]
    except TokenError:
        return [value]


def _in_section(location: Location) -> Location:
    """Return the location without the environment whose overlay it is in."""
    return location[2:] if location[:1] == ("environments",) else location


def _is_secret(key: str) -> bool:
    if is_password_key(key):
        return True
    return bool(_SECRET_KEY.search(key)) and not _SECRET_REFERENCE.search(key)


def _walk(location: Location, value: Any) -> Iterator[tuple[Location, Any]]:
    yield location, value
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _walk((*location, key), below)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _walk((*location, index), below)
