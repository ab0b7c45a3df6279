"""The local S3 and Glue as a process of its own, for tests that kill it."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from cdclake.local.components import aws
from tests.source_tree import PROJECT

KEY_ID, SECRET = "any", "key"


class AwsProcess:
    """The server as its own process on a folder, to be killed."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, log: int | None = None) -> "AwsProcess":
        """Start the server, with its standard error in the file `log`."""
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "cdclake.local.aws.aws_server"),
                *("--port", str(self.port), "--data", str(self.folder)),
            ],
            cwd=PROJECT,
            env={**os.environ, "AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET},
            stderr=log,
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                if aws.answers(self.port):
                    return self
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not answer in 30 s")

    def kill(self) -> None:
        if self.process is not None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def client(self, service: str, **more: Any) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="eu-central-1",
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            config=Config(retries={"max_attempts": 0}, **more),
        )
