"""The router's configuration, and its parser's expression over lines as nginx writes them."""

import re
from typing import Any

import pytest

from cdclake.web_logs import fluent_bit
from tests.web_server.forwarder import parse

LINE = (
    '192.0.2.7 - - [22/Nov/2026:19:00:00 +0000] "GET / HTTP/1.1" 200 615 "-" "curl/8.5.0"'
)  # fmt: skip
PARSED = {
    "remote_addr": "192.0.2.7", "remote_user": "-", "time_local": "22/Nov/2026:19:00:00 +0000",
    "request": "GET / HTTP/1.1", "status": 200, "body_bytes_sent": 615, "http_referer": "-",
    "http_user_agent": "curl/8.5.0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ("", "", {}),
        ("192.0.2.7", "2001:db8::7", {"remote_addr": "2001:db8::7"}),
        ("192.0.2.7", "unix:", {"remote_addr": "unix:"}),
        ("- - [", "- a [b] c [", {"remote_user": "a [b] c"}),
        ("- - [", r"- [01/Jan/2026:00:00:00 +0000] \x22x [", {
            "remote_user": r"[01/Jan/2026:00:00:00 +0000] \x22x",
        }),
        ("GET / HTTP/1.1", "", {"request": ""}),
        ("GET / HTTP/1.1", r"\x16\x03\x01", {"request": r"\x16\x03\x01"}),
        ("curl/8.5.0", r"a \x22b\x22 \x5C \xC3\xBC [x]", {
            "http_user_agent": r"a \x22b\x22 \x5C \xC3\xBC [x]",
        }),
        ("200 615", "000 0", {"status": 0, "body_bytes_sent": 0}),
        ("curl/8.5.0\"", "curl/8.5.0\" \"192.0.2.9, 10.0.0.1\"", {}),  # the image's own format
    ],
)  # fmt: skip
def test_lines_of_nginx_are_parsed(old: str, new: str, fields: dict[str, Any]) -> None:
    assert parse(LINE.replace(old, new, 1)) == PARSED | fields


@pytest.mark.parametrize(
    "line",
    [
        "",
        "2026/11/22 19:00:00 [error] 7#7: *1 open() failed",
        LINE[:-1],
        LINE + " more",
        LINE + ' "-" "-"',
        LINE.replace("200", "2000"),
    ],
)
def test_what_has_another_format_is_none(line: str) -> None:
    assert parse(line) is None


def test_the_files_have_the_sections_that_fluent_bit_knows() -> None:
    text = fluent_bit.parsers() + fluent_bit.filters()
    assert re.findall(r"^\[(\w+)\]$", text, re.M) == [
        "PARSER", "SERVICE", "FILTER", "FILTER", "FILTER", "OUTPUT",
    ]  # fmt: skip
    assert f"Regex  {fluent_bit.EXPRESSION}\n" in text
    assert text.count("nginx_access") == 2  # the parser, and the filter that uses it
    # What a comment or a space would do to a line of Fluent Bit's.
    assert all(len(line.split()) >= 2 for line in text.splitlines() if line.startswith("    "))


def test_everything_is_sent_to_the_stream_for_as_long_as_it_takes() -> None:
    direct = fluent_bit.output("direct_put", "x-request", "eu-west-1")
    assert direct == {
        "Name": "kinesis_firehose", "delivery_stream": "x-request", "region": "eu-west-1",
        "Retry_Limit": "no_limits",
    }  # fmt: skip
    shards = fluent_bit.output("kinesis", "x-request", "eu-west-1")
    assert (shards["Name"], shards["stream"]) == ("kinesis_streams", "x-request")
