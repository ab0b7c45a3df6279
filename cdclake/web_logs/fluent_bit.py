"""Configuration of the FireLens router, which is Fluent Bit: parser, filters and output.

ECS generates the input, and the output from a container's log options. The files are in S3, and a
router of kind `init` includes them from there. nginx writes its access log to standard output and
its error log to standard error.
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

CONTAINER = "nginx"  # prefix of the tags of its lines
_PARSER = "nginx_access"
_MATCH = f"{CONTAINER}-firelens*"
_ERRORS = "nginx-errors"
GRACE_S = 30  # for which a stopped router goes on sending; 5 by default

# The format `combined`, or `main` of the official nginx image, which appends one field. nginx
# escapes quotes within fields, so a field ends at the next quote. A user name may contain spaces
# and brackets: it ends before a time that is followed by a quote.
EXPRESSION = (
    rf"^(?<{REMOTE_ADDR}>[^ ]+) - (?<{REMOTE_USER}>.*?) \[(?<{TIME_LOCAL}>[^\]]+)\]"
    rf' "(?<{REQUEST}>[^"]*)" (?<{STATUS}>[0-9]{{3}}) (?<{BODY_BYTES_SENT}>[0-9]+)'
    rf' "(?<{HTTP_REFERER}>[^"]*)" "(?<{HTTP_USER_AGENT}>[^"]*)"(?: "[^"]*")?$'
)


def parsers() -> str:
    """Return the file of parsers."""
    return f"""\
[PARSER]
    Name   {_PARSER}
    Format regex
    Regex  {EXPRESSION}
    Types  {STATUS}:integer {BODY_BYTES_SENT}:integer
"""


def filters() -> str:
    """Return the file of filters, with the grace period and the output of the error log.

    Long lines arrive in parts, which are joined. The error log goes to the router's own output,
    and from there to its log group. A line that the parser does not match is passed on unchanged:
    the function rejects it, and Firehose keeps it.
    """
    return f"""\
[SERVICE]
    Grace {GRACE_S}

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
    """Return the options of the container's log driver: send all to the stream, retry forever.

    `source` is the stream's: `direct_put`, or `kinesis` with the name of the Kinesis stream.
    """
    if source == "kinesis":
        plugin = {"Name": "kinesis_streams", "stream": stream}
    else:
        plugin = {"Name": "kinesis_firehose", "delivery_stream": stream}
    return {**plugin, "region": region, "Retry_Limit": "no_limits"}
