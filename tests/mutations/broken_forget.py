"""Ways to break the erasure of rows, so that something is left or comes back."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_ENGINE_TESTS = ("tests/spark/test_forget.py",)
_REGISTER_TESTS = ("tests/unit/jobs/test_erasure_register.py",)
_DEPLOYED_TESTS = ("tests/unit/deployed/test_deployed_forget.py",)
_ROWS_TESTS = ("tests/unit/deployed/test_erased_rows.py",)
_REDRIVE_TESTS = ("tests/unit/deployed/test_erased_redrive.py",)
_FAILED_TESTS = ("tests/unit/deployed/test_failed_records.py",)
_ERASED_ROWS, _DELIVERED = "cdclake/firehose/erased_rows.py", "cdclake/firehose/rows.py"
_ROUTED, _FAILED = "cdclake/redrive/routed_rows.py", "cdclake/redrive/failed_events.py"
_SERVICE, _OBJECTS = "cdclake/redrive/service.py", "cdclake/redrive/objects.py"
_RECORDS = "glue_jobs/forget/failed_records.py"
_JOB = "glue_jobs/forget/forget_job.py"
_REMOVAL = "glue_jobs/maintenance/complete_removal.py"
_ERASURE = "glue_jobs/operations/erasure.py"


def _engine(name: str, file: str, old: str, new: str) -> Mutation:
    return Mutation(name, _ENGINE_TESTS, ((file, old, new),))


FORGET = (
    _engine(
        "events of erased keys are taken",
        "glue_jobs/stream/changelog_task.py",
        "if target.erased is not None:",
        "if False:",
    ),
    _engine(
        "an erased record's place is erased",
        "glue_jobs/operations/erased_records.py",
        '"offset", "key", "value", "table")',
        '"offset", "table")',
    ),
    Mutation(
        "a rebuild takes events of erased keys",
        ("tests/spark/test_delivered_erasure.py", "-k", "rebuild"),
        (("glue_jobs/apply/rebuilt_state.py", "        check(changes)\n", ""),),
    ),
    _engine(
        "manifests keep the bounds of removed files",
        _REMOVAL,
        "rewrite.clusterBy(_OneGroup()).commit()",
        "rewrite.clusterBy(_OneGroup())",
    ),
    _engine(
        "snapshots with erased rows stay",
        _ERASURE,
        "            keep_current_snapshot(self.lake, name, keeps_files=self.keeps_files)\n",
        "            pass\n",
    ),
    _engine("the stamps expire", _ERASURE, "        _renew_stamps(self.lake, self.table)\n", ""),
    _engine(
        "an erasure does not wait for the tables' leases",
        _ERASURE,
        "            return None\n        counts",
        "            pass\n        counts",
    ),
    _engine(
        "an erasure does not wait for a first refresh",
        _ERASURE,
        "naming.QUARANTINE, *derived]",
        "naming.QUARANTINE]",
    ),
    Mutation(
        "refused events of erased keys are quarantined",
        _REGISTER_TESTS,
        (("glue_jobs/stream/erased_events.py", "yield record_key(", "yield None and record_key("),),
    ),
    Mutation(
        "a quarantined row has no key",
        ("tests/unit/forget/test_key_spellings.py",),
        (("cdclake/debezium/record_key.py", "row = changelog_row(record)", "row = None"),),
    ),
    Mutation(
        "a quarantined row that lacks a column stays",
        ("tests/unit/forget/test_quarantined_rows.py",),
        (("glue_jobs/operations/erased_records.py", ", Origin.one(self.table.name))", ")"),),
    ),
    Mutation(
        "another spelling of an erased number is taken",
        _REGISTER_TESTS,
        (("glue_jobs/stream/erased_events.py", "yield comparable_key(table, key)", "yield key"),),
    ),
    Mutation(
        "another salt recognizes no key",
        _REGISTER_TESTS,
        (("cdclake/erasures.py", "if hashed.fingerprint != erasures.fingerprint:", "if False:"),),
    ),
    Mutation(
        "the keys of a deployed erasure stay in S3",
        _DEPLOYED_TESTS,
        ((_JOB, """    erase_object(f"{arguments['control']}/{name}")\n""", ""),),
    ),
    Mutation(
        "the log of a deployed erasure names keys",
        _DEPLOYED_TESTS,
        ((_JOB, "    elif any(re.search", "    elif False and any(re.search"),),
    ),
    Mutation(
        "keys stay in S3 if their job cannot start",
        _DEPLOYED_TESTS,
        (
            (
                "cdclake/deployed/erasure.py",
                "            client.delete_object(**place, **version)\n",
                "            pass\n",
            ),
        ),
    ),
    Mutation(
        "Firehose's function takes events of erased keys",
        _ROWS_TESTS,
        ((_DELIVERED, "        check_row(rows.table, row, erased)\n", ""),),
    ),
    Mutation(
        "Firehose keeps refused events of erased keys",
        _ROWS_TESTS,
        ((_DELIVERED, "            check_event(rows.table, event, place, erased)\n", ""),),
    ),
    Mutation(
        "Firehose's function reads the register once",
        _ROWS_TESTS,
        ((_ERASED_ROWS, "< REGISTER_SECONDS:", '< float("inf"):'),),
    ),
    Mutation(
        "a redrive appends rows of erased keys",
        _REDRIVE_TESTS,
        ((_ROUTED, "            raise ErasedEvent\n", "            pass\n"),),
    ),
    Mutation(
        "a redrive quarantines what a quarantine row has of erased keys",
        _REDRIVE_TESTS,
        ((_FAILED, "return self._quarantined(row)", "return None"),),
    ),
    Mutation(
        "a redrive goes on without the register",
        _REDRIVE_TESTS,
        ((_ROUTED, "erased = self._erased()", "erased = {}"),),
    ),
    Mutation(
        "a redrive keeps records of erased keys in what it moves",
        _REDRIVE_TESTS,
        ((_SERVICE, "        if has_erased:\n", "        if False:\n"),),
    ),
    Mutation(
        "a redrive keeps the version that has records of erased keys",
        _REDRIVE_TESTS,
        (
            (
                _OBJECTS,
                "self._s3.delete_object(**place, **version)",
                "self._s3.delete_object(**place)",
            ),
        ),
    ),
    Mutation(
        "failed records of erased keys stay",
        _FAILED_TESTS,
        ((_RECORDS, "        return event is not None and", "        return False and"),),
    ),
    Mutation(
        "failed records after the erasure leave",
        _FAILED_TESTS,
        ((_FAILED, "keys.refuses(self.key, self.position)", 'keys.refuses(self.key, "")'),),
    ),
    Mutation(
        "older versions of failed records stay",
        _FAILED_TESTS,
        ((_RECORDS, " or version.identity:", ":"),),
    ),
)
