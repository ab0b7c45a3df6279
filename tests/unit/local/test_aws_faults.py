"""Injected faults of the local S3 and Glue."""

from collections import Counter

import pytest

from cdclake.errors import InputError
from cdclake.local.aws.aws_faults import KINDS, AwsFaults
from cdclake.local.aws.http_server import Answer, ConnectionDropped

OK: Answer = (200, {}, b"served")


class Served:
    """A server that counts what took effect."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Answer:
        self.count += 1
        return OK


def faults_of(text: str) -> AwsFaults:
    faults = AwsFaults.parse(text)
    assert faults is not None
    faults.sleep = lambda _: None
    return faults


def outcome(faults: AwsFaults, served: Served, target: str = "t", service: str = "s3") -> str:
    before = served.count
    try:
        status = faults.answer(service, target, served)[0]
    except ConnectionDropped:
        return f"dropped {served.count - before}"
    return f"{status} {served.count - before}"


@pytest.mark.parametrize(
    ("kind", "service", "expected"),
    [
        ("latency", "s3", "200 1"),
        ("throttle", "s3", "503 0"),
        ("throttle", "glue", "400 0"),
        ("error", "s3", "500 0"),
        ("error", "glue", "500 0"),
        ("drop_before", "s3", "dropped 0"),
        ("drop_after", "glue", "dropped 1"),
    ],
)
def test_a_fault_takes_effect_as_its_name_says(kind: str, service: str, expected: str) -> None:
    faults, served = faults_of(f"1:{kind}@0.5"), Served()
    seen = Counter(outcome(faults, served, str(n), service) for n in range(400))
    assert set(seen) == {expected, "200 1"}
    if expected != "200 1":
        assert 120 < seen[expected] < 280


def test_the_same_seed_gives_the_same_faults() -> None:
    runs = [
        [outcome(faults_of("7:throttle,drop_after@0.3"), Served(), str(n)) for n in range(50)]
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_a_request_fails_at_most_twice_in_a_row() -> None:
    faults, served = faults_of("3:error@0.99"), Served()
    seen = [outcome(faults, served) for _ in range(30)]
    assert "200 1" in seen
    assert "500 0,500 0,500 0" not in ",".join(seen)


def test_an_outage_fails_every_request_until_it_ends() -> None:
    faults = AwsFaults(1, frozenset({"outage"}), clock=iter([0.0, 1.0, 45.0, 59.0, 61.0]).__next__)
    served = Served()
    assert [outcome(faults, served) for _ in range(4)] == ["200 1", "500 0", "500 0", "200 1"]


def test_no_text_means_no_faults() -> None:
    assert AwsFaults.parse("") is None


@pytest.mark.parametrize("text", ["7", "x:error", "7:fire", "7:error@2", "7:error@x", "7:"])
def test_an_invalid_text_is_refused_with_the_kinds(text: str) -> None:
    with pytest.raises(InputError) as refused:
        AwsFaults.parse(text)
    assert all(kind in refused.value.remedy for kind in KINDS)
