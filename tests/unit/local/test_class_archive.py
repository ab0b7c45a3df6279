"""The archive of Java's classes is only a cache: without one everything runs, too."""

import subprocess
import sys
from pathlib import Path

import pytest

from cdclake.local.components import class_archive
from cdclake.local.process.home import Home


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(class_archive, "ARCHIVES", tmp_path / "archives")
    home = Home(tmp_path / "home")
    home.create()
    return home


def arguments(option: str) -> str:
    assert option.startswith("@")
    return Path(option[1:]).read_text(encoding="utf-8")


def test_the_command_stays_the_same_when_there_is_an_archive(home):
    without = class_archive.option(home, "kafka", "java")
    assert arguments(without) == "-XX:+RecordDynamicDumpInfo"
    assert class_archive.is_missing("kafka", "java")

    archive = class_archive._path("kafka", "java")
    archive.parent.mkdir()
    archive.touch()

    assert class_archive.option(home, "kafka", "java") == without
    assert f'"-XX:SharedArchiveFile={archive}"' in arguments(without)
    assert not class_archive.is_missing("kafka", "java")
    assert class_archive.is_missing("connect", "java")


def test_another_java_has_another_archive(home):
    assert class_archive._path("kafka", "/a/java") != class_archive._path("kafka", "/b/java")


def test_a_process_without_a_jvm_leaves_no_archive(home):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert not class_archive.keep("kafka", "/usr/bin/java", process.pid)
    finally:
        process.communicate()
    assert not class_archive.keep("kafka", "/usr/bin/java", process.pid)
    assert class_archive.is_missing("kafka", "/usr/bin/java")
