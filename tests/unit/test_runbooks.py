"""What the runbooks tell people to type is taken by what they type it to."""

from __future__ import annotations

import base64
import json
import re
import shlex
from pathlib import Path

import pytest

from cdclake.cli.main import commands as all_commands
from cdclake.debezium.topics import OFFSETS_SETTINGS, durable_settings
from cdclake.deployed_jobs import JOBS
from cdclake.iceberg.collapse import YOUNG
from tests.unit.runbooks import FOLDER, PAGES, blocks, commands
from tests.unit.typed_commands import unknown_aws_words

PROJECT = Path(__file__).resolve().parents[2]
PROGRAMS = (
    "aws",
    "cdclake",
    "make",
    "npm ci",
    "npm install",
    "npx cdk",
    "uv run cdclake",
    "uv sync",
)


@pytest.mark.parametrize(("page", "line"), commands("cdclake"))
def test_the_cli_takes_every_command(page, line):
    known, words = all_commands(), shlex.split(line)[1:]
    name = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
    context = known[name].make_context(name, words[len(name.split()) :])
    assert name != "job" or context.params["name"] in JOBS


@pytest.mark.parametrize(("page", "line"), commands("aws"))
def test_aws_knows_every_command_and_option(page, line):
    assert unknown_aws_words(line) == []


def test_every_line_is_of_a_program_that_is_looked_at():
    lines = [line.split(" | ")[-1] for _, block in blocks("sh") for line in block.splitlines()]
    assert [line for line in lines if not line.startswith(PROGRAMS)] == []


@pytest.mark.parametrize(("page", "line"), commands("make"))
def test_make_knows_every_target(page, line):
    assert re.search(rf"^{line.split()[1]}:", (PROJECT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", PAGES[page]):
        assert target.startswith("https://") or (FOLDER / target).exists(), target


@pytest.mark.parametrize("page", ["first-deployment", "upgrade"])
def test_a_page_begins_with_the_commands_of_a_new_project(page):
    own, clone = PAGES[page].split("\n1. ", 1)
    assert "**In a project of `cdclake new NAME`**" in own and "`-c pipeline=...`" in own
    [block] = re.findall(r"^```sh\n(.*?)^```$", own, re.M | re.S)
    assert {"uv sync", "npm install"} <= set(block.splitlines())
    assert "make " not in block and "pipeline=" not in block
    assert "make setup\nmake plugins\n" in clone


def test_the_topic_of_offsets_is_made_again_as_it_was():
    page = PAGES["lost-slot"]
    for pattern, more in (
        (r"--configs (\S+)", durable_settings(3)),
        (r"factor 2 +(\S+)", durable_settings(2)),
        (r"MSK Express +(\S+=)", {}),
    ):
        [told] = re.findall(pattern + "$", page, re.M)
        assert json.loads(base64.b64decode(told)) == OFFSETS_SETTINGS | more


def test_disks_that_msk_has_extended_are_extended_further():
    """MSK refuses a `volume_gb` that is not 10 GiB above the size it has extended the disks to."""
    steps = PAGES["kafka-disk"].split("## What to do")[1]
    assert "raise `max_volume_gb`" in steps and "10 more than the present size" in steps


def test_a_table_of_firehose_is_read_again_with_its_topic_and_a_signal():
    """A new table gets no snapshot, and CloudFormation cannot create a topic that exists."""
    where = "#tables-of-firehose-and-polls"
    section = PAGES["resync"].split("\n## Tables of Firehose and polls\n")[1]
    assert "(adding-a-table.md#a-table-that-comes-back-on-aws)" in section
    assert "`execute-snapshot`" in section and "'execute-snapshot'" in PAGES["adding-a-table"]
    for page in PAGES.keys() - {"resync"}:
        for step in re.split(r"\n(?=[0-9]+[.] |\n)", PAGES[page]):
            if "another `name:`" in step and "firehose" in step.lower():
                assert f"(resync.md{where})" in step, page
    assert f"(resync.md{where})" in PAGES["changed-relations"]


def test_failed_changes_have_the_limit_of_a_redrive():
    """Records are kept for longer than a redrive accepts changes of the source."""
    days = f"{YOUNG.days} days"
    pages = [page for page, text in PAGES.items() if "`aws: failed_days`" in text]
    assert len(pages) == 5
    assert [page for page in pages if days not in PAGES[page].split("## What can be lost")[1]] == []


def test_new_columns_of_a_table_of_firehose_are_deployed_in_order():
    assert "(adding-a-table.md#columns-of-a-table-that-firehose-delivers)" in PAGES["new-columns"]


def test_a_new_password_is_no_argument_of_a_process():
    """Other users of the machine see arguments; `printf` is part of the shell."""
    lines = [line for _, block in blocks("sh") for line in block.splitlines()]
    made = [part for line in lines for part in line.split(" | ") if "get-random-password" in part]
    assert made and all(part.startswith("printf ") for part in made)


@pytest.mark.parametrize("section", ["The source was restored", "Another existing server"])
def test_the_jobs_read_another_server_before_the_new_epoch(section):
    """Lost slot deploys the connector's stack only, which leaves the jobs at the former server."""
    [steps] = [s for s in PAGES["restore"].split("\n## ") if s.startswith(section)]
    before, after = steps.split("Follow [lost slot](lost-slot.md) from its step 2 on")
    network, *others = re.findall(r"npx cdk deploy .*", before)
    assert network.endswith("--exclusively shop-prod-network") and "`SourceOwner`" in before
    assert any(re.search(r" --all$| shop-prod-processing\b", each) for each in others)
    assert "everything" in after or "--all" in after  # the connector's keeper returns


def test_a_stopped_table_is_resumed_before_its_events_are_replayed():
    steps = PAGES["stopped-table"].split("## What to do")[1]
    assert "to its step 5" in steps and "resync the table afterwards" in steps
    [replay] = re.findall(r"\n6[.] (.*?)```", PAGES["quarantine"], re.S)
    assert replay.index("[resume]") < replay.index("replay")


# A deployment that failed is repeated: its template has not arrived yet.
AFTER_FAILED_DEPLOYMENTS = {"first-deployment", "rotate-passwords"}


@pytest.mark.parametrize("page", sorted(PAGES.keys() - AFTER_FAILED_DEPLOYMENTS))
def test_no_remedy_is_a_deployment_without_a_change(page):
    """CloudFormation touches no resource whose template is unchanged, whatever became of it."""
    assert re.findall(r"\bdeploy\b(?! and )[^.:;,]*\bagain\b", PAGES[page], re.I) == []
