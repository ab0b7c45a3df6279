"""A case for each kind of mistake about a deployment: where it is reported, and what to do."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

import pytest

from cdclake.config.checks.aws import check_job_schedules
from cdclake.config.document import Document
from cdclake.config.partial_model import outline_tables
from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import parse_document
from tests.unit.config.mistakes import assert_remedies, assert_reported
from tests.unit.config.pipelines import VALID, top

TABLE = "    key: [id]\n    columns: {id: bigint}\n"
POLLED_ON_AWS = """\
version: 1
name: shop
source: {database: shop}
aws: {}
tables:
  public.orders:
    key: [id]
    columns: {id: bigint, at: timestamptz}
    capture: {poll: {by: at}}
"""
EXISTING_NETWORK = "{vpc_id: vpc-0a, subnet_ids: [subnet-0a, subnet-0b]}"
EXISTING_SOURCE = (
    "{endpoint: db.example.org, security_group: sg-0a,"
    " secret_arn: 'arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop-AbCdEf'}"
)
CLUSTER = "arn:aws:kafka:eu-west-1:111122223333:cluster/shop/0a1b-1"
MANY_TAGS = {f"{n:0128}": "v" * 256 for n in range(50)}


def many_tables(count: int, extra: str = "") -> str:
    more = "".join(f"    {pair}\n" for pair in extra.strip("{}").split(", ") if pair)
    return "".join(f"  public.t{n}:\n{TABLE}{more}" for n in range(count))


CASES = {
    # name: (file, line, column, part of the message, part of the remedy)
    "infinite number": (top("aws: {a: .inf}"), 2, 10, "'.inf' is not a valid number", "quote"),
    "password under aws": (top("aws: {db: {password: x}}"), 2, 12, "'password'", "a secret"),
    "secret under aws": (top("aws: {master_secret: x}"), 2, 7, "'master_secret'", "--source DSN"),
    "password in a value": (top("aws: {url: 'p://u:pw@h/d'}"), 2, 12, "contains a password", "never write a password"),
    "unknown size": (top("aws: {size: tiny}"), 2, 13, "`size` cannot be 'tiny'", "trial"),
    "trial of many tables": (
        top("aws: {size: trial}") + many_tables(30), 2, 1, "too small for 31", "size: small",
    ),
    "trial with Firehose": (
        top("aws: {size: trial}") + "    delivery: firehose\n", 2, 1, "private links only", "kafka.m7g.large",
    ),
    "zones of two kinds": (
        top("aws: {network: {create: {zones: [a, use1-az1]}}}"), 2, 26, "letters and zone IDs", "not both",
    ),
    "zone of another region": (
        top("aws: {region: eu-west-1, network: {create: {zones: [use1-az1, euw1-az2]}}}"), 2, 45, "not in eu-west-1", "euw1-az1",
    ),
    "three zones where MSK wants two": (
        top("aws: {region: sa-east-1}"), 2, 1, "exactly two subnets", "[a, b]",
    ),
    "three subnets where MSK wants two": (
        top("aws: {region: sa-east-1, network: {existing: {vpc_id: vpc-0a, subnet_ids: [subnet-0a, subnet-0b, subnet-0c]}}}"),
        2, 63, "exactly two subnets", "two of an existing network's",
    ),
    "China": (top("aws: {region: cn-north-1}"), 2, 15, "cannot be deployed in cn-north-1", "outside of China"),
    "Firehose where it writes no Iceberg tables": (
        top("aws: {region: us-gov-west-1}") + "    delivery: firehose\n", 2, 15, "Firehose does not write Iceberg", "`delivery: stream`",
    ),
    "region whose certificates are not packed": (
        top("aws: {region: il-central-1}"), 2, 15, "certificates of RDS in il-central-1", "another region",
    ),
    "zone without Graviton": (
        top("aws: {region: us-east-1, network: {create: {zones: [use1-az3, use1-az2]}}}"), 2, 45, "no Graviton", "use1-az4",
    ),
    "Express in two zones": (
        top("aws: {network: {create: {zones: [a, b]}}, kafka: {create: {instance: express.m7g.large}}}"), 2, 26, "three availability zones", "list three",
    ),
    "Express in two existing subnets": (
        top(f"aws: {{network: {{existing: {EXISTING_NETWORK}}}, kafka: {{create: {{instance: express.m7g.large}}}}}}"),
        2, 44, "three availability zones", "three subnet_ids",
    ),
    "Express where MSK allows two subnets": (
        top("aws: {region: us-west-1, network: {create: {zones: [a, b]}}, kafka: {create: {instance: express.m7g.large}}}"),
        2, 89, "MSK allows two subnets in us-west-1", "kafka.m7g.large",
    ),
    "a stream larger than its subnet": (
        top("aws: {network: {create: {cidr: 10.42.0.0/24}}, jobs: {stream: {workers: 60}}}"),
        2, 73, "60 workers need an address each", "`workers: 59`",
    ),
    "a batch job larger than its subnet": (
        top("aws: {network: {create: {cidr: 10.42.0.0/23}}, jobs: {batch: {workers: 124}}}"),
        2, 72, "a subnet of 10.42.0.0/23 has 123", "a larger",
    ),
    "more streams than a template holds": (
        top(f"aws: {{tags: {MANY_TAGS}}}").split("tables:")[0]
        + "tables:\n" + many_tables(12, "{delivery: firehose}"), 53, 15,
        "no room for 'public.t11': its template", "`delivery: stream` here",
    ),
    "disks that shrink": (
        top("aws: {kafka: {create: {volume_gb: 2000, max_volume_gb: 1000}}}"), 2, 56, "may grow to 1000", "max_volume_gb: 2000",
    ),
    "disks smaller than the database": (
        top("aws: {source: {create: {storage_gb: 3000, max_storage_gb: 3300}}}"), 2, 1, "3000 GB passes through", "max_volume_gb: 3000",
    ),
    "timeout of seven days": (
        top("aws: {jobs: {batch: {timeout_minutes: 10080}}}"), 2, 39, "timeout_minutes", "10079",
    ),
    "capacity without a range": (
        top("aws: {source: {create: {engine: aurora, capacity: [0.5, 0.5]}}}"), 2, 41, "maximum capacity 0.5", "[0.5, 1]",
    ),
    "capacity backwards": (
        top("aws: {source: {create: {engine: aurora, capacity: [8, 1]}}}"), 2, 41, "invalid capacity", "[0.5, 8]",
    ),
    "maintenance window": (
        top("aws: {source: {create: {maintenance_window: sunday}}}"), 2, 45, "maintenance_window", "sun:02:00",
    ),
    "tag with a character that AWS refuses": (
        top("aws: {tags: {owner: 'R&D'}}"), 2, 21, "`owner` cannot be 'R&D'", '{"team": "data"}',
    ),
    "reserved tag": (top("aws: {tags: {'aws:x': y}}"), 2, 23, "reserved tag", "without the prefix"),
    "serverless cluster": (
        top("aws: {kafka: {existing: {cluster_arn: 'arn:aws:kafka:eu-west-1:111122223333:cluster/shop/0a1b2c3d-0a1b-4c5d-8e9f-0a1b2c3d4e5f-s1', bootstrap_brokers: 'b:9098', security_group: sg-0a}}}"),
        2, 39, "MSK Serverless", "provisioned",
    ),
    "mail without a recipient": (
        top("aws: {monitoring: {email: [on-call]}}"), 2, 28, "cannot be 'on-call'", "on-call@",
    ),
    "mail twice": (
        top("aws: {monitoring: {email: [a@b.c, a@b.c]}}"), 2, 20, "'a@b.c' is listed twice", "remove",
    ),
    "webhook with a token": (
        top("aws: {monitoring: {webhook: ['https://x.example.com/a?token=b']}}"), 2, 30, "neither https://HOST/PATH without login", "Secrets Manager",
    ),
    "webhook without encryption": (
        top("aws: {monitoring: {webhook: ['http://x.example.com']}}"), 2, 30, "neither https://HOST/PATH without login", "https://events",
    ),
    "alarm at once": (
        top("aws: {monitoring: {freshness_minutes: 1}}"), 2, 39, "`freshness_minutes`", "2",
    ),
    "alarm for ever": (
        top("aws: {monitoring: {freshness_minutes: 5}}\nstream: {trigger_seconds: 300}"), 2, 39,
        "a batch every 300 s", "`aws: monitoring: freshness_minutes: 11`",
    ),
    "alarm of the default for ever": (
        top("aws: {}\nstream: {trigger_seconds: 600}"), 3, 27, "within 15 min", "21`",
    ),
    "unknown part of aws": (top("aws: {kafak: {}}"), 2, 7, "unknown key", "did you mean 'kafka'?"),
    "neither": (top("aws: {kafka: {create: }}"), 2, 7, "neither `create` nor", "`create: {}`"),
    "created and existing": (
        top(f"aws: {{network: {{create: {{}}, existing: {EXISTING_NETWORK}}}}}"),
        2, 7, "both `create` and `existing`", "keep one of the two",
    ),
    "created, and existing in prod": (
        top(
            "environments:\n  prod:\n    aws:\n"
            f"      network: {{existing: {EXISTING_NETWORK}}}\naws: {{network: {{create: {{}}}}}}"
        ),
        5, 7, "both `create` and `existing`", "declare it in each of them",
    ),
    "size of no worker": (
        top("aws: {connect: {mcus: 3}}"), 2, 23, "`mcus` cannot be", "`8`",
    ),
    "connector by halves": (
        top("aws: {connector: paused}"), 2, 18, "`connector` cannot be 'paused'", "`on` or `off`",
    ),
    "archived warehouse": (
        top("aws: {storage: {warehouse: deep_archive}}"), 2, 28, "cannot be read until they are restored", "`intelligent_tiering`",
    ),
    "warehouse that expires": (
        top("aws: {storage: {warehouse: {expire_days: 90}}}"), 2, 17, "live files of any age", "`schedules: maintain`",
    ),
    "warehouse of infrequent access": (
        top("aws: {storage: {warehouse: glacier_ir}}"), 2, 28, "bills a file for 90 days", "`intelligent_tiering`",
    ),
    "unknown class": (
        top("aws: {storage: {warehouse: cold}}"), 2, 28, "`warehouse` cannot be 'cold'", "`standard`",
    ),
    "archived failed records": (
        top("aws: {storage: {failed: {glacier: 30}}}"), 2, 17, "`cdclake redrive`", "`glacier_ir`",
    ),
    "failed records in one zone": (
        top("aws: {storage: {failed: {onezone_ia: 30}}}"), 2, 17, "one availability zone", "`standard_ia`",
    ),
    "failed records expire elsewhere": (
        top("aws: {storage: {failed: {expire_days: 30}}}"), 2, 17, "not set here", "`aws: failed_days`",
    ),
    "infrequent access too early": (
        top("aws: {storage: {failed: {standard_ia: 10}}}"), 2, 39, "`standard_ia` cannot be 10", "30",
    ),
    "failed records deleted before they are paid off": (
        top("aws: {failed_days: 100, storage: {failed: {glacier_ir: 30}}}"), 2, 56, "bills 90 days in `glacier_ir`", "`failed_days: 120` or more",
    ),
    "next class too early": (
        top("aws: {storage: {failed: {standard_ia: 60, glacier_ir: 80}}}"), 2, 39, "leave it after 80", "`glacier_ir: 90` or more",
    ),
    "access logs of the default": (
        top("aws: {storage: {access_log: {standard_ia: 30}}}"), 2, 43, "leave it after 30 (`log_days`)", "`log_days: 60`",
    ),
    "access logs of a size": (
        top("aws: {size: small, storage: {access_log: {standard_ia: 30}}}"), 2, 56, "leave it after 14", "`log_days: 60`",
    ),
    "made of nothing": (
        top("aws: {connect: {made_of: new}}"), 2, 26, "`made_of` cannot be", "`0a1b2c3d4e5f`",
    ),
    "history before the first": (
        top("aws: {connect: {epoch: 0}}"), 2, 24, "`epoch` cannot be 0", "1",
    ),
    "one zone": (top("aws: {network: {create: {zones: [a]}}}"), 2, 26, "two availability", "three"),
    "a whole zone": (
        top("aws: {network: {create: {zones: [a, eu-west-1b]}}}"), 2, 37, "'eu-west-1b'", "like `a`",
    ),
    "four zones": (
        top("aws: {network: {create: {zones: [a, b, c, d]}}}"), 2, 26, "`zones` cannot", "at most 3",
    ),
    "one subnet": (
        top("aws: {network: {existing: {vpc_id: vpc-0a, subnet_ids: [subnet-0a]}}}"),
        2, 44, "two availability zones", "the brokers and the database",
    ),
    "same subnet": (
        top("aws: {network: {existing: {vpc_id: vpc-0a, subnet_ids: [subnet-0a, subnet-0a]}}}"),
        2, 44, "twice", "remove one",
    ),
    "public network": (
        top("aws: {network: {create: {cidr: 8.8.0.0/16}}}"), 2, 32, "'8.8.0.0/16'", "a private range",
    ),
    "no range": (top("aws: {network: {create: {cidr: 10/8}}}"), 2, 32, "invalid IPv4 range", "10.42.0.0/16"),
    "host bits": (
        top("aws: {network: {create: {cidr: 10.1.2.3/16}}}"), 2, 32, "invalid IPv4 range", "10.42.0.0/16",
    ),
    "instance": (
        top("aws: {source: {create: {instance: m7g.large}}}"), 2, 35, "`instance`", "`db.m7g.large`",
    ),
    "slot fills the disk": (
        top("aws: {source: {create: {storage_gb: 30}}}"), 2, 37, "20 GB of WAL", "slot_wal_gb: 15",
    ),
    "disk shrinks": (
        top("aws: {source: {create: {max_storage_gb: 40}}}"), 2, 41, "may grow to 40", "110` or more",
    ),
    "disk that cannot grow": (
        top("aws: {source: {create: {storage_gb: 65536}}}"), 2, 37, "may grow to 500", "storage_gb: 59578` or less",
    ),
    "database of RDS": (
        top("aws: {}").replace("{database: shop}", "{database: my shop}"),
        4, 20, "named 'my shop'", "`aws: source: existing:`",
    ),
    "hyphen at the end of RDS's name": (
        top("aws: {}").replace("name: shop", "name: shop-"), 3, 7, "name shop--source", "`name: shop`",
    ),
    "two hyphens in RDS's name": (
        top("aws: {}").replace("name: shop", "name: my--shop"), 3, 7, "two hyphens", "`name: my-shop`",
    ),
    "full shard": (
        top("aws: {}").split("tables:")[0] + "tables:\n" + many_tables(451), 1356, 3,
        "shard 1 has no room for 'public.t450'", "`shard: 2` here",
    ),
    "full shard of glue": (
        top("aws: {}").split("tables:")[0]
        + "tables:\n" + many_tables(65, "{maintenance: glue, shard: 7}"),
        326, 3, "shard 7 has no room for 'public.t64'", "`shard: 8` here",
    ),
    "more copies than the jobs' stack holds": (
        POLLED_ON_AWS + f"    publish: [{', '.join(f'{{hudi: {{name: c{n:03}}}}}' for n in range(350))}]\n",
        10, 7694, "no room for another schedule: it holds 350", "fewer derived tables",
    ),
    "apply every minute on AWS": (
        top("schedules: {apply: rate(1 minute)}\naws: {}"), 2, 20,
        "starts a Glue job every 1 min", "`rate(15 minutes)`, under `environments:`",
    ),
    "apply by cron every five minutes on AWS": (
        top("schedules: {apply: 'cron(0/5 * * * ? *)'}\naws: {}"), 2, 20,
        "starts a Glue job every 5 min", "`rate(15 minutes)`",
    ),
    "checks every minute on AWS": (
        top("schedules: {checks: rate(1 minute)}\naws: {}"), 2, 21,
        "starts a Glue job every 1 min", "`rate(15 minutes)`",
    ),
    "a poll every minute on AWS": (
        POLLED_ON_AWS.replace("by: at", "by: at, every: rate(1 minute)"), 9, 37,
        "starts a Glue job every 1 min", "`rate(15 minutes)`",
    ),
    "a copy every minute on AWS": (
        POLLED_ON_AWS + "    publish: [{hudi: {type: cow, schedule: rate(1 minute)}}]\n", 10, 44,
        "starts a Glue job every 1 min", "`rate(15 minutes)`",
    ),
    "a derived table every minute on AWS": (
        POLLED_ON_AWS + "derived: {d: {sql: SELECT id FROM orders, schedule: rate(1 minute)}}\n",
        10, 53, "starts a Glue job every 1 min", "`rate(15 minutes)`",
    ),
    "worker": (
        top("aws: {jobs: {stream: {worker: G.16X}}}"), 2, 31, "cannot be 'G.16X'", "`G.1X`",
    ),
    "one worker": (top("aws: {jobs: {batch: {workers: 1}}}"), 2, 31, "`workers` cannot", "equal"),
    "no such job": (
        top("aws: {jobs: {steam: {}}}"), 2, 14, "unknown key 'steam'", "did you mean 'stream'?",
    ),
    "stream neither on nor off": (
        top("aws: {stream: paused}"), 2, 15, "`stream` cannot be 'paused'", "`on` or `off`",
    ),
    "source without a secret": (
        top("aws: {source: {existing: {endpoint: db, security_group: sg-0a}}}"),
        2, 16, "`secret_arn` is missing", "add `secret_arn:`",
    ),
    "secret by name": (
        top("aws: {source: {existing: {endpoint: d, security_group: sg-0a, secret_arn: shop}}}"),
        2, 75, "`secret_arn` cannot be 'shop'", "like `arn:aws:secretsmanager:",
    ),
    "Kafka without IAM": (
        top(f"aws: {{kafka: {{existing: {{bootstrap_brokers: b:9094, cluster_arn: {CLUSTER}}}}}}}"),
        2, 45, "port 9094 is not the port of IAM", "enable IAM access",
    ),
    "secret of another region": (
        top(f"aws: {{region: eu-north-1, source: {{existing: {EXISTING_SOURCE}}}}}"),
        2, 108, "the secret is in eu-west-1, and the deployment in eu-north-1", "a secret of eu-",
    ),
    "cluster of another region": (
        top(f"aws: {{region: eu-north-1, kafka: {{existing: {{cluster_arn: {CLUSTER}}}}}}}"),
        2, 59, "the cluster is in eu-west-1, and the deployment in eu-north-1", "a cluster of eu-",
    ),
    "cluster of another account": (
        top(
            f"aws: {{source: {{existing: {EXISTING_SOURCE}}},"
            f" kafka: {{existing: {{cluster_arn: {CLUSTER.replace('1111', '3333')}}}}}}}"
        ),
        2, 190, "are in different accounts", "the account that is deployed",
    ),
    "brokers without a port": (
        top("aws: {kafka: {existing: {bootstrap_brokers: 'b:9098,c'}}}"), 2, 45, "'c': it is not", "IAM",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "remedy"), CASES.values(), ids=CASES)
def test_a_mistake_is_reported_where_it_is(text, line, column, message, remedy):
    assert_reported(text, line, column, message, remedy)


@pytest.mark.parametrize("text", [case[0] for case in CASES.values()], ids=CASES)
def test_every_problem_says_what_to_do(text):
    assert_remedies(text)


@pytest.mark.parametrize(("minutes", "found"), [([15] * 351, 0), (range(10, 361), 1)])
def test_polls_of_the_same_schedule_count_once(minutes, found):
    polls = ({"capture": {"poll": {"by": "at", "every": f"rate({m} minutes)"}}} for m in minutes)
    document = Document({"tables": {f"public.t{n}": poll for n, poll in enumerate(polls)}}, {})
    assert len([*check_job_schedules(document, outline_tables(document))]) == found


def test_a_region_without_firehose_is_no_mistake_of_a_streamed_file():
    """Nor are its certificates: the server may be in another region, but not its secret."""
    source = EXISTING_SOURCE.replace("eu-west-1", "ap-southeast-5")
    aws = f"aws: {{region: ap-southeast-5, source: {{existing: {source}}}}}"
    assert find_problems(parse_document(top(aws))) == []


@pytest.mark.parametrize(
    "aws",
    [
        # No cluster is created in the network.
        "{region: sa-east-1, kafka: {existing: {bootstrap_brokers: 'b:9098', cluster_arn:"
        f" '{CLUSTER.replace('eu-west-1', 'sa-east-1')}', security_group: sg-0a}}}}}}",
        "{network: {create: {cidr: 10.42.0.0/24}}, jobs: {stream: {workers: 59}}}",
        f"{{network: {{existing: {EXISTING_NETWORK}}}, jobs: {{stream: {{workers: 299}}}}}}",
    ],
)
def test_a_network_that_suffices_is_no_mistake(aws: str) -> None:
    assert find_problems(parse_document(top(f"aws: {aws}"))) == []


def test_what_aws_asks_for_is_asked_only_of_what_goes_there():
    text = VALID.replace("{database: shop}", "{database: my shop}")
    assert find_problems(parse_document(text)) == []
    [problem] = find_problems(parse_document(text), deployed=True)
    assert "my shop" in problem.message


@pytest.mark.parametrize(
    "address",
    [
        "https://x.example.com/a?token=tell-none",
        "https://x.example.com/a#tell-none",
        "https://tell-none@x.example.com/a",
        "http://x.example.com/tell-none",
        "${secretsmanager:tell-none}",
    ],
)
def test_a_refused_webhook_is_not_repeated_since_it_may_be_secret(address: str) -> None:
    text = top(f"aws: {{monitoring: {{webhook: ['{address}']}}}}")
    [problem] = find_problems(parse_document(text))
    assert "tell-none" not in f"{problem.message} {problem.remedy}"
