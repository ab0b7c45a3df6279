"""Small JSON objects in S3 under one prefix: plan, leases, progress, requests, reports."""

from __future__ import annotations

from datetime import datetime

import boto3
from botocore.exceptions import ClientError

from cdclake.control_writer import ABSENT, ControlWriter
from cdclake.errors import ComponentFailed

_KEYS_PER_REQUEST = 1000  # the most that S3 deletes in one request


class ObjectStore(ControlWriter):
    """JSON objects under `s3://bucket/prefix/`."""

    def __init__(self, uri: str) -> None:
        super().__init__(boto3.client("s3"), uri)

    def etag(self, name: str) -> str | None:
        """Return the object's ETag, or None if there is no object."""
        try:
            return str(self._s3.head_object(Bucket=self._bucket, Key=self._key(name))["ETag"])
        except ClientError as error:
            if error.response["Error"]["Code"] in ABSENT:
                return None
            raise

    def written_at(self, name: str) -> datetime:
        """Return when the object was written, by the clock of S3, in seconds."""
        head = self._s3.head_object(Bucket=self._bucket, Key=self._key(name))
        written: datetime = head["LastModified"]
        return written

    def delete(self, name: str) -> None:
        """Delete the object if it exists."""
        self._s3.delete_object(Bucket=self._bucket, Key=self._key(name))

    def delete_all(self, folder: str) -> None:
        """Delete the objects in a folder; raise ComponentFailed if S3 refuses one."""
        keys = [{"Key": entry["Key"]} for entry in self._listed(f"{folder}/")]
        for first in range(0, len(keys), _KEYS_PER_REQUEST):
            batch = keys[first : first + _KEYS_PER_REQUEST]
            request = {"Objects": batch, "Quiet": True}
            answer = self._s3.delete_objects(Bucket=self._bucket, Delete=request)
            if refused := answer.get("Errors"):
                key, reason = refused[0]["Key"], refused[0].get("Message", "no reason given")
                raise ComponentFailed(f"S3 did not delete {key}: {reason}", "run this again", "aws")
