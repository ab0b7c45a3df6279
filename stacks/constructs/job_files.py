"""Files of the jobs, in the deployment's bucket, named by their content."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from aws_cdk import Aws, aws_s3_assets
from constructs import Construct

from cdclake import naming
from cdclake.stacks.constructs.custom_resource import CdclakeResource
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference

_HASH_LENGTH = 16


class JobFiles(Construct):
    """Files that a deployment copies into the bucket if their content is new.

    Older files stay: a run that started with them may read them until it ends, days later. They
    are small. The CDK's BucketDeployment would add a function with managed policies and `*`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: BucketReference,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        self._bucket, self._context = bucket, context
        self._assets: dict[str, aws_s3_assets.Asset] = {}
        self.hashes: dict[str, str] = {}

    def add(self, path: Path, stem: str | None = None, suffix: str | None = None) -> str:
        """Add a file and return its future URI; resources that use it must depend on `publish`.

        The name is `stem`, the content's hash and `suffix` (None: those of the file).
        """
        stem, suffix = stem or path.stem, suffix or path.suffix
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:_HASH_LENGTH]
        name = f"{stem}-{digest}{suffix}"
        self._assets[name] = aws_s3_assets.Asset(self, name, path=str(path))
        self.hashes[stem] = digest
        return f"s3://{self._bucket.name}/{naming.DEPLOYED_PREFIX}/{name}"

    def add_text(self, name: str, text: str) -> str:
        """Add a file with this content and return its future URI."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text)
            return self.add(path)

    def publish(self) -> CdclakeResource:
        """Add the resource that copies the files; resources that use a file must depend on it."""
        return CdclakeResource(
            self,
            "Copies",
            what="Files",
            properties={"Bucket": self._bucket.name, "Files": self._copies()},
            grants=[self._reads(), self._writes(), through_s3(self._context.key_arn)],
            context=self._context,
        )

    def _copies(self) -> list[dict[str, str]]:
        return [
            {
                "FromBucket": asset.s3_bucket_name,
                "FromKey": asset.s3_object_key,
                "ToKey": f"{naming.DEPLOYED_PREFIX}/{name}",
            }
            for name, asset in self._assets.items()
        ]

    def _reads(self) -> Grant:
        """Allow reading these objects in the bucket of `cdk deploy`'s uploads."""
        objects = [
            f"arn:{Aws.PARTITION}:s3:::{asset.s3_bucket_name}/{asset.s3_object_key}"
            for asset in self._assets.values()
        ]
        return Grant(actions=["s3:GetObject"], on=objects)

    def _writes(self) -> Grant:
        return Grant(
            actions=["s3:PutObject"],
            on=[f"{self._bucket.arn}/{naming.DEPLOYED_PREFIX}/*"],
            because="the files are named by their content, and nothing else is below this prefix",
        )
