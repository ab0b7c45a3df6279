"""What `status` shows of a polled table."""

from cdclake.control_objects import PollProgress
from cdclake.jobs.control.poll_state import poll_figures

NOW = 1_800_000_000.0


def test_a_poll_is_shown_with_its_age_and_that_of_the_last_sweep() -> None:
    found = PollProgress(read_at=int((NOW - 5) * 1e6), swept_at=int((NOW - 60) * 1e6), refused=2)
    assert poll_figures(found, "why", NOW) == {
        "state": "polling",
        "last_error": "why",
        "state_age_s": 0.0,
        "polled": {"age_s": 5.0, "swept_age_s": 60.0, "refused": 2},
    }


def test_before_the_first_poll_a_table_is_loading() -> None:
    shown = poll_figures(None, None, NOW)
    assert (shown["state"], shown["last_error"], shown["polled"]) == ("loading", None, None)
