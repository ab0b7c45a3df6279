"""Writer schemas of Avro records, from the Glue Schema Registry or Apicurio."""

from __future__ import annotations

import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any, Protocol

import boto3
from botocore.exceptions import ClientError

from cdclake.errors import ServiceUnavailable
from cdclake.plan import GLUE_REGISTRY, Plan

_TIMEOUT_S = 10.0
_UNKNOWN = frozenset({"EntityNotFoundException", "InvalidInputException"})


class UnknownSchema(LookupError):
    """Identifier that the registry does not know."""


class SchemaRegistry(Protocol):
    """Source of writer schemas."""

    def schema_text(self, identifier: str) -> str:
        """Return a schema; raise UnknownSchema if there is none with this identifier."""


class GlueSchemas:
    """Schemas of the Glue Schema Registry, by the UUID of their version."""

    def __init__(self) -> None:
        self._glue: Any = boto3.client("glue")

    def schema_text(self, identifier: str) -> str:
        """Return a schema; raise UnknownSchema if there is none with this identifier."""
        try:
            return str(
                self._glue.get_schema_version(SchemaVersionId=identifier)["SchemaDefinition"]
            )
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in _UNKNOWN:
                raise UnknownSchema(identifier) from error
            raise


class ApicurioSchemas:
    """Schemas of an Apicurio registry, by their global number."""

    def __init__(self, url: str) -> None:
        self._url = f"{url.rstrip('/')}/apis/registry/v2/ids/globalIds"

    def schema_text(self, identifier: str) -> str:
        """Return a schema; raise UnknownSchema if there is none with this identifier.

        Raise ServiceUnavailable if the registry does not answer.
        """
        try:
            with urllib.request.urlopen(f"{self._url}/{identifier}", timeout=_TIMEOUT_S) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                raise UnknownSchema(identifier) from error
            raise ServiceUnavailable(f"the schema registry {self._url}: {error}") from error
        except OSError as error:
            raise ServiceUnavailable(f"the schema registry {self._url}: {error}") from error


def registry_of(plan: Plan) -> SchemaRegistry:
    """Return the registry of a plan with Avro."""
    return GlueSchemas() if plan.registry == GLUE_REGISTRY else ApicurioSchemas(plan.registry)
