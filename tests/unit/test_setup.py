"""The house: what setup refuses, and that the locked files agree with each other."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.errors import InputError
from cdclake.stacks.bundles import PREPARATION_WHEELS
from scripts import fetch_jars

PROJECT = Path(__file__).resolve().parents[2]


def put_tool(folder: Path, name: str, says: str) -> None:
    tool = folder / name
    tool.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    tool.chmod(0o755)


@pytest.mark.parametrize(
    ("java", "maven", "refused"),
    [
        ('openjdk version "17.0.15"', "Apache Maven 3.8.7", []),
        ('openjdk version "21" 2023-09-19', "Apache Maven 4.0.0", []),
        ('openjdk version "25.0.1" 2025-10-21 LTS', "Apache Maven 3.9.9", ["Java 25"]),
        ('openjdk version "11.0.2"', "Apache Maven 3.8.7", ["Java 11"]),
        ('java version "1.8.0_402"', "Apache Maven 3.5.4", ["Java 8", "Maven 3.5"]),
        (None, None, ["java was not found", "mvn was not found"]),
        ("command not found", "broken", ["java was not found", "mvn was not found"]),
    ],
)
def test_every_missing_tool_is_named_at_once(tmp_path, monkeypatch, java, maven, refused):
    for name, says in (("java", java), ("mvn", maven)):
        if says is not None:
            put_tool(tmp_path, name, says)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    problems = list(fetch_jars.missing_tools())
    assert len(problems) == len(refused)
    assert all(text in line for text, line in zip(refused, problems, strict=True))
    assert all("install" in line for line in problems)


@pytest.mark.parametrize(("home", "refused"), [(17, []), (25, ["Java 25"])])
def test_setup_judges_the_java_that_the_lake_uses(tmp_path, monkeypatch, home, refused):
    folder = tmp_path / "jdk/bin"
    folder.mkdir(parents=True)
    put_tool(folder, "java", f'openjdk version "{home}.0.1"')
    put_tool(tmp_path, "java", f'openjdk version "{42 - home}.0.1"')
    put_tool(tmp_path, "mvn", "Apache Maven 3.9.9")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(folder.parent))
    assert [line[: len("Java 25")] for line in fetch_jars.missing_tools()] == refused


def test_packages_that_cannot_be_fetched_leave_no_stamp(tmp_path, monkeypatch):
    put_tool(tmp_path, "python", "no matching distribution")
    with (tmp_path / "python").open("a") as tool:
        tool.write("exit 1\n")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    wheels = replace(PREPARATION_WHEELS, folder=tmp_path / "wheels")
    for _ in range(2):
        with pytest.raises(InputError, match=r"no matching distribution; check the network"):
            wheels.fetch()
    assert not (tmp_path / "wheels").exists()


@pytest.mark.parametrize("target", ["setup", "hudi-jars", "trino-jars"])
def test_ci_fails_without_what_the_tests_need(tmp_path, monkeypatch, target):
    asked = tmp_path / "asked"
    make = tmp_path / "make"
    make.write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\ncase " $* " in *" {target} "*) exit 2;; esac\n'
    )
    make.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    done = subprocess.run([PROJECT / ".ci" / "run"], check=False)
    assert done.returncode == 2
    assert "test" not in asked.read_text().split()


def pins(name: str) -> dict[str, str]:
    text = (PROJECT / name).read_text()
    return dict(re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==([^ ]+) \\$", text, re.MULTILINE))


@pytest.mark.parametrize(
    "other",
    [
        "requirements.txt",
        "glue_jobs/requirements.txt",
        "lambda/prepare_source/requirements.txt",
    ],
)
def test_the_locks_agree_where_they_overlap(other):
    lock, deployed = pins("requirements.lock"), pins(other)
    shared = lock.keys() & deployed.keys()
    assert shared
    assert {name: lock[name] for name in shared} == {name: deployed[name] for name in shared}


def test_the_deploy_set_holds_what_the_mission_names():
    named = {
        "aws-cdk-lib", "awsgluedataplanepython", "boto3", "constructs", "moto", "pyspark", "pytest",
    }  # fmt: skip
    assert named <= pins("requirements.txt").keys()


def test_every_declared_version_is_the_locked_one():
    lock = pins("requirements.lock")
    text = (PROJECT / "pyproject.toml").read_text()
    declared = re.findall(r'^    "([A-Za-z0-9._-]+)(?:\[.*\])?==([^"]+)",$', text, re.MULTILINE)
    assert declared
    normal = {re.sub(r"[._]", "-", name.lower()): version for name, version in declared}
    assert normal == {name: lock.get(name) for name in normal}
