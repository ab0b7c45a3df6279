"""Quality rules in the pipeline file: the conditions they become, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdclake.config.document import Document
from cdclake.config.problems import Problem
from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.yaml_reader import read_document
from cdclake.plan import Plan
from cdclake.quality_rule import FailedRule, QualityRule, ValueLimit

FILE = """\
version: 1
name: shop
source: {{database: shop}}
tables:
  public.customers:
    key: [id]
    columns: {{id: bigint}}
  public.lines:
    key: [order_id, line]
    columns: {{order_id: bigint, line: integer}}
  public.orders:
    key: [Id]
    columns:
      {{Id: bigint, status: enum, total: 'numeric(12,2)', paid: boolean, day: date, at: timestamptz,
      customer_id: bigint, sum: 'numeric(16,2)', card: {{type: text, exclude: true}}}}
    checks:
      - {rule}
"""


def document(tmp_path: Path, rule: str) -> Document:
    """The file with this rule."""
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(rule=rule))
    return read_document(file)


def rules(tmp_path: Path, rule: str) -> list[QualityRule]:
    assert find_problems(document(tmp_path, rule)) == []
    plan = load_plan(tmp_path / "pipeline.yaml")
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.is_checked
    return [*plan.table("orders").checks]


def problem(tmp_path: Path, rule: str) -> Problem:
    [found] = find_problems(document(tmp_path, rule))
    return found


@pytest.mark.parametrize(
    ("rule", "name", "violated"),
    [
        ("not_null: [status]", "not_null(status)", "`status` IS NULL"),
        ("{not_null: [Id], on: warn}", "not_null(Id)", "`id` IS NULL"),
        ("in: {status: [new, it's]}", "in(status)", r"NOT (`status` IN ('new', 'it\'s'))"),
        (
            "in: {total: [1, 2.5]}", "in(total)",
            "NOT (`total` IN (CAST('1' AS decimal(12,2)), CAST('2.5' AS decimal(12,2))))",
        ),
        ("in: {paid: [true]}", "in(paid)", "NOT (`paid` IN (CAST('true' AS boolean)))"),
        (
            "range: {total: {min: 0, max: '99999.99'}}", "range(total)",
            "`total` < CAST('0' AS decimal(12,2)) OR `total` > CAST('99999.99' AS decimal(12,2))",
        ),
        (
            "range: {sum: {min: 0.10, max: '99999999999999.99'}}", "range(sum)",
            "`sum` < CAST('0.1' AS decimal(16,2))"
            " OR `sum` > CAST('99999999999999.99' AS decimal(16,2))",
        ),
        (
            "in: {sum: ['99999999999999.99']}", "in(sum)",
            "NOT (`sum` IN (CAST('99999999999999.99' AS decimal(16,2))))",
        ),
        ("range: {day: {min: '2020-01-01'}}", "range(day)", "`day` < CAST('2020-01-01' AS date)"),
        ("sql: {sane: total >= 0 OR NOT paid}", "sane", "NOT (`total` >= 0 OR NOT `paid`)"),
        ("sql: {later: 'at >= day AND Id > 0'}", "later", "NOT (`at` >= `day` AND `id` > 0)"),
    ],
)  # fmt: skip
def test_a_rule_of_rows_is_a_condition(tmp_path: Path, rule: str, name: str, violated: str) -> None:
    assert rules(tmp_path, rule) == [QualityRule(name=name, kind="rows", violated=violated)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("freshness: 3600", {"name": "freshness", "kind": "freshness", "most": 3600}),
        ("row_count: {min: 1}", {"name": "row_count", "kind": "row_count", "least": 1}),
        (
            "references: {customer_id: customers}",
            {
                "name": "references(customer_id)", "kind": "references", "column": "customer_id",
                "table": "customers", "key": "id",
            },
        ),
    ],
)  # fmt: skip
def test_a_rule_of_tables(tmp_path: Path, rule: str, expected: dict[str, Any]) -> None:
    assert rules(tmp_path, rule) == [QualityRule(**expected)]


@pytest.mark.parametrize(
    ("rule", "message", "remedy"),
    [
        ("not_null: [state]", "'orders' has no column 'state'", "status"),
        ("not_null: [card]", "'orders' has no column 'card'", "name a column that is not excluded"),
        ("in: {status: []}", "no value is allowed", "list the values"),
        ("in: {status: [1]}", "1 is not a valid value of 'status'", "of that type"),
        ("in: {total: [a]}", "'a' is not a valid value of 'total'", "of that type"),
        ("in: {total: [nan]}", "'nan' is not a valid value of 'total'", "of that type"),
        ("in: {paid: [1]}", "1 is not a valid value of 'paid'", "of that type"),
        (
            "range: {day: {min: yesterday}}",
            "'yesterday' is not a valid value",
            "of that type",
        ),
        ("range: {total: {}}", "the range has no limits", "min"),
        ("row_count: {}", "the row count has no limits", "min"),
        ("sql: {a: total >}", "not valid SQL", "correct it"),
        ("sql: {a: nothing > 1}", "no column 'nothing'", "name a column that is not excluded"),
        ("sql: {a: sum(total) > 1}", "SUM(total) is not part of one row", "derived table"),
        ("sql: {a: 'Id IN (SELECT 1)'}", "not part of one row", "derived table"),
        ("sql: {a: at < now()}", "NOW() gives another value", "columns only"),
        ("references: {customer_id: customer}", "no table 'customer'", "customers"),
        ("references: {customer_id: lines}", "the key of 'lines' has 2 columns", "one column"),
        ("references: {customer: customers}", "no column 'customer'", "customer_id"),
        ("{sql: {a: total > 1}, on: quarantine}", "evaluate no SQL", "`range`"),
        ("{references: {customer_id: customers}, on: quarantine}", "may arrive later", "on: warn"),
        ("{freshness: 90, on: quarantine}", "a rule of the whole table", "`on: warn`"),
        ("{row_count: {min: 1}, on: quarantine}", "a rule of the whole table", "`on: warn`"),
        (
            "{range: {total: {min: x}}, on: quarantine}",
            "'x' is not a valid value",
            "that type",
        ),
        ("{not_null: [Id], on: stop}", "'stop'", "quarantine"),
        ("range: {Id: {min: 2.5}}", "2.5 is not a valid value of 'Id'", "of that type"),
        ("range: {Id: {max: 9223372036854775808}}", "is not a valid value of 'Id'", "of that type"),
        (
            "{range: {sum: {max: 99999999999999.99}}, on: quarantine}",
            "to 99999999999999.98",
            "quote",
        ),
        ("{in: {sum: [99999999999999.99]}, on: quarantine}", "to 99999999999999.98", "quote"),
        ("range: {sum: {min: -99999999999999.99}}", "to -99999999999999.98", "quote it as text"),
        ("in: {total: ['0.001']}", "'0.001' is not a valid value of 'total'", "of that type"),
        ("{on: warn}", "not one rule", "one rule per entry"),
        ("{not_null: [Id], freshness: 90}", "not one rule", "one rule per entry"),
        ("freshness: 5", "cannot be 5", "60"),
        ("unique: [Id]", "unique", ""),
    ],
)
def test_a_mistake_is_reported_at_its_rule(
    tmp_path: Path, rule: str, message: str, remedy: str
) -> None:
    found = problem(tmp_path, rule)
    assert found.line == 17
    assert message in found.message, found
    assert remedy in found.remedy, found


@pytest.mark.parametrize(
    ("rule", "limit"),
    [
        ("not_null: [Id]", ValueLimit(column="id", test="not_null")),
        ("in: {status: [new, paid]}",
         ValueLimit(column="status", test="in", allowed=("new", "paid"))),
        ("in: {paid: [true]}", ValueLimit(column="paid", test="in", allowed=("true",))),
        ("range: {total: {min: 0, max: '9.50'}}",
         ValueLimit(column="total", test="range", low="0", high="9.50")),
        ("range: {day: {min: '20200131'}}",
         ValueLimit(column="day", test="range", low="2020-01-31")),
    ],
)  # fmt: skip
def test_a_rule_that_withholds_keeps_its_limit_for_the_decoders(
    tmp_path: Path, rule: str, limit: ValueLimit
) -> None:
    [warned] = rules(tmp_path, rule)
    [found] = rules(tmp_path, f"{{{rule}, on: quarantine}}")
    assert found == replace(warned, limit=limit)


CARD = "card: {{type: text, exclude: true}}"
LARGE = "on: quarantine, not_null: [status]"


def with_column(tmp_path: Path, column: str, rule: str, setting: str = "") -> list[Problem]:
    """The problems of the file with this column and setting of the table, and this rule."""
    text = FILE.replace(CARD, column).replace("    key: [Id]\n", f"    key: [Id]\n{setting}")
    file = tmp_path / "pipeline.yaml"
    file.write_text(text.format(rule=rule))
    return find_problems(read_document(file))


@pytest.mark.parametrize(
    "setting",
    [
        "",
        "    replica_identity: default\n",
        "    replica_identity: index by_id\n",
        "    capture: log\n",
    ],
)
def test_only_whole_events_are_withheld(tmp_path: Path, setting: str) -> None:
    """After a withheld update, one that leaves a value out would bring back an older value."""
    [found] = with_column(tmp_path, "note: text", f"{{{LARGE}}}", setting)
    assert found.line == 17 + bool(setting)
    assert "'public.orders' may leave out 'note' as unchanged" in found.message
    assert "under public.orders write `replica_identity: full`" in found.remedy


@pytest.mark.parametrize(
    ("column", "rule", "setting"),
    [
        ("note: text", LARGE, "    replica_identity: full\n"),
        ("note: text", LARGE, "    capture: {{poll: {{by: at, every: rate(1 hour)}}}}\n"),
        ("note: text", "not_null: [status]", ""),
        (CARD, LARGE, ""),
        ("note: uuid", LARGE, ""),
    ],
)
def test_whole_events_or_rules_that_only_warn_are_accepted(
    tmp_path: Path, column: str, rule: str, setting: str
) -> None:
    assert with_column(tmp_path, column, f"{{{rule}}}", setting) == []


FULL = "    replica_identity: full\n"


@pytest.mark.parametrize(
    ("column", "rule", "remedy"),
    [
        ("c: numeric", "range: {c: {min: '9'}}", "numeric(p,s)"),
        ("c: 'numeric(40,2)'", "in: {c: ['1.0']}", "numeric(p,s)"),
        ("c: 'char(3)'", "in: {c: [new]}", "another type"),
        ("c: citext", "in: {c: [new]}", "another type"),
        ("c: time", "in: {c: ['10:00:00']}", "another type"),
        ("c: time", "range: {c: {min: '10:00:00'}}", "another type"),
        ("c: timetz", "in: {c: ['10:00:00Z']}", "another type"),
        ("c: interval", "range: {c: {max: PT1H}}", "another type"),
        ("c: uuid", "in: {c: [A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11]}", "another type"),
        ("c: inet", "in: {c: [10.0.0.1]}", "another type"),
        ("c: jsonb", "in: {c: ['{}']}", "another type"),
        ("c: 'text[]'", "in: {c: ['[]']}", "another type"),
        ("c: text", "range: {c: {min: a}}", "use `in`"),
        ("c: {type: text, mask: hash}", "in: {c: [new]}", "remove the column's `mask`"),
        ("c: {type: text, mask: truncate(4)}", "range: {c: {min: a}}", "remove the column's"),
    ],
)  # fmt: skip
def test_values_that_compare_otherwise_in_the_lake_withhold_nothing(
    tmp_path: Path, column: str, rule: str, remedy: str
) -> None:
    doubled = column.replace("{", "{{").replace("}", "}}")
    [found] = with_column(tmp_path, doubled, f"{{{rule}, on: quarantine}}", FULL)
    assert found.line == 18
    assert "'c'" in found.message
    assert remedy in found.remedy and "or write `on: warn`" in found.remedy
    assert with_column(tmp_path, doubled, f"{{{rule}, on: warn}}", FULL) == []


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ("c: 'varchar(9)'", "in: {c: [new]}"),
        ("c: text", "in: {c: [new]}"),
        ("c: boolean", "in: {c: [true]}"),
        ("c: money", "range: {c: {min: 0}}"),
        ("c: real", "range: {c: {min: 0.5}}"),
        ("c: timestamp", "range: {c: {max: '2026-01-01T00:00:00'}}"),
        ("c: inet", "not_null: [c]"),
        ("c: {type: text, mask: hash}", "not_null: [c]"),
    ],
)
def test_values_that_compare_equally_everywhere_may_withhold(
    tmp_path: Path, column: str, rule: str
) -> None:
    doubled = column.replace("{", "{{").replace("}", "}}")
    assert with_column(tmp_path, doubled, f"{{{rule}, on: quarantine}}", FULL) == []


def test_a_failed_rule_is_one_line() -> None:
    keys = [{"id": "1"}, {"id": "2"}]
    assert str(FailedRule("not_null(a)", 7, keys)) == (
        "not_null(a): 7 rows, such as (id = 1) and (id = 2)"
    )
    assert str(FailedRule("not_null(a)", 1, keys[:1])) == "not_null(a): 1 row, such as (id = 1)"
    assert str(FailedRule("row_count: 0 rows")) == "row_count: 0 rows"
