"""S3, Glue, Secrets Manager and Kinesis on one port, for any key.

`python -m cdclake.local.aws.aws_server --port N --data DIR`.

moto answers on 127.0.0.1; the stores make it durable. A request that may change something runs
alone, and what it changed is written before its response is sent: killed at any moment, the next
start has everything that was acknowledged. Other services are answered with 501.
"""

from __future__ import annotations

import argparse
import json
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
from cdclake.local.aws.glue_store import GlueStore
from cdclake.local.aws.http_server import Answer, Server
from cdclake.local.aws.index import Index
from cdclake.local.aws.kinesis_store import REFUSED, KinesisStore
from cdclake.local.aws.s3_store import S3Store
from cdclake.local.aws.secret_store import SecretStore

DEFAULT_REGION = "us-east-1"
HEALTH = "/_cdclake/health"


class WireRequest(Request):
    """moto's request, which it asks for this when one came over the wire."""

    from_wsgi_server = True


class DurableAws:
    """moto's services, under a lock, with a commit before each response.

    Their handlers are called as moto's server would call them, without its search for the service
    and without Flask, which together took longer than the work itself.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        index = Index(folder / "index.db")
        self.s3 = S3Store(folder, index)
        self.glue = GlueStore(index)
        self.secrets = SecretStore(index)
        self.kinesis = KinesisStore(index)
        for store in (self.s3, self.glue, self.secrets, self.kinesis):
            store.install()
        self.lock = threading.RLock()

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        """Unsigned requests and presigned addresses are S3's: Glue has none."""
        if environ["PATH_INFO"] == HEALTH:
            return 200, {"content-type": "text/plain"}, b"ok"
        region, service = scope(environ)
        if service == "glue":
            return self._glue(environ, body, region)
        if service == "s3":
            return self._s3(environ, body)
        if service == "secretsmanager":
            return self._secrets(environ, body, region)
        if service == "kinesis" and action_of(environ) not in REFUSED:
            return self._kinesis(environ, body, region)
        return 501, {"content-type": "text/plain"}, f"there is no {service} here".encode()

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
    """What a service of the JSON protocol is asked to do."""
    return str(environ.get("HTTP_X_AMZ_TARGET", "")).rpartition(".")[2]


def s3_handler(path: str) -> Any:
    """What moto's URL map says for path-style addresses, the only ones here."""
    bucket, _, key = path.strip("/").partition("/")
    if key:
        return S3Response.key_dispatch
    return S3Response.ambiguous_dispatch if bucket else S3Response.bucket_dispatch


def ask(handler: Any, environ: dict[str, Any], body: bytes) -> Answer:
    environ["wsgi.input"] = BytesIO(body)
    environ["wsgi.input_terminated"] = True
    environ["CONTENT_LENGTH"] = str(len(body))
    request = WireRequest(environ)
    status, headers, content = handler(request, request.raw_url, dict(request.headers))
    return int(status), headers, content.encode() if isinstance(content, str) else content


def scope(environ: dict[str, Any]) -> tuple[str, str]:
    """Region and service of `Credential=<key>/<date>/<region>/<service>/aws4_request`."""
    credential = str(environ.get("HTTP_AUTHORIZATION", "")).partition("Credential=")[2]
    parts = credential.partition(",")[0].split("/")
    return (parts[2], parts[3]) if len(parts) == 5 else (DEFAULT_REGION, "s3")


def main() -> int:
    """Serves until it is killed; there is nothing to finish, every response was written down."""
    parser = argparse.ArgumentParser(description="Some of AWS on this machine.")
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--data", required=True, type=Path)
    args = parser.parse_args()
    with Server(args.port, DurableAws(args.data)) as server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
