"""Parameters of a source's DSN; one that libpq cannot read, or misreads, is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake.errors import InputError

# Scheme and login of a URI: libpq ends the login at the first of these characters.
_LOGIN = re.compile(r"postgres(?:ql)?://(?:(?P<login>[^@/]*)@)?")
# A login with one of these has the host and the options, and ends within an option.
_OPTIONS = re.compile(r"[^:]*\?|.*\?(?:.*&)?(?:user|\w*password)=")


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


@contextmanager
def with_authorities(dsn: str, authorities: str) -> Iterator[str]:
    """Yield the DSN with these certificate authorities (PEM) in a file; "" leaves it as it is.

    The DSN is valid inside the block, on the machine of the process or Spark task that runs it.
    """
    if not authorities:
        yield dsn
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "authorities.pem"
        file.write_text(authorities)
        yield make_conninfo(dsn, sslrootcert=str(file))


def invalid_dsn() -> InputError:
    """Return the error for a DSN that is not valid."""
    return InputError(
        "invalid DSN of the source",
        "write it like postgresql://user:password@host:5432/database, with special characters of"
        " user, password and database percent-encoded, as %2F for / and %40 for @",
    )


def _has_unescaped_login(dsn: str) -> bool:
    """Return True for a URI with another `@` than the one that libpq takes for the login's end.

    It is between the login and the options, or within the options of a URI without a login.
    """
    found = _LOGIN.match(dsn)
    if found is None:
        return False
    is_within_options = _OPTIONS.match(found["login"] or "") is not None
    return is_within_options or "@" in dsn[found.end() :].partition("?")[0]


def _is_port(parts: dict[str, Any]) -> bool:
    """Check the ports: several only with several hosts, which have their own message."""
    host = str(parts.get("host") or parts.get("hostaddr") or "")
    port = str(parts.get("port") or "")
    ports = port.split(",") if "," in host else [port]
    return all(each.strip().isdecimal() for each in ports if each)
