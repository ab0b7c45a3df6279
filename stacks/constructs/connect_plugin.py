"""Plugin and worker configuration of MSK Connect, both immutable.

CloudFormation creates the replacement before it deletes the old one, so two must be able to exist
at once: their names contain a hash of the content.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import Fn, aws_kafkaconnect, aws_s3_assets
from constructs import Construct

from cdclake.debezium.worker import properties
from cdclake.stacks.constructs.content_hash import content_hash

_Plugin = aws_kafkaconnect.CfnCustomPlugin


class ConnectPlugin(Construct):
    """Plugin from a zip of jars; `digest` is the digest of the zip."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        prefix: str,
        file: Path,
        digest: str,
        description: str = "Debezium for PostgreSQL, and what resolves its secrets",
    ) -> None:
        super().__init__(scope, construct_id)
        asset = aws_s3_assets.Asset(self, "Zip", path=str(file))
        self.name = f"{prefix}-{digest}"
        plugin = _Plugin(
            self,
            "Plugin",
            name=self.name,
            description=description,
            content_type="ZIP",
            location=_Plugin.CustomPluginLocationProperty(
                s3_location=_Plugin.S3LocationProperty(
                    bucket_arn=asset.bucket.bucket_arn, file_key=asset.s3_object_key
                )
            ),
        )
        self.arn, self.revision = plugin.attr_custom_plugin_arn, plugin.attr_revision


class WorkerConfiguration(Construct):
    """Settings of a worker."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        prefix: str,
        settings: Mapping[str, str],
        description: str = "As locally, but for endpoints",
    ) -> None:
        super().__init__(scope, construct_id)
        text = properties(settings)
        self.name = f"{prefix}-{content_hash(self, text)}"
        configuration = aws_kafkaconnect.CfnWorkerConfiguration(
            self,
            "Configuration",
            name=self.name,
            description=description,
            properties_file_content=Fn.base64(text),
        )
        self.arn = configuration.attr_worker_configuration_arn
        self.revision = configuration.attr_revision
