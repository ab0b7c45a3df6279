"""Errors of connections to the source, each with the remedy for what the server answered."""

from __future__ import annotations

import os
import re

from cdclake.errors import InputError
from cdclake.jobs.runtime.dsn import dsn_parts

_REACH = "check that the server is running and reachable, and that no firewall blocks it"
# The first that is found in the server's answer, in lower case, decides: several name a role, a
# database or SSL, which other answers are about.
_REMEDIES = (
    (
        r"startup parameter|command-line options",  # of PgBouncer and of RDS Proxy
        "name the server in the DSN, not a connection pooler: the salt of masks is a connection"
        " option",
    ),
    (
        r"pg_hba\.conf.*no encryption",
        "add sslmode=require to the DSN, or admit this host, user and database without encryption"
        " in the server's pg_hba.conf",
    ),
    (r"pg_hba\.conf", "admit this host, user and database in the server's pg_hba.conf"),
    (
        r"connection slots|too many (?:clients|connections)",
        "end sessions that are not needed (see pg_stat_activity), or raise max_connections, or the"
        " connection limit of the role or database",
    ),
    (
        r"permission denied for database",
        "run `GRANT CONNECT ON DATABASE ... TO ...` for the user, as the database's owner",
    ),
    (
        r'authentication|no password|role "',
        "check user and password in the DSN, and the server's pg_hba.conf",
    ),
    (r"database .*does not exist", "check the database's name in the DSN"),
    (
        r"does not support ssl",
        "enable TLS in the server; or add `?sslmode=disable` to the DSN, which sends everything"
        " unencrypted",
    ),
    (r"closed (?:the connection )?unexpectedly|ssl syscall error", _REACH),
    (r"ssl|certificate", "check sslmode and sslrootcert in the DSN"),
)
# Words of psycopg and libpq before their reason; host and port are in our message.
_PREFIX = re.compile(r"^(?:connection failed: )?(?:connection to server .*? failed: )?")


def unreachable(dsn: str, error: Exception) -> InputError:
    """Return the error of a connection that failed or broke, without the password."""
    parts = dsn_parts(dsn)
    host = parts.get("host") or os.environ.get("PGHOST") or "the local socket"
    port = parts.get("port") or os.environ.get("PGPORT") or "5432"
    reason = _reason(error)
    password = parts.get("password")
    if password:  # within a word it is not the password: one of a letter is in most messages
        whole = rf"(?<!\w){re.escape(str(password))}(?!\w)"
        reason = re.sub(whole, "***", reason)
    answer = reason.lower()
    remedy = next((found for text, found in _REMEDIES if re.search(text, answer)), _REACH)
    return InputError(f"no connection to the source at {host}:{port}: {reason}", remedy)


def _reason(error: Exception) -> str:
    """Return the server's answer, or else the first line: details and hints follow them."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    for line in lines:
        _, fatal, answer = line.partition("FATAL:")
        if fatal:
            return answer.strip()
    return _PREFIX.sub("", lines[0])
