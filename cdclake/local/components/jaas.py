"""Logins of the Java processes, in a file that only the lake's owner can read.

Java finds the file by a system property, so no password is in a command, and no worker or job needs
one in its settings.
"""

from __future__ import annotations

from pathlib import Path

from cdclake.local.process.credentials import Login, connect_login, kafka_login
from cdclake.local.process.home import Home, write_atomically

_REST = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def file(home: Home) -> Path:
    """Return the path of the file."""
    return home.run / "logins.jaas"


def option(home: Home) -> str:
    """Return Java's option that names the file."""
    return f"-Djava.security.auth.login.config={file(home).as_uri()}"


def write(home: Home) -> None:
    """Write the logins of the broker, of its clients, and where those of Connect's API are."""
    login = kafka_login(home)
    client = client_module(login)
    server = f'{client}\n  user_{login.user}="{login.password}"'
    rest_file = str(_rest_file(home)).replace("\\", "\\\\").replace('"', '\\"')
    sections = {
        "KafkaServer": server,
        "KafkaClient": client,
        "KafkaConnect": f'{_REST}\n  file="{rest_file}"',
    }
    text = "".join(f"{name} {{\n  {module};\n}};\n" for name, module in sections.items())
    write_atomically(file(home), text)


def client_module(login: Login) -> str:
    """Return the login module of a client of Kafka."""
    return f'{_PLAIN}\n  username="{login.user}"\n  password="{login.password}"'


def write_rest_login(home: Home) -> None:
    """Write the login of Connect's REST API; the worker reads it when it starts."""
    login = connect_login(home)
    write_atomically(_rest_file(home), f"{login.user}={login.password}\n")


def _rest_file(home: Home) -> Path:
    return home.run / "connect.logins"
