"""Metrics of a lake in Prometheus's text format, and their endpoint."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from http.client import HTTPConnection
from typing import Any

import pytest

from cdclake.errors import ComponentFailed, InputError
from cdclake.host_header import is_this_machine
from cdclake.local.metrics_server import metrics_server
from cdclake.prometheus_text import CONTENT_TYPE, HELP, prometheus_text, samples

TABLE: dict[str, Any] = {
    "table": 'or"ders', "state": "stopped", "changes_rows": 7, "state_rows": 5, "live_rows": 4,
    "lag_events": None, "freshness_s": 1.25, "state_age_s": 0.0, "quarantined": 3, "withheld": 1,
    "failed": 0, "last_verified": {"at": "2026-11-26T20:00:00+00:00", "equal": False},
}  # fmt: skip
STATUS: dict[str, Any] = {
    "ok": False,
    "components": [{"name": "kafka", "state": "running"}, {"name": "aws", "state": "dead"}],
    "tables": [TABLE],
    "schedules": [{"job": "verify_tables", "exit_code": 1}, {"job": "new", "exit_code": None}],
    "slot": {"wal_bytes": 10, "limit_bytes": 20},
}
OF_DEPLOYMENTS = ("cdclake_lag_events", "cdclake_freshness_seconds", "cdclake_alarm_on")
_LINE = re.compile(r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+')


def test_every_line_is_a_comment_or_a_sample() -> None:
    text = prometheus_text(list(samples(STATUS)))
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or _LINE.fullmatch(line), line


def test_samples_are_the_figures_of_status() -> None:
    lines = prometheus_text(list(samples(STATUS))).splitlines()
    for expected in (
        "cdclake_healthy 0.0",
        'cdclake_component_up{component="kafka"} 1.0',
        'cdclake_component_up{component="aws"} 0.0',
        'cdclake_table_live_rows{table="or\\"ders"} 4.0',
        'cdclake_table_stopped{table="or\\"ders"} 1.0',
        'cdclake_table_verified_equal{table="or\\"ders"} 0.0',
        "cdclake_slot_wal_limit_bytes 20.0",
        'cdclake_job_exit_code{job="verify_tables"} 1.0',
    ):
        assert expected in lines


def test_a_deployment_adds_its_alarms_and_the_figures_of_its_stream() -> None:
    stream = {"name": "stream", "state": "scheduled"}
    about = {"components": [stream], "lag_events": 7.0, "freshness_s": 3.5, "alarms": ["lag"]}
    lines = prometheus_text(list(samples({**STATUS, **about}))).splitlines()
    assert 'cdclake_component_up{component="stream"} 1.0' in lines  # its schedule starts it
    assert "cdclake_lag_events 7.0" in lines
    assert "cdclake_freshness_seconds 3.5" in lines
    assert 'cdclake_alarm_on{alarm="lag"} 1.0' in lines


def test_an_unknown_figure_is_left_out() -> None:
    names = {sample.name for sample in samples(STATUS)}
    assert names == HELP.keys() - {"cdclake_table_lag_events", *OF_DEPLOYMENTS}
    unknown = {**dict.fromkeys(TABLE), "table": "t", "state": "unknown"}
    bare = {"ok": False, "components": [], "tables": [unknown], "slot": None}
    assert [sample.name for sample in samples(bare)] == ["cdclake_healthy"]


def test_the_endpoint_serves_one_path_on_this_machine_only() -> None:
    with metrics_server(0, lambda: "cdclake_healthy 1.0\n") as server:
        host, port = server.server_address[:2]
        assert host == "127.0.0.1"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                assert answer.read() == b"cdclake_healthy 1.0\n"
                assert answer.headers["Content-Type"] == CONTENT_TYPE
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/")
            with pytest.raises(InputError, match="cannot be used"):
                metrics_server(int(port), str)
        finally:
            server.shutdown()
            thread.join()


def test_the_endpoint_refuses_other_names_of_this_machine() -> None:
    with metrics_server(0, lambda: "cdclake_healthy 1.0\n") as server:
        port = server.server_port
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()

        def status(*hosts: str) -> int:
            connection = HTTPConnection("127.0.0.1", port)
            connection.putrequest("GET", "/metrics", skip_host=True)
            for host in hosts:
                connection.putheader("Host", host)
            connection.endheaders()
            answer = connection.getresponse()
            assert (b"cdclake_healthy" in answer.read()) == (answer.status == 200)
            return answer.status

        try:
            assert [status(f"{name}:{port}") for name in ("127.0.0.1", "localhost")] == [200, 200]
            refused = (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}.evil.example")
            assert [status(host) for host in refused] == [403, 403, 403]
            assert [status(), status(f"127.0.0.1:{port}", f"evil.example:{port}")] == [403, 403]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_port_of_http_need_not_be_named(name: str) -> None:
    assert is_this_machine([name], 80) and is_this_machine([f"{name}:80"], 80)
    assert not is_this_machine([name], 8080)
    assert not is_this_machine(["evil.example"], 80)


def test_a_scrape_of_a_lake_that_cannot_be_read_says_why() -> None:
    answers = iter(["cdclake_healthy 1.0\n"])

    def read() -> str:
        for answer in answers:
            return answer
        raise ComponentFailed("the lake could not be read", "run it again", component="aws")

    with metrics_server(0, read) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/metrics"
        assert urllib.request.urlopen(url).status == 200
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url)
        assert caught.value.code == 503
        assert "the lake could not be read" in caught.value.read().decode()
        server.shutdown()
