"""Plugins of Connect: Debezium's with cdclake's part, and those of declared connectors.

The home keeps the declared ones with a digest of their files. It is in the worker's environment,
so the supervisor restarts the worker when a plugin changes, and only then.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cdclake.connectors.declared import ICEBERG_SINK, DeclaredConnector
from cdclake.connectors.sink_jar import SINK_JAR, build_sink_jar
from cdclake.errors import InputError
from cdclake.jar_cache import ensure_fetched
from cdclake.jar_lock import OWN_JARS
from cdclake.local.components.installed import jar_folder
from cdclake.local.process.home import Home, read_json, write_atomically
from cdclake.places import JARS, fetch_remedy, user_project

DEBEZIUM = ("debezium", "secrets")  # the profiles of pom.xml whose jars are one plugin
_KEY = "CDCLAKE_PLUGINS"  # in the worker's environment


def plugin_place(plugin: str) -> Path:
    """Return the folder or zip of a declared plugin; raise InputError if it has no jars."""
    if plugin == ICEBERG_SINK:
        place = ensure_fetched(JARS / ICEBERG_SINK)
        if not any(place.glob("*.jar")):
            raise InputError(
                f"the plugin {ICEBERG_SINK} is not in {place}", fetch_remedy(place, "connectors")
            )
        return place
    place = user_project() / plugin
    is_zip = place.is_file() and zipfile.is_zipfile(place)
    if not is_zip and not any(place.rglob("*.jar")):
        raise InputError(
            f"the plugin {place} is neither a folder with jars nor a zip",
            "correct `plugin:`, a path relative to the project's folder",
        )
    return place


def declare_plugins(home: Home, connectors: Sequence[DeclaredConnector]) -> None:
    """Keep which plugins the worker has to load; it loads them when it starts."""
    places = {connector.plugin: plugin_place(connector.plugin) for connector in connectors}
    declared = {str(place): _digest(place) for place in places.values()}
    write_atomically(_file(home), json.dumps(declared, indent=1, sort_keys=True))


def forget_plugins(home: Home) -> None:
    """Forget the declared plugins, with the lake that needed them."""
    _file(home).unlink(missing_ok=True)


def write_plugins(home: Home, converter: str = "") -> Path:
    """Write the folder of plugins, as links to the jars' folders, and return it.

    `converter` is the profile of pom.xml whose Avro converter Debezium's plugin includes, or "".
    """
    plugins = home.run / "plugins"
    shutil.rmtree(plugins, ignore_errors=True)
    own = plugins / "cdclake"
    own.mkdir(mode=0o700, parents=True)
    for profile in (*DEBEZIUM, *([converter] if converter else [])):
        (own / profile).symlink_to(jar_folder(profile))
    for number, place in enumerate(map(Path, read_json(_file(home)))):
        target = plugins / f"{number}-{place.stem}"
        if place.is_dir() and _is_iceberg_sink(place):
            target.mkdir()
            (target / "jars").symlink_to(place)
            (target / SINK_JAR).write_bytes(_sink_jar())
        elif place.is_dir():
            target.symlink_to(place)
        elif place.exists():  # `up FILE` refuses a plugin that is gone
            with zipfile.ZipFile(place) as archive:
                archive.extractall(target)
    return plugins


def variables(home: Home) -> dict[str, str]:
    """Return the digest of the declared plugins for the worker's environment; {} without any."""
    declared = read_json(_file(home))
    if not declared:
        return {}
    text = json.dumps(declared, sort_keys=True)
    return {_KEY: hashlib.sha256(text.encode()).hexdigest()[:16]}


def discovery(home: Home) -> str:
    """Return how the worker finds plugins: by the lists in the jars, if all of them have one."""
    declared = read_json(_file(home))
    is_listed = all(_is_iceberg_sink(Path(place)) for place in declared)
    return "service_load" if is_listed else "hybrid_warn"


def _file(home: Home) -> Path:
    return home.path / "connect-plugins.json"


def _is_iceberg_sink(place: Path) -> bool:
    return place == JARS / ICEBERG_SINK


def _sink_jar() -> bytes:
    return build_sink_jar(jar_folder("secrets") / OWN_JARS["secrets"])


def _digest(place: Path) -> str:
    """Compute a digest of the plugin's files by name, size and time."""
    lines = [f"{name} {size} {time}" for name, size, time in sorted(_files(place))]
    if _is_iceberg_sink(place):
        lines.append(hashlib.sha256(_sink_jar()).hexdigest())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _files(place: Path) -> Iterator[tuple[str, int, int]]:
    for path in place.rglob("*") if place.is_dir() else [place]:
        if path.is_file():
            seen = path.stat()
            yield str(path.relative_to(place.parent)), seen.st_size, seen.st_mtime_ns
