"""Clients of several lakes in one process."""

import os
from typing import Any
from unittest.mock import patch

import boto3

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
