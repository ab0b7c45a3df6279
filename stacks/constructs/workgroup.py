"""The Athena workgroup: enforced settings, and results that expire."""

from __future__ import annotations

from aws_cdk import Aws, aws_athena
from constructs import Construct

from cdclake.stacks.constructs.deployment_context import DeploymentContext

_ENGINE = "Athena engine version 3"
_GB = 1024**3
_Workgroup = aws_athena.CfnWorkGroup


class Workgroup(Construct):
    """Workgroup with the deployment's name; its results are stored encrypted in `bucket`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: str,
        scan_gb: int,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        encrypted = _Workgroup.EncryptionConfigurationProperty(
            encryption_option="SSE_KMS", kms_key=context.key_arn
        )
        _Workgroup(
            self,
            "Workgroup",
            name=context.prefix,
            description=f"Athena queries on the lake of {context.prefix}",
            recursive_delete_option=True,  # with its saved queries and its history
            work_group_configuration=_Workgroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=True,
                bytes_scanned_cutoff_per_query=scan_gb * _GB,
                engine_version=_Workgroup.EngineVersionProperty(selected_engine_version=_ENGINE),
                result_configuration=_Workgroup.ResultConfigurationProperty(
                    output_location=f"s3://{bucket}/",
                    expected_bucket_owner=Aws.ACCOUNT_ID,
                    encryption_configuration=encrypted,
                ),
            ),
        )
