"""Access of a bulk load to the source, by the connector's role."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdclake.debezium.connector import SYSTEM_FACTORY, SourceAddress
from cdclake.errors import ComponentFailed
from cdclake.jobs.runtime.secrets import resolve_secret
from cdclake.postgres.mask_values import salt_option

_APPLICATION = "cdclake load"
_NEVER = "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0 -c idle_session_timeout=0"


class LoadSource:
    """Access to the database; neither URL nor messages contain the password.

    The driver creates and checks the slot through JDBC, which speaks the replication protocol;
    rows are read through libpq.
    """

    def __init__(
        self, spark: SparkSession, address: str, mask_salt: str, authorities: str = ""
    ) -> None:
        """Resolve the references to secrets in `address` (`SourceAddress` as JSON) and the salt.

        `mask_salt` is empty if no column has `mask: hash`. `authorities` are the certificates
        that `sslfactory` trusts, for libpq, which has no such classes.
        """
        given = SourceAddress(**json.loads(address))
        self.spark = spark
        host = f"[{given.host}]" if ":" in given.host else given.host
        self.url = f"jdbc:postgresql://{host}:{given.port}/{quote(given.database, safe='')}"
        salt = salt_option(resolve_secret(mask_salt)) if mask_salt else ""
        password, options = resolve_secret(given.password), f"{_NEVER} {salt}".rstrip()
        trust = {"sslrootcert": given.sslrootcert, "sslfactory": given.sslfactory}
        self.properties = {
            "user": given.user,
            "password": password,
            "sslmode": given.sslmode,
            **{name: value for name, value in trust.items() if value},
            "ApplicationName": _APPLICATION,
            "tcpKeepAlive": "true",
            "options": options,
        }
        self.words = {
            "host": given.host,
            "port": str(given.port),
            "dbname": given.database,
            "user": given.user,
            "password": password,
            "sslmode": given.sslmode,
            **({"sslrootcert": "system"} if given.sslfactory == SYSTEM_FACTORY else {}),
            "application_name": _APPLICATION,
            "client_encoding": "UTF8",
            "options": options,
        }
        self.authorities = authorities
        if given.sslrootcert:
            self.authorities = Path(given.sslrootcert).read_text()

    def connect(self, **more: str) -> Any:
        """Open a JDBC connection from the Spark driver."""
        jvm: Any = self.spark.sparkContext._jvm
        properties = jvm.java.util.Properties()
        for name, value in {**self.properties, **more}.items():
            properties.setProperty(name, value)
        return jvm.org.postgresql.Driver().connect(self.url, properties)


def connected(source: LoadSource, **more: str) -> Any:
    """Open a connection; raise ComponentFailed with the database's reason if that fails."""
    try:
        return source.connect(**more)
    except Py4JJavaError as error:
        raise refusal(error) from None


def execute(connection: Any, statement: str) -> None:
    """Execute a statement; raise ComponentFailed if the database refuses it."""
    try:
        connection.createStatement().execute(statement)
    except Py4JJavaError as error:
        raise refusal(error) from None


def first_value(connection: Any, query: str) -> int:
    """Return the whole number that a SELECT returns; raise ComponentFailed if it is refused."""
    try:
        answer = connection.createStatement().executeQuery(query)
        answer.next()
        return int(answer.getLong(1))
    except Py4JJavaError as error:
        raise refusal(error) from None


def refusal(error: Py4JJavaError) -> ComponentFailed:
    """Return the error to raise when the database has refused a statement."""
    reason = str(error.java_exception.getMessage()).splitlines()[0]
    return ComponentFailed(
        f"the source refused the bulk load: {reason}",
        "fix the cause, then start the load again (locally `cdclake up`)",
        component="postgres",
    )
