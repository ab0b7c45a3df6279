"""Parameters of a source's DSN; one that libpq cannot read, or misreads, is refused."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from cdclake.errors import InputError

# Scheme and login of a URI: libpq ends the login at the first of these characters.
_LOGIN = re.compile(r"postgres(?:ql)?://(?:[^@/]*@)?")


def dsn_parts(dsn: str) -> dict[str, Any]:
    """Return the parameters of a DSN as libpq reads them.

    Raises:
        InputError: if the DSN is invalid, or if libpq would read a part of its password as host,
            port or database; the message has no part of the DSN
    """
    try:
        parts = conninfo_to_dict(dsn)
    except (psycopg.ProgrammingError, UnicodeError):  # their messages have parts of the DSN
        raise invalid_dsn() from None
    if _has_unescaped_login(dsn) or not _is_port(parts):
        raise invalid_dsn()
    return parts


def invalid_dsn() -> InputError:
    """Return the error for a DSN that is not valid."""
    return InputError(
        "invalid DSN of the source",
        "write it like postgresql://user:password@host:5432/database, with special characters of"
        " user, password and database percent-encoded, as %2F for / and %40 for @",
    )


def _has_unescaped_login(dsn: str) -> bool:
    """Return True for a URI with `@` after what libpq takes for the login, before the options."""
    login = _LOGIN.match(dsn)
    return login is not None and "@" in dsn[login.end() :].partition("?")[0]


def _is_port(parts: dict[str, Any]) -> bool:
    """Check the ports: several only with several hosts, which have their own message."""
    host, port = str(parts.get("host") or ""), str(parts.get("port") or "")
    ports = port.split(",") if "," in host else [port]
    return all(each.strip().isdecimal() for each in ports if each)
