"""cdclake: change data capture from PostgreSQL into Iceberg.

For a CDK app, `build` adds the stacks of a pipeline file and returns `LakeHandles` for the app's
other stacks; both need the extra `cdk`. The modules beneath are internal: the core in this package
(names, the plan, SQL text, decisions) uses the standard library only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdclake.stacks.build import build
    from cdclake.stacks.lake_handles import LakeHandles

__all__ = ["LakeHandles", "build"]
__version__ = "0.2.0.dev0"


def __getattr__(name: str) -> object:
    """Import the parts for CDK apps when they are first used."""
    if name == "build":
        from cdclake.stacks.build import build

        return build
    if name == "LakeHandles":
        from cdclake.stacks.lake_handles import LakeHandles

        return LakeHandles
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
