"""S3, Glue, Secrets Manager and Kinesis on one port, for one key pair.

`python -m cdclake.local.aws.aws_server --port N --data DIR`; AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY are the keys with which requests must be signed.

moto answers on 127.0.0.1; the stores make it durable. Requests that may change something run one at
a time, and their changes are written before the response is sent. After a kill at any point, the
next start has everything that was acknowledged. If a change cannot be written to SQLite, the server
ends without a response. Other services are answered with 501.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from io import BytesIO
from pathlib import Path
from typing import Any

from moto.core.request import Request
from moto.glue.responses import GlueResponse
from moto.kinesis.responses import KinesisResponse
from moto.s3.responses import S3Response
from moto.secretsmanager.responses import SecretsManagerResponse

from cdclake.local.aws import aws_chunked_body
from cdclake.local.aws.aws_faults import AwsFaults
from cdclake.local.aws.glue_store import GlueStore
from cdclake.local.aws.http_server import Answer, Server
from cdclake.local.aws.index import Index
from cdclake.local.aws.kinesis_store import REFUSED, KinesisStore
from cdclake.local.aws.s3_store import S3Store
from cdclake.local.aws.schema_store import SchemaStore
from cdclake.local.aws.secret_store import SecretStore
from cdclake.local.aws.signature import SignedRequests

DEFAULT_REGION = "us-east-1"
HEALTH = "/_cdclake/health"


class WireRequest(Request):
    """moto's request class, with the attribute that marks requests from the network."""

    from_wsgi_server = True


class DurableAws:
    """moto's services, under a lock, with a commit before each response.

    Their handlers are called directly, without Flask and moto's service lookup, which together took
    longer than the handlers.
    """

    def __init__(self, folder: Path, faults: AwsFaults | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        index = Index(folder / "index.db")
        self.s3 = S3Store(folder, index)
        self.glue = GlueStore(index)
        self.schemas = SchemaStore(index)
        self.secrets = SecretStore(index)
        self.kinesis = KinesisStore(index)
        for store in (self.s3, self.glue, self.schemas, self.secrets, self.kinesis):
            store.install()
        self.lock = threading.RLock()
        self._faults = faults

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        """Dispatch a request; unsigned requests and presigned URLs belong to S3."""
        if environ["PATH_INFO"] == HEALTH:
            return 200, {"content-type": "text/plain"}, b"ok"
        region, service = scope(environ)
        if self._faults is None:
            return self._serve(environ, body, region, service)
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        return self._faults.answer(
            service,
            f"{method} {path} {action_of(environ)} {hash(body)}",
            lambda: self._serve(environ, body, region, service),
        )

    def _serve(self, environ: dict[str, Any], body: bytes, region: str, service: str) -> Answer:
        if service == "glue":
            return self._glue(environ, body, region)
        if service == "s3":
            return self._s3(environ, body)
        if service == "secretsmanager":
            return self._secrets(environ, body, region)
        if service == "kinesis" and action_of(environ) not in REFUSED:
            return self._kinesis(environ, body, region)
        return 501, {"content-type": "text/plain"}, f"{service} is not available".encode()

    def _s3(self, environ: dict[str, Any], body: bytes) -> Answer:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return ask(s3_handler(environ["PATH_INFO"]), environ, body)
        if aws_chunked_body.is_chunked(environ):
            body = aws_chunked_body.unwrap(environ, body)
        with self.lock:
            answer = ask(s3_handler(environ["PATH_INFO"]), environ, body)
            self.s3.commit()
        return answer

    def _glue(self, environ: dict[str, Any], body: bytes, region: str) -> Answer:
        with self.lock:
            answer = ask(GlueResponse.dispatch, environ, body)
            self.glue.commit(region, action_of(environ), json.loads(body or b"{}"))
            self.schemas.commit(region, action_of(environ))
        return answer

    def _secrets(self, environ: dict[str, Any], body: bytes, region: str) -> Answer:
        with self.lock:
            answer = ask(SecretsManagerResponse.dispatch, environ, body)
            self.secrets.commit(region, action_of(environ))
        return answer

    def _kinesis(self, environ: dict[str, Any], body: bytes, region: str) -> Answer:
        with self.lock:
            answer = ask(KinesisResponse.dispatch, environ, body)
            self.kinesis.commit(region, action_of(environ))
        return answer


def action_of(environ: dict[str, Any]) -> str:
    """Return the action of a request to a service with the JSON protocol."""
    return str(environ.get("HTTP_X_AMZ_TARGET", "")).rpartition(".")[2]


def s3_handler(path: str) -> Any:
    """Return moto's handler for a path-style address, the only supported style."""
    bucket, _, key = path.strip("/").partition("/")
    if key:
        return S3Response.key_dispatch
    return S3Response.ambiguous_dispatch if bucket else S3Response.bucket_dispatch


def ask(handler: Any, environ: dict[str, Any], body: bytes) -> Answer:
    """Call one of moto's handlers and return its response."""
    environ["wsgi.input"] = BytesIO(body)
    environ["wsgi.input_terminated"] = True
    environ["CONTENT_LENGTH"] = str(len(body))
    request = WireRequest(environ)
    status, headers, content = handler(request, request.raw_url, dict(request.headers))
    return int(status), headers, content.encode() if isinstance(content, str) else content


def scope(environ: dict[str, Any]) -> tuple[str, str]:
    """Parse region and service from `Credential=<key>/<date>/<region>/<service>/aws4_request`."""
    credential = str(environ.get("HTTP_AUTHORIZATION", "")).partition("Credential=")[2]
    parts = credential.partition(",")[0].split("/")
    return (parts[2], parts[3]) if len(parts) == 5 else (DEFAULT_REGION, "s3")


def main() -> int:
    """Serve until killed; no cleanup is needed, as changes are written before each response."""
    parser = argparse.ArgumentParser(description="Serve S3, Glue, Secrets Manager and Kinesis.")
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--faults", type=AwsFaults.parse, metavar="SEED:KIND,...[@SHARE]")
    args = parser.parse_args()
    aws = DurableAws(args.data, args.faults)
    keys = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    with Server(args.port, SignedRequests(aws, *keys, open_paths=(HEALTH,))) as server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
