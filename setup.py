"""What the build of the wheel needs beyond pyproject.toml: the jars that are built from java/."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

RESOURCES = Path(__file__).resolve().parent / "cdclake" / "resources"


class BuildWithJars(build_py):
    """Copy of the package's files that refuses links to files that are not there yet."""

    def run(self) -> None:
        """Refuse the build without `make setup`: setuptools leaves such links out in silence."""
        missing = [link.readlink() for link in RESOURCES.iterdir() if not link.exists()]
        if missing:
            raise SystemExit(f"{RESOURCES / missing[0]} is missing; run `make setup` first")
        super().run()


setup(cmdclass={"build_py": BuildWithJars})
