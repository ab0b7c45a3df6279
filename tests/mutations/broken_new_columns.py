"""Ways to break the policies for new columns, the check of names, and the output of commands."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_NOTES, _TESTS = "cdclake/source_notes.py", ("tests/unit/iceberg/test_new_columns.py",)
_CHECK, _DEPLOYED = (
    "lambda/prepare_source/prepare_source.py",
    ("tests/unit/deployed/test_source_notes.py",),
)
_EDIT, _FILES = "cdclake/config/added_columns.py", ("tests/unit/config/test_added_columns.py",)

NEW_COLUMNS = (
    Mutation(
        "a pipeline's name ends with a hyphen on AWS",
        ("tests/unit/config/test_aws_problems.py", "-k", "hyphen"),
        (("cdclake/config/checks/aws.py", 'if "--" in f"{name}-":', 'if "--" in name:'),),
    ),
    Mutation(
        "down creates the folder of a lake that never was",
        ("tests/unit/local/test_commands_in_turn.py", "-k", "creates_no_folder"),
        (("cdclake/local/shutdown.py", "if not home.is_lake():  # its", "if False:  # its"),),
    ),
    Mutation(
        "a command without --json",
        ("tests/unit/test_json_output.py", "-k", "option"),
        (("cdclake/cli/output.py", 'typer.Option("--json",', 'typer.Option("--as-json",'),),
    ),
    Mutation(
        "an excluded column stops its table", _TESTS,
        ((_NOTES, "{*table.excluded, *(column", "{*(column"),),
    ),
    Mutation(
        "new columns stop no table", _TESTS,
        (("glue_jobs/stream/undeclared_columns.py", "if name in flowing:", "if False:"),),
    ),
    Mutation(
        "the stream reads no notes of new columns",
        ("tests/spark/test_widened_stream.py", "-k", "undeclared"),
        (("glue_jobs/stream/batch.py",
          "in undeclared_stops(self._control, plan, flowing):", "in ():"),),
    ),
    Mutation(
        "a table without new columns stays stopped", _TESTS,
        ((_NOTES, "        for table in changed:\n            request(table)\n", ""),),
    ),
    Mutation(
        "a file that excludes a column resumes no table", _TESTS,
        (("cdclake/plan_diff.py", "return table.columns, table.excluded",
          "return table.columns, ()"),),
    ),
    Mutation(
        "declare a column that may be a renamed one", _TESTS,
        (("cdclake/local/lake/declared_columns.py", "    if not lacking:\n", "    if True:\n"),),
    ),
    Mutation(
        "the deployed check notes no widened types", _DEPLOYED,
        ((_CHECK, "    note_widened(control, plan, widened)\n", ""),),
    ),
    Mutation(
        "the deployed check notes the same widened types again", _DEPLOYED,
        ((_CHECK, "    plan = with_widened(plan, read_widened(control))\n", ""),),
    ),
    Mutation(
        "the deployed check notes no new columns", _DEPLOYED,
        ((_CHECK, "    note_new_columns(control, plan, found)\n", ""),),
    ),
    Mutation(
        "a file is changed although another table shares its columns", _FILES,
        ((_EDIT, " and read.values == expected", ""),),
    ),
    Mutation(
        "a flow mapping splits numeric(12,2)", _FILES,
        ((_EDIT, 'f", {scalar(name)}: {scalar(kind)}"', 'f", {scalar(name)}: {kind}"'),),
    ),
)  # fmt: skip
