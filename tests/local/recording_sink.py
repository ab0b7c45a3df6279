"""A Connect plugin made for the tests, compiled from `RecordingSink.java`."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from cdclake.places import JARS

SOURCE = Path(__file__).with_name("RecordingSink.java")


def plugin_zip(folder: Path) -> Path:
    """Compile the sink, and return the zip with its jar, which does not list its plugins."""
    classes, jar, archive = folder / "classes", folder / "recording-sink.jar", folder / "sink.zip"
    command = ["javac", "--release", "17", "-cp", f"{JARS / 'connect'}/*", "-d", str(classes)]
    subprocess.run([*command, str(SOURCE)], check=True)
    with zipfile.ZipFile(jar, "w") as packed:
        for path in sorted(classes.rglob("*.class")):
            packed.write(path, str(path.relative_to(classes)))
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(jar, f"recording-sink/lib/{jar.name}")
    return archive
