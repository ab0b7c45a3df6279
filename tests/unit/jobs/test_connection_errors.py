"""Messages of connections that failed: the server's answer, and what to do about it."""

from __future__ import annotations

import psycopg
import pytest

from cdclake.jobs.runtime.connection_errors import unreachable

PREFIX = 'connection failed: connection to server at "10.0.0.5", port 5432 failed: '
NO_ENTRY = 'no pg_hba.conf entry for host "10.0.0.9", user "app", database "shop", '
LOCAL = 'connection failed: connection to server on socket "/tmp/.s.PGSQL.5432" failed: '
RUNNING = "\n\tIs the server running on that host and accepting TCP/IP connections?"
LOST = "server closed the connection unexpectedly"
PROBABLY = (
    "\n\tThis probably means the server terminated abnormally"
    "\n\tbefore or while processing the request."
)


@pytest.mark.parametrize(
    ("text", "reason", "remedy"),
    [
        (
            f"{PREFIX}FATAL:  {NO_ENTRY}SSL encryption\n{PREFIX}FATAL:  {NO_ENTRY}no encryption",
            f"{NO_ENTRY}SSL encryption",
            "admit this host, user and database in the server's pg_hba.conf",
        ),
        (
            f"{PREFIX}FATAL:  {NO_ENTRY}no encryption",
            f"{NO_ENTRY}no encryption",
            "add sslmode=require",
        ),
        (
            f"{PREFIX}FATAL:  unsupported startup parameter in options: cdclake.mask_salt",
            "unsupported startup parameter in options: cdclake.mask_salt",
            "not a connection pooler",
        ),
        (
            f"{PREFIX}FATAL:  remaining connection slots are reserved for roles with the SUPERUSER"
            " attribute",
            "remaining connection slots are reserved for roles with the SUPERUSER attribute",
            "max_connections",
        ),
        (
            f'{PREFIX}FATAL:  too many connections for role "app"',
            'too many connections for role "app"',
            "connection limit of the role",
        ),
        (
            f"{PREFIX}FATAL:  sorry, too many clients already",
            "sorry, too many clients already",
            "pg_stat_activity",
        ),
        (
            f'{PREFIX}FATAL:  permission denied for database "shop"'
            "\nDETAIL:  User does not have CONNECT privilege.",
            'permission denied for database "shop"',
            "GRANT CONNECT ON DATABASE",
        ),
        (
            f'{PREFIX}FATAL:  password authentication failed for user "app"',
            'password authentication failed for user "app"',
            "check user and password",
        ),
        (
            f'{PREFIX}FATAL:  role "app" does not exist',
            'role "app" does not exist',
            "check user and password",
        ),
        (
            f"{PREFIX}fe_sendauth: no password supplied",
            "fe_sendauth: no password supplied",
            "check user and password",
        ),
        (
            f'{PREFIX}FATAL:  database "shop" does not exist',
            'database "shop" does not exist',
            "check the database's name",
        ),
        (
            f"{PREFIX}server does not support SSL, but SSL was required",
            "server does not support SSL, but SSL was required",
            "enable TLS in the server",
        ),
        (
            f"{PREFIX}SSL error: certificate verify failed",
            "SSL error: certificate verify failed",
            "check sslmode and sslrootcert",
        ),
        (f"{LOST}{PROBABLY}", LOST, "check that the server is running"),
        (
            "SSL connection has been closed unexpectedly",
            "SSL connection has been closed unexpectedly",
            "check that the server is running",
        ),
        (f"{PREFIX}Connection refused{RUNNING}", "Connection refused", "firewall"),
        (f"{LOCAL}No such file or directory", "No such file or directory", "is running"),
        (
            f"{PREFIX}Connection refused{RUNNING}"
            "\nMultiple connection attempts failed. All failures were:"
            "\n- host: 'h', port: '5432', hostaddr: '::1': connection failed: connection to server"
            f' at "::1", port 5432 failed: FATAL:  {NO_ENTRY}SSL encryption'
            f"\n- host: 'h', port: '5432', hostaddr: '10.0.0.5': {PREFIX}Connection refused",
            f"{NO_ENTRY}SSL encryption",
            "pg_hba.conf",
        ),
        ("", "OperationalError", "firewall"),
    ],
)
def test_a_failed_connection_names_its_remedy(text: str, reason: str, remedy: str) -> None:
    error = unreachable("host=h port=5432 user=app", psycopg.OperationalError(text))
    assert error.message == f"no connection to the source at h:5432: {reason}"
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("password", "expected"),
    [("p", "accepting of ***"), ("hunter22", "accepting of p, pass ***@h")],
)
def test_a_password_is_hidden_where_it_is_a_whole_word(password: str, expected: str) -> None:
    failure = Exception(f"accepting of p, pass {password}@h")
    reason = str(unreachable(f"host=h user=u password={password}", failure).message)
    assert reason.partition(": ")[2].startswith(expected)
    assert f"pass {password}@" not in reason
