"""Grants of a web server's task: pull images, read the router's files, send requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aws_cdk import Aws

from cdclake.stacks.constructs.grant import Grant, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference

_ECR = re.compile(r"(\d{12})[.]dkr[.]ecr[.]([a-z0-9-]+)[.]amazonaws[.]com(?:[.]cn)?/([^:@]+)")


def is_of_ecr(image: str) -> bool:
    """Return whether the image is in ECR, which the network's endpoints reach."""
    return _ECR.match(image) is not None


def repository_of(image: str) -> str | None:
    """Return the ARN of the image's repository in ECR; None for a public registry."""
    match = _ECR.match(image)
    if match is None:
        return None
    account, region, name = match.groups()
    return f"arn:{Aws.PARTITION}:ecr:{region}:{account}:repository/{name}"


def pulls(repositories: Sequence[str]) -> Iterator[Grant]:
    """Yield grants to pull images from the repositories in ECR with these ARNs."""
    if not repositories:
        return
    yield Grant(
        actions=[
            "ecr:BatchCheckLayerAvailability",
            "ecr:BatchGetImage",
            "ecr:GetDownloadUrlForLayer",
        ],
        on=sorted(set(repositories)),
    )
    yield Grant(
        actions=["ecr:GetAuthorizationToken"],
        on=["*"],
        because="ECR has no resource for the token, and the token alone grants no access",
    )


def reads_files(state: BucketReference, keys: Sequence[str], key_arn: str) -> list[Grant]:
    """Allow reading the files that the router includes."""
    return [
        Grant(actions=["s3:GetObject"], on=[f"{state.arn}/{key}" for key in keys]),
        Grant(actions=["s3:GetBucketLocation"], on=[state.arn]),
        through_s3(key_arn),
    ]


def puts_directly(stream_arn: str) -> list[Grant]:
    """Allow putting batches into a Firehose stream."""
    return [Grant(actions=["firehose:PutRecordBatch"], on=[stream_arn])]


def puts_into_shards(stream_arn: str, key_arn: str) -> list[Grant]:
    """Allow putting batches into a Kinesis stream under our key."""
    return [
        Grant(actions=["kinesis:PutRecords"], on=[stream_arn]),
        Grant(
            actions=["kms:GenerateDataKey"],
            on=[key_arn],
            only_if={"StringEquals": {"kms:ViaService": f"kinesis.{Aws.REGION}.amazonaws.com"}},
        ),
    ]
