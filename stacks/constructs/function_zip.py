"""Functions as zips: each has its own code and the modules of `cdclake` that all share."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.packing import PACKAGE, Packed, modules, pack

_NOTHING: Mapping[str, bytes] = {}


def build_function(module: str, files: Mapping[str, bytes] = _NOTHING) -> Packed:
    """`lambda/<module>/<module>.py` with what it shares and `files`; equal input, equal bytes."""
    code = PACKAGE / "functions" / module / f"{module}.py"
    return pack(module, {**modules(), code.name: code.read_bytes(), **files})
