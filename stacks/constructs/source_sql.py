"""The function that runs an operator's SQL file in the private source database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from constructs import Construct

from cdclake import naming
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.grant import Grant, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference

_TIMEOUT_S = 900  # the longest that Lambda lets a call run
# A file of `source sql` takes up to 9 times its size. New accounts allow no function more memory.
_MEMORY_MB = 3008


class SourceSql(LambdaFunction):
    """`run_sql` of `lambda/prepare_source`: the administrator's rights, and files of one prefix."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file: Path,
        environment: Mapping[str, str],
        grants: Sequence[Grant],
        security_group: str,
        state: BucketReference,
        context: DeploymentContext,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            module="prepare_source",
            handler="run_sql",
            code=file,
            environment={**environment, "BUCKET": state.name},
            grants=[
                *grants,
                Grant(
                    actions=["s3:GetObject"],
                    on=[f"{state.arn}/{naming.SOURCE_SQL_PREFIX}/*"],
                    because="the files that an operator uploads, by random names",
                ),
                through_s3(context.key_arn),
            ],
            timeout_s=_TIMEOUT_S,
            memory_mb=_MEMORY_MB,
            security_group=security_group,
            name=naming.source_sql_function(context.prefix),
            context=context,
        )
