"""The function behind Firehose as one zip: its code, ours that it shares, and the plan."""

from __future__ import annotations

from cdclake.packing import PROJECT, Packed, pack
from cdclake.plan import Plan
from stacks.shared_code import shared_code

MODULE = "firehose_changes"
_CODE = PROJECT / "lambda" / MODULE / f"{MODULE}.py"


def build_firehose_changes(plan: Plan) -> Packed:
    """The function for this plan; it needs nothing but Python."""
    own = {_CODE.name: _CODE.read_bytes(), "plan.json": plan.to_json().encode()}
    return pack(MODULE, {**shared_code(), **own})
