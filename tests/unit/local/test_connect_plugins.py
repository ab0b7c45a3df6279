"""Plugins of the local worker: which files it loads, and when that means a restart."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from cdclake.connectors.declared import ICEBERG_SINK, DeclaredConnector
from cdclake.connectors.sink_jar import build_sink_jar
from cdclake.errors import InputError
from cdclake.local.components import connect_plugins
from cdclake.local.components.connect_plugins import (
    declare_plugins,
    discovery,
    plugin_place,
    variables,
    write_plugins,
)
from cdclake.local.process.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.create()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "sink.jar").write_bytes(b"one")
    return tmp_path / "files"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as written:
        written.writestr("lib/other.jar", b"two")
    return tmp_path / "other.zip"


def declared(plugin: Path | str) -> DeclaredConnector:
    return DeclaredConnector(
        name="out", plugin=str(plugin), connector_class="io.example.Out", tables=("orders",)
    )


def test_the_worker_loads_debezium_and_each_declared_plugin(
    home: Home, folder: Path, archive: Path
) -> None:
    declare_plugins(home, [declared(folder), declared(archive)])
    plugins = write_plugins(home)
    found = sorted(path.name for path in plugins.iterdir())
    assert found == ["0-files", "1-other", "cdclake"]
    assert (plugins / "0-files" / "sink.jar").read_bytes() == b"one"
    assert (plugins / "1-other" / "lib" / "other.jar").read_bytes() == b"two"
    assert discovery(home) == "hybrid_warn"
    declare_plugins(home, [])
    assert [path.name for path in write_plugins(home).iterdir()] == ["cdclake"]


def test_the_environment_changes_with_the_files_and_with_nothing_else(
    home: Home, folder: Path
) -> None:
    assert variables(home) == {}
    declare_plugins(home, [declared(folder)])
    first = variables(home)
    declare_plugins(home, [declared(folder), declared(folder)])
    assert variables(home) == first != {}
    (folder / "sink.jar").write_bytes(b"two")
    os.utime(folder / "sink.jar", (1, 1))
    declare_plugins(home, [declared(folder)])
    assert variables(home) != first
    declare_plugins(home, [])
    assert variables(home) == {}


def test_a_plugin_without_jars_is_refused(home: Home, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere.zip"):
        with pytest.raises(InputError, match="neither a folder with jars nor a zip"):
            declare_plugins(home, [declared(place)])
    assert variables(home) == {}


def test_the_iceberg_sink_has_cdclakes_transform(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect_plugins, "JARS", tmp_path)
    (tmp_path / ICEBERG_SINK).mkdir()
    (tmp_path / ICEBERG_SINK / "iceberg.jar").write_bytes(b"one")
    declare_plugins(home, [declared(ICEBERG_SINK)])
    plugin = write_plugins(home) / f"0-{ICEBERG_SINK}"
    assert (plugin / "jars" / "iceberg.jar").read_bytes() == b"one"
    with zipfile.ZipFile(plugin / "cdclake-sink.jar") as jar:
        service, entry = sorted(jar.namelist())
        assert jar.read(service) == b"cdclake.connect.DeletedKeys\n"
        assert entry == "cdclake/connect/DeletedKeys.class"
    assert discovery(home) == "service_load"
    before = variables(home)
    monkeypatch.setattr(connect_plugins, "build_sink_jar", lambda _: b"another")
    declare_plugins(home, [declared(ICEBERG_SINK)])
    assert variables(home) != before


def test_a_jar_without_the_transform_names_the_command(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "old.jar", "w") as old:
        old.writestr("cdclake/connect/Other.class", b"")
    for name in ("old.jar", "none.jar"):
        with pytest.raises(InputError, match="DeletedKeys") as refused:
            build_sink_jar(tmp_path / name)
        assert "make setup" in refused.value.remedy


def test_the_built_in_plugin_names_the_command_that_fetches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect_plugins, "JARS", tmp_path)
    with pytest.raises(InputError, match=r"iceberg-sink is not in .*; run `make connectors`"):
        plugin_place(ICEBERG_SINK)
