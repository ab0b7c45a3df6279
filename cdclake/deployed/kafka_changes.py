"""Changes of a created network and cluster that a deployment refuses in its middle."""

from __future__ import annotations

from cdclake.config.aws_model import CreatedNetwork
from cdclake.config.deployment import Deployment
from cdclake.config.kafka_model import CreatedKafka
from cdclake.errors import InputError

# "You can't update multiple attributes of the cluster in same request" (aws/aws-cdk#16765).
_UPDATED_ALONE = ("brokers_per_zone", "instance", "volume_gb")


def check_kafka_changes(before: Deployment, after: Deployment) -> None:
    """Raise InputError if the deployment would fail at the network's zones or the brokers."""
    _check_zones(before, after)
    old, new = before.aws.kafka.declared, after.aws.kafka.declared
    if not isinstance(old, CreatedKafka) or not isinstance(new, CreatedKafka):
        return
    changed = [name for name in _UPDATED_ALONE if getattr(old, name) != getattr(new, name)]
    kinds = [f"kafka: create: {name}" for name in changed]
    if before.aws.private_connectivity != after.aws.private_connectivity:
        kinds.append("private_connectivity")
    if len(kinds) > 1:
        listed = ", ".join(f"`{kind}`" for kind in kinds)
        raise InputError(
            f"the deployment changes {listed} of one Kafka cluster, but MSK takes one such change"
            " in an update",
            "write the earlier values of all but one of them, deploy, and then change the next",
        )


def _check_zones(before: Deployment, after: Deployment) -> None:
    old, new = before.aws.network.declared, after.aws.network.declared
    if not isinstance(old, CreatedNetwork) or not isinstance(new, CreatedNetwork):
        return
    if old.zones != new.zones:
        raise InputError(
            f"the zones of the network would change from {', '.join(old.zones)} to"
            f" {', '.join(new.zones)}, which neither subnets nor brokers can",
            f"write `aws: network: create: zones: [{', '.join(old.zones)}]`, since `size` has"
            " zones, too",
        )
