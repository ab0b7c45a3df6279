"""Records of the source's relations, which the check and the preparation of the source keep."""

from __future__ import annotations

from cdclake import naming
from cdclake.stacks.constructs.grant import Grant, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference


def keeps_records(state: BucketReference, key_arn: str, *names: str) -> list[Grant]:
    """Allow reading and writing the records and these objects, also if there are none yet."""
    folder = f"{state.arn}/{naming.CONTROL_PREFIX}"
    objects = [f"{folder}/{name}" for name in (naming.RELATIONS, *names)]
    return [
        Grant(actions=["s3:GetObject", "s3:PutObject"], on=objects),
        # Without it S3 answers 403 instead of 404 if an object does not exist yet.
        Grant(actions=["s3:ListBucket"], on=[state.arn]),
        through_s3(key_arn),
    ]
