"""Secrets with a value that AWS generates: it is in no file, template or log."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aws_cdk import RemovalPolicy, aws_secretsmanager
from constructs import Construct

from cdclake.debezium.worker import PASSWORD_KEY, SALT_KEY, USER_KEY
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.nag_suppressions import suppress

_LENGTH = 40


class GeneratedSecret(Construct):
    """Secret with one generated value.

    The connector refers to it by name: Kafka splits references in its configuration at colons,
    and an ARN contains colons.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        description: str,
        known: Mapping[str, str],
        generated_key: str,
        key_arn: str,
        removal: RemovalPolicy,
        never_rotated: str,
    ) -> None:
        super().__init__(scope, construct_id)
        value = aws_secretsmanager.CfnSecret.GenerateSecretStringProperty(
            secret_string_template=json.dumps(known),
            generate_string_key=generated_key,
            password_length=_LENGTH,
            exclude_punctuation=True,
        )
        secret = aws_secretsmanager.CfnSecret(
            self,
            "Secret",
            name=name,
            description=description,
            generate_secret_string=value,
            kms_key_id=key_arn,
        )
        secret.apply_removal_policy(removal)
        suppress(secret, "SMG4", never_rotated)
        self.name, self.arn = name, secret.ref


class LoginSecret(GeneratedSecret):
    """`username` and `password` of the connector's role; deleted with the stack."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, username: str, key_arn: str
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            name=name,
            description=f"Database credentials of the role {username}",
            known={USER_KEY: username},
            generated_key=PASSWORD_KEY,
            key_arn=key_arn,
            removal=RemovalPolicy.DESTROY,
            never_rotated=(
                "the connector reads it only when it starts: a rotation would stop it until then;"
                " the role can read only the declared tables"
            ),
        )


class SaltSecret(GeneratedSecret):
    """The `salt` of masks and of erased keys; retained like data, since hashes depend on it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, context: DeploymentContext
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            name=name,
            description="Salt of masks, and of the hashes of erased keys",
            known={},
            generated_key=SALT_KEY,
            key_arn=context.key_arn,
            removal=context.kept,
            never_rotated="after a rotation, equal values would no longer have equal hashes",
        )
