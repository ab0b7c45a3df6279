"""Zips to deploy: functions with their shared modules, wheels, and the connector's plugin.

Wheels and optional jars are fetched when they are first needed, in an installation all jars.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cdclake.connectors.declared import ICEBERG_SINK, DeclaredConnector
from cdclake.connectors.sink_jar import SINK_JAR, build_sink_jar
from cdclake.errors import InputError
from cdclake.jar_cache import ensure_fetched
from cdclake.jar_lock import OWN_JARS, parse_jar_lock, unlocked_jars
from cdclake.places import BUILD, JAR_LOCK, JARS, PACKAGE, RESOURCES, fetch_remedy, user_project
from cdclake.plan import Plan
from cdclake.puts import put_table
from cdclake.puts.put_table import PutStream
from cdclake.stacks.locked_wheels import LockedWheels
from cdclake.web_logs.model import FUNCTION
from cdclake.zip_files import BuiltZip, modules, pack, pack_files, transform_files

FIREHOSE_CHANGES = "firehose_changes"
PREPARE_SOURCE = "prepare_source"
AUTHORITIES = RESOURCES / "rds-ca.pem"
_CONNECTOR, _PROVIDER = "debezium", "secrets"  # profiles of pom.xml

# Glue 5.1 runs Python 3.11 on Amazon Linux 2023, whose C library is 2.34.
JOB_WHEELS = LockedWheels(
    lock=PACKAGE / "jobs" / "requirements.txt",
    folder=BUILD / "wheels" / "glue_jobs",
    python="3.11",
    platforms=("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
)
JOB_WHEELS_SUFFIX = ".gluewheels.zip"  # Glue recognizes a zip of wheels by this suffix
_WHEELS_FOLDER = "wheels"
# Lambda's Python 3.14 runs on Amazon Linux 2023, whose C library is 2.34.
PREPARATION_WHEELS = LockedWheels(
    lock=PACKAGE / "functions" / PREPARE_SOURCE / "requirements.txt",
    folder=BUILD / "wheels" / PREPARE_SOURCE,
    python="3.14",
    platforms=("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
)

_NOTHING: Mapping[str, bytes] = {}


def build_function(module: str, files: Mapping[str, bytes] = _NOTHING) -> BuiltZip:
    """Pack `lambda/<module>/<module>.py` with the shared modules and `files`, reproducibly."""
    code = PACKAGE / "functions" / module / f"{module}.py"
    return pack(module, {**modules(), code.name: code.read_bytes(), **files})


def build_firehose_changes(plan: Plan) -> BuiltZip:
    """Pack the function that decodes changes for Firehose; Lambda's Python includes boto3."""
    return build_function(FIREHOSE_CHANGES, {"plan.json": plan.to_json().encode()})


def build_firehose_redrive(plan: Plan) -> BuiltZip:
    """Pack the function that redrives failed records; Lambda's Python includes boto3."""
    return build_function("firehose_redrive", {"plan.json": plan.to_json().encode()})


def build_firehose_redrive_puts(plan: Plan) -> BuiltZip:
    """Pack the function that puts failed records again; Lambda's Python includes boto3."""
    return build_function("firehose_redrive_puts", {"plan.json": plan.to_json().encode()})


def build_firehose_unwrap(plan: Plan) -> BuiltZip:
    """Pack the function of the stream that appends redriven rows."""
    return build_function("firehose_unwrap", {"plan.json": plan.to_json().encode()})


def build_firehose_requests() -> BuiltZip:
    """Pack the function that decodes web logs; it is the same for every plan."""
    return build_function(FUNCTION)


def build_firehose_puts(put: PutStream, folder: Path) -> BuiltZip:
    """Pack the function of put records with its tables' columns and the user's transform.

    The transform's folder is relative to `folder`.
    """
    files = {"put_stream.json": put.to_json().encode()}
    if put.transform is not None:
        found = transform_files(folder / put.transform)
        files |= {f"transform/{name}": content for name, content in found.items()}
    return build_function(put_table.FUNCTION, files)


def build_preparation(plan: Plan) -> BuiltZip:
    """Pack the function that prepares the source; raise InputError if pip fails."""
    files = {**dict(_preparation_files()), "plan.json": plan.to_json().encode()}
    return build_function(PREPARE_SOURCE, files)


def build_source_sql() -> BuiltZip:
    """Pack the same code for SQL files: without a plan, so that no change of a table changes it."""
    return build_function(PREPARE_SOURCE, dict(_preparation_files()))


def _preparation_files() -> Iterator[tuple[str, bytes]]:
    for wheel in PREPARATION_WHEELS.files():
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield entry.filename, archive.read(entry)
    yield AUTHORITIES.name, AUTHORITIES.read_bytes()


def build_job_wheels() -> Path:
    """Build the zip of the jobs' wheels; raise InputError if they cannot be fetched."""
    files = JOB_WHEELS.files()
    pins = sorted("==".join(file.name.split("-")[:2]) for file in files)
    packed = {f"{_WHEELS_FOLDER}/{file.name}": file for file in files}
    requirements = {f"{_WHEELS_FOLDER}/requirements.txt": "".join(f"{pin}\n" for pin in pins)}
    return pack_files("cdclake-wheels", packed, requirements).path


def build_plugin(
    provider: Path | None = None, converter: str = "", *, jars: Path = JARS
) -> BuiltZip:
    """Build the connector's plugin, reproducibly; raise InputError if jars are missing.

    `provider` is a jar that resolves secrets, and replaces our provider and the AWS SDK.
    `converter` is the profile of pom.xml with a converter for Avro. Its jars are in a folder behind
    all others, since Connect loads jars in the order of their paths, and they have older libraries.
    """
    files = _plugin_files(provider, jars)
    if converter:
        files |= {f"{converter}/{file.name}": file for file in _jars_of(jars / converter)}
    return pack_files("cdclake-connect", files)


def _plugin_files(provider: Path | None, jars: Path) -> dict[str, Path]:
    if provider is None:
        found = [*_jars_of(jars / _CONNECTOR), *_jars_of(jars / _PROVIDER)]
    else:
        found = [
            *_jars_of(jars / _CONNECTOR),
            ensure_fetched(jars / _PROVIDER) / OWN_JARS[_PROVIDER],
            provider,
        ]
    files = {file.name: file for file in found}
    if len(files) < len(found):
        raise InputError("two jars of the plugin have the same name", "rename the provider's jar")
    return files


def build_connector_plugin(connector: DeclaredConnector, *, jars: Path = JARS) -> BuiltZip:
    """Build the plugin of a declared connector; raise InputError if it is missing.

    With references to secrets it holds our provider too, which MSK Connect does not have.
    """
    found = _declared_files(connector.plugin, jars)
    if connector.secrets:
        found |= {f"{_PROVIDER}/{f.name}": f.read_bytes() for f in _jars_of(jars / _PROVIDER)}
    return pack(f"cdclake-connector-{connector.name}", found)


def _declared_files(plugin: str, jars: Path) -> dict[str, bytes]:
    if plugin == ICEBERG_SINK:
        folder = ensure_fetched(jars / ICEBERG_SINK)
        if not any(folder.glob("*.jar")):
            raise InputError(
                f"the plugin {plugin} is not in {folder}", fetch_remedy(folder, "connectors")
            )
        own = build_sink_jar(jar_of(_PROVIDER, OWN_JARS[_PROVIDER], jars=jars))
        return {file.name: file.read_bytes() for file in _jars_of(folder)} | {SINK_JAR: own}
    place = user_project() / plugin
    if place.is_file() and zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            return {entry.filename: archive.read(entry) for entry in entries}
    found = {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file()
    }
    if not any(name.endswith(".jar") for name in found):
        raise InputError(
            f"the plugin {place} is neither a folder with jars nor a zip",
            "correct `plugin:`, a path relative to the project's folder",
        )
    return found


def jar_of(profile: str, pattern: str, *, jars: Path = JARS) -> Path:
    """Return the profile's jar of that name; raise InputError if it is missing or not locked."""
    found = list(ensure_fetched(jars / profile).glob(pattern))
    if len(found) != 1:
        raise InputError(f"no {pattern} in {jars / profile}", fetch_remedy(jars / profile, "setup"))
    _check_locked(jars / profile, found)
    return found[0]


def _jars_of(folder: Path) -> Iterator[Path]:
    found = list(ensure_fetched(folder).glob("*.jar"))
    if not found:
        raise InputError(f"no connector jars in {folder}", fetch_remedy(folder, "plugins"))
    _check_locked(folder, found)
    yield from found


def _check_locked(folder: Path, jars: Iterable[Path]) -> None:
    if problems := list(unlocked_jars(jars, parse_jar_lock(JAR_LOCK.read_text()))):
        raise InputError("; ".join(problems), fetch_remedy(folder, "setup"))
