"""Configuration of the connector on a worker on AWS: MSK Connect, or one's own."""

from __future__ import annotations

from cdclake import naming
from cdclake.debezium.avro_converter import GlueRegistry
from cdclake.debezium.connector import SourceAddress, connector_config, queue_bytes
from cdclake.debezium.worker import (
    OWN_PROVIDER,
    RDS_CERTIFICATES,
    password_of,
    salt_of,
    worker_settings,
)
from cdclake.plan import GLUE_REGISTRY, Plan


def deployed_config(
    plan: Plan,
    prefix: str,
    *,
    source: tuple[str, int],
    login: str,
    epoch: int,
    heap_bytes: int,
    region: str,
    authorities: str = "",
) -> dict[str, str]:
    """Return the connector's configuration, with passwords as references to Secrets Manager.

    `source` is its host and port, `prefix` the deployment's, `login` the name of the secret with
    the connector's password, `heap_bytes` the worker's heap. The server's certificate is checked
    against the file `authorities` on the worker; without one against those of RDS, which the
    plugin brings. `region` is that of the schema registry.
    """
    address = SourceAddress(
        host=source[0],
        port=source[1],
        database=plan.source_database,
        user=plan.source_object,
        password=password_of(login),
        sslmode="verify-full",
        sslrootcert=authorities,
        sslfactory="" if authorities else RDS_CERTIFICATES,
    )
    return connector_config(
        plan,
        address,
        epoch=epoch,
        mask_salt=salt_of(naming.salt_secret(prefix)),
        max_queue_bytes=queue_bytes(heap_bytes),
        registry=GlueRegistry(prefix, region) if plan.registry == GLUE_REGISTRY else None,
    )


def own_worker_settings(plan: Plan, region: str | None) -> dict[str, str]:
    """Return what the connector needs of a worker that cdclake does not run.

    Left out is what differs from worker to worker: brokers and their authentication, listeners,
    `group.id`, the folder of plugins, and the topics for configuration and status. Without a
    `region` the provider of secrets takes the one of the worker's environment.
    """
    return {
        **worker_settings(OWN_PROVIDER, **({} if region is None else {"region": region})),
        "offset.storage.topic": naming.offsets_topic(plan.name),
    }
