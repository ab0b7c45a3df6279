"""`cdclake plan` for a deployment, against moto, and for a lake's state without the lake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake.cli.main import main
from cdclake.config.deployment import load_deployment
from cdclake.config.resolve import load_plan
from cdclake.errors import START_AGAIN
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from tests.unit.config.pipelines import VALID
from tests.unit.terminal import on_a_terminal

FILE = VALID + "environments: {dev: {}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "p.yaml"
    path.write_text(FILE)
    return path


def plan(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, dict[str, Any]]:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *words, "--json"])
    return ended.value.code, json.loads(capsys.readouterr().out)


def deploy(file: Path) -> None:
    where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    boto3.client("s3").create_bucket(Bucket="state", **where)
    text = load_deployment(file, "dev").plan.to_json()
    boto3.client("s3").put_object(Bucket="state", Key="plans/p.json", Body=text.encode())
    boto3.client("glue").create_job(
        Name="shop-dev-stream_changes",
        Role="r",
        Command={"Name": "gluestreaming", "ScriptLocation": "s3://state/x.py"},
        DefaultArguments={"--plan": "s3://state/plans/p.json", "--control": "s3://state/control"},
    )


def with_a_column(file: Path) -> str:
    column = load_plan(file).tables[0].columns[-1]
    return FILE.replace(f"{column.source}: ", f"added: text\n      {column.source}: ", 1)


def test_the_deployed_plan_is_what_is_compared(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(file)
    code, same = plan(capsys, str(file), "--environment", "dev")
    assert (code, {table["effect"] for table in same["tables"]}) == (0, {"unchanged"})
    assert same["compared_with"] == "what is deployed as shop-dev-stream_changes"
    assert any("`aws:` is not compared" in unknown for unknown in same["unknown"])
    with pytest.raises(SystemExit):
        main(["plan", str(file), "--environment", "dev"])
    assert "nothing changes in what was compared" in capsys.readouterr().out
    file.write_text(with_a_column(file))
    code, changed = plan(capsys, str(file), "--environment", "dev")
    again = [table for table in changed["tables"] if table["effect"] == "load again"]
    assert (code, len(again), changed["reads"]["tables"]) == (0, 1, 1)
    assert "cdclake resync" in again[0]["reason"]
    with pytest.raises(SystemExit):
        main(["plan", str(file), "--environment", "dev"])
    shown = capsys.readouterr().out
    assert "to read: 1 of " in shown and "\nreads " not in shown


def test_what_cannot_be_deployed_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deploy(file)
    file.write_text(FILE + "lake: {database: other}\n")
    code, refused = plan(capsys, str(file), "--environment", "dev")
    assert code == 2
    assert "lake.database changed from 'cdc_iceberg' to 'other'" in refused["error"]["message"]


def test_another_shard_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deploy(file)
    key = "    key: ["
    file.write_text(FILE.replace(key, f"    shard: 2\n{key}", 1))
    code, refused = plan(capsys, str(file), "--environment", "dev")
    assert code == 2
    moved = f"{load_plan(file).tables[0].source}: `shard` changed from 1 to 2"
    assert refused["error"]["message"].endswith(f"to the deployed lake: {moved}")


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("firehose: {error_prefix: failed-eu}\n", "from 'firehose' to 'failed-eu'"),
        (None, "the file no longer has a Firehose stream"),
    ],
)
@pytest.mark.parametrize("compared", ["account", "file"])
def test_an_abandoned_error_prefix_is_a_warning(
    after: str | None, message: str, compared: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    puts = FILE + "puts: {clicks: {columns: {id: int}}}\n"
    file.write_text(puts)
    deploy(file)
    other = file.with_name("other.yaml")
    other.write_text(FILE if after is None else puts + after)
    against = ("--against", str(file)) if compared == "file" else ()
    code, found = plan(capsys, str(other), "--environment", "dev", *against)
    [warning] = found["warnings"]
    assert code == 0
    assert message in warning["message"] and "`failed_days`" in warning["message"]
    assert "cdclake redrive --target aws" in warning["remedy"]
    code, found = plan(capsys, str(file), "--environment", "dev", *against)
    assert (code, found["warnings"]) == (0, [])


def test_an_account_without_the_deployment_gets_everything(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, first = plan(capsys, str(file), "--environment", "dev")
    assert (code, {table["effect"] for table in first["tables"]}) == (0, {"load"})
    assert first["compared_with"] == "the account, where it is not deployed"


def test_files_are_compared_without_an_account(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(FILE + "aws: {connect: {mcus: 2}}\n")
    code, found = plan(capsys, str(other), "--environment", "dev", "--against", str(file))
    assert (code, found["compared_with"]) == (0, str(file))
    assert found["settings"] == [{"key": "aws.connect.mcus", "before": 1, "after": 2}]
    assert not any("`aws:`" in unknown for unknown in found["unknown"])
    other.write_text(FILE + "aws: {connect: {epoch: 2}}\n")
    _, epoch = plan(capsys, str(other), "--environment", "dev", "--against", str(file))
    assert {table["effect"] for table in epoch["tables"]} == {"load again"}
    assert (epoch["by_resync"], found["by_resync"]) == (False, True)


@pytest.mark.parametrize("options", [(), ("--environment", "dev")])
def test_a_table_whose_rows_never_come_is_refused(
    options: tuple[str, ...], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = file.with_name("other.yaml")
    added = "tables:\n  public.Order Lines: {key: [id], columns: {id: bigint}}\n"
    other.write_text(FILE.replace("tables:\n", added, 1))
    code, refused = plan(capsys, str(other), *options, "--against", str(file))
    assert code == 2
    assert "public.Order Lines: its name has a blank" in refused["error"]["message"]
    file.write_text(other.read_text())
    code, _ = plan(capsys, str(other), *options, "--against", str(file))
    assert code == 0
    if options:
        other.write_text(other.read_text() + "aws: {connect: {epoch: 2}}\n")
        file.write_text(FILE)
        assert plan(capsys, str(other), *options, "--against", str(file))[0] == 0


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("", "aws: {size: large}\n", "`kafka: create: instance`, `kafka: create: volume_gb`"),
        ("aws: {size: small}\n", "", "zones of the network would change from a, b to a, b, c"),
        (
            "aws: {private_connectivity: off}\n",
            "aws: {private_connectivity: on, kafka: {create: {brokers_per_zone: 2}}}\n",
            "`kafka: create: brokers_per_zone`, `private_connectivity`",
        ),
    ],
)
def test_changes_that_msk_refuses_are_refused_before_the_deployment(
    before: str, after: str, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE + before)
    other = file.with_name("other.yaml")
    other.write_text(FILE + after)
    options = ("--environment", "dev", "--against", str(file))
    code, refused = plan(capsys, str(other), *options)
    assert code == 2
    assert message in refused["error"]["message"]
    other.write_text(f"{FILE}{before or 'aws: {kafka: {create: {volume_gb: 300}}}'}\n")
    assert plan(capsys, str(other), *options)[0] == 0


@pytest.mark.parametrize(
    ("options", "lake"), [((), "a lake"), (("--environment", "dev"), "a deployment")]
)
def test_a_refusal_names_what_is_compared(
    options: tuple[str, ...], lake: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = file.with_name("other.yaml")
    other.write_text(FILE + "lake: {database: other}\n")
    code, refused = plan(capsys, str(other), *options, "--against", str(file))
    assert code == 2
    message = f"cannot apply this pipeline file to {lake} of {file}: lake.database changed"
    assert refused["error"]["message"].startswith(message)
    assert "CDCLAKE_HOME" not in refused["error"]["remedy"]
    assert "down --purge" not in refused["error"]["remedy"]
    assert "stream the file in another home" in refused["error"]["remedy"]


def test_a_refusal_names_the_remedy_of_what_was_found(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = file.with_name("other.yaml")
    options = ("--environment", "dev", "--against", str(file))
    other.write_text(FILE.replace("columns:", "deletes: soft\n    columns:", 1))
    _, refused = plan(capsys, str(other), *options)
    assert refused["error"]["remedy"] == f"undo these changes; or {START_AGAIN}"
    other.write_text(FILE.replace("note: text", "note: date", 1))
    _, refused = plan(capsys, str(other), *options)
    assert refused["error"]["remedy"].startswith("for a type, remove the column from the file")


def test_up_asks_on_a_terminal_before_it_reads_again(file: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    LakeState(plan=load_plan(file).to_json(), epoch=1).save(home)
    file.write_text(with_a_column(file))
    code, shown = on_a_terminal(b"n\n", home.path, "up", str(file))
    assert (code, "Go on? [y/N]" in shown) == (2, True)
    assert "new columns: added" in shown
    assert not home.ports_file.exists()  # nothing was started


WITHOUT_TABLES = """\
version: 1
name: shop
source: {database: shop}
puts: {clicks: {columns: {id: bigint}, key: [id]}}
"""


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        (("--source", "dbname=elsewhere"), FILE, "reads its own PostgreSQL"),
        ((), WITHOUT_TABLES, "streams tables, but the pipeline file has none"),
    ],
)
def test_plan_refuses_a_source_as_up_does(
    source: tuple[str, ...], text: str, expected: str, file: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    home = Home(tmp_path / "home")
    home.create()
    LakeState(plan=load_plan(file).to_json(), epoch=1).save(home)
    file.write_text(text)
    code, refused = plan(capsys, str(file), *source)
    assert code == 2 and expected in refused["error"]["message"]
    with pytest.raises(SystemExit):
        main(["up", str(file), *source, "--json"])
    assert json.loads(capsys.readouterr().out)["error"] == refused["error"]


def test_a_mask_that_comes_too_late_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    masked = tmp_path / "masked.yaml"
    masked.write_text(FILE.replace("note: text", "note: {type: text, mask: hash}"))
    code, refused = plan(capsys, str(masked), "--against", str(file))
    assert (code, "mask" in refused["error"]["message"]) == (2, True)
