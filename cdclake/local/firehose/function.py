"""Calls of a stream's function: retries, time limit, and validation of the answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cdclake.firehose.stream import DeliveryStream
from cdclake.local.firehose.fault_injection import NO_FAULTS, FaultInjector
from cdclake.local.firehose.records import Failure, Made, Record, invocation, value_name

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
MAX_CALL_S = 60.0
MAX_CALL_BYTES = 6_291_456  # of a request and of its answer: Lambda's 6 MB

_FAILED_STATUS = "Lambda.ProcessingFailedStatus"
_MISSING_ID = "Lambda.MissingRecordId"
_DUPLICATED_ID = "Lambda.DuplicatedRecordId"
_BAD_ANSWER = "Lambda.JsonProcessingException"
_ERROR = "Lambda.FunctionError"
_TIMED_OUT = "Lambda.FunctionTimedOut"
_TOO_LARGE = "Lambda.FunctionRequestTooLarge"


class _CallFailed(Exception):
    """A call without an answer, with Firehose's error code and the reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


class LocalFunction:
    """The function of one stream."""

    def __init__(
        self,
        handler: Handler,
        stream: DeliveryStream,
        *,
        limit_s: float = MAX_CALL_S,
        faults: FaultInjector = NO_FAULTS,
    ) -> None:
        self._handler, self._stream = handler, stream
        self._limit_s, self._faults = limit_s, faults

    def transform(self, records: Sequence[Record]) -> tuple[list[Made], list[Failure]]:
        """Return the rows made of the records, and the failures; dropped records are in neither.

        Retry a call that brings no answer; after the last try all of its records fail.
        """
        for attempt in range(1, self._stream.function_retries + 2):
            try:
                answers = self._call(records)
            except _CallFailed as failed:
                error = failed
            else:
                return _results(records, answers, value_name(self._stream), attempt)
        return [], [_failure(record, error.code, error.message, attempt) for record in records]

    def _call(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        request = json.dumps(invocation(self._stream, records))
        if len(request) > MAX_CALL_BYTES:
            raise _CallFailed(_TOO_LARGE, f"the request has {len(request)} bytes")
        if self._faults.should_fail():
            raise _CallFailed(_ERROR, "injected failure")
        threads = ThreadPoolExecutor(1)
        try:
            answered = threads.submit(self._handler, json.loads(request), None)
            answer = json.dumps(answered.result(self._limit_s))
        except TimeoutError:
            raise _CallFailed(_TIMED_OUT, f"no answer within {self._limit_s:g} s") from None
        except Exception as error:
            raise _CallFailed(_ERROR, f"{type(error).__name__}: {error}") from error
        finally:
            threads.shutdown(wait=False)
        if len(answer) > MAX_CALL_BYTES:
            raise _CallFailed(_ERROR, f"the answer has {len(answer)} bytes")
        listed = json.loads(answer).get("records")
        if not isinstance(listed, list):
            raise _CallFailed(_BAD_ANSWER, "`records` of the answer is not a list")
        return listed


def _results(
    records: Sequence[Record], answers: Sequence[dict[str, Any]], value: str, attempts: int
) -> tuple[list[Made], list[Failure]]:
    by_id: dict[str, list[dict[str, Any]]] = {}
    for answer in answers:
        by_id.setdefault(str(answer.get("recordId")), []).append(answer)
    made: list[Made] = []
    failures: list[Failure] = []
    for record in records:
        answered = by_id.get(record.id, [])
        if len(answered) != 1:
            code = _DUPLICATED_ID if answered else _MISSING_ID
            message = f"the answer contains the record {len(answered)} times"
            failures.append(_failure(record, code, message, attempts))
            continue
        result = _result(record, answered[0], value, attempts)
        if isinstance(result, Made):
            made.append(result)
        elif result is not None:
            failures.append(result)
    return made, failures


def _result(
    record: Record, answer: dict[str, Any], value: str, attempts: int
) -> Made | Failure | None:
    """Check the answer for one record; return None if the function drops it."""
    result = answer.get("result")
    if result == "Dropped":
        return None
    if result == "ProcessingFailed":
        message = "the function answered ProcessingFailed; see its log for the reason"
        return _failure(record, _FAILED_STATUS, message, attempts)
    try:
        data = base64.b64decode(answer[value], validate=True)
    except (KeyError, TypeError, ValueError):
        data = None
    if result != "Ok" or data is None:
        message = f"the answer is {result!r}, {'with' if data else 'without'} data"
        return _failure(record, _BAD_ANSWER, message, attempts)
    return Made(record, data, answer.get("metadata") or {})


def _failure(record: Record, code: str, message: str, attempts: int) -> Failure:
    raw = record.value or b""
    return Failure(record=record, code=code, message=message, attempts=attempts, raw=raw)
