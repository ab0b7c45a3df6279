"""A login whose password AWS makes up: it is in no file, no template and no log."""

from __future__ import annotations

import json

from aws_cdk import RemovalPolicy, aws_secretsmanager
from constructs import Construct

from stacks.constructs.accepted import accept

_LENGTH = 40


class LoginSecret(Construct):
    """A secret with `username` and `password`, under a name without the colons of an ARN.

    Kafka parts the references of its configuration at colons, so the connector names it by name.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, username: str, key_arn: str
    ) -> None:
        super().__init__(scope, construct_id)
        password = aws_secretsmanager.CfnSecret.GenerateSecretStringProperty(
            secret_string_template=json.dumps({"username": username}),
            generate_string_key="password",
            password_length=_LENGTH,
            exclude_punctuation=True,
        )
        secret = aws_secretsmanager.CfnSecret(
            self,
            "Secret",
            name=name,
            description=f"Login of {username}",
            generate_secret_string=password,
            kms_key_id=key_arn,
        )
        secret.apply_removal_policy(RemovalPolicy.DESTROY)  # the login goes with its pipeline
        accept(
            secret,
            "SMG4",
            "the connector reads it when it starts: a rotation would stop the stream until then;"
            " the role may read the declared tables and nothing else",
        )
        self.name, self.arn = name, secret.ref
