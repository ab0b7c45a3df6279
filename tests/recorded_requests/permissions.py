"""Permissions that a request to S3, Glue or Secrets Manager needs.

Source: the Service Authorization Reference, "Actions, resources, and condition keys", for Amazon
S3, AWS Glue and AWS Secrets Manager. HeadObject needs s3:GetObject, and s3:ListBucket for the
answer that there is no such object; each part of an upload needs s3:PutObject.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

from cdclake.local.aws.aws_server import action_of, scope


class Needed(NamedTuple):
    """An action, and what it is for: `bucket/key`, `bucket/prefix`, `database/table`, a secret."""

    action: str
    on: str


def permissions_of(environ: dict[str, Any], body: bytes, status: int) -> Iterator[Needed]:
    """Return what the request needs that got this status, by IAM's names.

    Raises ValueError for a request that is not known here.
    """
    _, service = scope(environ)
    if service == "s3":
        yield from _of_s3(environ, body, status)
    elif service == "glue":
        yield from _of_glue(action_of(environ), json.loads(body or b"{}"))
    elif service == "secretsmanager":
        yield Needed(f"secretsmanager:{action_of(environ)}", json.loads(body)["SecretId"])
    else:
        raise ValueError(f"a request to {service} {action_of(environ)} is not known")


def _of_s3(environ: dict[str, Any], body: bytes, status: int) -> Iterator[Needed]:
    path = str(environ["REQUEST_URI"]).partition("?")[0]
    bucket, _, key = unquote(path).removeprefix("/").partition("/")
    query = parse_qs(str(environ.get("QUERY_STRING", "")), keep_blank_values=True)
    method = str(environ["REQUEST_METHOD"])
    if not key:
        yield from _of_bucket(method, bucket, query, body)
        return
    on, of_version = f"{bucket}/{key}", "Version" if "versionId" in query else ""
    if method == "DELETE":
        action = f"s3:DeleteObject{of_version}"
        yield Needed("s3:AbortMultipartUpload" if "uploadId" in query else action, on)
    elif method in ("PUT", "POST"):
        yield Needed("s3:PutObject", on)
        if source := environ.get("HTTP_X_AMZ_COPY_SOURCE"):
            yield Needed("s3:GetObject", unquote(str(source)).strip("/"))
    else:
        yield Needed(f"s3:GetObject{of_version}", on)
        if status == 404:
            yield Needed("s3:ListBucket", on)  # without it the answer would be 403


def _of_bucket(
    method: str, bucket: str, query: dict[str, list[str]], body: bytes
) -> Iterator[Needed]:
    if method == "POST" and "delete" in query:
        for element in ElementTree.fromstring(body).iter():
            if element.tag.rpartition("}")[2] == "Key":
                yield Needed("s3:DeleteObject", f"{bucket}/{element.text}")
    elif method == "GET" and "location" in query:
        yield Needed("s3:GetBucketLocation", bucket)
    elif method in ("GET", "HEAD"):
        listed = "s3:ListBucketVersions" if "versions" in query else "s3:ListBucket"
        yield Needed(listed, f"{bucket}/{query.get('prefix', [''])[0]}")
    else:
        raise ValueError(f"{method} of the bucket {bucket} with {query} is not known")


def _of_glue(action: str, given: dict[str, Any]) -> Iterator[Needed]:
    """Return the action on the database, or on the table, wherever the request names it."""
    database = given.get("DatabaseName") or given.get("Name") or given["DatabaseInput"]["Name"]
    if "DatabaseName" not in given:
        yield Needed(f"glue:{action}", database)
        return
    table = given.get("TableName") or given.get("Name") or given.get("TableInput", {}).get("Name")
    yield Needed(f"glue:{action}", f"{database}/{table or '*'}")
