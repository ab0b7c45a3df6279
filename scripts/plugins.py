"""`make plugins`: fetch the packages of jobs and functions, and pack the connector's plugin.

The jars have already been fetched. Afterwards building the deployment needs no network.
"""

from __future__ import annotations

import sys

from cdclake.errors import CdcError
from cdclake.stacks.bundles import JOB_WHEELS, PREPARATION_WHEELS, build_plugin


def main() -> int:
    """Fetch the packages, build the plugin and print its path; on an error, print the remedy."""
    try:
        for wheels in (PREPARATION_WHEELS, JOB_WHEELS):
            wheels.fetch()
        plugin = build_plugin()
    except CdcError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    size = plugin.path.stat().st_size / 1e6
    sys.stdout.write(f"plugin: {plugin.path} ({size:.1f} MB)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
