"""The plugin's zip: what the local worker loads, once each, and the same bytes twice."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from cdclake import zip_files
from cdclake.debezium.avro_converter import CONVERTER, plugin_profile
from cdclake.debezium.connector import MASK_CONVERTER
from cdclake.debezium.worker import OWN_PROVIDER, RDS_CERTIFICATES
from cdclake.errors import InputError
from cdclake.local.components.connect_plugins import DEBEZIUM as PLUGIN
from cdclake.places import JARS
from cdclake.stacks.bundles import build_plugin

OURS = "cdclake-connect.jar"


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "built")
    return tmp_path


def test_it_holds_what_the_local_worker_loads(built):
    local = sorted(file.name for profile in PLUGIN for file in (JARS / profile).iterdir())
    assert names(build_plugin().path) == local


def test_no_library_is_in_it_twice(built):
    """Two versions side by side: which of them is loaded would be the file system's choice."""
    libraries = [re.sub(r"-\d[\w.]*[.]jar$", "", name) for name in names(build_plugin().path)]
    assert {"debezium-connector-postgres", "postgresql", "secretsmanager"} <= set(libraries)
    assert len(libraries) == len(set(libraries))


@pytest.mark.parametrize("registry", ["glue", "http://registry:8080"])
def test_a_converter_for_avro_is_behind_all_other_jars(built, registry):
    """Connect loads jars in the order of their paths, and the converters' libraries are older."""
    profile = plugin_profile(registry)
    held = sorted(names(build_plugin(converter=profile).path))
    own = sorted(f"{profile}/{file.name}" for file in (JARS / profile).iterdir())
    assert held == sorted(names(build_plugin().path)) + own


def test_our_provider_is_in_it_and_announced_to_connect(built):
    with zipfile.ZipFile(build_plugin().path) as archive, archive.open(OURS) as jar:
        provider = zipfile.ZipFile(jar)
        listed = provider.read(
            "META-INF/services/org.apache.kafka.common.config.provider.ConfigProvider"
        )
        assert listed.decode().split() == [OWN_PROVIDER]
        held = set(provider.namelist())
    for named in (OWN_PROVIDER, RDS_CERTIFICATES, MASK_CONVERTER, CONVERTER):
        assert named.replace(".", "/") + ".class" in held


def test_equal_jars_give_equal_bytes_whenever_they_were_fetched(built, monkeypatch):
    for profile in PLUGIN:
        (built / "jars" / profile).mkdir(parents=True)
        for file in sorted((JARS / profile).iterdir(), reverse=True):
            (built / "jars" / profile / file.name).write_bytes(file.read_bytes())
    first = build_plugin()
    monkeypatch.setattr(zip_files, "BUILT", built / "again")
    second = build_plugin(jars=built / "jars")
    assert (first.digest, first.path.name) == (second.digest, second.path.name)
    assert first.path.read_bytes() == second.path.read_bytes()


def test_another_jar_gives_another_name(built):
    provider = built / "msk-config-providers-all.jar"
    provider.write_bytes(b"of AWS")
    own, other = build_plugin(), build_plugin(provider)
    assert own.digest != other.digest
    assert provider.name in names(other.path)
    assert OURS in names(other.path)  # it also says whom the driver trusts
    assert not any(name.startswith("secretsmanager-") for name in names(other.path))


def test_without_the_jars_it_says_what_to_run(built):
    with pytest.raises(InputError, match=r"run `make plugins`"):
        build_plugin(jars=built)
