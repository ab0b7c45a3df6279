"""What functions have of `cdclake`: all but `config`, which needs pydantic."""

from __future__ import annotations

from cdclake.packing import PROJECT

_SHARED = PROJECT / "cdclake"
_LEFT_OUT = "config"  # functions read the resolved plan


def shared_code() -> dict[str, bytes]:
    """The modules by their names in a zip."""
    modules = {module.relative_to(_SHARED): module for module in _SHARED.rglob("*.py")}
    return {
        f"cdclake/{name.as_posix()}": module.read_bytes()
        for name, module in modules.items()
        if name.parts[0] != _LEFT_OUT
    }
