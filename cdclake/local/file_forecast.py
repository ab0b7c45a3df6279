"""Forecast of `up` on a lake of another pipeline file, for `cdclake plan --against`.

No lake is asked, so this needs none of the packages of a lake on this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdclake.local.lake.lake import LakeState
from cdclake.local.lake.source_tls import secured
from cdclake.local.lake_continuation import compare_plans, continued
from cdclake.local.source_forecast import adapted, ask_source
from cdclake.plan import Plan
from cdclake.plan_effects import forecast
from cdclake.rereading import refuse_rereading


def forecast_against(
    plan: Plan, file: str, dsn: str | None, patterns: Sequence[str], other: tuple[Plan, str]
) -> dict[str, Any]:
    """Return the effects of `up FILE` on a lake that streams the plan of the file `other`.

    The source is asked if there is a DSN.

    Raises:
        InputError: if `up` would refuse the file, or the source does not answer
    """
    before, compared_with = other
    state = LakeState(plan=before.to_json())
    plan, _ = continued(state, plan, file, f"a lake of {compared_with}")
    own = compare_plans(state, plan)
    where = None if dsn is None else secured(dsn)
    source = ask_source(where, plan, patterns, embedded=False, is_first=own.is_first)
    change, findings = adapted(own, source, streamed=False, to_resync=frozenset())
    refuse_rereading(before, own.adapted(source.renamed, ()))
    effects = forecast(before, plan, change, findings)
    return source.completed(
        {"ok": True, "target": "local", "compared_with": compared_with, **effects}
    )
