"""The plugin of MSK Connect: Debezium's jars and a provider of secrets, as one zip.

Equal jars give equal bytes. They come from pom.xml by `make plugins`; nothing is fetched here.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from cdclake.errors import InputError

PROJECT = Path(__file__).resolve().parents[1]
JARS = PROJECT / "jars"
BUILT = PROJECT / "build" / "plugins"
_CONNECTOR, _PROVIDER = "debezium", "secrets"  # profiles of pom.xml
_OURS = "cdclake-connect.jar"  # also holds whom the driver trusts
_EPOCH = (1980, 1, 1, 0, 0, 0)
_HASH_DIGITS = 12


@dataclass(frozen=True, slots=True)
class PluginZip:
    """The file, and what tells its content from any other: part of the plugin's name."""

    path: Path
    digest: str


def build_plugin(provider: Path | None = None, *, jars: Path = JARS) -> PluginZip:
    """The zip below build/, made anew unless it is there.

    `provider` is a jar that resolves secrets in place of ours and AWS's SDK. InputError, which says
    what to run, if jars are missing.
    """
    content = _zipped(_files(provider, jars))
    digest = hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]
    target = BUILT / f"cdclake-connect-{digest}.zip"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".tmp")
        fresh.write_bytes(content)
        fresh.replace(target)
    return PluginZip(target, digest)


def _files(provider: Path | None, jars: Path) -> dict[str, Path]:
    if provider is None:
        found = [*_folder(jars / _CONNECTOR), *_folder(jars / _PROVIDER)]
    elif provider.is_file():
        found = [*_folder(jars / _CONNECTOR), jars / _PROVIDER / _OURS, provider]
    else:
        raise InputError(
            f"aws: connect: provider_jar: there is no {provider}",
            "write the path of the jar from the project's folder, or leave the key out",
        )
    files = {file.name: file for file in found}
    if len(files) < len(found):
        raise InputError("two jars of the plugin have one name", "rename the provider's")
    return files


def _folder(folder: Path) -> Iterator[Path]:
    found = list(folder.glob("*.jar"))
    if not found:
        raise InputError(f"the connector's jars are not in {folder}", "run `make plugins`")
    yield from found


def _zipped(files: dict[str, Path]) -> bytes:
    """Stored, not compressed: jars are, and other versions of zlib would write other bytes."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, file in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()
