"""Version of the pipeline file's format, which `cdclake migrate` compares with the current one."""

from __future__ import annotations

from pathlib import Path

from cdclake.config.document import Document
from cdclake.config.key_reference import spelled
from cdclake.config.problems import InvalidPipeline, Problem
from cdclake.config.resolve import load_file
from cdclake.config.yaml_reader import read_document

CURRENT_VERSION = 1  # the only one so far, so that no file has to be rewritten


def check_current(path: Path) -> int:
    """Return the version of a valid file, which is the current one.

    Raises:
        InvalidPipeline: the version is unknown or missing, or the file has other problems. Of a
            file of another version only that is reported: it may have other keys.
    """
    document = read_document(path)
    if document.values and (problem := _version_problem(document)):
        raise InvalidPipeline(str(path), [problem])
    load_file(path)
    return CURRENT_VERSION


def _version_problem(document: Document) -> Problem | None:
    version = document.get("version")
    if type(version) is int and version == CURRENT_VERSION:
        return None
    written = f"`version: {CURRENT_VERSION}`"
    if version is None:
        remedy = f"add {written}, and correct what `cdclake validate` reports"
        return document.problem(("version",), "`version` is missing", remedy)
    shown = repr(version) if isinstance(version, str) else spelled(version)
    message = f"`version` is {shown}, and this cdclake reads version {CURRENT_VERSION} only"
    remedy = f"write {written}"
    if type(version) is int:
        remedy = f"install the cdclake that wrote the file, or {remedy} and correct what"
        remedy += " `cdclake validate` reports"
    return document.problem(("version",), message, remedy)
