"""Processes that a lake's home declares, and that no supervisor has started."""

from __future__ import annotations

import json

from cdclake.local.process.home import Home
from cdclake.local.process.process_spec import Desired, Spec


def declare(home: Home, *names: str) -> None:
    """Declare exactly these processes; each would run `true`."""
    specs = tuple(Spec(name, ("true",), log=str(home.log(name))) for name in names)
    home.desired_file.write_text(json.dumps(Desired().with_specs(specs).to_json()))
