"""Each function's zip holds all of ours that it imports: it is imported with nothing else of ours.

Beside it lies what Lambda's Python brings, and for packages of another processor this machine's.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from cdclake import zip_files
from cdclake.config.deployment import load_deployment
from cdclake.config.resolve import load_plan
from cdclake.plan import Plan
from cdclake.stacks.bundles import (
    build_firehose_changes,
    build_firehose_puts,
    build_firehose_redrive,
    build_firehose_redrive_puts,
    build_firehose_requests,
    build_firehose_unwrap,
    build_function,
    build_preparation,
)
from cdclake.zip_files import BuiltZip
from tests.source_tree import PROJECT

LAMBDAS = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six")
FOREIGN = ("psycopg", "psycopg_binary")
IMPORT = "import sys; sys.path += sys.argv[1:3]; import {0}; print({0}.handler.__module__)"
PUT_TABLE = load_plan(PROJECT / "pipelines" / "puts.yaml").puts[0]
BUILDERS: dict[str, Callable[[Plan], BuiltZip]] = {
    "custom_resources": lambda plan: build_function("custom_resources"),
    "firehose_changes": build_firehose_changes,
    "firehose_redrive": build_firehose_redrive,
    "firehose_redrive_puts": build_firehose_redrive_puts,
    "firehose_unwrap": build_firehose_unwrap,
    "firehose_requests": lambda plan: build_firehose_requests(),
    "firehose_puts": lambda plan: build_firehose_puts(PUT_TABLE, PROJECT),
    "prepare_source": build_preparation,
    "connector_keeper": lambda plan: build_function("connector_keeper"),
    "stream_keeper": lambda plan: build_function("stream_keeper"),
}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "built")
    return load_deployment(PROJECT / "pipelines" / "shop.yaml").plan


def packages(folder: Path, names: Sequence[str]) -> Path:
    """A folder with these installed packages and no others."""
    folder.mkdir()
    for name in names:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None
        installed = Path(spec.origin)
        if installed.name == "__init__.py":
            (folder / name).symlink_to(installed.parent)
        else:
            (folder / installed.name).symlink_to(installed)
    return folder


def imported(module: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", "-c", IMPORT.format(module), *map(str, folders)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def unpacked(built: BuiltZip, folder: Path) -> Path:
    """As Lambda has it."""
    with zipfile.ZipFile(built.path) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize("module", BUILDERS)
def test_a_zip_is_imported_with_nothing_else_of_ours(plan, tmp_path, module):
    beside = packages(tmp_path / "beside", (*LAMBDAS, *FOREIGN, "typing_extensions"))
    own = unpacked(BUILDERS[module](plan), tmp_path / "own")
    # Those of this processor first; of all else the function has its own.
    done = imported(module, beside, own)
    assert (done.returncode, done.stdout.strip()) == (0, module), done.stderr


def test_a_zip_that_lacks_what_it_imports_is_noticed(plan, tmp_path):
    beside = packages(tmp_path / "beside", LAMBDAS)
    own = unpacked(BUILDERS["custom_resources"](plan), tmp_path / "own")
    (own / "cdclake" / "cloudformation.py").unlink()
    assert "cdclake.cloudformation" in imported("custom_resources", beside, own).stderr


def test_every_function_is_tried():
    assert set(BUILDERS) == {folder.name for folder in (PROJECT / "lambda").iterdir()}


def test_no_zip_holds_what_only_an_operators_machine_runs() -> None:
    """Or each change of a command would be a new deployment of every function and job."""
    shared = {Path(name).parts[1] for name in zip_files.modules()}
    assert shared & {"cli", "cost", "deployed", "local", "stacks"} == set()
    assert {"naming.py", "debezium", "iceberg", "postgres"} <= shared
