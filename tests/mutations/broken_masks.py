"""Ways to break masks and the conversion of values, and what a later mask is refused for."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CONNECTOR, _CONNECTOR_TESTS = (
    "cdclake/debezium/connector.py",
    ("tests/unit/debezium/test_masks.py",),
)
_HISTORY, _HISTORY_TESTS = (
    "cdclake/local/mask_history.py",
    ("tests/unit/local/test_mask_history.py",),
)

MASKS = (
    Mutation(
        "a NULL of a value that was not sent is taken for the value by Firehose's decoder",
        ("tests/unit/debezium/test_unsent_values.py",),
        (("cdclake/debezium/changelog_rows.py", "if is_lost and lacks_old_row:", "if False:"),),
    ),
    Mutation(
        "Debezium masks its own placeholder",
        _CONNECTOR_TESTS,
        (
            (
                _CONNECTOR,
                'f"{MASKS}.{column.mask}{kept}"',
                '"column.mask.hash.v2.SHA-256.with.salt.cdclake"',
            ),
        ),
    ),
    Mutation(
        "YAML's null is no mask",
        ("tests/unit/config/test_resolve.py",),
        (
            (
                "cdclake/config/table_model.py",
                'if "mask" in value and value["mask"] is None:',
                "if False:",
            ),
        ),
    ),
    Mutation(
        "a value that is masked with null is taken for a lost one",
        ("tests/unit/debezium/test_unsent_values.py",),
        (("cdclake/plan.py", 'return self.mask == "null"', "return False"),),
    ),
    Mutation(
        "tokens have no key",
        _CONNECTOR_TESTS,
        (("cdclake/masks.py", 'frozenset({"hash", "token"})', 'frozenset({"hash"})'),),
    ),
    Mutation(
        "nobody loads the converter of masks",
        _CONNECTOR_TESTS,
        ((_CONNECTOR, "for name in (MASKS, _ARRAYS) if", "for name in (_ARRAYS,) if"),),
    ),
    Mutation(
        "an unsent masked value has another placeholder",
        _CONNECTOR_TESTS,
        (
            (
                _CONNECTOR,
                'f"{MASKS}.placeholder": plan.placeholder',
                'f"{MASKS}.placeholder": plan.name',
            ),
        ),
    ),
    Mutation(
        "a renamed column is masked under its last name only",
        _CONNECTOR_TESTS,
        (
            (
                _CONNECTOR,
                "[]).extend(column.names)",
                "[]).extend(column.names[-1:])",
            ),
        ),
    ),
    Mutation(
        "an array of an enum with a NULL becomes NULL",
        _CONNECTOR_TESTS,
        ((_CONNECTOR, 'frozenset({"numeric", "enum"})', 'frozenset({"numeric"})'),),
    ),
    Mutation(
        "a mask is added next to the clear text",
        _HISTORY_TESTS,
        ((_HISTORY, '    _refuse_stored_text(united, plan, elsewhere or "the lake")\n', ""),),
    ),
    Mutation(
        "a column that was gone is forgotten in clear text",
        _HISTORY_TESTS,
        ((_HISTORY, "for table, columns in history.items()}", "for table, columns in ()}"),),
    ),
    Mutation(
        "the plan of an older lake holds no clear text",
        _HISTORY_TESTS,
        ((_HISTORY, "if streamed is not None:", "if False:"),),
    ),
    Mutation(
        "a longer cut hides as much as a shorter one",
        _HISTORY_TESTS,
        ((_HISTORY, 'int(mask.removeprefix("truncate(").removesuffix(")"))', "1"),),
    ),
    Mutation(
        "a load reads a key's instant without the source's precision",
        ("tests/unit/jobs/test_sent_instants.py",),
        (
            (
                "cdclake/postgres/sent_values.py",
                "digits < MOST_DIGITS or column.name in table.key",
                "digits < MOST_DIGITS",
            ),
        ),
    ),
    Mutation(
        "verify keeps half of a character under a cut",
        ("tests/unit/verify/test_normal.py",),
        (("cdclake/verify/normal.py", '"utf-16-le", "ignore"', '"utf-16-le", "replace"'),),
    ),
)
