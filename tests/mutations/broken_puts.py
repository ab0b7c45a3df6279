"""Ways to break put tables: which table a record goes to."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_FUNCTION = "tests/unit/deployed/test_firehose_puts.py"
_FILE = "tests/unit/config/test_puts.py"
_ROWS = "cdclake/puts/put_row.py"
_CHECKS = "cdclake/config/checks/puts.py"

PUTS = (
    Mutation(
        "a record that selects no table goes to the first one",
        (_FUNCTION, "-k", "selects"),
        (
            (
                _ROWS,
                "if isinstance(given, str) else None",
                "if isinstance(given, str) else None\n"
                "        found = found or next(iter(self._by_value.values()))",
            ),
        ),
    ),
    Mutation(
        "a record without the field that routes goes to the first table",
        (_FUNCTION, "-k", "selects"),
        ((_ROWS, "if self._route is None:", "if record.get(self._route) is None:"),),
    ),
    Mutation(
        "the function does not name the table",
        (_FUNCTION, "-k", "selects"),
        (
            (
                _ROWS,
                "return PutRow(rows.row(record, arrived_ms), metadata)",
                "return PutRow(rows.row(record, arrived_ms))",
            ),
        ),
    ),
    Mutation(
        "the field that routes has to be a column",
        (_FUNCTION, "-k", "selects"),
        (
            (
                _ROWS,
                "{route, *(column.source for column in table.columns)}",
                "{column.source for column in table.columns}",
            ),
        ),
    ),
    Mutation(
        "two tables may be selected by one value",
        (_FILE, "-k", "twice"),
        ((_CHECKS, "if value in taken:", "if False:"),),
    ),
)
