"""JSON Schema of the pipeline file, for completion and help in editors."""

from __future__ import annotations

import json
from typing import Any

from cdclake.config.model import PipelineFile

_ID = "urn:cdclake:pipeline:1"


def pipeline_schema() -> dict[str, Any]:
    """Return the schema as a mapping; it does not include the cross checks of `validate`."""
    generated = PipelineFile.model_json_schema()
    generated.pop("title", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _ID,
        "title": "cdclake pipeline file",
        **generated,
    }


def render_schema() -> str:
    """Return the schema as the text of `pipelines/pipeline.schema.json`."""
    return json.dumps(pipeline_schema(), indent=2, ensure_ascii=False) + "\n"
