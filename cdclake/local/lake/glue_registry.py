"""The schema registry of a local lake with Avro."""

from __future__ import annotations

import boto3
from botocore.exceptions import ClientError

from cdclake.debezium.avro_converter import GlueRegistry
from cdclake.local.components.installed import REGION
from cdclake.local.lake.stack import Endpoints
from cdclake.plan import GLUE_REGISTRY, Plan


def prepare_registry(plan: Plan, endpoints: Endpoints) -> GlueRegistry | None:
    """Create the pipeline's Glue registry if it is missing; return None for any other plan.

    The converter creates schemas, but no registry. Idempotent.
    """
    if plan.registry != GLUE_REGISTRY:
        return None
    glue = boto3.client(
        "glue",
        endpoint_url=endpoints.glue,
        region_name=REGION,
        aws_access_key_id=endpoints.keys.user,
        aws_secret_access_key=endpoints.keys.password,
    )
    try:
        glue.create_registry(RegistryName=plan.name)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "AlreadyExistsException":
            raise
    return GlueRegistry(plan.name, REGION, endpoints.glue)
