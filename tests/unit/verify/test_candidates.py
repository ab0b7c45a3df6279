"""Which keys are settled, wrong or still moving after rounds of reading again."""

import pytest

from cdclake.jobs.verify.mismatches import Mismatches

A, B, C = ("a" * 32, "b" * 32, "c" * 32)


def run(*rounds: tuple[str, str, str]) -> str:
    """The verdict on one key; each round is (before, lake, after), '' where there is no row.

    Of several states before, one after the other, the source was in each.
    """
    candidates = Mismatches([(1, "k")])
    for number, (before, lake, after) in enumerate(rounds, 1):
        candidates.begin_round()
        for state in before.split():
            candidates.look_at_source([(1, "k", state)])
        if not before:
            candidates.look_at_source([])
        candidates.look_at_lake([(1, "k", lake)] if lake else [])
        candidates.look_at_source([(1, "k", after)] if after else [])
        candidates.decide(last=number == len(rounds))
    found = candidates.examples(1)
    return str(found[0][2]) if found else "settled"


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ([(A, A, A)], "settled"),
        ([("", "", "")], "settled"),
        ([(A, A, B)], "settled"),  # the lake shows what was there before
        ([(A, B, B)], "settled"),
        ([(A, B, A), (A, B, A)], "different"),
        ([(f"{A} {B} {A}", B, C)], "settled"),  # one of the looks while the round ran
        ([(f"{A} {B}", "", A)] * 2, "unsettled"),  # it never held no row, but it moves
        ([(A, B, A), (A, A, A)], "settled"),  # there and back while the round ran
        ([(A, "", A), (A, "", A)], "missing"),
        ([("", A, ""), ("", A, "")], "extra"),
        ([(A, A + A, A), (A, A + A, A)], "extra"),  # a key twice in the lake
        ([(A, B, C), (A, B, C)], "unsettled"),
        ([(A, B, A), (A, C, A)], "unsettled"),  # the lake moves on
        ([(A, B, A), (B, A, C), (A, B, A)], "unsettled"),
    ],
)
def test_verdicts(rounds, verdict):
    assert run(*rounds) == verdict


def test_batches_hold_each_open_key_once():
    places = [(n % 7, f"key {n}") for n in range(2500)]
    candidates = Mismatches(iter([*places, *places]))
    assert len(candidates) == 2500
    assert [place for batch in candidates.batches() for place in batch] == sorted(places)
