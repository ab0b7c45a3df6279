"""What a worker of Kafka Connect is told: the same locally and on MSK Connect."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.debezium.connector import MAX_RECORD_BYTES

# The names by which connector configurations refer to secrets.
PROVIDER = "secretsmanager"
PASSWORD_KEY, USER_KEY, SALT_KEY = "password", "username", "salt"

OWN_PROVIDER = "cdclake.connect.SecretsManagerProvider"
AWS_PROVIDER = "com.amazonaws.kafka.config.providers.SecretsManagerConfigProvider"

# Whom the driver trusts on AWS, where no file could say so.
RDS_CERTIFICATES = "cdclake.connect.RdsCertificates"

_JSON = "org.apache.kafka.connect.json.JsonConverter"


def worker_settings(provider: str, **parameters: str) -> dict[str, str]:
    """The settings; `provider` is the class that resolves references, with its parameters.

    The producer's settings are here because a connector may only override them where the worker's
    policy lets it, and MSK Connect neither documents its policy nor lets it be set.
    """
    return {
        "key.converter": _JSON,
        "value.converter": _JSON,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        # The slot's confirmed position follows the flushed offsets, and tells us what Kafka has.
        "offset.flush.interval.ms": "1000",
        "producer.linger.ms": "20",
        "producer.batch.size": "524288",
        "producer.compression.type": "lz4",
        "producer.max.request.size": str(MAX_RECORD_BYTES),
        "config.providers": PROVIDER,
        f"config.providers.{PROVIDER}.class": provider,
        **{
            f"config.providers.{PROVIDER}.param.{name}": value
            for name, value in sorted(parameters.items())
        },
    }


def properties(settings: Mapping[str, object]) -> str:
    """A Java properties file; the values are ours and need no escapes but for backslashes."""
    return "".join(f"{key}={str(v).replace(chr(92), chr(92) * 2)}\n" for key, v in settings.items())


def password_of(secret: str) -> str:
    """The reference to the password in the secret of this name, which holds no colon."""
    return f"${{{PROVIDER}:{secret}:{PASSWORD_KEY}}}"


def salt_of(secret: str) -> str:
    """The same to the salt of `mask: hash`."""
    return f"${{{PROVIDER}:{secret}:{SALT_KEY}}}"
