"""The page of recorded requests has the counts and reasons of the committed recording."""

from __future__ import annotations

import json
import re

from tests.recorded_requests.page import PAGE, distinct, page
from tests.recorded_requests.record import REQUESTS, known


def test_the_page_is_that_of_the_recording():
    assert PAGE.read_text("utf-8") == page(), "run `make docs`"


def test_each_role_action_and_pattern_is_counted_once():
    [total] = re.findall(r"^\| \*\*all\*\* .*\| \*\*(\d+)\*\* \|$", PAGE.read_text(), re.M)
    lines = [
        (role, *call) for role, calls in json.loads(REQUESTS.read_text()).items() for call in calls
    ]
    assert int(total) == len(lines) == len(set(lines))
    twice = {role: calls * 2 for role, calls in known().items()}
    assert len(distinct(twice)) == int(total)
