"""Draw the stacks into docs/deployment.md: what each holds, and which stacks it depends on.

`python -m scripts.stacks_diagram` writes the drawing, of pipelines/shop.yaml in its environment
`prod`, from the templates that synth makes of it. A test fails if it is out of date.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from aws_cdk import App

from cdclake.config.deployment import load_deployment
from cdclake.stacks.pipeline_app import add_stacks

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "deployment.md"
PIPELINE, ENVIRONMENT = PROJECT / "pipelines" / "shop.yaml", "prod"
_FENCE = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)
# The resources to show, singular and plural; roles, logs, policies and rules are left out.
_SHOWN = {
    "AWS::EC2::VPC": "VPC",
    "AWS::EC2::VPCEndpoint": "endpoint|endpoints",
    "AWS::EC2::SecurityGroup": "security group|security groups",
    "AWS::KMS::Key": "key|keys",
    "AWS::RDS::DBInstance": "RDS for PostgreSQL",
    "AWS::SecretsManager::Secret": "secret|secrets",
    "AWS::MSK::Cluster": "MSK",
    "AWS::MSK::Topic": "topic|topics",
    "AWS::KafkaConnect::Connector": "connector",
    "AWS::KinesisFirehose::DeliveryStream": "Firehose stream|Firehose streams",
    "AWS::Kinesis::Stream": "Kinesis stream|Kinesis streams",
    "AWS::ECS::Service": "Fargate service|Fargate services",
    "AWS::S3::Bucket": "bucket|buckets",
    "AWS::Glue::Database": "Glue database",
    "AWS::Glue::Registry": "schema registry",
    "AWS::Glue::Table": "Glue table|Glue tables",
    "AWS::Glue::Job": "Glue job|Glue jobs",
    "AWS::Glue::TableOptimizer": "table optimizer|table optimizers",
    "AWS::Scheduler::Schedule": "schedule|schedules",
    "AWS::Lambda::Function": "function|functions",
    "AWS::Athena::WorkGroup": "workgroup",
    "AWS::Athena::NamedQuery": "saved query|saved queries",
    "AWS::CloudWatch::Alarm": "alarm|alarms",
    "AWS::CloudWatch::Dashboard": "dashboard",
    "AWS::SNS::Topic": "alarm topic",
}


def drawing(assembly: Path) -> str:
    """Return a mermaid drawing of the assembly that synth wrote into this folder."""
    artifacts = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    stacks = {
        name: {other for other in artifact.get("dependencies", ()) if not other.endswith(".assets")}
        for name, artifact in artifacts.items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    lines = [*_boxes(assembly, stacks), *_arrows(stacks)]
    return "\n".join(["```mermaid", "flowchart TD", *(f"  {line}" for line in lines), "```", ""])


def _boxes(assembly: Path, stacks: Mapping[str, set[str]]) -> Iterator[str]:
    for stack in sorted(stacks):
        template = json.loads((assembly / f"{stack}.template.json").read_text())
        found = Counter(resource["Type"] for resource in template["Resources"].values())
        held = [_counted(found[kind], word) for kind, word in _SHOWN.items() if found[kind]]
        yield f'{stack}["<b>{stack}</b><br/>{"<br/>".join(held)}"]'


def _counted(count: int, words: str) -> str:
    one, *more = words.split("|")
    return one if count == 1 else f"{count} {(more or [one])[0]}"


def _arrows(stacks: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield an arrow from each stack to its dependents, except those implied by other arrows."""
    needs = {stack: _all_needed(stack, stacks) for stack in stacks}
    for stack in sorted(stacks):
        further = set().union(*(needs[other] for other in stacks[stack]))
        for other in sorted(stacks[stack] - further):
            yield f"{other} --> {stack}"


def _all_needed(stack: str, stacks: Mapping[str, set[str]]) -> set[str]:
    return stacks[stack].union(*(_all_needed(other, stacks) for other in stacks[stack]))


def page(assembly: Path) -> str:
    """Return docs/deployment.md with the drawing of this assembly."""
    text, count = _FENCE.subn(lambda _: drawing(assembly), PAGE.read_text())
    assert count == 1, f"{PAGE} has {count} drawings"
    return text


def main() -> None:
    """Synthesize, and write the page."""
    flags = json.loads((PROJECT / "cdk.json").read_text())["context"]
    with tempfile.TemporaryDirectory() as folder:
        app = App(context=flags, outdir=folder, analytics_reporting=False)
        add_stacks(app, load_deployment(PIPELINE, ENVIRONMENT))
        app.synth()
        PAGE.write_text(page(Path(folder)))


if __name__ == "__main__":
    main()
