"""Clients of a lake in the shell's environment, and of several lakes in one process."""

import os
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.utils import get_environ_proxies

from cdclake.local.components.connect import ConnectApi
from cdclake.local.components.kafka import Broker
from cdclake.local.lake.lake import use_local_aws
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.credentials import Login


def endpoints(key_id: str) -> Endpoints:
    keys = Login(key_id, f"secret of {key_id}")
    broker, connect = Broker("", keys), ConnectApi("", keys)
    return Endpoints(None, broker, connect, "http://127.0.0.1:1", "", "", keys)


def keys_of_a_new_client() -> str:
    client: Any = boto3.client("s3")
    return str(client._request_signer._credentials.access_key)


def test_clients_have_the_keys_of_the_lake_that_was_opened_last() -> None:
    with patch.dict(os.environ), patch.object(boto3, "DEFAULT_SESSION", None):
        found = []
        for key_id in ("one", "other", "one"):
            use_local_aws(endpoints(key_id))
            found.append(keys_of_a_new_client())
    assert found == ["one", "other", "one"]


@pytest.mark.parametrize(
    "variable",
    [
        "AWS_PROFILE=work",
        "AWS_DEFAULT_PROFILE=work",
        "AWS_ENDPOINT_URL_S3=http://127.0.0.1:2",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true",
        "AWS_SESSION_TOKEN=x",
        "AWS_USE_FIPS_ENDPOINT=true",
        "no_proxy=example.com",
    ],
)
def test_the_shells_variables_do_not_reach_a_lakes_clients(variable: str) -> None:
    name, value = variable.split("=")
    shell = {"http_proxy": "http://127.0.0.1:3", name: value}
    with patch.dict(os.environ, shell), patch.object(boto3, "DEFAULT_SESSION", None):
        use_local_aws(endpoints("one"))
        client: Any = boto3.client("s3")
        assert client.meta.endpoint_url == "http://127.0.0.1:1"
        assert client._request_signer._credentials.token is None
        assert get_environ_proxies(client.meta.endpoint_url) == {}
