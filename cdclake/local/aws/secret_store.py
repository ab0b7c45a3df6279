"""moto's Secrets Manager, stored in SQLite in the lake's folder, which only its owner can read.

Unlike AWS: only names and current values survive a restart (no versions, rotation, tags).
"""

from __future__ import annotations

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.secretsmanager.models import SecretsManagerBackend, secretsmanager_backends

from cdclake.local.aws.index import Index


class SecretStore:
    """Storage of secrets; a region's secrets are written after each change of one."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def install(self) -> None:
        """Load the stored secrets."""
        kept = self.index.connection.execute("select region, name, value from secret")
        for region, name, value in kept:
            _backend(region).create_secret(
                name=name,
                secret_string=value,
                secret_binary=None,
                description=None,
                tags=None,
                kms_key_id=None,
                client_request_token=None,
                replica_regions=[],
                force_overwrite=False,
            )

    def commit(self, region: str, action: str) -> None:
        """Store the region's secrets, unless the action only reads."""
        if action.startswith(("Get", "List", "Describe")):
            return
        backend = _backend(region)
        current = [
            (region, secret.name, backend.get_secret_value(secret.name, "", "")["SecretString"])
            for secret in backend.secrets.values()
            if not secret.is_deleted()
        ]
        with self.index.transaction() as db:
            db.execute("delete from secret where region = ?", (region,))
            db.executemany("insert into secret values (?, ?, ?)", current)


def _backend(region: str) -> SecretsManagerBackend:
    return secretsmanager_backends[DEFAULT_ACCOUNT_ID][region]
