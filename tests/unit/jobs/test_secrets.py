"""Secrets reach a job by reference only."""

import pytest

from cdclake.errors import InputError
from cdclake.jobs.runtime.secrets import resolve_secret


def test_a_reference_is_looked_up(tmp_path):
    file = tmp_path / "secrets.properties"
    file.write_text("password=a=b:c\nmask_salt=s\n")
    assert resolve_secret(f"${{file:{file}:password}}") == "a=b:c"
    with pytest.raises(InputError, match="has no 'other'"):
        resolve_secret(f"${{file:{file}:other}}")


def test_a_value_in_its_place_is_refused_and_not_repeated():
    with pytest.raises(InputError) as refused:
        resolve_secret("hunter2")
    assert "hunter2" not in str(refused.value)
