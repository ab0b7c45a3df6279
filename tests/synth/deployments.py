"""Deployments of test pipelines, as the templates that CloudFormation would get."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import App

from cdclake.cache_lock import locked_cache
from cdclake.config.deployment import load_deployment
from cdclake.stacks.pipeline_app import add_stacks, check_security

PROJECT = Path(__file__).resolve().parents[2]
FLAGS = json.loads((PROJECT / "cdk.json").read_text())["context"]

Template = dict[str, Any]

PIPELINE = """\
version: 1
name: shop
source: {database: shop}
tables:
  public.orders:
    key: [order_id]
    columns:
      {order_id: bigint, note: text, card: {type: text, mask: truncate(4)}, placed_at: timestamptz}
"""
AVRO = PIPELINE.replace("database: shop", "database: shop, format: avro, registry: glue")
# What the connector would truncate by UTF-16 units, a load cannot.
LOADED = AVRO.replace("registry: glue", "registry: glue, snapshot: {mode: bulk}").replace(
    "truncate(4)", "hash"
)
OPTIMIZED = """\
  public.visits:
    key: [id]
    columns: {id: bigint}
    apply: scheduled
    maintenance: glue
"""
EXISTING = """\
aws:
  network:
    existing: {vpc_id: vpc-0a1b2c3d, subnet_ids: [subnet-0a1b2c3d, subnet-0d1c2b3a]}
  source:
    existing:
      endpoint: db.example.org
      port: 6432
      secret_arn: arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop-admin-AbCdEf
      security_group: sg-0a1b2c3d
  kafka:
    existing:
      cluster_arn: arn:aws:kafka:eu-west-1:111122223333:cluster/all/0a1b2c3d-0a1b-1
      bootstrap_brokers: b-1.all.kafka.eu-west-1.amazonaws.com:9098
      security_group: sg-0d1c2b3a
"""
SMALL = """\
aws:
  protect: false
  log_days: 7
  monitoring: {email: [on-call@example.com]}
  network: {create: {zones: [a, b]}}
  source: {create: {multi_az: false, backup_days: 1, storage_gb: 20, slot_wal_gb: 5}}
"""
DELIVERED = """\
  public.events:
    key: [id]
    columns: {id: bigint, body: jsonb}
    delivery: firehose
  public.sales:
    key: [sale_id]
    columns: {sale_id: bigint}
    delivery: firehose
    domain: trade
  public.returns:
    key: [return_id]
    columns: {return_id: bigint}
    delivery: firehose
    domain: trade
firehose:
  domains:
    trade:
      route: >-
        {destinationDatabaseName: "cdc_iceberg",
        destinationTableName: (if has("sale_id") then "sales_changes" else "returns_changes" end),
        operation: "insert"}
"""
_ECR = "111122223333.dkr.ecr.eu-west-1.amazonaws.com"
WEB_LOGS = f"""\
version: 1
name: shop
weblogs:
  request:
    statuses: [200, 404]
    images:
      nginx: {_ECR}/nginx@sha256:{"0a" * 32}
      router: {_ECR}/aws-for-fluent-bit@sha256:{"1b" * 32}
"""
SHARDS = WEB_LOGS.replace("statuses: [200, 404]", "source: kinesis\n    route: day")
PUTS = """\
version: 1
name: shop
puts:
  clicks:
    columns: {id: bigint, price: "numeric(10,2)", at: timestamp, day: date, ok: boolean,
      ratio: double precision, body: jsonb}
    key: [id]
    partition_by: [hour(at), ok]
  visits:
    source: kinesis
    columns: {id: bigint}
    transform: transforms/visits
  events:
    route: kind
    tables:
      bought: {columns: {id: bigint, kind: text}, key: [id], values: [order, refund]}
      viewed: {columns: {page: text}}
"""
PRIVATE = "aws: {private_connectivity: on}\n"
WIDER = PIPELINE.replace("order_id: bigint,", "order_id: bigint, total: money,")
OFF = PIPELINE + "aws: {connector: off}\n"
# Larger in ways that replace nothing and that AWS takes in one update, and kept for longer.
LARGER = (
    PIPELINE
    + """\
aws:
  source: {create: {storage_gb: 200, instance: db.m7g.large, slot_wal_gb: 30}}
  kafka: {create: {brokers_per_zone: 2, max_volume_gb: 2000}}
  connect: {mcus: 2}
  jobs: {stream: {workers: 10}, batch: {worker: G.2X}}
  log_days: 90
"""
)
TRIAL = "aws: {size: trial}\n"
GOVERNED = """\
lake: {lake_formation: true}
schedules: {verify: "rate(1 day)"}
aws:
  region: us-east-1
  tags: {team: data}
  permissions_boundary: developers
  network: {create: {zones: [use1-az1, use1-az2, use1-az4]}}
  source: {create: {engine: aurora, capacity: [1, 4]}}
  kafka: {create: {instance: express.m7g.large}}
"""
DERIVED = """\
derived:
  noted_orders:
    sql: SELECT order_id, upper(note) AS note FROM orders_current
    key: [order_id]
    schedule: rate(30 minutes)
  notes:
    sql: SELECT note, count(*) AS orders FROM orders_current WHERE note IS NOT NULL GROUP BY note
    key: [note]
    format: json
"""
POLLED = """\
  public.places:
    key: [place_id]
    columns: {place_id: bigint, name: {type: text, mask: hash}, changed_at: timestamptz}
    capture: {poll: {by: changed_at, every: rate(10 minutes)}}
  public.towns:
    key: [town_id]
    columns: {town_id: bigint, changed_at: timestamptz}
    capture: {poll: {by: changed_at, every: rate(10 minutes), deletes: none}}
  public.streets:
    key: [street_id]
    columns: {street_id: bigint, changed_at: timestamptz}
    capture: {poll: {by: changed_at, every: "cron(0 4 * * ? *)"}}
"""
CHECKED = """\
    replica_identity: full
    checks:
      - not_null: [note]
      - {range: {order_id: {min: 1}}, on: quarantine}
"""
PUBLISHED = """\
    publish:
      - hudi: {type: mor, partition_by: note}
      - hudi: {name: orders_cow, schedule: rate(30 minutes)}
"""
CONNECTED = """\
connectors:
  lake: {plugin: iceberg-sink, tables: [public.orders]}
  copy:
    plugin: jars/msk
    class: io.example.CopySink
    tables: [public.orders, public.visits]
    mcus: 2
    settings: {connection.password: "${secretsmanager:shop/copy:password}"}
"""
VARIANTS = {
    "created": PIPELINE,
    "existing": PIPELINE + OPTIMIZED + EXISTING,
    "small": PIPELINE + SMALL,
    "delivered": PIPELINE + DELIVERED + PRIVATE,
    "web logs": WEB_LOGS,
    "shards": SHARDS,
    "puts": PUTS,
    "trial": PIPELINE + OPTIMIZED + TRIAL,
    "connectors": PIPELINE + OPTIMIZED + EXISTING + CONNECTED,
    "governed": LOADED + CHECKED + PUBLISHED + POLLED + GOVERNED + DERIVED,
}


@dataclass(frozen=True, slots=True)
class Synthesized:
    """One synthesised deployment: its folder, and its templates by the stack's name."""

    folder: Path
    templates: dict[str, Template]

    def resources(self, kind: str) -> list[Template]:
        """Every resource of this type, in all stacks."""
        return [
            resource
            for template in self.templates.values()
            for resource in template["Resources"].values()
            if resource["Type"] == kind
        ]

    def only(self, kind: str) -> Template:
        """The properties of the one resource of this type."""
        [resource] = self.resources(kind)
        return dict(resource["Properties"])

    def report(self) -> Any:
        """What the rules that the app itself applies had to say."""
        return json.loads((self.folder / "validation-report.json").read_text())


Deploy = Callable[[str], Synthesized]


class Variants(Mapping[str, Synthesized]):
    """The deployments of `VARIANTS` by name; most tests read one or two of them."""

    def __init__(self, deploy: Deploy) -> None:
        self._deploy = deploy

    def __getitem__(self, name: str) -> Synthesized:
        return self._deploy(VARIANTS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(VARIANTS)

    def __len__(self) -> int:
        return len(VARIANTS)


def synthesize_once(text: str, shared: Path) -> Synthesized:
    """Synthesize into a folder of the text's; a process that comes later reads the templates."""
    folder = shared / hashlib.sha256(text.encode()).hexdigest()
    with locked_cache(folder):
        if not (folder / "complete").exists():
            synthesize(text, folder, is_validated=text in VARIANTS.values())
            (folder / "complete").touch()
    return read_assembly(folder / "out")


def synthesize(
    text: str, folder: Path, environment: str | None = None, *, is_validated: bool = False
) -> Synthesized:
    """The deployment of the pipeline file `text`, by the app's own code and cdk.json's flags.

    CDK's own validation of the templates takes as long as all the rest: `VARIANTS` have it.
    """
    file = folder / "pipeline.yaml"
    file.write_text(text)
    if "transform: " in text:
        handler = folder / "transforms" / "visits" / "handler.py"
        handler.parent.mkdir(parents=True)
        handler.write_text("def handler(event, context):\n    return event\n")
    app = App(
        context=FLAGS,
        outdir=str(folder / "out"),
        analytics_reporting=False,
        builtin_cloud_formation_validation=is_validated,
    )
    add_stacks(app, load_deployment(file, environment))
    check_security(app)
    app.synth()
    return read_assembly(folder / "out")


def read_assembly(folder: Path) -> Synthesized:
    """What is in a folder that synth has written."""
    found = sorted(folder.glob("*.template.json"))
    named = {
        path.name.removesuffix(".template.json"): json.loads(path.read_text()) for path in found
    }
    return Synthesized(folder, named)
