"""Secrets reach a job by reference only."""

from unittest.mock import patch

import boto3
import pytest
from moto import mock_aws

from cdclake.errors import InputError
from cdclake.jobs.runtime.secrets import resolve_secret


def test_a_reference_is_looked_up(tmp_path):
    file = tmp_path / "secrets.properties"
    file.write_text("password=a=b:c\nmask_salt=s\n")
    assert resolve_secret(f"${{file:{file}:password}}") == "a=b:c"
    with pytest.raises(InputError, match="has no 'other'"):
        resolve_secret(f"${{file:{file}:other}}")


def test_a_reference_to_secrets_manager_is_looked_up_there():
    session = boto3.Session("test", "test", region_name="eu-west-1")
    with mock_aws(), patch.object(boto3, "DEFAULT_SESSION", session):
        secrets = boto3.client("secretsmanager")
        secrets.create_secret(Name="shop/source", SecretString='{"password": "a:b"}')
        assert resolve_secret("${secretsmanager:shop/source:password}") == "a:b"


def test_a_value_in_its_place_is_refused_and_not_repeated():
    with pytest.raises(InputError) as refused:
        resolve_secret("hunter2")
    assert "hunter2" not in str(refused.value)
