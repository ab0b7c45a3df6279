"""Refused types of columns: what is wrong with each, and one remedy that the source check takes."""

from __future__ import annotations

import pytest

from cdclake.config.literals import parse_column_type
from cdclake.config.problems import Refused

NO_DECIMAL = (
    "has a negative scale, or a scale above its precision, which no decimal of the lake has"
)
OTHERS = "write `enum` for an enum, the base type for a domain, `{exclude: true}` for others"


@pytest.mark.parametrize(
    ("spelling", "message", "remedy"),
    [
        ("numeric(3,5)", NO_DECIMAL, "write `{exclude: true}`, or make it `numeric` in the source"),
        ("decimal(5, -2)", NO_DECIMAL, "write `{exclude: true}`, or"),
        ("numeric(5,-2)[]", NO_DECIMAL, "write `{exclude: true}`, or"),
        ("integer(11)", "has parameters that integer does not accept", "write `integer`"),
        ("varchar(5,2)", "has parameters that varchar does not accept", "write `varchar(n)`"),
        ("numeric(p,s)", "has parameters that numeric does not accept", "write `numeric(p,s)`"),
        ("text[][]", "has several dimensions", "write `text[]` if all its values have one, `{exc"),
        ("int4[3]", "has a size", "write `integer[]`"),
        ("money[]", "arrays of money are not supported", "write `{exclude: true}`"),
        ("string", "unknown type 'string'", "write `text`"),
        ("STR", "unknown type 'STR'", "write `text`"),
        ("datetime", "unknown type 'datetime'", "write `timestamp` or `timestamptz`"),
        ("double", "unknown type 'double'", "write `double precision`"),
        ("number(10,2)", "unknown type 'number(10,2)'", "write `numeric`"),
        ("int64", "unknown type 'int64'", "write `bigint`"),
        ("tinyint", "unknown type 'tinyint'", "write `smallint`"),
        ("blob", "unknown type 'blob'", "write `bytea`"),
        ("txet", "unknown type 'txet', did you mean 'text'", OTHERS),
        ("box", "unknown type 'box'", OTHERS),
    ],
)
def test_a_refused_type_has_one_remedy(spelling: str, message: str, remedy: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_column_type(spelling)
    assert message in refused.value.message
    assert refused.value.remedy.startswith(remedy)
    assert remedy == OTHERS or "enum" not in refused.value.remedy


@pytest.mark.parametrize(
    ("spelling", "limits"),
    [
        ("varchar(0)", "1 to 10485760"),
        ("char(0)", "1 to 10485760"),
        ("bit(0)", "1 to 83886080"),
        ("timestamp(9)", "0 to 6"),
        ("timetz(7)[]", "0 to 6"),
        ("numeric(0)", "1 to 1000"),
        ("numeric(2000,2)", "1 to 1000"),
        ("vector(0)", "1 to 16000"),
    ],
)
def test_lengths_that_postgresql_does_not_have_are_refused(spelling: str, limits: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_column_type(spelling)
    assert refused.value.remedy.startswith("correct the number")
    assert limits in refused.value.message


@pytest.mark.parametrize(
    "spelling",
    ["varchar(1)", "timestamp(0)", "timestamp(6) with time zone", "numeric(1000,1000)", "bit(64)"],
)
def test_lengths_that_postgresql_has_are_accepted(spelling: str) -> None:
    parse_column_type(spelling)
