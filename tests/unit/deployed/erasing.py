"""Erasures as `forget` registers them, in memory and among the control objects of moto."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest

from cdclake import naming
from cdclake.debezium.position import just_after
from cdclake.debezium.worker import SALT_KEY
from cdclake.erasures import ErasedKeys, Erasures, KeyHash
from cdclake.jobs.control.erasure_register import register_erasure
from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Table
from tests.load_function import load
from tests.unit.deployed.redriving import BUCKET, PREFIX, plan

CONTROL, SALT, SECRET = f"s3://{BUCKET}/control", "grains", "shop/mask"
Key = Sequence[Any]


def in_memory(table: Table, positions: Mapping[Key, str]) -> dict[str, ErasedKeys]:
    """Erased keys of a table with the positions of their erasures, as the register gives them."""
    hashed = KeyHash.of(table.name, SALT)
    erasures = Erasures(hashed.fingerprint)
    for key, position in positions.items():
        erasures = erasures.added([hashed.digest(key)], position)
    return {table.name: ErasedKeys.of(table.name, SALT, erasures)}


def register(
    table: Table, key: Key, position: str, *, salt: str = SALT, uri: str = CONTROL
) -> None:
    """Add a key to the table's register in S3."""
    hashed = KeyHash.of(table.name, salt)
    register_erasure(ObjectStore(uri), hashed, [hashed.digest(key)], position)


def keep_salt() -> None:
    """Store the salt as the source's stack does."""
    boto3.client("secretsmanager").create_secret(
        Name=SECRET, SecretString=json.dumps({SALT_KEY: SALT})
    )


def of_key(table: Table, rows: Sequence[dict[str, Any]], key: Key) -> list[dict[str, Any]]:
    """The rows of a key, in their order."""
    return [row for row in rows if [row[name] for name in table.key] == list(key)]


def above(rows: Sequence[Mapping[str, Any]]) -> str:
    """A position above the rows, and below every later transaction."""
    return str(just_after(max(row[naming.POSITION] for row in rows)))


def with_plan(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **environment: str
) -> ModuleType:
    """Load a function with its plan and environment, as Lambda does."""
    set_to = {"CONTROL": CONTROL, "MASK_SALT": SECRET, "BUCKET": BUCKET, "PREFIX": PREFIX}
    for variable, value in {**set_to, **environment}.items():
        monkeypatch.setenv(variable, value)
    function = load(name)
    (folder / "plan.json").write_text(plan().to_json())
    monkeypatch.setattr(function, "__file__", str(folder / f"{name}.py"))
    return function
