"""The plugin of MSK Connect: Debezium's jars, ours, and what resolves secrets, as one zip.

The jars come from pom.xml by `make plugins`; nothing is fetched here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdclake.errors import InputError
from cdclake.packing import PROJECT, Packed, pack

JARS = PROJECT / "jars"
_CONNECTOR, _PROVIDER = "debezium", "secrets"  # profiles of pom.xml
_OURS = "cdclake-connect.jar"  # also holds whom the driver trusts


def build_plugin(provider: Path | None = None, *, jars: Path = JARS) -> Packed:
    """The plugin, of equal bytes for equal jars.

    `provider` is a jar that resolves secrets in place of ours and AWS's SDK. InputError, which says
    what to run, if jars are missing.
    """
    return pack("cdclake-connect", {n: f.read_bytes() for n, f in _files(provider, jars).items()})


def _files(provider: Path | None, jars: Path) -> dict[str, Path]:
    if provider is None:
        found = [*_folder(jars / _CONNECTOR), *_folder(jars / _PROVIDER)]
    else:
        found = [*_folder(jars / _CONNECTOR), jars / _PROVIDER / _OURS, provider]
    files = {file.name: file for file in found}
    if len(files) < len(found):
        raise InputError("two jars of the plugin have the same name", "rename the provider's jar")
    return files


def _folder(folder: Path) -> Iterator[Path]:
    found = list(folder.glob("*.jar"))
    if not found:
        raise InputError(f"no connector jars in {folder}", "run `make plugins`")
    yield from found
