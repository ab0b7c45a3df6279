"""Files of a new user's project, from the templates in `template/`.

A template's name ends with `.in`; `dot.` at its beginning stands for a dot. Placeholders are upper
case words between at signs, which the files' formats do not use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cdclake import __version__
from cdclake.errors import InputError
from cdclake.places import RESOURCES

_TEMPLATE = Path(__file__).resolve().parent / "template"
_APP = 'PATH="${VIRTUAL_ENV:-.venv}/bin:$PATH" python3 app.py'
_SCHEMA_LINE = "# yaml-language-server: $schema=pipeline.schema.json\n"
_EXAMPLE, _ENVIRONMENTS = "pipelines/example.yaml", "pipelines/environments.yaml"


def project_files(name: str, schema: str, pipeline: str | None) -> dict[str, str]:
    """Return the project's files by their paths.

    Args:
        name: of the project and its pipeline.
        schema: the JSON Schema of pipeline files.
        pipeline: text of the pipeline file; None: an example with one table.
    """
    cli = json.loads((RESOURCES / "package.json").read_text("utf-8"))["devDependencies"]["aws-cdk"]
    values = {
        "NAME": name,
        "DATABASE": name.replace("-", "_"),
        "VERSION": __version__,
        "CDK_CLI": cli,
    }
    files = {path: _filled(text, values) for path, text in sorted(_templates().items())}
    example, environments = files.pop(_EXAMPLE), files.pop(_ENVIRONMENTS)
    return {
        **files,
        "cdk.json": _cdk_settings(),
        "pipelines/pipeline.schema.json": schema,
        f"pipelines/{name}.yaml": _SCHEMA_LINE + (pipeline or example) + environments,
    }


def write_project(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files; raise InputError if the folder is not empty or cannot be written."""
    check_empty(folder)
    try:
        for path, text in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename}: {error.strerror}",
            "check the folder and your permissions",
        ) from None


def check_empty(folder: Path) -> None:
    """Raise InputError if the folder exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} exists and is not an empty folder", "choose another name, or remove it"
        )


def _templates() -> dict[str, str]:
    found = [path for path in _TEMPLATE.rglob("*.in") if path.is_file()]
    return {_path_of(file): file.read_text("utf-8") for file in found}


def _path_of(template: Path) -> str:
    path = template.relative_to(_TEMPLATE).as_posix().removesuffix(".in")
    return f".{path.removeprefix('dot.')}" if path.startswith("dot.") else path


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _cdk_settings() -> str:
    """Return `cdk.json` with this version's feature flags, which decide what templates contain."""
    settings = json.loads((RESOURCES / "cdk.json").read_text("utf-8"))
    flags = {name: value for name, value in settings["context"].items() if name.startswith("@")}
    return json.dumps({**settings, "app": _APP, "context": flags}, indent=2) + "\n"
