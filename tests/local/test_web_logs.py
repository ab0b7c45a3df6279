"""From nginx into routed tables: real requests, its own log, Direct PUT and Kinesis, on a lake."""

import base64
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake.local.components.installed import REGION
from tests.local.running import SHOP, SHOP_SQL, RunningLake, lake_in
from tests.web_server.forwarder import FirehoseOutput, KinesisOutput, Output, forward
from tests.web_server.nginx import PAGE, Nginx, Request, nginx_in, request

pytestmark = [pytest.mark.local, pytest.mark.timeout(300)]

FILE = """\
version: 1
name: site
firehose: {buffer: {seconds: 1}, function: {seconds: 0}}
weblogs:
  request: {statuses: [200, 301, 304, 400, 404, 500]}
  visits: {source: kinesis, route: day}
"""
TABLES = ("request_200", "request_301", "request_304", "request_400", "request_404", "request_500",
          "request_other")  # fmt: skip
COLUMNS = (
    "remote_addr, remote_user, request, status, body_bytes_sent, http_referer, http_user_agent"
)
NOW = datetime.now(UTC)
NEW = b"If-Modified-Since: " + f"{NOW + timedelta(days=1):%a, %d %b %Y %H:%M:%S GMT}".encode()
AN_HOUR_LATER = (NOW + timedelta(hours=1)).isoformat()

REQUESTS = [
    *[request(b"/?page=%d" % page, 200, agent=b"Mozilla/5.0 (X11)") for page in range(20)],
    request(b"/", 200, agent=b'a "quoted" \\ agent', referer=b"http://x/?q=%22"),
    request(b"/", 200, agent="schön 日本 🎉".encode(), referer="http://ü/".encode()),
    request(b"/", 200, agent=b"tab\there", referer=b"-"),
    request(b"/", 200, agent=b'" 200 1 "-" "x"', referer=b'[22/Nov/2026:19:00:00 +0000] "'),
    request(b"/", 200, agent=b"", referer=b""),
    request(b"/?" + b"long" * 1500, 200),
    # Of a line that its buffer has no room for nginx logs as much as it has read.
    Request(b"GET /?" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n", f"GET /?{'a' * 8186}", 414),
    request(b"/", 200, method=b"HEAD"),
    request(b"/", 405, method=b"POST"),
    request(b"/", 304, more=NEW + b"\r\n"),
    request(b"/moved", 301),
    request(b"/tea", 418),
    request(b"/broken", 500),
    *[request(b"/missing/%d" % page, 404) for page in range(5)],
    request(
        b"/", 200, user='a [b] \\x22c\\x22', agent=b"curl",
        more=b"Authorization: Basic " + base64.b64encode(b'a [b] "c":pw') + b"\r\n",
    ),
    Request(b"\x16\x03\x01\x02\x00\x01\r\n", "\\x16\\x03\\x01\\x02\\x00\\x01", 400),
    Request(b"GET / HTTP/1.1 more\r\n\r\n", "GET / HTTP/1.1 more", 400),
    Request(b"nonsense\r\n\r\n", "nonsense", 400),
]  # fmt: skip

Row = tuple[Any, ...]


class Site:
    """The lake, the server, and what it was asked so far."""

    def __init__(self, lake: RunningLake, nginx: Nginx, file: Path) -> None:
        self.lake, self.nginx, self.file = lake, nginx, file
        self.told = lake.run("up", str(file))
        self.asked: list[Row] = []
        self.sent_until = 0

    def client(self, service: str) -> Any:
        url = self.told["firehose" if service == "firehose" else "s3"]
        keys = self.lake.endpoints.keys
        return boto3.client(service, REGION, endpoint_url=url, aws_access_key_id=keys.user,
                            aws_secret_access_key=keys.password)  # fmt: skip

    def ask(self, requests: list[Request]) -> None:
        for each in requests:
            size = self.nginx.ask(each)
            fields = (each.user, each.line, each.status, size, each.referer, each.agent)
            self.asked.append(("127.0.0.1", *(None if f in ("", "-") else f for f in fields)))

    def send(self, *outputs: Output) -> int:
        """What has come into nginx's log since, as it is there."""
        deadline = time.monotonic() + 10
        while len(lines := self.nginx.log.read_text().splitlines()) < len(self.asked):
            assert time.monotonic() < deadline, "nginx has not logged all of it"
            time.sleep(0.05)
        part = self.nginx.log.with_name("part.log")
        part.write_text("".join(f"{line}\n" for line in lines[self.sent_until :]))
        self.sent_until = len(lines)
        [count] = {forward(part, output) for output in outputs}
        return count

    @property
    def direct(self) -> FirehoseOutput:
        return FirehoseOutput(self.client("firehose"), "site-request")

    @property
    def shards(self) -> KinesisOutput:
        return KinesisOutput(self.client("kinesis"), "site-visits")

    def rows(self) -> dict[str, Counter[Row]]:
        """By table, in one query: a command takes as long as much reading."""
        names = (*TABLES, "visits")
        parts = (f"select '{name}', {COLUMNS} from {name}" for name in names)
        found: dict[str, Counter[Row]] = {name: Counter() for name in names}
        for name, *row in self.lake.sql(" union all ".join(parts)):
            found[name][tuple(row)] += 1
        return found

    def assert_all_there(self) -> None:
        """Both ways have brought each request, once or more often."""
        rows = self.rows()
        visits = {*rows.pop("visits")}
        assert {*chain.from_iterable(rows.values())} == visits == {*self.asked}

    def verified(self) -> dict[str, dict[str, Any]]:
        report = self.lake.run("verify")
        return {each["web_logs"]: each for each in report["web_logs"]}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("web")
    file = folder / "site.yaml"
    file.write_text(FILE)
    with lake_in(folder) as lake, nginx_in(folder / "nginx") as nginx:
        yield Site(lake, nginx, file)


def test_each_request_is_in_the_table_of_its_status_and_in_that_of_all_days(site: Site) -> None:
    parts = {part["name"] for part in site.lake.run("status")["components"]}
    assert parts == {"supervisor", "aws", "firehose"}
    site.ask(REQUESTS)
    assert site.send(site.direct, site.shards) == len(REQUESTS)
    figures = site.verified()
    asked, rows = Counter(site.asked), site.rows()
    for table in TABLES[:-1]:
        status = int(table.rpartition("_")[2])
        wanted = Counter({row: n for row, n in asked.items() if row[3] == status})
        assert rows[table] == wanted and wanted, table
        assert figures["request"]["rows"][table] == wanted.total()
    listed = {int(table.rpartition("_")[2]) for table in TABLES[:-1]}
    others = Counter({row: n for row, n in asked.items() if row[3] not in listed})
    assert {row[3] for row in others} == {405, 414, 418}
    assert rows["request_other"] == others
    assert rows["visits"] == asked
    for each in figures.values():
        assert (each["missing"], each["waiting"], each["failed"]) == (0, 0, 0)
    assert figures["request"]["acknowledged"] == len(REQUESTS)
    # Both times are those of the test, and no request arrived before it was made.
    [[first, last, late]] = site.lake.sql(
        "select min(time_local), max(arrived_at), count(*) filter (arrived_at < time_local)"
        " from visits"
    )
    assert NOW.isoformat(timespec="seconds")[:19] <= first[:19] <= last[:19] < AN_HOUR_LATER
    assert late == 0
    hello = site.lake.sql("select body_bytes_sent from request_200 where request like '%page=7 %'")
    assert hello == [[len(PAGE)]]


def test_tables_are_parted_by_day_in_format_version_2(site: Site) -> None:
    for name in (*TABLES, "visits"):
        found = site.client("glue").get_table(DatabaseName="cdc_iceberg", Name=name)
        bucket, _, key = found["Table"]["Parameters"]["metadata_location"][5:].partition("/")
        read = site.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        metadata = json.loads(read)
        assert metadata["format-version"] == 2
        [[field]] = [spec["fields"] for spec in metadata["partition-specs"]]
        assert (field["name"], field["transform"]) == ("time_local_day", "day")


@pytest.mark.slow
def test_what_is_no_line_of_the_format_is_kept_under_the_error_prefix(site: Site) -> None:
    odd = site.nginx.log.with_name("odd.log")
    odd.write_text("2026/11/22 19:00:00 [error] no line of the access log\n")
    forward(odd, site.direct)
    figures = site.verified()["request"]
    assert (figures["failed"], figures["missing"]) == (1, 0)
    s3 = site.client("s3")
    [entry] = s3.list_objects_v2(Bucket="cdclake", Prefix="firehose/processing-failed/")["Contents"]
    kept = json.loads(s3.get_object(Bucket="cdclake", Key=entry["Key"])["Body"].read())
    assert b"no line of the access log" in base64.b64decode(kept["rawData"])
    assert kept["errorCode"] == "Lambda.ProcessingFailedStatus"
    assert kept["lambdaArn"].endswith(":firehose_requests")
    [logs, _] = site.lake.run("status")["web_logs"]
    assert "Lambda.ProcessingFailedStatus" in logs["last_error"]


@pytest.mark.slow
def test_what_was_acknowledged_outlives_kills_of_firehose_and_aws(site: Site) -> None:
    site.ask([request(b"/killed/%d" % page, 404) for page in range(50)])
    site.send(site.direct, site.shards)
    for component in ("firehose", "aws"):
        os.kill(site.lake.pid(component), 9)
    site.lake.eventually(lambda: not site.lake.is_running("aws"))
    site.told = site.lake.run("up")
    site.verified()
    site.assert_all_there()


@pytest.mark.slow
def test_trouble_repeats_and_refuses_but_loses_nothing(site: Site) -> None:
    faults = "5:shuffle,duplicate,delay,split,fail"
    site.told = site.lake.run("up", CDCLAKE_FIREHOSE_TROUBLE=faults)
    site.ask([request(b"/?fault=%d" % page, 200) for page in range(30)])
    site.send(site.direct, site.shards)
    site.verified()
    site.assert_all_there()
    site.lake.run("down")
    site.told = site.lake.run("up")
    site.assert_all_there()


@pytest.mark.slow
def test_a_lake_of_web_logs_takes_in_tables_and_does_not_give_them_up(tmp_path: Path) -> None:
    image = f"x@sha256:{'0' * 64}"  # the shop's file has environments of AWS
    images = f"{{nginx: '{image}', router: '{image}'}}"
    logs = f"weblogs:\n  request: {{statuses: [200], images: {images}}}\n"
    alone, both = tmp_path / "alone.yaml", tmp_path / "both.yaml"
    alone.write_text(f"version: 1\nname: shop\n{logs}")
    both.write_text(SHOP.read_text() + logs)
    with lake_in(tmp_path) as lake, nginx_in(tmp_path / "nginx") as nginx:

        def visit(times: int) -> None:
            for _ in range(times):
                nginx.ask(request(b"/", 200))
            keys = lake.endpoints.keys
            firehose = boto3.client(
                "firehose", REGION, endpoint_url=lake.run("up")["firehose"],
                aws_access_key_id=keys.user, aws_secret_access_key=keys.password,
            )  # fmt: skip
            lake.eventually(lambda: len(nginx.log.read_text().splitlines()) == times)
            forward(nginx.log, FirehoseOutput(firehose, "shop-request"))
            os.truncate(nginx.log, 0)

        lake.run("up", str(alone))
        visit(3)
        lake.run("pause")
        assert not lake.is_running("firehose")
        lake.run("resume")
        with lake.connect() as connection:
            connection.execute(SHOP_SQL)
        lake.run("up", str(both))
        visit(4)
        tables = lake.assert_equal()
        assert tables["orders"]["lake_rows"] == 1000
        assert lake.sql("select count(*) from request_200") == [[7]]
        assert lake.run("up", str(alone), expect=2)["error"]["code"] == "bad_input"
