"""Ways to break what `up`, `down` and `status` promise to their user."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SHELLS = ("tests/unit/local/test_shells.py",)
_SUPERVISOR = ("tests/unit/local/test_supervisor.py",)
_UNDONE = ("tests/unit/local/test_undone_start.py",)
_SERVER = ("tests/unit/postgres/test_server.py",)
_PLACE = ("tests/unit/local/test_postgres_place.py",)
_CLI = ("tests/unit/test_cli.py",)
_LOADS = ("tests/unit/local/test_table_loads.py",)
_TLS = ("tests/unit/local/test_source_tls.py",)
_HOME = ("tests/unit/local/test_home.py",)
_FIGURES = ("tests/unit/local/test_table_figures.py",)
_FORMATS = ("tests/unit/cli/test_answer_formats.py",)
_HEALTH = ("tests/unit/local/test_health.py",)

FIRST_DAY = (
    Mutation(
        "the shell's environment is a part of a process", _SHELLS,
        (("cdclake/local/components/installed.py",
          'return {"TZ": "UTC", "LANG": "C.UTF-8", **more}',
          'return {**shell(), "TZ": "UTC", "LANG": "C.UTF-8", **more}'),),
    ),
    Mutation(
        "every shell chooses a lake's Java", _SHELLS,
        (("cdclake/local/components/installed.py",
          "if is_supervisor_alive(lake) and", "if False and"),),
    ),
    Mutation(
        "new settings restart PostgreSQL", _SHELLS,
        (("cdclake/local/process/process_spec.py",
          "if self.identity and other.identity:", "if False:"),),
    ),
    Mutation(
        "a failed command leaves its processes", _SUPERVISOR,
        (("cdclake/local/lake/process_watch.py",
          "_report(error, _undo(home, before, epoch))", "pass"),),
    ),
    Mutation(
        "a failed command stops what it has healed", _SUPERVISOR,
        (("cdclake/local/lake/process_watch.py",
          "if name not in before.names:", "if True:"),),
    ),
    Mutation(
        "a failed start leaves the slot that it made", _UNDONE,
        (("cdclake/local/lake/process_watch.py", "if state.epoch > epoch:", "if False:"),),
    ),
    Mutation(
        "a failed start drops the slot of an earlier one", _UNDONE,
        (("cdclake/local/lake/process_watch.py", "if state.epoch > epoch:", "if True:"),),
    ),
    Mutation(
        "objects without a mark belong to every lake", _SERVER,
        (("cdclake/postgres/server.py", "if owner.made_unmarked or not (",
          "if True or not ("),),
    ),
    Mutation(
        "another lake's objects count as one's own", _SERVER,
        (("cdclake/postgres/server.py", "if is_mark(state.role_comment):", "if False:"),),
    ),
    Mutation(
        "the source is not looked at before the start", _CLI,
        (("cdclake/local/lake/source.py", "    with connect(dsn) as connection:\n"
          "        if plan is not None:", "    if plan is not None:\n"
          "        with connect(dsn) as connection:"),),
    ),
    Mutation(
        "a login is never forgotten", _HOME,
        (("cdclake/local/process/home.py", "self._read_secrets().items() if key not in names}",
          "self._read_secrets().items()}"),),
    ),
    Mutation(
        "a traceback shows passwords", _CLI,
        (("cdclake/cli/main.py",
          'home.without_secrets("".join(traceback.format_exception(error)))',
          '"".join(traceback.format_exception(error))'),),
    ),
    Mutation(
        "a traceback can be read by others", _CLI,
        (("cdclake/cli/main.py", "path.touch(mode=0o600)", "path.touch()"),),
    ),
    Mutation(
        "a stopped table is healthy", _HEALTH,
        (("cdclake/local/health.py", 'if table["state"] == "stopped":', "if False:"),),
    ),
    Mutation(
        "a dead component is healthy", _HEALTH,
        (("cdclake/local/health.py", "DOWN if dead else ", ""),),
    ),
    Mutation(
        "status prints what it does not know", _HEALTH,
        (("cdclake/cli/status_text.py", "UNKNOWN if value is None else str(value)", "str(value)"),),
    ),
    Mutation(
        "status keeps a table's figures after a commit", _FIGURES,
        (("cdclake/local/reader/figure_cache.py",
          'if entry and entry["of"] == list(of) else None', "if entry else None"),),
    ),
    Mutation(
        "control characters of a value reach the terminal", _FORMATS,
        (("cdclake/cli/aligned.py", "str(value).translate(_ESCAPED)", "str(value)"),),
    ),
    Mutation(
        "status fails while a server starts", _HEALTH,
        (("cdclake/local/lake/no_answer.py", "    OSError,\n", ""),),
    ),
    Mutation(
        "status reads the quarantine with tables that are not made", _FIGURES,
        (("glue_jobs/reader/quarantine_counts.py",
          "reader.open([], plain=[naming.QUARANTINE])", "reader.open(reader.plan.tables)"),),
    ),
    Mutation(
        "a table that waits for a column hides the others", _FIGURES,
        (("cdclake/local/reader/table_figures.py",
          "for table in tables:\n            with", "for table in []:\n            with"),),
    ),
    Mutation(
        "a table is loaded once the connector has read it", _LOADS,
        (("cdclake/local/lake/table_loads.py",
          "offsets.get(place, 0) < end for", "False for"),),
    ),
    Mutation(
        "a table is read before its last row is sent", _LOADS,
        (("cdclake/local/lake/table_loads.py",
          "later[0].written_ms if later else None", "message.written_ms"),),
    ),
    Mutation(
        "what the connector could not read is loaded", _LOADS,
        (("cdclake/local/lake/table_loads.py",
          "scan.ended_ms if scan.status in _READ else None", "scan.ended_ms"),),
    ),
    Mutation(
        "a type's remedy lacks its first step", ("tests/unit/local/test_source_changes.py",),
        (("cdclake/postgres/admission.py", "{_first(column, found.type, declared)}", ""),),
    ),
    Mutation(
        "another pipeline is not sent to another home", ("tests/unit/test_plan_diff.py",),
        (("cdclake/plan_diff.py", "if _lake_problems(before, after):", "if False:"),),
    ),
    Mutation(
        "connections off this machine may be unencrypted", _TLS,
        (("cdclake/local/lake/source_tls.py", " or not _is_local(parts | found):", ":"),),
    ),
    Mutation(
        "the driver does not check what libpq checks", _TLS,
        (("cdclake/local/lake/source_tls.py",
          '"verify-ca" if mode == "require" else mode', "mode"),),
    ),
    Mutation(
        "the connector trusts every authority", _TLS,
        (("cdclake/debezium/connector.py",
          '**({"database.sslrootcert": address.sslrootcert} if address.sslrootcert else {}),',
          ""),),
    ),
    Mutation(
        "components write files for everyone", _SUPERVISOR,
        (("cdclake/local/process/child_process.py", "umask=0o077", "umask=0o022"),),
    ),
    Mutation(
        "an old folder stays open to others", _SHELLS,
        (("cdclake/local/process/home.py", "        folder.chmod(0o700)  #", "        #"),),
    ),
    Mutation(
        "a home that is missing was deleted", _PLACE,
        (("cdclake/local/components/postgres_place.py",
          "is_gone and _is_deleted(owner.parent)", "is_gone"),),
    ),
    Mutation(
        "a mount point is a folder like any other", _PLACE,
        (("cdclake/local/components/postgres_place.py", " and below[0] == then[0]", ""),),
    ),
    Mutation(
        "purge removes what other lakes have left", _PLACE,
        (("cdclake/local/components/postgres_place.py",
          "shutil.rmtree(outside_folder(home), onerror=_raise_unless_gone)",
          "remove_orphans(home)"),),
    ),
)  # fmt: skip
