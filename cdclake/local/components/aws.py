"""S3, Glue, Secrets Manager and Kinesis on one port (see `cdclake.local.aws.aws_server`)."""

from __future__ import annotations

import os
import sys

from cdclake.local.components.connect import DIRECT
from cdclake.local.components.installed import aws_variables, environment, shell
from cdclake.local.process.credentials import aws_keys
from cdclake.local.process.home import Home
from cdclake.local.process.process_spec import Spec
from cdclake.local.process.supervisor_client import Component
from cdclake.places import IMPORT_ROOT

NAME = "aws"
FAULTS_KEY = "CDCLAKE_AWS_FAULTS"  # in the environment of `up`; see cdclake.local.aws.aws_faults


def component(home: Home, port: int) -> Component:
    """Return the component; it is ready when it answers, since it loads its index first."""
    faults = ("--faults", os.environ[FAULTS_KEY]) if os.environ.get(FAULTS_KEY) else ()
    home.private_data(NAME)
    spec = Spec(
        name=NAME,
        argv=(
            *(sys.executable, "-m", "cdclake.local.aws.aws_server"),
            *("--port", str(port), "--data", str(home.data(NAME))),
            *faults,
        ),
        # The keys that the server demands of its clients.
        env=environment(**aws_variables(aws_keys(home))),
        shell=shell(),
        cwd=str(IMPORT_ROOT),
        port=port,
        log=str(home.log(NAME)),
    )
    return Component(spec, lambda: answers(port))


def answers(port: int) -> bool:
    """Return True if the server's health check succeeds."""
    with DIRECT.open(f"http://127.0.0.1:{port}/_cdclake/health", timeout=2) as response:
        return bool(response.status == 200)
