"""What the FireLens router, which is Fluent Bit, is told: the parser, the filters, where to send.

ECS makes the input, and from a container's log options the output. The files lie in S3, from where
the router of kind `init` includes them. nginx writes its access log to its standard output, and its
error log to its standard error.
"""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.web_logs.row import (
    BODY_BYTES_SENT,
    HTTP_REFERER,
    HTTP_USER_AGENT,
    REMOTE_ADDR,
    REMOTE_USER,
    REQUEST,
    STATUS,
    TIME_LOCAL,
)

CONTAINER = "nginx"  # the tags of its lines begin with it
_PARSER = "nginx_access"
_MATCH = f"{CONTAINER}-firelens*"
_ERRORS = "nginx-errors"

# The format `combined`, or `main` of nginx's own image, which has one more field behind. nginx
# escapes quotes within its fields, so a field ends at the next one. A name that a user gives may
# have spaces and brackets: it ends where a time follows that a quote comes after.
EXPRESSION = (
    rf"^(?<{REMOTE_ADDR}>[^ ]+) - (?<{REMOTE_USER}>.*?) \[(?<{TIME_LOCAL}>[^\]]+)\]"
    rf' "(?<{REQUEST}>[^"]*)" (?<{STATUS}>[0-9]{{3}}) (?<{BODY_BYTES_SENT}>[0-9]+)'
    rf' "(?<{HTTP_REFERER}>[^"]*)" "(?<{HTTP_USER_AGENT}>[^"]*)"(?: "[^"]*")?$'
)


def parsers() -> str:
    """The file of parsers."""
    return f"""\
[PARSER]
    Name   {_PARSER}
    Format regex
    Regex  {EXPRESSION}
    Types  {STATUS}:integer {BODY_BYTES_SENT}:integer
"""


def filters() -> str:
    """The file of filters, and what becomes of the error log.

    Long lines come in parts, which are joined. The error log goes to the router's own output, and
    so to its log group. A line that the parser does not take goes on as it is, for the function to
    refuse it and Firehose to keep it.
    """
    return f"""\
[FILTER]
    Name                  multiline
    Match                 {_MATCH}
    multiline.key_content log
    mode                  partial_message

[FILTER]
    Name  rewrite_tag
    Match {_MATCH}
    Rule  $source ^stderr$ {_ERRORS} false

[FILTER]
    Name         parser
    Match        {_MATCH}
    Key_Name     log
    Parser       {_PARSER}
    Reserve_Data Off

[OUTPUT]
    Name  stdout
    Match {_ERRORS}
"""


def output(source: str, stream: str, region: str) -> Mapping[str, str]:
    """The options of the container's log driver: everything to the stream, tried without end.

    `source` is the stream's: `direct_put`, or `kinesis` with the name of the stream of Kinesis.
    """
    if source == "kinesis":
        plugin = {"Name": "kinesis_streams", "stream": stream}
    else:
        plugin = {"Name": "kinesis_firehose", "delivery_stream": stream}
    return {**plugin, "region": region, "Retry_Limit": "no_limits"}
