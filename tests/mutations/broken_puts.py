"""Ways to break put tables: which table a record goes to, and what a redrive repeats."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_FUNCTION = "tests/unit/deployed/test_firehose_puts.py"
_FILE = "tests/unit/config/test_puts.py"
_ROWS = "cdclake/puts/put_row.py"
_REDRIVE = "tests/unit/firehose/test_redrive_puts.py"
_SERVICE = "cdclake/redrive/put_service.py"
_INVERSE = "cdclake/puts/row_record.py"
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
    Mutation(
        "an object moves before its records are accepted",
        (_REDRIVE, "-k", "accepted or killed"),
        (
            (
                _SERVICE,
                "        writer.flush()\n        result.objects += 1\n",
                "        result.objects += 1\n",
            ),
            (
                _SERVICE,
                "            result.kept[self._objects.address(key)] = len(kept)\n",
                "            result.kept[self._objects.address(key)] = len(kept)\n"
                "        writer.flush()\n",
            ),
        ),
    ),
    Mutation(
        "objects move when all of a page are put",
        (_REDRIVE, "-k", "killed"),
        (
            (
                _SERVICE,
                "        if (count or not kept) and not dry_run:\n"
                "            key = self._objects.move(failed, kept) or key\n",
                "        self._done = [*getattr(self, '_done', []), failed]\n"
                "        for each in self._done if len(self._done) == 3 else []:\n"
                "            self._objects.move(each, kept)\n",
            ),
        ),
    ),
    Mutation(
        "a redrive puts records of other streams",
        (_REDRIVE, "-k", "other_streams"),
        (
            (_SERVICE, "self._streams.__contains__)", "lambda name: True)"),
            (_SERVICE, "self._streams[failed.stream]", "next(iter(self._streams.values()))"),
        ),
    ),
    Mutation(
        "a row becomes a record that makes another row",
        ("tests/unit/firehose/test_row_record.py", "-k", "no_record or routed"),
        ((_INVERSE, "record if is_same and target", "record if target"),),
    ),
    Mutation(
        "a row that fits two tables goes to the first one",
        ("tests/unit/firehose/test_row_record.py", "-k", "routed"),
        ((_INVERSE, "found[0] if len(found) == 1 else None", "found[0] if found else None"),),
    ),
    Mutation(
        "a dry run moves objects",
        (_REDRIVE, "-k", "refused_them"),
        ((_SERVICE, "(count or not kept) and not dry_run", "(count or not kept)"),),
    ),
)
