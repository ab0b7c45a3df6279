"""Ways to break the admission of keys, and the comparison of the source's relations."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_RELATIONS, _TESTS = "cdclake/postgres/relations.py", ("tests/unit/postgres/test_relations.py",)
_RECORD = "cdclake/postgres/relation_record.py"
_CHECK = "cdclake/postgres/relation_check.py"
_PREPARATION = "lambda/prepare_source/prepare_source.py"
_OMITTED = ("tests/unit/deployed/test_omitted_changes.py",)
_ADDITIONS = ("tests/unit/postgres/test_relation_additions.py",)
_UNLOGGED = ("tests/unit/postgres/test_unlogged_partitions.py",)
_OPERATIONS = "glue_jobs/operations/table_operations.py"
_KEYS = "cdclake/postgres/key_identity.py"
_RESYNCS = ("tests/unit/jobs/test_operate.py", "-k", "changelog_lacks or relations")
_ADMISSION = ("tests/unit/postgres/test_admission.py", "-k", "deferrable")

RELATIONS = (
    Mutation(
        "admit a deferrable key", _ADMISSION,
        ((_KEYS, "if deferrable is not None:", "if False:"),),
    ),
    Mutation(
        "a dropped table is any other of its name", _TESTS,
        ((_RELATIONS, "elif record is not None and found.oid != record.oid:", "elif False:"),),
    ),
    Mutation(
        "an attached partition brings its rows itself", _TESTS,
        ((_RELATIONS, "    if attached:\n", "    if False:\n"),),
    ),
    Mutation(
        "a detached partition takes its rows along", _TESTS,
        ((_RELATIONS, "    if detached:\n", "    if False:\n"),),
    ),
    Mutation(
        "a partition that was filled before it was attached was created empty", _TESTS,
        ((_RELATIONS, "return is_new and leaf.oid not in loaded", "return is_new"),),
    ),
    Mutation(
        "a rewritten partition has all its rows in events", _UNLOGGED,
        ((_RELATIONS, "leaf.file == leaf.oid and ", ""),),
    ),
    Mutation(
        "a partition that was unlogged is as good as any other", _UNLOGGED,
        ((_RELATIONS, "if leaf.unlogged or (leaf.oid in recorded and recorded[leaf.oid].unlogged)",
          "if leaf.unlogged"),),
    ),
    Mutation(
        "a comparison does not record unlogged partitions", _UNLOGGED,
        ((_CHECK, ".with_unlogged(found.leaves)", ""),),
    ),
    Mutation(
        "a refused `up` forgets unlogged partitions", _UNLOGGED,
        (("glue_jobs/operations/source_relations.py", "record.with_unlogged(found.leaves)",
          "record"),),
    ),
    Mutation(
        "a column is any other of its name", _TESTS,
        ((_RELATIONS, "    if replaced:\n", "    if False:\n"),),
    ),
    Mutation(
        "a label of an enum keeps its name", _TESTS,
        ((_RELATIONS, "    if renamed:\n", "    if False:\n"),),
    ),
    Mutation(
        "a rewrite during the first snapshot is like any other", _TESTS,
        ((_RELATIONS, "if not record.settled:", "if False:"),),
    ),
    Mutation(
        "a table that was rewritten during its snapshot is not read again",
        ("tests/unit/local/test_rewritten.py",),
        (("cdclake/local/streaming_start.py", 'if any(c.resync and c.kind == "rewritten"',
          'if any(False and c.kind == "rewritten"'),),
    ),
    Mutation(
        "a key may move", _TESTS,
        ((_RELATIONS, "if not check_columns(table, found):", "if False:"),),
    ),
    Mutation(
        "rows that vanished before their events were read stay", _RESYNCS,
        (("glue_jobs/control/requests.py", "str(max(newest, reached(newest.epoch, lsn)))",
          "str(newest)"),),
    ),
    Mutation(
        "a relation that changes during its resync is recorded as read", _RESYNCS,
        ((_OPERATIONS, "        source = self.backend.read_relations()\n", ""),
         (_OPERATIONS, '        reach("between_request_and_signal")\n',
          "        source = self.backend.read_relations()\n")),
    ),
    Mutation(
        "changes that a repaired publication had omitted are forgotten", _TESTS,
        ((_RELATIONS, "or (record is not None and record.omitted)", ""),),
    ),
    Mutation(
        "a comparison does not record what the publication omits", _OMITTED,
        ((_CHECK, "return with_omissions(source.publication, tables, merged)", "return merged"),),
    ),
    Mutation(
        "a deployment repairs the publication without a record of it", _OMITTED,
        ((_PREPARATION, "        note_omissions(session, plan)\n", ""),),
    ),
    Mutation(
        "a new epoch is compared with the records of the one before", _OMITTED,
        ((_PREPARATION, "            record_again(session, plan)\n", "            pass\n"),),
    ),
    Mutation(
        "a rolled back epoch leaves its records", _OMITTED,
        ((_PREPARATION, "        restore_former_records(before)\n", "        pass\n"),),
    ),
    Mutation(
        "an older epoch's records are restored again", _OMITTED,
        ((_PREPARATION,
          '        control.write(naming.FORMER_RELATIONS, {"epoch": None})\n', ""),),
    ),
    Mutation(
        "a table that joins has a record before it is published", _OMITTED,
        ((_CHECK, "if record is None and source.publication.omission(table) is not None:",
          "if False:"),),
    ),
    Mutation(
        "a reported change is forgotten before it is repaired", _TESTS,
        ((_CHECK, "(source.streams and not any(source.compare(table, record)))",
          "source.streams"),),
    ),
    Mutation(
        "a changed table's new partitions are not recorded", _ADDITIONS,
        ((_RECORD, "partitions={**created, **self.partitions}", "partitions=self.partitions"),),
    ),
    Mutation(
        "a table under another name keeps its former record", _TESTS,
        ((_CHECK, 'if record.lake_name in ("", names.get(source, record.lake_name))', "if True"),),
    ),
    Mutation(
        "no slot survives a failover", ("tests/unit/debezium/test_failover.py",),
        (("cdclake/debezium/connector.py", '"slot.failover": "true"', '"slot.failover": "false"'),),
    ),
)  # fmt: skip
