"""Ways to break Hudi copies: which rows are published, and what the next run believes."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TESTS = "tests/spark/test_publish_hudi.py"
_UNITS = ("tests/unit/jobs/test_hudi_entries.py",)
_ROWS = "glue_jobs/publish/copied_rows.py"
_WRITER = "glue_jobs/publish/hudi_writer.py"
_PUBLISH = "glue_jobs/publish/publish.py"
_STAMP = "glue_jobs/publish/copy_stamp.py"

PUBLISHED = (
    Mutation(
        "a deleted row stays in the copy",
        (_TESTS, "-k", "follows and cow"),
        ((_ROWS, 'F.when(is_gone, "d").otherwise(F.col(naming.OP))', "F.col(naming.OP)"),),
    ),
    Mutation(
        "a truncate is a change of keys",
        (_TESTS, "-k", "follows and cow"),
        (
            (_ROWS, "if self.applied.floor != stamp.floor:", "if False:"),
            (_ROWS, 'if not changes.where(F.col(naming.OP) == "t").isEmpty():', "if False:"),
        ),
    ),
    Mutation(
        "a moved row is two rows",
        (_TESTS, "-k", "one_row and cow"),
        ((_WRITER, '"hoodie.index.type": "GLOBAL_SIMPLE"', '"hoodie.index.type": "SIMPLE"'),),
    ),
    Mutation(
        "a soft delete keeps the values",
        (_TESTS, "-k", "soft"),
        ((_ROWS, "F.when(is_live, value) if self._keeps_deleted else value", "value"),),
    ),
    Mutation(
        "a run that died before the catalog leaves it so",
        (_TESTS, "-k", "before_the_catalog"),
        ((_PUBLISH, "if writer.newest() is not None:", "if written:"),),
    ),
    Mutation(
        "keys of several texts are one key",
        (_TESTS, "-k", "keys_of_text"),
        ((_ROWS, "F.to_json(F.array(", 'F.concat_ws(",", F.array('),),
    ),
    Mutation(
        "the stamp of a compaction is taken for none",
        _UNITS,
        (("glue_jobs/publish/hudi_timeline.py", "is not None:", "is not False:"),),
    ),
    Mutation(
        "polls do not change a copy",
        ("tests/spark/test_polls.py", "-k", "copy_of_a_polled_table"),
        ((_STAMP, 'table.delivery == "firehose"', 'table.delivery != "stream"'),),
    ),
    Mutation(
        "a copy of another table keeps its rows",
        _UNITS,
        ((_STAMP, "self if self.table else replace", "replace"),),
    ),
    Mutation(
        "soft deletes do not change a copy",
        _UNITS,
        ((_STAMP, 'columns["deletes"] = table.deletes', "pass"),),
    ),
)
