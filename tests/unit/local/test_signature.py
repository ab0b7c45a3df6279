"""Requests without a valid signature of the lake's keys are refused, as AWS refuses them."""

import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cdclake.local.aws.http_server import Answer, Server
from cdclake.local.aws.signature import SignedRequests

KEY_ID, SECRET = "id-of_the.key", "secret/with+signs="
DIRECT = build_opener(ProxyHandler({}))


class Seen:
    """Application that answers everything, and what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, Any], bytes]] = []

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        self.requests.append((environ, body))
        return 200, {}, b"{}" if "HTTP_X_AMZ_TARGET" in environ else b""


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


@pytest.fixture(scope="module")
def url(seen: Seen) -> Iterator[str]:
    with Server(0, SignedRequests(seen, KEY_ID, SECRET, open_paths=("/health",))) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def client(url: str, service: str, key_id: str = KEY_ID, secret: str = SECRET) -> Any:
    return boto3.client(
        service, endpoint_url=url, region_name="eu-west-1", aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"},
                      signature_version="s3v4" if service == "s3" else None),
    )  # fmt: skip


@pytest.mark.parametrize(
    "key", ["plain", "a b/ü+.txt", "day=1/x~(1)'!*", "100%25", "a//b/../c", "q?x=1&y"]
)
def test_signed_requests_pass(url: str, seen: Seen, key: str) -> None:
    s3 = client(url, "s3")
    s3.put_object(Bucket="b", Key=key, Body=b"one", Metadata={"note": "two  spaces"})
    s3.delete_object(Bucket="b", Key=key, VersionId="v+/=")
    put, delete = seen.requests[-2:]
    assert put[0]["REQUEST_METHOD"] == "PUT" and b"one" in put[1]
    assert delete[0]["PATH_INFO"].encode("latin-1").decode() == f"/b/{key}"


def test_a_space_of_a_query_may_be_sent_as_a_plus(url: str, seen: Seen) -> None:
    client(url, "s3").list_objects_v2(Bucket="b", Prefix="nationality=Costa Rican/", Delimiter="+")
    environ, _ = seen.requests[-1]
    listed = environ["HTTP_AUTHORIZATION"].partition("SignedHeaders=")[2].partition(",")[0]
    names = ("authorization", *(name for name in listed.split(";") if name != "host"))
    headers = {name: environ["HTTP_" + name.upper().replace("-", "_")] for name in names}
    query = environ["QUERY_STRING"]
    assert "Costa%20Rican" in query and "%2B" in query
    for sent in (query, query.replace("%20", "+")):
        assert DIRECT.open(Request(f"{url}/b?{sent}", headers=headers), timeout=5).status == 200


def test_other_services_pass(url: str, seen: Seen) -> None:
    client(url, "glue").get_databases()
    client(url, "secretsmanager").list_secrets()
    assert seen.requests[-1][0]["HTTP_X_AMZ_TARGET"] == "secretsmanager.ListSecrets"


@pytest.mark.parametrize(
    ("key_id", "secret", "code"),
    [("local", "local", "InvalidAccessKeyId"), (KEY_ID, "other", "SignatureDoesNotMatch")],
)
def test_wrong_keys_are_refused(url: str, seen: Seen, key_id: str, secret: str, code: str) -> None:
    before = len(seen.requests)
    with pytest.raises(ClientError) as caught:
        client(url, "s3", key_id, secret).list_objects_v2(Bucket="b")
    answer = caught.value.response
    assert answer["Error"]["Code"] == code
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 403
    with pytest.raises(ClientError) as caught:
        client(url, "secretsmanager", key_id, secret).get_secret_value(SecretId="login")
    expected = {"InvalidAccessKeyId": "UnrecognizedClient"}.get(code, "InvalidSignature")
    assert caught.value.response["Error"]["Code"] == f"{expected}Exception"
    assert len(seen.requests) == before


def refused(request: Request | str) -> str:
    with pytest.raises(HTTPError) as caught:
        DIRECT.open(request, timeout=5)
    assert caught.value.code == 403
    return caught.value.read().decode()


def test_unsigned_requests_are_refused_except_for_open_paths(url: str) -> None:
    assert "<Code>AccessDenied</Code>" in refused(f"{url}/b/k")
    assert "<Code>AccessDenied</Code>" in refused(Request(f"{url}/b", method="PUT"))
    assert DIRECT.open(f"{url}/health", timeout=5).status == 200


@pytest.mark.parametrize("header", ["AWS4-HMAC-SHA256 x", "AWS4-HMAC-SHA256 Credential=a/b"])
def test_incomplete_signatures_are_refused(url: str, header: str) -> None:
    request = Request(f"{url}/b/k", headers={"Authorization": header})
    assert "<Code>SignatureDoesNotMatch</Code>" in refused(request)


def test_signature_of_another_request_is_refused(url: str, seen: Seen) -> None:
    client(url, "s3").get_object(Bucket="b", Key="mine")
    environ, _ = seen.requests[-1]
    listed = environ["HTTP_AUTHORIZATION"].partition("SignedHeaders=")[2].partition(",")[0]
    names = ("authorization", *(name for name in listed.split(";") if name != "host"))
    headers = {name: environ["HTTP_" + name.upper().replace("-", "_")] for name in names}
    assert DIRECT.open(Request(f"{url}/b/mine", headers=headers), timeout=5).status == 200
    for path, method in (("/b/yours", "GET"), ("/b/mine?acl", "GET"), ("/b/mine", "DELETE")):
        assert "SignatureDoesNotMatch" in refused(Request(url + path, None, headers, method=method))
    other = Request(f"{url}/b/mine", b"body", headers, method="GET")
    assert "The payload has another SHA-256" in refused(other)


def test_presigned_urls_pass_until_they_expire(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s3 = client(url, "s3")
    link = s3.generate_presigned_url("get_object", {"Bucket": "b", "Key": "a b+ü"}, ExpiresIn=60)
    assert "X-Amz-Signature=" in link
    assert DIRECT.open(link, timeout=5).status == 200
    assert "SignatureDoesNotMatch" in refused(link.replace("/b/a", "/b/o"))
    assert "SignatureDoesNotMatch" in refused(link.replace("Expires=60", "Expires=6000"))
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    assert "Request has expired" in refused(link)


def test_a_server_without_keys_does_not_start(seen: Seen) -> None:
    with pytest.raises(ValueError, match="key pair"):
        SignedRequests(seen, "", "")
