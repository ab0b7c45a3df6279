"""The packages of the jobs that ask the source: what Glue's pip finds, and finds nowhere else."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from cdclake import zip_files
from cdclake.stacks.bundles import JOB_WHEELS, JOB_WHEELS_SUFFIX, build_job_wheels
from tests.source_tree import PROJECT


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(zip_files, "BUILT", tmp_path)
    return build_job_wheels()


def pinned(text: str) -> dict[str, str]:
    found = re.findall(r"^([\w-]+)==(\S+)", text, re.MULTILINE)
    return {name.replace("_", "-"): version for name, version in found}


def test_it_holds_a_wheel_for_each_locked_package_and_lists_them(built):
    with zipfile.ZipFile(built) as archive:
        names, listed = archive.namelist(), archive.read("wheels/requirements.txt").decode()
    wheels = [name for name in names if name.endswith(".whl")]
    assert set(names) == {*wheels, "wheels/requirements.txt"}
    assert pinned(listed) == pinned(JOB_WHEELS.lock.read_text())
    assert len(wheels) == len(pinned(listed))


def test_they_are_the_packages_that_the_local_lake_runs():
    local = pinned(re.sub(r"\[\w+\]", "", (PROJECT / "requirements.lock").read_text()))
    deployed = pinned(JOB_WHEELS.lock.read_text())
    assert {"duckdb", "psycopg"} <= set(deployed)
    assert deployed == {name: local[name] for name in deployed}


def test_they_are_for_glues_python_and_processor(built):
    with zipfile.ZipFile(built) as archive:
        wheels = [Path(name) for name in archive.namelist() if name.endswith(".whl")]
    assert wheels
    for wheel in wheels:
        python, abi, platform = wheel.stem.split("-")[2:]
        assert (python, abi) in {("cp311", "cp311"), ("py3", "none")}
        assert platform == "any" or "x86_64" in platform


def test_equal_wheels_give_equal_bytes(built, tmp_path, monkeypatch):
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "again")
    again = build_job_wheels()
    assert (again.name, again.read_bytes()) == (built.name, built.read_bytes())


def test_the_job_that_compares_installs_them_and_asks_no_index(created):
    [job] = [
        job["Properties"]
        for job in created.resources("AWS::Glue::Job")
        if job["Properties"]["Name"] == "shop-verify_tables"
    ]
    told = job["DefaultArguments"]
    assert str(told["--additional-python-modules"]).endswith(f"{JOB_WHEELS_SUFFIX}']]}}")
    assert told["--python-modules-installer-option"] == "--no-index"
    assert told["--login"] == "shop/source"
    assert "verify-full" in str(told["--source"])
