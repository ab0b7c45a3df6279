"""DSN of the source, with one address and one encryption for psycopg and the JDBC driver."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from psycopg.conninfo import make_conninfo

from cdclake.debezium.connector import SYSTEM_FACTORY
from cdclake.errors import InputError
from cdclake.jobs.runtime.dsn import dsn_parts

KEY_PASSWORD = "sslpassword"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_SYSTEM = "system"  # libpq's name of the operating system's authorities
# Variables that libpq reads and the driver does not.
_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
# Parameters whose values are paths, which libpq takes relative to the current folder.
_FILES = {
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslcrl": "PGSSLCRL",
    "sslcrldir": "PGSSLCRLDIR",
    "passfile": "PGPASSFILE",
}


def secured(dsn: str) -> str:
    """Return the DSN with the address and the encryption of all connections to the source.

    They are those of the DSN or of the environment; without a mode of encryption it is `require`
    except on this machine. Paths become absolute, since processes in other folders use them too. An
    invalid DSN is returned unchanged: connecting reports it.
    """
    try:
        parts = dsn_parts(dsn)
    except InputError:
        return dsn
    mode = parts.get("sslmode") or os.environ.get("PGSSLMODE")
    found = {
        name: os.environ[variable]
        for name, variable in _VARIABLES.items()
        if not parts.get(name) and os.environ.get(variable)
    }
    # libpq prefers this variable even to a host in the DSN; an empty value hides it.
    if (address := os.environ.get("PGHOSTADDR")) and not parts.get("hostaddr"):
        found["hostaddr"] = "" if parts.get("host") else address
    if mode or not _is_local(parts | found):
        found["sslmode"] = str(mode or "require")
    for name, variable in _FILES.items():
        if path := str(parts.get(name, os.environ.get(variable)) or ""):
            found[name] = path if _is_no_path(name, path) else str(_absolute(path))
    return make_conninfo(dsn, **found) if found else dsn


def _is_no_path(name: str, value: str) -> bool:
    """Check for the system's authorities, and for a key of an engine of OpenSSL."""
    return (name, value) == ("sslrootcert", _SYSTEM) or (name == "sslkey" and ":" in value)


def _absolute(path: str) -> Path:
    return Path(path).expanduser().absolute()  # a link may later lead to a renewed certificate


def refuse_options(dsn: str) -> None:
    """Raise InputError for an invalid DSN, a key file's password, several hosts or a service.

    Processes get the password of the login by their environment or a secret. libpq reads that of
    the key file only from the DSN, which is an argument. The connector's driver has one host, and
    reads no service file.
    """
    parts = dsn_parts(dsn)
    if parts.get(KEY_PASSWORD):
        raise InputError(
            f"the source's DSN has `{KEY_PASSWORD}`, which the arguments of processes would show"
            " to other users of this machine",
            "write the key without a password into a file with mode 600 (`openssl pkey -in KEY"
            " -out FILE`), and run `cdclake up --source DSN` with it as `sslkey`",
        )
    if parts.get("service") or os.environ.get("PGSERVICE"):
        raise InputError(
            "the source is given by a libpq service, which the connector cannot read",
            "write host, port, user and dbname into the DSN, and unset PGSERVICE",
        )
    hosts = str(dsn_parts(secured(dsn)).get("host") or parts.get("hostaddr") or "")
    if "," in hosts:
        raise InputError(
            f"the source's DSN has several hosts ({hosts})",
            "name the primary, or an address that follows it",
        )


def driver_tls(dsn: str) -> dict[str, str]:
    """Return `sslmode`, `sslrootcert` and `sslfactory` of a secured DSN for the JDBC driver.

    With authorities, libpq checks the certificate in the mode `require` too; the driver does so
    only in the mode `verify-ca`.
    """
    parts = dsn_parts(dsn)
    mode, authorities = str(parts.get("sslmode") or "prefer"), parts.get("sslrootcert")
    if authorities == _SYSTEM:
        return {"sslmode": mode, "sslfactory": SYSTEM_FACTORY}
    if not authorities:
        return {"sslmode": mode}
    return {
        "sslmode": "verify-ca" if mode == "require" else mode,
        "sslrootcert": str(authorities),
    }


def _is_local(parts: dict[str, Any]) -> bool:
    host = str(parts.get("hostaddr") or parts.get("host") or os.environ.get("PGHOST") or "")
    return not host or host.startswith(("/", "@", "127.")) or host in _LOCAL
