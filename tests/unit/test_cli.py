"""The command line's frame: exit codes, one JSON object, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from cdclake.cli import main as command
from cdclake.cli.output import JsonOption
from cdclake.errors import ComponentFailed, NotRunning
from cdclake.local.process import supervisor_client
from cdclake.local.process.process_spec import Observed, ProcessStatus
from tests.unit.config.pipelines import VALID

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(capsys: Any, tmp_path: Path, monkeypatch: Any) -> Callable[..., tuple[object, str, str]]:
    """Runs a verb in this process: (exit code, standard output, standard error)."""
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))

    def run_verb(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as caught:
            command.main(arguments)
        return caught.value.code, *capsys.readouterr()

    return run_verb


@pytest.fixture
def pipeline(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(VALID)
    return path


def test_a_valid_file(run, pipeline):
    code, out, err = run("validate", str(pipeline), "--json")
    shown = json.loads(out)
    assert (code, err, shown["ok"], shown["problems"]) == (0, "", True, [])
    assert run("validate", str(pipeline))[1].startswith(f"{pipeline}: valid\n")


def test_validate_names_the_metadata_that_readers_of_snapshots_cost(run, pipeline):
    pipeline.write_text(VALID + "lake: {stream_readers_hours: 24}\n")
    shown = json.loads(run("validate", str(pipeline), "--json")[1])
    assert shown["changelog_metadata"] == {"snapshots": 9120, "kilobytes": 9120}
    assert "up to 9,120 snapshots, about 9,120 kB" in run("validate", str(pipeline))[1]


def test_validate_notes_what_a_reader_cuts(run, pipeline):
    pipeline.write_text(VALID + "lake: {readers: [redshift]}\n")
    views, note = json.loads(run("validate", str(pipeline), "--json")[1])["notes"]
    assert views.startswith("Redshift has no `<t>_current`")
    assert "Redshift cuts text" in note and note.endswith("another engine")
    assert f"note: {note}" in run("validate", str(pipeline))[1]
    pipeline.write_text(VALID)
    assert json.loads(run("validate", str(pipeline), "--json")[1])["notes"] == []


def test_validate_notes_days_of_history_that_are_kept_longer(run, pipeline):
    for days, noted in ((13, True), (14, False)):
        pipeline.write_text(f"{VALID}lake: {{history_days: {days}}}\n")
        notes = json.loads(run("validate", str(pipeline), "--json")[1])["notes"]
        assert any("`history_days: 13` counts as 14" in note for note in notes) is noted


def test_an_invalid_file(run, pipeline):
    pipeline.write_text(VALID.replace("note: text", "note: txet"))
    code, out, err = run("validate", str(pipeline), "--json")
    shown = json.loads(out)
    assert (code, err, shown["ok"]) == (2, "", False)
    assert set(shown["problems"][0]) == {"line", "column", "message", "remedy"}
    assert {"code", "message", "remedy"} <= set(shown["error"])
    code, out, err = run("validate", str(pipeline))
    assert (code, err) == (2, "")
    assert out.startswith(f"{pipeline}:9:13: unknown type 'txet'")


def test_a_missing_file(run, tmp_path):
    code, out, _ = run("validate", str(tmp_path / "none.yaml"), "--json")
    assert (code, len(json.loads(out)["problems"])) == (2, 1)


ENVIRONMENTS = (
    "environments:\n  dev: {lake: {database: of_dev}, tables: {public.orders: {name: o}}}\n"
    "  prod: {}\n"
)


def test_validate_describes_the_environment(run, pipeline):
    pipeline.write_text(VALID + ENVIRONMENTS)
    code, out, _ = run("validate", str(pipeline), "--environment", "dev", "--json")
    shown = json.loads(out)
    assert (code, shown["ok"], shown["problems"]) == (0, True, [])
    assert shown["tables"] == [{"source": "public.orders", "table": "o"}]
    assert "-> of_dev" in run("validate", str(pipeline), "--environment", "dev")[1]
    assert "-> cdc_iceberg" in run("validate", str(pipeline), "--environment", "prod")[1]


def test_validate_knows_the_environments_of_the_file(run, pipeline):
    pipeline.write_text(VALID + ENVIRONMENTS)
    code, out, _ = run("validate", str(pipeline), "--environment", "prd", "--json")
    shown = json.loads(out)
    error = shown["error"]
    assert (code, error["message"]) == (2, f"{pipeline} has no environment 'prd'")
    assert error["remedy"] == "did you mean 'prod'? The file declares: dev, prod"
    line = 1 + VALID.count("\n")
    assert shown["problems"] == [
        {"line": line, "column": 1, "message": error["message"], "remedy": error["remedy"]}
    ]
    _, out, said = run("validate", str(pipeline), "--environment", "prd")
    assert (out, error["message"] in said) == ("", True)
    code, out, _ = run("validate", str(pipeline), "--environment", "x", "--json")
    assert (code, json.loads(out)["error"]["remedy"]) == (2, "the file declares: dev, prod")
    pipeline.write_text(VALID)
    _, out, _ = run("validate", str(pipeline), "--environment", "x", "--json")
    assert json.loads(out)["error"]["remedy"] == "the file declares: none"


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_validate_lists_the_problems_of_every_environment(run, pipeline, environment):
    pipeline.write_text(VALID + ENVIRONMENTS.replace("name: o", "name: O-1"))
    code, out, _ = run("validate", str(pipeline), "--environment", environment, "--json")
    assert code == 2
    assert [problem["line"] for problem in json.loads(out)["problems"]] == [12]


def test_validate_checks_the_environment_as_it_is_deployed(run, pipeline):
    pipeline.write_text(VALID + "schedules: {apply: rate(1 minute)}\n" + ENVIRONMENTS)
    assert run("validate", str(pipeline))[0] == 0
    code, out, _ = run("validate", str(pipeline), "--environment", "prod")
    assert (code, "starts a Glue job every 1 min" in out) == (2, True)


def test_schema(run):
    code, out, _ = run("schema")
    assert code == 0
    assert json.loads(out) == json.loads(run("schema", "--json")[1])


def test_schema_prints_the_reference_of_a_key(run):
    code, out, _ = run("schema", "--doc", "stop_table_after")
    assert (code, out.splitlines()[:3]) == (
        0,
        ["policies.stop_table_after", "  type     whole number, 1 or more", "  default  `100`"],
    )
    code, out, _ = run("schema", "--doc", "stop_table", "--json")
    assert (code, json.loads(out)["ok"]) == (2, False)


def test_a_delivery_that_the_demo_does_not_know(run):
    code, out, _ = run("demo", "--delivery", "kafka", "--json")
    assert code == 2
    assert "--delivery firehose" in json.loads(out)["error"]["remedy"]


@pytest.mark.parametrize("arguments", [["validte"], ["validate"], ["validate", "f", "--no"]])
def test_wrong_usage(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and "--help" in err
    code, out, err = run(*arguments, "--json")
    assert (code, err, json.loads(out)["error"]["code"]) == (2, "", "bad_input")


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (NotRunning("no lake", "run up"), 3, {"code": "not_running"}),
        (
            ComponentFailed("died", "look", "kafka", "last words"),
            4,
            {"component": "kafka", "log_tail": "last words"},
        ),
    ],
)
def test_our_errors_carry_their_exit_code(run, monkeypatch, error, code, shown):
    def fails(json_output: bool = False) -> None:
        raise error

    monkeypatch.setattr(command, "VERBS", {"Start": (fails,)})
    assert run("fails")[0] == code
    found, out, _ = run("fails", "--json-output", "--json")
    assert found == 2  # the stand-in has no --json; the frame still answers in JSON
    assert json.loads(out)["ok"] is False
    from cdclake.cli.output import error_object

    assert shown.items() <= error_object(error)["error"].items()


def test_the_unexpected_is_a_line_and_a_file(run, monkeypatch, tmp_path):
    def breaks() -> None:
        raise RuntimeError("two\nlines of postgresql://u:hunter22@h/d")

    monkeypatch.setattr(command, "VERBS", {"Start": (breaks,)})
    code, out, err = run("breaks")
    assert (code, out, len(err.splitlines())) == (4, "", 2)
    assert "Traceback" not in err
    (log,) = (tmp_path / "home" / "logs").iterdir()
    assert "RuntimeError" in log.read_text() and str(log) in err
    assert "hunter22" not in log.read_text() + err
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "state", "component"),
    [
        ("", "failed", "aws"),
        ("", "running", "cli"),
        ("--target aws", "failed", "cli"),
        ("--target=aws", "failed", "cli"),
        ("--target local", "failed", "aws"),
    ],
)
def test_a_dead_component_is_named_when_a_client_gets_no_answer(
    run, monkeypatch, tmp_path, words, state, component
):
    def breaks(target: str = "local", json_output: JsonOption = False) -> None:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")

    monkeypatch.setattr(command, "VERBS", {"Start": (breaks,)})
    status = ProcessStatus(name="aws", pid=1, state=state, port=1, log="aws.log")
    observed = tmp_path / "home" / "run" / "observed.json"
    observed.parent.mkdir(parents=True)
    observed.write_text("{}")
    seen = Observed(components=(status,), alive=True)
    monkeypatch.setattr(supervisor_client, "observe", lambda _: seen)
    code, out, _ = run("breaks", *words.split(), "--json")
    error = json.loads(out)["error"]
    assert (code, error["component"]) == (4, component)
    assert (error["remedy"] == "run `cdclake up`") == (component == "aws")


@pytest.mark.parametrize("name", [None, "CDCLAKE_SOURCE_DSN"])
def test_init_takes_the_dsn_from_the_environment(run, monkeypatch, tmp_path, name):
    monkeypatch.delenv("CDCLAKE_SOURCE_DSN", raising=False)
    if name is not None:
        monkeypatch.setenv(name, "postgresql://u:hunter22@127.0.0.1:1/x")
    code, out, _ = run("init", "-o", str(tmp_path / "p.yaml"), "--json")
    message = json.loads(out)["error"]["message"]
    assert code == 2
    assert ("127.0.0.1:1" in message) == (name is not None)
    assert "hunter22" not in out


def test_a_wrong_source_starts_nothing_and_is_not_kept(run, monkeypatch, tmp_path, pipeline):
    dsn = "postgresql://u:hunter22@127.0.0.1:1/x"
    monkeypatch.setenv("CDCLAKE_SOURCE_DSN", dsn)
    *as_said, _ = run("init", "-o", str(tmp_path / "new.yaml"), "--json")
    for arguments in (["up"], ["up", str(pipeline)]):
        *said, _ = run(*arguments, "--json")
        assert said == as_said
    home = tmp_path / "home"
    assert not (home / "run" / "desired.json").exists()
    assert "hunter22" not in (home / "secrets.properties").read_text()


def test_the_command_starts_without_the_heavy_half():
    heavy = ["pyspark", "pydantic", "ruamel.yaml", "boto3", "duckdb", "psycopg", "confluent_kafka"]
    probe = f"import sys, cdclake.cli.main; print([m for m in {heavy!r} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", probe], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"


def test_as_a_process(pipeline):
    found = subprocess.run(
        [sys.executable, "-m", "cdclake.cli.main", "validate", str(pipeline), "--json"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stderr, found.stdout.count("\n")) == (0, "", 1)
    assert json.loads(found.stdout)["ok"]


def test_the_version_is_that_of_the_project(run):
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert run("--version") == (0, f"cdclake {project['version']}\n", "")
    for words in (["--version", "--json"], ["--json", "--version"]):
        code, out, err = run(*words)
        assert (code, err) == (0, "")
        assert json.loads(out) == {"ok": True, "version": project["version"]}


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["--json", "validate", "p.yaml"], "write `cdclake validate --json`"),
        (["--json"], "run `cdclake --help` for its arguments"),
    ],
)
def test_json_before_a_command_is_refused_as_one_object(run, words, remedy):
    code, out, err = run(*words)
    assert (code, err) == (2, "")
    error = json.loads(out)["error"]
    assert (error["code"], error["remedy"]) == ("bad_input", remedy)


def test_the_connector_of_an_existing_source_needs_no_host(run, tmp_path):
    path = tmp_path / "p.yaml"
    existing = (
        "{endpoint: db.internal, port: 6543, security_group: sg-0a1b2c3d,"
        " secret_arn: 'arn:aws:secretsmanager:eu-west-1:111122223333:secret:admin-AbCdEf'}"
    )
    path.write_text(f"{VALID}\naws: {{region: eu-west-1, source: {{existing: {existing}}}}}\n")
    code, text, _ = run("connector", str(path), "--authorities", "/etc/ca.pem", "--heap-mb", "1024")
    config = json.loads(text)
    assert code == 0
    assert (config["database.hostname"], config["database.port"]) == ("db.internal", "6543")
    assert config["database.sslrootcert"] == "/etc/ca.pem" and "database.sslfactory" not in config
    assert config["max.queue.size.in.bytes"] == str(128 * 1024**2)
    assert config["database.password"].startswith("${secretsmanager:")
    code, text, _ = run("connector", str(path), "--worker")
    assert code == 0 and "config.providers.secretsmanager.param.region=eu-west-1\n" in text


def test_the_connector_of_a_created_source_has_a_placeholder(run, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(f"{VALID}\nenvironments: {{prod: {{}}}}\n")
    code, out, err = run("connector", str(path), "--environment", "prod")
    assert (code, json.loads(out)["database.hostname"]) == (0, "<endpoint of shop-prod-source>")
    assert err.startswith(f"warning: {path} names no host: ") and "add --host HOST" in err
    code, out, err = run("connector", str(path), "--host", "db", "--json")
    assert (code, err, json.loads(out)["warnings"]) == (0, "", [])
    code, out, err = run("connector", str(path), "--json")
    assert (code, err, len(json.loads(out)["warnings"])) == (0, "", 1)


def test_a_worker_without_a_region_takes_that_of_its_environment(run, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(VALID)
    code, out, err = run("connector", str(path), "--worker")
    assert (code, "region" in out, "AWS_REGION" in err) == (0, False, True)
    path.write_text(VALID.replace("database: shop", "database: shop, format: avro, registry: glue"))
    assert run("connector", str(path), "--worker")[0] == 0
    assert run("connector", str(path))[0] == 2
    code, out, _ = run("connector", str(path), "--region", "eu-west-1")
    assert (code, json.loads(out)["value.converter.region"]) == (0, "eu-west-1")


def test_the_help_of_each_repair_says_which_one_to_use_when():
    repairs = {verb.__name__ for verb in command.VERBS["Repair"]} - {"pause", "runbook"}
    for name in repairs:
        listed = command.commands()[name].epilog.partition("Which repair when:")[2]
        assert {line.split(":")[0].split()[0] for line in listed.splitlines() if line} == repairs
