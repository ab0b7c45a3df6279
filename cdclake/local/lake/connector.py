"""Client of the connector on the local worker, through Connect's REST API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from cdclake import naming
from cdclake.debezium.incremental_snapshot import tables_being_read
from cdclake.errors import ComponentFailed
from cdclake.local.components.connect import DIRECT, ConnectApi
from cdclake.plan import Plan

_TIMEOUT_S = 30.0
_WAIT_S = 60.0
_POLL_S = 0.2
_LSNS = ("lsn", "lsn_proc", "lsn_commit")  # of Debezium's offset


class ConnectorClient:
    """Client of one connector; its name is constant, since Connect stores its offsets under it."""

    def __init__(
        self, connect: ConnectApi, plan: Plan, *, name: str = "", wait_s: float = _WAIT_S
    ) -> None:
        """Create a client of the pipeline's Debezium connector, or of the one with this name.

        `wait_s` limits the retries while the worker rebalances.
        """
        self._wait_s = wait_s
        self._name, self._prefix = name or naming.connector_name(plan.name), plan.name
        self._headers = {"Content-Type": "application/json", **connect.headers}
        self._connectors = f"{connect.url}/connectors"
        self._url = f"{self._connectors}/{self._name}"

    def set_config(self, config: dict[str, str]) -> None:
        """Create the connector or change its settings; a stopped connector stays stopped."""
        self._call("PUT", "/config", config)

    def start(self, config: dict[str, str]) -> None:
        """Run the connector with these settings, and restart a failed task.

        A connector that runs with these settings is left alone: Connect would restart it.
        """
        if self._is_running_with(config):
            return
        self.set_config(config)
        self.resume()
        if self.failure() is not None:
            self._call("POST", "/restart?includeTasks=true&onlyFailed=true")

    def resume(self) -> None:
        """Resume the connector with its current settings, and wait until its task is assigned."""
        self._call("PUT", "/resume")
        _await(self._has_task, "the connector's task was not started")

    def begin_at(self, config: dict[str, str], lsn: int) -> None:
        """Set the LSN of the next start, without a snapshot; the connector must have no offsets."""
        if self._call("GET", "", missing_ok=True) is None:
            created = {"name": self._name, "config": config, "initial_state": "STOPPED"}
            self._call("POST", "", created, url=self._connectors)
        self.stop()
        self.set_config(config)
        place = {"partition": {"server": self._prefix}, "offset": {"lsn": lsn, "ts_usec": 0}}
        self._call("PATCH", "/offsets", {"offsets": [place]})

    def forget_offsets(self) -> None:
        """Delete the offsets, so that the next start takes a full snapshot, under a new epoch."""
        if self.stop_existing():
            self._call("DELETE", "/offsets")

    def stop_existing(self) -> bool:
        """Stop the connector if it exists; return False if it does not."""
        if self._call("GET", "", missing_ok=True) is None:
            return False
        self.stop()
        return True

    def stop(self) -> None:
        """Stop the connector and wait until it has stopped."""
        self._call("PUT", "/stop")
        _await(lambda: self._state() == "STOPPED", "the connector did not stop")

    def remove(self) -> None:
        """Delete the connector if it exists; its offsets are kept."""
        self._call("DELETE", "", missing_ok=True)

    def failure(self) -> str | None:
        """Return the cause of a failed connector or task; None if nothing has failed."""
        status = self._call("GET", "/status", missing_ok=True)
        if status is None:
            return "the connector does not exist"
        for part in (status["connector"], *status["tasks"]):
            if part["state"] == "FAILED":
                return _cause(part.get("trace", ""))
        return None

    def state(self) -> str:
        """Return `missing`, `failed` if a part of it has failed, or Connect's state in lowercase.

        A connector without a task is `starting`, unless it was stopped.
        """
        status = self._call("GET", "/status", missing_ok=True)
        if status is None:
            return "missing"
        states = [part["state"] for part in (status["connector"], *status["tasks"])]
        if "FAILED" in states:
            return "failed"
        has_begun = len(states) > 1 or states[0] == "STOPPED"
        return str(states[0]).lower() if has_begun else "starting"

    def reading(self) -> frozenset[str]:
        """Return the tables (`schema.table`) that an incremental snapshot is still reading."""
        return frozenset(table for o in self._offsets() for table in tables_being_read(o))

    def read_through(self) -> int:
        """Return the greatest LSN in the stored offsets; 0 if there is none."""
        lsns = (offset.get(name) for offset in self._offsets() for name in _LSNS)
        return max((int(lsn) for lsn in lsns if lsn is not None), default=0)

    def _offsets(self) -> list[dict[str, Any]]:
        stored = self._call("GET", "/offsets", missing_ok=True)
        return [each["offset"] for each in stored["offsets"]] if stored else []

    def _is_running_with(self, config: dict[str, str]) -> bool:
        stored = self._call("GET", "/config", missing_ok=True)
        if stored is None or {k: v for k, v in stored.items() if k != "name"} != config:
            return False
        status = self._call("GET", "/status", missing_ok=True)
        parts = [status["connector"], *status["tasks"]] if status else []
        return len(parts) > 1 and all(part["state"] == "RUNNING" for part in parts)

    def _has_task(self) -> bool:
        status = self._call("GET", "/status", missing_ok=True)
        return bool(status and status["tasks"])

    def _state(self) -> str:
        return str(self._call("GET", "/status")["connector"]["state"])

    def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        missing_ok: bool = False,
        url: str | None = None,
    ) -> Any:
        """Send a request and return the response's JSON, or None if it is empty.

        Retry while the worker rebalances (409).
        """
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                return self._request(method, (url or self._url) + path, body)
            except urllib.error.HTTPError as error:
                if error.code == 404 and missing_ok:
                    return None
                if error.code not in (404, 409, 500) or time.monotonic() > deadline:
                    raise ComponentFailed(
                        f"Connect rejected {method} {path or '/'}: {_message(error)}",
                        "fix the cause, then run `cdclake up` again",
                        component="connect",
                    ) from error
            time.sleep(_POLL_S)

    def _request(self, method: str, url: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers, method=method)
        with DIRECT.open(request, timeout=_TIMEOUT_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return _without_endpoint(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.code}"


def _without_endpoint(message: str) -> str:
    r"""Return Connect's message in one line: an invalid configuration has an error per line.

    >>> _without_endpoint("invalid, 1 error(s):\nMust not be empty\nYou can also find the list")
    'invalid, 1 error(s): Must not be empty'
    """
    lines = [line.strip() for line in message.splitlines()]
    return " ".join(line for line in lines if not line.startswith("You can also find"))


def _cause(trace: str) -> str:
    """Return the root cause of a Java stack trace."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["no reason given"])[-1 if causes else 0].removeprefix("Caused by: ")


def _await(condition: Callable[[], bool], failure: str) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise ComponentFailed(
                f"{failure} within {_WAIT_S:.0f} s", "read Connect's log", component="connect"
            )
        time.sleep(_POLL_S)
