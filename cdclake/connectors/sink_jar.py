"""Jar of cdclake's transform in the plugin of the Iceberg sink.

The whole jar of cdclake has Debezium's superclasses and a provider of secrets, which a sink's
plugin lacks, and each change of it would replace the deployed sinks.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from cdclake.errors import InputError
from cdclake.places import fetch_remedy
from cdclake.zip_files import zipped

SINK_JAR = "cdclake-sink.jar"
DELETED_KEYS = "cdclake.connect.DeletedKeys"  # class of the transform
_SERVICES = "META-INF/services/org.apache.kafka.connect.transforms.Transformation"


def build_sink_jar(jar: Path) -> bytes:
    """Return the jar with the transform from cdclake's jar; raise InputError if that lacks it."""
    name = f"{DELETED_KEYS.replace('.', '/')}.class"
    try:
        with zipfile.ZipFile(jar) as archive:
            content = archive.read(name)
    except (KeyError, FileNotFoundError):
        raise InputError(f"{jar} has no {name}", fetch_remedy(jar.parent, "setup")) from None
    return zipped({name: content, _SERVICES: f"{DELETED_KEYS}\n".encode()})
