"""Records of the source's relations, which the check and the preparation of the source keep."""

from __future__ import annotations

from cdclake import naming
from cdclake.stacks.constructs.grant import Grant, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference

_RECORDS_KEY = f"{naming.CONTROL_PREFIX}/{naming.RELATIONS}"


def keeps_records(state: BucketReference, key_arn: str) -> list[Grant]:
    """Allow reading and writing the records, also if there are none yet."""
    return [
        Grant(actions=["s3:GetObject", "s3:PutObject"], on=[f"{state.arn}/{_RECORDS_KEY}"]),
        # Without it S3 answers 403 instead of 404 if an object does not exist yet.
        Grant(actions=["s3:ListBucket"], on=[state.arn]),
        through_s3(key_arn),
    ]
