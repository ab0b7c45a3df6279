"""Ways to break quality rules: what a rule means, and which rows break it."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TESTS = ("tests/spark/test_quality.py",)
_RULES = ("tests/unit/config/test_quality.py",)
_CHECK = "glue_jobs/quality/rule_check.py"
_SQL = "cdclake/config/quality_sql.py"

QUALITY = (
    Mutation(
        "a reference's rows are those that have it", _TESTS,
        ((_CHECK, '"left_anti"', '"left_semi"'),),
    ),
    Mutation(
        "any number of rows is within the limits", _TESTS,
        ((_CHECK, "count >= rule.least", "True"),),
    ),
    Mutation(
        "a table without changes is fresh", _TESTS, ((_CHECK, "age > rule.most", "False"),)
    ),
    Mutation(
        "a condition may be one of several rows", _RULES,
        ((_SQL, "for node in parsed.find_all(*_NOT_OF_A_ROW):", "for node in ():"),),
    ),
    Mutation(
        "a value of another type is a literal", _RULES,
        ((_SQL, "if kind is not None and not _is_of(kind, value):", "if False:"),),
    ),
)  # fmt: skip
