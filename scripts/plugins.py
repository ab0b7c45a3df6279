"""`make plugins`: the connector's plugin as it will be deployed, from the locked jars."""

from __future__ import annotations

import sys

from cdclake.errors import CdcError
from stacks.plugin_zip import build_plugin


def main() -> int:
    """Print the zip's path and size; 2 with what to do if jars are missing."""
    try:
        plugin = build_plugin()
    except CdcError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    size = plugin.path.stat().st_size / 1e6
    sys.stdout.write(f"plugin: {plugin.path} ({size:.1f} MB)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
