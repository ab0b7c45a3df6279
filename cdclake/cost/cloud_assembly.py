"""Templates of a deployment as the CDK has written them, for machines without the CDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cdclake.errors import InputError, reading_failure

_MANIFEST = "manifest.json"
_STACK = "aws:cloudformation:stack"


def read_templates(folder: Path, prefix: str) -> dict[str, dict[str, Any]]:
    """Return the deployment's templates by the names of their stacks.

    The manifest lists the stacks of the last synthesis; the folder may have older ones, too.

    Raises:
        InputError: if this is no output of the CDK, or it has no stack of the deployment.
    """
    try:
        artifacts = json.loads((folder / _MANIFEST).read_text("utf-8"))["artifacts"]
        found = {
            name: json.loads((folder / artifact["properties"]["templateFile"]).read_text("utf-8"))
            for name, artifact in artifacts.items()
            if artifact["type"] == _STACK and name.startswith(f"{prefix}-")
        }
    except (OSError, KeyError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else reading_failure(error)
        if isinstance(error, OSError) and folder.is_dir():
            reason = f"{Path(error.filename).name}: {reason}"
        raise InputError(
            f"{folder} has no templates that can be read: {reason}",
            "name the output folder of `cdk synth`, usually cdk.out",
        ) from None
    if not found:
        raise InputError(
            f"{folder} has no stack of {prefix}", "synthesize this file and environment first"
        )
    return found
