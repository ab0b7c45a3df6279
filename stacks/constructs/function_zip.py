"""Functions as zips: each has its own code and ours that it shares, all of `cdclake` but `config`.

`config` needs pydantic; functions read the resolved plan.
"""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.packing import PROJECT, Packed, pack

_SHARED = PROJECT / "cdclake"
_LEFT_OUT = "config"
_NOTHING: Mapping[str, bytes] = {}


def build_function(module: str, files: Mapping[str, bytes] = _NOTHING) -> Packed:
    """`lambda/<module>/<module>.py` with what it shares and `files`; equal input, equal bytes."""
    code = PROJECT / "lambda" / module / f"{module}.py"
    return pack(module, {**_shared_code(), code.name: code.read_bytes(), **files})


def _shared_code() -> dict[str, bytes]:
    modules = {module.relative_to(_SHARED): module for module in _SHARED.rglob("*.py")}
    return {
        f"cdclake/{name.as_posix()}": module.read_bytes()
        for name, module in modules.items()
        if name.parts[0] != _LEFT_OUT
    }
