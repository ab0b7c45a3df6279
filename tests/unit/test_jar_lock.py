"""The lock of the jars: a changed, missing or additional jar is found and named."""

import zipfile
from pathlib import Path

import pytest

from cdclake.errors import InputError
from cdclake.jar_lock import (
    LOCK_NAME,
    REPOSITORY,
    parse_jar_lock,
    parse_jar_urls,
    render_jar_lock,
    unlocked_jars,
)
from cdclake.stacks.bundles import build_plugin, jar_of
from scripts import fetch_jars
from tests.source_tree import PROJECT

URLS = {name: f"{REPOSITORY}{name}" for name in ("kafka/a.jar", "spark/a.jar")}


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    found = []
    for name in (
        "kafka/a.jar",
        "spark/a.jar",
        "secrets/cdclake-connect.jar",
        "spark/cdclake-iceberg.jar",
    ):
        jar = tmp_path / name
        jar.parent.mkdir(exist_ok=True)
        jar.write_text(name)
        found.append(jar)
    return found


def test_lock_is_read_as_written_and_leaves_out_our_own_jar(jars: list[Path]) -> None:
    lock = parse_jar_lock(render_jar_lock(jars, URLS))
    assert list(lock) == ["kafka/a.jar", "spark/a.jar"]
    assert parse_jar_urls(render_jar_lock(jars, URLS)) == URLS
    assert list(unlocked_jars(jars, lock)) == []


def test_changed_and_unknown_jars_are_named(jars: list[Path]) -> None:
    lock = parse_jar_lock(render_jar_lock(jars[1:], URLS))
    jars[1].write_text("poisoned")
    unknown, changed = unlocked_jars(jars, lock)
    assert unknown == f"kafka/a.jar is not in {LOCK_NAME}"
    assert changed.startswith("spark/a.jar has the SHA-256 ")
    assert lock["spark/a.jar"] in changed


def test_fetched_jars_are_compared_with_the_lock(jars: list[Path]) -> None:
    fetch_jars.check_lock(jars[0].parent, parse_jar_lock(render_jar_lock(jars, URLS)))
    jars[0].write_text("poisoned")
    with pytest.raises(
        fetch_jars.SetupError, match=r"(?s)kafka/a\.jar has the SHA-256 .*report it"
    ):
        fetch_jars.check_lock(
            jars[0].parent, parse_jar_lock(render_jar_lock(jars[1:], URLS) + _line())
        )


def test_packaging_refuses_a_jar_that_is_not_locked(tmp_path: Path) -> None:
    for profile in ("debezium", "secrets"):
        (tmp_path / profile).mkdir()
        with zipfile.ZipFile(tmp_path / profile / f"evil-{profile}.jar", "w") as jar:
            jar.writestr("x", "y")
    with pytest.raises(InputError, match=r"debezium/evil-debezium\.jar is not in jars\.lock"):
        build_plugin(jars=tmp_path)


def test_a_jar_of_the_jobs_is_compared_with_the_lock(tmp_path: Path) -> None:
    assert jar_of("msk", "aws-msk-iam-auth-*.jar").is_file()
    jar = tmp_path / "msk" / jar_of("msk", "aws-msk-iam-auth-*.jar").name
    jar.parent.mkdir()
    jar.write_text("poisoned")
    with pytest.raises(InputError, match=rf"msk/{jar.name} has the SHA-256 ") as refused:
        jar_of("msk", "aws-msk-iam-auth-*.jar", jars=tmp_path)
    assert "make setup" in refused.value.remedy


def test_every_present_jar_is_locked() -> None:
    lock = parse_jar_lock((PROJECT / LOCK_NAME).read_text())
    present = fetch_jars.all_jars()
    assert present
    assert list(unlocked_jars(present, lock)) == []
    fetched = {jar.parent.name for jar in present}
    wanted = {name for name in lock if name.partition("/")[0] in (*fetch_jars.PROFILES, *fetched)}
    assert {f"{jar.parent.name}/{jar.name}" for jar in present} >= wanted


def _line() -> str:
    return f"{'0' * 64}  kafka/a.jar\n"
