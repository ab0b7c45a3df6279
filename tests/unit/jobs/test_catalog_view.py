"""Renewal of stored views where Glue cannot be asked."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

from cdclake.jobs.iceberg.catalog_view import CatalogViews


def test_a_session_without_a_region_renews_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    assert CatalogViews().replace_bound("cdc", "t_current", lambda *_: 5) is None
    assert "t_current: cannot renew the view's bound: You must specify a region" in caplog.text
