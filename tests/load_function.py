"""The Lambda functions as modules, each under the name that its zip has on Lambda."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[1] / "lambda"


def load(name: str) -> ModuleType:
    """Load `lambda/<name>/<name>.py` again."""
    return load_file(FOLDER / name / f"{name}.py")


def load_file(file: Path) -> ModuleType:
    """Load the function's file as an import on Lambda would, from `lambda/` or an unpacked zip."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
