"""Seeded faults of the local S3 and Glue: slow, throttled, failed and lost requests.

`CDCLAKE_AWS_FAULTS=SEED:KIND,…[@SHARE]` in the environment of `cdclake up` switches them on, and
`up` without it switches them off (the server restarts). Health checks are never affected.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cdclake.errors import InputError
from cdclake.local.aws.http_server import Answer, ConnectionDropped

KINDS = ("latency", "throttle", "error", "drop_before", "drop_after", "outage")
_DEFAULT_SHARE = 0.1
_LATENCY_S = 2.0  # at most
_OUTAGE_S, _BETWEEN_OUTAGES_S = 20.0, 40.0
_MAX_CONSECUTIVE_FAILURES = 2  # below the retries of every client, except in an outage

_S3_ERROR = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>injected</Message></Error>'


@dataclass(slots=True)
class AwsFaults:
    """Generator of faults; the same seed and the same order of requests give the same faults."""

    seed: int
    kinds: frozenset[str]
    share: float = _DEFAULT_SHARE
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _random: random.Random = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _failures: dict[str, int] = field(init=False, default_factory=dict)
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        """Seed the generator, and start the clock of outages."""
        self._random, self._started = random.Random(self.seed), self.clock()

    @staticmethod
    def parse(text: str) -> AwsFaults | None:
        """Parse a text like `7:latency,throttle@0.2`; return None for an empty one.

        Raise InputError for any other text.
        """
        if not text:
            return None
        seed, _, listed = text.partition(":")
        names, _, share = listed.partition("@")
        kinds = frozenset(names.split(","))
        if not seed.isdecimal() or kinds - {*KINDS} or not _is_share(share or "0.1"):
            raise InputError(
                f"invalid fault injection {text!r} of the local S3 and Glue",
                f"use a seed, kinds among {', '.join(KINDS)}, and a share of the requests below 1, "
                "like `7:latency,throttle@0.2`",
            )
        return AwsFaults(int(seed), kinds, float(share or _DEFAULT_SHARE))

    def answer(self, service: str, target: str, serve: Callable[[], Answer]) -> Answer:
        """Serve a request, or fail it; `target` tells repetitions of one request.

        Raise ConnectionDropped if the client is to get no response, before or after the request
        took effect.
        """
        if "outage" in self.kinds and self._in_outage():
            return _unavailable(service)
        kind = self._chosen(target)
        if kind == "latency":
            with self._lock:
                seconds = self._random.uniform(0, _LATENCY_S)
            self.sleep(seconds)
        elif kind == "throttle":
            return _throttled(service)
        elif kind == "error":
            return _unavailable(service)
        elif kind == "drop_before":
            raise ConnectionDropped
        answer = serve()
        if kind == "drop_after":
            raise ConnectionDropped
        return answer

    def _in_outage(self) -> bool:
        since = (self.clock() - self._started) % (_OUTAGE_S + _BETWEEN_OUTAGES_S)
        return since >= _BETWEEN_OUTAGES_S

    def _chosen(self, target: str) -> str | None:
        """Choose the request's fault; one request never fails more often than clients retry."""
        kinds = sorted(self.kinds - {"outage"})
        with self._lock:
            if not kinds or self._random.random() >= self.share:
                self._failures.pop(target, None)
                return None
            kind = self._random.choice(kinds)
            if kind == "latency":
                return kind
            failures = self._failures.pop(target, 0)
            if failures >= _MAX_CONSECUTIVE_FAILURES:
                return None
            self._failures[target] = failures + 1
            return kind


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _throttled(service: str) -> Answer:
    if service == "s3":
        return _s3_error(503, "SlowDown")
    return _json_error(400, "ThrottlingException")


def _unavailable(service: str) -> Answer:
    if service == "s3":
        return _s3_error(500, "InternalError")
    return _json_error(500, "InternalServiceException")


def _s3_error(status: int, code: str) -> Answer:
    return status, {"content-type": "application/xml"}, _S3_ERROR.format(code=code).encode()


def _json_error(status: int, code: str) -> Answer:
    body = json.dumps({"__type": code, "message": "injected"}).encode()
    headers = {"content-type": "application/x-amz-json-1.1", "x-amzn-errortype": code}
    return status, headers, body
