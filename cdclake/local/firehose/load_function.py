"""The Lambda functions as modules, each under the name that its zip has on Lambda."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[2] / "functions"


def load(name: str) -> ModuleType:
    """The module `lambda/<name>/<name>.py`, loaded anew."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / name / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # as an import would
    spec.loader.exec_module(module)
    return module
