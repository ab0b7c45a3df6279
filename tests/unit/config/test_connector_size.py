"""A configuration that exceeds a template is refused at the first table that does not fit."""

from __future__ import annotations

from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import parse_document

# A character that is neither letter nor digit takes five bytes of the configuration.
COLUMNS = "".join(f"      c{n:04d}{'-' * 58}: text\n" for n in range(1100))
HEAD = "version: 1\nname: shop\nsource: {database: shop}\n"
ON_AWS = f"{HEAD}aws: {{}}\nfirehose: {{domains: {{sales: {{}}}}}}\n"
SHARED = "    delivery: firehose\n    domain: sales\n"
POLLED = "      at: timestamptz\n    capture: {poll: {by: at}}\n"


def table(key: str, more: str = "") -> str:
    return f"  {key!r}:\n    key: [id]\n    columns:\n      id: bigint\n{more}"


FITTING = (
    table("public.Polled", COLUMNS + POLLED)
    + table("public.a", COLUMNS + SHARED)
    + table("public.b", COLUMNS + SHARED)
)
BEYOND = table('"public"."D.e"', COLUMNS) + table("public.small")


def reported(text: str) -> list[str]:
    problems = find_problems(parse_document(text))
    return [f"{problem.line}: {problem.message}; {problem.remedy}" for problem in problems]


def test_the_first_table_that_does_not_fit_is_reported():
    text = f"{ON_AWS}tables:\n{FITTING}{BEYOND}"
    [problem] = reported(text)
    line = text[: text.index('"D.e"')].count("\n") + 1
    assert problem.startswith(f"{line}: the connector's configuration would have 98"), problem
    assert """from '"public"."D.e"' on exceeds the 950,000""" in problem
    assert "a second pipeline" in problem


def test_a_configuration_that_fits_is_accepted():
    assert reported(f"{ON_AWS}tables:\n{FITTING}") == []


def test_a_local_lake_has_no_template():
    beyond = (FITTING + BEYOND).replace(SHARED, "").replace(POLLED, "")
    assert reported(f"{HEAD}tables:\n{beyond}") == []
