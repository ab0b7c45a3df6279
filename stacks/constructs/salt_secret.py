"""The salt of `mask: hash`, which AWS makes up: another one would make other hashes."""

from __future__ import annotations

from aws_cdk import aws_secretsmanager
from constructs import Construct

from cdclake.debezium.worker import SALT_KEY
from stacks.constructs.accepted import accept
from stacks.constructs.ground import Ground

_LENGTH = 40


class SaltSecret(Construct):
    """A secret with `salt`; kept like what holds data, for without it no value hashes as before."""

    def __init__(self, scope: Construct, construct_id: str, *, name: str, ground: Ground) -> None:
        super().__init__(scope, construct_id)
        salt = aws_secretsmanager.CfnSecret.GenerateSecretStringProperty(
            secret_string_template="{}",
            generate_string_key=SALT_KEY,
            password_length=_LENGTH,
            exclude_punctuation=True,
        )
        secret = aws_secretsmanager.CfnSecret(
            self,
            "Secret",
            name=name,
            description="Salt of the columns that leave the source as hashes",
            generate_secret_string=salt,
            kms_key_id=ground.key_arn,
        )
        secret.apply_removal_policy(ground.kept)
        accept(secret, "SMG4", "after a rotation equal values would no longer have equal hashes")
        self.name, self.arn = name, secret.ref
