"""The functions behind Firehose as zips."""

from __future__ import annotations

from cdclake.packing import Packed
from cdclake.plan import Plan
from cdclake.stacks.constructs.function_zip import build_function
from cdclake.web_logs import FUNCTION

MODULE = "firehose_changes"


def build_firehose_changes(plan: Plan) -> Packed:
    """The function for this plan, which lies beside it; it needs nothing but Python."""
    return build_function(MODULE, {"plan.json": plan.to_json().encode()})


def build_firehose_redrive(plan: Plan) -> Packed:
    """The function that redrives what failed; Lambda's Python brings boto3."""
    return build_function("firehose_redrive", {"plan.json": plan.to_json().encode()})


def build_firehose_unwrap(plan: Plan) -> Packed:
    """The function of the stream by which redriven rows go."""
    return build_function("firehose_unwrap", {"plan.json": plan.to_json().encode()})


def build_firehose_requests() -> Packed:
    """The function for web logs, of any plan."""
    return build_function(FUNCTION)
