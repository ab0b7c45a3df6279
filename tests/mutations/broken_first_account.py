"""Ways to undo the fixes of what would fail on a first account, and the gate of each.

`FINDINGS` has the findings of the review that this project answers to, AWS1 to AWS27. A fix that
shows in a template is undone by a fault of `tests/synth/faults.py`, any other by a mutation.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutations.mutation import Mutation

_SYNTH = "tests/synth/test_first_account.py"
_PERMISSIONS = ("tests/synth/test_permissions.py",)
_PREFLIGHT = ("tests/unit/deployed/test_preflight.py",)
_PROBE = ("tests/unit/deployed/test_probe_command.py",)
_PAGES = ("tests/unit/test_first_deployment_pages.py",)
_CONFIG = ("tests/unit/config/test_aws_problems.py",)
_ACCOUNT = "cdclake/deployed/preflight.py"
_CHECKS = "cdclake/config/checks/aws.py"
_SERVER = "stacks/constructs/postgres_server.py"


@dataclass(frozen=True, slots=True)
class Finding:
    """What would fail, and the fault of a template or the mutation that undoes its fix."""

    what: str
    fault: str = ""
    mutation: str = ""


def _synth(words: str) -> tuple[str, ...]:
    return (_SYNTH, "-k", words)


FINDINGS = {
    "AWS1": Finding("characters that EC2 refuses", fault="apostrophe in a security group's rule"),
    "AWS2": Finding("rights on the checkpoint", mutation="the checkpoint is its prefix itself"),
    "AWS3": Finding("zones that an account lacks", mutation="every zone is one of the account's"),
    "AWS4": Finding("no way into the database", mutation="no function runs SQL files"),
    "AWS5": Finding("logs deleted with a stack", mutation="a first deployment is rolled back"),
    "AWS6": Finding("unknown worker", fault="connector that overrides its clients"),
    "AWS7": Finding("quotas of a new account", mutation="every quota suffices"),
    "AWS8": Finding("withdrawn minor version", fault="database of a minor version"),
    "AWS9": Finding("zone of the connection", fault="Glue connection without a zone"),
    "AWS10": Finding("botocore's version", mutation="a condition is not sent as a header"),
    "AWS11": Finding("Glue's log groups", mutation="a log may be anywhere"),
    "AWS12": Finding("the connector's memory", fault="queue bounded by count only"),
    "AWS13": Finding("disks of the brokers", mutation="a first load fits onto any disk"),
    "AWS14": Finding("connections per second", mutation="64 consumers are kept"),
    "AWS15": Finding("Java internals", mutation="a class is not on the probe's list"),
    "AWS16": Finding("Kafka's client in a job", mutation="jobs at Kafka are ETL jobs"),
    "AWS17": Finding("Lake Formation", mutation="any account's catalog is IAM's"),
    "AWS18": Finding("ZooKeeper", fault="cluster with ZooKeeper"),
    "AWS19": Finding("checkpoint's versions", mutation="versions of checkpoints stay a week"),
    "AWS20": Finding("runs every minute", mutation="apply may start every minute"),
    "AWS21": Finding("emptying buckets", mutation="buckets are emptied object by object"),
    "AWS22": Finding("one subnet for all jobs", mutation="jobs stay in a failed zone"),
    "AWS23": Finding("backups of trials", mutation="backups outlive a trial"),
    "AWS24": Finding("restarts at any time", mutation="the database restarts at any time"),
    "AWS25": Finding("a changed password", mutation="a login's version changes nothing"),
    "AWS26": Finding("a failed task", mutation="a failed task is not restarted"),
    "AWS27": Finding("paid metrics", fault="metrics that are paid for"),
}

FIRST_ACCOUNT = (
    Mutation(
        "the checkpoint is its prefix itself", _PERMISSIONS,
        (("cdclake/deployed_jobs.py",
          "checkpoint_prefix(self.pipeline)}/stream", "checkpoint_prefix(self.pipeline)}"),),
    ),
    Mutation(
        "every zone is one of the account's", _PREFLIGHT,
        ((_ACCOUNT, "[zone for zone in network.zones if zone not in known]", "[]"),),
    ),
    Mutation(
        "no function runs SQL files", _synth("runs_sql"),
        (("stacks/source_stack.py", "        self._add_sql(network, lake)\n", ""),),
    ),
    Mutation(
        "a first deployment is rolled back", _PAGES,
        (("docs/runbooks/first-deployment.md", " --no-rollback\n", "\n"),),
    ),
    Mutation(
        "every quota suffices", _PREFLIGHT,
        ((_ACCOUNT, "elif values[0] < least:", "elif False:"),),
    ),
    Mutation(
        "a condition is not sent as a header", ("tests/unit/jobs/test_conditional_writes.py",),
        (("cdclake/control_writer.py",
          'self._s3.meta.events.register("before-call.s3.PutObject", self._add_headers)', "pass"),),
    ),
    Mutation(
        "a log may be anywhere", _PROBE,
        (("cdclake/deployed/probe.py", "    if missing:\n", "    if False:\n"),),
    ),
    Mutation(
        "a first load fits onto any disk", _CONFIG,
        ((_CHECKS, "if most * brokers < storage:", "if False:"),),
    ),
    Mutation(
        "64 consumers are kept", ("tests/unit/iceberg/test_catalog_conf.py",),
        (("cdclake/iceberg/catalog_conf.py",
          '        "spark.kafka.consumer.cache.capacity": "512",\n', ""),),
    ),
    Mutation(
        "a class is not on the probe's list", ("tests/unit/jobs/test_java_members.py",),
        (("glue_jobs/jvm/members.py",
          '    "org.apache.iceberg.FileMetadata": ("deleteFileBuilder",),\n', ""),),
    ),
    Mutation(
        "jobs at Kafka are ETL jobs", _synth("kafka_client"),
        (("stacks/processing_stack.py", "streaming=job in AT_KAFKA", "streaming=False"),),
    ),
    Mutation(
        "any account's catalog is IAM's", _PREFLIGHT,
        ((_ACCOUNT, "if by_iam or deployment.lake_formation:", "if True:"),),
    ),
    Mutation(
        "versions of checkpoints stay a week", _synth("checkpoints"),
        (("stacks/lake_stack.py",
          "                overwritten_folder(naming.CHECKPOINT_PREFIX),\n", ""),),
    ),
    Mutation(
        "apply may start every minute", _CONFIG,
        ((_CHECKS, "minutes is not None and minutes < _MIN_JOB_MINUTES", "False"),),
    ),
    Mutation(
        "buckets are emptied object by object", _PAGES,
        (("docs/runbooks/tearing-down.md",
          "aws s3api put-bucket-lifecycle-configuration", "aws s3api get-bucket-location"),),
    ),
    Mutation(
        "jobs stay in a failed zone", _PAGES,
        (("docs/runbooks/keeper-gave-up.md",
          "aws glue update-connection", "aws glue get-connection"),),
    ),
    Mutation(
        "backups outlive a trial", _synth("backups"),
        ((_SERVER, "delete_automated_backups=not context.protect",
          "delete_automated_backups=False"),),
    ),
    Mutation(
        "the database restarts at any time", _synth("window"),
        ((_SERVER, '        "preferred_maintenance_window": maintenance_window,\n', ""),),
    ),
    Mutation(
        "a login's version changes nothing", _synth("login_version"),
        (("stacks/constructs/source_preparation.py",
          '                "LoginVersion": str(login_version),\n', ""),),
    ),
    Mutation(
        "a failed task is not restarted", ("tests/unit/deployed/test_connector_keeper.py",),
        (("lambda/connector_keeper/connector_keeper.py", "not has_failed_task(",
          "True or not has_failed_task("),),
    ),
)  # fmt: skip
