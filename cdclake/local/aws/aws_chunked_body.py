"""Decoding of `aws-chunked` request bodies, which SDKs send for streamed uploads."""

from __future__ import annotations

from typing import Any

CHECKSUM = "x-amz-checksum-"


def is_chunked(environ: dict[str, Any]) -> bool:
    """Return True if the request has an `aws-chunked` body."""
    return str(environ.get("HTTP_X_AMZ_CONTENT_SHA256", "")).startswith("STREAMING-")


def decode(body: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the object's bytes and the trailer (for example `x-amz-checksum-crc32: ...`)."""
    view = memoryview(body)
    parts: list[memoryview] = []
    position = 0
    while True:
        end = body.index(b"\r\n", position)
        size = int(bytes(view[position:end]).split(b";", 1)[0], 16)  # ";chunk-signature=..."
        position = end + 2
        if size == 0:
            break
        parts.append(view[position : position + size])
        position += size + 2
    lines = bytes(view[position:]).decode("latin-1").splitlines()
    trailer = (line.partition(":") for line in lines)
    return b"".join(parts), {k.strip().lower(): v.strip() for k, colon, v in trailer if colon}


def unwrap(environ: dict[str, Any], body: bytes) -> bytes:
    """Return the object's bytes, and change `environ` as if they had been sent unchunked."""
    content, trailer = decode(body)
    environ["HTTP_X_AMZ_CONTENT_SHA256"] = "UNSIGNED-PAYLOAD"
    environ["CONTENT_LENGTH"] = str(len(content))
    for name, value in trailer.items():
        if name.startswith(CHECKSUM):
            environ["HTTP_" + name.upper().replace("-", "_")] = value
            algorithm = name.removeprefix(CHECKSUM).upper()
            environ.setdefault("HTTP_X_AMZ_SDK_CHECKSUM_ALGORITHM", algorithm)
    return content
