"""Estimate of a month: quantities times prices, unknown prices, and what a switch would save."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cdclake.config.aws_model import CreatedNetwork, CreatedSource
from cdclake.config.deployment import Deployment
from cdclake.cost.meters import DEBEZIUM_MCUS, DPUS, HOURS, Quantity
from cdclake.cost.prices import Price
from cdclake.cost.usage import IDLE_WORKERS, START_MINUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterLine:
    """One meter of the month; price and cost are None where no price is known."""

    meter: str
    quantity: float
    unit: str
    detail: str
    price: float | None
    month_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Dollars that one change of the file saves a month, and its consequence."""

    change: str
    month_usd: float
    consequence: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """Meters of a month, the most expensive first, and possible savings."""

    lines: Sequence[MeterLine]
    savings: Sequence[Saving]

    @property
    def total_month_usd(self) -> float:
        """Return the sum of the meters whose price is known."""
        return round(_cost(self.lines), 2)

    @property
    def unknown(self) -> list[str]:
        """Return the meters without a known price."""
        return sorted({line.meter for line in self.lines if line.price is None})

    def to_json(self) -> dict[str, Any]:
        """Return the object that `cdclake cost --json` prints."""
        return {
            "ok": True,
            "total_month_usd": self.total_month_usd,
            "meters": [asdict(line) for line in self.lines],
            "unknown": self.unknown,
            "savings": [asdict(saving) for saving in self.savings],
        }


def estimate(
    quantities: Sequence[Quantity], prices: Mapping[str, Price], deployment: Deployment
) -> Estimate:
    """Return the estimate; equal meters of equal detail are one line."""
    summed: dict[tuple[str, str, str], float] = {}
    for each in quantities:
        key = (each.meter, each.unit, each.detail)
        summed[key] = summed.get(key, 0.0) + each.quantity
    lines = [
        _line(meter, quantity, unit, detail, prices.get(meter))
        for (meter, unit, detail), quantity in summed.items()
    ]
    lines.sort(key=lambda line: (-(line.month_usd or 0.0), line.meter))
    return Estimate(lines, _savings(lines, deployment))


def _line(meter: str, quantity: float, unit: str, detail: str, price: Price | None) -> MeterLine:
    return MeterLine(
        meter=meter,
        quantity=round(quantity, 3),
        unit=unit,
        detail=detail,
        price=None if price is None else price.usd,
        month_usd=None if price is None else round(quantity * price.usd, 2),
    )


def _savings(lines: Sequence[MeterLine], deployment: Deployment) -> list[Saving]:
    found = [*_of_stream(lines, deployment), *_of_source(lines, deployment)]
    found += [_of_connector(lines), *_of_network(lines, deployment)]
    return sorted((s for s in found if s.month_usd >= 1), key=lambda s: -s.month_usd)


def _of_stream(lines: Sequence[MeterLine], deployment: Deployment) -> list[Saving]:
    streams = [line for line in lines if line.detail.startswith("stream_changes, always on")]
    if not streams or streams[0].month_usd is None or streams[0].price is None:
        return []
    size = deployment.aws.jobs.stream
    hourly_runs = IDLE_WORKERS * DPUS[size.worker] * START_MINUTES / 60 * HOURS
    hourly = hourly_runs * streams[0].price
    found = [
        Saving(
            change="stream: {mode: scheduled}, schedules: {apply: rate(1 hour)}",
            month_usd=round(streams[0].month_usd - hourly, 2),
            consequence="the lake is up to an hour old",
        )
    ]
    if size.worker != "G.025X":
        smaller = streams[0].month_usd * (1 - DPUS["G.025X"] / DPUS[size.worker])
        found.append(
            Saving(
                change="aws: jobs: {stream: {worker: G.025X}}",
                month_usd=round(smaller, 2),
                consequence="2 cores and 4 GB a worker: enough for some thousand events a second",
            )
        )
    return found


def _of_source(lines: Sequence[MeterLine], deployment: Deployment) -> list[Saving]:
    source = deployment.aws.source.declared
    if not isinstance(source, CreatedSource) or not source.multi_az or source.engine != "rds":
        return []
    server = [line for line in lines if line.meter.startswith("rds.")]
    is_known = all(line.price is not None for line in server)
    return [
        Saving(
            change="aws: source: {create: {multi_az: false}}",
            month_usd=round(_cost(server) / 2, 2),
            consequence="no standby: a failed zone stops the source"
            + ("" if is_known else "; without meters of unknown price"),
        )
    ]


def _of_connector(lines: Sequence[MeterLine]) -> Saving:
    return Saving(
        change="aws: connector: off",
        month_usd=round(_cost(line for line in lines if line.detail.endswith(DEBEZIUM_MCUS)), 2),
        consequence="nothing flows until it is on again, and the slot retains WAL",
    )


def _of_network(lines: Sequence[MeterLine], deployment: Deployment) -> list[Saving]:
    network = deployment.aws.network.declared
    if not isinstance(network, CreatedNetwork):
        return []
    zones = network.endpoint_zones or len(network.zones)
    cost = _cost(line for line in lines if line.meter == "vpc.endpoint")
    return [
        Saving(
            change="aws: network: {create: {endpoint_zones: 1}}",
            month_usd=round(cost * (1 - 1 / zones), 2),
            consequence="if that zone fails, jobs and connector reach no AWS service",
        )
    ]


def _cost(lines: Iterable[MeterLine]) -> float:
    """Return the sum of the known costs."""
    return sum(line.month_usd or 0.0 for line in lines)
