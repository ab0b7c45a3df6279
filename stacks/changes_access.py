"""Access of the functions that make changelog rows to control objects and the salt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Aws

from cdclake import naming
from cdclake.control_objects import ERASURES, WIDENED, WIDENED_CHANGELOGS
from cdclake.stacks.constructs import job_grants
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stacks.source_stack import SourceOutputs
from cdclake.widened_columns import COMMON_START

_FOLDER = f"{naming.CONTROL_PREFIX}/{ERASURES}"
_LISTED = (f"{_FOLDER}/", f"{naming.CONTROL_PREFIX}/{COMMON_START}")


@dataclass(frozen=True, slots=True)
class ChangesAccess:
    """Environment and grants of a function that decodes changes.

    It drops the rows of erased keys and follows widened columns.
    """

    environment: Mapping[str, str]
    grants: Sequence[Grant]

    @staticmethod
    def of(state: BucketReference, source: SourceOutputs, *, key_arn: str) -> ChangesAccess:
        """Allow reading registers, widened columns and the salt, and nothing else of their kind."""
        environment = {
            "CONTROL": f"s3://{state.name}/{naming.CONTROL_PREFIX}",
            "MASK_SALT": source.salt_name,
        }
        lists = [
            Grant(
                actions=["s3:ListBucket"],
                on=[state.arn],
                only_if={"StringEquals": {"s3:prefix": prefix}},
            )
            for prefix in _LISTED
        ]
        because = "a register of erased keys per table, including future tables"
        reads = job_grants.reads_objects(state, _FOLDER, because)
        widened = [
            f"{state.arn}/{naming.CONTROL_PREFIX}/{name}" for name in (WIDENED, WIDENED_CHANGELOGS)
        ]
        follows = Grant(actions=["s3:GetObject"], on=widened)
        decrypts = Grant(
            actions=["kms:Decrypt"],
            on=[key_arn],
            only_if={"StringEquals": {"kms:ViaService": f"s3.{Aws.REGION}.amazonaws.com"}},
        )
        salt = source.grant_read_salt()
        return ChangesAccess(environment, [*lists, reads, follows, decrypts, *salt])
