"""Limits of the stream keeper, which its function, its schedule and its alarms share."""

from __future__ import annotations

CHECK_EVERY_MINUTES = 5
FAILURES_TO_ALARM = 6  # consecutive runs that ended early; the keeper continues to start it
HEALTHY_AFTER_MINUTES = 10  # a run of this length does not count as failed
FIRST_PAUSE_MINUTES, MAX_PAUSE_MINUTES = 1, 30
SILENT_CHECKS = 3  # missing heartbeats that raise an alarm
SILENT_MINUTES = SILENT_CHECKS * CHECK_EVERY_MINUTES
