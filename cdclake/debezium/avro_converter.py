"""Settings of the connector that write the tables' events as Avro with a schema registry."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from cdclake.plan import GLUE_REGISTRY, Plan

CONVERTER = "cdclake.connect.TableConverter"  # java/
_GLUE = "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter"
_APICURIO = "io.apicurio.registry.utils.converter.AvroConverter"
_VALUE = "value.converter."


@dataclass(frozen=True, slots=True)
class GlueRegistry:
    """Address of the pipeline's registry; without an endpoint, that of its region."""

    name: str
    region: str
    endpoint: str = ""


def apicurio_port(registry: str) -> int | None:
    """Return the port of an Apicurio registry; None for Glue's, and without a registry."""
    if registry in ("", GLUE_REGISTRY):
        return None
    address = urlsplit(registry)
    return address.port or (443 if address.scheme == "https" else 80)


def plugin_profile(registry: str) -> str:
    """Return the profile of pom.xml with the registry's converter; empty without a registry."""
    if not registry:
        return ""
    return "with-glue" if registry == GLUE_REGISTRY else "with-apicurio"


def avro_settings(plan: Plan, glue: GlueRegistry | None) -> dict[str, str]:
    """Return the settings of a plan with Avro; `glue` is required with that registry.

    Keys stay JSON: the bytes of a key must not change with a schema's version, since Kafka
    partitions and compacts by them.
    """
    settings = {
        "value.converter": CONVERTER,
        f"{_VALUE}json.topics": ",".join(plan.own_topics.values()),
        **(_apicurio(plan) if glue is None else _glue(plan, glue)),
        # A registry that does not answer delays the events; the default fails the task at once.
        "errors.retry.timeout": "-1",
    }
    return settings


def _glue(plan: Plan, glue: GlueRegistry) -> dict[str, str]:
    settings = {
        "avro.converter": _GLUE,
        "avroRecordType": "GENERIC_RECORD",
        "dataFormat": "AVRO",
        "region": glue.region,
        "registry.name": glue.name,
        "schemaAutoRegistrationEnabled": "true",
        "compatibility": plan.compatibility,
        **({"endpoint": glue.endpoint} if glue.endpoint else {}),
    }
    return {f"{_VALUE}{name}": value for name, value in settings.items()}


def _apicurio(plan: Plan) -> dict[str, str]:
    settings = {
        "avro.converter": _APICURIO,
        "apicurio.registry.url": f"{plan.registry.rstrip('/')}/apis/registry/v2",
        "apicurio.registry.auto-register": "true",
        "apicurio.registry.find-latest": "false",
        # A header of five bytes: zero, and the schema's global number.
        "apicurio.registry.as-confluent": "true",
        "apicurio.registry.use-id": "globalId",
        # Another registry gives the same number to another schema.
        "schema.fingerprints": "true",
    }
    return {f"{_VALUE}{name}": value for name, value in settings.items()}
