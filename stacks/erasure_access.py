"""Access of Firehose's functions to the registers of erased keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Aws

from cdclake import naming
from cdclake.control_objects import ERASURES
from cdclake.stacks.constructs import job_grants
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stacks.source_stack import SourceOutputs

_FOLDER = f"{naming.CONTROL_PREFIX}/{ERASURES}"


@dataclass(frozen=True, slots=True)
class ErasureAccess:
    """Environment and grants of a function that drops the rows of erased keys."""

    environment: Mapping[str, str]
    grants: Sequence[Grant]

    @staticmethod
    def of(state: BucketReference, source: SourceOutputs, *, key_arn: str) -> ErasureAccess:
        """Allow reading the registers and the salt, and no other control object or secret."""
        environment = {
            "CONTROL": f"s3://{state.name}/{naming.CONTROL_PREFIX}",
            "MASK_SALT": source.salt_name,
        }
        lists = Grant(
            actions=["s3:ListBucket"],
            on=[state.arn],
            only_if={"StringEquals": {"s3:prefix": f"{_FOLDER}/"}},
        )
        because = "a register of erased keys per table, including future tables"
        reads = job_grants.reads_objects(state, _FOLDER, because)
        decrypts = Grant(
            actions=["kms:Decrypt"],
            on=[key_arn],
            only_if={"StringEquals": {"kms:ViaService": f"s3.{Aws.REGION}.amazonaws.com"}},
        )
        return ErasureAccess(environment, [lists, reads, decrypts, *source.grant_read_salt()])
