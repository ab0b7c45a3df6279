"""Settings of a Kafka Connect worker, the same locally and on MSK Connect."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cdclake.debezium.record_limit import MAX_RECORD_BYTES

# Parts of the references to secrets in connector configurations.
PROVIDER = "secretsmanager"
PASSWORD_KEY, USER_KEY, SALT_KEY = "password", "username", "salt"

OWN_PROVIDER = "cdclake.connect.SecretsManagerProvider"
AWS_PROVIDER = "com.amazonaws.kafka.config.providers.SecretsManagerConfigProvider"

# The driver's trusted authorities on AWS, where no file can define them.
RDS_CERTIFICATES = "cdclake.connect.RdsCertificates"

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_CONVERTERS = {
    "key.converter": _JSON,
    "value.converter": _JSON,
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
}


def worker_settings(provider: str, **parameters: str) -> dict[str, str]:
    """Return the settings; `provider` is the class that resolves references.

    `parameters` are those of the provider. The producer's settings are here because a connector may
    only override them if the worker's policy allows it, and MSK Connect neither documents its
    policy nor allows setting it.
    """
    return {
        **_CONVERTERS,
        # The slot's confirmed position follows the flushed offsets, and shows what Kafka has.
        "offset.flush.interval.ms": "1000",
        "producer.linger.ms": "20",
        "producer.batch.size": "524288",
        "producer.compression.type": "lz4",
        "producer.max.request.size": str(MAX_RECORD_BYTES),
        # Connect's default is off: a block of snapshot rows whose acknowledgement is lost is sent
        # again, and a batch that begins with the copies cannot recognize them.
        "producer.enable.idempotence": "true",
        **_provider_settings(provider, parameters),
    }


def sink_worker_settings(provider: str | None, **parameters: str) -> dict[str, str]:
    """Return the settings of a worker for a sink on AWS; without `provider` it reads no secret."""
    return {
        **_CONVERTERS,
        **(_provider_settings(provider, parameters) if provider is not None else {}),
    }


def _provider_settings(provider: str, parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        "config.providers": PROVIDER,
        f"config.providers.{PROVIDER}.class": provider,
        **{
            f"config.providers.{PROVIDER}.param.{name}": value
            for name, value in sorted(parameters.items())
        },
    }


def properties(settings: Mapping[str, object]) -> str:
    """Return a Java properties file, with backslashes and non-ASCII characters escaped."""
    return "".join(f"{key}={_escaped(str(value))}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    """Escape as JSON does: Java reads the file as Latin-1."""
    return "".join(json.dumps(c)[1:-1] if c == "\\" or not c.isascii() else c for c in value)


def password_of(secret: str) -> str:
    """Return the reference to the password in the secret `secret`, a name without a colon."""
    return f"${{{PROVIDER}:{secret}:{PASSWORD_KEY}}}"


def salt_of(secret: str) -> str:
    """Return the reference to the salt of masks in the secret `secret`."""
    return f"${{{PROVIDER}:{secret}:{SALT_KEY}}}"
