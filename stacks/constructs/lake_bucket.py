"""Buckets: encrypted, private, TLS only, with expiration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Aws, Stack, aws_iam, aws_s3
from constructs import Construct

from cdclake.config.storage_model import Tiers
from cdclake.stacks.constructs.deployment_context import DeploymentContext

_Bucket = aws_s3.CfnBucket
_PRIVATE = _Bucket.PublicAccessBlockConfigurationProperty(
    block_public_acls=True,
    block_public_policy=True,
    ignore_public_acls=True,
    restrict_public_buckets=True,
)
# Incomplete uploads cost money and appear in no listing.
_ABORT_UPLOADS_AFTER_DAYS = 1
# S3 bills each move, and most classes bill a small object as one of 128 KB.
_NO_SMALL_OBJECTS = "all_storage_classes_128K"
INTELLIGENT_TIERING = [
    _Bucket.TransitionProperty(storage_class="INTELLIGENT_TIERING", transition_in_days=0)
]


class AccessLog(Construct):
    """Bucket of the S3 access logs of the other buckets."""

    def __init__(
        self, scope: Construct, construct_id: str, *, tiers: Tiers, context: DeploymentContext
    ) -> None:
        super().__init__(scope, construct_id)
        bucket = _Bucket(
            self,
            "Bucket",
            # S3 cannot deliver access logs to a bucket with default encryption by KMS (S3 user
            # guide, "Enabling server access logging").
            bucket_encryption=_encrypted_by("AES256"),
            public_access_block_configuration=_PRIVATE,
            ownership_controls=_owned_by_account(),
            lifecycle_configuration=_expiring(days=context.log_days, moved=_moved_by_age(tiers)),
        )
        bucket.apply_removal_policy(context.kept)
        self.name = bucket.ref
        source = {"ArnLike": {"aws:SourceArn": f"arn:{Aws.PARTITION}:s3:::*"}}
        delivery = aws_iam.PolicyStatement(
            sid="DeliveryOfThisAccount",
            principals=[aws_iam.ServicePrincipal("logging.s3.amazonaws.com")],
            actions=["s3:PutObject"],
            resources=[f"{bucket.attr_arn}/*"],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}, **source},
        )
        _add_policy(self, bucket, delivery)


class LakeBucket(Construct):
    """Bucket whose deleted objects can be restored for `restorable_days`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        access_log: str,
        restorable_days: int,
        days: int | None = None,
        folders: Sequence[aws_s3.CfnBucket.RuleProperty] = (),
        moved: Sequence[aws_s3.CfnBucket.TransitionProperty] = (),
        context: DeploymentContext,
    ) -> None:
        """Add the bucket.

        Args:
            scope: the stack.
            construct_id: id within the stack, and the prefix of the access log.
            access_log: name of the bucket of access logs.
            restorable_days: how long deleted objects can be restored.
            days: age of objects when they expire; None: never.
            folders: rules of single folders.
            moved: classes that all objects move to.
            context: shared by all parts of the deployment.
        """
        super().__init__(scope, construct_id)
        bucket = _Bucket(
            self,
            "Bucket",
            bucket_encryption=_encrypted_by("aws:kms", context.key_arn),
            public_access_block_configuration=_PRIVATE,
            ownership_controls=_owned_by_account(),
            versioning_configuration=_Bucket.VersioningConfigurationProperty(status="Enabled"),
            lifecycle_configuration=_expiring(days, restorable_days, folders, moved),
            logging_configuration=_logging_configuration(access_log, construct_id),
        )
        bucket.apply_removal_policy(context.kept)
        _add_policy(self, bucket)
        self.name, self.arn = bucket.ref, bucket.attr_arn

    def seen_from_elsewhere(self) -> BucketReference:
        """Return the bucket for other stacks, which import its name and ARN.

        The CDK derives no dependency from exported values: add it explicitly.
        """
        stack = Stack.of(self)
        return BucketReference(stack.export_value(self.name), stack.export_value(self.arn))


@dataclass(frozen=True, slots=True)
class BucketReference:
    """Name and ARN of a bucket."""

    name: str
    arn: str


def _encrypted_by(
    algorithm: str, key_arn: str | None = None
) -> aws_s3.CfnBucket.BucketEncryptionProperty:
    rule = _Bucket.ServerSideEncryptionRuleProperty(
        bucket_key_enabled=key_arn is not None,  # one request to KMS for many objects
        server_side_encryption_by_default=_Bucket.ServerSideEncryptionByDefaultProperty(
            sse_algorithm=algorithm, kms_master_key_id=key_arn
        ),
    )
    return _Bucket.BucketEncryptionProperty(server_side_encryption_configuration=[rule])


def _logging_configuration(
    access_log: str, construct_id: str
) -> aws_s3.CfnBucket.LoggingConfigurationProperty:
    return _Bucket.LoggingConfigurationProperty(
        destination_bucket_name=access_log, log_file_prefix=f"{construct_id.lower()}/"
    )


def _owned_by_account() -> aws_s3.CfnBucket.OwnershipControlsProperty:
    rule = _Bucket.OwnershipControlsRuleProperty(object_ownership="BucketOwnerEnforced")
    return _Bucket.OwnershipControlsProperty(rules=[rule])


def _expiring(
    days: int | None = None,
    restorable_days: int | None = None,
    of_folders: Sequence[aws_s3.CfnBucket.RuleProperty] = (),
    moved: Sequence[aws_s3.CfnBucket.TransitionProperty] = (),
) -> aws_s3.CfnBucket.LifecycleConfigurationProperty:
    restorable = None
    if restorable_days is not None:
        restorable = _Bucket.NoncurrentVersionExpirationProperty(noncurrent_days=restorable_days)
    rule = _Bucket.RuleProperty(
        id="Expire",
        status="Enabled",
        expiration_in_days=days,
        noncurrent_version_expiration=restorable,
        expired_object_delete_marker=True if days is None else None,
        abort_incomplete_multipart_upload=_Bucket.AbortIncompleteMultipartUploadProperty(
            days_after_initiation=_ABORT_UPLOADS_AFTER_DAYS
        ),
        transitions=[*moved] or None,
    )
    rules = [rule, *of_folders]
    return _Bucket.LifecycleConfigurationProperty(
        rules=rules,
        transition_default_minimum_object_size=(
            _NO_SMALL_OBJECTS if any(rule.transitions for rule in rules) else None
        ),
    )


def expiring_folder(folder: str, days: int, tiers: Tiers) -> aws_s3.CfnBucket.RuleProperty:
    """Return the rule of a folder whose objects move to cheaper classes, and then expire."""
    return _Bucket.RuleProperty(
        id=f"Expire-{folder}",
        status="Enabled",
        prefix=f"{folder}/",
        expiration_in_days=days,
        transitions=[*_moved_by_age(tiers)] or None,
    )


def overwritten_folder(folder: str) -> aws_s3.CfnBucket.RuleProperty:
    """Return the rule of a folder whose deleted versions, which slow down listings, stay a day."""
    return _Bucket.RuleProperty(
        id=f"Overwritten-{folder}",
        status="Enabled",
        prefix=f"{folder}/",
        noncurrent_version_expiration=_Bucket.NoncurrentVersionExpirationProperty(
            noncurrent_days=1
        ),
    )


def short_lived_folder(folder: str, days: int = 1) -> aws_s3.CfnBucket.RuleProperty:
    """Return the rule of a folder whose objects expire, and are deleted for good a day later."""
    return _Bucket.RuleProperty(
        id=f"ShortLived-{folder.rpartition('/')[2]}",
        status="Enabled",
        prefix=f"{folder}/",
        expiration_in_days=days,
        noncurrent_version_expiration=_Bucket.NoncurrentVersionExpirationProperty(
            noncurrent_days=1
        ),
    )


def _moved_by_age(tiers: Tiers) -> list[aws_s3.CfnBucket.TransitionProperty]:
    return [
        _Bucket.TransitionProperty(storage_class=tier.upper(), transition_in_days=days)
        for tier, days in tiers.model_dump(exclude_none=True).items()
    ]


def _add_policy(
    scope: Construct, bucket: aws_s3.CfnBucket, *allowed: aws_iam.PolicyStatement
) -> None:
    over_tls = aws_iam.PolicyStatement(
        sid="OverTlsOnly",
        effect=aws_iam.Effect.DENY,
        principals=[aws_iam.StarPrincipal()],
        actions=["s3:*"],
        resources=[bucket.attr_arn, f"{bucket.attr_arn}/*"],
        conditions={"Bool": {"aws:SecureTransport": "false"}},
    )
    document = aws_iam.PolicyDocument(statements=[over_tls, *allowed])
    aws_s3.CfnBucketPolicy(scope, "Policy", bucket=bucket.ref, policy_document=document)
