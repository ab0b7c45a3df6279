"""What holds data: kept, encrypted, private, and not growing for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.synth.deployments import Template
from tests.synth.rules.reading import statements

HOLDS_DATA = {
    "AWS::Glue::Database",
    "AWS::Glue::Registry",
    "AWS::Glue::Table",
    "AWS::KMS::Key",
    "AWS::Kinesis::Stream",
    "AWS::MSK::Cluster",
    "AWS::MSK::Topic",
    "AWS::RDS::DBCluster",
    "AWS::RDS::DBInstance",
    "AWS::S3::Bucket",
}


def kept_when_deleted(kind: str, properties: dict[str, Any], resource: Template) -> Iterator[str]:
    """What holds data outlives its stack, unless it was made by a creation that failed.

    Only `protect: false` says otherwise.
    """
    if kind not in HOLDS_DATA or _is_member(kind, properties):
        return
    if resource.get("UpdateReplacePolicy") not in ("Retain", "Snapshot"):
        yield f"{kind} is lost when it is replaced"
    if resource.get("DeletionPolicy") == "Retain":
        yield f"{kind} stays after a failed creation, and the next one meets it"
    elif resource.get("DeletionPolicy") not in ("RetainExceptOnCreate", "Snapshot"):
        yield f"{kind} is lost with its stack"


def _is_member(kind: str, properties: dict[str, Any]) -> bool:
    """Tell an instance of a cluster, which holds the data."""
    return kind == "AWS::RDS::DBInstance" and "DBClusterIdentifier" in properties


def safe_database(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """TLS, logical replication, and a slot that is given up before the disk is full."""
    if kind in ("AWS::RDS::DBParameterGroup", "AWS::RDS::DBClusterParameterGroup"):
        parameters = properties["Parameters"]
        for name in ("rds.force_ssl", "rds.logical_replication"):
            if parameters.get(name) != "1":
                yield f"{kind} lacks {name}"
        if kind.endswith("DBParameterGroup") and (
            int(parameters.get("max_slot_wal_keep_size", -1)) <= 0
        ):
            yield f"{kind} lets a slot fill the disk"
    servers = ("AWS::RDS::DBInstance", "AWS::RDS::DBCluster")
    if kind in servers and not _is_member(kind, properties):
        for flag in ("StorageEncrypted", "ManageMasterUserPassword", "CopyTagsToSnapshot"):
            if properties.get(flag) is not True:
                yield f"{kind} lacks {flag}"
        if "." in str(properties.get("EngineVersion", "")):
            yield f"{kind} names a minor version, which RDS may withdraw"
        if properties.get("BackupRetentionPeriod", 0) < 1:
            yield f"{kind} has no backups"


def safe_bucket(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Private, encrypted, over TLS, and of what is deleted nothing stays for ever."""
    if kind == "AWS::S3::Bucket":
        blocked = properties.get("PublicAccessBlockConfiguration", {})
        if len(blocked) != 4 or not all(value is True for value in blocked.values()):
            yield f"{kind} may become public"
        if "BucketEncryption" not in properties:
            yield f"{kind} is not encrypted by our choice"
        rules = properties.get("LifecycleConfiguration", {}).get("Rules", [])
        kept = json.dumps(rules)
        if "AbortIncompleteMultipartUpload" not in kept:
            yield f"{kind} keeps uploads that nobody ended"
        versions = "VersioningConfiguration" in properties
        if ("NoncurrentVersionExpiration" if versions else "ExpirationInDays") not in kept:
            yield f"{kind} grows for ever"
        classes = {t["StorageClass"] for rule in rules for t in rule.get("Transitions", [])}
        if classes & {"GLACIER", "DEEP_ARCHIVE"}:
            yield f"{kind} has objects that nothing can read until they are restored"
    if kind == "AWS::S3::BucketPolicy":
        denied = [s for s in statements(properties) if s["Effect"] == "Deny"]
        if not any("aws:SecureTransport" in json.dumps(s.get("Condition")) for s in denied):
            yield f"{kind} lets clients in without TLS"


def every_bucket_has_a_policy(template: Template) -> Iterator[str]:
    """The rule above sees policies only where there are some."""
    found = template["Resources"].items()
    policies = json.dumps([r for _, r in found if r["Type"] == "AWS::S3::BucketPolicy"])
    for name, resource in found:
        if (
            resource["Type"] == "AWS::S3::Bucket"
            and f'"Bucket": {{"Ref": "{name}"}}' not in policies
        ):
            yield f"{name}: AWS::S3::Bucket has no policy"


def logs_end(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Logs without an end are paid for without an end."""
    if kind == "AWS::Logs::LogGroup":
        for needed in ("RetentionInDays", "KmsKeyId"):
            if needed not in properties:
                yield f"{kind} has no {needed}"
