"""Check of AWS's signature (version 4) in front of an application.

A header or a presigned query signs method, path, query and headers, and the payload where the
client hashes it. The parts of an `aws-chunked` body have further signatures, which are not checked:
the body ends with the request whose header is signed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from calendar import timegm
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote_to_bytes
from xml.sax.saxutils import escape

from cdclake.local.aws.http_server import Answer, Application

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
_UNRESERVED = "-_.~"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TIME = "%Y%m%dT%H%M%SZ"
# By S3's code: the code of services with the JSON protocol.
_JSON_CODES = {
    "AccessDenied": "MissingAuthenticationTokenException",
    "InvalidAccessKeyId": "UnrecognizedClientException",
    "SignatureDoesNotMatch": "InvalidSignatureException",
}


class InvalidSignature(Exception):
    """A request without a valid signature, with S3's code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature of a request and what it depends on besides the request."""

    key_id: str
    scope: tuple[str, str, str]  # date, region, service
    headers: tuple[str, ...]
    time: str
    value: str
    payload: str  # hash of the payload, or the word for an unsigned one
    is_presigned: bool = False
    expires_s: int = 0


class SignedRequests:
    """Application that only answers requests signed with this key pair.

    `open_paths` need no signature.
    """

    def __init__(
        self, app: Application, key_id: str, secret: str, open_paths: Collection[str] = ()
    ) -> None:
        if not key_id or not secret:
            raise ValueError("a server that checks signatures needs a key pair")
        self._app, self._key_id, self._secret = app, key_id, secret
        self._open_paths = open_paths

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        """Answer the request, or refuse it as AWS does."""
        if environ["PATH_INFO"] not in self._open_paths:
            try:
                self._check(environ, body)
            except InvalidSignature as refused:
                return _refusal(environ, refused)
        return self._app(environ, body)

    def _check(self, environ: Mapping[str, Any], body: bytes) -> None:
        found = signature_of(environ, body)
        if not hmac.compare_digest(found.key_id.encode(), self._key_id.encode()):
            raise InvalidSignature(
                "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist here."
            )
        expected = expected_signature(self._secret, environ, found)
        if not hmac.compare_digest(expected.encode(), found.value.encode()):
            raise InvalidSignature(
                "SignatureDoesNotMatch",
                "The request signature we calculated does not match the signature you provided.",
            )
        if found.is_presigned and _seconds(found.time) + found.expires_s < time.time():
            raise InvalidSignature("AccessDenied", "Request has expired")
        if _SHA256.fullmatch(found.payload) and found.payload != hashlib.sha256(body).hexdigest():
            raise InvalidSignature("SignatureDoesNotMatch", "The payload has another SHA-256.")


def signature_of(environ: Mapping[str, Any], body: bytes) -> Signature:
    """Parse the signature in the header or the query; raise InvalidSignature if there is none."""
    header = str(environ.get("HTTP_AUTHORIZATION", ""))
    try:
        if header.startswith(f"{ALGORITHM} "):
            return _from_header(header, environ, body)
        query = dict(_query(environ))
        if query.get("X-Amz-Algorithm") == ALGORITHM:
            return _from_query(query)
    except (KeyError, ValueError) as error:
        raise InvalidSignature("SignatureDoesNotMatch", "The signature is incomplete.") from error
    raise InvalidSignature("AccessDenied", "The request has no signature of version 4")


def expected_signature(secret: str, environ: Mapping[str, Any], found: Signature) -> str:
    """Compute the request's signature with this secret."""
    request = _canonical_request(environ, found)
    text = "\n".join(
        (
            ALGORITHM,
            found.time,
            "/".join((*found.scope, "aws4_request")),
            hashlib.sha256(request.encode()).hexdigest(),
        )
    )
    return _hmac(_signing_key(secret, *found.scope), text).hex()


def _from_header(header: str, environ: Mapping[str, Any], body: bytes) -> Signature:
    words = header.removeprefix(ALGORITHM).split(",")
    parts = dict(word.strip().split("=", 1) for word in words)
    key_id, scope = _credential(parts["Credential"])
    payload = environ.get("HTTP_X_AMZ_CONTENT_SHA256") or hashlib.sha256(body).hexdigest()
    return Signature(
        key_id,
        scope,
        headers=tuple(parts["SignedHeaders"].split(";")),
        time=str(environ["HTTP_X_AMZ_DATE"]),
        value=parts["Signature"],
        payload=str(payload),
    )


def _from_query(query: Mapping[str, str]) -> Signature:
    key_id, scope = _credential(query["X-Amz-Credential"])
    _seconds(query["X-Amz-Date"])
    return Signature(
        key_id,
        scope,
        headers=tuple(query["X-Amz-SignedHeaders"].split(";")),
        time=query["X-Amz-Date"],
        value=query["X-Amz-Signature"],
        payload=query.get("X-Amz-Content-Sha256", UNSIGNED),
        is_presigned=True,
        expires_s=int(query["X-Amz-Expires"]),
    )


def _credential(text: str) -> tuple[str, tuple[str, str, str]]:
    key_id, date, region, service, ending = text.split("/")
    if ending != "aws4_request":
        raise ValueError(text)
    return key_id, (date, region, service)


def _canonical_request(environ: Mapping[str, Any], found: Signature) -> str:
    path = str(environ["REQUEST_URI"]).partition("?")[0]
    pairs = sorted(
        (_encoded(name), _encoded(value))
        for name, value in _query(environ)
        if not (found.is_presigned and name == "X-Amz-Signature")
    )
    return "\n".join(
        (
            str(environ["REQUEST_METHOD"]),
            # S3 encodes the path once. The other services have the path / only.
            quote(unquote_to_bytes(path), safe=f"/{_UNRESERVED}"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{_header(environ, name)}" for name in found.headers),
            "",
            ";".join(found.headers),
            found.payload,
        )
    )


def _query(environ: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the decoded parameters.

    A plus sign is a space, as the Java SDK 1 sends it, and with it Hadoop's S3A.
    """
    text = str(environ.get("QUERY_STRING", ""))
    parts = (part.partition("=") for part in text.split("&") if part)
    return [(_decoded(name), _decoded(value.replace("+", " "))) for name, _, value in parts]


def _decoded(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")


def _encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogateescape"), safe=_UNRESERVED)


def _header(environ: Mapping[str, Any], name: str) -> str:
    variable = name.upper().replace("-", "_")
    prefix = "" if variable in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_"
    return " ".join(str(environ.get(prefix + variable, "")).split())


@lru_cache(maxsize=64)
def _signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _seconds(text: str) -> int:
    return timegm(time.strptime(text, _TIME))


def _refusal(environ: Mapping[str, Any], refused: InvalidSignature) -> Answer:
    if "HTTP_X_AMZ_TARGET" in environ:
        error = {"__type": _JSON_CODES[refused.code], "message": refused.message}
        return 400, {"content-type": "application/x-amz-json-1.1"}, json.dumps(error).encode()
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{refused.code}</Code><Message>{escape(refused.message)}</Message></Error>"
    )
    return 403, {"content-type": "application/xml"}, text.encode()
